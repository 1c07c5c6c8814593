// vectorize.cpp - each loop marked `vectorize` becomes vector code; where a statement cannot be vector
// code, or a turn may meet what another one stores to the same memory (lanes.h), the loop becomes copies of its body, which mean the
// same. Memory behind different arguments is taken to be different.
// Needs: lower-tensors (accesses are Load and Store).  Leaves: no loop marked vectorize.
#include "transforms/lanes.h"
#include "transforms/util.h"

#include <hidet/ir/fold.h>
#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

#include <numeric>
#include <optional>
#include <unordered_set>

namespace hidet::ir {
namespace {

/// Thrown where the loop must become copies instead.
struct NotVectorizable {};

class Vectorizer {
 public:
  Vectorizer(const For& loop, int64_t begin, int lanes, const Memory& memory)
      : loop_(loop), begin_(begin), lanes_(lanes), memory_(memory) {}

  Stmt run() {
    find_dependent(loop_.body);
    const auto constant = [this](const Expr& e) -> std::optional<int64_t> {
      int64_t n = 0;
      const Expr by = stride(e);
      return by && is_const_int(by, &n) ? std::optional(n) : std::nullopt;
    };
    if (turns_meet(loop_, lanes_, memory_, constant)) throw NotVectorizable();
    return stmt(loop_.body);
  }

 private:
  /// Differs between lanes? Answers are kept: each expression is asked about at every level above it.
  bool depends(const Expr& e) const {
    if (e->kind == Kind::Var) return e.get() == loop_.var.get() || varying_.count(e.get());
    if (const bool* known = depends_.find(e.get())) return *known;
    bool found = false;
    for_each_child(
        *e, [&](const Expr& child) { found = found || depends(child); }, [](const Stmt&) {});
    depends_.insert(e.get(), found);
    return found;
  }
  /// Variables of the body whose value differs between lanes, to a fixed point.
  void find_dependent(const Stmt& body) {
    std::unordered_set<const Node*> local;
    visit_all(body, [&](const Node& n) {
      if (const DeclVar* d = as<DeclVar>(&n)) local.insert(d->var.get());
    });
    for (bool grew = true; grew;) {
      grew = false;
      visit_all(body, [&](const Node& n) {
        const DeclVar* d = as<DeclVar>(&n);
        const Assign* a = as<Assign>(&n);
        if (!d && !a) return;
        const Node* var = d ? static_cast<const Node*>(d->var.get()) : a->var.get();
        const Expr& value = d ? d->init : a->value;
        if (a && !local.count(var)) throw NotVectorizable();  // carried from lane to lane
        if (value && depends(value)) grew |= varying_.insert(var).second;
      });
      if (grew) depends_.clear();
    }
    for (const Node* v : varying_) {
      const Var* var = static_cast<const Var*>(v);
      if (!var->type.is_scalar()) throw NotVectorizable();
      wide_[v] = make_var(var->name, var->type.with_lanes(lanes_), var->is_mutable, var->loc);
    }
  }

  Expr lane_index(int64_t lane) const { return make_int(begin_ + lane, loop_.var->type); }

  /// `e` as one lane sees it.
  Expr at_lane(const Expr& e, int lane) const {
    if (at_lane_.empty())
      for (int i = 0; i < lanes_; i++)
        at_lane_.emplace_back().on(
            [this, i](Rewriter&, const Var& v) -> Expr { return var_at_lane(v, i); });
    return at_lane_[static_cast<size_t>(lane)](e);
  }
  Expr var_at_lane(const Var& v, int lane) const {
    if (&v == loop_.var.get()) return lane_index(lane);
    const auto wide = wide_.find(&v);
    return wide == wide_.end() ? Expr(&v) : make_lane(wide->second, make_int(lane, Type(i32)));
  }
  Expr lanewise(const Expr& e) const {
    if (!e->type.is_scalar()) throw NotVectorizable();
    std::vector<Expr> lanes;
    for (int i = 0; i < lanes_; i++) lanes.push_back(at_lane(e, i));
    return make_vector(std::move(lanes), e->loc);
  }

