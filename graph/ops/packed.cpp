// packed.cpp - the inner operators of the CPU: products with packed weights and convolutions in NHWC. Made by the
// packing pass, not by users. Weights lie in panels of 16 output columns, [ceil(n/16)][k][16], zero beyond n: 64 bytes a
// row at every CPU level, so that levels share them.
#include <hidet/graph/op.h>
#include <hidet/ir/dim.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/thread_pool.h>

#include "core/gemm.h"
#include "core/op_common.h"

#include <algorithm>

namespace hidet::graph {
using ir::Value;

namespace {

constexpr int64_t kPanel = 16;

DimExpr panels(const DimExpr& n) { return ceildiv(n, kPanel); }
Value zero(DType t) { return Value(ir::make_const(0, t)); }
/// `value` of a column of a panel, 0 behind the last of `n`. Full panels have no such columns: they are copied by vectors.
Value in_panel(const Value& column, const DimExpr& n, const Value& value, DType t) {
  const bool full = n.is_const() && n.value() % kPanel == 0;
  return full ? value : ir::select(column < Value(n), value, zero(t));
}

ir::Task start(const char* name, const OpCall& c) {
  ir::Task t;
  t.name = name;
  for (size_t i = 0; i < c.inputs.size(); i++)
    t.inputs.push_back(task_input(static_cast<int>(i), c.inputs[i]));
  return t;
}
ir::Task finish(ir::Task t, ir::VarRef output) {
  t.outputs = {std::move(output)};
  t.inverse_maps.resize(t.inputs.size());
  return t;
}

// --- references: plain matrices again, then Eigen's products

/// Panels [ceil(n/16)][k][16] as [k, n].
template <class T>
std::vector<T> plain_weight(const Tensor& panels, int64_t n) {
  const int64_t k = panels.shape(1);
  const T* from = static_cast<const T*>(panels.data());
  std::vector<T> out(static_cast<size_t>(k * n));
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; j < n; j++)
      out[i * n + j] = from[(j / kPanel * k + i) * kPanel + j % kPanel];
  return out;
}

/// How a reference of floats is evaluated in a type as wide as its accumulator.
template <class F>
std::vector<Tensor> in_wide_type(const OpCall& c, const std::vector<Tensor>& inputs,
                                 const std::vector<TensorSpec>& specs,
                                 ir::Task (*compute)(const OpCall&), F run) {
  if (!specs[0].dtype.is_float()) return interpret(compute(c), inputs);
  const Tensor x = widened(inputs[0]), w = widened(inputs[1]);
  const Tensor y = empty(to_concrete(specs[0].shape), x.dtype());
  if (y.num_elements() > 0) {
    if (x.dtype() == f64) run(x, w, y, double());
    else run(x, w, y, float());
  }
  return {narrowed(y, specs[0].dtype)};
}

// --- pack_matmul_weight: [k, n] -> panels
std::vector<TensorSpec> infer_pack_matmul(const OpCall& c) {
  return {{c.inputs[0].dtype, {panels(c.inputs[0].shape[1]), c.inputs[0].shape[0], kPanel}}};
}
ir::Task pack_matmul(const OpCall& c) {
  ir::Task t = start("pack_matmul_weight", c);
  const TensorSpec& x = c.inputs[0];
  auto y = add_compute(t, "y", infer_pack_matmul(c)[0], [&](const std::vector<Value>& i) {
    const Value column = i[0] * kPanel + i[2];
    return in_panel(column, x.shape[1], element(t.inputs[0], {i[1], column}), x.dtype);
  });
  return finish(std::move(t), y);
}

// --- matmul_packed: [.., m, k] x panels -> [.., m, n]
std::vector<TensorSpec> infer_matmul_packed(const OpCall& c) {
  std::vector<DimExpr> shape = c.inputs[0].shape;
  shape.back() = c.attrs.integer("n");
  return {{c.inputs[0].dtype, shape}};
}
ir::Task matmul_packed(const OpCall& c) {
  ir::Task t = start("matmul_packed", c);
  t.attrs["n"] = c.attrs.integer("n");
  auto y = add_compute(t, "y", infer_matmul_packed(c)[0], [&](const std::vector<Value>& i) {
    return reduce(ir::ReduceOp::sum, {c.inputs[0].shape.back()}, [&](const std::vector<Value>& k) {
      std::vector<Value> at(i.begin(), i.end() - 1);
      at.push_back(k[0]);
      return element(t.inputs[0], at) *
             element(t.inputs[1], {i.back() / kPanel, k[0], i.back() % kPanel});
    });
  });
  return finish(std::move(t), y);
}

std::vector<Tensor> matmul_reference(const OpCall& c, const std::vector<Tensor>& inputs) {
  return in_wide_type(c, inputs, infer_matmul_packed(c), matmul_packed,
                      [](const Tensor& x, const Tensor& w, const Tensor& y, auto zero) {
                        using T = decltype(zero);
                        const int64_t k = x.shape(-1), n = y.shape(-1);
                        const std::vector<T> plain = plain_weight<T>(w, n);
                        gemm(static_cast<const T*>(x.data()), plain.data(),
                             static_cast<T*>(y.data()), y.num_elements() / n, n, k);
                      });
}

// --- pack_conv_weight: [o, c, r, s] -> panels with k = (r, s, c)
std::vector<TensorSpec> infer_pack_conv(const OpCall& c) {
  const auto& w = c.inputs[0].shape;
  return {{c.inputs[0].dtype, {panels(w[0]), w[1] * w[2] * w[3], kPanel}}};
}
ir::Task pack_conv(const OpCall& c) {
  ir::Task t = start("pack_conv_weight", c);
  const auto& w = c.inputs[0].shape;
  const Value ch(w[1]), s(w[3]);
  auto y = add_compute(t, "y", infer_pack_conv(c)[0], [&](const std::vector<Value>& i) {
    const Value column = i[0] * kPanel + i[2], tap = i[1] / ch;
    const Value x = element(t.inputs[0], {column, i[1] % ch, tap / s, tap % s});
    return in_panel(column, w[0], x, c.inputs[0].dtype);
  });
  return finish(std::move(t), y);
}

/// Sizes of a window over [n, h, w, c], from the attributes.
struct Window {
  int64_t kernel[2], stride[2], dilation[2], pad[4];  // pads: top, left, bottom, right
  explicit Window(const Attrs& a) {
    const auto& k = a.integers("kernel");
    const auto &s = a.integers("stride"), &d = a.integers("dilation"), &p = a.integers("pads");
    for (int i = 0; i < 2; i++) kernel[i] = k[i], stride[i] = s[i], dilation[i] = d[i];
    for (int i = 0; i < 4; i++) pad[i] = p[i];
  }
  DimExpr out(const DimExpr& in, int i) const {
    return floordiv(in + (pad[i] + pad[i + 2] - dilation[i] * (kernel[i] - 1) - 1), stride[i]) + 1;
  }
  Value at(const Value& o, const Value& k, int i) const {
    return o * stride[i] + k * dilation[i] - pad[i];
  }
  void describe(ir::Task& t) const {
    static const char* const names[] = {"h", "w"};
    for (int i = 0; i < 2; i++) {
      const std::string n = names[i];
      t.attrs["kernel_" + n] = kernel[i];
      t.attrs["stride_" + n] = stride[i];
      t.attrs["dilation_" + n] = dilation[i];
    }
    t.attrs["pad_t"] = pad[0], t.attrs["pad_l"] = pad[1], t.attrs["pad_b"] = pad[2],
    t.attrs["pad_r"] = pad[3];
  }
};
/// x[n, h, w, c], 0 outside the image.
Value padded(const ir::VarRef& x, const TensorSpec& spec, const Value& n, const Value& h,
             const Value& w, const Value& c, const Value& outside) {
  const Value inside = 0 <= h && h < Value(spec.shape[1]) && 0 <= w && w < Value(spec.shape[2]);
  return ir::select(inside, element(x, {n, h, w, c}), outside);
}

// --- conv2d_nhwc: [n, h, w, c] x panels -> [n, oh, ow, o]
std::vector<TensorSpec> infer_conv(const OpCall& c) {
  const Window w(c.attrs);
  const auto& x = c.inputs[0].shape;
  return {{c.inputs[0].dtype, {x[0], w.out(x[1], 0), w.out(x[2], 1), c.attrs.integer("n")}}};
}
ir::Task conv(const OpCall& c) {
  const Window w(c.attrs);
  ir::Task t = start("conv2d_nhwc", c);
  w.describe(t);
  t.attrs["n"] = c.attrs.integer("n");
  const DimExpr channels = c.inputs[0].shape[3];
  auto y = add_compute(t, "y", infer_conv(c)[0], [&](const std::vector<Value>& i) {
    return reduce(
        ir::ReduceOp::sum, {w.kernel[0], w.kernel[1], channels}, [&](const std::vector<Value>& k) {
          const Value x = padded(t.inputs[0], c.inputs[0], i[0], w.at(i[1], k[0], 0),
                                 w.at(i[2], k[1], 1), k[2], zero(c.inputs[0].dtype));
          return x * element(t.inputs[1],
                             {i[3] / kPanel, (k[0] * w.kernel[1] + k[1]) * Value(channels) + k[2],
                              i[3] % kPanel});
        });
  });
  return finish(std::move(t), y);
}

/// Calls `tap(row, k, pixel)` for each output row of image n and tap; `pixel` is its channels, or null outside.
template <class T, class F>
void each_tap(const Window& w, const Tensor& x, const Tensor& y, int64_t row, F tap) {
  const int64_t oh = y.shape(1), ow = y.shape(2), height = x.shape(1), width = x.shape(2);
  const int64_t n = row / (oh * ow), at[2] = {row / ow % oh, row % ow};
  const T* image = static_cast<const T*>(x.data()) + n * height * width * x.shape(3);
  for (int64_t r = 0; r < w.kernel[0]; r++)
    for (int64_t s = 0; s < w.kernel[1]; s++) {
      const int64_t h = at[0] * w.stride[0] + r * w.dilation[0] - w.pad[0];
      const int64_t v = at[1] * w.stride[1] + s * w.dilation[1] - w.pad[1];
      const bool inside = h >= 0 && h < height && v >= 0 && v < width;
      tap(r * w.kernel[1] + s, inside ? image + (h * width + v) * x.shape(3) : nullptr);
    }
}

/// One image row of outputs at a time: its windows as the rows of a matrix, times the weight.
std::vector<Tensor> conv_reference(const OpCall& c, const std::vector<Tensor>& inputs) {
  return in_wide_type(c, inputs, infer_conv(c), conv,
                      [&](const Tensor& x, const Tensor& w, const Tensor& y, auto zero) {
                        using T = decltype(zero);
                        const Window window(c.attrs);
                        const int64_t n = y.shape(3), channels = x.shape(3), depth = w.shape(1);
                        const int64_t rows = y.num_elements() / n, strip = 4096;
                        const std::vector<T> plain = plain_weight<T>(w, n);
                        std::vector<T> columns(static_cast<size_t>(std::min(rows, strip) * depth));
                        for (int64_t first = 0; first < rows; first += strip) {
                          const int64_t count = std::min(strip, rows - first);
                          runtime::parallel_for(count, 64, [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; i++)
                              each_tap<T>(window, x, y, first + i, [&](int64_t k, const T* pixel) {
                                T* to = columns.data() + i * depth + k * channels;
                                if (pixel) std::copy_n(pixel, channels, to);
                                else std::fill_n(to, channels, T(0));
                              });
                          });
                          gemm(columns.data(), plain.data(), static_cast<T*>(y.data()) + first * n,
                               count, n, depth);
                        }
                      });
}

