// samples.h - concrete inputs for the operators' samples, and comparison of tensors.
#pragma once
#include <gtest/gtest.h>
#include <hidet/graph/flow_graph.h>
#include <hidet/graph/ops.h>
#include <hidet/runtime/error.h>

#include <cmath>

namespace hidet::test {

inline Shape shape_of(const std::vector<DimExpr>& dims, const SymbolMap& symbols) {
  Shape out;
  for (const DimExpr& d : dims) out.push_back(d.eval(symbols));
  return out;
}

/// Random values: floats near 0, integers of the sample's range.
inline Tensor fill(const graph::TensorSpec& spec, const graph::OpSample& sample,
                   const SymbolMap& symbols, uint64_t seed) {
  const Shape shape = shape_of(spec.shape, symbols);
  if (spec.dtype.is_float()) return randn(shape, spec.dtype, {}, seed);
  if (spec.dtype.is_boolean()) return randint(shape, 0, 2, boolean, {}, seed);
  const int64_t low = spec.dtype.is_signed() ? std::max<int64_t>(sample.low, spec.dtype.min_int())
                                             : std::max<int64_t>(sample.low, 0);
  const auto high = static_cast<int64_t>(
      std::min<uint64_t>(static_cast<uint64_t>(sample.high), spec.dtype.max_int()));
  return randint(shape, low, high, spec.dtype, {}, seed);
}

inline double tolerance(DType t) {
  return t == f64 ? 1e-12 : t == f32 ? 1e-5 : t == f16 ? 2e-3 : t == bf16 ? 1.6e-2 : 0;
}

inline void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.dtype().name(), std::string(expected.dtype().name())) << what;
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  const std::vector<double> a = got.to_doubles(), b = expected.to_doubles();
  const double tol = tolerance(expected.dtype());
  for (size_t i = 0; i < a.size(); i++) {
    if (std::isnan(b[i]) || std::isinf(b[i])) {
      ASSERT_TRUE(std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i])
          << what << " element " << i << ": " << a[i] << ", expected " << b[i];
    } else {
      ASSERT_LE(std::fabs(a[i] - b[i]), tol * (1 + std::fabs(b[i])))
          << what << " element " << i << ": " << a[i] << ", expected " << b[i];
    }
  }
}

template <class T>
std::vector<T> values(const Tensor& t) {
  return t.to_vector<T>();
}

}  // namespace hidet::test
