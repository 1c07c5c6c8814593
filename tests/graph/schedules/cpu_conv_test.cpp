// cpu_conv_test.cpp - the CPU's convolution and pool templates against the reference evaluator: odd sizes, sizes at run time, of
// zero and of one, strides, dilations, uneven pads, what is folded into the stores, NaN and infinities.
#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

/// randn with a NaN and both infinities.
Tensor with_specials(const Shape& shape) {
  std::vector<float> v;
  for (double d : randn(shape, f32, {}, 5).to_doubles()) v.push_back(static_cast<float>(d));
  v[v.size() / 7] = NAN;
  v[v.size() / 3] = HUGE_VALF;
  v[v.size() - 1] = -HUGE_VALF;
  return from_vector(v, shape);
}

TEST(Convolution, OddSizesAndFoldedSteps) {
  const Tensor x = symbol({"n", 5, 11, 9});
  const Tensor bias = weight({1, 21, 1, 1}, 2);
  check(x, ops::relu(ops::conv2d(x, weight({21, 5, 3, 3}, 1), {1, 1}, {1, 1, 1, 1}) + bias),
        {{1, 5, 11, 9}, {3, 5, 11, 9}, {0, 5, 11, 9}});
}
TEST(Convolution, StridesAndDilation) {
  const Tensor x = symbol({1, 3, 13, 15});
  check(x, ops::conv2d(x, weight({35, 3, 3, 2}, 1), {2, 3}, {0, 1, 2, 0}, {2, 1}),
        {{1, 3, 13, 15}});
}
TEST(Convolution, SiluReadsItsValueTwice) {
  const Tensor x = symbol({1, 4, 6, 6});
  const Tensor y = ops::conv2d(x, weight({16, 4, 1, 1}, 1));
  check(x, y * ops::sigmoid(y), {{1, 4, 6, 6}});
}
TEST(Convolution, PixelsAPageApartAreReadInPlace) {
  const Tensor x = symbol({"n", 1024, 5, 3});
  check(x, ops::conv2d(x, weight({70, 1024, 1, 1}, 1)), {{1, 1024, 5, 3}, {2, 1024, 5, 3}});
}
TEST(Convolution, ThreePanelsForFlatPixels) {
  const Tensor x = symbol({"n", 20, 7, 9});
  check(x, ops::relu(ops::conv2d(x, weight({96, 20, 1, 1}, 1))), {{1, 20, 7, 9}, {3, 20, 7, 9}});
}
TEST(Convolution, PixelsOfALargeImageAreFetchedAhead) {
  const Tensor x = symbol({1, 20, 101, 73});
  for (const int64_t n : {7, 40, 144})
    check(x, ops::conv2d(x, weight({n, 20, 1, 1}, 1)), {{1, 20, 101, 73}});
}
TEST(Convolution, LargeWeightsShareCopiedPixels) {
  const std::vector<Shape> shapes{{0, 80, 13, 11}, {1, 80, 13, 11}, {3, 80, 13, 11}};
  const Tensor x = symbol({"n", 80, 13, 11});
  check(x, ops::conv2d(x, weight({200, 80, 3, 3}, 1), {2, 2}, {1, 1, 1, 1}), shapes);
  check(x, ops::conv2d(x, weight({1500, 80, 1, 1}, 1), {2, 2}, {0, 0, 0, 0}), shapes);
  const Tensor large = symbol({1, 80, 41, 40});
  check(large, ops::conv2d(large, weight({200, 80, 3, 3}, 1), {2, 2}, {1, 1, 1, 1}),
        {{1, 80, 41, 40}});
}
TEST(Convolution, PixelsInEvenNumbersOfParts) {
  // Five column blocks of 32: two parts of the image, whose weights come first. 289 pixels: four parts, not three.
  const Tensor x = symbol({"n", 700, 7, 7}), large = symbol({1, 9, 17, 17});
  check(x, ops::relu(ops::conv2d(x, weight({150, 700, 1, 1}, 1)) + weight({1, 150, 1, 1}, 2)),
        {{1, 700, 7, 7}, {3, 700, 7, 7}});
  check(large, ops::conv2d(large, weight({40, 9, 1, 1}, 1)), {{1, 9, 17, 17}});
}
TEST(Convolution, ResidualOfTheSameImage) {
  const Tensor x = symbol({2, 16, 7, 5});
  const Tensor y = ops::conv2d(ops::relu(ops::conv2d(x, weight({16, 16, 1, 1}, 1))),
                               weight({16, 16, 3, 3}, 2), {1, 1}, {1, 1, 1, 1});
  check(x, ops::relu(y + x), {{2, 16, 7, 5}});
}
TEST(Convolution, SpecialValues) {
  const Tensor x = symbol({1, 3, 7, 9}), any = symbol({1, 3, "h", "w"});
  const Tensor w = weight({18, 3, 3, 3}, 1);
  for (const Tensor& in : {x, any})
    check_on(in, ops::conv2d(in, w, {1, 1}, {1, 1, 1, 1}), {with_specials({1, 3, 7, 9})});
}

