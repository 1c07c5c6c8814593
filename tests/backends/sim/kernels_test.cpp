// kernels_test.cpp - correct kernels give the right results in the simulator, with nothing reported.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <hidet/hidet.h>

#include "../../lang/guide.h"

using namespace hidet::lang;
using hidet::Tensor;

namespace {

std::vector<float> values(const Tensor& t) { return t.to_vector<float>(); }

ScriptModule addition() {
  ScriptModule m("addition");
  m.cuda_kernel("add", [](Function& f) {
    auto a = f.arg("a", ptr(hidet::f32));
    auto b = f.arg("b", ptr(hidet::f32));
    auto c = f.arg("c", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i32);
    f.grid_dim((n + 63) / 64);
    f.block_dim(64);
    auto i = let("i", blockIdx.x * 64 + threadIdx.x);
    if (auto _ = when(i < n)) c[i] = a[i] + b[i];
  });
  return m;
}

void check_matmul(int m, int n, int k) {
  const Tensor a = hidet::randn({m, k}, hidet::f32, {}, 1),
               b = hidet::randn({k, n}, hidet::f32, {}, 2);
  const Tensor c = hidet::zeros({m, n}, hidet::f32);
  matmul(m, n, k).simulate("launch", a, b, c);
  const std::vector<float> x = values(a), y = values(b), z = values(c);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int p = 0; p < k; p++) sum += double(x[i * k + p]) * y[p * n + j];
      ASSERT_NEAR(z[i * n + j], sum, 1e-4 * (1 + std::fabs(sum))) << i << ", " << j;
    }
}

}  // namespace

TEST(Simulator, VectorAdd) {
  for (int n : {1, 5, 64, 65, 200}) {
    const Tensor a = hidet::randn({n}, hidet::f32, {}, 3), b = hidet::randn({n}, hidet::f32, {}, 4),
                 c = hidet::zeros({n});
    addition().simulate("launch", a, b, c, n);
    const std::vector<float> x = values(a), y = values(b), z = values(c);
    for (int i = 0; i < n; i++) EXPECT_EQ(z[i], x[i] + y[i]);
  }
}

TEST(Simulator, AGridOfNoBlocksDoesNothing) {
  const Tensor none = hidet::zeros({0}), one = hidet::full({1}, 7);
  addition().simulate("launch", none, none, one, 0);
  EXPECT_EQ(values(one)[0], 7.0f);
}

TEST(Simulator, NaNAndInfinityPass) {
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = hidet::from_vector<float>({inf, nan, 1}, {3}),
               b = hidet::from_vector<float>({-inf, 1, inf}, {3}), c = hidet::zeros({3});
  addition().simulate("launch", a, b, c, 3);
  const std::vector<float> z = values(c);
  EXPECT_TRUE(std::isnan(z[0]));
  EXPECT_TRUE(std::isnan(z[1]));
  EXPECT_EQ(z[2], inf);
}

TEST(Simulator, AKernelByItsOwnName) {
  const Tensor a = hidet::ones({3}), c = hidet::zeros({3});
  addition().simulate("add", a, a, c, 3);
  EXPECT_EQ(values(c), (std::vector<float>{2, 2, 2}));
}

TEST(Simulator, TiledMatmulAtOddSizes) {
  check_matmul(45, 37, 19);
  check_matmul(1, 1, 1);
  check_matmul(33, 64, 8);
}

TEST(Simulator, WarpShuffleReduction) {
  ScriptModule m("sums");
  m.cuda_kernel("sums", [](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto y = f.arg("y", ptr(hidet::f32));
    f.grid_dim(3);
    f.block_dim(32);
    auto v = var("v", hidet::f32, x[blockIdx.x * 32 + threadIdx.x]);
    for (int d = 16; d > 0; d /= 2) v += shfl_down(v, d);
    if (auto _ = when(threadIdx.x == 0)) y[blockIdx.x] = v;
  });
  std::vector<float> in(96);
  for (int i = 0; i < 96; i++) in[i] = static_cast<float>(i);
  const Tensor y = hidet::zeros({3});
  m.simulate("launch", hidet::from_vector<float>(in, {96}), y);
  EXPECT_EQ(values(y), (std::vector<float>{496, 1520, 2544}));
}

