// ops_nn.cpp - ONNX products, convolutions, pools and normalisations.
// One spatial dimension is done as two, of which the first has the size 1.
// Threading: thread-safe.
#include <hidet/graph/ops.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {
namespace {

using Outputs = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

Outputs matmul(const NodeCall& call) { return {ops::matmul(call.input(0), call.input(1))}; }

// alpha * op(A) op(B) + beta * C; C broadcasts to the product, never the other way.
Outputs gemm(const NodeCall& call) {
  Tensor a = call.input(0), b = call.input(1);
  if (a.rank() != 2 || b.rank() != 2)
    call.fail("needs matrices, got ", a.describe(), " and ", b.describe());
  if (call.attr_int("transA", 0) != 0) a = ops::transpose(a, {1, 0});
  if (call.attr_int("transB", 0) != 0) b = ops::transpose(b, {1, 0});
  Tensor out = ops::matmul(a, b);
  const double alpha = call.attr_float("alpha", 1), beta = call.attr_float("beta", 1);
  if (alpha != 1) out = ops::mul(out, ops::scalar_like(out, alpha));
  if (!call.has_input(2) || beta == 0) return {out};
  const Tensor& c = call.input(2);
  const auto from = c.shape_expr(), to = out.shape_expr();
  bool fits = from.size() <= 2;
  for (size_t i = 0; fits && i < from.size(); i++) {
    const DimExpr &have = from[from.size() - 1 - i], &need = to[to.size() - 1 - i];
    fits = have.is_const(1) || !have.is_const() || !need.is_const() || have == need;
  }
  if (!fits) call.fail("C ", c.describe(), " does not broadcast to ", shape_text(to));
  return {ops::add(out, beta == 1 ? c : ops::mul(c, ops::scalar_like(c, beta)))};
}

/// The window of a convolution or pool; one entry for each of two spatial dimensions.
struct Window {
  Ints kernel, stride, dilation;
  Ints pads;  ///< top, left, bottom, right
  bool flat;  ///< the file has one spatial dimension
};

Ints window_attr(const NodeCall& call, const char* name, size_t count, int64_t fallback) {
  const Ints out = call.attr_ints(name, Ints(count, fallback));
  if (out.size() != count) call.fail(name, " has ", out.size(), " values, expected ", count);
  for (int64_t v : out)
    if (v < (fallback == 0 ? 0 : 1)) call.fail(name, " has the value ", v);
  return out;
}

// SAME: as many outputs as ceil(size / stride); an odd pad goes to the end (UPPER) or the begin.
void same_pads(const NodeCall& call, Window& window, bool upper) {
  const std::vector<DimExpr> shape = call.shape(0);
  const size_t count = window.kernel.size();
  for (size_t i = 0; i < count; i++) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilation[i] + 1;
    int64_t total = reach - 1;
    if (window.stride[i] != 1) {
      const DimExpr& size = shape[2 + i];
      if (!size.is_const())
        call.unsupported("auto_pad with a stride needs a fixed size, axis ", 2 + i, " is ", size);
      const int64_t out = (size.value() + window.stride[i] - 1) / window.stride[i];
      total = (out - 1) * window.stride[i] + reach - size.value();
    }
    total = std::max<int64_t>(total, 0);
    window.pads[i] = upper ? total / 2 : total - total / 2;
    window.pads[count + i] = total - window.pads[i];
  }
}

/// `pads`: auto_pad means what it does for a convolution.
Window window_of(const NodeCall& call, const Ints& kernel_fallback, bool pads = true) {
  const int64_t spatial = call.rank(0) - 2;
  if (spatial < 1 || call.rank(0) < 3) call.fail("the input has ", call.rank(0), " dimensions");
  if (spatial > 2) call.unsupported("has ", spatial, " spatial dimensions; 1 and 2 are supported");
  const auto count = static_cast<size_t>(spatial);
  Window out;
  out.kernel = call.attr_ints("kernel_shape", kernel_fallback);
  if (out.kernel.size() != count || *std::min_element(out.kernel.begin(), out.kernel.end()) < 1)
    call.fail("kernel_shape does not fit ", count, " spatial dimensions");
  out.stride = window_attr(call, "strides", count, 1);
  out.dilation = window_attr(call, "dilations", count, 1);
  out.pads = window_attr(call, "pads", 2 * count, 0);
  const std::string how = call.attr_string("auto_pad", "NOTSET");
  if (how == "SAME_UPPER" || how == "SAME_LOWER") {
    if (pads) same_pads(call, out, how == "SAME_UPPER");
  } else if (how == "VALID") out.pads.assign(2 * count, 0);
  else if (how != "NOTSET" && how != "") call.fail("auto_pad is '", how, "'");
  out.flat = spatial == 1;
  if (!out.flat) return out;
  for (Ints* list : {&out.kernel, &out.stride, &out.dilation}) list->insert(list->begin(), 1);
  out.pads = {0, out.pads[0], 0, out.pads[1]};
  return out;
}