TEST(Convolution, StoredAlongPixels) {
  const Tensor x = symbol({"n", 6, 9, 17}), any = symbol({"n", 6, "h", "w"});
  const Tensor bias = weight({1, 35, 1, 1}, 2);
  for (const Tensor& in : {x, any})
    for (int64_t kernel : {1, 3}) {
      const int64_t pad = kernel / 2;
      const Tensor y =
          ops::conv2d(in, weight({35, 6, kernel, kernel}, 1), {1, 1}, {pad, pad, pad, pad});
      check(in, y + bias, {{1, 6, 9, 17}, {2, 6, 9, 17}, {0, 6, 9, 17}});
    }
}

TEST(ConvolutionAtRunTime, ThreeByThree) {
  const Tensor x = symbol({"n", 5, "h", "w"});
  const Tensor y = ops::conv2d(x, weight({37, 5, 3, 3}, 1), {1, 1}, {1, 1, 1, 1});
  check(x, ops::relu(y + weight({1, 37, 1, 1}, 2)),
        {{1, 5, 11, 9}, {2, 5, 1, 1}, {1, 5, 3, 31}, {1, 5, 33, 1}, {0, 5, 4, 4}});
}
TEST(ConvolutionAtRunTime, OneSizeKnown) {
  const Tensor x = symbol({1, 8, 6, "w"});
  check(x, ops::conv2d(x, weight({16, 8, 3, 3}, 1), {1, 1}, {1, 1, 1, 1}),
        {{1, 8, 6, 17}, {1, 8, 6, 1}});
}
TEST(ConvolutionAtRunTime, StridesDilationUnevenPads) {
  const Tensor x = symbol({1, 40, "h", "w"});
  check(x, ops::conv2d(x, weight({35, 40, 3, 2}, 1), {2, 3}, {0, 1, 2, 0}, {2, 1}),
        {{1, 40, 13, 15}, {1, 40, 5, 2}, {1, 40, 18, 64}});
}
TEST(ConvolutionAtRunTime, PadsWiderThanTheImage) {
  const Tensor x = symbol({1, 2, "h", "w"});
  check(x, ops::conv2d(x, weight({3, 2, 2, 2}, 1), {1, 1}, {3, 4, 3, 5}),
        {{1, 2, 1, 1}, {1, 2, 2, 3}});
}
TEST(ConvolutionAtRunTime, PointsInPlace) {
  const Tensor x = symbol({"n", 24, "h", "w"});
  const Tensor y = ops::conv2d(x, weight({33, 24, 1, 1}, 1));
  check(x, y * ops::sigmoid(y), {{1, 24, 5, 3}, {2, 24, 16, 17}, {1, 24, 1, 1}, {0, 24, 2, 2}});
}
TEST(ConvolutionAtRunTime, PointsAPageApart) {
  const Tensor x = symbol({1, 1024, "h", "w"});
  check(x, ops::conv2d(x, weight({130, 1024, 1, 1}, 1)), {{1, 1024, 3, 5}, {1, 1024, 1, 1}});
}
TEST(ConvolutionAtRunTime, PointsWithStrideOrPad) {
  const Tensor x = symbol({1, 130, "h", "w"});
  check(x, ops::conv2d(x, weight({20, 130, 1, 1}, 1), {2, 2}), {{1, 130, 9, 6}, {1, 130, 1, 1}});
  check(x, ops::conv2d(x, weight({20, 130, 1, 1}, 1), {1, 2}, {0, 0, 1, 1}), {{1, 130, 4, 5}});
}
TEST(ConvolutionAtRunTime, LargeWeight) {
  const Tensor x = symbol({1, 128, "h", "w"});
  check(x, ops::conv2d(x, weight({128, 128, 3, 3}, 1), {1, 1}, {2, 2, 2, 2}, {2, 2}),
        {{1, 128, 9, 30}, {1, 128, 2, 2}});
}

