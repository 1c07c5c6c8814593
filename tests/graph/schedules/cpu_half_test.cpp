// cpu_half_test.cpp - the CPU templates on f16 and bf16, which they keep in 16 bits and compute with in f32: each against the reference
// evaluator at odd sizes, sizes at run time, with folded steps, NaN and infinities; and that graphs of either dtype reach them.
#include <hidet/graph/convert.h>

#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

class Half : public testing::TestWithParam<DTypeCode> {
 protected:
  DType t{GetParam()};
  Tensor input(const std::vector<DimExpr>& shape) const { return symbol(shape, t); }
  Tensor filled(const Shape& shape, uint64_t seed) const { return randn(shape, t, {}, seed); }
  /// Values of both signs with a NaN and both infinities.
  Tensor with_specials(const Shape& shape) const {
    std::vector<float> v;
    for (double d : randn(shape, f32, {}, 5).to_doubles()) v.push_back(static_cast<float>(d));
    v[v.size() / 7] = NAN;
    v[v.size() / 3] = HUGE_VALF;
    v[v.size() - 1] = -HUGE_VALF;
    return ops::cast(from_vector(v, shape), t);
  }
};
INSTANTIATE_TEST_SUITE_P(DTypes, Half, testing::Values(f16.code(), bf16.code()),
                         [](const auto& info) { return std::string(DType(info.param).name()); });

TEST_P(Half, PackedMatmul) {
  const Tensor x = input({"n", 37});
  check(x, ops::matmul(x, filled({37, 51}, 1)), {{0, 37}, {1, 37}, {5, 37}, {29, 37}, {170, 37}},
        1);
  const Tensor y = input({7, 33});
  check_on(y, ops::matmul(y, filled({33, 70}, 1)), {with_specials({7, 33})}, 1);
}
TEST_P(Half, PackedMatmulInBlocksOfK) {
  const Tensor x = input({"n", 2100});
  check(x, ops::matmul(x, filled({2100, 41}, 1)) * 0.02, {{1, 2100}, {13, 2100}, {30, 2100}}, 1);
}
TEST_P(Half, PackedMatmulWithFoldedSteps) {
  const Tensor x = input({"b", "s", 48});
  const Tensor h = ops::matmul(x, filled({48, 48}, 1)) * 0.1 + filled({48}, 2);
  check(x, ops::gelu(h) + x, {{2, 9, 48}, {1, 1, 48}, {0, 3, 48}}, 1);
  const Tensor heads = ops::reshape(ops::matmul(x, filled({48, 64}, 1)), {"b", "s", 4, 16});
  check(x, ops::transpose(heads, {0, 2, 1, 3}), {{1, 1, 48}, {2, 5, 48}, {1, 33, 48}}, 1);
}
TEST_P(Half, BatchMatmul) {
  const Tensor x = input({"b", 3, "s", 17});
  const Tensor y = ops::matmul(x, ops::transpose(x, {0, 1, 3, 2})) * 0.25;
  check(x, y, {{1, 3, 1, 17}, {2, 3, 7, 17}, {1, 3, 35, 17}, {0, 3, 4, 17}});
  const Tensor z = input({1, 3, 9, 17});
  check_on(z, ops::matmul(z, ops::transpose(z, {0, 1, 3, 2})), {with_specials({1, 3, 9, 17})});
}

