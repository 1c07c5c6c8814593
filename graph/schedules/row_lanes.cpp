// row_lanes.cpp - rows of f32 values in scratch memory, taken in blocks of whole vectors.
#include "schedules/row_lanes.h"

#include <hidet/ir/primitives.h>

#include <cmath>

namespace hidet::graph {
using namespace ir;

namespace {
Stmt set(const VarRef& v, const Value& lane, const Value& value) {
  return make_stmt<ElementStore>({}, v, std::vector<Expr>{lane.expr()}, value.expr(), false);
}
}  // namespace

Value RowLanes::lane_of(const VarRef& v, const Value& lane) {
  return Value(make_element(v, {lane.expr()}));
}
Value RowLanes::larger_of(const Value& a, const Value& b) { return select(a < b, b, a); }
Value RowLanes::sum_of(const Value& a, const Value& b) { return a + b; }

Value RowLanes::get(const Value& values, const Value& j) {
  return Value(make_load(values.expr(), j.expr()));
}
Stmt RowLanes::put(const Value& values, const Value& j, const Expr& value) {
  return make_stmt<Store>({}, values.expr(), j.expr(), value);
}

Stmt RowLanes::blocks(const Value& begin, const Value& end,
                      const std::function<Stmt(const Value& lane, const Value& j)>& body) const {
  return loop_from("j", begin.expr(), end.expr(), block_, [&](const Value& j) {
    return loop("lane", index(block_), LoopKind::vectorize,
                [&](const Value& lane) { return body(lane, j + lane); });
  });
}

void RowLanes::each(std::vector<Stmt>& body, const Value& n, int64_t lanes,
                    const std::function<Stmt(const Value& j)>& one) {
  const Value whole = declare(body, "whole", n / number(lanes) * number(lanes));
  body.push_back(loop_from("j", index(0), whole.expr(), lanes, [&](const Value& j) {
    return loop("lane", index(lanes), LoopKind::vectorize,
                [&](const Value& lane) { return one(j + lane); });
  }));
  body.push_back(loop_from("tail", whole.expr(), n.expr(), 1, one));
}

Stmt RowLanes::fill(const Value& values, const Value& n, const Value& filled) {
  return loop_from("fill", n.expr(), filled.expr(), 1,
                   [&](const Value& j) { return put(values, j, make_const(-HUGE_VAL, f32)); });
}

VarRef RowLanes::accumulators(std::vector<Stmt>& body, const char* name, double begin) const {
  const VarRef v = make_var(name, Type::tensor({f32, {index(block_)}, {}, Scope::registers}));
  body.push_back(make_stmt<DeclTensor>({}, v, Expr()));
  body.push_back(loop("lane", index(block_), LoopKind::vectorize, [&](const Value& lane) {
    return set(v, lane, Value(make_const(begin, f32)));
  }));
  return v;
}

Stmt RowLanes::combine(const VarRef& v, const Value& lane, const Value& value, const Pair& both) {
  // The operands are in variables: a choice between reads would go lane by lane.
  std::vector<Stmt> out;
  const Value a = declare(out, "a", lane_of(v, lane)), b = declare(out, "b", value);
  out.push_back(set(v, lane, both(a, b)));
  return make_seq(std::move(out));
}

Value RowLanes::combined(std::vector<Stmt>& body, const VarRef& v, const Pair& both) const {
  for (int64_t half = block_ / 2; half >= 1; half /= 2)
    body.push_back(loop("lane", index(half), half > 1 ? LoopKind::vectorize : LoopKind::unroll,
                        [&](const Value& lane) {
                          return combine(v, lane, lane_of(v, lane + number(half)), both);
                        }));
  return declare(body, "all", lane_of(v, number(0)));
}

VarRef RowLanes::exps(std::vector<Stmt>& body, const Value& values, const Value& filled,
                      const Value& shift) const {
  const VarRef sum = accumulators(body, "sum", 0);
  body.push_back(blocks(number(0), filled, [&](const Value& lane, const Value& j) {
    std::vector<Stmt> one;
    const Value e = declare(one, "e", Value(call_math("exp", {(get(values, j) - shift).expr()})));
    one.push_back(put(values, j, e.expr()));
    one.push_back(combine(sum, lane, e, sum_of));
    return make_seq(std::move(one));
  }));
  return sum;
}

Value RowLanes::exp_and_sum(std::vector<Stmt>& body, const Value& values, const Value& filled,
                            const Value& shift) const {
  return combined(body, exps(body, values, filled, shift), sum_of);
}

}  // namespace hidet::graph