TEST(Simulator, VotesOfPartialWarps) {
  ScriptModule m("votes");
  m.cuda_kernel("votes", [](Function& f) {
    auto y = f.arg("y", ptr(hidet::i32));
    f.grid_dim(1);
    f.block_dim(40);
    auto mask = let("mask", ballot(threadIdx.x % 3 == 0));
    auto all = let("all", all_lanes(threadIdx.x < 40));
    auto any = let("any", any_lane(threadIdx.x == 39));
    y[threadIdx.x] = cast(mask, hidet::i32) + select(all, 0, 1) + select(any, 1 << 30, 0);
  });
  const Tensor y = hidet::zeros({40}, hidet::i32);
  m.simulate("launch", y);
  int32_t first = 0, second = 0;
  for (int i = 0; i < 32; i++) first |= int32_t(uint32_t(i % 3 == 0) << i);
  for (int i = 32; i < 40; i++) second |= int32_t(uint32_t(i % 3 == 0) << (i - 32));
  EXPECT_EQ(y.to_vector<int32_t>()[5], first);
  EXPECT_EQ(y.to_vector<int32_t>()[39], second + (1 << 30));
}

TEST(Simulator, BlockSoftmax) {
  constexpr int n = 100;
  ScriptModule m("softmax");
  m.cuda_kernel("softmax", [&](Function& f) {
    auto x = f.arg("x", tensor(hidet::f32, {3, n}));
    auto y = f.arg("y", tensor(hidet::f32, {3, n}));
    f.grid_dim(3);
    f.block_dim(64);
    auto part = shared("part", hidet::f32, {64});
    auto tid = let("tid", threadIdx.x);
    auto row = let("row", blockIdx.x);
    auto reduce = [&](bool is_max) {
      syncthreads();
      for (int d = 32; d > 0; d /= 2) {
        if (auto _ = when(tid < d))
          part[tid] = is_max ? max(part[tid], part[tid + d]) : part[tid] + part[tid + d];
        syncthreads();
      }
    };
    auto top = var("top", hidet::f32, -INFINITY);
    for (auto i : range(tid, n, 64)) top = max(top, x(row, i));
    part[tid] = top;
    reduce(true);
    auto highest = let("highest", part[0]);
    syncthreads();
    auto sum = var("sum", hidet::f32, 0.0f);
    for (auto i : range(tid, n, 64)) sum += exp(x(row, i) - highest);
    part[tid] = sum;
    reduce(false);
    auto total = let("total", part[0]);
    for (auto i : range(tid, n, 64)) y(row, i) = exp(x(row, i) - highest) / total;
  });
  const Tensor x = hidet::randn({3, n}, hidet::f32, {}, 5), y = hidet::zeros({3, n});
  m.simulate("launch", x, y);
  const std::vector<float> a = values(x), b = values(y);
  for (int r = 0; r < 3; r++) {
    double total = 0;
    for (int i = 0; i < n; i++) total += std::exp(double(a[r * n + i]));
    for (int i = 0; i < n; i++)
      EXPECT_NEAR(b[r * n + i], std::exp(double(a[r * n + i])) / total, 1e-6);
  }
}

TEST(Simulator, HistogramByAtomics) {
  ScriptModule m("histogram");
  m.cuda_kernel("histogram", [](Function& f) {
    auto x = f.arg("x", ptr(hidet::i32));
    auto y = f.arg("y", ptr(hidet::i32));
    auto n = f.arg("n", hidet::i32);
    f.grid_dim((n + 31) / 32);
    f.block_dim(32);
    auto bins = shared("bins", hidet::i32, {10});
    if (auto _ = when(threadIdx.x < 10)) bins[threadIdx.x] = 0;
    syncthreads();
    auto i = let("i", blockIdx.x * 32 + threadIdx.x);
    if (auto _ = when(i < n)) atomic_add(bins.ptr(x[i]), 1);
    syncthreads();
    if (auto _ = when(threadIdx.x < 10)) atomic_add(y + threadIdx.x, bins[threadIdx.x]);
  });
  const Tensor x = hidet::randint({77}, 0, 10, hidet::i32, {}, 6),
               y = hidet::zeros({10}, hidet::i32);
  m.simulate("launch", x, y, 77);
  std::vector<int32_t> expected(10);
  for (int32_t v : x.to_vector<int32_t>()) expected[v]++;
  EXPECT_EQ(y.to_vector<int32_t>(), expected);
}

TEST(Simulator, AsynchronousCopiesInTwoStages) {
  ScriptModule m("copies");
  m.cuda_kernel("copies", [](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto y = f.arg("y", ptr(hidet::f32));
    f.grid_dim(1);
    f.block_dim(16);
    auto stage = shared("stage", hidet::f32, {2, 64});
    auto tid = let("tid", threadIdx.x);
    cp_async(stage.ptr(0, tid * 4), x + tid * 4, 16);
    cp_async_commit();
    for (auto k : range(4)) {
      if (auto _ = when(k < 3))
        cp_async(stage.ptr((k + 1) % 2, tid * 4), x + (k + 1) * 64 + tid * 4, 16);
      cp_async_commit();
      cp_async_wait(1);
      syncthreads();
      for (auto i : range(4)) y[k * 64 + i * 16 + tid] = stage(k % 2, i * 16 + tid) * 2.0f;
      syncthreads();
    }
  });
  const Tensor x = hidet::randn({256}, hidet::f32, {}, 7), y = hidet::zeros({256});
  m.simulate("launch", x, y);
  const std::vector<float> a = values(x), b = values(y);
  for (int i = 0; i < 256; i++) EXPECT_EQ(b[i], a[i] * 2);
}

