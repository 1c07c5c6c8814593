// conv_transpose2d.cpp - transposed convolution of [n, c, h, w] with groups, pads, dilation and output padding: each
// input pixel adds its multiple of the kernel to the output. Written as a sum over the inputs that an output pixel
// comes from. Without groups and dilation it is convolutions and a move instead, which have kernels of their own.
// f16 and bf16 accumulate in f32.
#include <hidet/graph/ops.h>

#include <limits>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::Value;
constexpr const char* kName = "conv_transpose2d";

/// The attributes, checked: two numbers each, pads four (top, left, bottom, right; negative ones add rows).
struct Spread {
  std::vector<int64_t> stride, pads, dilation, extra;
  int64_t groups;
};

Spread spread_of(const OpCall& call) {
  const Attrs& a = call.attrs;
  Spread s{a.integers("stride"), a.integers("pads"), a.integers("dilation"),
           a.integers("output_padding"), a.integer("groups")};
  const bool sizes =
      s.stride.size() == 2 && s.pads.size() == 4 && s.dilation.size() == 2 && s.extra.size() == 2;
  HIDET_OP_REQUIRE(sizes, kName,
                   "takes two strides, four pads, two dilations and two output paddings");
  for (int d = 0; d < 2; d++)
    HIDET_OP_REQUIRE(s.stride[d] >= 1 && s.dilation[d] >= 1 && s.extra[d] >= 0, kName,
                     "strides and dilations are 1 or more, output paddings 0 or more");
  return s;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  op_inputs(kName, call, 2);
  op_same_dtype(kName, call);
  const TensorSpec& x = call.inputs[0];
  const Dims& w = call.inputs[1].shape;
  HIDET_OP_REQUIRE(x.shape.size() == 4 && w.size() == 4 && is_concrete(w), kName, "the shapes ",
                   shape_text(x.shape), " and ", shape_text(w),
                   " are not of rank 4, the weight's of numbers");
  HIDET_OP_REQUIRE(!x.dtype.is_boolean(), kName, "takes numbers, not boolean", shape_text(x.shape));
  const Spread s = spread_of(call);
  HIDET_OP_REQUIRE(s.groups >= 1 && w[0].value() % s.groups == 0, kName, s.groups,
                   " groups do not divide the ", w[0], " channels of ", shape_text(w));
  HIDET_OP_REQUIRE(!x.shape[1].is_const() || x.shape[1] == w[0], kName, "the input ",
                   shape_text(x.shape), " has ", x.shape[1], " channels, the weight ",
                   shape_text(w), " takes ", w[0]);
  Dims out{x.shape[0], w[1] * s.groups};
  for (int d = 0; d < 2; d++) {
    const int64_t reach = (w[2 + d].value() - 1) * s.dilation[d] + 1;
    out.push_back((x.shape[2 + d] - 1) * s.stride[d] + reach + s.extra[d] - s.pads[d] -
                  s.pads[2 + d]);
    HIDET_OP_REQUIRE(!out.back().is_const() || out.back().value() >= 0, kName, "the pads ",
                     shape_text(s.pads), " leave nothing of ", shape_text(x.shape));
  }
  return {{x.dtype, out}};
}

ir::Task compute(const OpCall& call) {
  const TensorSpec &x = call.inputs[0], &w = call.inputs[1];
  const TensorSpec out = infer(call)[0];
  const Spread s = spread_of(call);
  const DType wide = working_dtype(x.dtype);
  const Value zero = index_value(0), inputs = index_value(w.shape[0].value() / s.groups),
              outputs = index_value(w.shape[1]);
  ir::Task task = new_task(kName, call);
  /// The multiple of the stride that kernel position k adds to output o, where there is one.
  const auto moved = [&](int d, const Value& o, const Value& k) {
    return o + index_value(s.pads[d]) - k * index_value(s.dilation[d]);
  };
  const auto hits = [&](int d, const Value& m) {
    return m >= zero && m % index_value(s.stride[d]) == zero &&
           m / index_value(s.stride[d]) < index_value(x.shape[2 + d]);
  };
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    const Value total = reduce(
        ir::ReduceOp::sum, {w.shape[0].value() / s.groups, w.shape[2], w.shape[3]},
        [&](const Values& k) {
          const Value channel = s.groups == 1 ? k[0] : at[1] / outputs * inputs + k[0];
          const Value filter = s.groups == 1 ? at[1] : at[1] % outputs;
          const Value h = moved(0, at[2], k[1]), v = moved(1, at[3], k[2]);
          const Value pixel = element(task.inputs[0], {at[0], channel, h / index_value(s.stride[0]),
                                                       v / index_value(s.stride[1])});
          const Value weight = element(task.inputs[1], {channel, filter, k[1], k[2]});
          return ir::select(hits(0, h) && hits(1, v),
                            ir::cast(pixel, ir::Type(wide)) * ir::cast(weight, ir::Type(wide)),
                            constant(0, wide));
        });
    return ir::cast(total, ir::Type(out.dtype));
  })};
  return task;
}

using Ints = std::vector<int64_t>;
Attrs attrs_of(Ints stride, Ints pads, Ints dilation, Ints extra, int64_t groups) {
  return {{"stride", std::move(stride)},
          {"pads", std::move(pads)},
          {"dilation", std::move(dilation)},
          {"output_padding", std::move(extra)},
          {"groups", groups}};
}
}  // namespace

