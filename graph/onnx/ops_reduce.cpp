// ops_reduce.cpp - ONNX reductions. Some are made of an elementwise part and a sum.
// Threading: thread-safe.
#include <hidet/graph/ops.h>

#include <array>
#include <numeric>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {
namespace {

using Outputs = std::vector<Tensor>;
using Reduce = Tensor (*)(const Tensor&, const std::vector<int64_t>&, bool);

/// Which axes; `nothing` where none are to be reduced at all.
struct Axes {
  std::vector<int64_t> axes;
  bool keep;
  bool nothing;
};

Axes axes_of(const NodeCall& call) {
  std::vector<int64_t> axes = call.ints_attr_or_input("axes", 1);
  const int64_t rank = call.rank(0);
  std::vector<bool> seen(rank, false);
  for (int64_t& a : axes) {
    a = call.axis(a, rank);
    if (seen[a]) call.fail("axis ", a, " is given twice");
    seen[a] = true;
  }
  bool nothing = rank == 0;
  if (axes.empty()) {
    nothing |= call.attr_int("noop_with_empty_axes", 0) != 0;
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  return {axes, call.attr_int("keepdims", 1) != 0, nothing};
}

Tensor apply(Reduce f, const Tensor& x, const Axes& axes) {
  return axes.nothing ? x : f(x, axes.axes, axes.keep);
}

template <Reduce F>
Outputs plain(const NodeCall& call) {
  return {apply(F, call.input(0), axes_of(call))};
}
Outputs sum_square(const NodeCall& call) {
  const Tensor& x = call.input(0);
  return {apply(ops::reduce_sum, ops::mul(x, x), axes_of(call))};
}
Outputs l1(const NodeCall& call) {
  return {apply(ops::reduce_sum, ops::abs(call.input(0)), axes_of(call))};
}
Outputs l2(const NodeCall& call) { return {ops::sqrt(sum_square(call)[0])}; }
Outputs log_sum(const NodeCall& call) {
  return {ops::log(apply(ops::reduce_sum, call.input(0), axes_of(call)))};
}

// max + log(sum(exp(x - max))) does not overflow; an infinite max is left out of the difference.
Outputs log_sum_exp(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const Axes axes = axes_of(call);
  if (axes.nothing) return {x};
  const Tensor top = ops::reduce_max(x, axes.axes, true);
  const Tensor shift = ops::where(ops::unary("isinf", top), ops::scalar_like(x, 0), top);
  const Tensor sum = ops::reduce_sum(ops::exp(ops::sub(x, shift)), axes.axes, true);
  const Tensor out = ops::add(ops::log(sum), shift);
  return {axes.keep ? out : ops::squeeze(out, axes.axes)};
}

template <Tensor (*F)(const Tensor&, int64_t, bool, bool)>
Outputs arg(const NodeCall& call) {
  return {F(call.input(0), call.axis(call.attr_int("axis", 0), call.rank(0)),
            call.attr_int("keepdims", 1) != 0, call.attr_int("select_last_index", 0) != 0)};
}

Outputs cumsum(const NodeCall& call) {
  const std::vector<int64_t> axis = call.ints_input(1, "axis");
  if (axis.size() != 1) call.fail("has ", axis.size(), " axes, expected 1");
  return graph::apply("cumsum", {call.input(0)},
                      {{"axis", call.axis(axis[0], call.rank(0))},
                       {"exclusive", call.attr_int("exclusive", 0)},
                       {"reverse", call.attr_int("reverse", 0)}});
}

constexpr auto kAny = kAnyOpset;
const std::array kRows = std::to_array<Converter>({
    {"ArgMax", 1, kAny, arg<ops::argmax>},
    {"ArgMin", 1, kAny, arg<ops::argmin>},
    {"CumSum", 11, kAny, cumsum},
    {"ReduceL1", 1, kAny, l1},
    {"ReduceL2", 1, kAny, l2},
    {"ReduceLogSum", 1, kAny, log_sum},
    {"ReduceLogSumExp", 1, kAny, log_sum_exp},
    {"ReduceMax", 1, kAny, plain<ops::reduce_max>},
    {"ReduceMean", 1, kAny, plain<ops::reduce_mean>},
    {"ReduceMin", 1, kAny, plain<ops::reduce_min>},
    {"ReduceProd", 1, kAny, plain<ops::reduce_prod>},
    {"ReduceSum", 1, kAny, plain<ops::reduce_sum>},
    {"ReduceSumSquare", 1, kAny, sum_square},
});

}  // namespace

std::span<const Converter> reduce_converters() { return kRows; }

}  // namespace hidet::graph::onnx
