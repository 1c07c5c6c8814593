// windows_test.cpp - pools of NCHW images on CPUs beside the reference evaluator: strides, dilations, pads, rounding up, sizes at run time,
// NaN and infinities; norms of groups, means of several dims; transposed convolutions made of plain ones beside the operator's own definition.
#include <limits>

#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

using Ints = std::vector<int64_t>;

struct Case {
  Ints kernel, stride, pads, dilation;
  bool ceil;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> list{
      {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, false}, {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, false},
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, false}, {{5, 2}, {1, 3}, {2, 0, 1, 1}, {1, 1}, false},
      {{3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true},  {{1, 4}, {3, 4}, {0, 3, 0, 2}, {1, 1}, true}};
  return list;
}

TEST(Pools, LargestOfKnownSizes) {
  for (const Case& c : cases())
    for (const Shape& shape : {Shape{2, 3, 7, 9}, Shape{1, 5, 14, 14}, Shape{1, 2, 33, 70}}) {
      const Tensor x = symbol({shape.begin(), shape.end()});
      check(x, ops::max_pool2d(x, c.kernel, c.stride, c.pads, c.dilation, c.ceil), {shape}, 1);
    }
}
TEST(Pools, DilatedWindows) {
  const Tensor x = symbol({2, 3, 20, 37});
  check(x, ops::max_pool2d(x, {3, 2}, {2, 1}, {2, 1, 2, 1}, {2, 3}), {{2, 3, 20, 37}}, 1);
  check(x, ops::max_pool2d(x, {2, 3}, {1, 2}, {0, 2, 1, 2}, {3, 2}), {{2, 3, 20, 37}}, 1);
}
TEST(Pools, MeanOfKnownSizes) {
  for (const Case& c : cases())
    for (const bool counts : {false, true})
      for (const Shape& shape : {Shape{2, 3, 7, 9}, Shape{1, 2, 21, 40}}) {
        const Tensor x = symbol({shape.begin(), shape.end()});
        check(x, ops::avg_pool2d(x, c.kernel, c.stride, c.pads, counts, c.ceil), {shape}, 1);
      }
}
TEST(Pools, SizesAtRunTime) {
  const std::vector<Shape> shapes{{0, 3, 5, 6}, {1, 3, 3, 3}, {2, 3, 17, 16}, {1, 3, 40, 67}};
  for (const Case& c : {cases()[0], cases()[2], cases()[4]}) {
    const Tensor x = symbol({"n", 3, "h", "w"});
    check(x, ops::max_pool2d(x, c.kernel, c.stride, c.pads, c.dilation, c.ceil), shapes, 1);
    check(x, ops::avg_pool2d(x, c.kernel, c.stride, c.pads, false, c.ceil), shapes, 1);
  }
}
TEST(Pools, LargeImagesInParts) {
  const Tensor x = symbol({1, 1, 201, 403});
  check(x, ops::max_pool2d(x, {3, 3}, {2, 2}, {1, 1, 1, 1}), {{1, 1, 201, 403}}, 1);
}
TEST(Pools, WhatComesBehindIsTheSameKernel) {
  const Tensor x = symbol({2, 5, 12, 18});
  const Tensor y = ops::avg_pool2d(x, {3, 3}, {1, 1}, {1, 1, 1, 1}) + weight({5, 1, 1}, 4);
  check(x, ops::relu(y), {{2, 5, 12, 18}}, 1);
}
TEST(Pools, NaNWinsAndInfinitiesStay) {
  Tensor input = randn({1, 2, 9, 23}, f32, {}, 6);
  auto* v = static_cast<float*>(input.data());
  v[30] = std::numeric_limits<float>::quiet_NaN();
  v[100] = std::numeric_limits<float>::infinity();
  for (int i = 207; i < 300; i++) v[i] = -std::numeric_limits<float>::infinity();
  const Tensor x = symbol({1, 2, 9, 23});
  check_on(x, ops::max_pool2d(x, {3, 3}, {2, 2}, {1, 1, 1, 1}), {input}, 1);
  check_on(x, ops::avg_pool2d(x, {3, 3}, {1, 1}, {1, 1, 1, 1}), {input}, 1);
}

