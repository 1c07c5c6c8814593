// quotients.cpp - the quotient and remainder of a serial loop's variable by a divisor that is no constant and stays the same in the
// loop: a 64-bit division takes 20 to 40 cycles, counting along takes one or two. Constant divisors are the C compiler's.
// One rule: where the body of `for i in range(b, e, 1)` with b >= 0 and without continue has i / m or i % m, two variables hold
// them; after each turn the remainder grows by 1, or starts again at 0 while the quotient takes a step with the sign of m. Exact for
// every m: for 0 both stay 0, the least integer is never reached.
// Needs: nothing.  Leaves: values as they were.
#include "transforms/bounds.h"
#include "transforms/util.h"

#include <unordered_set>

namespace hidet::ir {
namespace {

/// A variable, or a symbol, widened or not, of the loop's type, that the loop does not declare or assign.
bool invariant(const Expr& e, const std::unordered_set<const Node*>& changed) {
  if (const Cast* c = as<Cast>(e)) return c->how == CastKind::value && invariant(c->a, changed);
  const Var* v = as<Var>(e);
  return e->kind == Kind::DimSymbol || (v && v->type.is_scalar() && !changed.count(v));
}

/// The variable itself or widened: what is not negative stays what it is.
bool is_variable(const Expr& e, const VarRef& v) {
  const Cast* c = as<Cast>(e);
  const bool widens = c && c->how == CastKind::value && same(c->a, v) && c->type.is_scalar() &&
                      c->type.dtype().is_integer() &&
                      c->type.dtype().bits() > v->type.dtype().bits();
  return widens || same(e, v);
}

bool has_continue(const Stmt& s) {
  bool found = false;
  const std::function<void(const Stmt&)> walk = [&](const Stmt& at) {
    found = found || at->kind == Kind::Continue;
    if (at->kind == Kind::For || at->kind == Kind::While || at->kind == Kind::MappingFor) return;
    for_each_child(
        *at, [](const Expr&) {},
        [&](const Stmt& child) {
          if (child) walk(child);
        });
  };
  walk(s);
  return found;
}

/// One divisor in one loop.
struct Counted {
  Expr divisor;
  VarRef quotient, remainder;
};

class Counter {
 public:
  explicit Counter(const For& loop) : loop_(loop) {}

  /// The loop with its divisions counted along; the loop itself where it has none.
  Stmt run() {
    find();
    if (found_.empty()) return Stmt(&loop_);
    Rewriter r;
    r.on([&](Rewriter& self, const Binary& b) -> Expr {
      const Counted* c = of(b);
      if (!c) return self.children(b);
      return b.op == BinaryOp::div ? c->quotient : c->remainder;
    });
    std::vector<Stmt> before, body{r(loop_.body)};
    for (const Counted& c : found_) count(c, before, body);
    before.push_back(make_stmt<For>(loop_.loc, loop_.var, loop_.begin, loop_.end, loop_.step,
                                    loop_.how, loop_.grain, make_seq(std::move(body))));
    return make_seq(std::move(before));
  }