TEST(Moves, TransposedReadsWithAndBesideSquares) {
  const Tensor x = symbol({"n", "c", "h", "w"});
  const Tensor y = ops::transpose(x * ops::sigmoid(x), {0, 2, 3, 1});
  check(x, y,
        {{1, 32, 4, 16}, {2, 19, 3, 37}, {1, 3, 5, 7}, {1, 1, 1, 1}, {1, 40, 1, 16}, {0, 2, 2, 2}},
        1);
  const Tensor m = symbol({33, 50});
  check_on(m, ops::transpose(m, {1, 0}) + weight({33}, 1), {with_specials({33, 50})}, 1);
}
TEST(Moves, FewChannelsAreInterleaved) {
  for (const int64_t c : {2, 3, 4, 5}) {
    const Tensor x = symbol({"n", c, "h", "w"});
    const Tensor y = ops::transpose(x * ops::sigmoid(x), {0, 2, 3, 1});
    check(x, y, {{1, c, 4, 16}, {2, c, 5, 37}, {1, c, 5, 7}, {0, c, 2, 2}, {1, c, 130, 200}}, 1);
    for (const int64_t w : {9, 16, 45}) {
      const Tensor fixed = symbol({2, c, 3, w});
      check_on(fixed, ops::transpose(fixed, {0, 2, 3, 1}), {with_specials({2, c, 3, w})}, 1);
    }
  }
}
TEST(Moves, SquaresThatEndWhereTheTensorEnds) {
  const Tensor x = symbol({"r", "c"});
  check(x, ops::transpose(x, {1, 0}),
        {{8, 16}, {16, 8}, {17, 31}, {64, 65}, {130, 300}, {257, 16}, {15, 400}, {0, 16}, {16, 0}});
  for (const Shape& shape : {Shape{1, 16, 16}, Shape{3, 65, 20}, Shape{2, 270, 33}}) {
    const Tensor fixed = symbol({shape[0], shape[1], shape[2]});
    check(fixed, ops::transpose(fixed, {0, 2, 1}), {shape}, 1);
    check(fixed, ops::transpose(ops::tanh(fixed) * 2.0, {2, 0, 1}), {shape}, 1);
  }
}
TEST(Moves, ChannelsOfTwoTensorsTransposed) {
  const Tensor x = symbol({1, 20, 6, "w"});
  const Tensor y = ops::concat({x, ops::relu(x)}, 1);
  check(x, ops::transpose(y, {0, 2, 3, 1}), {{1, 20, 6, 5}, {1, 20, 6, 48}});
}
TEST(Moves, ReshapeInsideAChain) {
  const Tensor x = symbol({"n", 4, 96}), any = symbol({2, "h", "w"});
  check(x, ops::reshape(x, {"n", 12, 4, 8}) * weight({12, 1, 1}, 1) + weight({8}, 2),
        {{1, 4, 96}, {3, 4, 96}, {0, 4, 96}}, 1);
  const Tensor y = ops::reshape(any, {2, -1}) * 2.0;
  check(any, ops::reshape(y, {"w", "h", 2}) + 1.0, {{2, 3, 17}, {2, 1, 1}});
}
TEST(Moves, GroupNormOfAConvolution) {
  const Tensor x = symbol({1, 3, "h", "w"});
  const Tensor y = ops::conv2d(x, weight({12, 3, 3, 3}, 1), {1, 1}, {1, 1, 1, 1});
  const Tensor groups = ops::reshape(y, {1, 4, -1});
  const Tensor centred = groups - ops::reduce_mean(groups, {2}, true);
  const Tensor z =
      ops::reshape(centred, y.shape_expr()) * weight({12, 1, 1}, 2) + weight({12, 1, 1}, 3);
  check(x, ops::conv2d(z, weight({5, 12, 1, 1}, 4)), {{1, 3, 5, 9}, {1, 3, 16, 16}, {1, 3, 1, 1}});
}

TEST(Depthwise, BordersAndChannelsBesideAVector) {
  const Tensor x = symbol({"n", 19, 8, 10});
  const Tensor y = ops::conv2d(x, weight({19, 1, 3, 3}, 1), {2, 2}, {1, 1, 1, 1}, {1, 1}, 19);
  check(x, ops::clip(y, 0, 6), {{1, 19, 8, 10}, {2, 19, 8, 10}});
}

