// conv2d.cpp - convolution of [n, c, h, w] with groups, pads and dilation. f16 and bf16 accumulate in f32.
// Task attributes: kernel_h/w, stride_h/w, pad_t/l/b/r, dilation_h/w, groups.
#include <hidet/graph/ops.h>

#include "core/gemm.h"
#include "core/window.h"

namespace hidet::graph {
namespace {
using ir::Value;
constexpr const char* kName = "conv2d";

Window window_of(const OpCall& call) {
  const Dims& w = call.inputs[1].shape;
  HIDET_OP_REQUIRE(w.size() == 4 && is_concrete(w), kName, "the weight has the shape ",
                   shape_text(w), ", not four numbers");
  Window window{{w[2].value(), w[3].value()},
                call.attrs.integers("stride"),
                call.attrs.integers("pads"),
                call.attrs.integers("dilation")};
  window.check(kName);
  return window;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  op_inputs(kName, call, 2);
  op_same_dtype(kName, call);
  const TensorSpec& x = call.inputs[0];
  const Dims& w = call.inputs[1].shape;
  HIDET_OP_REQUIRE(x.shape.size() == 4 && w.size() == 4, kName, "the shapes ", shape_text(x.shape),
                   " and ", shape_text(w), " are not both of rank 4");
  HIDET_OP_REQUIRE(!x.dtype.is_boolean(), kName, "takes numbers, not boolean", shape_text(x.shape));
  const int64_t groups = call.attrs.integer("groups");
  const Window window = window_of(call);
  HIDET_OP_REQUIRE(groups >= 1 && w[0].value() % groups == 0, kName, groups,
                   " groups do not divide ", w[0], " output channels of ", shape_text(w));
  HIDET_OP_REQUIRE(!x.shape[1].is_const() || x.shape[1] == w[1] * groups, kName, "the input ",
                   shape_text(x.shape), " has ", x.shape[1], " channels, the weight ",
                   shape_text(w), " in ", groups, " groups takes ", w[1] * groups);
  return {{x.dtype,
           {x.shape[0], w[0], window.out_size(kName, 0, x.shape[2]),
            window.out_size(kName, 1, x.shape[3])}}};
}

ir::Task compute(const OpCall& call) {
  const TensorSpec &x = call.inputs[0], &w = call.inputs[1];
  const TensorSpec out = infer(call)[0];
  const Window window = window_of(call);
  const int64_t groups = call.attrs.integer("groups");
  const DType wide = working_dtype(x.dtype);
  ir::Task task = new_task(kName, call);
  window.set_attrs(task);
  task.attrs["groups"] = groups;
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    const Value total =
        reduce(ir::ReduceOp::sum, {w.shape[1], w.shape[2], w.shape[3]}, [&](const Values& k) {
          const Value h = window.coordinate(0, at[2], k[1]), v = window.coordinate(1, at[3], k[2]);
          const Value group = at[1] / index_value(w.shape[0].value() / groups);
          const Value channel = groups == 1 ? k[0] : group * index_value(w.shape[1]) + k[0];
          Value pixel = ir::cast(element(task.inputs[0], {at[0], channel, h, v}), ir::Type(wide));
          if (window.padded())
            pixel = ir::select(inside(h, x.shape[2], v, x.shape[3]), pixel, constant(0, wide));
          return pixel *
                 ir::cast(element(task.inputs[1], {at[1], k[0], k[1], k[2]}), ir::Type(wide));
        });
    return ir::cast(total, ir::Type(out.dtype));
  })};
  return task;
}

/// Columns [channels * kernel, out pixels] of one image's channels from `first` on.
template <class T>
void unfold(const Window& window, const T* image, const Shape& x, const Shape& y, int64_t channels,
            T* columns) {
  for (int64_t c = 0; c < channels; c++)
    for (int64_t kh = 0; kh < window.kernel[0]; kh++)
      for (int64_t kw = 0; kw < window.kernel[1]; kw++)
        for (int64_t oh = 0; oh < y[2]; oh++) {
          const int64_t h = oh * window.stride[0] + kh * window.dilation[0] - window.pads[0];
          for (int64_t ow = 0; ow < y[3]; ow++) {
            const int64_t w = ow * window.stride[1] + kw * window.dilation[1] - window.pads[1];
            const bool in = h >= 0 && h < x[2] && w >= 0 && w < x[3];
            *columns++ = in ? image[(c * x[2] + h) * x[3] + w] : T(0);
          }
        }
}

