// convert_test.cpp - graphs converted to f16 and bf16: close to the f32 graph, with its signature, half of its weights.
#include <gmock/gmock.h>
#include <hidet/graph/convert.h>
#include <hidet/runtime/model_data.h>

#include <cmath>

#include "model/nets.h"

namespace hidet::test {
namespace {

/// Largest difference as a share of the largest expected value.
double difference(const Tensor& got, const Tensor& expected) {
  const std::vector<double> g = got.to_doubles(), e = expected.to_doubles();
  double worst = 0, scale = 0;
  for (size_t i = 0; i < e.size(); i++) {
    worst = std::fmax(worst, std::fabs(g[i] - e[i]));
    scale = std::fmax(scale, std::fabs(e[i]));
  }
  return worst / scale;
}

TEST(ConvertFloats, ConvolutionNet) {
  const FlowGraph g = conv_net(ConvWeights(1));
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  for (const auto& [to, bound] : {std::pair{f16, 4e-3}, std::pair{bf16, 3e-2}}) {
    const FlowGraph converted = graph::convert_floats(g, to);
    EXPECT_EQ(converted.inputs()[0].text(), g.inputs()[0].text());
    EXPECT_EQ(converted.outputs()[0].text(), g.outputs()[0].text());
    EXPECT_EQ(converted.weight_names(), g.weight_names());
    const CompiledModel m = build(converted);
    EXPECT_LT(difference(converted(x), g(x)), bound) << to.name();
    EXPECT_LT(difference(m(x), g(x)), bound) << to.name();
    EXPECT_GT(difference(m(x), g(x)), 0) << to.name();
    // The weights of products and convolutions are stored narrow.
    bool narrow = false;
    for (const StoredWeight& w : m.data().stored) narrow = narrow || w.dtype == to;
    EXPECT_TRUE(narrow);
  }
}

// A mask of the largest float times 0 is 0 in f32; as an infinity it would be NaN.
TEST(ConvertFloats, ValuesBeyondF16BecomeItsLargest) {
  const Tensor x = symbol({3}, f32, {}, "x");
  const Tensor far = from_vector<float>({-3.4e38f, 7e4f, -INFINITY}, {3});
  const FlowGraph g = graph::convert_floats(trace_from(ops::mul(x, far)), f16);
  const std::vector<float> zeros_out = g(from_vector<float>({0, 1, 1}, {3})).to_vector<float>();
  EXPECT_EQ(zeros_out[0], 0);
  EXPECT_EQ(zeros_out[1], 65504);
  EXPECT_EQ(zeros_out[2], -65504);
}

TEST(ConvertFloats, LeavesIntegersAndWideOperators) {
  const Tensor x = symbol({"n", 4}, f32, {}, "x"), i = symbol({"n"}, i64, {}, "i");
  const FlowGraph g =
      trace_from({ops::pow(x, from_vector<float>({2}, {1})), ops::add(i, i)}, {x, i});
  const FlowGraph converted = graph::convert_floats(g, f16);
  const Tensor large = full({2, 4}, 1000, f32),
               index = from_vector<int64_t>({3, int64_t{1} << 40}, {2});
  const std::vector<Tensor> got = build(converted).run({large, index});
  EXPECT_EQ(got[0].to_vector<float>(), std::vector<float>(8, 1e6f));  // beyond f16
  EXPECT_EQ(got[1].to_vector<int64_t>(), (std::vector<int64_t>{6, int64_t{1} << 41}));
  EXPECT_THROW(graph::convert_floats(g, f64), Error);
}

}  // namespace
}  // namespace hidet::test
