// gemm.h - products of matrices for the reference evaluator, through Eigen.
// Threading: thread-safe; uses the process's threads.
#pragma once
#include <hidet/runtime/tensor.h>

namespace hidet::graph {

/// c[m, n] = a[m, k] b[k, n], row major, T float or double; c is overwritten.
void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);
void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k);

/// Elements of any float dtype as f32, or as f64 where they are f64; and back into `to`'s dtype.
Tensor widened(const Tensor& x);
Tensor narrowed(const Tensor& x, DType to);

}  // namespace hidet::graph
