// import_helper.h - imports a model made by onnx_builder.h and runs it with the reference evaluator.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/graph/flow_graph.h>
#include <hidet/runtime/error.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>

#include "onnx_builder.h"

namespace onnx_test {

inline constexpr int kFloat = 1, kInt32 = 6, kInt64 = 7, kBool = 9, kHalf = 10, kDouble = 11;
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// A model file that is removed at the end.
class TempModel {
 public:
  explicit TempModel(const std::string& bytes) {
    static std::atomic<int> count{0};
    path_ = (std::filesystem::temp_directory_path() /
             ("hidet_" + std::to_string(::getpid()) + "_" + std::to_string(count++) + ".onnx"))
                .string();
    write_file(path_, bytes);
  }
  ~TempModel() { std::filesystem::remove(path_); }
  TempModel(const TempModel&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline hidet::FlowGraph import(const Model& model, const hidet::OnnxOptions& options = {}) {
  TempModel file(model.serialize());
  return hidet::from_onnx(file.path(), options);
}
inline std::vector<hidet::Tensor> run(const Model& model,
                                      const std::vector<hidet::Tensor>& inputs = {}) {
  return import(model).run(inputs);
}

/// Fails with both lists where values or shape differ; NaN equals NaN.
inline void expect_tensor(const hidet::Tensor& actual, const std::vector<int64_t>& shape,
                          const std::vector<double>& values, double tolerance = 0) {
  EXPECT_EQ(actual.shape(), shape);
  const std::vector<double> got = actual.to_doubles();
  ASSERT_EQ(got.size(), values.size());
  for (size_t i = 0; i < got.size(); i++) {
    const bool same = std::isnan(values[i])
                          ? std::isnan(got[i])
                          : got[i] == values[i] || std::fabs(got[i] - values[i]) <= tolerance;
    EXPECT_TRUE(same) << "value " << i << " is " << got[i] << ", expected " << values[i];
  }
}

/// The error of an import; fails the test where there is none or its code is another.
inline std::string import_error(const std::string& bytes, hidet::ErrorCode code) {
  TempModel file(bytes);
  try {
    (void)hidet::from_onnx(file.path());
  } catch (const hidet::Error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline hidet::Tensor floats(const std::vector<float>& values, const std::vector<int64_t>& shape) {
  return hidet::from_vector<float>(values, shape);
}
inline std::vector<float> iota(int64_t count) {
  std::vector<float> out(count);
  for (int64_t i = 0; i < count; i++) out[i] = static_cast<float>(i);
  return out;
}

}  // namespace onnx_test