TEST_P(Half, Convolution) {
  const Tensor x = input({"n", 5, 11, 9}), any = input({"n", 5, "h", "w"});
  const Tensor bias = filled({1, 21, 1, 1}, 2);
  for (const Tensor& in : {x, any})
    for (int64_t stride : {1, 2}) {
      const Tensor y =
          ops::conv2d(in, filled({21, 5, 3, 3}, 1), {stride, stride}, {1, 1, 1, 1}) + bias;
      check(in, ops::clip(y, -1, 6), {{1, 5, 11, 9}, {3, 5, 11, 9}, {0, 5, 11, 9}});
      check_on(in, y, {with_specials({1, 5, 11, 9})});
    }
}
TEST_P(Half, ConvolutionOfPoints) {
  const Tensor x = input({1, 40, 7, 9}), any = input({1, 40, "h", "w"});
  for (const Tensor& in : {x, any}) {
    const Tensor y = ops::relu(ops::conv2d(in, filled({40, 40, 1, 1}, 1)) * 0.2);
    check(in, ops::conv2d(y, filled({40, 40, 1, 1}, 2)) * 0.1 + in, {{1, 40, 7, 9}});
    check(in, ops::conv2d(in, filled({35, 40, 1, 1}, 1), {2, 2}), {{1, 40, 7, 9}});
  }
  const Tensor page = input({1, 1024, 5, 3});
  check(page, ops::conv2d(page, filled({70, 1024, 1, 1}, 1)) * 0.1, {{1, 1024, 5, 3}});
}
TEST_P(Half, Winograd) {
  const Tensor strips = input({1, 24, 37, 35}), columns = input({2, 40, 9, 7}),
               any = input({1, 24, "h", "w"});
  check(strips, ops::relu(ops::conv2d(strips, filled({35, 24, 3, 3}, 1), {1, 1}, {1, 1, 1, 1})),
        {{1, 24, 37, 35}});
  check(columns, ops::conv2d(columns, filled({200, 40, 3, 3}, 1), {1, 1}, {1, 1, 1, 1}),
        {{2, 40, 9, 7}});
  const Tensor y = ops::conv2d(any, filled({32, 24, 3, 3}, 1), {1, 1}, {1, 1, 1, 1});
  check(any, y, {{1, 24, 41, 38}, {1, 24, 3, 2}});
  check_on(any, y, {with_specials({1, 24, 41, 38})});
}
TEST_P(Half, Depthwise) {
  const Tensor x = input({"n", 19, 8, 10}), any = input({"n", 19, "h", "w"});
  for (const Tensor& in : {x, any})
    for (int64_t stride : {1, 2}) {
      const Tensor y =
          ops::conv2d(in, filled({19, 1, 3, 3}, 1), {stride, stride}, {1, 1, 1, 1}, {1, 1}, 19);
      check(in, ops::clip(y, 0, 6), {{1, 19, 8, 10}, {2, 19, 8, 10}});
      check_on(in, y, {with_specials({1, 19, 8, 10})});
    }
}
TEST_P(Half, ExpansionAndDepthwise) {
  const Tensor x = input({"n", 5, 31, 33});
  const Tensor wide =
      ops::clip(ops::conv2d(x, filled({140, 5, 1, 1}, 1)) + filled({1, 140, 1, 1}, 2), -0.5, 2);
  const Tensor y = ops::conv2d(wide, filled({140, 1, 3, 3}, 3), {1, 1}, {1, 1, 1, 1}, {1, 1}, 140);
  check(x, ops::relu(y), {{1, 5, 31, 33}, {2, 5, 31, 33}}, 2);
  check_on(x, y, {with_specials({1, 5, 31, 33})}, 2);
}
TEST_P(Half, DepthwiseAndProjection) {
  const Tensor x = input({"n", 6, 45, 43});
  const Tensor wide = ops::clip(ops::conv2d(x, filled({290, 6, 1, 1}, 1)), 0, 6);
  const Tensor middle =
      ops::conv2d(wide, filled({290, 1, 3, 3}, 2), {1, 1}, {1, 1, 1, 1}, {1, 1}, 290);
  const Tensor y = ops::conv2d(ops::clip(middle, 0, 6), filled({6, 290, 1, 1}, 3)) * 0.05;
  check(x, y + x, {{1, 6, 45, 43}});
}

TEST_P(Half, Softmax) {
  const Tensor x = input({"m", "n"});
  check(x, ops::softmax(x), {{1, 1}, {3, 15}, {5, 33}, {2, 197}, {0, 5}, {4, 0}}, 1);
  const Tensor y = input({3, 21});
  check_on(y, ops::softmax(y), {with_specials({3, 21})}, 1);
}
TEST_P(Half, ComparisonsInChains) {
  const Tensor x = input({"n", 45});
  const Tensor y = ops::minimum(ops::clip(ops::relu(x) * 3.0 + 0.5, 0, 6), filled({45}, 1));
  check(x, y, {{1, 45}, {7, 45}}, 1);
  check_on(x, ops::clip(ops::maximum(x, filled({45}, 1)), -1, 1), {with_specials({3, 45})}, 1);
}