  /// How much `e` grows from each lane to the next where that is the same between all lanes; null: unknown.
  Expr stride(const Expr& e) const {
    if (!depends(e)) return make_int(0, e->type);
    if (same(e, loop_.var)) return make_int(1, e->type);
    if (const Cast* c = as<Cast>(e)) {
      // A widening of an index; the loop's few values do not wrap.
      const Expr inner = widens(*c) ? stride(c->a) : Expr();
      return inner ? make_cast(inner, c->type) : Expr();
    }
    const Binary* b = as<Binary>(e);
    if (!b) return {};
    if (b->op == BinaryOp::div || b->op == BinaryOp::mod) return stride_of_quotient(*b);
    if (b->op != BinaryOp::add && b->op != BinaryOp::sub && b->op != BinaryOp::mul) return {};
    const Expr x = stride(b->a), y = stride(b->b);
    if (!x || !y) return {};
    if (b->op != BinaryOp::mul) return make_binary(b->op, x, y);
    if (is_zero(x) && is_zero(y)) return x;
    if (!depends(b->b)) return make_binary(BinaryOp::mul, x, b->b);
    return depends(b->a) ? Expr() : make_binary(BinaryOp::mul, b->a, y);
  }
  static bool is_zero(const Expr& e) {
    int64_t n = 0;
    return is_const_int(e, &n) && n == 0;
  }
  static bool widens(const Cast& c) {
    return c.how == CastKind::value && c.type.is_scalar() && c.type.dtype().is_integer() &&
           c.a->type.dtype().is_integer() && c.type.dtype().bits() >= c.a->type.dtype().bits();
  }
  /// x / c and x % c where the lanes of x are consecutive, start at a multiple of their number and c is one, too:
  /// one quotient for all, consecutive remainders. Both truncate, so x must not be negative.
  Expr stride_of_quotient(const Binary& b) const {
    int64_t c = 0, step = 0;
    const Expr x = stride(b.a);
    if (!x || !is_const_int(x, &step) || !is_const_int(b.b, &c) || c <= 0) return {};
    const bool aligned = step == 1 && begin_ == 0 && c % lanes_ == 0 && divisor(b.a) % lanes_ == 0;
    if (step != 0 && !(aligned && most(b.a))) return {};
    return make_int(b.op == BinaryOp::mod ? step : 0, b.type);
  }
  /// A number that divides `e` at the first lane; 0: every power of two up to kCap does.
  int64_t divisor(const Expr& e) const {
    constexpr int64_t kCap = 1 << 12;
    int64_t n = 0;
    if (same(e, loop_.var)) return 0;
    if (is_const_int(e, &n)) return n % kCap;
    if (const Cast* c = as<Cast>(e)) return widens(*c) ? divisor(c->a) : 1;
    const Binary* b = as<Binary>(e);
    if (!b) return 1;
    if (b->op == BinaryOp::add || b->op == BinaryOp::sub)
      return std::gcd(divisor(b->a), divisor(b->b));
    if (b->op == BinaryOp::mod) return std::gcd(divisor(b->a), divisor(b->b));
    if (b->op == BinaryOp::mul) return std::gcd(divisor(b->a) * divisor(b->b), kCap);
    return 1;
  }
  /// The largest value of `e` where it is known to be between 0 and that.
  std::optional<int64_t> most(const Expr& e) const {
    int64_t n = 0;
    if (is_const_int(e, &n)) return n >= 0 ? std::optional(n) : std::nullopt;
    if (same(e, loop_.var)) return begin_ >= 0 ? std::optional(begin_ + lanes_ - 1) : std::nullopt;
    if (!e->type.is_scalar() || !e->type.dtype().is_integer()) return {};
    const DType t = e->type.dtype();
    if (const Cast* c = as<Cast>(e)) return widens(*c) ? most(c->a) : std::nullopt;
    const Binary* b = as<Binary>(e);
    if (!b)
      return !t.is_signed() && t.bits() <= 32 ? std::optional((int64_t{1} << t.bits()) - 1)
                                              : std::nullopt;
    const auto x = most(b->a), y = most(b->b);
    if (!x || !y) return {};
    int64_t result = 0;
    bool wraps = false;
    switch (b->op) {
      case BinaryOp::add: wraps = __builtin_add_overflow(*x, *y, &result); break;
      case BinaryOp::mul: wraps = __builtin_mul_overflow(*x, *y, &result); break;
      case BinaryOp::div: result = *x; break;
      case BinaryOp::mod: result = std::min(*x, *y); break;
      default: return {};
    }
    return !wraps && fits(result, t) ? std::optional(result) : std::nullopt;
  }

