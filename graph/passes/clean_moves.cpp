// clean_moves.cpp - moves that undo each other or do nothing.
#include <hidet/graph/ops.h>

#include "passes/rebuild.h"

namespace hidet::graph {
namespace {

bool is_identity(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); i++)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::vector<Tensor> clean_transpose(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
  const std::vector<int64_t>& perm = n.op->attrs.integers("perm");
  if (is_identity(perm)) return {in[0]};
  const auto inner = producer_of(in[0]);
  if (!inner || inner->def->name != "transpose") return {};
  const std::vector<int64_t>& first = inner->attrs.integers("perm");
  std::vector<int64_t> both;
  for (int64_t d : perm) both.push_back(first[static_cast<size_t>(d)]);
  if (is_identity(both)) return {inner->inputs[0]};
  return {ops::transpose(inner->inputs[0], both)};
}

bool is_reshape(const std::string& name) {
  return name == "reshape" || name == "squeeze" || name == "unsqueeze" || name == "flatten";
}

std::vector<Tensor> clean_reshape(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
  const std::vector<DimExpr> shape = n.outputs[0].shape_expr();
  if (shape == in[0].shape_expr()) return {in[0]};
  const auto inner = producer_of(in[0]);
  if (inner && is_reshape(inner->def->name)) {
    if (shape == inner->inputs[0].shape_expr()) return {inner->inputs[0]};
    return {ops::reshape(inner->inputs[0], shape)};
  }
  return {};
}

}  // namespace

FlowGraph clean_moves(const FlowGraph& g) {
  return rebuild(
      g, [](const FlowGraph::Node& n, const std::vector<Tensor>& in) -> std::vector<Tensor> {
        const std::string& name = n.op->def->name;
        if (name == "transpose") return clean_transpose(n, in);
        if (is_reshape(name)) return clean_reshape(n, in);
        if ((name == "cast" && n.outputs[0].dtype() == in[0].dtype()) || name == "identity")
          return {in[0]};
        if (name == "expand" && n.outputs[0].shape_expr() == in[0].shape_expr()) return {in[0]};
        return {};
      });
}

}  // namespace hidet::graph
