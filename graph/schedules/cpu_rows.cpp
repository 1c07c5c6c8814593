// cpu_rows.cpp - softmax along the last axis (docs/cpu_kernels.md, 7). A row is read once, through the prologue, into scratch
// memory, where it stays in the L1 cache; it is filled up to whole vectors with -inf, which adds nothing to the sum.
#include "schedules/row_lanes.h"
#include "schedules/tile.h"

#include <cmath>

namespace hidet::graph {
using namespace ir;

namespace {

/// Rows that one piece of the parallel loop has.
constexpr int64_t kRows = 16;

class SoftmaxRows {
 public:
  SoftmaxRows(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), lanes_(target.lanes(f32)), row_(2 * lanes_) {
    const std::vector<Expr>& shape = shape_of(fused.anchor.inputs[0]);
    outer_.assign(shape.begin(), shape.end() - 1);
    n_ = Value(shape.back());
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    m.functions.push_back(fused_.launch(loop(
        "row", size_of(outer_), LoopKind::parallel, [&](const Value& r) { return row(r); },
        fused_.chosen("rows", kRows))));
    return m;
  }

 private:
  Stmt row(const Value& number_of_row) const {
    Unflattened at = unflatten(number_of_row.expr(), outer_);
    std::vector<Stmt> body = at.declarations;
    const Value n = declare(body, "n", n_),
                whole = declare(body, "whole", n / number(row_.block()) * number(row_.block())),
                filled = declare(
                    body, "filled",
                    (n + number(row_.block() - 1)) / number(row_.block()) * number(row_.block())),
                values = declare(body, "values", scratch_floats(0, filled));
    const VarRef top = row_.accumulators(body, "top", -HUGE_VAL);
    const auto position = [&](const Value& j) {
      std::vector<Value> indices = at.indices;
      indices.push_back(j);
      return indices;
    };
    const auto keep = [&](const Value& j) {
      return RowLanes::put(values, j, make_cast(fused_.load(0, position(j)).expr(), Type(f32)));
    };
    const auto larger = [&](const Value& lane, const Value& j) {
      return RowLanes::combine(top, lane, RowLanes::get(values, j), RowLanes::larger_of);
    };
    body.push_back(row_.blocks(number(0), whole, [&](const Value& lane, const Value& j) {
      return make_seq({keep(j), larger(lane, j)});
    }));
    body.push_back(loop_from("tail", whole.expr(), n.expr(), 1, keep));
    body.push_back(RowLanes::fill(values, n, filled));
    body.push_back(row_.blocks(whole, filled, larger));
    const Value most = row_.combined(body, top, RowLanes::larger_of);
    const Value total = row_.exp_and_sum(body, values, filled, most);
    const Value share = declare(body, "share", Value(make_const(1, f32)) / total);
    const auto finish = [&](const Value& j) {
      return fused_.store(position(j), RowLanes::get(values, j) * share);
    };
    RowLanes::each(body, n, lanes_, finish);
    return make_seq(std::move(body));
  }

  const FusedTask& fused_;
  int64_t lanes_;
  RowLanes row_;
  std::vector<Expr> outer_;
  Value n_;
};

bool accepts(const Task& t) {
  return t.name == "softmax" && is_f32_or_half(dtype_of(t.inputs[0])) &&
         t.attrs.at("axis") == t.attrs.at("rank") - 1;
}

}  // namespace

CpuSchedule cpu_rows_schedule() {
  return {"softmax rows",
          accepts,
          true,
          true,
          true,
          [](const FusedTask& f, const CpuTargetInfo& t) { return SoftmaxRows(f, t).run(); },
          {{"rows", {1, 4, 64}}}};
}

}  // namespace hidet::graph
