// winograd_test.cpp - 3 x 3 convolutions by Winograd's algorithms: where they are chosen, beside the reference evaluator at odd sizes, in
// both forms (strips of tiles, column blocks), with uneven pads, batches, folded steps; their error beside sums in f64; NaN and infinities.
#include "schedules/winograd.h"

#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

/// The algorithm chosen for a convolution of an image [c, h, w] to n channels; 0: the direct kernel.
int64_t chosen(int64_t c, const std::vector<DimExpr>& hw, int64_t n, int64_t kernel = 3,
               int64_t stride = 1) {
  const Tensor x = symbol({1, c, hw[0], hw[1]});
  const FlowGraph g = optimize(trace_from(
      ops::conv2d(x, zeros({n, c, kernel, kernel}), {stride, stride}, {1, 1, 1, 1}), {x}));
  for (const FlowGraph::Node& node : g.nodes())
    if (node.op->def->name == "conv2d_nhwc")
      return graph::winograd_outputs(node.op->def->compute(node.op->call()));
  ADD_FAILURE() << "no convolution";
  return 0;
}

TEST(WinogradChoice, WhereItWins) {
  EXPECT_EQ(chosen(64, {56, 56}, 64), 4);
  EXPECT_EQ(chosen(256, {14, 14}, 256), 4);
  EXPECT_EQ(chosen(32, {64, 64}, 32), 4);
  EXPECT_EQ(chosen(64, {"h", "w"}, 64), 4) << "where the image is large, at each run";
  EXPECT_EQ(chosen(64, {6, 6}, 64), 2) << "4 of 6 rows would be wasted";
}
TEST(WinogradChoice, WhereItDoesNot) {
  EXPECT_EQ(chosen(3, {224, 224}, 64), 0) << "transforms cost more than they save";
  EXPECT_EQ(chosen(64, {3, 1}, 64), 0);
  EXPECT_EQ(chosen(64, {56, 56}, 64, 3, 2), 0);
  EXPECT_EQ(chosen(64, {56, 56}, 64, 5), 0);
  EXPECT_EQ(chosen(3, {"h", "w"}, 64), 0);
}

/// A convolution 1 x 1 that leaves its input as it is, in the order of channels: what makes it stores along channels (NHWC).
Tensor behind(const Tensor& t) {
  const int64_t c = t.shape_expr()[1].value();
  std::vector<float> w(static_cast<size_t>(c * c), 0.0F);
  for (int64_t i = 0; i < c; i++) w[static_cast<size_t>(i * c + i)] = 1;
  return ops::conv2d(t, from_vector(w, {c, c, 1, 1}));
}

/// `x` -> relu(convolution + bias), which is expected to be done with m x m outputs a tile, stored in NCHW and in NHWC.
void check_conv(const std::vector<DimExpr>& shape, int64_t n, const std::vector<int64_t>& pads,
                const std::vector<Shape>& inputs, int64_t m) {
  const Tensor x = symbol(shape);
  const int64_t c = shape[1].value();
  const Tensor w = weight({n, c, 3, 3}, 1) * (1 / std::sqrt(static_cast<double>(9 * c)));
  const Tensor y = ops::conv2d(x, w, {1, 1}, pads);
  if (pads == std::vector<int64_t>{1, 1, 1, 1}) {
    EXPECT_EQ(chosen(c, {shape[2], shape[3]}, n), m);
  }
  const Tensor z = ops::relu(y + weight({1, n, 1, 1}, 2));
  check(x, z, inputs);
  check(x, behind(z), inputs);
}

