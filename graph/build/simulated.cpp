// simulated.cpp - runs the kernels of a GPU graph in the simulator (see simulated.h).
#include "build/simulated.h"

#include <hidet/backends/sim.h>
#include <hidet/runtime/error.h>

#include "build/split.h"
#include "core/evaluate.h"

namespace hidet::graph {
namespace {

Shape shape_at(const Tensor& t, const SymbolMap& symbols) {
  Shape shape;
  for (const DimExpr& d : t.shape_expr()) shape.push_back(d.eval(symbols));
  return shape;
}

}  // namespace

Simulated::Simulated(const FlowGraph& graph, int space) : graph_(graph), store_({}, true) {
  store_.set_space(space);
  const Parts parts = split(graph_);
  groups_ = fuse(parts.run, graph_.output_tensors(), true);
  for (const Group& g : groups_) kernel_of_.push_back(g.is_view ? -1 : store_.add(g));
  store_.finish();
  for (const Tensor& t : stored_values(graph_, parts))
    if (t.is_symbolic()) stored_.push_back(t);
}

std::vector<Tensor> Simulated::run(const std::vector<Tensor>& inputs,
                                   const SimulateOptions& options) const {
  const std::vector<Tensor>& expected = graph_.input_tensors();
  HIDET_REQUIRE(inputs.size() == expected.size(), ErrorCode::usage, "", "the graph '",
                graph_.name(), "' takes ", expected.size(), " inputs, got ", inputs.size());
  Values values;
  SymbolMap symbols = options.symbols;
  for (size_t i = 0; i < inputs.size(); i++) {
    const TensorSignature wanted = graph_.inputs()[i];
    HIDET_REQUIRE(
        inputs[i].dtype() == wanted.dtype && bind_symbols(wanted.shape, inputs[i].shape(), symbols),
        ErrorCode::usage, "", "the input ", wanted.text(), " got ", inputs[i].describe());
    values[expected[i].id()] = inputs[i].cpu();
  }
  for (const Tensor& w : graph_.weights()) values[w.id()] = w.cpu();
  if (!stored_.empty()) {
    const std::vector<Tensor> made = FlowGraph({}, stored_).run(std::vector<Tensor>{});
    for (size_t i = 0; i < made.size(); i++) values[stored_[i].id()] = made[i];
  }
  for (size_t k = 0; k < groups_.size(); k++) {
    run(groups_[k], kernel_of_[k], symbols, options, values);
    if (options.progress)
      options.progress(static_cast<int>(k) + 1, static_cast<int>(groups_.size()));
  }
  std::vector<Tensor> out;
  for (const Tensor& t : graph_.output_tensors()) out.push_back(values.at(t.id()));
  return out;
}

void Simulated::run(const Group& g, int kernel, const SymbolMap& symbols,
                    const SimulateOptions& options, Values& values) const {
  if (kernel < 0) {
    const Tensor& from = values.at(g.inputs[0].id());
    values[g.outputs[0].id()] = from.view_at(0, shape_at(g.outputs[0], symbols), from.dtype());
    return;
  }
  const PlanKernel& k = store_.kernels()[static_cast<size_t>(kernel)];
  std::vector<backends::SimArg> args;
  std::vector<Tensor> made;
  for (const Tensor& t : g.inputs) args.emplace_back(values.at(t.id()));
  for (const Tensor& t : g.outputs) {
    made.push_back(empty(shape_at(t, symbols), t.dtype()));
    values[t.id()] = made.back();
    args.emplace_back(made.back());
  }
  if (!g.fused.temporaries.empty()) args.emplace_back(empty({k.workspace.eval(symbols)}, u8));
  backends::SimOptions sim;
  sim.checks = options.checks;
  sim.symbols.insert(symbols.begin(), symbols.end());
  for (size_t i = g.inputs.size(); i < args.size(); i++)
    sim.undefined.push_back(static_cast<int>(i));
  const bool other = candidate_ > 0 && candidate_ <= k.others.size();
  backends::simulate(other ? k.others[candidate_ - 1].recorded : k.recorded, "launch", args, sim);
  if (!options.hook) return;
  const FlowGraph::Node& named = g.anchor ? *g.anchor : *g.members.back();
  options.hook(named.op->name.empty() ? named.op->def->name : named.op->name, k.data.name,
               g.outputs, made);
}

std::vector<Tensor> simulate(const FlowGraph& g, const std::vector<Tensor>& inputs,
                             const SimulateOptions& options) {
  for (const Tensor& t : g.input_tensors())
    HIDET_REQUIRE(t.device().is_cuda(), ErrorCode::usage, "", "the graph '", g.name(),
                  "' is for a CPU; the simulator runs GPU graphs (graph::on_device)");
  return Simulated(g).run(inputs, options);
}

}  // namespace hidet::graph
