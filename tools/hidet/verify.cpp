// verify.cpp - hidet verify: the compiled model against the reference, as a whole and kernel by kernel.
#include "command.h"

#include <hidet/graph/build.h>
#include <hidet/runtime/model_data.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <unordered_map>

namespace hidet::tools {
namespace {

struct VerifyCommand {
  std::string file, device;
  double rtol = 1e-4, atol = 1e-5;
  int level = 3;
  InputOptions inputs;
  Common common;
};

/// Largest difference, as a share of the expected values' scale; NaN must meet NaN.
struct Difference {
  double worst = 0, scale = 0;
  bool same_kind = true;  ///< shapes and NaN agree
};
Difference compare(const Tensor& got, const Tensor& expected) {
  Difference d;
  if (got.shape() != expected.shape() || !(got.dtype() == expected.dtype()))
    return d.same_kind = false, d;
  const std::vector<double> g = got.cpu().to_doubles(), e = expected.cpu().to_doubles();
  for (double v : e)
    if (std::isfinite(v)) d.scale = std::fmax(d.scale, std::fabs(v));
  for (size_t i = 0; i < e.size(); i++) {
    if (std::isnan(g[i]) || std::isnan(e[i]))
      d.same_kind = d.same_kind && std::isnan(g[i]) == std::isnan(e[i]);
    else if (std::isinf(g[i]) || std::isinf(e[i])) d.same_kind = d.same_kind && g[i] == e[i];
    else d.worst = std::fmax(d.worst, std::fabs(g[i] - e[i]));
  }
  return d;
}
bool passes(const Difference& d, const VerifyCommand& o) {
  return d.same_kind && d.worst <= o.atol + o.rtol * d.scale;
}

/// Finds the first kernel whose result differs from the reference: a kernel's output is compared with the tensor of the
/// graph that the build says it holds, and a weight that the init program made with the operator that makes it.
class OperatorByOperator {
 public:
  OperatorByOperator(const VerifyCommand& o, const CompiledModel& model,
                     const std::vector<Tensor>& values)
      : o_(o), model_(model), values_(values) {}

  /// Empty: all kernels are right.
  std::string first_wrong(const FlowGraph& graph, const std::vector<Tensor>& inputs) {
    (void)graph.run(inputs, [&](const FlowGraph::Node& n, const std::vector<Tensor>& out) {
      const std::string& name = n.op->name.empty() ? n.op->def->name : n.op->name;
      for (size_t i = 0; i < out.size(); i++)
        reference_[n.outputs[i].id()] = {name, n.op->def->name, out[i]};
    });
    (void)model_.run(inputs,
                     {.interpret = true, .hook = [&](const InstructionEvent& e) { check(e); }});
    return wrong_;
  }
  int compared() const { return compared_; }

 private:
  struct Expected {
    std::string name, op;
    Tensor value;
  };

  void check(const InstructionEvent& e) {
    const Execution& program = model_.execution();
    const Instruction& i = program.instructions[static_cast<size_t>(e.index)];
    for (size_t k = 0; k < e.inputs.size(); k++)
      if (const auto& w = program.weights_index;
          std::find(w.begin(), w.end(), i.inputs[k]) != w.end())
        check(i.inputs[k], e.inputs[k], "", "of the init program");
    for (size_t k = 0; k < e.outputs.size(); k++)
      check(i.outputs[k], e.outputs[k], e.name,
            "kernel " + e.kernel + ", candidate " + e.candidate);
    compared_++;
  }
  void check(int id, const Tensor& got, const std::string& step, const std::string& kernel) {
    const auto it = reference_.find(values_.at(static_cast<size_t>(id)).id());
    // A weight or input as the user gave it.
    if (it == reference_.end() || !wrong_.empty()) return;
    const Expected& r = it->second;
    const Difference d = compare(got, r.value.reshape(got.shape()));
    if (passes(d, o_)) return;
    std::ostringstream text;
    text << (step.empty() ? r.name : step) << " (" << r.op << ", " << kernel
         << "): largest difference " << d.worst << " at scale " << d.scale;
    wrong_ = text.str();
  }

  const VerifyCommand& o_;
  const CompiledModel& model_;
  const std::vector<Tensor>& values_;
  std::unordered_map<const void*, Expected> reference_;
  std::string wrong_;
  int compared_ = 0;
};

int run(const VerifyCommand& o) {
  Progress progress(o.common.quiet);
  OnnxOptions onnx;
  if (!o.device.empty()) onnx.device = Device(o.device);
  const FlowGraph imported = from_onnx(o.file, onnx);
  const FlowGraph graph = optimize(imported, {.level = o.level});
  BuildModelOptions b;
  b.progress = [&](const std::string& phase, int done, int total) { progress(phase, done, total); };
  graph::BuildReport report;
  const CompiledModel model = CompiledModel::from_data(graph::build_model_data(graph, b, &report));
  const std::vector<Tensor> inputs =
      make_inputs(model.inputs(), o.inputs, model.device(), o.common.quiet);
  progress("reference", 0, 1);
  const std::vector<Tensor> expected = imported.run(inputs);
  const std::vector<Tensor> got = model.run(inputs);
  bool ok = true;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < got.size(); i++) {
    const Difference d = compare(got[i], expected[i]);
    const bool pass = passes(d, o);
    ok = ok && pass;
    std::printf("%s: %s  largest difference %.3g at scale %.3g  %s\n",
                model.outputs()[i].name.c_str(), got[i].describe().c_str(), d.worst, d.scale,
                pass ? "equal" : "DIFFERS");
    rows.push_back({{"name", model.outputs()[i].name},
                    {"worst", d.worst},
                    {"scale", d.scale},
                    {"pass", pass}});
  }
  progress("operator by operator", 0, 1);
  OperatorByOperator one_by_one(o, model, report.values);
  const std::string wrong = one_by_one.first_wrong(graph, inputs);
  if (!wrong.empty()) std::printf("first wrong operator: %s\n", wrong.c_str());
  ok = ok && wrong.empty();
  if (ok)
    std::printf("equal to the reference, as a whole and operator by operator (%d kernels)\n",
                one_by_one.compared());
  write_json(o.common, {{"model", o.file},
                        {"status", ok ? "pass" : "mismatch"},
                        {"first_wrong", wrong},
                        {"outputs", rows}});
  return ok ? 0 : 1;
}

}  // namespace

Command add_verify(CLI::App& root) {
  auto o = std::make_shared<VerifyCommand>();
  CLI::App* app = root.add_subcommand(
      "verify", "compare a compiled .onnx with the reference, operator by operator");
  app->add_option("file", o->file, "the .onnx file")->required();
  app->add_option("--rtol", o->rtol, "allowed difference relative to the scale of the output");
  app->add_option("--atol", o->atol, "allowed absolute difference");
  app->add_option("--device", o->device, "cpu or cuda:0");
  app->add_option("--opt-level", o->level, "0 nothing .. 3 everything")->check(CLI::Range(0, 3));
  o->inputs.add_to(*app);
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
