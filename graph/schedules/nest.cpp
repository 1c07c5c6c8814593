// nest.cpp - small pieces for writing loop nests as IR.
#include "schedules/nest.h"

#include <hidet/ir/rewriter.h>

namespace hidet::graph {
using namespace ir;

Expr index(int64_t v) { return make_int(v, Type(i64)); }

Expr size_of(const std::vector<Expr>& shape) {
  Expr n = index(1);
  for (const Expr& e : shape) n = make_binary(BinaryOp::mul, n, make_cast(e, Type(i64)));
  return n;
}

Stmt loop_from(const std::string& name, const Expr& begin, const Expr& end, int64_t step, const std::function<Stmt(const Value&)>& body) {
  const VarRef v = make_var(name, Type(i64));
  return make_stmt<For>({}, v, begin, end, index(step), LoopKind::serial, int64_t{1}, body(Value(Expr(v))));
}

Stmt loop(const std::string& name, const Expr& end, LoopKind how, const std::function<Stmt(const Value&)>& body, int64_t grain) {
  const VarRef v = make_var(name, Type(i64));
  return make_stmt<For>({}, v, index(0), end, index(1), how, grain, body(Value(Expr(v))));
}

Unflattened unflatten(const Expr& flat, const std::vector<Expr>& shape) {
  Unflattened out;
  out.indices.resize(shape.size());
  Expr rest = flat;
  for (size_t d = shape.size(); d-- > 0;) {
    const Expr at = d == 0 ? rest : make_binary(BinaryOp::mod, rest, shape[d]);
    const VarRef v = make_var("i" + std::to_string(d), Type(i64));
    out.declarations.push_back(make_stmt<DeclVar>({}, v, at));
    out.indices[d] = Value(Expr(v));
    if (d == 0) break;
    const VarRef next = make_var("rest", Type(i64));
    out.declarations.push_back(make_stmt<DeclVar>({}, next, make_binary(BinaryOp::div, rest, shape[d])));
    rest = next;
  }
  return out;
}

std::optional<int64_t> stride_in(const Expr& e, const Var& axis) {
  if (e.get() == &axis) return 1;
  bool uses = false;
  visit_all(e, [&](const Node& n) { uses = uses || &n == &axis; });
  if (!uses) return 0;
  const Binary* b = as<Binary>(e);
  if (!b) return std::nullopt;
  const auto x = stride_in(b->a, axis), y = stride_in(b->b, axis);
  if (!x || !y) return std::nullopt;
  int64_t k;
  if (b->op == BinaryOp::add) return *x + *y;
  if (b->op == BinaryOp::sub) return *x - *y;
  if (b->op == BinaryOp::mul && is_const_int(b->b, &k)) return *x * k;
  if (b->op == BinaryOp::mul && is_const_int(b->a, &k)) return *y * k;
  return std::nullopt;
}

}  // namespace hidet::graph
