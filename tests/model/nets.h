// nets.h - graphs for proofs on whole models, and what the tests share.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/graph/build.h>
#include <hidet/hidet.h>

#include "error_of.h"
#include "graph/core/samples.h"
#include "tools/child.h"

namespace hidet::test {
using testing::AllOf;
using testing::HasSubstr;
using tools_test::Folder;

/// The weights of conv_net.
struct ConvWeights {
  Tensor conv, scale, bias, mean, variance, product;
  explicit ConvWeights(uint64_t seed)
      : conv(randn({6, 3, 3, 3}, f32, {}, seed)),
        scale(randn({6}, f32, {}, seed + 1)),
        bias(randn({6}, f32, {}, seed + 2)),
        mean(randn({6}, f32, {}, seed + 3)),
        variance(from_vector<float>({1, 0.5f, 2, 3, 0.25f, 1.5f}, {6})),
        product(randn({6, 5}, f32, {}, seed + 4)) {}
};
/// x[n, 3, 9, 7] -> convolution, batch norm, relu -> mean of the image -> product -> softmax: y[n, 5].
inline FlowGraph conv_net(const ConvWeights& w) {
  const Tensor x = symbol({"n", 3, 9, 7}, f32, {}, "x");
  const Tensor c = ops::conv2d(x, w.conv, {2, 1}, {1, 1, 1, 1});
  const Tensor r = ops::relu(ops::batch_norm(c, w.scale, w.bias, w.mean, w.variance));
  const Tensor y = ops::softmax(ops::matmul(ops::reduce_mean(r, {2, 3}), w.product));
  return trace_from(y, {x});
}
inline CompiledModel build(const FlowGraph& g, const std::string& target = "native") {
  return optimize(g).build({.targets = {target}});
}

}  // namespace hidet::test
