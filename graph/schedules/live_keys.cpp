// live_keys.cpp - the keys of attention that a mask leaves to a tile of rows.
#include "schedules/live_keys.h"

#include <hidet/ir/primitives.h>

#include <cmath>

#include "schedules/tile.h"

namespace hidet::graph {
using namespace ir;

namespace {
/// exp of less is 0.
constexpr double kNothing = -110;

Value constant(double v) { return Value(make_const(v, f32)); }
/// 0; NaN unless x is finite.
Value unless_finite(const Value& x) { return x - x; }
Value root(const Value& x) { return Value(call_math("sqrt", {x.expr()})); }

VarRef variable(std::vector<Stmt>& body, const char* name, const Value& begin, const Type& type) {
  const VarRef v = make_var(name, type, true);
  body.push_back(make_stmt<DeclVar>({}, v, begin.expr()));
  return v;
}
Stmt assign(const VarRef& v, const Value& value) { return make_stmt<Assign>({}, v, value.expr()); }
}  // namespace

Value LiveKeys::parts(std::vector<Stmt>& body, const Value& n, const Mask& mask) const {
  const auto less_of = [](const Value& a, const Value& b) { return select(b < a, b, a); };
  const VarRef most = row_.accumulators(body, "most", -HUGE_VAL),
               least_of = row_.accumulators(body, "least", HUGE_VAL);
  const Value whole = declare(body, "whole", n / number(row_.block()) * number(row_.block()));
  const VarRef top = variable(body, "top", constant(-HUGE_VAL), Type(f32)),
               low = variable(body, "low", constant(HUGE_VAL), Type(f32));
  body.push_back(loop("i", mask.rows.expr(), LoopKind::serial, [&](const Value& i) {
    std::vector<Stmt> one;
    one.push_back(row_.blocks(number(0), whole, [&](const Value& lane, const Value& j) {
      std::vector<Stmt> in;
      const Value x = declare(in, "x", mask.at(i, j));
      in.push_back(RowLanes::combine(most, lane, x, RowLanes::larger_of));
      in.push_back(RowLanes::combine(least_of, lane, x, less_of));
      return make_seq(std::move(in));
    }));
    one.push_back(loop_from("tail", whole.expr(), n.expr(), 1, [&](const Value& j) {
      std::vector<Stmt> in;
      const Value x = declare(in, "x", mask.at(i, j));
      in.push_back(assign(top, RowLanes::larger_of(Value(Expr(top)), x)));
      in.push_back(assign(low, less_of(Value(Expr(low)), x)));
      return make_seq(std::move(in));
    }));
    return make_seq(std::move(one));
  }));
  const Value largest = declare(
      body, "largest",
      RowLanes::larger_of(Value(Expr(top)), row_.combined(body, most, RowLanes::larger_of)));
  const Value smallest =
      declare(body, "smallest", less_of(Value(Expr(low)), row_.combined(body, least_of, less_of)));
  return declare(body, "parts", smallest < largest + constant(kNothing));
}

Value LiveKeys::key_size(std::vector<Stmt>& body, const Value& k, const Value& keys, const Value& v,
                         const Value& size) const {
  const VarRef most = row_.accumulators(body, "most", 0),
               check = row_.accumulators(body, "check", 0);
  body.push_back(loop_from("c", index(0), keys.expr(), row_.block(), [&](const Value& c) {
    std::vector<Stmt> one;
    const VarRef squares = row_.accumulators(one, "squares", 0);
    const Value panel = declare(one, "panel", k + c * number(d_));
    // d keys of a block: the block's keys lie side by side.
    one.push_back(
        row_.blocks(number(0), number(d_ * row_.block()), [&](const Value& lane, const Value& j) {
          const Value x = RowLanes::get(panel, j);
          return RowLanes::combine(squares, lane, x * x, RowLanes::sum_of);
        }));
    one.push_back(loop("lane", index(row_.block()), LoopKind::vectorize, [&](const Value& lane) {
      const Value x(make_element(squares, {lane.expr()}));
      return make_seq({RowLanes::combine(most, lane, x, RowLanes::larger_of),
                       RowLanes::combine(check, lane, unless_finite(x), RowLanes::sum_of)});
    }));
    return make_seq(std::move(one));
  }));
  body.push_back(row_.blocks(number(0), size, [&](const Value& lane, const Value& j) {
    return RowLanes::combine(check, lane, unless_finite(RowLanes::get(v, j)), RowLanes::sum_of);
  }));
  const Value largest = row_.combined(body, most, RowLanes::larger_of);
  return declare(body, "key_size", root(largest + row_.combined(body, check, RowLanes::sum_of)));
}

/// The root of all squares in the rows, at least the length of each; NaN where one is not finite.
Value LiveKeys::row_size(std::vector<Stmt>& body, const Rows& rows) const {
  const int64_t whole = d_ / row_.block() * row_.block();
  const VarRef squares = row_.accumulators(body, "squares", 0);
  const VarRef sum = variable(body, "sum", constant(0), Type(f32));
  body.push_back(loop("i", rows.height.expr(), LoopKind::serial, [&](const Value& i) {
    std::vector<Stmt> one;
    const Value row = declare(one, "row", rows.values + i * number(rows.distance));
    one.push_back(row_.blocks(number(0), number(whole), [&](const Value& lane, const Value& j) {
      const Value x = RowLanes::get(row, j);
      return RowLanes::combine(squares, lane, x * x, RowLanes::sum_of);
    }));
    one.push_back(loop_from("tail", index(whole), index(d_), 1, [&](const Value& j) {
      const Value x = RowLanes::get(row, j);
      return assign(sum, Value(Expr(sum)) + x * x);
    }));
    return make_seq(std::move(one));
  }));
  const Value all =
      declare(body, "all", Value(Expr(sum)) + row_.combined(body, squares, RowLanes::sum_of));
  return root(all + unless_finite(all));
}

/// tops[j]: the largest mask of key j in the rows, +inf for NaN; the least of the rows' largest. Behind `tops` there is room for a row.
Value LiveKeys::lowest_top(std::vector<Stmt>& body, const Value& tops, const Value& filled,
                           const Value& n, const Mask& mask) const {
  const VarRef low = variable(body, "low", constant(HUGE_VAL), Type(f32));
  const Value values = declare(body, "mask", tops + filled);
  body.push_back(RowLanes::fill(tops, number(0), filled));
  body.push_back(loop("i", mask.rows.expr(), LoopKind::serial, [&](const Value& i) {
    std::vector<Stmt> one;
    RowLanes::each(one, n, lanes_, [&](const Value& j) {
      const Value x = mask.at(i, j);
      return RowLanes::put(values, j, select(x == x, x, constant(HUGE_VAL)).expr());
    });
    one.push_back(RowLanes::fill(values, n, filled));
    const VarRef top = row_.accumulators(one, "top", -HUGE_VAL);
    one.push_back(row_.blocks(number(0), filled, [&](const Value& lane, const Value& j) {
      std::vector<Stmt> in;
      const Value x = declare(in, "x", RowLanes::get(values, j)),
                  before = declare(in, "before", RowLanes::get(tops, j));
      in.push_back(RowLanes::put(tops, j, RowLanes::larger_of(before, x).expr()));
      in.push_back(RowLanes::combine(top, lane, x, RowLanes::larger_of));
      return make_seq(std::move(in));
    }));
    const Value here = row_.combined(one, top, RowLanes::larger_of), lowest{Expr(low)};
    one.push_back(assign(low, select(here < lowest, here, lowest)));
    return make_seq(std::move(one));
  }));
  return Value(Expr(low));
}

Stmt LiveKeys::range(const VarRef& begin, const VarRef& end, const Rows& rows,
                     const Value& key_size, const Value& n, const Mask& mask) const {
  std::vector<Stmt> body;
  const Value block = number(row_.block());
  const Value filled = declare(body, "filled", (n + block - number(1)) / block * block);
  const Value tops = declare(body, "tops", scratch_floats(3, filled * number(2)));
  const Value low = lowest_top(body, tops, filled, n, mask);
  const Value reach = declare(body, "reach", row_size(body, rows) * key_size);
  const Value size_of_mask = select(low < constant(0), constant(0) - low, low);
  // A little more than twice, and some places of the largest mask, for what was rounded.
  const Value limit =
      declare(body, "limit",
              low - reach * constant(2.01) - size_of_mask * constant(1e-6) + constant(kNothing));
  const Value first{Expr(begin)}, last{Expr(end)};
  body.push_back(assign(end, number(0)));
  body.push_back(loop_from("c", index(0), n.expr(), row_.block(), [&](const Value& c) {
    std::vector<Stmt> one;
    const VarRef top = row_.accumulators(one, "top", -HUGE_VAL);
    one.push_back(row_.blocks(c, c + block, [&](const Value& lane, const Value& j) {
      return RowLanes::combine(top, lane, RowLanes::get(tops, j), RowLanes::larger_of);
    }));
    const Value dead = row_.combined(one, top, RowLanes::larger_of) < limit;
    one.push_back(make_stmt<If>({}, dead.expr(), Stmt(),
                                make_seq({assign(begin, select(last == number(0), c, first)),
                                          assign(end, least(c + block, n))})));
    return make_seq(std::move(one));
  }));
  return make_seq(std::move(body));
}

}  // namespace hidet::graph
