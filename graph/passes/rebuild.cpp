// rebuild.cpp - making a new graph from an old one, node by node.
#include "passes/rebuild.h"

#include <hidet/runtime/error.h>

namespace hidet::graph {

std::vector<Tensor> same_node(const FlowGraph::Node& n, const std::vector<Tensor>& inputs) {
  const Operator& op = *n.op;
  if (op.custom) return apply(op.custom, inputs, op.attrs, op.name);
  return apply(op.def->name, inputs, op.attrs, op.name);
}

FlowGraph rebuild(const FlowGraph& g, const NodeRewrite& rewrite) {
  RecordScope record;
  TensorMap map;
  const auto mapped = [&](const Tensor& t) {
    auto it = map.find(t.id());
    return it == map.end() ? t : it->second;
  };
  for (const FlowGraph::Node& n : g.nodes()) {
    std::vector<Tensor> inputs;
    bool changed = false;
    for (const Tensor& t : n.op->inputs) {
      inputs.push_back(mapped(t));
      changed = changed || !inputs.back().same_as(t);
    }
    const NameScope name(n.op->name);
    std::vector<Tensor> outputs = rewrite(n, inputs);
    if (outputs.empty()) {
      if (!changed) continue;
      outputs = same_node(n, inputs);
    }
    HIDET_CHECK(outputs.size() == n.outputs.size(), "a rewrite of '", n.op->def->name, "' gives ",
                outputs.size(), " outputs");
    for (size_t i = 0; i < outputs.size(); i++) map[n.outputs[i].id()] = outputs[i];
  }
  std::vector<Tensor> outputs;
  for (const Tensor& t : g.output_tensors()) outputs.push_back(mapped(t));
  std::vector<std::string> in_names, out_names;
  for (const TensorSignature& s : g.inputs()) in_names.push_back(s.name);
  for (const TensorSignature& s : g.outputs()) out_names.push_back(s.name);
  std::map<const void*, std::string> weights;
  for (size_t i = 0; i < g.weights().size(); i++)
    weights[g.weights()[i].id()] = g.weight_names()[i];
  return FlowGraph(g.input_tensors(), outputs, g.name()).with_names(in_names, out_names, weights);
}

}  // namespace hidet::graph