template <class T>
void convolve(const Window& window, int64_t groups, const Tensor& x, const Tensor& w,
              const Tensor& y) {
  const Shape &xs = x.shape(), &ws = w.shape(), &ys = y.shape();
  const int64_t depth = ws[1] * ws[2] * ws[3], pixels = ys[2] * ys[3], outs = ws[0] / groups;
  std::vector<T> columns(static_cast<size_t>(depth * pixels));
  for (int64_t n = 0; n < xs[0]; n++)
    for (int64_t g = 0; g < groups; g++) {
      const T* image = static_cast<const T*>(x.data()) + (n * xs[1] + g * ws[1]) * xs[2] * xs[3];
      unfold(window, image, xs, ys, ws[1], columns.data());
      gemm(static_cast<const T*>(w.data()) + g * outs * depth, columns.data(),
           static_cast<T*>(y.data()) + (n * ys[1] + g * outs) * pixels, outs, pixels, depth);
    }
}

std::vector<Tensor> reference(const OpCall& call, const std::vector<Tensor>& inputs) {
  const TensorSpec out = infer(call)[0];
  if (!out.dtype.is_float()) return interpret(compute(call), inputs);
  const Tensor x = widened(inputs[0]), w = widened(inputs[1]);
  const Tensor y = empty(to_concrete(out.shape), x.dtype());
  if (y.num_elements() > 0) {
    if (x.dtype() == f64) convolve<double>(window_of(call), call.attrs.integer("groups"), x, w, y);
    else convolve<float>(window_of(call), call.attrs.integer("groups"), x, w, y);
  }
  return {narrowed(y, out.dtype)};
}

using Ints = std::vector<int64_t>;
Attrs attrs_of(Ints stride, Ints pads, Ints dilation, int64_t groups) {
  return {{"stride", std::move(stride)},
          {"pads", std::move(pads)},
          {"dilation", std::move(dilation)},
          {"groups", groups}};
}
}  // namespace

void register_conv2d(OpRegistry& ops) {
  const Attrs same = attrs_of({1, 1}, {1, 1, 1, 1}, {1, 1}, 1);
  ops.add(
      {.name = kName,
       .doc = "convolution of x [n, c, h, w] with weight [o, c/groups, kh, kw]",
       .infer = infer,
       .compute = compute,
       .reference = reference,
       .samples = {
           {{{f32, {2, 3, 7, 9}}, {f32, {5, 3, 3, 3}}}, same},
           {{{f16, {1, 4, 6, 6}}, {f16, {5, 4, 3, 3}}}, same},
           {{{f64, {1, 4, 6, 5}}, {f64, {6, 2, 2, 3}}}, attrs_of({2, 1}, {0, 1, 2, 0}, {1, 2}, 2)},
           {{{f32, {1, 4, 9, 9}}, {f32, {4, 1, 3, 3}}}, attrs_of({2, 2}, {1, 1, 1, 1}, {1, 1}, 4)},
           {{{f32, {1, 3, 4, 4}}, {f32, {8, 3, 1, 1}}}, attrs_of({1, 1}, {0, 0, 0, 0}, {1, 1}, 1)},
           {{{i32, {1, 2, 4, 4}}, {i32, {3, 2, 3, 3}}}, same},
           {{{f32, {"n", 2, 5, 5}}, {f32, {3, 2, 3, 3}}}, same},
           {{{f32, {0, 2, 5, 5}}, {f32, {3, 2, 3, 3}}}, same}}});
}

}  // namespace hidet::graph

namespace hidet::ops {
Tensor conv2d(const Tensor& x, const Tensor& weight, const std::vector<int64_t>& stride,
              const std::vector<int64_t>& pads, const std::vector<int64_t>& dilation,
              int64_t groups) {
  return graph::apply(
      "conv2d", {x, weight},
      {{"stride", stride}, {"pads", pads}, {"dilation", dilation}, {"groups", groups}})[0];
}
}  // namespace hidet::ops
