// ops_composed.cpp - ONNX operators that are made of several graph operators, which fuse again when
// the graph is compiled. Threading: thread-safe.
#include <hidet/graph/ops.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {
namespace {

using Outputs = std::vector<Tensor>;
using Dims = std::vector<DimExpr>;
using Ints = std::vector<int64_t>;

Tensor scaled(const Tensor& x, double factor) { return ops::mul(x, ops::scalar_like(x, factor)); }
Tensor shifted(const Tensor& x, double offset) { return ops::add(x, ops::scalar_like(x, offset)); }

Outputs celu(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const double alpha = call.attr_float("alpha", 1);
  const Tensor zero = ops::scalar_like(x, 0);
  const Tensor low = scaled(shifted(ops::exp(scaled(x, 1 / alpha)), -1), alpha);
  return {ops::add(ops::maximum(x, zero), ops::minimum(low, zero))};
}
Outputs selu(const NodeCall& call) {
  const double alpha = call.attr_float("alpha", 1.67326319217681884765625f);
  const double gamma = call.attr_float("gamma", 1.05070102214813232421875f);
  return {scaled(ops::elu(call.input(0), alpha), gamma)};
}
Outputs shrink(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const double limit = call.attr_float("lambd", 0.5), bias = call.attr_float("bias", 0);
  const Tensor zero = ops::scalar_like(x, 0);
  const Tensor above =
      ops::where(ops::greater(x, ops::scalar_like(x, limit)), shifted(x, -bias), zero);
  return {ops::where(ops::less(x, ops::scalar_like(x, -limit)), shifted(x, bias), above)};
}
Outputs mish(const NodeCall& call) {
  const Tensor& x = call.input(0);
  return {ops::mul(x, ops::tanh(ops::unary("softplus", x)))};
}
Outputs swish(const NodeCall& call) {
  const Tensor& x = call.input(0);
  return {ops::mul(x, ops::sigmoid(scaled(x, call.attr_float("alpha", 1))))};
}

/// 0, 1 ... along `axis` of a tensor of `rank` dimensions, size 1 elsewhere.
Tensor counter(const DimExpr& size, int64_t axis, int64_t rank, Device device) {
  Dims shape(rank, 1);
  shape[axis] = size;
  return ops::reshape(ops::range(0, size, 1, i64, device), shape);
}

Outputs hardmax(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const int64_t axis = call.axis(call.attr_int("axis", -1), call.rank(0));
  const Tensor places = counter(call.shape(0)[axis], axis, call.rank(0), call.context().device);
  return {ops::cast(ops::equal(places, ops::argmax(x, axis, true)), x.dtype())};
}

/// column - row of the last two dimensions.
Tensor diagonals(const NodeCall& call, const Dims& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank < 2) call.fail("the input has ", rank, " dimensions, expected 2 or more");
  const Device device = call.context().device;
  return ops::sub(counter(shape[rank - 1], 1, 2, device), counter(shape[rank - 2], 0, 2, device));
}

Outputs trilu(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const Tensor k = call.has_input(1) ? ops::reshape(call.input(1), {}) : full({}, 0, i64);
  const Tensor place = diagonals(call, call.shape(0));
  const bool upper = call.attr_int("upper", 1) != 0;
  const Tensor keep = upper ? ops::greater_equal(place, k) : ops::less_equal(place, k);
  return {ops::where(keep, x, ops::scalar_like(x, 0))};
}

Outputs eye_like(const NodeCall& call) {
  DType dtype = call.dtype(0);
  if (call.has_attr("dtype"))
    dtype = dtype_of_onnx(static_cast<int32_t>(call.attr_int("dtype", 1)),
                          call.context().file.name(), call.describe() + ": attribute 'dtype'");
  const double k = static_cast<double>(call.attr_int("k", 0));
  return {ops::cast(ops::equal(diagonals(call, call.shape(0)), full({}, k, i64)), dtype)};
}

