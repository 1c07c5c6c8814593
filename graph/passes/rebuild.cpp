// rebuild.cpp - making a new graph from an old one, node by node.
#include "passes/rebuild.h"

#include <hidet/runtime/error.h>

namespace hidet::graph {

std::vector<Tensor> same_node(const FlowGraph::Node& n, const std::vector<Tensor>& inputs) {
  const Operator& op = *n.op;
  if (op.custom) return apply(op.custom, inputs, op.attrs, op.name);
  return apply(op.def->name, inputs, op.attrs, op.name);
}

int uses_of(const FlowGraph& g, const Tensor& t) {
  int n = 0;
  for (const FlowGraph::Node& node : g.nodes())
    for (const Tensor& in : node.op->inputs) n += in.same_as(t);
  for (const Tensor& out : g.output_tensors()) n += out.same_as(t);
  return n;
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
  return FlowGraph(g.input_tensors(), outputs, g.name()).with_names_of(g);
}

}  // namespace hidet::graph
