// run.cpp - hidet run: one run of a model.
#include "command.h"

#include <hidet/graph/simulate.h>
#include <hidet/runtime/numpy.h>
#include <hidet/runtime/thread_pool.h>
#include <sys/stat.h>
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

struct Results {
  std::vector<TensorSignature> signatures;
  std::vector<Tensor> outputs;
};

Results run_compiled(const RunCommand& o) {
  const CompiledModel model = open_model(o.file, o.device, o.common.quiet);
  return {model.outputs(),
          model.run(make_inputs(model.inputs(), o.inputs, model.device(), o.common.quiet))};
}

/// The kernels for a GPU, in the simulator.
Results run_simulated(const RunCommand& o) {
  const FlowGraph g = gpu_graph(o.file, 3);
  const std::vector<Tensor> inputs = make_inputs(g.inputs(), o.inputs, Device(), o.common.quiet);
  Progress progress(o.common.quiet);
  return {g.outputs(), graph::simulate(g, inputs, {.progress = [&](int done, int total) {
                                         progress("simulate", done, total);
                                       }})};
}

int run(const RunCommand& o) {
  if (o.threads > 0) set_num_threads(o.threads);
  const Results results = o.device == "sim" ? run_simulated(o) : run_compiled(o);
  const std::vector<Tensor>& outputs = results.outputs;
  if (!o.output_dir.empty() && mkdir(o.output_dir.c_str(), 0777) != 0)
    HIDET_REQUIRE(errno == EEXIST, ErrorCode::io, "", "cannot make the folder '", o.output_dir,
                  "'");
  std::map<std::string, std::string> files;
  for (const std::string& entry : o.outputs) {
    const size_t at = entry.find("=@");
    HIDET_REQUIRE(at != std::string::npos, ErrorCode::usage, "", "--output: '", entry,
                  "' should be NAME=@FILE.npy");
    files[entry.substr(0, at)] = entry.substr(at + 2);
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < outputs.size(); i++) {
    const std::string name = results.signatures[i].name;
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (double v : outputs[i].cpu().to_doubles())
      sum += v, low = std::fmin(low, v), high = std::fmax(high, v);
    std::printf("%s: %s  sum %.6g  min %.6g  max %.6g\n", name.c_str(),
                outputs[i].describe().c_str(), sum, low, high);
    if (!o.output_dir.empty()) write_npy(o.output_dir + "/" + file_name(name, i), outputs[i].cpu());
    if (auto it = files.find(name); it != files.end()) {
      write_npy(it->second, outputs[i].cpu());
      files.erase(it);
    }
    rows.push_back({{"name", name},
                    {"dtype", outputs[i].dtype().name()},
                    {"shape", outputs[i].shape()},
                    {"sum", sum}});
  }
  HIDET_REQUIRE(files.empty(), ErrorCode::usage, "", "--output: the model has no output '",
                files.begin()->first, "'");
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
  app->add_option("--threads", o->threads, "CPU threads");
  o->inputs.add_to(*app);
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
