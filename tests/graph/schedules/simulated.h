// simulated.h - runs the GPU kernels of a graph in the simulator, with its checks for races, bounds and unwritten memory.
#pragma once
#include <hidet/backends/sim.h>

#include "build/plan.h"
#include "graph/core/samples.h"

namespace hidet::test {

/// The kernels of a graph for a GPU, and what they compute of `inputs`.
class Simulated {
 public:
  explicit Simulated(const FlowGraph& graph) : graph_(graph), store_({}, true) {
    std::vector<const FlowGraph::Node*> nodes;
    for (const FlowGraph::Node& n : graph.nodes()) nodes.push_back(&n);
    groups_ = graph::fuse(nodes, graph.output_tensors(), true);
    for (const graph::Group& g : groups_) kernel_of_.push_back(g.is_view ? -1 : store_.add(g));
  }
  const std::vector<graph::PlanKernel>& kernels() const { return store_.kernels(); }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const SymbolMap& symbols = {}) const {
    std::map<const void*, Tensor> values;
    for (size_t i = 0; i < inputs.size(); i++)
      values.emplace(graph_.input_tensors()[i].id(), inputs[i]);
    for (const Tensor& w : graph_.weights()) values.emplace(w.id(), w);
    for (size_t k = 0; k < groups_.size(); k++) run(groups_[k], kernel_of_[k], values, symbols);
    std::vector<Tensor> out;
    for (const Tensor& t : graph_.output_tensors()) out.push_back(values.at(t.id()));
    return out;
  }

 private:
  void run(const graph::Group& g, int kernel, std::map<const void*, Tensor>& values,
           const SymbolMap& symbols) const {
    if (kernel < 0) {
      const Tensor& from = values.at(g.inputs[0].id());
      values.emplace(g.outputs[0].id(),
                     from.view_at(0, shape_of(g.outputs[0].shape_expr(), symbols), from.dtype()));
      return;
    }
    const graph::PlanKernel& k = store_.kernels()[static_cast<size_t>(kernel)];
    std::vector<backends::SimArg> args;
    for (const Tensor& t : g.inputs) args.emplace_back(values.at(t.id()));
    for (const Tensor& t : g.outputs) {
      const Tensor y = empty(shape_of(t.shape_expr(), symbols), t.dtype());
      values.emplace(t.id(), y);
      args.emplace_back(y);
    }
    if (!g.fused.temporaries.empty()) args.emplace_back(empty({k.workspace.eval(symbols)}, u8));
    backends::SimOptions options;
    options.symbols.insert(symbols.begin(), symbols.end());
    backends::simulate(k.recorded, "launch", args, options);
  }

  const FlowGraph& graph_;
  graph::KernelStore store_;
  std::vector<graph::Group> groups_;
  std::vector<int> kernel_of_;
};

}  // namespace hidet::test