TEST(Simulator, HalvesAndIntegersRoundAndWrap) {
  ScriptModule m("rounding");
  m.public_func("launch", [](Function& f) {
    auto h = f.arg("h", ptr(hidet::f16));
    auto b = f.arg("b", ptr(hidet::bf16));
    auto i = f.arg("i", ptr(hidet::i32));
    h[1] = h[0] + h[0] * 0.333;
    b[1] = b[0] * b[0];
    i[1] = i[0] + 1;
    i[2] = i[0] / (i[1] - i[1]);
  });
  const Tensor h = hidet::from_doubles({1.5, 0}, {2}, hidet::f16),
               b = hidet::from_doubles({1.0078125, 0}, {2}, hidet::bf16);
  const Tensor i = hidet::from_vector<int32_t>({INT32_MAX, 0, 5}, {3});
  m.simulate("launch", h, b, i);
  const float third = hidet::f16_to_f32(hidet::f32_to_f16(0.333f));
  const float product = hidet::f16_to_f32(hidet::f32_to_f16(1.5f * third));
  EXPECT_EQ(h.to_doubles()[1], hidet::f16_to_f32(hidet::f32_to_f16(1.5f + product)));
  EXPECT_EQ(b.to_doubles()[1], hidet::bf16_to_f32(hidet::f32_to_bf16(1.0078125f * 1.0078125f)));
  EXPECT_EQ(i.to_vector<int32_t>(), (std::vector<int32_t>{INT32_MAX, INT32_MIN, 0}));
}

TEST(Simulator, SelectAndLogicalOperatorsReadOnlyTheSideTaken) {
  ScriptModule m("lazy");
  m.public_func("launch", [](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i32);
    for (auto i : range(n + 5)) {
      if (auto _ = when(i < n && x[i] > 0.0f)) x[i] = select(i + 1 < n, x[i + 1], -1.0f);
    }
  });
  const Tensor x = hidet::from_vector<float>({1, 2, 3}, {3});
  m.simulate("launch", x, 3);
  EXPECT_EQ(values(x), (std::vector<float>{2, 3, -1}));
}

TEST(Simulator, CallsVectorsLayoutsAndBranches) {
  ScriptModule m("mixed");
  auto sq = m.cuda_internal("sq", [](Function& f) {
    auto x = f.arg("x", hidet::f32);
    f.returns(x * x);
  });
  m.cuda_kernel("mixed", [&](Function& f) {
    auto x = f.arg("x", tensor(hidet::f32, {8, 8}));
    auto y = f.arg("y", tensor(hidet::f32, {8, 8}));
    f.grid_dim(1);
    f.block_dim(16);
    auto tile = shared("tile", hidet::f32, {8, 8}, swizzle(1, 2, 1));
    auto i = let("i", threadIdx.x / 2), j = let("j", threadIdx.x % 2 * 4);
    tile.store({i, j}, x.load({i, j}, 4) + 1.0f);
    syncthreads();
    for (auto k : range(4)) {
      if (auto _ = when(k == 2)) continue_loop();
      y(i, j + k) = sq(sq(tile(j + k, i)));
    }
  });
  const Tensor x = hidet::randn({8, 8}, hidet::f32, {}, 8), y = hidet::zeros({8, 8});
  m.simulate("launch", x, y);
  const std::vector<float> a = values(x), b = values(y);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) {
      const float v = a[j * 8 + i] + 1.0f, s = v * v;
      EXPECT_EQ(b[i * 8 + j], j % 4 == 2 ? 0.0f : s * s);
    }
}

TEST(Simulator, ThreadsThatWaitForAnAtomicGetTheirTurn) {
  ScriptModule m("spin");
  m.cuda_kernel("spin", [](Function& f) {
    auto flag = f.arg("flag", ptr(hidet::i32));
    f.grid_dim(1);
    f.block_dim(2);
    if (auto _ = when(threadIdx.x == 0)) {
      for (auto w : loop_while(atomic_add(flag, 0) == 0)) (void)w;
    }
    if (auto _ = otherwise()) atomic_exch(flag, 1);
  });
  const Tensor flag = hidet::zeros({1}, hidet::i32);
  m.simulate("launch", flag);
  EXPECT_EQ(flag.to_vector<int32_t>()[0], 1);
}
