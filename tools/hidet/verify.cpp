// verify.cpp - hidet verify: the compiled model against the reference, as a whole and kernel by kernel.
#include "command.h"

#include <hidet/runtime/model_data.h>
#include <nlohmann/json.hpp>

#include <cmath>

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

/// The first kernel whose result differs from the reference on the same inputs, or empty.
std::string first_wrong_kernel(const FlowGraph& graph, const CompiledModel& model,
                               const std::vector<Tensor>& inputs, const VerifyCommand& o) {
  // Results of the reference by the operator's name; a kernel carries its anchor's name, and its result is that of
  // its last operator: the reference values are searched by shape and closeness among those of the same kernel.
  std::vector<std::pair<std::string, Tensor>> reference;
  (void)graph.run(inputs, [&](const FlowGraph::Node& n, const std::vector<Tensor>& out) {
    for (const Tensor& t : out) reference.emplace_back(n.op->def->name, t);
  });
  std::string wrong;
  (void)model.run(
      inputs, {.interpret = true, .hook = [&](const InstructionEvent& e) {
                 if (!wrong.empty()) return;
                 for (const Tensor& t : e.outputs) {
                   bool found = false, candidate = false;
                   for (const auto& [name, r] : reference) {
                     if (e.kernel.find(name) == std::string::npos || r.shape() != t.shape())
                       continue;
                     candidate = true;
                     found = found || passes(compare(t, r), o);
                     if (found) break;
                   }
                   if (candidate && !found)
                     wrong = e.name + " (kernel " + e.kernel + ", candidate " + e.candidate + ")";
                 }
               }});
  return wrong;
}

int run(const VerifyCommand& o) {
  Progress progress(o.common.quiet);
  const FlowGraph imported = from_onnx(o.file);
  const FlowGraph graph = optimize(imported, {.level = o.level});
  BuildModelOptions b;
  b.progress = [&](const std::string& phase, int done, int total) { progress(phase, done, total); };
  const CompiledModel model = graph.build(b);
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
  const std::string wrong = first_wrong_kernel(graph, model, inputs, o);
  if (!wrong.empty()) std::printf("first wrong operator: %s\n", wrong.c_str());
  ok = ok && wrong.empty();
  if (ok)
    std::printf("equal to the reference, as a whole and operator by operator (%zu kernels)\n",
                model.execution().instructions.size());
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
  app->add_option("--opt-level", o->level, "0 nothing .. 3 everything")->check(CLI::Range(0, 3));
  o->inputs.add_to(*app);
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
