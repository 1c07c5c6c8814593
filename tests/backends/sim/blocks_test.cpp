// blocks_test.cpp - blocks on several threads, blocks that wait for each other: results and reports do not depend on the number of
// threads.
#include <gtest/gtest.h>

#include <hidet/backends/sim.h>
#include <hidet/hidet.h>
#include <hidet/runtime/thread_pool.h>

#include <sys/mman.h>

using namespace hidet::lang;
using hidet::Tensor;

namespace {

struct Outcome {
  std::string report;
  std::vector<float> values;
  bool operator==(const Outcome&) const = default;
};

/// 40 blocks of 32 threads over 1280 floats, on so many threads.
Outcome run(int threads, const std::function<void(Handle, Value)>& body) {
  const int before = hidet::num_threads();
  hidet::set_num_threads(threads);
  ScriptModule m("blocks");
  m.cuda_kernel("blocks", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    f.grid_dim(40);
    f.block_dim(32);
    body(x, let("i", blockIdx.x * 32 + threadIdx.x));
  });
  const Tensor x = hidet::zeros({1280});
  Outcome out;
  try {
    m.simulate("launch", x);
  } catch (const hidet::Error& e) {
    out.report = e.what();
  }
  hidet::set_num_threads(before);
  out.values = x.to_vector<float>();
  return out;
}

void expect_same(const std::function<void(Handle, Value)>& body, const std::string& part) {
  const Outcome one = run(1, body);
  EXPECT_NE(one.report.find(part), std::string::npos) << one.report;
  EXPECT_EQ(one.report.empty(), part.empty());
  for (int repeat = 0; repeat < 5; repeat++) {
    const Outcome many = run(8, body);
    EXPECT_EQ(many.report, one.report);
    EXPECT_EQ(many.values, one.values);
  }
}

}  // namespace

TEST(SimulatorBlocks, ResultsOnManyThreads) {
  expect_same([](Handle x, Value i) { x[i] = x[i] + cast(i, hidet::f32) * 0.37f; }, "");
}

TEST(SimulatorBlocks, TheFirstBlocksFaultIsReported) {
  // Each block changes its memory once, whoever finds the fault first.
  expect_same(
      [](Handle x, Value i) {
        x[i] = x[i] + 1.0f;
        if (auto _ = when(i % 32 == 7 && i / 32 % 9 == 5)) x[i + 2000] = 1.0f;
      },
      "write outside 'x': index 2167 on; it has 1280 elements (kernel 'blocks', block (5, 0, 0), "
      "thread (7, 0, 0))");
}

TEST(SimulatorBlocks, InputsMayLieInMemoryThatCannotBeWritten) {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  {
    const Tensor x = Tensor::from_blob(page, {1024}, hidet::f32, {}, [](void*) {}),
                 y = hidet::zeros({1024});
    ScriptModule m("read_only");
    m.cuda_kernel("read_only", [](Function& f) {
      auto a = f.arg("a", ptr(hidet::f32));
      auto b = f.arg("b", ptr(hidet::f32));
      f.grid_dim(32);
      f.block_dim(32);
      auto i = let("i", blockIdx.x * 32 + threadIdx.x);
      b[i] = a[i + 4];
    });
    const int before = hidet::num_threads();
    hidet::set_num_threads(4);
    try {
      m.simulate("launch", x, y);
      ADD_FAILURE() << "no report";
    } catch (const hidet::Error& e) {
      EXPECT_NE(std::string(e.what()).find("read outside 'a': index 1024 on"), std::string::npos)
          << e.what();
    }
    hidet::set_num_threads(before);
  }
  munmap(page, 4096);
}

TEST(SimulatorBlocks, RacesBetweenBlocksAreReportedInOrder) {
  expect_same(
      [](Handle x, Value i) {
        x[i] = x[i] + 1.0f;
        if (auto _ = when(i == 1000)) x[38] = 5.0f;
        if (auto _ = when(i == 700)) x[900] = 5.0f;
      },
      "by thread (28, 0, 0) of block (21, 0, 0) are not ordered (kernel 'blocks', block (28, 0, "
      "0), thread (4, 0, 0))");
  expect_same(
      [](Handle x, Value i) { x[i] = x[select(i == 500, 800, i)] + 1.0f; },
      "of block (15, 0, 0) are not ordered (kernel 'blocks', block (25, 0, 0), thread (0, 0, 0))");
}

TEST(SimulatorBlocks, AtomicsOfBlocksAddInOrder) {
  expect_same([](Handle x, Value i) { atomic_add(x, cast(i, hidet::f32) * 0.1f); }, "");
}

TEST(SimulatorBlocks, BlocksMayWaitForEarlierAndForLaterOnes) {
  for (const bool later : {false, true}) {
    constexpr int blocks = 8;
    ScriptModule m("chain");
    m.cuda_kernel("chain", [&](Function& f) {
      auto x = f.arg("x", ptr(hidet::i32));
      auto flags = f.arg("flags", ptr(hidet::i32));
      f.grid_dim(blocks);
      f.block_dim(32);
      auto b = let("b", later ? blocks - 1 - blockIdx.x : Value(blockIdx.x));
      if (auto _ = when(threadIdx.x == 0)) {
        if (auto _ = when(b > 0)) {
          for (auto _ : loop_while(atomic_add(flags + (b - 1), 0) == 0)) comment("waits");
          threadfence();
        }
      }
      syncthreads();
      auto sum = let("sum", select(b > 0, x[max(b - 1, 0) * 32 + threadIdx.x], 0) + b);
      x[b * 32 + threadIdx.x] = sum;
      syncthreads();
      if (auto _ = when(threadIdx.x == 0)) {
        threadfence();
        atomic_exch(flags + b, 1);
      }
    });
    const Tensor x = hidet::zeros({blocks * 32}, hidet::i32),
                 flags = hidet::zeros({blocks}, hidet::i32);
    m.simulate("launch", x, flags);
    EXPECT_EQ(x.to_vector<int32_t>()[blocks * 32 - 1], blocks * (blocks - 1) / 2);
  }
}

TEST(SimulatorBlocks, ThreadsThatEndedCountAsArrived) {
  ScriptModule m("ended");
  m.cuda_kernel("ended", [](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    f.grid_dim(1);
    f.block_dim(96);
    auto s = shared("s", hidet::f32, {64});
    if (auto _ = when(threadIdx.x < 64)) {
      s[threadIdx.x] = cast(threadIdx.x, hidet::f32);
      syncthreads();
      x[threadIdx.x] = s[63 - threadIdx.x];
    }
  });
  const Tensor x = hidet::zeros({64});
  const hidet::backends::SimArg args[] = {x};
  hidet::backends::simulate(m.module(), "launch", args);
  EXPECT_EQ(x.to_vector<float>()[3], 60.0f);
}