// --- pack_depthwise_weight: [c, 1, r, s] -> [r * s, c]; depthwise_nhwc
std::vector<TensorSpec> infer_pack_depthwise(const OpCall& c) {
  const auto& w = c.inputs[0].shape;
  return {{c.inputs[0].dtype, {w[2] * w[3], w[0]}}};
}
ir::Task pack_depthwise(const OpCall& c) {
  ir::Task t = start("pack_depthwise_weight", c);
  const Value s(c.inputs[0].shape[3]);
  auto y = add_compute(t, "y", infer_pack_depthwise(c)[0], [&](const std::vector<Value>& i) {
    return element(t.inputs[0], {i[1], Value(0), i[0] / s, i[0] % s});
  });
  return finish(std::move(t), y);
}
std::vector<TensorSpec> infer_depthwise(const OpCall& c) {
  const Window w(c.attrs);
  const auto& x = c.inputs[0].shape;
  return {{c.inputs[0].dtype, {x[0], w.out(x[1], 0), w.out(x[2], 1), x[3]}}};
}
ir::Task depthwise(const OpCall& c) {
  const Window w(c.attrs);
  ir::Task t = start("depthwise_nhwc", c);
  w.describe(t);
  auto y = add_compute(t, "y", infer_depthwise(c)[0], [&](const std::vector<Value>& i) {
    return reduce(ir::ReduceOp::sum, {w.kernel[0], w.kernel[1]}, [&](const std::vector<Value>& k) {
      const Value x = padded(t.inputs[0], c.inputs[0], i[0], w.at(i[1], k[0], 0),
                             w.at(i[2], k[1], 1), i[3], zero(c.inputs[0].dtype));
      return x * element(t.inputs[1], {k[0] * w.kernel[1] + k[1], i[3]});
    });
  });
  return finish(std::move(t), y);
}

