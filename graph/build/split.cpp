// split.cpp - the init part and the run part of a graph (see split.h).
#include "build/split.h"

#include <set>

namespace hidet::graph {

Parts split(const FlowGraph& g) {
  std::set<const void*> varying;
  for (const Tensor& t : g.input_tensors()) varying.insert(t.id());
  Parts parts;
  for (const FlowGraph::Node& n : g.nodes()) {
    bool varies = false;
    for (const Tensor& t : n.op->inputs) varies = varies || varying.count(t.id());
    for (const Tensor& t : n.outputs)
      for (const DimExpr& d : t.shape_expr()) varies = varies || !d.is_const();
    for (const auto& [name, value] : n.op->attrs.values())
      if (const auto* dims = std::get_if<std::vector<DimExpr>>(&value))
        for (const DimExpr& d : *dims) varies = varies || !d.is_const();
    if (varies)
      for (const Tensor& t : n.outputs) varying.insert(t.id());
    (varies ? parts.run : parts.init).push_back(&n);
  }
  return parts;
}

std::vector<Tensor> stored_values(const FlowGraph& g, const Parts& parts) {
  std::set<const void*> varying, seen;
  for (const Tensor& t : g.input_tensors()) varying.insert(t.id());
  for (const FlowGraph::Node* n : parts.run)
    for (const Tensor& t : n->outputs) varying.insert(t.id());
  std::vector<Tensor> used;
  const auto take = [&](const Tensor& t) {
    if (!varying.count(t.id()) && seen.insert(t.id()).second) used.push_back(t);
  };
  for (const FlowGraph::Node* n : parts.run)
    for (const Tensor& t : n->op->inputs) take(t);
  for (const Tensor& t : g.output_tensors()) take(t);
  return used;
}

}  // namespace hidet::graph
