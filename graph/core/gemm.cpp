// gemm.cpp - products of matrices through Eigen, split over threads by rows or columns of the result.
#include "core/gemm.h"

#include <hidet/runtime/thread_pool.h>

#include <Eigen/Core>
#include <algorithm>

namespace hidet::graph {
namespace {

template <class T>
void product_of(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Strided = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  using Result = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
  if (m == 0 || n == 0) return;
  if (k == 0) {
    std::fill_n(c, m * n, T(0));
    return;
  }
  constexpr int64_t kBlock = 64;  // a fixed cut, so that results do not depend on the threads
  const bool by_rows = m >= n;
  const int64_t blocks = ((by_rows ? m : n) + kBlock - 1) / kBlock;
  const int64_t grain = std::max<int64_t>(
      1, (int64_t{1} << 18) / std::max<int64_t>(1, kBlock * k * (by_rows ? n : m)));
  runtime::parallel_for(blocks, grain, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; block++) {
      const int64_t at = block * kBlock, count = std::min(kBlock, (by_rows ? m : n) - at);
      if (by_rows)
        Result(c + at * n, count, n, Eigen::OuterStride<>(n)).noalias() =
            Strided(a + at * k, count, k, Eigen::OuterStride<>(k)) *
            Strided(b, k, n, Eigen::OuterStride<>(n));
      else
        Result(c + at, m, count, Eigen::OuterStride<>(n)).noalias() =
            Strided(a, m, k, Eigen::OuterStride<>(k)) *
            Strided(b + at, k, count, Eigen::OuterStride<>(n));
    }
  });
}

template <class From, class To, class F>
void convert(const Tensor& from, const Tensor& to, F f) {
  const auto* x = static_cast<const From*>(from.data());
  auto* y = static_cast<To*>(to.data());
  for (int64_t i = 0, n = from.num_elements(); i < n; i++) y[i] = f(x[i]);
}
}  // namespace

void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  product_of(a, b, c, m, n, k);
}
void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k) {
  product_of(a, b, c, m, n, k);
}

Tensor widened(const Tensor& x) {
  if (!(x.dtype() == f16) && !(x.dtype() == bf16)) return x;
  Tensor out = empty(x.shape(), f32);
  if (x.dtype() == f16) convert<uint16_t, float>(x, out, f16_to_f32);
  else convert<uint16_t, float>(x, out, bf16_to_f32);
  return out;
}

Tensor narrowed(const Tensor& x, DType to) {
  if (x.dtype() == to) return x;
  Tensor out = empty(x.shape(), to);
  if (to == f16) convert<float, uint16_t>(x, out, f32_to_f16);
  else convert<float, uint16_t>(x, out, f32_to_bf16);
  return out;
}

}  // namespace hidet::graph
