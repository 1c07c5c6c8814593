// ops_shape.cpp - ONNX operators that move values: views, slices, joins, gathers, and those that
// make tensors from shapes. Threading: thread-safe.
#include <hidet/graph/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {
namespace {

using Outputs = std::vector<Tensor>;
using Dims = std::vector<DimExpr>;

// 0 copies a size of the input unless allowzero; -1 takes what is left.
Outputs reshape(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const Dims from = x.shape_expr();
  Dims to = call.dims_input(1, "the target shape");
  const bool allow_zero = call.attr_int("allowzero", 0) != 0;
  int wild = -1;
  for (size_t i = 0; i < to.size(); i++) {
    if (to[i].is_const(0) && !allow_zero) {
      if (i >= from.size()) call.fail("size ", i, " of the target copies one that the input lacks");
      to[i] = from[i];
    } else if (to[i].is_const(-1)) {
      if (wild >= 0) call.fail("the target shape has two sizes of -1");
      wild = static_cast<int>(i);
    } else if (to[i].is_const() && to[i].value() < 0) {
      call.fail("the target shape has the size ", to[i]);
    }
  }
  if (wild >= 0) {
    Dims rest = to;
    rest.erase(rest.begin() + wild);
    if (product(rest).is_const(0)) call.fail("a size of -1 cannot be found beside one of 0");
    to[wild] = divide_exactly(from, rest);
  }
  const DimExpr before = product(from), after = product(to);
  if (before.is_const() && after.is_const() && !(before == after))
    call.fail("cannot reshape ", shape_text(from), " to ", shape_text(to));
  return {to == from ? x : ops::reshape(x, to)};
}

Outputs flatten(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const int64_t axis = call.axis(call.attr_int("axis", 1), call.rank(0), true);
  return {ops::reshape(call.input(0), {product(Dims(shape.begin(), shape.begin() + axis)),
                                       product(Dims(shape.begin() + axis, shape.end()))})};
}

Outputs squeeze(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const bool all = !call.has_attr("axes") && !call.has_input(1);
  std::vector<bool> drop(shape.size(), false);
  for (size_t i = 0; all && i < shape.size(); i++) drop[i] = shape[i].is_const(1);
  if (!all)
    for (int64_t a : call.ints_attr_or_input("axes", 1)) {
      const int64_t axis = call.axis(a, call.rank(0));
      if (shape[axis].is_const() && !shape[axis].is_const(1))
        call.fail("axis ", axis, " has the size ", shape[axis], ", not 1");
      drop[axis] = true;
    }
  Dims to;
  for (size_t i = 0; i < shape.size(); i++)
    if (!drop[i]) to.push_back(shape[i]);
  return {ops::reshape(call.input(0), to)};
}

Outputs unsqueeze(const NodeCall& call) {
  const std::vector<int64_t> axes = call.ints_attr_or_input("axes", 1);
  const int64_t rank = call.rank(0) + static_cast<int64_t>(axes.size());
  std::vector<bool> added(rank, false);
  for (int64_t a : axes) {
    const int64_t axis = call.axis(a, rank);
    if (added[axis]) call.fail("axis ", axis, " is given twice");
    added[axis] = true;
  }
  const Dims shape = call.shape(0);
  Dims to;
  for (int64_t i = 0, next = 0; i < rank; i++) to.push_back(added[i] ? DimExpr(1) : shape[next++]);
  return {ops::reshape(call.input(0), to)};
}

Outputs transpose(const NodeCall& call) {
  std::vector<int64_t> perm(call.rank(0));
  std::iota(perm.rbegin(), perm.rend(), 0);
  perm = call.attr_ints("perm", perm);
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); i++)
    if (sorted[i] != static_cast<int64_t>(i) || sorted.size() != call.shape(0).size())
      call.fail("perm is no permutation of the ", call.rank(0), " axes");
  return {ops::transpose(call.input(0), perm)};
}

Outputs concat(const NodeCall& call) {
  return {ops::concat(call.inputs(), call.axis(call.attr_int("axis", 0), call.rank(0)))};
}

// A formula counts from the front; one that may be negative has no known meaning.
void check_bounds(const NodeCall& call, const Dims& bounds) {
  for (const DimExpr& bound : bounds)
    if (!bound.is_const() && !bound.never_negative())
      call.unsupported("the bound ", bound, " may be negative, so that its meaning is not known");
}

