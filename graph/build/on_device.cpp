// on_device.cpp - the same graph for another device.
// Threading: pure.
#include <hidet/graph/build.h>

#include "passes/rebuild.h"

namespace hidet::graph {

FlowGraph on_device(const FlowGraph& g, Device device) {
  RecordScope record;
  TensorMap map;
  std::vector<Tensor> inputs, outputs;
  for (const Tensor& t : g.input_tensors()) {
    inputs.push_back(symbol(t.shape_expr(), t.dtype(), device, t.name()));
    map[t.id()] = inputs.back();
  }
  const auto mapped = [&](const Tensor& t) {
    auto it = map.find(t.id());
    return it == map.end() ? t : it->second;
  };
  for (const FlowGraph::Node& n : g.nodes()) {
    std::vector<Tensor> args;
    for (const Tensor& t : n.op->inputs) args.push_back(mapped(t));
    const std::vector<Tensor> made = same_node(n, args);
    for (size_t i = 0; i < made.size(); i++) map[n.outputs[i].id()] = made[i];
  }
  for (const Tensor& t : g.output_tensors()) outputs.push_back(mapped(t));
  return FlowGraph(inputs, outputs, g.name()).with_names_of(g);
}

}  // namespace hidet::graph
