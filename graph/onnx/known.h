// known.h - small integer tensors whose values the importer knows: numbers, or formulas of the
// graph's symbols. Exporters compute shapes with Shape, Gather, Concat, Mul and the like; such
// chains are folded here, so that no operator of them is left in the graph.
// Threading: values; thread-safe.
#pragma once
#include <hidet/runtime/dim_expr.h>
#include <hidet/runtime/dtype.h>

#include <optional>
#include <vector>

namespace hidet::graph::onnx {

/// A tensor of integers or booleans (0, 1) in row-major order.
struct Known {
  /// Larger tensors are data, not shapes: they are not followed.
  static constexpr int64_t kMaxCount = 256;
  DType dtype = i64;
  std::vector<int64_t> dims;
  std::vector<DimExpr> elems;

  bool is_constant() const;
  /// The values; only where is_constant().
  std::vector<int64_t> ints() const;
};

bool is_int(const DimExpr& dim);
/// The number of values of a shape; nothing where it is symbolic or over Known::kMaxCount.
std::optional<int64_t> small_count(const std::vector<DimExpr>& shape);
std::vector<int64_t> ints_of(const std::vector<DimExpr>& shape);

/// The product of one list over that of another, equal factors cancelled first.
DimExpr divide_exactly(const std::vector<DimExpr>& numerator,
                       const std::vector<DimExpr>& denominator);

/// Wraps a constant to the range of `dtype`, as a cast does.
int64_t wrap_to(int64_t value, DType dtype);

}  // namespace hidet::graph::onnx