Outputs slice(const NodeCall& call) {
  const Dims starts = call.dims_input(1, "starts"), ends = call.dims_input(2, "ends");
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has_input(3)) axes = call.ints_input(3, "axes");
  if (call.has_input(4)) steps = call.ints_input(4, "steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.fail("starts, ends, axes and steps have different lengths");
  std::vector<bool> seen(call.rank(0), false);
  for (size_t i = 0; i < axes.size(); i++) {
    axes[i] = call.axis(axes[i], call.rank(0));
    if (seen[axes[i]]) call.fail("axis ", axes[i], " is given twice");
    if (steps[i] == 0) call.fail("a step of 0");
    seen[axes[i]] = true;
  }
  check_bounds(call, starts);
  check_bounds(call, ends);
  return {ops::slice(call.input(0), starts, ends, axes, steps)};
}

std::vector<DimExpr> split_sizes(const NodeCall& call, const DimExpr& extent) {
  if (call.has_attr("split")) {
    const std::vector<int64_t> sizes = call.attr_ints("split");
    return {sizes.begin(), sizes.end()};
  }
  if (call.has_input(1)) return call.dims_input(1, "split");
  const auto parts = static_cast<int64_t>(call.output_count());
  const int64_t stated = call.attr_int("num_outputs", parts);
  if (parts == 0 || stated != parts) call.fail("num_outputs is ", stated, ", it has ", parts);
  const DimExpr size = ceildiv(extent, parts);
  if (!extent.is_const()) {
    const DimExpr exact = divide_exactly({extent}, {DimExpr(parts)});
    return Dims(parts, exact * parts == extent ? exact : size);
  }
  Dims out(parts, size);
  out.back() = extent - size * (parts - 1);
  if (out.back().value() < 0) call.fail("cannot split ", extent, " values into ", parts, " parts");
  return out;
}

Outputs split(const NodeCall& call) {
  const int64_t axis = call.axis(call.attr_int("axis", 0), call.rank(0));
  const Dims shape = call.shape(0);
  const Dims sizes = split_sizes(call, shape[axis]);
  if (sizes.size() != call.output_count())
    call.fail("has ", sizes.size(), " sizes for ", call.output_count(), " outputs");
  DimExpr total(0);
  for (const DimExpr& size : sizes) total += size;
  if (total.is_const() && shape[axis].is_const() && !(total == shape[axis]))
    call.fail("the sizes add up to ", total, " where the axis has ", shape[axis]);
  if (is_concrete(sizes)) {
    for (const DimExpr& size : sizes)
      if (size.value() < 0) call.fail("a part has the size ", size);
    return ops::split(call.input(0), axis, ints_of(sizes));
  }
  Outputs out;
  DimExpr begin(0);
  for (const DimExpr& size : sizes) {
    out.push_back(ops::slice(call.input(0), {begin}, {begin + size}, {axis}, {1}));
    begin += size;
  }
  return out;
}

/// One known index of a known extent is a slice, which folds into what reads it.
Outputs gather(const NodeCall& call) {
  const int64_t axis = call.axis(call.attr_int("axis", 0), call.rank(0));
  const Tensor x = call.input(0);
  const Known* known = call.known(1);
  if (known && known->is_constant() && call.rank(1) == 0 && call.rank(0) > 1) {
    Dims shape = x.shape_expr();
    const auto at = shape.begin() + axis;
    int64_t index = call.ints_input(1, "the index")[0];
    if (at->is_const() && index < 0) index += at->value();
    if (at->is_const() && index >= 0 && index < at->value()) {
      const Tensor one = ops::slice(x, {index}, {index + 1}, {axis}, {1});
      shape.erase(at);
      return {ops::reshape(one, shape)};
    }
  }
  return {ops::gather(x, call.input(1), axis)};
}
Outputs gather_elements(const NodeCall& call) {
  return {ops::gather_elements(call.input(0), call.input(1),
                               call.axis(call.attr_int("axis", 0), call.rank(0)))};
}

Outputs gather_nd(const NodeCall& call) {
  return graph::apply("gather_nd", {call.input(0), call.input(1)},
                      {{"batch_dims", call.attr_int("batch_dims", 0)}});
}