  static bool reads_memory(const Expr& e) {
    bool found = false;
    visit_all(e, [&](const Node& n) {
      const Prim* p = as<Prim>(&n);
      const Binary* b = as<Binary>(&n);
      found = found || n.kind == Kind::Load || n.kind == Kind::Call ||
              (p && !p->name.empty() && !find_primitive(p->name)->pure) ||
              (b && b->a->type.is_pointer());
    });
    return found;
  }

  Expr load(const Load& l) {
    if (depends(l.base) || !l.type.is_scalar()) throw NotVectorizable();
    int64_t step = -1;
    if (const Expr by = stride(l.index); by && is_const_int(by, &step)) {
      if (step == 1) return make_load(l.base, at_lane(l.index, 0), lanes_, l.loc);
      if (step == 0) return make_load(l.base, at_lane(l.index, 0), 1, l.loc);
    }
    return lanewise(ref(l));
  }

  /// Each lane of the loop takes the same lane of a vector of as many.
  bool is_whole(const Lane& l) const {
    int64_t step = 0, first = -1;
    const Expr by = stride(l.index);
    return !depends(l.vector) && l.vector->type.lanes() == lanes_ && by &&
           is_const_int(by, &step) && step == 1 && is_const_int(at_lane(l.index, 0), &first) &&
           first == 0;
  }

  Expr wide(const Expr& e) { return make_cast(widen(e), e->type.with_lanes(lanes_)); }

  /// `e` with a value for each lane; stays scalar where all lanes agree.
  Expr widen(const Expr& e) {
    if (!depends(e)) return e;
    switch (e->kind) {
      case Kind::Var: {
        if (auto it = wide_.find(e.get()); it != wide_.end()) return it->second;
        return lanewise(e);  // the loop variable
      }
      case Kind::Unary: return make_unary(as<Unary>(e)->op, widen(as<Unary>(e)->a), e->loc);
      case Kind::Binary: {
        const Binary& b = *as<Binary>(e);
        if (b.a->type.is_pointer()) throw NotVectorizable();
        if (b.op == BinaryOp::logical_and || b.op == BinaryOp::logical_or)
          if (reads_memory(b.b)) return lanewise(e);
        return make_binary(b.op, widen(b.a), widen(b.b), b.loc);
      }
      case Kind::Cast: {
        const Cast& c = *as<Cast>(e);
        if (c.how == CastKind::value) return make_cast(wide(c.a), c.type.with_lanes(lanes_), c.loc);
        if (c.how == CastKind::bits)
          return make_bitcast(wide(c.a), c.type.with_lanes(lanes_), c.loc);
        throw NotVectorizable();
      }
      case Kind::Select: {
        const Select& s = *as<Select>(e);
        if (!depends(s.cond)) return make_select(s.cond, wide(s.a), wide(s.b), s.loc);
        // Only the side taken is evaluated: sides that read memory go lane by lane.
        if (reads_memory(s.a) || reads_memory(s.b)) return lanewise(e);
        return make_select(wide(s.cond), wide(s.a), wide(s.b), s.loc);
      }
      case Kind::Prim: {
        const Prim& p = *as<Prim>(e);
        const Primitive* row = find_primitive(p.name);
        if (!row || !row->elementwise) return lanewise(e);
        std::vector<Expr> args;
        for (const Expr& a : p.args) args.push_back(wide(a));
        return make_prim(p.name, std::move(args), p.type.with_lanes(lanes_), p.attrs, p.loc);
      }
      case Kind::Load: return load(*as<Load>(e));
      case Kind::Lane: return is_whole(*as<Lane>(e)) ? as<Lane>(e)->vector : lanewise(e);
      default: return lanewise(e);
    }
  }

  Stmt store(const Store& s) {
    if (depends(s.base) || !s.value->type.is_scalar()) throw NotVectorizable();
    const Expr by = stride(s.index);
    int64_t step = 0;
    if (by && is_const_int(by, &step) && step == 1) {
      const Expr value = make_cast(widen(s.value), s.value->type.with_lanes(lanes_));
      return make_stmt<Store>(s.loc, s.base, at_lane(s.index, 0), value);
    }
    const VarRef value = make_var("lanes", s.value->type.with_lanes(lanes_));
    std::vector<Stmt> out{make_stmt<DeclVar>(s.loc, value, wide(s.value))};
    VarRef first;
    if (by) {
      first = make_var("first", s.index->type);
      out.push_back(make_stmt<DeclVar>(s.loc, first, at_lane(s.index, 0)));
    }
    for (int i = 0; i < lanes_; i++) {
      const Expr at = by ? make_binary(BinaryOp::add, first,
                                       make_binary(BinaryOp::mul, by, make_int(i, by->type)))
                         : at_lane(s.index, i);
      out.push_back(make_stmt<Store>(s.loc, s.base, at, make_lane(value, make_int(i, Type(i32)))));
    }
    return make_seq(std::move(out));
  }

