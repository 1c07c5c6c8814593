// cpu_rows.cpp - softmax of f32 along the last axis (docs/cpu_kernels.md, 7). A row is read once, through the prologue, into scratch
// memory, where it stays in the L1 cache; it is filled up to whole vectors with -inf, which adds nothing to the sum.
#include "schedules/tile.h"

#include <hidet/ir/primitives.h>

#include <cmath>

namespace hidet::graph {
using namespace ir;

namespace {

/// Rows that one piece of the parallel loop has.
constexpr int64_t kRows = 16;

class SoftmaxRows {
 public:
  SoftmaxRows(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), lanes_(target.lanes(f32)), block_(2 * lanes_) {
    const std::vector<Expr>& shape = shape_of(fused.anchor.inputs[0]);
    outer_.assign(shape.begin(), shape.end() - 1);
    n_ = Value(shape.back());
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    m.functions.push_back(fused_.launch(loop(
        "row", size_of(outer_), LoopKind::parallel, [&](const Value& r) { return row(r); },
        kRows)));
    return m;
  }

 private:
  Stmt row(const Value& number_of_row) const {
    Unflattened at = unflatten(number_of_row.expr(), outer_);
    std::vector<Stmt> body = at.declarations;
    const Value n = declare(body, "n", n_),
                whole = declare(body, "whole", n / number(block_) * number(block_)),
                filled = declare(body, "filled",
                                 (n + number(block_ - 1)) / number(block_) * number(block_)),
                values = declare(body, "values", scratch_floats(0, filled));
    const VarRef top = accumulators(body, "top", -HUGE_VAL), sum = accumulators(body, "sum", 0);
    const auto position = [&](const Value& j) {
      std::vector<Value> indices = at.indices;
      indices.push_back(j);
      return indices;
    };
    const auto keep = [&](const Value& j) {
      return put(values, j, fused_.load(0, position(j)).expr());
    };
    // NaN loses here, and reaches every value through the sum.
    const auto larger_of = [](const Value& a, const Value& b) { return select(a < b, b, a); };
    const auto larger = [&](const Value& lane, const Value& j) {
      return combine(top, lane, get(values, j), larger_of);
    };
    body.push_back(blocks(number(0), whole, [&](const Value& lane, const Value& j) {
      return make_seq({keep(j), larger(lane, j)});
    }));
    body.push_back(loop_from("tail", whole.expr(), n.expr(), 1, keep));
    body.push_back(loop_from("fill", n.expr(), filled.expr(), 1, [&](const Value& j) {
      return put(values, j, make_const(-HUGE_VAL, f32));
    }));
    body.push_back(blocks(whole, filled, larger));
    const Value most = combined(body, top, larger_of);
    const auto add = [](const Value& a, const Value& b) { return a + b; };
    body.push_back(blocks(number(0), filled, [&](const Value& lane, const Value& j) {
      std::vector<Stmt> one;
      const Value e = declare(one, "e", Value(call_math("exp", {(get(values, j) - most).expr()})));
      one.push_back(put(values, j, e.expr()));
      one.push_back(combine(sum, lane, e, add));
      return make_seq(std::move(one));
    }));
    const Value total = combined(body, sum, add);
    const Value share = declare(body, "share", Value(make_const(1, f32)) / total);
    const auto finish = [&](const Value& j) {
      return fused_.store(position(j), get(values, j) * share);
    };
    const Value vectors = declare(body, "vectors", n / number(lanes_) * number(lanes_));
    body.push_back(loop_from("j", index(0), vectors.expr(), lanes_, [&](const Value& j) {
      return loop("lane", index(lanes_), LoopKind::vectorize,
                  [&](const Value& lane) { return finish(j + lane); });
    }));
    body.push_back(loop_from("tail", vectors.expr(), n.expr(), 1, finish));
    return make_seq(std::move(body));
  }

  /// body(lane, j) for whole blocks of [begin, end).
  Stmt blocks(const Value& begin, const Value& end,
              const std::function<Stmt(const Value& lane, const Value& j)>& body) const {
    return loop_from("j", begin.expr(), end.expr(), block_, [&](const Value& j) {
      return loop("lane", index(block_), LoopKind::vectorize,
                  [&](const Value& lane) { return body(lane, j + lane); });
    });
  }

  static Value get(const Value& values, const Value& j) {
    return Value(make_load(values.expr(), j.expr()));
  }
  static Stmt put(const Value& values, const Value& j, const Expr& value) {
    return make_stmt<Store>({}, values.expr(), j.expr(), value);
  }

  /// One value for each lane of a block.
  VarRef accumulators(std::vector<Stmt>& body, const char* name, double begin) const {
    const VarRef v = make_var(name, Type::tensor({f32, {index(block_)}, {}, Scope::registers}));
    body.push_back(make_stmt<DeclTensor>({}, v, Expr()));
    body.push_back(loop("lane", index(block_), LoopKind::vectorize, [&](const Value& lane) {
      return set(v, lane, Value(make_const(begin, f32)));
    }));
    return v;
  }
  static Value lane_of(const VarRef& v, const Value& lane) {
    return Value(make_element(v, {lane.expr()}));
  }
  static Stmt set(const VarRef& v, const Value& lane, const Value& value) {
    return make_stmt<ElementStore>({}, v, std::vector<Expr>{lane.expr()}, value.expr(), false);
  }
  using Pair = std::function<Value(const Value&, const Value&)>;
  /// v[lane] = both(v[lane], value), the operands in variables: a choice between reads would go lane by lane.
  static Stmt combine(const VarRef& v, const Value& lane, const Value& value, const Pair& both) {
    std::vector<Stmt> out;
    const Value a = declare(out, "a", lane_of(v, lane)), b = declare(out, "b", value);
    out.push_back(set(v, lane, both(a, b)));
    return make_seq(std::move(out));
  }
  /// All lanes as one value: halves are combined until one is left.
  Value combined(std::vector<Stmt>& body, const VarRef& v, const Pair& both) const {
    for (int64_t half = block_ / 2; half >= 1; half /= 2)
      body.push_back(loop("lane", index(half), half > 1 ? LoopKind::vectorize : LoopKind::unroll,
                          [&](const Value& lane) {
                            return combine(v, lane, lane_of(v, lane + number(half)), both);
                          }));
    return declare(body, "all", lane_of(v, number(0)));
  }

  const FusedTask& fused_;
  int64_t lanes_, block_;
  std::vector<Expr> outer_;
  Value n_;
};

bool accepts(const Task& t) {
  return t.name == "softmax" && dtype_of(t.inputs[0]) == f32 &&
         t.attrs.at("axis") == t.attrs.at("rank") - 1;
}

}  // namespace

CpuSchedule cpu_rows_schedule() {
  return {"softmax rows",
          accepts,
          true,
          true,
          true,
          [](const FusedTask& f, const CpuTargetInfo& t) { return SoftmaxRows(f, t).run(); }};
}

}  // namespace hidet::graph