TEST(Winograd, StripsOfTiles) {
  check_conv({"n", 37, 13, 18}, 43, {1, 1, 1, 1},
             {{1, 37, 13, 18}, {3, 37, 13, 18}, {0, 37, 13, 18}}, 4);
}
TEST(Winograd, ColumnBlocks) {
  check_conv({"n", 130, 14, 11}, 133, {1, 1, 1, 1},
             {{1, 130, 14, 11}, {2, 130, 14, 11}, {9, 130, 14, 11}, {0, 130, 14, 11}}, 4);
}
TEST(Winograd, ColumnBlocksOfAllChannels) {
  check_conv({2, 67, 9, 8}, 128, {1, 1, 1, 1}, {{2, 67, 9, 8}}, 4);
}
TEST(Winograd, TwoByTwo) {
  check_conv({1, 72, 6, 6}, 40, {1, 1, 1, 1}, {{1, 72, 6, 6}}, 2);
  check_conv({1, 72, 5, 6}, 150, {1, 1, 1, 1}, {{1, 72, 5, 6}}, 2);
}
TEST(Winograd, UnevenAndWidePads) {
  check_conv({1, 32, 12, 15}, 32, {0, 0, 0, 0}, {{1, 32, 12, 15}}, 4);
  check_conv({1, 32, 12, 15}, 32, {2, 0, 1, 3}, {{1, 32, 12, 15}}, 4);
  check_conv({1, 32, 10, 11}, 48, {0, 5, 7, 0}, {{1, 32, 10, 11}}, 4);
}
TEST(Winograd, SizesAtRunTime) {
  check_conv({"n", 37, "h", "w"}, 43, {1, 1, 1, 1},
             {{1, 37, 13, 18},
              {3, 37, 13, 18},
              {1, 37, 5, 60},
              {1, 37, 64, 3},
              {2, 37, 1, 1},
              {0, 37, 13, 18}},
             4);
  check_conv({1, 40, "h", 20}, 32, {0, 2, 1, 3}, {{1, 40, 21, 20}, {1, 40, 3, 20}}, 4);
}
TEST(Winograd, ResidualAndSilu) {
  const Tensor x = symbol({2, 32, 12, 12});
  const Tensor w = weight({32, 32, 3, 3}, 1) * 0.06;
  const Tensor y =
      ops::conv2d(ops::relu(ops::conv2d(x, w, {1, 1}, {1, 1, 1, 1})), w, {1, 1}, {1, 1, 1, 1});
  const Tensor z = y + x;
  check(x, z * ops::sigmoid(z), {{2, 32, 12, 12}});
}

/// Largest difference between two runs, as a share of the scale of `want`.
double share(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  double difference = 0, scale = 0;
  for (size_t i = 0; i < b.size(); i++) {
    difference = std::max(difference, std::fabs(a[i] - b[i]));
    scale = std::max(scale, std::fabs(b[i]));
  }
  return difference / scale;
}

TEST(Winograd, ErrorBesideSumsInF64) {
  for (const auto& [c, size] : {std::pair<int64_t, int64_t>{64, 28}, {512, 7}, {64, 6}}) {
    const Tensor x = symbol({1, c, size, size}), exact = symbol({1, c, size, size}, f64);
    const Tensor w = weight({64, c, 3, 3}, 1), in = randn({1, c, size, size}, f32, {}, 3);
    const Tensor want = trace_from(ops::conv2d(exact, ops::cast(w, f64), {1, 1}, {1, 1, 1, 1}),
                                   {exact})(ops::cast(in, f64));
    const FlowGraph g = optimize(trace_from(ops::conv2d(x, w, {1, 1}, {1, 1, 1, 1}), {x}));
    EXPECT_LT(share(g.build()(in), want), 1e-5) << c;
    EXPECT_LT(share(g.build({.fewer_products = false})(in), want), 4e-6) << c;
  }
}

TEST(Winograd, NanAndInfinitiesWhereADirectConvolutionHasThem) {
  for (int64_t n : {40, 140}) {
    const Tensor x = symbol({1, 40, 12, 13});
    const Tensor w = weight({n, 40, 3, 3}, 1) * 0.05;
    std::vector<float> v;
    for (double d : randn({1, 40, 12, 13}, f32, {}, 5).to_doubles())
      v.push_back(static_cast<float>(d));
    v[5 * 12 * 13] = NAN;
    v[6 * 12 * 13 + 70] = HUGE_VALF;
    v.back() = -HUGE_VALF;
    check_on(x, ops::conv2d(x, w, {1, 1}, {1, 1, 1, 1}), {from_vector(v, {1, 40, 12, 13})});
    // In a weight: everything that one output channel reads.
    std::vector<float> u;
    for (double d : w.to_doubles()) u.push_back(static_cast<float>(d));
    u[40 * 9 * 3 + 4] = HUGE_VALF;
    check(x, ops::conv2d(x, from_vector(u, {n, 40, 3, 3}), {1, 1}, {1, 1, 1, 1}),
          {{1, 40, 12, 13}});
  }
}
TEST(Winograd, SumsThatOverflowOnTheWayOnly) {
  // The transforms add up to 12 of these; the convolution itself multiplies by one weight.
  const Tensor x = symbol({1, 32, 12, 12});
  std::vector<float> w(32 * 32 * 9, 0.0F);
  for (size_t i = 0; i < 32; i++) w[(i * 32 + i) * 9 + 4] = 1;
  const Tensor in = full({1, 32, 12, 12}, 1.5e38, f32);
  const Tensor y = ops::conv2d(x, from_vector(w, {32, 32, 3, 3}), {1, 1}, {1, 1, 1, 1});
  const Tensor got = optimize(trace_from(y, {x})).build()(in);
  for (double v : got.to_doubles()) ASSERT_EQ(v, static_cast<double>(1.5e38F));
}

}  // namespace
}  // namespace hidet::test