std::vector<Tensor> depthwise_reference(const OpCall& c, const std::vector<Tensor>& inputs) {
  return in_wide_type(c, inputs, infer_depthwise(c), depthwise,
                      [&](const Tensor& x, const Tensor& w, const Tensor& y, auto zero) {
                        using T = decltype(zero);
                        const Window window(c.attrs);
                        const int64_t channels = x.shape(3);
                        runtime::parallel_for(
                            y.num_elements() / channels, 64, [&](int64_t begin, int64_t end) {
                              for (int64_t i = begin; i < end; i++) {
                                T* to = static_cast<T*>(y.data()) + i * channels;
                                std::fill_n(to, channels, T(0));
                                each_tap<T>(window, x, y, i, [&](int64_t k, const T* pixel) {
                                  const T* weight = static_cast<const T*>(w.data()) + k * channels;
                                  for (int64_t ch = 0; ch < channels; ch++)
                                    to[ch] += (pixel ? pixel[ch] : T(0)) * weight[ch];
                                });
                              }
                            });
                      });
}

// --- max_pool_nhwc, sum_pool_nhwc
ir::Task pool(const char* name, ir::ReduceOp op, const OpCall& c) {
  const Window w(c.attrs);
  ir::Task t = start(name, c);
  w.describe(t);
  const Value outside(ir::reduce_identity(op, c.inputs[0].dtype));
  auto y = add_compute(t, "y", infer_depthwise(c)[0], [&](const std::vector<Value>& i) {
    return reduce(op, {w.kernel[0], w.kernel[1]}, [&](const std::vector<Value>& k) {
      return padded(t.inputs[0], c.inputs[0], i[0], w.at(i[1], k[0], 0), w.at(i[2], k[1], 1), i[3],
                    outside);
    });
  });
  return finish(std::move(t), y);
}
ir::Task max_pool(const OpCall& c) { return pool("max_pool_nhwc", ir::ReduceOp::max, c); }
ir::Task sum_pool(const OpCall& c) { return pool("sum_pool_nhwc", ir::ReduceOp::sum, c); }