TEST(Norms, GroupsOfChannelsAreOneKernel) {
  for (const int64_t size : {7, 16}) {
    const Tensor x = symbol({2, 12, size, size});
    const Tensor rows = ops::reshape(x, {2, 4, 3, size * size});
    const Tensor norm = ops::layer_norm(rows, ops::scalar_like(rows, 1), {}, 2);
    check(x,
          ops::reshape(norm, {2, 12, size, size}) * weight({12, 1, 1}, 1) + weight({12, 1, 1}, 2),
          {{2, 12, size, size}}, 1);
  }
}
TEST(Reductions, SeveralLastDimsAreOne) {
  const Tensor x = symbol({"n", 5, 7, "w"});
  const std::vector<Shape> shapes{{1, 5, 7, 1}, {3, 5, 7, 9}, {0, 5, 7, 2}};
  for (const bool keep : {false, true}) {
    check(x, ops::reduce_sum(x, {2, 3}, keep), shapes, 1);
    check(x, ops::reduce_mean(x, {3, 2, 1}, keep), shapes, 1);
    check(x, ops::reduce_max(x, {-1, -2}, keep), shapes, 1);
  }
  check(x, ops::reduce_sum(x, {}, true), shapes, 1);
}

struct Transposed {
  Shape x, w;
  Ints stride, pads, extra;
};
/// The operator itself, by its definition.
Tensor by_definition(const Tensor& x, const Tensor& w, const Transposed& c) {
  return graph::apply("conv_transpose2d", {x, w},
                      {{"stride", c.stride},
                       {"pads", c.pads},
                       {"dilation", Ints{1, 1}},
                       {"output_padding", c.extra},
                       {"groups", int64_t{1}}})[0];
}
TEST(TransposedConvolution, PlainConvolutionsGiveTheSame) {
  const std::vector<Transposed> list{{{2, 3, 5, 4}, {3, 6, 2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}},
                                     {{1, 5, 6, 7}, {5, 4, 4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}},
                                     {{1, 5, 6, 7}, {5, 4, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
                                     {{2, 2, 3, 5}, {2, 3, 5, 4}, {3, 1}, {2, 0, 1, 3}, {0, 0}},
                                     {{1, 2, 1, 1}, {2, 3, 3, 3}, {1, 1}, {0, 1, 2, 1}, {0, 0}}};
  for (const Transposed& c : list) {
    const Tensor x = randn(c.x, f32, {}, 1), w = weight(c.w, 2);
    const Tensor want = by_definition(x, w, c),
                 got = ops::conv_transpose2d(x, w, c.stride, c.pads, {1, 1}, c.extra);
    expect_close(got, want, "evaluated");
    const Tensor in = symbol({c.x.begin(), c.x.end()});
    check(in, ops::conv_transpose2d(in, w, c.stride, c.pads, {1, 1}, c.extra), {c.x});
  }
}
TEST(TransposedConvolution, NoKernelPositionOfAnotherPhaseMeetsAnInfinity) {
  const Transposed c{{1, 1, 3, 3}, {1, 2, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}};
  Tensor x = randn(c.x, f32, {}, 1);
  static_cast<float*>(x.data())[4] = std::numeric_limits<float>::infinity();
  const Tensor w = weight(c.w, 2);
  expect_close(ops::conv_transpose2d(x, w, c.stride, c.pads, {1, 1}, c.extra),
               by_definition(x, w, c), "an infinity");
}
TEST(TransposedConvolution, SizesAtRunTime) {
  const Tensor x = symbol({"n", 3, "h", "w"});
  const Tensor y = ops::conv_transpose2d(x, weight({3, 4, 4, 4}, 2), {2, 2}, {1, 1, 1, 1}),
               z = ops::conv_transpose2d(x, weight({3, 4, 3, 3}, 2), {2, 2}, {1, 1, 1, 1}, {1, 1},
                                         {1, 1});
  for (const Tensor& t : {y, z}) check(x, t, {{1, 3, 1, 1}, {2, 3, 5, 8}});
}

}  // namespace
}  // namespace hidet::test