  Stmt stmt(const Stmt& s) {
    switch (s->kind) {
      case Kind::Seq: {
        std::vector<Stmt> out;
        for (const Stmt& child : as<Seq>(s)->body) out.push_back(stmt(child));
        return make_seq(std::move(out));
      }
      case Kind::DeclVar: {
        const DeclVar& d = *as<DeclVar>(s);
        auto it = wide_.find(d.var.get());
        if (it == wide_.end()) return s;
        const VarRef w = ref(*as<Var>(it->second));
        return make_stmt<DeclVar>(d.loc, w, d.init ? wide(d.init) : Expr());
      }
      case Kind::Assign: {
        const Assign& a = *as<Assign>(s);
        auto it = wide_.find(a.var.get());
        if (it == wide_.end()) return s;
        return make_stmt<Assign>(a.loc, it->second, wide(a.value));
      }
      case Kind::Store: return store(*as<Store>(s));
      case Kind::If: {
        const If& i = *as<If>(s);
        if (depends(i.cond)) throw NotVectorizable();
        return make_stmt<If>(i.loc, i.cond, stmt(i.then), i.otherwise ? stmt(i.otherwise) : Stmt());
      }
      case Kind::For: {
        const For& f = *as<For>(s);
        if (depends(f.begin) || depends(f.end) || depends(f.step) || f.how == LoopKind::parallel)
          throw NotVectorizable();
        return make_stmt<For>(f.loc, f.var, f.begin, f.end, f.step, f.how, f.grain, stmt(f.body));
      }
      case Kind::Comment: return s;
      default: throw NotVectorizable();
    }
  }

  const For& loop_;
  int64_t begin_;
  int lanes_;
  const Memory& memory_;
  std::unordered_set<const Node*> varying_;
  mutable NodeMap<bool> depends_;
  Substitution wide_;
  mutable std::vector<Rewriter> at_lane_;  ///< one for each lane; what it has met is kept
};

Stmt copies(const For& n, int64_t begin, int64_t count) {
  std::vector<Stmt> out;
  for (int64_t i = 0; i < count; i++)
    out.push_back(substitute(refresh(n.body), {{n.var.get(), make_int(begin + i, n.var->type)}}));
  return make_seq(std::move(out));
}

Stmt vectorize(Rewriter& self, const For& loop, const Memory& memory) {
  const Stmt changed = self.children(loop);
  const For& n = *as<For>(changed);
  if (n.how != LoopKind::vectorize) return changed;
  int64_t begin = 0, end = 0, step = 0;
  HIDET_REQUIRE(is_const_int(n.begin, &begin) && is_const_int(n.end, &end) &&
                    is_const_int(n.step, &step) && step == 1,
                ErrorCode::usage, n.loc.text(), "cannot vectorize the loop over '", n.var->name,
                "': its bounds are not constants with step 1");
  const uint64_t lanes = turns_of(begin, end, step, n.var->type.dtype());
  HIDET_REQUIRE(lanes <= 64, ErrorCode::usage, n.loc.text(), "cannot vectorize the loop over '",
                n.var->name, "': ", lanes, " lanes are more than 64");
  const bool power = lanes > 1 && (lanes & (lanes - 1)) == 0;
  if (!power) return copies(n, begin, static_cast<int64_t>(lanes));
  try {
    return Vectorizer(n, begin, static_cast<int>(lanes), memory).run();
  } catch (const NotVectorizable&) {
    return copies(n, begin, static_cast<int64_t>(lanes));
  }
}

}  // namespace

Pass vectorize_loops() {
  Pass pass = function_pass("vectorize-loops", [](const Function& f, const Module&) {
    Function out = f;
    const Memory memory = memory_of(f);
    if (f.body)
      out.body = rewrite(f.body, [&](Rewriter& self, const For& loop) -> Stmt {
        return vectorize(self, loop, memory);
      });
    return out;
  });
  pass.gone = [](const Node& n) { return is_loop(n, LoopKind::vectorize); };
  return pass;
}

}  // namespace hidet::ir
