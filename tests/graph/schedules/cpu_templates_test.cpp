// cpu_templates_test.cpp - each CPU template against the reference evaluator: odd sizes, symbols, sizes of zero and one, at the
// levels v3 and v4 where this machine has them; what is folded into the stores; NaN and infinities.
#include <hidet/runtime/thread_pool.h>

#include <cstring>

#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

TEST(PackedMatmul, OddSizes) {
  const Tensor x = symbol({5, 37});
  check(x, ops::matmul(x, weight({37, 51}, 1)), {{5, 37}});
}
TEST(PackedMatmul, RowsAtRunTime) {
  const Tensor x = symbol({"n", 24});
  check(x, ops::matmul(x, weight({24, 70}, 1)), {{0, 24}, {1, 24}, {7, 24}, {29, 24}, {170, 24}});
}
TEST(PackedMatmul, RowsCopiedToScratch) {
  const Tensor x = symbol({"n", 1024});
  check(x, ops::matmul(x, weight({1024, 33}, 1)), {{3, 1024}, {17, 1024}});
}
TEST(PackedMatmul, BlocksOfK) {
  const Tensor x = symbol({"n", 2100});  // three blocks
  check(x, ops::matmul(x, weight({2100, 41}, 1)) * 0.02,
        {{0, 2100}, {1, 2100}, {13, 2100}, {30, 2100}});
  const Tensor y = symbol({5, 2053});  // no block divides it
  check(y, ops::matmul(y, weight({2053, 35}, 1)) * 0.02, {{5, 2053}});
}
TEST(PackedMatmul, BlocksOfKInSeveralRowBlocks) {
  const Tensor x = symbol({"n", 2048});
  const Tensor y = ops::matmul(x, weight({2048, 300}, 1)) * 0.02 + weight({300}, 2);
  check(x, y, {{171, 2048}}, 1);
}
TEST(PackedMatmul, TheNumberOfThreadsChangesNoBit) {
  const Tensor x = symbol({60, 2048});
  const Tensor y = ops::matmul(x, weight({2048, 300}, 1)) + weight({300}, 2);
  const CompiledModel model = optimize(trace_from(y, {x})).build();
  const Tensor input = randn({60, 2048}, f32, {}, 3);
  const int before = num_threads();
  std::vector<Tensor> got;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    got.push_back(model.run({input})[0]);
  }
  set_num_threads(before);
  for (const Tensor& t : got)
    EXPECT_EQ(std::memcmp(t.data(), got[0].data(), static_cast<size_t>(t.bytes())), 0);
}
TEST(PackedMatmul, OneRowOfAnyWidth) {
  for (const int64_t n : {1, 16, 63, 64, 65, 200})
    for (const int64_t k : {1, 37, 1030}) {
      const Tensor x = symbol({1, 1, k});
      check(x, ops::relu(ops::matmul(x, weight({k, n}, 1)) * 0.05 + weight({n}, 2)), {{1, 1, k}},
            1);
    }
  const Tensor x = symbol({1, 4096});
  check(x, ops::matmul(x, weight({4096, 500}, 1)) * 0.02, {{1, 4096}});
}
TEST(PackedMatmul, OneRowOfHeads) {
  const Tensor x = symbol({1, "s", 48});
  const Tensor heads = ops::reshape(ops::matmul(x, weight({48, 144}, 1)), {1, "s", 3, 48});
  check(x, ops::transpose(heads, {0, 2, 1, 3}), {{1, 1, 48}, {1, 2, 48}}, 1);
}
TEST(PackedMatmul, NaNInOneRow) {
  const Tensor x = symbol({1, 20});
  std::vector<float> row(20, 1);
  row[7] = std::numeric_limits<float>::quiet_NaN();
  check_on(x, ops::matmul(x, weight({20, 70}, 1)), {from_vector(row, {1, 20})});
  row[7] = HUGE_VALF;
  check_on(x, ops::matmul(x, weight({20, 70}, 1)), {from_vector(row, {1, 20})});
}
TEST(PackedMatmul, FlattenedRowsAreNoWork) {
  const Tensor x = symbol({1, "s", 24});
  const Tensor flat = ops::reshape(x, {"s", 24});
  const Tensor h =
      ops::reshape(ops::matmul(flat, weight({24, 40}, 1)) + weight({40}, 2), {1, "s", 40});
  check(x, h * (ops::tanh((h + h * h * h * 0.044715) * 0.7978845608) + 1.0) * 0.5,
        {{1, 0, 24}, {1, 5, 24}, {1, 15, 24}}, 1);
  // Another reader keeps the product as it is.
  const Tensor product = ops::matmul(flat, weight({24, 24}, 1));
  check(x, ops::reshape(product, {1, "s", 24}) + product, {{1, 1, 24}, {1, 7, 24}});
}
TEST(PackedMatmul, BiasAndResidual) {
  const Tensor x = symbol({"b", "s", 32});
  const Tensor y = ops::matmul(x, weight({32, 32}, 1)) + weight({32}, 2) + x;
  check(x, y, {{2, 9, 32}, {1, 1, 32}}, 1);
}
TEST(PackedMatmul, GeluIsOneKernel) {
  const Tensor x = symbol({"n", 16});
  const Tensor h = ops::matmul(x, weight({16, 40}, 1)) + weight({40}, 2);
  check(x, h * (ops::erf(h / std::sqrt(2.0)) + 1.0) * 0.5, {{0, 16}, {5, 16}, {15, 16}}, 1);
}
TEST(PackedMatmul, HeadsOfAttention) {
  const Tensor x = symbol({"b", "s", 48});
  const Tensor heads = ops::reshape(ops::matmul(x, weight({48, 64}, 1)), {"b", "s", 4, 16});
  const std::vector<Shape> shapes{{1, 1, 48}, {2, 5, 48}, {1, 33, 48}};
  check(x, ops::transpose(heads, {0, 2, 1, 3}), shapes, 1);
  check(x, ops::transpose(heads, {0, 2, 3, 1}), shapes, 1);
}
TEST(PackedMatmul, HeadsThatNoVectorDivides) {
  const Tensor x = symbol({"s", 20});
  const Tensor heads = ops::reshape(ops::matmul(x, weight({20, 36}, 1)), {"s", 3, 12});
  check(x, ops::transpose(heads, {1, 0, 2}), {{1, 20}, {11, 20}}, 1);
}
TEST(PackedMatmul, AViewAloneIsNoWork) {
  const Tensor x = symbol({6, 20});
  const Tensor y = ops::reshape(ops::matmul(x, weight({20, 32}, 1)), {6, 2, 16});
  check(x, ops::softmax(y), {{6, 20}}, 2);
}

