// run.cpp - hidet run: one run of a model.
#include "command.h"

#include <hidet/graph/simulate.h>
#include <hidet/runtime/numpy.h>
#include <hidet/runtime/thread_pool.h>
#include <nlohmann/json.hpp>

namespace hidet::tools {
namespace {

struct RunCommand {
  std::string file, device, output_dir;
  std::vector<std::string> outputs;
  int threads = 0;
  InputOptions inputs;
  Common common;
};

/// A file name for an output: its name where that is plain, else its number.
std::string file_name(const std::string& name, size_t index) {
  bool plain = !name.empty() && name[0] != '.';
  for (unsigned char c : name)
    plain = plain && (std::isalnum(c) || c == '_' || c == '-' || c == '.');
  return (plain ? name : "output_" + std::to_string(index)) + ".npy";
}

/// Files of --output by the name of the output.
using Files = std::map<std::string, std::string>;

Files files_of(const std::vector<std::string>& entries) {
  Files files;
  for (const std::string& entry : entries) {
    const size_t at = entry.find("=@");
    HIDET_REQUIRE(at != std::string::npos, ErrorCode::usage, "", "--output: '", entry,
                  "' should be NAME=@FILE.npy");
    files[entry.substr(0, at)] = entry.substr(at + 2);
  }
  return files;
}
/// Before the run, which may take long.
void check_names(const Files& files, const std::vector<TensorSignature>& outputs) {
  for (const auto& [name, file] : files) {
    std::string names;
    bool found = false;
    for (const TensorSignature& s : outputs) {
      found = found || s.name == name;
      names += (names.empty() ? "" : ", ") + s.name;
    }
    HIDET_REQUIRE(found, ErrorCode::usage, "", "--output: the model has no output '", name,
                  "'; it has ", names);
  }
}

struct Results {
  std::vector<TensorSignature> signatures;
  std::vector<Tensor> outputs;
};

Results run_compiled(const RunCommand& o, const Files& files) {
  const CompiledModel model = open_model(o.file, o.device, o.common.quiet);
  check_names(files, model.outputs());
  return {model.outputs(),
          model.run(make_inputs(model.inputs(), o.inputs, model.device(), o.common.quiet))};
}

/// The kernels for a GPU, in the simulator.
Results run_simulated(const RunCommand& o, const Files& files) {
  const FlowGraph g = gpu_graph(o.file, 3);
  check_names(files, g.outputs());
  const std::vector<Tensor> inputs = make_inputs(g.inputs(), o.inputs, Device(), o.common.quiet);
  Progress progress(o.common.quiet);
  return {g.outputs(), graph::simulate(g, inputs, {.progress = [&](int done, int total) {
                                         progress("simulate", done, total);
                                       }})};
}

/// Sum, least and largest value; NaN where one is.
struct Summary {
  double sum = 0, low = INFINITY, high = -INFINITY;
  explicit Summary(const Tensor& t) {
    for (const double v : t.cpu().to_doubles()) {
      sum += v;
      if (v < low || std::isnan(v)) low = v;
      if (v > high || std::isnan(v)) high = v;
    }
  }
};

int run(const RunCommand& o) {
  if (o.threads > 0) set_num_threads(o.threads);
  const Files files = files_of(o.outputs);
  const Results results = o.device == "sim" ? run_simulated(o, files) : run_compiled(o, files);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < results.outputs.size(); i++) {
    const std::string& name = results.signatures[i].name;
    const Tensor& t = results.outputs[i];
    const Summary s(t);
    std::printf("%s: %s  sum %.6g  min %.6g  max %.6g\n", name.c_str(), t.describe().c_str(), s.sum,
                s.low, s.high);
    if (!o.output_dir.empty()) write_npy(o.output_dir + "/" + file_name(name, i), t);
    if (const auto it = files.find(name); it != files.end()) write_npy(it->second, t);
    rows.push_back(
        {{"name", name}, {"dtype", t.dtype().name()}, {"shape", t.shape()}, {"sum", s.sum}});
  }
  write_json(o.common, {{"model", o.file}, {"outputs", rows}});
  return 0;
}

}  // namespace

Command add_run(CLI::App& root) {
  auto o = std::make_shared<RunCommand>();
  CLI::App* app = root.add_subcommand("run", "run a .hidet or .onnx file once");
  app->group("Models");
  app->add_option("file", o->file, "the .hidet or .onnx file")->required();
  app->add_option("--output", o->outputs, "NAME=@FILE.npy (repeatable)");
  app->add_option("--output-dir", o->output_dir, "folder for all outputs, as .npy");
  app->add_option("--device", o->device,
                  "cpu, cuda:0, or sim (a .onnx: its GPU kernels run on the CPU, with checks)");
  app->add_option("--threads", o->threads, "CPU threads")->check(CLI::PositiveNumber);
  o->inputs.add_to(*app);
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
