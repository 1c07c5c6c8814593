// space_test.cpp - candidates of kernels: how many there are, and that their results are equal.
#include <algorithm>
#include <cmath>

#include "model/spaces.h"

namespace hidet::test {
namespace {

double most_apart(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  EXPECT_EQ(x.size(), y.size());
  double most = 0, scale = 0;
  for (size_t i = 0; i < x.size(); i++) {
    most = std::max(most, std::fabs(x[i] - y[i]));
    scale = std::max(scale, std::fabs(y[i]));
  }
  return most / std::max(scale, 1e-30);
}

/// Every candidate of every kernel of `g` gives what the reference gives, through the code and kernel by kernel.
void expect_candidates_right(const FlowGraph& g, const std::vector<std::vector<Tensor>>& inputs,
                             int space, size_t least, double tolerance = 2e-6) {
  CompiledModel m = build_space(g, space);
  const auto [kernel, count] = richest(m);
  EXPECT_GE(count, least);
  std::vector<Tensor> expected;
  for (const auto& x : inputs) expected.push_back(g.run(x)[0]);
  for (size_t c = 0; c < count; c++) {
    m.use_dispatch_table(one_row(m, kernel, c));
    for (size_t i = 0; i < inputs.size(); i++) {
      const std::string what = m.tasks()[kernel].candidates[c] + ", inputs " + std::to_string(i);
      EXPECT_LE(most_apart(m.run(inputs[i])[0], expected[i]), tolerance) << what;
      std::string ran;
      const Tensor y = m.run(inputs[i], {.hook = [&](const InstructionEvent& e) {
                               if (e.candidate != "default") ran = e.candidate;
                             }})[0];
      EXPECT_LE(most_apart(y, expected[i]), tolerance) << what;
      EXPECT_EQ(ran, c == 0 ? "" : m.tasks()[kernel].candidates[c]);
    }
  }
}

TEST(Space, SpaceZeroHasOneCandidateAndSpacesGrow) {
  const FlowGraph g = product(28, 1100, 32);
  const size_t sizes[] = {richest(build_space(g, 0)).second, richest(build_space(g, 1)).second,
                          richest(build_space(g, 2)).second};
  EXPECT_EQ(sizes[0], 1u);
  EXPECT_GT(sizes[1], 3u);
  EXPECT_GT(sizes[2], 2 * sizes[1]);
  EXPECT_THAT(error_of([&] { build_space(g, 3); }), HasSubstr("0, 1 or 2"));
}

TEST(Space, EveryCandidateOfAProductIsRight) {
  std::vector<std::vector<Tensor>> inputs;
  for (const int64_t n : {1, 13, 200, 0}) inputs.push_back({randn({n, 600}, f32, {}, 3)});
  expect_candidates_right(product("n", 600, 70), inputs, 1, 5);
}

TEST(Space, EveryCandidateOfALongProductIsRight) {  // K in blocks, rows that are copied
  const FlowGraph g = product(28, 1100, 32);
  expect_candidates_right(g, {{randn({28, 1100}, f32, {}, 3)}}, 2, 10);
}

FlowGraph convolution(const std::vector<DimExpr>& x, int64_t filters, int64_t kernel,
                      int64_t stride) {
  const Tensor in = symbol(x, f32, {}, "x");
  const int64_t c = x[1].value(), pad = kernel / 2;
  const Tensor y = ops::conv2d(in, randn({filters, c, kernel, kernel}, f32, {}, 1),
                               {stride, stride}, {pad, pad, pad, pad});
  return trace_from(ops::relu(y + randn({1, filters, 1, 1}, f32, {}, 2)), {in});
}

TEST(Space, EveryCandidateOfAConvolutionIsRight) {  // F(4) of Winograd rounds more
  expect_candidates_right(convolution({2, 24, 13, 11}, 40, 3, 1),
                          {{randn({2, 24, 13, 11}, f32, {}, 3)}}, 1, 3, 1e-4);
  expect_candidates_right(convolution({1, 48, 9, 9}, 70, 1, 1),
                          {{randn({1, 48, 9, 9}, f32, {}, 3)}}, 2, 8);
  expect_candidates_right(convolution({1, 5, 15, 12}, 33, 3, 2),
                          {{randn({1, 5, 15, 12}, f32, {}, 3)}}, 1, 4);
}

TEST(Space, EveryCandidateOfAConvolutionOfAnySizeIsRight) {
  std::vector<std::vector<Tensor>> inputs;
  for (const int64_t h : {1, 6, 23}) inputs.push_back({randn({1, 20, h, 9}, f32, {}, 3)});
  expect_candidates_right(convolution({1, 20, "h", 9}, 36, 3, 1), inputs, 1, 4, 1e-4);
}

TEST(Space, EveryCandidateOfAProductOfTwoComputedIsRight) {
  const Tensor a = symbol({2, "m", 40}, f32, {}, "a"), b = symbol({2, 40, "n"}, f32, {}, "b");
  std::vector<std::vector<Tensor>> inputs;
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {17, 300}, {50, 129}})
    inputs.push_back({randn({2, m, 40}, f32, {}, 3), randn({2, 40, n}, f32, {}, 4)});
  expect_candidates_right(trace_from(ops::matmul(a, b), {a, b}), inputs, 2, 4);
}

TEST(Space, EveryCandidateOfRowsIsRight) {
  const Tensor x = symbol({"n", 77}, f32, {}, "x");
  std::vector<std::vector<Tensor>> inputs;
  for (const int64_t n : {1, 5, 90}) inputs.push_back({randn({n, 77}, f32, {}, 3)});
  expect_candidates_right(trace_from(ops::softmax(x), {x}), inputs, 2, 4);
}

}  // namespace
}  // namespace hidet::test
