// index_checks.cpp - loops over index tensors before a kernel's work (see index_checks.h).
#include "build/index_checks.h"

#include <hidet/ir/dim.h>
#include <hidet/ir/make.h>
#include <hidet/ir/stmt.h>
#include <hidet/runtime/error.h>

#include "schedules/nest.h"

namespace hidet::graph {
using namespace ir;

namespace {

/// One axis of x that an operator indexes, and which of the indices are for it: those at `first`, `first + step` ...
struct IndexedAxis {
  size_t axis;
  int64_t first, step;
};

std::vector<IndexedAxis> indexed_axes(const Operator& op) {
  const auto rank = static_cast<int64_t>(op.inputs[0].shape_expr().size());
  if (op.def->name != "gather_nd") {
    const int64_t axis = op.attrs.integer("axis");
    return {{static_cast<size_t>(axis < 0 ? axis + rank : axis), 0, 1}};
  }
  const int64_t depth = op.inputs[1].shape_expr().back().value();
  std::vector<IndexedAxis> axes;
  for (int64_t d = 0; d < depth; d++)
    axes.push_back({static_cast<size_t>(op.attrs.integer("batch_dims") + d), d, depth});
  return axes;
}

/// refuse("gather: the index %lld is outside axis 0 of [%lld, 5]", index, sizes that are symbols).
Stmt refusal(const Operator& op, size_t axis, const Expr& index) {
  std::string format =
      op.def->name + ": the index %lld is outside axis " + std::to_string(axis) + " of [";
  std::vector<Expr> args{nullptr, index};
  const std::vector<DimExpr> shape = op.inputs[0].shape_expr();
  for (size_t d = 0; d < shape.size(); d++) {
    const DimExpr& size = shape[d];
    format += (d ? ", " : "") + (size.is_const() ? std::to_string(size.value()) : "%lld");
    if (!size.is_const()) args.push_back(to_expr(size));
  }
  args[0] = Expr(new StringImm(format + "]"));
  return make_stmt<Evaluate>({}, make_prim("refuse", std::move(args), Type()));
}

/// for (i < count) if (indices[first + i * step] is outside) refuse(...)
Stmt check(const Operator& op, const VarRef& indices, const IndexedAxis& at) {
  const Expr extent = to_expr(op.inputs[0].shape_expr()[at.axis]);
  const DimExpr count = floordiv(product(to_dims(shape_of(indices))), at.step);
  const std::vector<Expr> start(shape_of(indices).size(), index(0));
  const Expr base = make_address(indices, start);
  constexpr int64_t kGrain = 1 << 15;  // a few instructions each
  return loop(
      "i", to_expr(count), LoopKind::parallel,
      [&](const Value& i) {
        const VarRef v = make_var("index", Type(i64));
        const Expr place = (i * at.step + at.first).expr();
        const Value value{Expr(v)}, n(extent);
        return make_seq({make_stmt<DeclVar>({}, v, make_cast(make_load(base, place), Type(i64))),
                         make_stmt<If>({}, (value < -n || value >= n).expr(),
                                       refusal(op, at.axis, v), Stmt())});
      },
      kGrain);
}

}  // namespace

bool holds_indices(const std::string& op, size_t k) {
  return k == 1 && (op == "gather" || op == "gather_elements" || op == "gather_nd");
}

Stmt index_checks(const Group& group) {
  std::vector<Stmt> checks;
  for (const FlowGraph::Node* n : group.members) {
    if (!holds_indices(n->op->def->name, 1)) continue;
    const VarRef* indices = nullptr;
    for (size_t k = 0; k < group.inputs.size(); k++)
      if (group.inputs[k].same_as(n->op->inputs[1])) indices = &group.fused.inputs[k];
    HIDET_CHECK(indices, "the indices of '", n->op->def->name, "' are folded into its kernel");
    for (const IndexedAxis& at : indexed_axes(*n->op))
      checks.push_back(check(*n->op, *indices, at));
  }
  return make_seq(std::move(checks));
}

Module with_index_checks(Module m, const Group& group) {
  for (Function& f : m.functions)
    if (f.name == "launch") f.body = make_seq({index_checks(group), f.body});
  return m;
}

}  // namespace hidet::graph