TEST(BatchMatmul, SymbolsAndOddSizes) {
  const Tensor x = symbol({"b", 3, "s", 17});
  check(x, ops::matmul(x, ops::transpose(x, {0, 1, 3, 2})),
        {{1, 3, 1, 17}, {2, 3, 7, 17}, {1, 3, 35, 17}, {0, 3, 4, 17}});
}
TEST(BatchMatmul, ScaledAndTransposed) {
  const Tensor x = symbol({2, 4, "s", 8});
  const Tensor y = ops::matmul(ops::softmax(x), ops::transpose(x, {0, 1, 3, 2})) * 0.125;
  check(x, ops::transpose(y, {0, 2, 1, 3}), {{2, 4, 5, 8}, {2, 4, 40, 8}});
}

TEST(Moves, DimsOfSizeOneCostNothing) {
  const Tensor x = symbol({"s", 1, 24});
  const Tensor y =
      ops::reshape(ops::matmul(ops::reshape(x, {"s", 24}), weight({24, 24}, 1)), {"s", 1, 24});
  check(x, ops::transpose(y, {1, 0, 2}) + ops::transpose(x, {1, 0, 2}),
        {{0, 1, 24}, {1, 1, 24}, {9, 1, 24}}, 1);
  check(x, ops::transpose(ops::reshape(x, {"s", 4, 6}), {1, 0, 2}), {{1, 1, 24}, {7, 1, 24}}, 1);
}

TEST(Moves, ASliceBehindAViewIsInItsReader) {
  const Tensor x = symbol({3, 41, 1, 24});
  const Tensor one = ops::reshape(ops::slice(x, {1}, {2}, {0}, {1}), {41, 3, 8});
  check(x, ops::transpose(one, {1, 0, 2}), {{3, 41, 1, 24}}, 1);
  check(x, one * 2.0, {{3, 41, 1, 24}}, 1);
}

