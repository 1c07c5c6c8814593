// cpu_rows.cpp - softmax along the last axis (docs/cpu_kernels.md, 7). A row is read once, through the prologue, into scratch
// memory, where it stays in the L1 cache; it is filled up to whole vectors with -inf, which adds nothing to the sum.
#include "schedules/row_lanes.h"
#include "schedules/streams.h"
#include "schedules/tile.h"

#include <hidet/ir/rewriter.h>

#include <algorithm>
#include <cmath>

namespace hidet::graph {
using namespace ir;

namespace {

/// Rows that one piece of the parallel loop has at most, and values that it has about.
constexpr int64_t kRows = 16, kGrainValues = 8192;
/// Values of a row from which on it is stored past the caches, where the whole is large: short pieces that arithmetic parts take longer so.
constexpr int64_t kStreamed = 2048;
/// Values of a row that the stack holds.
constexpr int64_t kOnStack = 512;
/// Values of a tensor that are in the L2 cache already: fetching them ahead takes time.
constexpr int64_t kNear = 1 << 18;

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
    const Stmt rows = loop(
        "row", size_of(outer_), LoopKind::parallel, [&](const Value& r) { return row(r); },
        fused_.chosen("rows", grain()));
    m.functions.push_back(
        fused_.launch(known_length() < kStreamed ? rows : past_caches(rows, lanes_)));
    return m;
  }

 private:
  /// Of a row; 0 where it is a symbol or 0.
  int64_t known_length() const {
    int64_t n = 0;
    return is_const_int(n_.expr(), &n) ? n : 0;
  }

  int64_t grain() const {
    const int64_t n = known_length();
    if (n == 0) return kRows;
    return std::clamp<int64_t>(kGrainValues / std::max<int64_t>(n, 1), 1, kRows);
  }

  /// Memory for `filled` values and a vector: the stack where the row is short, which costs no call and may be registers.
  Value room(std::vector<Stmt>& body, const Value& filled) const {
    const int64_t n = known_length();
    if (n == 0 || n > kOnStack) return scratch_floats(0, filled + number(lanes_));
    const int64_t whole = (n + row_.block() - 1) / row_.block() * row_.block();
    const VarRef v =
        make_var("kept", Type::tensor({f32, {index(whole + lanes_)}, {}, Scope::registers}));
    body.push_back(make_stmt<DeclTensor>({}, v, Expr()));
    return Value(make_address(v, {index(0)}));
  }

  Stmt row(const Value& number_of_row) const {
    Unflattened at = unflatten(number_of_row.expr(), outer_);
    std::vector<Stmt> body = at.declarations;
    const Value n = declare(body, "n", n_),
                whole = declare(body, "whole", n / number(row_.block()) * number(row_.block())),
                filled = declare(
                    body, "filled",
                    (n + number(row_.block() - 1)) / number(row_.block()) * number(row_.block())),
                values = declare(body, "values", room(body, filled));
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
    const int64_t known = known_length(), rest = known % row_.block();
    const bool back = known >= lanes_ && rest != 0;
    if (back) end_of_row(body, values, known, rest, keep);
    body.push_back(row_.blocks(number(0), whole, [&](const Value& lane, const Value& j) {
      return make_seq({keep(j), larger(lane, j)});
    }));
    if (!back) {
      body.push_back(loop_from("tail", whole.expr(), n.expr(), 1, keep));
      body.push_back(RowLanes::fill(values, n, filled));
    }
    body.push_back(row_.blocks(whole, filled, larger));
    const Value most = row_.combined(body, top, RowLanes::larger_of);
    const Value total = row_.exp_and_sum(body, values, filled, most);
    const Value share = declare(body, "share", Value(make_const(1, f32)) / total);
    const auto finish = [&](const Value& j) {
      return fused_.store(position(j), RowLanes::get(values, j) * share);
    };
    const auto next_row = [&](const Value& j) -> std::vector<Stmt> {
      const Expr size = size_of(shape_of(fused_.anchor.inputs[0]));
      int64_t known = kNear;
      is_const_int(size, &known);
      if (outer_.empty() || known < kNear) return {};
      std::vector<Value> next = position(j);
      next[next.size() - 2] = next[next.size() - 2] + number(1);
      return prefetch_reads(fused_.load(0, next).expr(), size);
    };
    if (known >= lanes_ && known % lanes_ != 0 && reads_nothing(finish(number(0)))) {
      body.push_back(vector_row(index(known / lanes_ * lanes_), lanes_, finish, next_row));
      body.push_back(vector(finish, known - lanes_));
    } else {
      body.push_back(vector_row(n.expr(), lanes_, finish, next_row));
    }
    return make_seq(std::move(body));
  }

  Stmt vector(const std::function<Stmt(const Value&)>& one, int64_t at) const {
    return loop("lane", index(lanes_), LoopKind::vectorize,
                [&](const Value& lane) { return one(number(at) + lane); });
  }

  /// What lies behind the whole blocks of a row of `n` values, in vectors of which the last ends with the row, then -inf. It is written
  /// before the blocks: a vector read soon after parts of it were written waits for them.
  void end_of_row(std::vector<Stmt>& body, const Value& values, int64_t n, int64_t rest,
                  const std::function<Stmt(const Value&)>& keep) const {
    const auto nothing = [&](const Value& j) {
      return RowLanes::put(values, j, make_const(-HUGE_VAL, f32));
    };
    for (int64_t at = n; at < n - rest + row_.block(); at += lanes_)
      body.push_back(vector(nothing, at));
    if (rest > lanes_) body.push_back(vector(keep, n - rest));
    body.push_back(vector(keep, n - lanes_));
  }

  /// True where a store may be made twice: nothing that it reads may be what it stores to.
  static bool reads_nothing(const Stmt& store) {
    bool fine = true;
    visit_all(store, [&](const Node& n) { fine = fine && n.kind != Kind::Element; });
    return fine;
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