// [n, c, w] as [n, c, 1, w], and back.
Tensor lift(const Tensor& x, bool flat) { return flat ? ops::unsqueeze(x, {2}) : x; }
Tensor drop(const Tensor& x, bool flat) { return flat ? ops::squeeze(x, {2}) : x; }

Outputs conv(const NodeCall& call) {
  const Tensor& weight = call.input(1);
  const auto shape = weight.shape_expr();
  if (!is_concrete(shape))
    call.unsupported("its weight has the symbolic shape ", shape_text(shape));
  if (shape.size() != call.shape(0).size())
    call.fail("the weight ", weight.describe(), " does not fit ", call.input(0).describe());
  const Ints sizes = ints_of(shape);
  const Window window = window_of(call, Ints(sizes.begin() + 2, sizes.end()));
  if (!std::equal(sizes.begin() + 2, sizes.end(), window.kernel.begin() + (window.flat ? 1 : 0)))
    call.fail("kernel_shape differs from the weight ", weight.describe());
  const int64_t groups = call.attr_int("group", 1);
  if (groups < 1 || sizes[0] % groups != 0)
    call.fail("has ", groups, " groups for ", sizes[0], " output channels");
  Tensor out = ops::conv2d(lift(call.input(0), window.flat), lift(weight, window.flat),
                           window.stride, window.pads, window.dilation, groups);
  if (call.has_input(2)) {
    const auto bias = call.shape(2);
    if (bias.size() != 1 || !(bias[0] == shape[0]))
      call.fail("the bias has the shape ", shape_text(bias), ", expected ", shape[0], " values");
    out = ops::add(out, ops::reshape(call.input(2), {1, shape[0], 1, 1}));
  }
  return {drop(out, window.flat)};
}

/// The pads of a transposed convolution: as given, or what auto_pad or output_shape leave.
void transposed_pads(const NodeCall& call, Window& window, const Ints& extra) {
  const std::string how = call.attr_string("auto_pad", "NOTSET");
  const bool same = how == "SAME_UPPER" || how == "SAME_LOWER";
  Ints wanted = call.attr_ints("output_shape");
  if (!same && wanted.empty()) return;
  const std::vector<DimExpr> shape = call.shape(0);
  const size_t from = window.flat ? 1 : 0, count = 2 - from;
  if (!wanted.empty() && wanted.size() != count)
    call.fail("output_shape has ", wanted.size(), " values for ", count, " dimensions");
  for (size_t i = from; i < 2; i++) {
    const DimExpr& size = shape[2 + i - from];
    const int64_t stride = window.stride[i];
    int64_t total = (window.kernel[i] - 1) * window.dilation[i] + 1 + extra[i] - stride;
    if (!wanted.empty()) {
      if (!size.is_const()) call.unsupported("output_shape needs a fixed size, not ", size);
      total += size.value() * stride - wanted[i - from];
    }
    // What the windows do not reach (a negative total) is added at the end.
    const int64_t cut = std::max<int64_t>(total, 0), less = cut / 2;
    window.pads[i] = how == "SAME_UPPER" ? less : cut - less;
    window.pads[2 + i] = total - window.pads[i];
  }
}

Outputs conv_transpose(const NodeCall& call) {
  const Tensor& weight = call.input(1);
  const auto shape = weight.shape_expr();
  if (!is_concrete(shape))
    call.unsupported("its weight has the symbolic shape ", shape_text(shape));
  if (shape.size() != call.shape(0).size() || shape.size() < 3)
    call.fail("the weight ", weight.describe(), " does not fit ", call.input(0).describe());
  const Ints sizes = ints_of(shape);
  Window window = window_of(call, Ints(sizes.begin() + 2, sizes.end()), false);
  Ints extra = window_attr(call, "output_padding", sizes.size() - 2, 0);
  if (window.flat) extra.insert(extra.begin(), 0);
  transposed_pads(call, window, extra);
  const int64_t groups = call.attr_int("group", 1);
  Tensor out = ops::conv_transpose2d(lift(call.input(0), window.flat), lift(weight, window.flat),
                                     window.stride, window.pads, window.dilation, extra, groups);
  if (call.has_input(2)) {
    const auto bias = call.shape(2);
    if (bias.size() != 1 || !(bias[0] == shape[1] * groups))
      call.fail("the bias has the shape ", shape_text(bias), ", expected ", shape[1] * groups,
                " values");
    out = ops::add(out, ops::reshape(call.input(2), {1, bias[0], 1, 1}));
  }
  return {drop(out, window.flat)};
}

