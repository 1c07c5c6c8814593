// split_product_test.cpp - products of f32 on tile registers of bf16: odd sizes, runs of K, the error beside that of plain sums, numbers that
// cannot be split; the kernel in the simulator, which needs no such registers.
#include <hidet/lang/build.h>

#include "build/plan.h"
#include "build/split.h"
#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

constexpr const char* kTarget = "x86-64-v4+amx";
bool has_tiles() { return CpuTarget::parse(kTarget).runs_on(host_cpu_target()); }
/// Other tests of templates run at every level; these at the one that splits.
const std::vector<std::string> kLevels{kTarget};

class SplitProduct : public testing::Test {
  void SetUp() override {
    if (!has_tiles()) GTEST_SKIP() << "this machine has no tile registers";
  }
};

TEST_F(SplitProduct, RowsThatFillNoTileAndNoPair) {
  for (const int64_t rows : {40, 41, 48, 65, 225, 449}) {
    const Tensor x = symbol({rows, 96});
    check(x, ops::matmul(x, weight({96, 64}, 1)), {{rows, 96}}, 1, kLevels);
  }
}
TEST_F(SplitProduct, RowsAtRunTimeAndColumnsThatMakeNoPair) {
  for (const int64_t columns : {64, 70, 80, 97}) {
    const Tensor x = symbol({"n", 96});
    const Tensor y = ops::matmul(x, weight({96, columns}, 1)) + weight({columns}, 2);
    check(x, y, {{0, 96}, {1, 96}, {39, 96}, {40, 96}, {47, 96}, {230, 96}}, 1, kLevels);
  }
}
TEST_F(SplitProduct, StepsOfKThatAreNotWhole) {
  for (const int64_t k : {97, 111, 112, 113, 127, 777, 1031}) {
    const Tensor x = symbol({"n", k});
    check(x, ops::matmul(x, weight({k, 72}, 1)), {{40, k}, {50, k}}, 1, kLevels);
  }
}
TEST_F(SplitProduct, RunsOfKAndGroupsOfColumns) {
  // 800: runs of 13 and of 12 steps; 1800 columns: groups of 24, 24 and 9 blocks.
  for (const auto& [k, columns] :
       {std::pair<int64_t, int64_t>{800, 1800}, {2304, 96}, {2400, 800}}) {
    const Tensor x = symbol({"n", k});
    check(x, ops::relu(ops::matmul(x, weight({k, columns}, 1)) * 0.02), {{41, k}, {96, k}}, 1,
          kLevels);
  }
}

/// Largest difference of any result, as a share of the largest in its row.
double error_of_rows(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  const auto columns = static_cast<size_t>(want.shape()[1]);
  double worst = 0;
  for (size_t row = 0; row < b.size(); row += columns) {
    double scale = 0, difference = 0;
    for (size_t i = row; i < row + columns; i++) {
      scale = std::max(scale, std::fabs(b[i]));
      difference = std::max(difference, std::fabs(a[i] - b[i]));
    }
    worst = std::max(worst, scale == 0 ? difference : difference / scale);
  }
  return worst;
}

Tensor exact_product(const Tensor& in, const Tensor& w) {
  const Tensor x = symbol({in.shape()[0], in.shape()[1]}, f64);
  return trace_from(ops::matmul(x, ops::cast(w, f64)), {x})(ops::cast(in, f64));
}
Tensor product_on(const Tensor& in, const Tensor& w, bool fewer_products = true) {
  const Tensor x = symbol({in.shape()[0], in.shape()[1]});
  BuildModelOptions options;
  options.targets = {kTarget};
  options.fewer_products = fewer_products;
  return optimize(trace_from(ops::matmul(x, w), {x})).build(options)(in);
}

TEST_F(SplitProduct, ErrorBesideSumsInF64) {
  for (const int64_t k : {96, 768, 3072}) {
    const Tensor w = weight({k, 256}, 1), in = randn({128, k}, f32, {}, 3),
                 want = exact_product(in, w);
    const Tensor split = product_on(in, w);
    EXPECT_LT(error_of_rows(split, want), 1.5e-6) << k;
    EXPECT_NE(split.to_doubles(), product_on(in, w, false).to_doubles()) << "not split";
  }
}

Tensor scaled(const Tensor& t, const std::function<double(size_t row, size_t column)>& by) {
  std::vector<float> v;
  const auto columns = static_cast<size_t>(t.shape()[1]);
  for (double d : t.to_doubles())
    v.push_back(static_cast<float>(d * by(v.size() / columns, v.size() % columns)));
  return from_vector(v, t.shape());
}

