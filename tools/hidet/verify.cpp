// verify.cpp - hidet verify: the compiled model against the reference, as a whole and kernel by kernel, against stored
// data, and suites of cases with such data.
#include "command.h"

#include <hidet/graph/build.h>
#include <hidet/graph/onnx.h>
#include <hidet/graph/simulate.h>
#include <hidet/runtime/model_data.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

#include "compare.h"
#include "operator_check.h"
#include "repro.h"
#include "suite.h"

namespace hidet::tools {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyCommand {
  std::string file, device, data, suite, repro;
  int level = 3, floor = 0;
  double timeout_s = 60;
  Tolerance tolerance;
  InputOptions inputs;
  Common common;
};

/// A model built, with what the comparison needs.
struct Built {
  FlowGraph imported, graph;
  CompiledModel model;
  std::vector<Tensor> values;
};

Built build(const std::string& file, const VerifyCommand& o, OnnxOptions onnx, Progress* progress) {
  if (!o.device.empty()) onnx.device = Device(o.device);
  Built b;
  b.imported = from_onnx(file, onnx);
  b.graph = optimize(b.imported, {.level = o.level});
  BuildModelOptions options;
  if (progress)
    options.progress = [progress](const std::string& phase, int done, int total) {
      (*progress)(phase, done, total);
    };
  graph::BuildReport report;
  b.model = CompiledModel::from_data(graph::build_model_data(b.graph, options, &report));
  b.values = std::move(report.values);
  return b;
}

/// Compares an output and prints a line; true when it is accepted.
bool compare_output(const std::string& name, const Tensor& got, const Tensor& expected,
                    const char* with, const VerifyCommand& o, Json* rows) {
  const Difference d = compare(got, expected);
  const bool pass = o.tolerance.accepts(d, expected.dtype());
  std::printf("%s: %s  largest difference from %s %.3g at scale %.3g  %s\n", name.c_str(),
              got.describe().c_str(), with, d.worst, d.scale, pass ? "equal" : "DIFFERS");
  rows->push_back(
      {{"name", name}, {"with", with}, {"worst", d.worst}, {"scale", d.scale}, {"pass", pass}});
  return pass;
}
bool compare_outputs(const CompiledModel& model, const std::vector<Tensor>& got,
                     const std::vector<Tensor>& expected, const char* with, const VerifyCommand& o,
                     Json* rows) {
  bool ok = true;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); i++)
    ok = compare_output(model.outputs()[i].name, got[i], expected[i], with, o, rows) && ok;
  return ok;
}

bool is_wrong(const std::string& file, const std::vector<Tensor>& inputs, const VerifyCommand& o) {
  const Built b = build(file, o, {}, nullptr);
  std::vector<Tensor> placed;
  for (const Tensor& t : inputs) placed.push_back(t.to(b.model.device()));
  const std::vector<Tensor> got = b.model.run(placed), right = b.imported.run(placed);
  for (size_t i = 0; i < got.size(); i++)
    if (!o.tolerance.accepts(compare(got[i], right[i]), right[i].dtype())) return true;
  return false;
}

int verify_model(const VerifyCommand& o) {
  Progress progress(o.common.quiet);
  const Built b = build(o.file, o, {}, &progress);
  std::vector<Tensor> inputs;
  if (o.data.empty()) {
    inputs = make_inputs(b.model.inputs(), o.inputs, b.model.device(), o.common.quiet);
  } else {
    for (const Tensor& t : stored_tensors(o.data, "input", b.model.inputs()))
      inputs.push_back(t.to(b.model.device()));
    HIDET_REQUIRE(inputs.size() == b.model.inputs().size(), ErrorCode::bad_file, "", "'", o.data,
                  "' has ", inputs.size(), " files input_K.pb; the model has ",
                  b.model.inputs().size(), " inputs");
  }
  progress("reference", 0, 1);
  const std::vector<Tensor> expected = b.imported.run(inputs);
  const std::vector<Tensor> got = b.model.run(inputs);
  Json rows = Json::array();
  bool ok = compare_outputs(b.model, got, expected, "the reference", o, &rows);
  if (!o.data.empty()) {
    const std::vector<Tensor> stored = stored_tensors(o.data, "output", b.model.outputs());
    HIDET_REQUIRE(stored.size() == got.size(), ErrorCode::bad_file, "", "'", o.data, "' has ",
                  stored.size(), " files output_K.pb; the model has ", got.size(), " outputs");
    ok = compare_outputs(b.model, got, stored, "the stored data", o, &rows) && ok;
  }
  progress("operator by operator", 0, 1);
  OperatorByOperator one_by_one(o.tolerance, b.model, b.values);
  const std::string wrong = one_by_one.first_wrong(b.graph, inputs);
  if (!wrong.empty()) std::printf("first wrong operator: %s\n", wrong.c_str());
  ok = ok && wrong.empty();
  if (ok)
    std::printf("equal to %s, as a whole and operator by operator (%d kernels)\n",
                o.data.empty() ? "the reference" : "the reference and the stored data",
                one_by_one.compared());
  if (!ok && !o.repro.empty()) {
    progress("smallest failing model", 0, 1);
    const int nodes =
        write_repro(o.file, o.repro, one_by_one.wrong_node(), b.model.inputs(), inputs,
                    [&](const std::string& file, const std::vector<Tensor>& in) {
                      return is_wrong(file, in, o);
                    });
    std::printf(
        "smallest failing model (%d nodes): hidet verify %s/model.onnx --data %s/test_data_set_0\n",
        nodes, o.repro.c_str(), o.repro.c_str());
  }
  write_json(o.common, {{"model", o.file},
                        {"status", ok ? "pass" : "mismatch"},
                        {"first_wrong", wrong},
                        {"outputs", rows}});
  return ok ? 0 : 1;
}

