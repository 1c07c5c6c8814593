// ops.h - operators for C++ authors. Each takes and returns tensors; on concrete tensors it evaluates at
// once, on symbolic ones it records. Axes may be negative. Errors are Error(usage) that name the operator.
// Threading: thread-safe.
#pragma once
#include <hidet/graph/op.h>

#include <optional>

namespace hidet::ops {

// Elementwise, numpy broadcasting; both sides of one dtype.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);  ///< integers truncate; x / 0 is 0
Tensor mod(const Tensor& a, const Tensor& b,
           bool fmod = true);  ///< fmod: sign of a (C); else the sign of b
Tensor pow(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);  ///< NaN wins
Tensor maximum(const Tensor& a, const Tensor& b);  ///< NaN wins
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor bitwise_and(const Tensor& a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, const Tensor& b);
Tensor where(const Tensor& cond, const Tensor& a, const Tensor& b);
/// A constant of x's dtype, rank 0.
Tensor scalar_like(const Tensor& x, double value);

// Elementwise of one tensor. `unary` takes any name: neg exp log sqrt rsqrt tanh erf sigmoid sin cos tan asin acos
// atan sinh cosh asinh acosh atanh floor ceil round abs sign reciprocal logical_not bitwise_not isnan isinf relu
// gelu (erf) gelu_tanh silu softplus softsign hard_sigmoid hard_swish.
Tensor unary(const std::string& name, const Tensor& x);
Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x);
Tensor silu(const Tensor& x);
Tensor clip(const Tensor& x, std::optional<double> low, std::optional<double> high);
Tensor leaky_relu(const Tensor& x, double alpha = 0.01);
Tensor elu(const Tensor& x, double alpha = 1.0);
Tensor cast(const Tensor& x, DType dtype);

// Products.
/// [.., m, k] x [.., k, n] with broadcast batch dims; rank-1 sides as numpy.
Tensor matmul(const Tensor& a, const Tensor& b);
/// x [n, c, h, w], weight [o, c/groups, kh, kw]; pads [top, left, bottom, right].
Tensor conv2d(const Tensor& x, const Tensor& weight, const std::vector<int64_t>& stride = {1, 1},
              const std::vector<int64_t>& pads = {0, 0, 0, 0},
              const std::vector<int64_t>& dilation = {1, 1}, int64_t groups = 1);
/// x [n, c, h, w], weight [c, o/groups, kh, kw]; the inverse of conv2d's sizes, `output_padding` rows and
/// columns more at the end.
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                        const std::vector<int64_t>& stride = {1, 1},
                        const std::vector<int64_t>& pads = {0, 0, 0, 0},
                        const std::vector<int64_t>& dilation = {1, 1},
                        const std::vector<int64_t>& output_padding = {0, 0}, int64_t groups = 1);

// Windows over [n, c, h, w].
Tensor max_pool2d(const Tensor& x, const std::vector<int64_t>& kernel,
                  const std::vector<int64_t>& stride,
                  const std::vector<int64_t>& pads = {0, 0, 0, 0},
                  const std::vector<int64_t>& dilation = {1, 1}, bool ceil_mode = false);
Tensor avg_pool2d(const Tensor& x, const std::vector<int64_t>& kernel,
                  const std::vector<int64_t>& stride,
                  const std::vector<int64_t>& pads = {0, 0, 0, 0}, bool count_pads = false,
                  bool ceil_mode = false);

// Normalisation. `batch_norm`: inference, per channel (axis 1).
Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean,
                  const Tensor& variance, double epsilon = 1e-5);
Tensor softmax(const Tensor& x, int64_t axis = -1);
Tensor log_softmax(const Tensor& x, int64_t axis = -1);
/// Over the dims from `axis` on; scale and bias of those dims (bias optional: undefined tensor).
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis = -1,
                  double epsilon = 1e-5);

// Reductions over `axes` (empty: all).
Tensor reduce_sum(const Tensor& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Tensor reduce_mean(const Tensor& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Tensor reduce_max(const Tensor& x, const std::vector<int64_t>& axes = {},
                  bool keep_dims = false);  ///< NaN wins
Tensor reduce_min(const Tensor& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Tensor reduce_prod(const Tensor& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Tensor argmax(const Tensor& x, int64_t axis = 0, bool keep_dims = true,
              bool last = false);  ///< i64
Tensor argmin(const Tensor& x, int64_t axis = 0, bool keep_dims = true, bool last = false);

// Moving data.
Tensor reshape(const Tensor& x, const std::vector<DimExpr>& shape);  ///< one size may be -1
Tensor flatten(const Tensor& x, int64_t axis = 1);
Tensor squeeze(const Tensor& x, const std::vector<int64_t>& axes);
Tensor unsqueeze(const Tensor& x, const std::vector<int64_t>& axes);
Tensor transpose(const Tensor& x, const std::vector<int64_t>& perm);
Tensor concat(const std::vector<Tensor>& parts, int64_t axis);
std::vector<Tensor> split(const Tensor& x, int64_t axis, const std::vector<int64_t>& sizes);
/// numpy's x[start:end:step] by axis with ONNX's clamping; INT64_MAX and INT64_MIN are "to the end".
Tensor slice(const Tensor& x, const std::vector<DimExpr>& starts, const std::vector<DimExpr>& ends,
             const std::vector<int64_t>& axes, const std::vector<int64_t>& steps);
/// mode: "constant" (value), "reflect", "edge"; pads [begin of each dim..., end of each dim...]; negative crops.
Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, const std::string& mode = "constant",
           double value = 0);
Tensor expand(const Tensor& x,
              const std::vector<DimExpr>& shape);  ///< broadcast both ways, as ONNX Expand
Tensor gather(const Tensor& x, const Tensor& indices,
              int64_t axis = 0);  ///< negative indices count from the end
Tensor gather_elements(const Tensor& x, const Tensor& indices, int64_t axis = 0);
Tensor tile(const Tensor& x, const std::vector<int64_t>& repeats);
/// How `resize` samples, in ONNX's names. `scale` 0: new size / old size. `begin` and `end` are the region
/// of tf_crop_and_resize, `outside` is its value beyond x.
struct Resize {
  std::string mode = "nearest";  ///< linear, cubic
  std::string coordinates = "half_pixel";
  std::string rounding = "round_prefer_floor";  ///< of nearest
  double scale = 0;
  double cubic = -0.75;
  bool exclude_outside = false;  ///< of cubic
  double begin = 0, end = 1, outside = 0;
};
/// x resampled to `size` along one axis.
Tensor resize(const Tensor& x, int64_t axis, const DimExpr& size, const Resize& how = {});
/// start, start + step ... : `count` values.
Tensor range(const DimExpr& start, const DimExpr& count, int64_t step, DType dtype = i64,
             Device device = {});
/// A tensor of one value.
Tensor full(const std::vector<DimExpr>& shape, double value, DType dtype, Device device = {});
/// The sizes of x as i64[rank]; a symbolic size is computed at run time.
Tensor shape(const Tensor& x);
/// i64 tensor of formulas (rank 1, or rank 0 where `scalar`).
Tensor dims(const std::vector<DimExpr>& values, bool scalar = false, Device device = {});

}  // namespace hidet::ops

namespace hidet {
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
}  // namespace hidet
