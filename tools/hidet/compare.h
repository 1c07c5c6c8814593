// compare.h - whether a result is right: differences, tolerances by dtype, and the inputs and outputs stored with a model.
// Threading: pure functions.
#pragma once
#include <hidet/hidet.h>

#include <optional>
#include <string>
#include <vector>

namespace hidet::tools {

/// How two tensors differ.
struct Difference {
  double worst = 0;       ///< largest difference of two finite values
  double scale = 0;       ///< largest finite expected value
  bool same_kind = true;  ///< dtypes, shapes, NaN and infinities agree
};
Difference compare(const Tensor& got, const Tensor& expected);

/// What is allowed: atol + rtol * scale. Without numbers of the user those of the dtype: some units of the last place of
/// the largest value, as sums are taken in another order; integers must be equal.
struct Tolerance {
  std::optional<double> rtol, atol;
  bool accepts(const Difference& d, DType dtype) const;
};

/// input_0.pb, input_1.pb ... (or output_0.pb ...) of a folder such as test_data_set_0, as ONNX stores test data. Values that a
/// file keeps as raw 16 bits become bf16 where `signatures` say so.
std::vector<Tensor> stored_tensors(const std::string& folder, const std::string& kind,
                                   const std::vector<TensorSignature>& signatures);

}  // namespace hidet::tools
