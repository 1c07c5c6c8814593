// clean.cpp - simplification, dead branches, half-precision arithmetic.
// simplify, fold-branches need: nothing; run between other passes.  widen-halves needs: nothing; leaves
// f16 and bf16 in loads, stores, casts, selects and moves alone.
#include "transforms/util.h"

#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

namespace hidet::ir {
namespace {

/// (x + c) + d and (x * c) * d for integers, where wrapping arithmetic makes it exact.
Expr regroup(const Binary& b) {
  if (!b.type.is_scalar() || !b.type.dtype().is_integer()) return nullptr;
  if (b.op != BinaryOp::add && b.op != BinaryOp::mul) return nullptr;
  int64_t c, d;
  const Binary* left = as<Binary>(b.a);
  if (!left || left->op != b.op || !(left->type == b.type) || !is_const_int(b.b, &d) ||
      !is_const_int(left->b, &c))
    return nullptr;
  return make_binary(b.op, left->a, make_binary(b.op, left->b, b.b, b.loc), b.loc);
}

Rewriter simplifier() {
  Rewriter r;
  r.on([](Rewriter& self, const Binary& b) -> Expr {
    Expr e = self.children(b);
    for (int round = 0; round < 4; round++) {
      const Binary* n = as<Binary>(e);
      if (!n) return e;
      // Constants to the right of commutative operators; && and || keep what they evaluate first.
      Expr x = n->a, y = n->b;
      const BinaryOpInfo& row = info(n->op);
      const bool swap =
          row.commutative && !row.logical && x->kind == Kind::IntImm && y->kind != Kind::IntImm;
      if (swap) std::swap(x, y);
      Expr next =
          x->type.is_pointer() || y->type.is_pointer() ? e : make_binary(n->op, x, y, n->loc);
      if (const Binary* whole = as<Binary>(next))
        if (Expr grouped = regroup(*whole)) next = grouped;
      const Binary* m = as<Binary>(next);
      if (m && m->op == n->op && same(m->a, n->a) && same(m->b, n->b)) return e;
      e = next;
    }
    return e;
  });
  r.on([](Rewriter& self, const Select& s) -> Expr {
    const Expr e = self.children(s);
    const Select& n = *as<Select>(e);
    return make_select(n.cond, n.a, n.b, n.loc);
  });
  r.on([](Rewriter& self, const Cast& c) -> Expr {
    const Expr e = self.children(c);
    const Cast& n = *as<Cast>(e);
    return n.how == CastKind::value ? make_cast(n.a, n.type, n.loc) : e;
  });
  r.on([](Rewriter& self, const Unary& u) -> Expr {
    const Expr e = self.children(u);
    const Unary& n = *as<Unary>(e);
    return make_unary(n.op, n.a, n.loc);
  });
  return r;
}

bool is_half(const Type& t) { return t.is_arithmetic() && (t.dtype() == f16 || t.dtype() == bf16); }
/// The f32 value `e` is one of `half`: rounding it changes nothing. Chains deeper than `depth` are not looked at.
bool is_exact(const Expr& e, DType half, int depth = 6) {
  if (depth == 0) return false;
  const auto inner = [&](const Expr& x) { return is_exact(x, half, depth - 1); };
  if (const Cast* c = as<Cast>(e)) return c->how == CastKind::value && c->a->type.dtype() == half;
  if (const FloatImm* f = as<FloatImm>(e)) {
    const Expr rounded = make_const(f->value, half);
    return as<FloatImm>(rounded)->value == f->value;
  }
  if (const Broadcast* b = as<Broadcast>(e)) return inner(b->a);
  if (const Unary* u = as<Unary>(e)) return u->op == UnaryOp::neg && inner(u->a);
  const Binary* b = as<Binary>(e);
  return b && (b->op == BinaryOp::min || b->op == BinaryOp::max) && inner(b->a) && inner(b->b);
}
/// The f32 value that `e`, f16 or bf16, was made of without a change; null where there is none.
Expr exact_source(const Expr& e) {
  const Cast* c = is_half(e->type) ? as<Cast>(e) : nullptr;
  const bool exact = c && c->how == CastKind::value && c->a->type.dtype() == f32 &&
                     is_exact(c->a, e->type.dtype());
  return exact ? c->a : Expr();
}
Expr to_f32(const Expr& e) {
  if (!is_half(e->type)) return e;
  const Expr source = exact_source(e);
  return source ? source : make_cast(e, e->type.with_dtype(f32), e->loc);
}

Stmt fold_if(Rewriter& self, const If& branch) {
  const Stmt changed = self.children(branch);
  const If& n = *as<If>(changed);
  int64_t known;
  if (!is_const_int(n.cond, &known)) return changed;
  if (known) return n.then ? n.then : make_seq({});
  return n.otherwise ? n.otherwise : make_seq({});
}

Stmt fold_for(Rewriter& self, const For& loop) {
  const Stmt changed = self.children(loop);
  const For& n = *as<For>(changed);
  int64_t begin, end, step;
  if (n.how != LoopKind::serial || !is_const_int(n.begin, &begin) || !is_const_int(n.end, &end) ||
      !is_const_int(n.step, &step) || step < 1)
    return changed;
  return turns_of(begin, end, step, n.var->type.dtype()) == 0 ? make_seq({}) : changed;
}

}  // namespace

Expr simplify(const Expr& e) {
  Rewriter r = simplifier();
  return r(e);
}

Pass simplify() {
  return stmt_pass("simplify", [](const Stmt& body) {
    Rewriter r = simplifier();
    return r(body);
  });
}

Pass fold_branches() {
  return stmt_pass("fold-branches",
                   [](const Stmt& body) { return rewrite(body, fold_if, fold_for); });
}

Pass widen_halves() {
  Pass pass = stmt_pass("widen-halves", [](const Stmt& body) {
    return rewrite(
        body,
        [](Rewriter& self, const Binary& b) -> Expr {
          const Expr e = self.children(b);
          const Binary& n = *as<Binary>(e);
          if (!is_half(n.a->type)) return e;
          const Expr wide = make_binary(n.op, to_f32(n.a), to_f32(n.b), n.loc);
          return make_cast(wide, n.type, n.loc);
        },
        [](Rewriter& self, const Unary& u) -> Expr {
          const Expr e = self.children(u);
          const Unary& n = *as<Unary>(e);
          return is_half(n.a->type) ? make_cast(make_unary(n.op, to_f32(n.a), n.loc), n.type, n.loc)
                                    : e;
        },
        [](Rewriter& self, const Cast& c) -> Expr {
          const Expr e = self.children(c);
          const Cast* n = as<Cast>(e);
          const bool widens = n && n->how == CastKind::value && n->type.dtype() == f32;
          const Expr source = widens ? exact_source(n->a) : Expr();
          return source ? source : e;
        },
        [](Rewriter& self, const Prim& p) -> Expr {
          const Expr e = self.children(p);
          const Prim& n = *as<Prim>(e);
          const Primitive* row = find_primitive(n.name);
          if (!row || !row->elementwise || n.args.empty() || !is_half(n.args[0]->type)) return e;
          std::vector<Expr> args;
          for (const Expr& a : n.args) args.push_back(to_f32(a));
          const Type type = is_half(n.type) ? n.type.with_dtype(f32) : n.type;
          return make_cast(make_prim(n.name, std::move(args), type, n.attrs, n.loc), n.type, n.loc);
        });
  });
  pass.gone = [](const Node& n) {
    const Binary* b = as<Binary>(&n);
    const Unary* u = as<Unary>(&n);
    return (b && is_half(b->a->type)) || (u && is_half(u->a->type));
  };
  return pass;
}

}  // namespace hidet::ir