Attrs window(int64_t k, int64_t stride, int64_t pad) {
  return {{"kernel", std::vector<int64_t>{k, k}},
          {"stride", std::vector<int64_t>{stride, stride}},
          {"dilation", std::vector<int64_t>{1, 1}},
          {"pads", std::vector<int64_t>{pad, pad, pad, pad}}};
}
Attrs with_n(Attrs a, int64_t n) {
  a.set("n", n);
  return a;
}

}  // namespace

void register_packed(OpRegistry& ops) {
  ops.add({.name = "pack_matmul_weight",
           .doc = "panels of a [k, n] weight",
           .infer = infer_pack_matmul,
           .compute = pack_matmul,
           .samples = {{{{f32, {5, 35}}}, {}}, {{{f32, {3, 32}}}, {}}}});
  ops.add({.name = "matmul_packed",
           .doc = "product with a packed weight of `n` columns",
           .infer = infer_matmul_packed,
           .compute = matmul_packed,
           .reference = matmul_reference,
           .samples = {{{{f32, {"n", 5}}, {f32, {3, 5, 16}}}, {{"n", int64_t{35}}}},
                       {{{f32, {2, 3, 7}}, {f32, {1, 7, 16}}}, {{"n", int64_t{9}}}}}});
  ops.add({.name = "pack_conv_weight",
           .doc = "panels of a [o, c, r, s] weight",
           .infer = infer_pack_conv,
           .compute = pack_conv,
           .samples = {{{{f32, {5, 3, 3, 2}}}, {}}, {{{f32, {16, 3, 1, 2}}}, {}}}});
  ops.add({.name = "conv2d_nhwc",
           .doc = "convolution of [n, h, w, c] with a packed weight of `n` output channels",
           .infer = infer_conv,
           .compute = conv,
           .reference = conv_reference,
           .samples = {{{{f32, {"n", 7, 6, 3}}, {f32, {2, 27, 16}}}, with_n(window(3, 1, 1), 20)},
                       {{{f32, {1, 8, 8, 5}}, {f32, {1, 5, 16}}}, with_n(window(1, 2, 0), 16)}}});
  ops.add({.name = "pack_depthwise_weight",
           .doc = "[r * s, c] of a [c, 1, r, s] weight",
           .infer = infer_pack_depthwise,
           .compute = pack_depthwise,
           .samples = {{{{f32, {5, 1, 3, 3}}}, {}}}});
  ops.add({.name = "depthwise_nhwc",
           .doc = "depthwise convolution of [n, h, w, c] with an [r * s, c] weight",
           .infer = infer_depthwise,
           .compute = depthwise,
           .reference = depthwise_reference,
           .samples = {{{{f32, {"n", 7, 6, 20}}, {f32, {9, 20}}}, window(3, 1, 1)},
                       {{{f32, {1, 9, 8, 33}}, {f32, {9, 33}}}, window(3, 2, 1)}}});
  ops.add({.name = "max_pool_nhwc",
           .doc = "largest value of each window of [n, h, w, c]; NaN wins",
           .infer = infer_depthwise,
           .compute = max_pool,
           .samples = {{{{f32, {"n", 7, 6, 20}}}, window(3, 2, 1)}}});
  ops.add({.name = "sum_pool_nhwc",
           .doc = "sum of each window of [n, h, w, c]",
           .infer = infer_depthwise,
           .compute = sum_pool,
           .samples = {{{{f32, {"n", 7, 6, 20}}}, window(3, 2, 1)},
                       {{{f32, {1, 4, 6, 5}}}, window(2, 2, 0)}}});
}

}  // namespace hidet::graph