/// Rows and columns of any scale have errors of their own scale: those that bf16 or sums in f32 could not hold are multiplied plainly.
TEST_F(SplitProduct, RowsAndColumnsOfAnyScale) {
  const Tensor in = randn({70, 96}, f32, {}, 3), w = weight({96, 100}, 1);
  for (const double exponent : {-126, -80, -49, -47, 0, 40, 47, 49, 60}) {
    const double factor = std::exp2(exponent);
    const Tensor rows = scaled(in, [&](size_t row, size_t) { return row == 41 ? factor : 1; });
    EXPECT_LT(error_of_rows(product_on(rows, w), exact_product(rows, w)), 1.5e-6) << exponent;
    // By columns: the product's transpose has them as rows.
    const Tensor columns = scaled(w, [&](size_t, size_t c) { return c == 77 ? factor : 1; });
    const Tensor got = product_on(in, columns), want = exact_product(in, columns);
    EXPECT_LT(error_of_rows(ops::transpose(got, {1, 0}), ops::transpose(want, {1, 0})), 1.5e-6)
        << exponent;
  }
}

TEST_F(SplitProduct, ZerosAndSubnormalNumbers) {
  const Tensor in = randn({40, 128}, f32, {}, 3), w = weight({128, 64}, 1);
  // A row and a column of zeros: zeros, not what is plain.
  const Tensor some = scaled(in, [](size_t row, size_t) { return row == 7 ? 0 : 1; });
  EXPECT_EQ(error_of_rows(product_on(in * 0.0, w), zeros({40, 64})), 0);
  const std::vector<double> got = product_on(some, w).to_doubles();
  for (size_t i = 7 * 64; i < 8 * 64; i++) EXPECT_EQ(got[i], 0);
  // Sums of subnormal numbers are exact.
  const Tensor ones = zeros({40, 128}) + 1.0;
  const Tensor tiny = scaled(ones, [](size_t, size_t) { return std::exp2(-140); });
  for (const double v : product_on(tiny, zeros({128, 64}) + 1.0).to_doubles())
    EXPECT_EQ(v, std::exp2(-133));
}

TEST_F(SplitProduct, PlainSumsAreTheSameWithoutTheRegisters) {
  const Tensor x = symbol({50, 300}), w = weight({300, 200}, 1), in = randn({50, 300}, f32, {}, 3);
  BuildModelOptions options;
  options.targets = {"x86-64-v4"};
  options.fewer_products = false;
  EXPECT_EQ(product_on(in, w, false).to_doubles(),
            optimize(trace_from(ops::matmul(x, w), {x})).build(options)(in).to_doubles());
}

std::vector<graph::PlanKernel> kernels_of(const FlowGraph& g) {
  const graph::Parts parts = graph::split(g);
  graph::KernelStore kernels({.target = kTarget, .vector_bytes = 64, .has_tiles = true});
  for (const graph::Group& group : graph::fuse(parts.run, g.output_tensors()))
    if (!group.is_view) (void)kernels.add(group);
  kernels.finish();
  return kernels.kernels();
}
/// Whether a kernel of a graph uses the registers.
bool uses_tiles(const FlowGraph& g) {
  const std::vector<graph::PlanKernel> all = kernels_of(g);
  return std::any_of(all.begin(), all.end(), [](const graph::PlanKernel& k) {
    return k.text.find("tdpbf16ps") != std::string::npos;
  });
}

// --- convolutions

Tensor symbol_of(const Shape& shape) {
  return symbol(std::vector<DimExpr>(shape.begin(), shape.end()));
}
/// Read by another convolution, so that the image stays in NHWC.
Tensor inside(const Tensor& y) {
  return ops::conv2d(ops::relu(y), weight({8, y.shape()[1], 1, 1}, 5) * 0.1);
}
Tensor image_of(const Shape& shape) { return randn(shape, f32, {}, 7); }