TEST(Depthwise, SizesAtRunTime) {
  const Tensor x = symbol({"n", 35, "h", "w"});
  const Tensor y = ops::conv2d(x, weight({35, 1, 3, 3}, 1), {1, 1}, {1, 1, 1, 1}, {1, 1}, 35);
  check(x, ops::clip(y, 0, 6),
        {{1, 35, 5, 14}, {2, 35, 1, 1}, {1, 35, 2, 2}, {1, 35, 3, 33}, {0, 35, 4, 4}});
  const Tensor known = symbol({1, 35, 6, "w"});
  check_on(known, ops::conv2d(known, weight({35, 1, 3, 3}, 1), {2, 2}, {1, 1, 1, 1}, {1, 1}, 35),
           {with_specials({1, 35, 6, 17}), with_specials({1, 35, 6, 2})});
}
TEST(Depthwise, UnevenPadsAndDilationAtRunTime) {
  const Tensor x = symbol({1, 7, "h", "w"});
  check(x, ops::conv2d(x, weight({7, 1, 2, 3}, 1), {1, 2}, {0, 3, 2, 1}, {2, 2}, 7),
        {{1, 7, 9, 21}, {1, 7, 3, 1}, {1, 7, 1, 4}});
  check(x, ops::conv2d(x, weight({7, 1, 5, 5}, 1), {1, 1}, {0, 0, 0, 0}, {1, 1}, 7),
        {{1, 7, 5, 5}, {1, 7, 6, 30}});
}

// Tensors large enough for one kernel of two or three convolutions. Two of the kernels move the image to NHWC and back.
TEST(InvertedBlock, ExpansionAndDepthwise) {
  const Tensor x = symbol({"n", 5, 31, 33});
  const Tensor wide =
      ops::clip(ops::conv2d(x, weight({70, 5, 1, 1}, 1)) + weight({1, 70, 1, 1}, 2), -0.5, 2);
  const Tensor y = ops::conv2d(wide, weight({70, 1, 3, 3}, 3), {1, 1}, {1, 1, 1, 1}, {1, 1}, 70);
  check(x, ops::relu(y + weight({1, 70, 1, 1}, 4)),
        {{1, 5, 31, 33}, {3, 5, 31, 33}, {0, 5, 31, 33}}, 2);
}
TEST(InvertedBlock, StridesDilationUnevenPads) {
  const Tensor x = symbol({"n", 9, 41, 29});
  const Tensor wide = ops::relu(ops::conv2d(x, weight({64, 9, 1, 1}, 1)));
  check(x, ops::conv2d(wide, weight({64, 1, 3, 5}, 3), {3, 2}, {3, 0, 1, 2}, {2, 1}, 64),
        {{1, 9, 41, 29}});
  check(x, ops::conv2d(wide, weight({64, 1, 2, 2}, 3), {1, 1}, {0, 3, 4, 0}, {1, 3}, 64),
        {{2, 9, 41, 29}});
}
TEST(InvertedBlock, ProjectionWithItsResidual) {
  const Tensor x = symbol({"n", 6, 45, 43});
  const Tensor wide = ops::clip(ops::conv2d(x, weight({150, 6, 1, 1}, 1)), 0, 6);
  const Tensor middle =
      ops::conv2d(wide, weight({150, 1, 3, 3}, 2), {1, 1}, {1, 1, 1, 1}, {1, 1}, 150);
  const Tensor y = ops::conv2d(ops::clip(middle, 0, 6), weight({6, 150, 1, 1}, 3));
  check(x, y + x, {{1, 6, 45, 43}, {2, 6, 45, 43}, {0, 6, 45, 43}});
}
TEST(InvertedBlock, DepthwiseAndProjection) {
  const Tensor x = symbol({"n", 150, 45, 43});
  const Tensor y =
      ops::relu(ops::conv2d(x, weight({150, 1, 3, 3}, 2), {1, 1}, {1, 1, 1, 1}, {1, 1}, 150));
  check(x, ops::conv2d(y, weight({35, 150, 1, 1}, 3)) + weight({1, 35, 1, 1}, 4),
        {{1, 150, 45, 43}, {0, 150, 45, 43}});
}
TEST(InvertedBlock, SpecialValues) {
  const Tensor x = symbol({1, 6, 45, 43});
  const Tensor wide = ops::clip(ops::conv2d(x, weight({150, 6, 1, 1}, 1)), 0, 6);
  const Tensor middle =
      ops::conv2d(wide, weight({150, 1, 3, 3}, 2), {1, 1}, {1, 1, 1, 1}, {1, 1}, 150);
  check_on(x, middle, {with_specials({1, 6, 45, 43})});
  check_on(x, ops::conv2d(middle, weight({6, 150, 1, 1}, 3)), {with_specials({1, 6, 45, 43})});
}
TEST(InvertedBlock, WhatIsReadTwiceStaysInMemory) {
  const Tensor x = symbol({1, 5, 31, 33});
  const Tensor wide = ops::relu(ops::conv2d(x, weight({70, 5, 1, 1}, 1)));
  const Tensor y = ops::conv2d(wide, weight({70, 1, 3, 3}, 3), {1, 1}, {1, 1, 1, 1}, {1, 1}, 70);
  check(x, y + wide, {{1, 5, 31, 33}});
}

}  // namespace
}  // namespace hidet::test
