// widen.cpp - loops whose last step may pass the end of their type, and loops whose step may not be positive.
// One rule: begin, end and step are evaluated once. A step that is not known to be at least 1 is asserted, at the loop's line. A loop
// over at most 32 bits whose end + step - 1 may not fit its type counts in i64; one over 64 bits counts its turns: v is begin + turn *
// step. All others stay as they are, and so do 64-bit loops that begin so far below their type's end that no machine gets there.
// Needs: nothing; after simplify it finds more constants.  Leaves: no loop that wraps or never moves.
#include "transforms/bounds.h"
#include "transforms/util.h"

#include <limits>

namespace hidet::ir {
namespace {

using Wide = __int128;
constexpr Wide kEndless = Wide{1} << 52;  ///< turns that no machine makes

class Widener {
 public:
  explicit Widener(const Function& f) : bounds_(f) {}

  Stmt operator()(Rewriter& self, const For& loop) {
    const bool positive = least_step(loop) >= 1, wraps = may_wrap(loop);
    const Stmt changed = self.children(loop);
    if (positive && !wraps) return changed;
    const For& n = *as<For>(changed);
    std::vector<Stmt> out;
    const Expr step = bind("step", n.step, n.loc, out);
    if (!positive)
      out.push_back(
          make_stmt<Assert>(n.loc, make_binary(BinaryOp::gt, step, make_int(0, step->type), n.loc),
                            "the step of the loop over '" + n.var->name + "' is less than 1"));
    if (!wraps) out.push_back(with(n, n.var, n.begin, n.end, step, n.body));
    else if (n.var->type.dtype().bits() < 64) out.push_back(in_64_bits(n, step));
    else count(n, step, out);
    return make_seq(std::move(out));
  }

 private:
  static Wide most(DType t) { return t == u64 ? ~uint64_t{0} : static_cast<Wide>(t.max_int()); }
  /// Of u64 constants alone something is known.
  Wide least_step(const For& loop) {
    int64_t n = 0;
    if (is_const_int(loop.step, &n)) return value(n, loop.step->type.dtype());
    return Bounds::known(loop.step) ? bounds_.of(loop.step).low : 0;
  }
  Wide highest(const Expr& e) {
    int64_t n = 0;
    if (is_const_int(e, &n)) return value(n, e->type.dtype());
    return Bounds::known(e) ? Wide{bounds_.of(e).high} : most(e->type.dtype());
  }
  static Wide value(int64_t n, DType t) { return t == u64 ? Wide{static_cast<uint64_t>(n)} : n; }
  bool may_wrap(const For& loop) {
    const Wide top = most(loop.var->type.dtype()), step = highest(loop.step);
    if (loop.how == LoopKind::parallel && loop.var->type.dtype().bits() < 64) return false;
    const bool fits = highest(loop.end) - 1 + step <= top;
    return !fits && (top - highest(loop.begin)) / step < kEndless;
  }

  static Expr bind(const char* name, const Expr& e, SourceLoc at, std::vector<Stmt>& out) {
    if (is_const_int(e)) return e;
    const VarRef v = make_var(name, e->type, false, at);
    out.push_back(make_stmt<DeclVar>(at, v, e));
    return v;
  }
  static Stmt with(const For& n, VarRef var, Expr begin, Expr end, Expr step, Stmt body) {
    return make_stmt<For>(n.loc, std::move(var), std::move(begin), std::move(end), std::move(step),
                          n.how, n.grain, std::move(body));
  }
  static Stmt in_64_bits(const For& n, const Expr& step) {
    const Type wide(i64);
    const VarRef v = make_var(n.var->name, wide, false, n.var->loc);
    const Stmt narrow = make_stmt<DeclVar>(n.loc, n.var, make_cast(v, n.var->type, n.loc));
    return with(n, v, make_cast(n.begin, wide), make_cast(n.end, wide), make_cast(step, wide),
                make_seq({narrow, n.body}));
  }
  /// The number of turns and what they are multiplied with wrap as unsigned numbers do, and so are exact.
  static void count(const For& n, const Expr& step, std::vector<Stmt>& out) {
    const Type whole(u64), &t = n.var->type;
    const Type turns = n.how == LoopKind::parallel ? Type(i64) : whole;
    const Expr one = make_int(1, whole), begin = bind("first", n.begin, n.loc, out);
    const Expr end = bind("end", n.end, n.loc, out);
    const auto op = [&](BinaryOp how, const Expr& a, const Expr& b) {
      return make_binary(how, a, b, n.loc);
    };
    const auto as_whole = [&](const Expr& e) { return make_cast(e, whole, n.loc); };
    const Expr before_last =
        op(BinaryOp::sub, op(BinaryOp::sub, as_whole(end), as_whole(begin)), one);
    const Expr all = op(BinaryOp::add, op(BinaryOp::div, before_last, as_whole(step)), one);
    const Expr number = make_select(op(BinaryOp::lt, begin, end), all, make_int(0, whole), n.loc);
    const VarRef turn = make_var("turn", turns, false, n.loc);
    const Expr value = op(BinaryOp::add, begin, op(BinaryOp::mul, make_cast(turn, t, n.loc), step));
    out.push_back(with(n, turn, make_int(0, turns),
                       bind("turns", make_cast(number, turns), n.loc, out), make_int(1, turns),
                       make_seq({make_stmt<DeclVar>(n.loc, n.var, value), n.body})));
  }

  Bounds bounds_;
};

}  // namespace

Pass widen_loops() {
  return function_pass("widen-loops", [](const Function& f, const Module&) {
    Function out = f;
    if (!f.body) return out;
    Widener widener(f);
    out.body = rewrite(
        f.body, [&](Rewriter& self, const For& loop) -> Stmt { return widener(self, loop); });
    return out;
  });
}

}  // namespace hidet::ir