TEST_F(SplitProduct, ConvolutionsOfPoints) {
  for (const auto& [channels, outputs, stride] :
       {std::tuple<int64_t, int64_t, int64_t>{96, 130, 1}, {100, 256, 1}, {800, 144, 2}}) {
    const Shape shape{2, channels, 21, 17};
    const Tensor x = symbol_of(shape), w = weight({outputs, channels, 1, 1}, 1) * 0.05;
    const Tensor y = ops::conv2d(x, w, {stride, stride}) + weight({1, outputs, 1, 1}, 2);
    EXPECT_TRUE(uses_tiles(optimize(trace_from(inside(y), {x}))));
    check(x, inside(y), {shape}, -1, kLevels);
  }
}
TEST_F(SplitProduct, ConvolutionsOfWindows) {
  struct Window {
    int64_t h, w, kernel, stride, dilation, pad_begin, pad_end;
  };
  for (const Window& c : {Window{15, 13, 3, 2, 1, 1, 1}, Window{14, 14, 3, 2, 1, 0, 1},
                          Window{12, 20, 3, 1, 2, 2, 2}, Window{11, 19, 2, 1, 1, 0, 0},
                          Window{40, 36, 5, 2, 1, 2, 2}, Window{9, 9, 4, 1, 1, 3, 3}}) {
    const Shape shape{2, 96, c.h, c.w};
    const Tensor x = symbol_of(shape), w = weight({290, 96, c.kernel, c.kernel}, 1) * 0.03;
    const Tensor y =
        ops::conv2d(x, w, {c.stride, c.stride}, {c.pad_begin, c.pad_begin, c.pad_end, c.pad_end},
                    {c.dilation, c.dilation});
    EXPECT_TRUE(uses_tiles(optimize(trace_from(inside(y), {x}))));
    check(x, inside(y), {shape}, -1, kLevels);
  }
}
TEST_F(SplitProduct, ConvolutionWithNumbersThatCannotBeSplit) {
  for (const int64_t kernel : {1, 3}) {
    const int64_t pad = kernel / 2;
    const Shape shape{1, 96, 16, 16};
    const Tensor x = symbol_of(shape), w = weight({160, 96, kernel, kernel}, 1) * 0.05;
    const auto changed = [](const Tensor& t, size_t at, float value) {
      std::vector<float> v;
      for (double d : t.to_doubles()) v.push_back(static_cast<float>(d));
      v[at] = value;
      return from_vector(v, t.shape());
    };
    const auto convolution = [&](const Tensor& with) {
      return inside(ops::conv2d(x, with, {2, 2}, {pad, pad, pad, pad}));
    };
    const Tensor in = image_of(shape);
    check_on(x, convolution(w), {changed(in, 5000, NAN), changed(in, 0, HUGE_VALF)}, -1, kLevels);
    for (const float value : {HUGE_VALF, 1e30F})
      check_on(x, convolution(changed(w, 77, value)), {in}, -1, kLevels);
  }
}

TEST(SplitProductAnywhere, WhichConvolutionsAreSplit) {
  const auto convolution = [](int64_t channels, int64_t outputs, int64_t side, int64_t kernel,
                              int64_t stride) {
    const Tensor x = symbol({1, channels, side, side});
    const int64_t pad = kernel / 2;
    return optimize(trace_from(inside(ops::conv2d(x, weight({outputs, channels, kernel, kernel}, 1),
                                                  {stride, stride}, {pad, pad, pad, pad})),
                               {x}));
  };
  EXPECT_TRUE(uses_tiles(convolution(256, 1024, 14, 1, 1)));
  EXPECT_TRUE(uses_tiles(convolution(256, 512, 56, 1, 2)));
  EXPECT_TRUE(uses_tiles(convolution(256, 256, 28, 3, 2)));
  EXPECT_TRUE(uses_tiles(convolution(512, 512, 7, 3, 1)));
  EXPECT_FALSE(uses_tiles(convolution(128, 128, 28, 3, 1))) << "Winograd's";
  EXPECT_FALSE(uses_tiles(convolution(64, 256, 56, 1, 1))) << "few channels";
  EXPECT_FALSE(uses_tiles(convolution(960, 160, 7, 1, 1))) << "few results";
}

/// The kernel as it is scheduled, on any machine.
TEST(SplitProductAnywhere, Simulated) {
  constexpr int64_t rows = 43, k = 100, columns = 70, panels = 5;
  const Tensor x = symbol({rows, k}), w = weight({k, columns}, 1);
  const FlowGraph g = optimize(trace_from(ops::matmul(x, w), {x}));
  const std::vector<graph::PlanKernel> kernels = kernels_of(g);
  ASSERT_EQ(kernels.size(), 1u);
  const graph::PlanKernel& kernel = kernels[0];
  EXPECT_NE(kernel.text.find("tdpbf16ps"), std::string::npos);

  const std::vector<double> weights = w.to_doubles();
  std::vector<float> packed(panels * k * 16);
  for (int64_t c = 0; c < columns; c++)
    for (int64_t i = 0; i < k; i++)
      packed[static_cast<size_t>((c / 16 * k + i) * 16 + c % 16)] =
          static_cast<float>(weights[static_cast<size_t>(i * columns + c)]);
  const Tensor in = randn({rows, k}, f32, {}, 3), out = zeros({rows, columns});
  lang::simulate_module(kernel.recorded, "launch", {in, from_vector(packed, {panels, k, 16}), out});
  EXPECT_LT(error_of_rows(out, exact_product(in, w)), 1.5e-6);
  EXPECT_NE(out.to_doubles(), std::vector<double>(rows * columns, 0.0));
}

}  // namespace
}  // namespace hidet::test
