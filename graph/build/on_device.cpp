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
  std::vector<std::string> in_names, out_names;
  for (const TensorSignature& s : g.inputs()) in_names.push_back(s.name);
  for (const TensorSignature& s : g.outputs()) out_names.push_back(s.name);
  std::map<const void*, std::string> weights;
  for (size_t i = 0; i < g.weights().size(); i++)
    weights[g.weights()[i].id()] = g.weight_names()[i];
  return FlowGraph(inputs, outputs, g.name()).with_names(in_names, out_names, weights);
}

}  // namespace hidet::graph