// An index beyond the depth gives a row of "off"; a negative one counts from the end.
Outputs one_hot(const NodeCall& call) {
  Tensor index = ops::cast(call.input(0), i64);
  const double depth = call.scalar_input(1, "depth");
  const int64_t rank = call.rank(0) + 1;
  const int64_t axis = call.axis(call.attr_int("axis", -1), rank);
  index = ops::where(ops::less(index, ops::scalar_like(index, 0)), shifted(index, depth), index);
  const Tensor places = counter(static_cast<int64_t>(depth), axis, rank, call.context().device);
  const Tensor& values = call.input(2);
  if (!product(call.shape(2)).is_const(2)) call.fail("values must be [off, on]");
  const auto pick = [&](int64_t i) {
    return ops::reshape(ops::slice(values, {i}, {i + 1}, {0}, {1}), {});
  };
  return {ops::where(ops::equal(ops::unsqueeze(index, {axis}), places), pick(1), pick(0))};
}

Outputs depth_to_space(const NodeCall& call) {
  const Dims s = call.shape(0);
  const int64_t b = call.attr_int("blocksize", 0);
  if (s.size() != 4 || b < 1) call.fail("needs 4 dimensions and a blocksize of 1 or more");
  const DimExpr depth = divide_exactly({s[1]}, {DimExpr(b * b)});
  const bool columns_first = call.attr_string("mode", "DCR") == "CRD";
  const Tensor split = columns_first ? ops::reshape(call.input(0), {s[0], depth, b, b, s[2], s[3]})
                                     : ops::reshape(call.input(0), {s[0], b, b, depth, s[2], s[3]});
  const Tensor moved =
      ops::transpose(split, columns_first ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  return {ops::reshape(moved, {s[0], depth, s[2] * b, s[3] * b})};
}

Outputs space_to_depth(const NodeCall& call) {
  const Dims s = call.shape(0);
  const int64_t b = call.attr_int("blocksize", 0);
  if (s.size() != 4 || b < 1) call.fail("needs 4 dimensions and a blocksize of 1 or more");
  const DimExpr h = divide_exactly({s[2]}, {DimExpr(b)}), w = divide_exactly({s[3]}, {DimExpr(b)});
  const Tensor split = ops::reshape(call.input(0), {s[0], s[1], h, b, w, b});
  return {ops::reshape(ops::transpose(split, {0, 3, 5, 1, 2, 4}), {s[0], s[1] * (b * b), h, w})};
}

/// (x - mean) / sqrt(variance + epsilon) over the dims from 2 on.
Tensor normalized(const NodeCall& call, const Tensor& x) {
  return ops::layer_norm(x, ops::scalar_like(x, 1), {}, 2, call.attr_float("epsilon", 1e-5f));
}

// A list of channels as [c, 1, 1 ...], which broadcasts over [n, c, ...] of that rank.
Tensor per_channel(const NodeCall& call, size_t i, int64_t rank) {
  Dims shape(std::max<int64_t>(rank - 1, 1), 1);
  if (call.rank(i) != 1) call.fail("input ", i, " has ", call.rank(i), " dimensions, expected 1");
  shape[0] = call.shape(i)[0];
  return ops::reshape(call.input(i), shape);
}
Tensor scaled_channels(const NodeCall& call, const Tensor& x) {
  const int64_t rank = x.rank();
  return ops::add(ops::mul(x, per_channel(call, 1, rank)), per_channel(call, 2, rank));
}

/// [n, c, ...] as [n, groups, c / groups, values of a channel]: a channel's scale is the same along the last dim.
Dims in_groups(const Dims& shape, const DimExpr& groups) {
  return {shape[0], groups, divide_exactly({shape[1]}, {groups}),
          product(Dims(shape.begin() + 2, shape.end()))};
}
/// Groups of channels [n, g, values] that a reshape made of [n, c, ...], as `in_groups`; else [n, c, values].
Dims rows_of(const Tensor& x) {
  const Dims shape = x.shape_expr();
  const auto op = producer_of(x);
  if (op && op->def->name == "reshape" && shape.size() == 3 && shape[1].is_const()) {
    const Dims from = op->inputs[0].shape_expr();
    if (from.size() > 2 && from[0] == shape[0] && from[1].is_const() &&
        from[1].value() % std::max<int64_t>(1, shape[1].value()) == 0)
      return in_groups(from, shape[1]);
  }
  return {shape[0], shape[1], product(Dims(shape.begin() + 2, shape.end()))};
}

Outputs instance_norm(const NodeCall& call) {
  const Tensor& x = call.input(0);
  if (call.rank(0) < 3)
    call.fail("the input has ", call.rank(0), " dimensions, expected 3 or more");
  return {ops::reshape(scaled_channels(call, normalized(call, ops::reshape(x, rows_of(x)))),
                       call.shape(0))};
}

Outputs group_norm(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const int64_t groups = call.attr_int("num_groups", 0);
  if (shape.size() < 3 || groups < 1) call.fail("needs 3 dimensions and 1 group or more");
  const Tensor rows = ops::reshape(call.input(0), in_groups(shape, groups));
  return {scaled_channels(call, ops::reshape(normalized(call, rows), shape))};
}

// The mean square in f32 where stash_type asks for it, which is the default.
Outputs rms_norm(const NodeCall& call) {
  const DType dtype = call.dtype(0);
  const DType inner = call.attr_int("stash_type", 1) == 1 && dtype.bits() < 32 ? f32 : dtype;
  const Tensor x = inner == dtype ? call.input(0) : ops::cast(call.input(0), inner);
  Ints axes;
  for (int64_t a = call.axis(call.attr_int("axis", -1), call.rank(0)); a < call.rank(0); a++)
    axes.push_back(a);
  const Tensor mean = ops::reduce_mean(ops::mul(x, x), axes, true);
  Tensor norm = ops::div(x, ops::sqrt(shifted(mean, call.attr_float("epsilon", 1e-5f))));
  if (inner != dtype) norm = ops::cast(norm, dtype);
  return {ops::mul(norm, call.input(1))};
}

Outputs mean_variance_norm(const NodeCall& call) {
  Ints axes = call.attr_ints("axes", {0, 2, 3});
  for (int64_t& a : axes) a = call.axis(a, call.rank(0));
  const Tensor& x = call.input(0);
  const Tensor centred = ops::sub(x, ops::reduce_mean(x, axes, true));
  const Tensor spread = ops::sqrt(ops::reduce_mean(ops::mul(centred, centred), axes, true));
  return {ops::div(centred, shifted(spread, 1e-9))};
}

// A zero norm gives zeros.
Outputs lp_norm(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const int64_t axis = call.axis(call.attr_int("axis", -1), call.rank(0));
  const int64_t p = call.attr_int("p", 2);
  if (p != 1 && p != 2) call.fail("p is ", p, ", expected 1 or 2");
  const Tensor norm = p == 1 ? ops::reduce_sum(ops::abs(x), {axis}, true)
                             : ops::sqrt(ops::reduce_sum(ops::mul(x, x), {axis}, true));
  const Tensor zero = ops::scalar_like(x, 0);
  return {ops::where(ops::equal(norm, zero), zero, ops::div(x, norm))};
}

constexpr auto kAny = kAnyOpset;
const std::array kRows = std::to_array<Converter>({
    {"Celu", 12, kAny, celu},
    {"DepthToSpace", 11, kAny, depth_to_space},
    {"EyeLike", 9, kAny, eye_like},
    {"GroupNormalization", 21, kAny, group_norm},
    {"Hardmax", 13, kAny, hardmax},
    {"InstanceNormalization", 6, kAny, instance_norm},
    {"LpNormalization", 1, kAny, lp_norm},
    {"MeanVarianceNormalization", 9, kAny, mean_variance_norm},
    {"Mish", 18, kAny, mish},
    {"OneHot", 11, kAny, one_hot},
    {"RMSNormalization", 23, kAny, rms_norm},
    {"Selu", 6, kAny, selu},
    {"Shrink", 9, kAny, shrink},
    {"SpaceToDepth", 1, kAny, space_to_depth},
    {"Swish", 24, kAny, swish},
    {"Trilu", 14, kAny, trilu},
});

}  // namespace

std::span<const Converter> composed_converters() { return kRows; }

}  // namespace hidet::graph::onnx
