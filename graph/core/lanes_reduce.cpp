// lanes_reduce.cpp - reductions inside lane programs. The domain (outer lanes x own axes) is walked in
// strips: several outer lanes at once where the reduction is short, parts of one where it is long.
// Floats accumulate in double and round once; integers wrap; max and min let NaN through.
// Threading: one thread a machine.
#include <hidet/ir/fold.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <cmath>

#include "core/lanes.h"

namespace hidet::graph {

/// One reduction's own machine and the axis values that feed it.
struct LaneMachine::Reducer {
  explicit Reducer(const LaneReduction& r)
      : reduction(r),
        machine(r.body),
        size(product(r.extents)),
        values(r.outer_axes + r.extents.size(), std::vector<int64_t>(r.body.lanes)) {
    for (const auto& v : values) pointers.push_back(v.data());
  }

  /// Sets the axes for `lanes` outer lanes from `first` on, each with `count` steps from `begin` on.
  void fill(const std::vector<const int64_t*>& outer, int first, int lanes, int64_t begin,
            int count) {
    for (int a = 0; a < reduction.outer_axes; a++)
      for (int i = 0; i < lanes; i++)
        std::fill_n(values[a].begin() + i * count, count, outer[a][first + i]);
    Shape at(reduction.extents.size());
    int64_t rest = begin;
    for (size_t d = at.size(); d-- > 0; rest /= reduction.extents[d])
      at[d] = rest % reduction.extents[d];
    for (int k = 0; k < count; k++) {
      for (size_t d = 0; d < at.size(); d++) values[reduction.outer_axes + d][k] = at[d];
      for (size_t d = at.size(); d-- > 0 && ++at[d] == reduction.extents[d];) at[d] = 0;
    }
    for (size_t d = 0; d < at.size(); d++) {
      auto& v = values[reduction.outer_axes + d];
      for (int i = 1; i < lanes; i++) std::copy_n(v.begin(), count, v.begin() + i * count);
    }
  }

  /// Calls take(outer lane, step number, position in the machine) over the whole domain.
  template <class Take>
  void walk(const std::vector<const int64_t*>& outer, int lanes, const Take& take) {
    if (size == 0) return;
    const int room = reduction.body.lanes;
    const int group = size >= room ? 1 : static_cast<int>(room / size);
    for (int first = 0; first < lanes; first += group)
      for (int64_t begin = 0; begin < size; begin += room) {
        const int count = static_cast<int>(std::min<int64_t>(size - begin, room));
        const int here = std::min(group, lanes - first);
        fill(outer, first, here, begin, count);
        machine.run(here * count, pointers);
        for (int i = 0; i < here; i++)
          for (int k = 0; k < count; k++) take(first + i, begin + k, i * count + k);
      }
  }

  const LaneReduction& reduction;
  LaneMachine machine;
  int64_t size;
  std::vector<std::vector<int64_t>> values;
  std::vector<const int64_t*> pointers;
};

namespace {
double identity(ir::ReduceOp op) {
  switch (op) {
    case ir::ReduceOp::prod: return 1;
    case ir::ReduceOp::max: return -INFINITY;
    case ir::ReduceOp::min: return INFINITY;
    default: return 0;
  }
}
void combine(ir::ReduceOp op, double& acc, double v) {
  switch (op) {
    case ir::ReduceOp::sum: acc += v; break;
    case ir::ReduceOp::prod: acc *= v; break;
    case ir::ReduceOp::max: acc = std::isnan(acc) || acc > v ? acc : v; break;
    default: acc = std::isnan(acc) || acc < v ? acc : v; break;
  }
}
void combine(ir::ReduceOp op, DType t, int64_t& acc, int64_t v) {
  using ir::BinaryOp;
  static constexpr BinaryOp ops[] = {BinaryOp::add, BinaryOp::mul,         BinaryOp::max,
                                     BinaryOp::min, BinaryOp::logical_and, BinaryOp::logical_or};
  acc = ir::eval_int(ops[static_cast<int>(op)], acc, v, t);
}

/// The position of the best value so far.
struct Best {
  bool any = false, nan = false;
  double number = 0;
  int64_t integer = 0, at = 0;

  template <class T>
  bool better(T a, T b, const LaneReduction& r) const {
    return a == b ? r.last : r.is_max ? a > b : a < b;
  }
  void see(double v, int64_t k, const LaneReduction& r) {
    const bool is_nan = std::isnan(v);
    const bool take = !any || (is_nan ? !nan || r.last : !nan && better(v, number, r));
    if (take) *this = {true, is_nan, v, 0, k};
  }
  void see(int64_t v, int64_t k, const LaneReduction& r) {
    const bool wide = r.dtype == u64;
    const bool take =
        !any || (wide ? better(static_cast<uint64_t>(v), static_cast<uint64_t>(integer), r)
                      : better(v, integer, r));
    if (take) *this = {true, false, 0, v, k};
  }
};
}  // namespace

void LaneMachine::reduce(size_t index, int lanes) {
  const LaneStep& s = program_.steps[index];
  const LaneReduction& r = *s.reduction;
  if (!reducers_[index]) reducers_[index] = std::make_shared<Reducer>(r);
  Reducer& inner = *reducers_[index];
  const int out = static_cast<int>(index);
  auto note_marks = [&](int lane, int position) {
    const auto& theirs = inner.machine.marks();
    if (theirs.empty() || !theirs[position]) return;
    marked_ = true;
    fault_ = inner.machine.fault();
    if (marks_[index].empty()) marks_[index].assign(lanes, 0);
    marks_[index][lane] = 1;
  };
  if (r.is_arg) {
    std::vector<Best> best(lanes);
    inner.walk(*axes_, lanes, [&](int lane, int64_t k, int at) {
      note_marks(lane, at);
      if (r.dtype.is_float()) best[lane].see(inner.machine.numbers()[at], k, r);
      else best[lane].see(inner.machine.integers()[at], k, r);
    });
    for (int i = 0; i < lanes; i++) ints(out)[i] = best[i].at;
  } else if (r.dtype.is_float()) {
    std::fill_n(nums(out), lanes, identity(r.op));
    inner.walk(*axes_, lanes, [&](int lane, int64_t, int at) {
      note_marks(lane, at);
      combine(r.op, nums(out)[lane], inner.machine.numbers()[at]);
    });
    for (int i = 0; i < lanes; i++) nums(out)[i] = ir::round_to(nums(out)[i], r.dtype);
  } else {
    const ir::Expr start = ir::reduce_identity(r.op, r.dtype);
    int64_t first = 0;
    ir::is_const_int(start, &first);
    std::fill_n(ints(out), lanes, first);
    inner.walk(*axes_, lanes, [&](int lane, int64_t, int at) {
      note_marks(lane, at);
      combine(r.op, r.dtype, ints(out)[lane], inner.machine.integers()[at]);
    });
  }
}

}  // namespace hidet::graph