/// The kernels for a GPU in the simulator, each against the reference.
int verify_simulated(const VerifyCommand& o) {
  HIDET_REQUIRE(o.data.empty() && o.repro.empty(), ErrorCode::usage, "",
                "--data and --repro compare compiled code, not --device sim");
  const FlowGraph gpu = gpu_graph(o.file, o.level);
  const FlowGraph cpu = graph::on_device(gpu, Device());  // the same nodes in the same order
  const std::vector<Tensor> inputs = make_inputs(cpu.inputs(), o.inputs, Device(), o.common.quiet);
  Progress progress(o.common.quiet);
  progress("reference", 0, 1);
  std::map<const void*, Tensor> right;
  size_t node = 0;
  const std::vector<Tensor> expected =
      cpu.run(inputs, [&](const FlowGraph::Node&, const std::vector<Tensor>& made) {
        const FlowGraph::Node& n = gpu.nodes()[node++];
        for (size_t i = 0; i < made.size(); i++) right[n.outputs[i].id()] = made[i];
      });
  std::string wrong;
  int kernels = 0;
  const auto check = [&](const std::string& name, const std::string& kernel,
                         const std::vector<Tensor>& tensors, const std::vector<Tensor>& values) {
    kernels++;
    for (size_t i = 0; i < values.size() && wrong.empty(); i++) {
      const auto it = right.find(tensors[i].id());
      if (it == right.end()) continue;
      const Difference d = compare(values[i], it->second);
      if (!o.tolerance.accepts(d, values[i].dtype()))
        wrong = detail::concat(name, " (kernel ", kernel, "): largest difference ", d.worst,
                               " at scale ", d.scale);
    }
  };
  const std::vector<Tensor> got = graph::simulate(
      gpu, inputs,
      {.hook = check, .progress = [&](int done, int total) { progress("simulate", done, total); }});
  Json rows = Json::array();
  bool ok = wrong.empty();
  for (size_t i = 0; i < got.size(); i++)
    ok =
        compare_output(cpu.outputs()[i].name, got[i], expected[i], "the reference", o, &rows) && ok;
  if (!wrong.empty()) std::printf("first wrong operator: %s\n", wrong.c_str());
  if (ok)
    std::printf(
        "equal to the reference, as a whole and operator by operator (%d kernels in the "
        "simulator)\n",
        kernels);
  write_json(o.common, {{"model", o.file},
                        {"status", ok ? "pass" : "mismatch"},
                        {"first_wrong", wrong},
                        {"outputs", rows}});
  return ok ? 0 : 1;
}

std::vector<std::string> folders_of(const std::string& path, const std::string& prefix) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_directory() && entry.path().filename().string().rfind(prefix, 0) == 0)
      out.push_back(entry.path());
  HIDET_REQUIRE(!error, ErrorCode::io, "", "cannot read the folder '", path,
                "': ", error.message());
  std::sort(out.begin(), out.end());
  return out;
}

/// Values for inputs that a shape may depend on: all stored ones but the first. None where they are no tensors.
std::optional<OnnxOptions> with_fixed_inputs(const std::string& model,
                                             const std::string& data) try {
  OnnxOptions options;
  const std::vector<Tensor> values = stored_tensors(data, "input", {});
  const std::vector<std::string> names = inspect_onnx(model).inputs;
  for (size_t i = values.size() == 1 ? 0 : 1; i < values.size() && i < names.size(); i++)
    options.values[names[i]] = values[i];
  return options;
} catch (const Error&) {
  return std::nullopt;
}

/// Some stored inputs have not the shape that their model declares: such a case says nothing.
void check_stored(const std::vector<TensorSignature>& signatures,
                  const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); i++)
    HIDET_REQUIRE(
        !is_concrete(signatures[i].shape) || to_concrete(signatures[i].shape) == inputs[i].shape(),
        ErrorCode::unsupported, "", "the stored input is ", inputs[i].describe(),
        ", the model declares ", signatures[i].text());
}