 private:
  void find() {
    std::unordered_set<const Node*> changed{loop_.var.get()};
    visit_all(loop_.body, [&](const Node& n) {
      if (const DeclVar* d = as<DeclVar>(&n)) changed.insert(d->var.get());
      if (const Assign* a = as<Assign>(&n)) changed.insert(a->var.get());
      if (const For* f = as<For>(&n)) changed.insert(f->var.get());
      if (const Asm* a = as<Asm>(&n))
        for (const Expr& e : a->outputs) changed.insert(e.get());
      if (const MappingFor* m = as<MappingFor>(&n))
        for (const VarRef& v : m->vars) changed.insert(v.get());
    });
    visit_all(loop_.body, [&](const Node& n) {
      const Binary* b = as<Binary>(&n);
      if (!b || of(*b) || !is_variable(b->a, loop_.var) || !invariant(b->b, changed)) return;
      if (b->op != BinaryOp::div && b->op != BinaryOp::mod) return;
      found_.push_back({b->b, make_var("quotient", b->type, true, b->loc),
                        make_var("remainder", b->type, true, b->loc)});
    });
  }
  const Counted* of(const Binary& b) const {
    if (!is_variable(b.a, loop_.var) || (b.op != BinaryOp::div && b.op != BinaryOp::mod))
      return nullptr;
    for (const Counted& c : found_)
      if (equal(c.divisor, b.b)) return &c;
    return nullptr;
  }
  void count(const Counted& c, std::vector<Stmt>& before, std::vector<Stmt>& body) const {
    const SourceLoc at = loop_.loc;
    const Type t = c.divisor->type;
    const Expr zero = make_int(0, t), one = make_int(1, t), &m = c.divisor;
    const Expr begin = make_cast(loop_.begin, t, at);
    const auto binary = [&](BinaryOp op, const Expr& x, const Expr& y) {
      return make_binary(op, x, y, at);
    };
    // How far the remainder goes, and where the quotient goes then. Unsigned divisors are not below 0.
    const bool is_signed = t.dtype().is_signed();
    const Expr negative = is_signed ? binary(BinaryOp::lt, m, zero) : make_bool(false);
    const Expr size = is_signed ? make_select(negative, make_unary(UnaryOp::neg, m), m, at) : m;
    const VarRef turn = make_var("turn", t, false, at), step = make_var("step", t, false, at);
    before.push_back(
        make_stmt<DeclVar>(at, turn, make_select(binary(BinaryOp::eq, m, zero), one, size, at)));
    const Expr up = make_cast(binary(BinaryOp::gt, m, zero), t, at);
    before.push_back(make_stmt<DeclVar>(
        at, step, is_signed ? make_select(negative, make_int(-1, t), up, at) : up));
    before.push_back(make_stmt<DeclVar>(at, c.quotient, binary(BinaryOp::div, begin, m)));
    before.push_back(make_stmt<DeclVar>(at, c.remainder, binary(BinaryOp::mod, begin, m)));
    body.push_back(make_stmt<Assign>(at, c.remainder, binary(BinaryOp::add, c.remainder, one)));
    body.push_back(make_stmt<If>(
        at, binary(BinaryOp::eq, c.remainder, turn),
        make_seq({make_stmt<Assign>(at, c.remainder, zero),
                  make_stmt<Assign>(at, c.quotient, binary(BinaryOp::add, c.quotient, step))}),
        Stmt()));
  }

  const For& loop_;
  std::vector<Counted> found_;
};

/// True where a loop's variable is divided by what is no constant: most functions have none, and need no more.
bool divides(const Stmt& body) {
  bool found = false;
  std::unordered_set<const Node*> loops;
  visit_all(body, [&](const Node& n) {
    if (const For* loop = as<For>(&n)) loops.insert(loop->var.get());
    const Binary* b = as<Binary>(&n);
    if (!b || (b->op != BinaryOp::div && b->op != BinaryOp::mod) || is_const_int(b->b)) return;
    const Cast* c = as<Cast>(b->a);
    found = found || loops.count(c ? c->a.get() : b->a.get()) > 0;
  });
  return found;
}

}  // namespace

Pass carry_quotients() {
  return function_pass("carry-quotients", [](const Function& f, const Module&) {
    Function out = f;
    if (!f.body || !divides(f.body)) return out;
    Bounds bounds(f);
    out.body = rewrite(f.body, [&](Rewriter& self, const For& loop) -> Stmt {
      const bool counts = loop.how == LoopKind::serial && is_const_int(loop.step) &&
                          as<IntImm>(loop.step)->value == 1 && Bounds::known(loop.end) &&
                          bounds.of(loop.begin).low >= 0 && !has_continue(loop.body);
      const Stmt changed = self.children(loop);
      return counts ? Counter(*as<For>(changed)).run() : changed;
    });
    return out;
  });
}

}  // namespace hidet::ir
