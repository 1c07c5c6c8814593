// nhwc_test.cpp - what stays in NHWC between convolutions on CPUs, beside the reference evaluator: norms of groups of channels, pools,
// joined and cut images, resampling, channels that become blocks of pixels. The number of kernels shows that no transpose is between.
#include <limits>

#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

using Ints = std::vector<int64_t>;

Tensor conv(const Tensor& x, int64_t from, int64_t to, uint64_t seed) {
  return ops::conv2d(x, weight({to, from, 1, 1}, seed), {1, 1}, {0, 0, 0, 0});
}
Tensor silu(const Tensor& x) { return x * ops::sigmoid(x); }
/// x normalised in groups of channels, as importers write it, with numbers by group and by channel.
Tensor group_norm(const Tensor& x, int64_t channels, int64_t groups) {
  const std::vector<DimExpr> s = x.shape_expr();
  const bool single = groups == channels;
  const std::vector<DimExpr> rows =
      single ? std::vector<DimExpr>{s[0], channels, s[2] * s[3]}
             : std::vector<DimExpr>{s[0], groups, channels / groups, s[2] * s[3]};
  const Tensor in = ops::reshape(x, rows);
  const Tensor norm = ops::layer_norm(in, ops::scalar_like(in, 1), {}, 2);
  const Shape by_group = single ? Shape{groups, 1} : Shape{groups, 1, 1};
  const Tensor scaled = norm * weight(by_group, 5) + weight(by_group, 6);
  return ops::reshape(scaled, s) * weight({channels, 1, 1}, 7) + weight({channels, 1, 1}, 8);
}

TEST(Nhwc, ANormBetweenConvolutionsIsOneKernel) {
  for (const auto& [channels, groups] : std::vector<std::pair<int64_t, int64_t>>{
           {48, 4}, {48, 48}, {20, 5}, {33, 1}, {8, 2}, {160, 32}}) {
    const Shape shape{2, 3, 14, 23};
    const Tensor x = symbol({shape.begin(), shape.end()});
    const Tensor y = silu(group_norm(conv(x, 3, channels, 1), channels, groups));
    // The image to NHWC, two convolutions, the norm.
    check(x, conv(y, channels, 5, 2), {shape}, 4);
  }
}
TEST(Nhwc, NormsOfSizesAtRunTime) {
  const Tensor x = symbol({"n", 3, "h", "w"});
  for (const int64_t groups : {8, 32}) {
    const Tensor y = silu(group_norm(conv(x, 3, 32, 1), 32, groups));
    check(x, conv(y, 32, 5, 2), {{0, 3, 4, 4}, {1, 3, 1, 2}, {1, 3, 64, 64}, {3, 3, 17, 40}}, 4);
  }
}
TEST(Nhwc, ANormAtTheEndIsStoredInNchw) {
  const Tensor x = symbol({2, 3, 9, 11});
  check(x, group_norm(conv(x, 3, 24, 1), 24, 3), {{2, 3, 9, 11}}, 3);
}
TEST(Nhwc, RowsThatAreNoGroupsOfChannelsStay) {
  const Tensor x = symbol({2, 3, 8, 6});
  const Tensor image = conv(x, 3, 12, 1), rows = ops::reshape(image, {2, 4, 24, 6});
  const Tensor norm = ops::layer_norm(rows, ops::scalar_like(rows, 1), {}, 2);
  check(x, conv(ops::reshape(norm, {2, 12, 8, 6}), 12, 5, 2), {{2, 3, 8, 6}});
  const Tensor twice =
      ops::layer_norm(ops::reshape(image, {2, 4, 3, 48}), ops::scalar_like(rows, 2), {}, 2);
  check(x, conv(ops::reshape(twice, {2, 12, 8, 6}), 12, 5, 2), {{2, 3, 8, 6}});
}
TEST(Nhwc, ValuesAlongTheImageAreNoFactorsOfAChannel) {
  const Tensor x = symbol({1, 3, 5, 4});
  const Tensor rows = ops::reshape(conv(x, 3, 12, 1), {1, 4, 3, 20});
  const Tensor norm = ops::layer_norm(rows, ops::scalar_like(rows, 1), {}, 2);
  const Tensor y = ops::reshape(norm * weight({3, 20}, 4), {1, 12, 5, 4});
  check(x, conv(y, 12, 5, 2), {{1, 3, 5, 4}});
}

