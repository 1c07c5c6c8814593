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

bool is_reshape(const std::string& name) {
  return name == "reshape" || name == "squeeze" || name == "unsqueeze" || name == "flatten";
}

/// reshape(t, shape), through the reshapes that made `t`.
Tensor reshaped(const Tensor& t, const std::vector<DimExpr>& shape) {
  if (t.shape_expr() == shape) return t;
  const auto inner = producer_of(t);
  return inner && is_reshape(inner->def->name) ? reshaped(inner->inputs[0], shape)
                                               : ops::reshape(t, shape);
}

/// Only dims of size 1 change their place: the elements stay in their order.
bool keeps_order(const std::vector<int64_t>& perm, const std::vector<DimExpr>& shape) {
  int64_t last = -1;
  for (int64_t d : perm) {
    if (shape[static_cast<size_t>(d)].is_const(1)) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

std::vector<Tensor> clean_transpose(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
  const std::vector<int64_t>& perm = n.op->attrs.integers("perm");
  if (is_identity(perm)) return {in[0]};
  if (keeps_order(perm, in[0].shape_expr())) return {reshaped(in[0], n.outputs[0].shape_expr())};
  const auto inner = producer_of(in[0]);
  if (!inner || inner->def->name != "transpose") return {};
  const std::vector<int64_t>& first = inner->attrs.integers("perm");
  std::vector<int64_t> both;
  for (int64_t d : perm) both.push_back(first[static_cast<size_t>(d)]);
  if (is_identity(both)) return {inner->inputs[0]};
  return {ops::transpose(inner->inputs[0], both)};
}

/// A product whose rows a reshape flattened, and a bias added to it, with the rows as `shape` has them. `old` is the same value in
/// the graph before the pass. Undefined where the value is nothing like that or has other readers.
Tensor with_rows_of(const FlowGraph& g, const Tensor& old, const Tensor& t,
                    const std::vector<DimExpr>& shape) {
  const auto was = producer_of(old), op = producer_of(t);
  if (!op || !was || op->def != was->def || uses_of(g, old) != 1) return {};
  if (op->def->name == "add")
    for (size_t k = 0; k < 2; k++) {
      if (op->inputs[1 - k].rank() != 1) continue;
      const Tensor y = with_rows_of(g, was->inputs[k], op->inputs[k], shape);
      return y.defined() ? ops::add(y, op->inputs[1 - k]) : y;
    }
  if (op->def->name != "matmul" || op->inputs[1].rank() != 2) return {};
  const auto rows = producer_of(op->inputs[0]);
  if (!rows || !is_reshape(rows->def->name)) return {};
  std::vector<DimExpr> want = shape;
  want.back() = op->inputs[0].shape_expr().back();
  if (!(shape.back() == t.shape_expr().back()) || rows->inputs[0].shape_expr() != want) return {};
  return apply("matmul", {rows->inputs[0], op->inputs[1]}, op->attrs, op->name)[0];
}

std::vector<Tensor> clean_reshape(const FlowGraph& g, const FlowGraph::Node& n,
                                  const std::vector<Tensor>& in) {
  const std::vector<DimExpr> shape = n.outputs[0].shape_expr();
  const auto inner = producer_of(in[0]);
  if (shape == in[0].shape_expr() || (inner && is_reshape(inner->def->name)))
    return {reshaped(in[0], shape)};
  if (shape.empty()) return {};
  const Tensor product = with_rows_of(g, n.op->inputs[0], in[0], shape);
  if (product.defined()) return {product};
  return {};
}

}  // namespace

FlowGraph clean_moves(const FlowGraph& g) {
  return rebuild(
      g, [&](const FlowGraph::Node& n, const std::vector<Tensor>& in) -> std::vector<Tensor> {
        const std::string& name = n.op->def->name;
        if (name == "transpose") return clean_transpose(n, in);
        if (is_reshape(name)) return clean_reshape(g, n, in);
        if ((name == "cast" && n.outputs[0].dtype() == in[0].dtype()) || name == "identity")
          return {in[0]};
        if (name == "expand" && n.outputs[0].shape_expr() == in[0].shape_expr()) return {in[0]};
        return {};
      });
}

}  // namespace hidet::graph