/// One case: each test_data_set_K of the folder.
CaseResult run_case(const std::string& folder, const VerifyCommand& o) {
  const std::string file = folder + "/model.onnx";
  CaseResult r;
  r.status = "pass";
  for (const std::string& data : folders_of(folder, "test_data_set_")) {
    Built b;
    try {
      b = build(file, o, {}, nullptr);
    } catch (const Error& e) {
      // Operators whose shapes depend on an input (axes, a target shape): the stored one is as good as any.
      if (e.code() != ErrorCode::unsupported) throw;
      const std::optional<OnnxOptions> fixed = with_fixed_inputs(file, data);
      if (!fixed) throw;
      b = build(file, o, *fixed, nullptr);
      r.message = "with its inputs but the first fixed to the stored values";
    }
    std::vector<Tensor> inputs = stored_tensors(data, "input", b.model.inputs());
    inputs.resize(std::min(inputs.size(), b.model.inputs().size()));
    check_stored(b.model.inputs(), inputs);
    const std::vector<Tensor> got = b.model.run(inputs);
    const std::vector<Tensor> stored = stored_tensors(data, "output", b.model.outputs());
    for (size_t i = 0; i < stored.size(); i++) {
      const bool made = i < got.size();
      if (made && o.tolerance.accepts(compare(got[i], stored[i]), stored[i].dtype())) continue;
      r.status = "mismatch";
      r.message = "output " + std::to_string(i) + " is " + (made ? got[i].describe() : "missing") +
                  "; stored is " + stored[i].describe();
      return r;
    }
  }
  return r;
}

int verify_suite(const VerifyCommand& o) {
  const std::vector<std::string> folders = folders_of(o.suite, "test_");
  HIDET_REQUIRE(!folders.empty(), ErrorCode::bad_file, "", "'", o.suite, "' has no folder test_*");
  Progress progress(o.common.quiet);
  std::map<std::string, int> counts;
  Json rows = Json::array();
  run_cases(
      folders, o.timeout_s, [&](const std::string& folder) { return run_case(folder, o); },
      [&](const CaseResult& r, int done, int total) {
        progress("cases", done, total);
        counts[r.status]++;
        if (r.status != "pass" && r.status != "unsupported")
          std::printf("%s: %s: %s\n", r.name.c_str(), r.status.c_str(), r.message.c_str());
        rows.push_back(
            {{"name", r.name}, {"status", r.status}, {"message", r.message}, {"ms", r.ms}});
      });
  std::string text;
  int wrong = 0;
  for (const auto& [status, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + status;
    if (status != "pass" && status != "unsupported") wrong += count;
  }
  const bool ok = wrong == 0 && counts["pass"] >= o.floor;
  std::printf("%zu cases: %s%s\n", folders.size(), text.c_str(),
              counts["pass"] < o.floor ? ", fewer passes than the floor" : "");
  write_json(o.common, rows);
  return ok ? 0 : 1;
}

int run(const VerifyCommand& o) {
  HIDET_REQUIRE(o.file.empty() != o.suite.empty(), ErrorCode::usage, "",
                "hidet verify takes a .onnx file, or --suite DIR");
  if (!o.suite.empty()) return verify_suite(o);
  HIDET_REQUIRE(is_onnx(o.file), ErrorCode::usage, "", "hidet verify takes a .onnx file, not '",
                o.file, "': a compiled file has no reference");
  return o.device == "sim" ? verify_simulated(o) : verify_model(o);
}

}  // namespace

Command add_verify(CLI::App& root) {
  auto o = std::make_shared<VerifyCommand>();
  CLI::App* app = root.add_subcommand(
      "verify", "compare a compiled .onnx with the reference, operator by operator");
  app->group("Models");
  app->add_option("file", o->file, "the .onnx file");
  app->add_option(
         "--rtol", o->tolerance.rtol,
         "allowed difference as a share of the output's scale; default by dtype (f32 1e-4)")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--atol", o->tolerance.atol, "allowed absolute difference; default by dtype")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--device", o->device, "cpu, cuda:0, or sim: GPU kernels in the simulator");
  app->add_option("--opt-level", o->level, "0 nothing .. 3 everything")->check(CLI::Range(0, 3));
  app->add_option("--data", o->data, "folder of input_K.pb and output_K.pb to compare with, too");
  app->add_option("--repro", o->repro, "folder for the smallest failing model, on a mismatch");
  app->add_option("--suite", o->suite,
                  "run every folder test_* in it, each in a process of its own")
      ->group("Suites");
  app->add_option("--floor", o->floor, "with --suite: fail where fewer cases pass")
      ->group("Suites");
  app->add_option("--timeout", o->timeout_s, "with --suite: seconds for one case")->group("Suites");
  o->inputs.add_to(*app);
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
