// models.h - small ONNX models for the command's tests, made in memory.
#pragma once
#include "graph/onnx/onnx_builder.h"

#include <cmath>
#include <string>
#include <vector>

namespace tools_test {

/// `count` values between -1 and 1 that differ from each other.
inline std::vector<float> wave(int64_t count, float phase = 0) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); i++) out[i] = std::sin(1.7f * static_cast<float>(i) + phase);
  return out;
}

/// x[batch, 3, 9, 7] -> convolution, batch norm, relu -> mean over the image -> matmul -> softmax.
inline onnx_test::Model small_net() {
  using namespace onnx_test;
  Model m;
  m.input("x", 1, {"batch", 3, 9, 7})
      .output("y")
      .initializer(tensor<float>("conv_w", {5, 3, 3, 3}, wave(135)))
      .initializer(tensor<float>("scale", {5}, {1, 2, 0.5f, -1, 1.5f}))
      .initializer(tensor<float>("shift", {5}, wave(5, 1)))
      .initializer(tensor<float>("mean", {5}, wave(5, 2)))
      .initializer(tensor<float>("var", {5}, {1, 0.5f, 2, 1, 3}))
      .initializer(tensor<float>("fc_w", {5, 11}, wave(55, 3)))
      .node("Conv", {"x", "conv_w"}, {"c"}, {attr("pads", std::vector<int64_t>{1, 1, 1, 1})},
            "first_conv")
      .node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"n"}, {}, "norm")
      .node("Relu", {"n"}, {"r"}, {}, "relu")
      .node("GlobalAveragePool", {"r"}, {"g"}, {}, "pool")
      .node("Flatten", {"g"}, {"f"}, {}, "flat")
      .node("MatMul", {"f", "fc_w"}, {"l"}, {}, "classes")
      .node("Softmax", {"l"}, {"y"}, {attr("axis", -1)}, "probabilities");
  return m;
}

/// x[batch, 5] -> matmul -> relu.
inline onnx_test::Model product_net() {
  using namespace onnx_test;
  Model m;
  m.input("x", 1, {"batch", 5}).output("y").initializer(tensor<float>("w", {5, 3}, wave(15)));
  m.node("MatMul", {"x", "w"}, {"p"}, {}, "product").node("Relu", {"p"}, {"y"}, {}, "relu");
  return m;
}

}  // namespace tools_test
