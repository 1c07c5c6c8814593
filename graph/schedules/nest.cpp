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

Value declare(std::vector<Stmt>& body, const std::string& name, const Value& value) {
  const VarRef v = make_var(name, value.type());
  body.push_back(make_stmt<DeclVar>({}, v, value.expr()));
  return Value(Expr(v));
}

Stmt loop_from(const std::string& name, const Expr& begin, const Expr& end, int64_t step,
               const std::function<Stmt(const Value&)>& body) {
  const VarRef v = make_var(name, Type(i64));
  return make_stmt<For>({}, v, begin, end, index(step), LoopKind::serial, int64_t{1},
                        body(Value(Expr(v))));
}

Stmt loop(const std::string& name, const Expr& end, LoopKind how,
          const std::function<Stmt(const Value&)>& body, int64_t grain) {
  const VarRef v = make_var(name, Type(i64));
  return make_stmt<For>({}, v, index(0), end, index(1), how, grain, body(Value(Expr(v))));
}

Stmt vector_row(const Expr& extent, int64_t lanes, const std::function<Stmt(const Value&)>& body,
                const std::function<std::vector<Stmt>(const Value&)>& ahead) {
  int64_t n = -1;
  is_const_int(extent, &n);
  std::vector<Stmt> out;
  const Expr whole =
      make_binary(BinaryOp::mul, make_binary(BinaryOp::div, extent, index(lanes)), index(lanes));
  if (n < 0 || n >= lanes)
    out.push_back(loop_from("j", index(0), whole, lanes, [&](const Value& j) {
      std::vector<Stmt> one;
      if (ahead) one = ahead(j);
      one.push_back(loop("lane", index(lanes), LoopKind::vectorize,
                         [&](const Value& v) { return body(j + v); }));
      return make_seq(std::move(one));
    }));
  if (n < 0 || n % lanes != 0) out.push_back(loop_from("tail", whole, extent, 1, body));
  return make_seq(std::move(out));
}

std::vector<Stmt> prefetch_reads(const Expr& value, const Expr& size) {
  std::vector<Stmt> out;
  rewrite(value, [&](Rewriter& self, const Element& e) -> Expr {
    const Var* tensor = as<Var>(e.tensor);
    bool by_data = !tensor || !equal(size_of(shape_of(VarRef(tensor))), size);
    for (const Expr& i : e.indices)
      visit_all(i, [&](const Node& n) {
        by_data = by_data || n.kind == Kind::Element || n.kind == Kind::Load;
      });
    if (!by_data)
      out.push_back(make_stmt<Evaluate>(
          {}, make_prim("prefetch", {make_address(e.tensor, e.indices)}, Type())));
    return self.children(e);
  });
  return out;
}

Unflattened unflatten(const Expr& flat, const std::vector<Expr>& shape) {
  Unflattened out;
  out.indices.resize(shape.size());
  Expr rest = flat;
  for (size_t d = shape.size(); d-- > 0;) {
    const Expr at = d == 0 ? rest : make_binary(BinaryOp::mod, rest, shape[d]);
    const VarRef v = make_var("i" + std::to_string(d), flat->type);
    out.declarations.push_back(make_stmt<DeclVar>({}, v, at));
    out.indices[d] = Value(Expr(v));
    if (d == 0) break;
    const VarRef next = make_var("rest", flat->type);
    out.declarations.push_back(
        make_stmt<DeclVar>({}, next, make_binary(BinaryOp::div, rest, shape[d])));
    rest = next;
  }
  return out;
}

std::vector<Value> declare_indices(std::vector<Stmt>& body, const Value& flat,
                                   const std::vector<Expr>& shape) {
  Unflattened u = unflatten(flat.expr(), shape);
  body.insert(body.end(), u.declarations.begin(), u.declarations.end());
  return u.indices;
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

Expr arg_search(const ArgReduce& r, std::vector<Stmt>& body) {
  const DType t = r.value->type.dtype();
  const VarRef best = make_var("best", Type(t), true), at = make_var("best_at", Type(i64), true);
  const auto value = [&](const Expr& i) {
    return substitute(r.value, {{r.axis.get(), make_cast(i, r.axis->type)}});
  };
  body.push_back(make_stmt<DeclVar>({}, best, make_const(0, t)));
  body.push_back(make_stmt<DeclVar>({}, at, index(0)));
  body.push_back(loop("k", make_cast(r.extent, Type(i64)), LoopKind::serial, [&](const Value& k) {
    const VarRef v = make_var("v", Type(t));
    const BinaryOp better =
        r.is_max ? (r.last ? BinaryOp::ge : BinaryOp::gt) : (r.last ? BinaryOp::le : BinaryOp::lt);
    Expr take = make_binary(BinaryOp::logical_or, make_binary(BinaryOp::eq, k.expr(), index(0)),
                            make_binary(better, v, best));
    if (t.is_float()) {
      // The first NaN wins and stays (the last one with `last`).
      const Expr nan = make_binary(BinaryOp::ne, v, v), had = make_binary(BinaryOp::ne, best, best);
      const Expr fresh =
          r.last ? nan
                 : make_binary(BinaryOp::logical_and, nan, make_unary(UnaryOp::logical_not, had));
      take = make_binary(
          BinaryOp::logical_or, fresh,
          make_binary(BinaryOp::logical_and, make_unary(UnaryOp::logical_not, had), take));
      take = make_binary(BinaryOp::logical_or, make_binary(BinaryOp::eq, k.expr(), index(0)), take);
    }
    return make_seq({make_stmt<DeclVar>({}, v, value(k.expr())),
                     make_stmt<If>({}, take,
                                   make_seq({make_stmt<Assign>({}, best, v),
                                             make_stmt<Assign>({}, at, k.expr())}),
                                   Stmt())});
  }));
  return make_cast(at, r.type);
}

}  // namespace hidet::graph
