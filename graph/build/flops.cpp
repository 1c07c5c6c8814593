// flops.cpp - counts the operations of compute definitions (see flops.h).
#include "build/flops.h"

#include <hidet/ir/dim.h>
#include <hidet/ir/rewriter.h>

namespace hidet::graph {
using namespace ir;

namespace {

DimExpr volume(const std::vector<Expr>& extents) {
  DimExpr total = 1;
  for (const DimExpr& d : to_dims(extents)) total = total * d;
  return total;
}

/// Operations of one evaluation of `e`. What indexes a tensor is not arithmetic on data.
DimExpr flops(const Expr& e) {
  DimExpr total = 0;
  Rewriter walk;
  const auto count = [&](Rewriter& self, const auto& node) -> Expr {
    if (node.type.dtype().is_float()) total = total + 1;
    return self.children(node);
  };
  walk.on([&](Rewriter& self, const Unary& n) { return count(self, n); });
  walk.on([&](Rewriter& self, const Binary& n) { return count(self, n); });
  walk.on([&](Rewriter& self, const Prim& n) { return count(self, n); });
  walk.on([](Rewriter&, const Element& n) { return Expr(&n); });
  walk.on([&](Rewriter&, const Reduce& n) {
    const DimExpr step = n.type.dtype().is_float() ? 1 : 0;
    total = total + volume(n.extents) * (flops(n.value) + step);
    return Expr(&n);
  });
  walk.on([&](Rewriter&, const ArgReduce& n) {
    total = total + to_dim(n.extent) * flops(n.value);
    return Expr(&n);
  });
  (void)walk(e);
  return total;
}

DimExpr flops(const Compute& c) { return volume(shape_of(c.tensor)) * flops(c.value); }

}  // namespace

DimExpr flops_of(const FusedTask& fused) {
  DimExpr total = fused.before ? flops_of(*fused.before) : DimExpr(0);
  for (const Compute& c : fused.anchor.computes) total = total + flops(c);
  for (const std::optional<Compute>& p : fused.prologues)
    if (p) total = total + flops(*p);
  for (const EpilogueStep& s : fused.epilogue)
    for (const Compute& c : s.task.computes) total = total + flops(c);
  return total;
}

}  // namespace hidet::graph
