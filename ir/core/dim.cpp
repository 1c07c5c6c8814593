// dim.cpp - formulas of the runtime as expressions and back.
#include <hidet/ir/dim.h>
#include <hidet/runtime/error.h>

namespace hidet::ir {
namespace {

Expr combine(DimKind kind, const Expr& a, const Expr& b) {
  switch (kind) {
    case DimKind::add: return make_binary(BinaryOp::add, a, b);
    case DimKind::mul: return make_binary(BinaryOp::mul, a, b);
    case DimKind::floordiv: return make_binary(BinaryOp::floordiv, a, b);
    case DimKind::mod: return make_binary(BinaryOp::floormod, a, b);
    case DimKind::min: return make_binary(BinaryOp::min, a, b);
    case DimKind::max: return make_binary(BinaryOp::max, a, b);
    // Sizes that broadcast are equal or one of them is 1.
    case DimKind::broadcast:
      return make_select(make_binary(BinaryOp::eq, a, make_int(1, Type(i64))), b, a);
    case DimKind::constant:
    case DimKind::symbol: break;
  }
  HIDET_CHECK(false, "no operator for ", dim_kind_name(kind));
  return nullptr;
}

DimExpr of_binary(const Binary& b) {
  const DimExpr x = to_dim(b.a), y = to_dim(b.b);
  switch (b.op) {
    case BinaryOp::add: return x + y;
    case BinaryOp::sub: return x - y;
    case BinaryOp::mul: return x * y;
    case BinaryOp::div:
    case BinaryOp::floordiv: return floordiv(x, y);
    case BinaryOp::mod:
    case BinaryOp::floormod: return mod(x, y);
    case BinaryOp::min: return min(x, y);
    case BinaryOp::max: return max(x, y);
    default: break;
  }
  HIDET_CHECK(false, "'", info(b.op).name, "' in a formula of sizes");
  return {};
}

}  // namespace

Expr to_expr(const DimExpr& dim) {
  if (dim.is_const()) return make_int(dim.value(), Type(i64));
  if (dim.is_symbol()) return make_symbol(dim.name());
  Expr out;
  for (const DimExpr& part : dim.operands())
    out = out ? combine(dim.kind(), out, to_expr(part)) : to_expr(part);
  return out;
}

std::vector<Expr> to_exprs(const std::vector<DimExpr>& shape) {
  std::vector<Expr> out;
  for (const DimExpr& d : shape) out.push_back(to_expr(d));
  return out;
}

DimExpr to_dim(const Expr& e) {
  if (const IntImm* i = as<IntImm>(e)) return DimExpr(i->value);
  if (const DimSymbol* s = as<DimSymbol>(e)) return DimExpr(s->name);
  if (const Binary* b = as<Binary>(e)) return of_binary(*b);
  if (const Select* s = as<Select>(e)) {
    const Binary* test = as<Binary>(s->cond);
    int64_t one = 0;
    if (test && test->op == BinaryOp::eq && is_const_int(test->b, &one) && one == 1 &&
        equal(test->a, s->b))
      return broadcast(to_dim(s->b), to_dim(s->a));
  }
  HIDET_CHECK(false, "a '", kind_name(e->kind), "' in a formula of sizes");
  return {};
}

std::vector<DimExpr> to_dims(const std::vector<Expr>& shape) {
  std::vector<DimExpr> out;
  for (const Expr& e : shape) out.push_back(to_dim(e));
  return out;
}

}  // namespace hidet::ir