/// softmax(q k * 0.25 + mask) v in f32.
FlowGraph attention(int64_t depth, int64_t width) {
  const Tensor q = symbol({1, 2, "m", depth}), k = symbol({1, 2, depth, "n"}),
               v = symbol({1, 2, "n", width}), mask = symbol({1, 1, "m", "n"});
  const Tensor shares = ops::softmax(ops::matmul(q, k) * 0.25 + mask);
  return FlowGraph({q, k, v, mask}, {ops::matmul(shares, v)});
}
TEST_P(Half, AttentionOfAConvertedGraph) {
  for (int64_t width : {32, 19}) {
    const FlowGraph wide = attention(16, width), graph = graph::convert_floats(wide, t),
                    optimized = optimize(graph);
    int found = 0;
    for (const FlowGraph::Node& n : optimized.nodes()) found += n.op->def->name == "attention";
    EXPECT_EQ(found, 1);
    for (const std::string& level : levels()) {
      BuildModelOptions options;
      options.targets = {level};
      const CompiledModel model =
          CompiledModel::from_data(graph::build_model_data(optimized, options));
      for (const auto& [m, n] : {std::pair<int64_t, int64_t>{9, 33}, {1, 1}, {30, 300}}) {
        std::vector<Tensor> in{randn({1, 2, m, 16}, f32, {}, 1), randn({1, 2, 16, n}, f32, {}, 2),
                               randn({1, 2, n, width}, f32, {}, 3),
                               randn({1, 1, m, n}, f32, {}, 4)};
        // The results are f32 again; their error is that of the shorter values.
        expect_close(ops::cast(model.run(in)[0], t), ops::cast(graph.run(in)[0], t), level);
      }
    }
  }
}
TEST_P(Half, AttentionOfMaskedRowsAndNaN) {
  const FlowGraph wide = attention(16, 32), graph = graph::convert_floats(wide, t);
  std::vector<float> mask(3 * 21, 0.0F);
  for (size_t j = 0; j < 21; j++) mask[j] = -HUGE_VALF;  // nothing of row 0
  for (size_t j = 5; j < 21; j++) mask[21 + j] = -HUGE_VALF;
  mask[2 * 21 + 4] = NAN;
  const std::vector<Tensor> in{randn({1, 2, 3, 16}, f32, {}, 1), randn({1, 2, 16, 21}, f32, {}, 2),
                               randn({1, 2, 21, 32}, f32, {}, 3), from_vector(mask, {1, 1, 3, 21})};
  const Tensor got = optimize(graph).build().run(in)[0];
  expect_close(ops::cast(got, t), ops::cast(graph.run(in)[0], t), "masked");
}
TEST_P(Half, ConvertedConvolutionsKeepTheirPlaces) {
  const Tensor x = symbol({1, 3, 20, 20});
  const Tensor y = ops::relu(ops::conv2d(x, weight({24, 3, 3, 3}, 1), {2, 2}, {1, 1, 1, 1}));
  const FlowGraph graph =
      graph::convert_floats(trace_from(ops::conv2d(y, weight({9, 24, 1, 1}, 2)) * 0.1, {x}), t);
  graph::BuildReport report;
  const CompiledModel model =
      CompiledModel::from_data(graph::build_model_data(optimize(graph), {}, &report));
  EXPECT_EQ(report.kernels, 3) << "the cast and move of the image, and two convolutions";
  const Tensor in = randn({1, 3, 20, 20}, f32, {}, 3);
  expect_close(ops::cast(model.run({in})[0], t), ops::cast(graph.run({in})[0], t), "converted");
}

}  // namespace
}  // namespace hidet::test