Outputs max_pool(const NodeCall& call) {
  const Window window = window_of(call, {});
  return {drop(ops::max_pool2d(lift(call.input(0), window.flat), window.kernel, window.stride,
                               window.pads, window.dilation, call.attr_int("ceil_mode", 0) != 0),
               window.flat)};
}

Outputs average_pool(const NodeCall& call) {
  const Window window = window_of(call, {});
  if (window.dilation != Ints{1, 1}) call.unsupported("dilations other than 1");
  return {drop(ops::avg_pool2d(lift(call.input(0), window.flat), window.kernel, window.stride,
                               window.pads, call.attr_int("count_include_pad", 0) != 0,
                               call.attr_int("ceil_mode", 0) != 0),
               window.flat)};
}

Ints spatial_axes(const NodeCall& call) {
  if (call.rank(0) < 3)
    call.fail("the input has ", call.rank(0), " dimensions, expected 3 or more");
  Ints axes(call.rank(0) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}
Outputs global_average_pool(const NodeCall& call) {
  return {ops::reduce_mean(call.input(0), spatial_axes(call), true)};
}
Outputs global_max_pool(const NodeCall& call) {
  return {ops::reduce_max(call.input(0), spatial_axes(call), true)};
}

Outputs batch_norm(const NodeCall& call) {
  if (call.attr_int("training_mode", 0) != 0) call.unsupported("training_mode is set");
  return {ops::batch_norm(call.input(0), call.input(1), call.input(2), call.input(3), call.input(4),
                          call.attr_float("epsilon", 1e-5f))};
}

// The second and third output, mean and 1 / deviation, are rarely asked for.
Outputs layer_norm(const NodeCall& call) {
  const int64_t axis = call.axis(call.attr_int("axis", -1), call.rank(0));
  const double epsilon = call.attr_float("epsilon", 1e-5f);
  const Tensor& x = call.input(0);
  const Tensor bias = call.has_input(2) ? call.input(2) : Tensor();
  Outputs out{ops::layer_norm(x, call.input(1), bias, axis, epsilon)};
  if (call.output_count() == 1) return out;
  Ints axes(call.rank(0) - axis);
  std::iota(axes.begin(), axes.end(), axis);
  const Tensor wide = x.dtype().bits() < 32 ? ops::cast(x, f32) : x;
  const Tensor mean = ops::reduce_mean(wide, axes, true);
  const Tensor centred = ops::sub(wide, mean);
  const Tensor variance = ops::reduce_mean(ops::mul(centred, centred), axes, true);
  out.push_back(mean);
  out.push_back(ops::rsqrt(ops::add(variance, ops::scalar_like(variance, epsilon))));
  return out;
}

Outputs softmax(const NodeCall& call) {
  return {ops::softmax(call.input(0), call.axis(call.attr_int("axis", -1), call.rank(0)))};
}
Outputs log_softmax(const NodeCall& call) {
  return {ops::log_softmax(call.input(0), call.axis(call.attr_int("axis", -1), call.rank(0)))};
}

constexpr auto kAny = kAnyOpset;
const std::array kRows = std::to_array<Converter>({
    {"AveragePool", 1, kAny, average_pool},
    {"BatchNormalization", 9, kAny, batch_norm},
    {"Conv", 1, kAny, conv},
    {"ConvTranspose", 1, kAny, conv_transpose},
    {"Gemm", 7, kAny, gemm},
    {"GlobalAveragePool", 1, kAny, global_average_pool},
    {"GlobalMaxPool", 1, kAny, global_max_pool},
    {"LayerNormalization", 17, kAny, layer_norm},
    {"LogSoftmax", 13, kAny, log_softmax},
    {"MatMul", 1, kAny, matmul},
    {"MaxPool", 1, kAny, max_pool},
    {"Softmax", 13, kAny, softmax},
});

}  // namespace

std::span<const Converter> nn_converters() { return kRows; }

}  // namespace hidet::graph::onnx
