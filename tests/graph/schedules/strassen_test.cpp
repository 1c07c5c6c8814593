// strassen_test.cpp - products with many rows, which take seven products of halves where the definition has eight: odd sizes, rows known at
// run time, columns that make no pair, NaN and infinities, the rounding error beside that of plain sums.
#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

/// The highest level that all machines of CI have; those with tile registers take them instead (split_product_test.cpp).
constexpr const char* kTarget = "x86-64-v3";

TEST(Strassen, RowsInHalvesOfEqualAndUnequalLength) {
  for (const int64_t rows : {64, 65, 169, 341}) {
    const Tensor x = symbol({rows, 256});
    check(x, ops::matmul(x, weight({256, 256}, 1)), {{rows, 256}});
  }
}
TEST(Strassen, RowsAtRunTimeAndColumnsThatMakeNoPair) {
  const Tensor x = symbol({"n", 288});  // 17 columns and more are left
  const Tensor y = ops::matmul(x, weight({288, 337}, 1)) + weight({337}, 2);
  check(x, y, {{0, 288}, {1, 288}, {63, 288}, {64, 288}, {67, 288}, {168, 288}, {341, 288}}, 1);
}
TEST(Strassen, HalvesOfKThatNoVectorDivides) {
  for (const int64_t k : {260, 746}) {
    const Tensor x = symbol({"n", k});
    check(x, ops::matmul(x, weight({k, 270}, 1)), {{64, k}, {79, k}}, 1);
  }
}
TEST(Strassen, SeveralRunsOfKAndRowsAPageApart) {
  const Tensor x = symbol({"n", 2048});
  check(x, ops::relu(ops::matmul(x, weight({2048, 256}, 1)) * 0.02), {{5, 2048}, {71, 2048}}, 1);
}
TEST(Strassen, ResidualAndHeads) {
  const Tensor x = symbol({"b", "s", 256});
  const Tensor product = ops::matmul(x, weight({256, 256}, 1));
  check(x, product * 0.1 + weight({256}, 2) + x, {{2, 41, 256}, {1, 64, 256}}, 1);
  check(x, ops::transpose(ops::reshape(product, {"b", "s", 4, 64}), {0, 2, 3, 1}), {{3, 33, 256}},
        1);
}

Tensor with(const Tensor& t, const std::vector<std::pair<size_t, float>>& changed) {
  std::vector<float> v;
  for (double d : t.to_doubles()) v.push_back(static_cast<float>(d));
  for (const auto& [at, value] : changed) v[at] = value;
  return from_vector(v, t.shape());
}

TEST(Strassen, NanAndInfinitiesWhereThePlainProductHasThem) {
  for (const int64_t k : {256, 1024}) {
    const Tensor x = symbol({"n", k});
    const size_t row = static_cast<size_t>(k);
    const Tensor w = weight({k, 300}, 1) * 0.05;
    const Tensor in =
        with(randn({70, k}, f32, {}, 5),
             {{2 * row + 7, NAN}, {40 * row + 200, HUGE_VALF}, {69 * row, -HUGE_VALF}});
    check_on(x, ops::matmul(x, w), {in});
    // In a weight: all of one column.
    const Tensor broken = with(w, {{300 * 9 + 3, HUGE_VALF}, {300 * 200 + 290, NAN}});
    check(x, ops::matmul(x, broken), {{70, k}});
    // Sums of two elements that are too large, where the products are not.
    const Tensor large = with(randn({70, k}, f32, {}, 5), {{3, 3e38F}, {35 * row + 3, 3e38F}});
    check_on(x, ops::matmul(x, with(w * 0.0, {{300 * 3 + 5, 1e-30F}})), {large});
  }
}

/// Whatever rows are left behind the first that is not finite, they are computed again and no others.
TEST(Strassen, NanInAnyRowsOfFixedAndOfRunTimeNumber) {
  for (const int64_t k : {256, 1280}) {
    const Tensor w = weight({k, 256}, 1) * 0.05;
    const Tensor any = symbol({"n", k}), fixed = symbol({128, k});
    const auto broken = [&](int64_t rows, const std::vector<int64_t>& at) {
      std::vector<std::pair<size_t, float>> changed;
      for (int64_t row : at) changed.emplace_back(static_cast<size_t>(row * k + 5), NAN);
      return with(randn({rows, k}, f32, {}, 5), changed);
    };
    check_on(fixed, ops::matmul(fixed, w),
             {broken(128, {0}), broken(128, {9}), broken(128, {37}), broken(128, {127})}, 1);
    check_on(any, ops::matmul(any, w),
             {broken(65, {64}), broken(66, {32}), broken(79, {20}), broken(169, {84, 168})}, 1);
  }
}

/// Largest difference between two results, as a share of the scale of `want`.
double share(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  double difference = 0, scale = 0;
  for (size_t i = 0; i < b.size(); i++) {
    difference = std::max(difference, std::fabs(a[i] - b[i]));
    scale = std::max(scale, std::fabs(b[i]));
  }
  return difference / scale;
}

TEST(Strassen, ErrorBesideSumsInF64) {
  for (const int64_t k : {256, 3072}) {
    const Tensor x = symbol({128, k}), exact = symbol({128, k}, f64);
    const Tensor w = weight({k, 256}, 1), in = randn({128, k}, f32, {}, 3);
    const Tensor want =
        trace_from(ops::matmul(exact, ops::cast(w, f64)), {exact})(ops::cast(in, f64));
    const FlowGraph g = optimize(trace_from(ops::matmul(x, w), {x}));
    const double halved = share(g.build({.targets = {kTarget}})(in), want),
                 plain = share(g.build({.targets = {kTarget}, .fewer_products = false})(in), want);
    EXPECT_LT(plain, 4e-6) << k;
    EXPECT_LT(halved, 4e-6) << k;
    EXPECT_NE(halved, plain) << k << ": not by Strassen's products";
  }
}

TEST(Strassen, ResultsThatGoToMemoryArePlain) {
  const Tensor x = symbol({64, 256});
  const FlowGraph g = optimize(trace_from(ops::matmul(x, weight({256, 16400}, 1)), {x}));
  const Tensor in = randn({64, 256}, f32, {}, 3);
  EXPECT_EQ(g.build({.targets = {kTarget}})(in).to_doubles(),
            g.build({.targets = {kTarget}, .fewer_products = false})(in).to_doubles());
}

}  // namespace
}  // namespace hidet::test