Tensor norm_of(const Tensor& x, int64_t groups) {
  return graph::apply("group_norm_nhwc", {x}, {{"groups", groups}, {"epsilon", 1e-5}})[0];
}
/// The same in f64.
std::vector<double> normalised(const Tensor& x, int64_t groups) {
  std::vector<double> v = x.to_doubles();
  const int64_t n = x.shape(0), pixels = x.shape(1) * x.shape(2), c = x.shape(3), size = c / groups;
  for (int64_t i = 0; i < n; i++)
    for (int64_t g = 0; g < groups; g++) {
      const auto each = [&](const auto& one) {
        for (int64_t p = 0; p < pixels; p++)
          for (int64_t k = 0; k < size; k++)
            one(v[static_cast<size_t>((i * pixels + p) * c + g * size + k)]);
      };
      const auto count = static_cast<double>(pixels * size);
      double sum = 0, squares = 0;
      each([&](double& a) { sum += a; });
      const double mean = sum / count;
      each([&](double& a) { squares += (a - mean) * (a - mean); });
      each([&](double& a) { a = (a - mean) / std::sqrt(squares / count + 1e-5); });
    }
  return v;
}
TEST(Nhwc, ALargeMeanCostsNoPrecision) {
  Tensor input = randn({2, 50, 40, 32}, f32, {}, 9);
  auto* v = static_cast<float*>(input.data());
  for (int64_t i = 0; i < input.num_elements(); i++) v[i] += 1000.0F + static_cast<float>(i % 32);
  const Tensor x = symbol({2, 50, 40, 32});
  for (const int64_t groups : {4, 32}) {
    const FlowGraph graph = optimize(trace_from(norm_of(x, groups), {x}));
    const std::vector<double> want = normalised(input, groups);
    for (const std::string& level : levels()) {
      BuildModelOptions options;
      options.targets = {level};
      const std::vector<double> got =
          CompiledModel::from_data(graph::build_model_data(graph, options))
              .run({input})[0]
              .to_doubles();
      double worst = 0;
      for (size_t i = 0; i < got.size(); i++) worst = std::fmax(worst, std::fabs(got[i] - want[i]));
      // Values of 1000 have steps of 6e-5.
      EXPECT_LT(worst, 5e-4) << level << " " << groups << " groups";
    }
  }
}
TEST(Nhwc, NaNStaysInItsGroupAndItsImage) {
  Tensor input = randn({2, 30, 20, 32}, f32, {}, 6);
  auto* v = static_cast<float*>(input.data());
  v[5] = std::numeric_limits<float>::quiet_NaN();
  v[30 * 20 * 32 + 9] = std::numeric_limits<float>::infinity();
  v[32 * 300 + 31] = 3e38F;
  v[32 * 301 + 31] = 3e38F;
  const Tensor x = symbol({2, 30, 20, 32});
  check_on(x, norm_of(x, 8), {input}, 1);
}
TEST(Nhwc, NormsOfHalves) {
  for (const DType t : {f16, bf16}) {
    const Tensor x = symbol({2, 30, 20, 48}, t);
    check(x, norm_of(x, 6), {{2, 30, 20, 48}}, 1);
  }
}

TEST(Nhwc, PoolsBetweenConvolutions) {
  const Shape shape{2, 3, 13, 18};
  const Tensor x = symbol({shape.begin(), shape.end()}), image = conv(x, 3, 20, 1);
  const auto mean = [&](Ints kernel, Ints stride, Ints pads, bool counts) {
    return conv(ops::avg_pool2d(image, kernel, stride, pads, counts), 20, 5, 2);
  };
  check(x, mean({2, 2}, {2, 2}, {0, 0, 0, 0}, false), {shape}, 4);
  check(x, mean({3, 2}, {1, 2}, {1, 0, 1, 1}, true), {shape}, 4);
  check(x, mean({3, 3}, {2, 2}, {1, 1, 1, 1}, false), {shape});
  check(x, conv(ops::max_pool2d(image, {3, 3}, {2, 2}, {1, 1, 1, 1}), 20, 5, 2), {shape}, 4);
}
TEST(Nhwc, JoinedCutAndResampledImages) {
  const std::vector<Shape> shapes{{1, 3, 6, 8}, {2, 3, 10, 4}, {0, 3, 2, 2}};
  const Tensor x = symbol({"n", 3, "h", "w"});
  const Tensor a = conv(x, 3, 20, 1), b = conv(x, 3, 12, 2);
  check(x, conv(ops::concat({a, b}, 1), 32, 5, 3), shapes, 5);
  check(x, conv(ops::concat({a, b, a}, -3), 52, 5, 3), shapes, 5);
  check(x, conv(ops::concat({a, a}, 2), 20, 5, 3), shapes, 4);
  check(x, conv(ops::slice(a, {3, 1}, {17, 9}, {1, 3}, {2, 1}), 7, 5, 3), {{1, 3, 6, 9}}, 4);
  const auto size = [&](size_t d) { return x.shape_expr()[d] * 2; };
  for (const char* mode : {"nearest", "linear"}) {
    const Tensor tall = ops::resize(a, 2, size(2), {.mode = mode}),
                 wide = ops::resize(tall, -1, size(3), {.mode = mode});
    check(x, conv(wide, 20, 5, 3), {{1, 3, 6, 8}, {2, 3, 10, 4}});
  }
}
TEST(Nhwc, ChannelsThatBecomeBlocksOfPixels) {
  const std::vector<Shape> shapes{{1, 3, 6, 8}, {2, 3, 5, 4}};
  const Tensor x = symbol({"n", 3, "h", "w"});
  const Tensor y =
      ops::conv_transpose2d(conv(x, 3, 12, 1), weight({12, 20, 2, 2}, 2), {2, 2}, {0, 0, 0, 0});
  check(x, conv(y, 20, 5, 3), shapes);
  const std::vector<DimExpr> s = x.shape_expr();
  const Tensor image = conv(x, 3, 24, 1), split = ops::reshape(image, {s[0], 2, 3, 4, s[2], s[3]}),
               moved = ops::transpose(split, {0, 3, 4, 1, 5, 2});
  check(x, conv(ops::reshape(moved, {s[0], 4, s[2] * 2, s[3] * 3}), 4, 5, 3), shapes);
}

}  // namespace
}  // namespace hidet::test