// Exporters write expands that change nothing; they leave no operator.
Outputs expand(const NodeCall& call) {
  const Dims from = call.shape(0), to = call.dims_input(1, "the target shape");
  bool same = to.size() <= from.size();
  for (size_t i = 0; same && i < to.size(); i++) {
    const DimExpr& have = from[from.size() - 1 - i];
    same = broadcast(have, to[to.size() - 1 - i]) == have;
  }
  return {same ? call.input(0) : ops::expand(call.input(0), to)};
}

Outputs tile(const NodeCall& call) {
  const std::vector<int64_t> repeats = call.ints_input(1, "repeats");
  if (repeats.size() != call.shape(0).size())
    call.fail("has ", repeats.size(), " repeats for ", call.rank(0), " axes");
  return {ops::tile(call.input(0), repeats)};
}

// One value for each axis and side; `axes` says which, from opset 18 on.
Outputs pad(const NodeCall& call) {
  const auto rank = static_cast<size_t>(call.rank(0));
  const std::vector<int64_t> given = call.ints_input(1, "pads");
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has_input(3)) axes = call.ints_input(3, "axes");
  if (given.size() != 2 * axes.size())
    call.fail("has ", given.size(), " pads for ", axes.size(), " axes");
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); i++) {
    const auto a = static_cast<size_t>(call.axis(axes[i], call.rank(0)));
    pads[a] = given[i];
    pads[rank + a] = given[axes.size() + i];
  }
  const std::string mode = call.attr_string("mode", "constant");
  const double value = call.has_input(2) ? call.scalar_input(2, "constant_value") : 0;
  return {ops::pad(call.input(0), pads, mode, value)};
}

Outputs constant_of_shape(const NodeCall& call) {
  const Dims shape = call.dims_input(0, "the shape");
  const TensorProto* proto = call.attr_tensor("value");
  if (!proto) return {ops::full(shape, 0, f32, call.context().device)};
  const TensorValues one = load_values(*proto, call.context().file, call.describe());
  if (one.count != 1) call.fail("its value has ", one.count, " elements, expected 1");
  // An expanded scalar keeps every bit of the value, a double would not.
  return {ops::expand(to_tensor(one).reshape({}), shape)};
}

// A range of floating point numbers has to be constant: its count is part of the shape.
Outputs float_range(const NodeCall& call) {
  constexpr double kMost = 1 << 24;
  const double start = call.scalar_input(0, "start"), limit = call.scalar_input(1, "limit"),
               delta = call.scalar_input(2, "delta");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count <= kMost)) call.unsupported("a range of ", count, " values, at most ", kMost);
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); i++)
    values.push_back(start + static_cast<double>(i) * delta);
  return {from_doubles(values, {static_cast<int64_t>(values.size())}, call.dtype(0))};
}

Outputs range(const NodeCall& call) {
  const DType dtype = call.dtype(0);
  if (dtype.is_float()) return float_range(call);
  const DimExpr start = call.dims_input(0, "start").at(0),
                limit = call.dims_input(1, "limit").at(0);
  const int64_t delta = call.ints_input(2, "delta").at(0);
  if (delta == 0) call.fail("a delta of 0");
  const DimExpr distance = delta > 0 ? limit - start : start - limit;
  const DimExpr count = max(ceildiv(distance, delta > 0 ? delta : -delta), 0);
  return {ops::range(start, count, delta, dtype, call.context().device)};
}

constexpr auto kAny = kAnyOpset;
const std::array kRows = std::to_array<Converter>({
    {"Concat", 4, kAny, concat},
    {"ConstantOfShape", 9, kAny, constant_of_shape},
    {"Expand", 8, kAny, expand},
    {"Flatten", 1, kAny, flatten},
    {"Gather", 1, kAny, gather},
    {"GatherElements", 11, kAny, gather_elements},
    {"GatherND", 11, kAny, gather_nd},
    {"Pad", 11, kAny, pad},
    {"Range", 11, kAny, range},
    {"Reshape", 5, kAny, reshape},
    {"Slice", 10, kAny, slice},
    {"Split", 2, kAny, split},
    {"Squeeze", 1, kAny, squeeze},
    {"Tile", 6, kAny, tile},
    {"Transpose", 1, kAny, transpose},
    {"Unsqueeze", 1, kAny, unsqueeze},
});

}  // namespace

std::span<const Converter> shape_converters() { return kRows; }

}  // namespace hidet::graph::onnx