void register_conv_transpose2d(OpRegistry& ops) {
  const Attrs twice = attrs_of({2, 2}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 1);
  ops.add({.name = kName,
           .doc = "transposed convolution of x [n, c, h, w] with weight [c, o/groups, kh, kw]",
           .infer = infer,
           .compute = compute,
           .samples = {{{{f32, {2, 3, 5, 4}}, {f32, {3, 5, 3, 3}}}, twice},
                       {{{f16, {1, 4, 3, 3}}, {f16, {4, 2, 3, 3}}}, twice},
                       {{{bf16, {1, 4, 3, 3}}, {bf16, {4, 2, 2, 2}}}, twice},
                       {{{f64, {1, 4, 4, 5}}, {f64, {4, 3, 2, 3}}},
                        attrs_of({3, 1}, {0, 1, 2, 0}, {1, 2}, {2, 0}, 2)},
                       {{{f32, {1, 4, 1, 1}}, {f32, {4, 1, 3, 3}}},
                        attrs_of({2, 2}, {-1, 0, 0, 1}, {1, 1}, {0, 0}, 4)},
                       {{{i32, {1, 2, 4, 4}}, {i32, {2, 3, 3, 3}}}, twice},
                       {{{f32, {"n", 2, 5, 5}}, {f32, {2, 3, 3, 3}}}, twice},
                       {{{f32, {2, 2, "n", 5}}, {f32, {2, 3, 3, 3}}}, twice},
                       {{{f32, {0, 2, 5, 5}}, {f32, {2, 3, 3, 3}}}, twice}}});
}

}  // namespace hidet::graph

namespace hidet::ops {

namespace {
using Ints = std::vector<int64_t>;

/// Kernel rows (d 0) or columns (d 1) that outputs of one phase read: every stride-th.
int64_t positions(int64_t kernel, int64_t stride, int64_t first) {
  return (kernel - first + stride - 1) / stride;
}

/// What the phases need: plain convolutions of a known kernel that has a position for each phase and reaches every output.
bool has_phases(const Tensor& x, const Tensor& weight, const Ints& stride, const Ints& pads,
                const Ints& dilation, const Ints& extra, int64_t groups) {
  const auto in = x.shape_expr(), w = weight.shape_expr();
  if (in.size() != 4 || w.size() != 4 || !is_concrete(w) || x.dtype() != weight.dtype() ||
      !(in[1] == w[0]) || groups != 1 || dilation != Ints{1, 1} || stride.size() != 2 ||
      pads.size() != 4 || extra.size() != 2)
    return false;
  for (size_t d = 0; d < 2; d++) {
    const int64_t kernel = w[2 + d].value(), s = stride[d];
    if (s < 1 || kernel < s || extra[d] < 0 || pads[d] < 0 || pads[2 + d] < 0) return false;
    if (kernel + extra[d] - pads[2 + d] > positions(kernel, s, 0) * s) return false;
    const DimExpr size = (in[2 + d] - 1) * s + kernel + extra[d] - pads[d] - pads[2 + d];
    if (size.is_const() && size.value() < 0) return false;
  }
  return true;
}

/// Outputs whose place is the same modulo the stride, a phase, are a convolution with every stride-th row and column of the
/// kernel, turned around. Where all phases have as many of these, they are channels of one convolution.
Tensor phases(const Tensor& x, const Tensor& weight, const Ints& stride, const Ints& pads,
              const Ints& extra) {
  const auto in = x.shape_expr(), w = weight.shape_expr();
  const Ints kernel{w[2].value(), w[3].value()};
  const int64_t rows = positions(kernel[0], stride[0], 0),
                columns = positions(kernel[1], stride[1], 0);
  const bool equal = kernel[0] % stride[0] == 0 && kernel[1] % stride[1] == 0;
  const int64_t to_the_end = std::numeric_limits<int64_t>::min();
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < stride[0]; i++)
    for (int64_t j = 0; j < stride[1]; j++) {
      const int64_t r = positions(kernel[0], stride[0], i), s = positions(kernel[1], stride[1], j);
      const Tensor part =
          transpose(slice(weight, {i + (r - 1) * stride[0], j + (s - 1) * stride[1]},
                          {to_the_end, to_the_end}, {2, 3}, {-stride[0], -stride[1]}),
                    {1, 0, 2, 3});
      parts.push_back(equal ? part
                            : conv2d(x, part, {1, 1}, {r - 1, s - 1, rows - 1, columns - 1}));
    }
  Tensor all = parts.size() == 1 ? parts[0] : concat(parts, equal ? 0 : 1);
  if (equal) all = conv2d(x, all, {1, 1}, {rows - 1, columns - 1, rows - 1, columns - 1});
  const DimExpr height = in[2] + (rows - 1), width = in[3] + (columns - 1);
  const Tensor split = reshape(all, {in[0], stride[0], stride[1], w[1], height, width});
  const Tensor whole = reshape(transpose(split, {0, 3, 4, 1, 5, 2}),
                               {in[0], w[1], height * stride[0], width * stride[1]});
  const auto end = [&](size_t d) {
    return (in[2 + d] - 1) * stride[d] + kernel[d] + extra[d] - pads[2 + d];
  };
  return slice(whole, {pads[0], pads[1]}, {end(0), end(1)}, {2, 3}, {1, 1});
}
}  // namespace

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const std::vector<int64_t>& stride,
                        const std::vector<int64_t>& pads, const std::vector<int64_t>& dilation,
                        const std::vector<int64_t>& output_padding, int64_t groups) {
  if (has_phases(x, weight, stride, pads, dilation, output_padding, groups))
    return phases(x, weight, stride, pads, output_padding);
  return graph::apply("conv_transpose2d", {x, weight},
                      {{"stride", stride},
                       {"pads", pads},
                       {"dilation", dilation},
                       {"output_padding", output_padding},
                       {"groups", groups}})[0];
}

}  // namespace hidet::ops
