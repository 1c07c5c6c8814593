// narrow.cpp - where i32 suffices: a GPU computes in 32 bits, and 64-bit arithmetic costs it several times as much.
// One rule: an operation (+ - * / % floordiv floormod min max, or a comparison) of two i64 whose operands and result provably lie
// within i32 is done in i32 and widened; immutable variables of such values become i32 themselves. Floored division of what is not
// negative by what is not negative becomes truncating division, in any type. What may not fit stays i64, and so does what moves
// along with a loop (sums and products of its variable): compilers keep such addresses in registers and add to them, which they
// cannot where 32 bits might wrap (measured: products of matrices lose 20 %). A function whose loops divide by no more than powers
// of two, and of which only a part fits, stays as it is: the widening in between costs more than it brings (measured: products with
// a symbol for the rows lose 30 %, since the assembler then moves a load behind the arithmetic that hides it).
// Needs: lower-tensors (index arithmetic is there).  Leaves: values as they were.
#include "transforms/bounds.h"
#include "transforms/util.h"

#include <unordered_set>

namespace hidet::ir {
namespace {

constexpr Interval kI32{INT32_MIN, INT32_MAX};
const Type kWide(i64), kNarrow(i32);

class Narrower {
 public:
  explicit Narrower(const Function& f) : bounds_(f) {
    if (f.body)
      visit_all(f.body, [&](const Node& n) {
        if (const For* loop = as<For>(&n)) moving_.insert(loop->var.get());
        const DeclVar* d = as<DeclVar>(&n);  // after the loop around it
        if (d && !d->var->is_mutable && d->init && moves(d->init)) moving_.insert(d->var.get());
      });
    rewriter_.on([this](Rewriter& self, const Binary& b) -> Expr { return binary(self, b); });
    rewriter_.on([this](Rewriter& self, const Cast& c) -> Expr { return cast(self, c); });
    rewriter_.on([this](Rewriter&, const Var& v) -> Expr {
      const auto it = narrow_.find(&v);
      return it == narrow_.end() ? Expr(&v) : make_cast(it->second, kWide, v.loc);
    });
    rewriter_.on([this](Rewriter& self, const DeclVar& d) -> Stmt { return declared(self, d); });
  }
  Stmt operator()(const Stmt& body) { return pays(body) ? rewriter_(body) : body; }

 private:
  /// Nothing runs in turns, or loops divide, or all that stands still fits.
  bool pays(const Stmt& body) {
    bool loops = false, divides = false, all_fit = true;
    visit_all(body, [&](const Node& n) {
      if (const For* loop = as<For>(&n))
        loops = true, divides = divides || has_division(loop->body);
      const Binary* b = as<Binary>(&n);
      if (b && b->type == kWide && b->op <= BinaryOp::max && !moves(ref(*b)))
        all_fit = all_fit && fits(ref(*b));
    });
    return !loops || divides || all_fit;
  }
  /// A division by what is not a power of two.
  static bool has_division(const Stmt& body) {
    bool found = false;
    visit_all(body, [&](const Node& n) {
      const Binary* b = as<Binary>(&n);
      int64_t by = 0;
      found = found ||
              (b && b->type == kWide && b->op >= BinaryOp::div && b->op <= BinaryOp::floormod &&
               !(is_const_int(b->b, &by) && by > 0 && (by & (by - 1)) == 0));
    });
    return found;
  }
  /// A sum or product of a loop's variable.
  bool moves(const Expr& e) const {
    if (const Cast* c = as<Cast>(e)) return moves(c->a);
    if (const Binary* b = as<Binary>(e))
      return b->op <= BinaryOp::mul && (moves(b->a) || moves(b->b));
    return moving_.count(e.get()) > 0;
  }
  bool fits(const Expr& e) { return e->type == kWide && bounds_.of(e).within(kI32); }

  /// An i64 known to fit, as i32.
  static Expr narrow(const Expr& e) {
    const Cast* c = as<Cast>(e);
    const bool widened = c && c->how == CastKind::value && c->a->type.is_scalar() &&
                         (c->a->type == kNarrow ||
                          (c->a->type.dtype().is_integer() && c->a->type.dtype().bits() < 32));
    return make_cast(widened ? c->a : e, kNarrow, e->loc);
  }

  Expr binary(Rewriter& self, const Binary& b) {
    const Expr changed = self.children(b);
    const Binary& n = *as<Binary>(changed);
    BinaryOp op = b.op;
    const bool floors = op == BinaryOp::floordiv || op == BinaryOp::floormod;
    if (floors && Bounds::known(b.a) && Bounds::known(b.b) && bounds_.of(b.a).low >= 0 &&
        bounds_.of(b.b).low >= 0)
      op = op == BinaryOp::floordiv ? BinaryOp::div : BinaryOp::mod;
    const bool arithmetic = op <= BinaryOp::max && !moves(ref(b)) && fits(ref(b));
    const bool compares = info(op).comparison && !moves(b.a) && !moves(b.b);
    const bool narrows = (arithmetic || compares) && fits(b.a) && fits(b.b);
    if (!narrows) return op == b.op ? changed : make_binary(op, n.a, n.b, n.loc);
    const Expr e = make_binary(op, narrow(n.a), narrow(n.b), n.loc);
    return info(op).comparison ? e : make_cast(e, kWide, n.loc);
  }
  /// A widening and the narrowing of it are nothing.
  Expr cast(Rewriter& self, const Cast& c) {
    const Expr changed = self.children(c);
    const Cast& n = *as<Cast>(changed);
    const Cast* inner = as<Cast>(n.a);
    const bool back = n.how == CastKind::value && inner && inner->how == CastKind::value &&
                      n.type == kNarrow && n.a->type == kWide && inner->a->type == kNarrow;
    return back ? inner->a : changed;
  }

  Stmt declared(Rewriter& self, const DeclVar& d) {
    const bool candidate = !d.var->is_mutable && d.init && !moves(d.init) && fits(d.init);
    const Expr init = self(d.init);
    const Cast* c = as<Cast>(init);
    if (!candidate || !c || !(c->a->type == kNarrow))
      return same(init, d.init) ? Stmt(&d) : Stmt(make_stmt<DeclVar>(d.loc, d.var, init));
    const VarRef var = make_var(d.var->name, kNarrow, false, d.var->loc);
    narrow_.emplace(d.var.get(), var);
    return make_stmt<DeclVar>(d.loc, var, c->a);
  }
  Bounds bounds_;
  Rewriter rewriter_;
  std::unordered_set<const Node*> moving_;        ///< variables of loops, and what moves with them
  std::unordered_map<const Node*, Expr> narrow_;  ///< i64 variable -> its i32 form
};

}  // namespace

Pass narrow_indices() {
  return function_pass("narrow-indices", [](const Function& f, const Module&) {
    Function out = f;
    if (f.body) out.body = Narrower(f)(f.body);
    return out;
  });
}

}  // namespace hidet::ir