TEST(Rows, SoftmaxOfInfinitiesAndNaN) {
  const double inf = HUGE_VAL;
  std::vector<float> v(4 * 21, 0.5f);
  v[3] = static_cast<float>(-inf);
  v[21 + 5] = NAN;
  v[42 + 20] = static_cast<float>(inf);
  for (int i = 63; i < 84; i++) v[static_cast<size_t>(i)] = static_cast<float>(-inf);
  const Tensor input = from_vector(v, {4, 21});
  const Tensor x = symbol({"n", 21});
  for (const Tensor& y : {ops::softmax(x), ops::clip(x, -1, 1)}) {
    const FlowGraph graph = trace_from(y, {x});
    expect_same(graph.build().run({input})[0], graph(input), "rows with NaN");
  }
}
TEST(Rows, SoftmaxOfAnyLength) {
  const Tensor x = symbol({"m", "n"});
  check(x, ops::softmax(x),
        {{1, 1}, {3, 15}, {17, 16}, {2, 31}, {40, 32}, {5, 33}, {1, 197}, {0, 5}, {4, 0}}, 1);
  const Tensor y = symbol({3, "s", 5});
  check(y, ops::transpose(ops::softmax(y * 0.5 + 1.0) * 2.0, {1, 0, 2}), {{3, 1, 5}, {3, 50, 5}},
        1);
}
TEST(Rows, SoftmaxOfKnownLength) {
  for (const int64_t n : {15, 16, 17, 31, 33, 63, 197, 513, 1000}) {
    const Tensor x = symbol({"m", n});
    check(x, ops::softmax(x), {{5, n}}, 1);
    check(x, ops::softmax(x) * 0.5 + x, {{5, n}});  // the store reads: no element is made twice
  }
}
TEST(Rows, SoftmaxOfMaskedRows) {
  const Tensor x = symbol({"n", 37});
  const Tensor mask = randn({37}, f32, {}, 5);
  std::vector<float> v(2 * 37, 0.25F);
  for (size_t i = 0; i < 36; i++) v[i] = -HUGE_VALF;
  for (size_t i = 37; i < 74; i++) v[i] = 88.0F + static_cast<float>(i);
  const FlowGraph graph = trace_from(ops::softmax(x + mask), {x});
  const Tensor input = from_vector(v, {2, 37});
  const std::vector<double> got = optimize(graph).build().run({input})[0].to_doubles(),
                            want = graph(input).to_doubles();
  for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  EXPECT_EQ(got[36], 1.0);
}
TEST(Rows, LayerNormOfOddRows) {
  const Tensor x = symbol({"n", 3, 45});
  check(x, ops::layer_norm(x, weight({45}, 1), weight({45}, 2)),
        {{1, 3, 45}, {0, 3, 45}, {4, 3, 45}});
}

TEST(Rows, LayerNormAndLogSoftmaxOfAnyRows) {
  const Tensor x = symbol({"n", 3, "m"});
  const std::vector<Shape> shapes{{2, 3, 1},   {1, 3, 15}, {3, 3, 65},
                                  {1, 3, 200}, {0, 3, 7},  {2, 3, 0}};
  check(x, ops::log_softmax(x, 2), shapes);
  for (const int64_t n : {1, 7, 16, 33, 64, 65, 130, 1000}) {
    const Tensor y = symbol({"r", 2, n});
    check(y, ops::layer_norm(y + y * 0.5, weight({n}, 1), weight({n}, 2), 2) * 2.0, {{3, 2, n}}, 1);
    check(y, ops::layer_norm(y, weight({2, n}, 1), weight({n}, 2), 1), {{5, 2, n}, {1, 2, n}}, 1);
  }
}
TEST(Reductions, AlongAndAcrossAnySizes) {
  const Tensor x = symbol({"r", "c"});
  const std::vector<Shape> shapes{{1, 1}, {3, 17}, {9, 300}, {70, 64}, {130, 1030}, {4, 2100}};
  for (const int64_t axis : {0, 1}) {
    check(x, ops::reduce_sum(x, {axis}) * 0.1, shapes, 1);
    check(x, ops::reduce_max(x, {axis}), shapes, 1);
    check(x, ops::reduce_mean(x * x, {axis}, true) + 1.0, shapes);
    std::vector<float> values = randn({37 * 90}, f32, {}, 4).to_vector<float>();
    values[5] = values[1234] = std::numeric_limits<float>::quiet_NaN();
    values[95] = -HUGE_VALF, values[2222] = HUGE_VALF;
    check_on(x, ops::reduce_min(x, {axis}), {from_vector(values, {37, 90})}, 1);
    check_on(x, ops::reduce_sum(x, {axis}), {from_vector(values, {37, 90})}, 1);
  }
  const Tensor y = symbol({2, "b", 5, 40});
  check(y, ops::reduce_sum(y, {1, 2}), {{2, 3, 5, 40}, {2, 0, 5, 40}});
  check(y, ops::reduce_sum(y, {0, 1, 2}), {{2, 3, 5, 40}});
  check(y, ops::reduce_max(y, {2}), {{2, 3, 5, 40}});
}

TEST(Forms, EqualLayersShareAKernel) {
  const Tensor x = symbol({"n", 32});
  Tensor y = x;
  for (uint64_t i = 0; i < 6; i++) y = ops::relu(ops::matmul(y, weight({32, 32}, i)));
  graph::BuildReport report;
  graph::build_model_data(optimize(trace_from(y, {x})), {}, &report);
  EXPECT_EQ(report.kernels, 6);
  EXPECT_EQ(report.kernels_unique, 2);  // the layer, and the packing of its weight
}
TEST(Forms, OperandsInAnotherOrderAreAnotherKernel) {
  const Tensor x = symbol({8}), y = symbol({8});
  const FlowGraph graph(std::vector<Tensor>{x, y}, {ops::neg(x - y), ops::neg(y - x), x - x});
  const Tensor a = weight({8}, 1), b = weight({8}, 2);
  const std::vector<Tensor> want = graph.run({a, b}), got = graph.build().run({a, b});
  for (size_t i = 0; i < want.size(); i++) expect_same(got[i], want[i], "difference");
}

}  // namespace
}  // namespace hidet::test
