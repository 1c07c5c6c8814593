// faults_test.cpp - planted faults, and what the simulator says about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hidet/backends/sim.h>
#include <hidet/hidet.h>

#include <cstdlib>

using namespace hidet::lang;
using hidet::Tensor;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

/// The verifier would refuse some of these kernels before they run.
[[maybe_unused]] const int unverified = unsetenv("HIDET_VERIFY");

/// What a kernel of `blocks` x `threads` over one f32 array of 8 elements is reported for; "" for nothing.
std::string report(int blocks, int threads, const std::function<void(Handle)>& body,
                   hidet::backends::SimOptions options = {}) {
  ScriptModule m("fault");
  m.cuda_kernel("fault", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    f.grid_dim(blocks);
    f.block_dim(threads);
    body(x);
  });
  const hidet::backends::SimArg args[] = {hidet::zeros({8})};
  try {
    hidet::backends::simulate(m.module(), "launch", args, options);
  } catch (const hidet::Error& e) {
    EXPECT_EQ(e.code(), hidet::ErrorCode::usage);
    EXPECT_THAT(e.where(), HasSubstr("faults_test.cpp:"));
    return e.what();
  }
  return "";
}

}  // namespace

TEST(SimulatorFaults, GlobalOutOfBounds) {
  EXPECT_THAT(report(2, 4, [](Handle x) { x[blockIdx.x * 6 + threadIdx.x] = 1.0f; }),
              HasSubstr("write outside 'x': index 8 on; it has 8 elements (kernel 'fault', block "
                        "(1, 0, 0), thread (2, 0, 0))"));
  EXPECT_THAT(report(1, 1, [](Handle x) { x[0] = x[threadIdx.x - 1]; }),
              HasSubstr("read outside 'x': index -1 on"));
  EXPECT_THAT(report(1, 1, [](Handle x) { store(x, load(x + 6, 4)); }),
              HasSubstr("read outside 'x': 16 bytes from index 6 on"));
}

TEST(SimulatorFaults, PlacesAreTheLinesOfTheScript) {
  int line = 0, read = 0;
  const std::string outside = report(1, 4, [&](Handle x) {
    line = __LINE__ + 1;
    x[threadIdx.x * 3] = 1.0f;
  });
  EXPECT_EQ(outside,
            "faults_test.cpp:" + std::to_string(line) +
                ": error: write outside 'x': index 9 on; it has 8 elements (kernel 'fault', "
                "block (0, 0, 0), thread (3, 0, 0))");
  const std::string race = report(1, 2, [&](Handle x) {
    auto s = shared("s", hidet::f32, {2});
    line = __LINE__ + 1;
    s[threadIdx.x] = 1.0f;
    read = __LINE__ + 1;
    x[threadIdx.x] = s[1 - threadIdx.x];
  });
  EXPECT_EQ(race, "faults_test.cpp:" + std::to_string(read) +
                      ": error: race on 's': this read and the write at faults_test.cpp:" +
                      std::to_string(line) +
                      " by thread (1, 0, 0) of the same block are not ordered by a barrier (kernel "
                      "'fault', block (0, 0, 0), thread (0, 0, 0))");
}

TEST(SimulatorFaults, SharedOutOfBounds) {
  EXPECT_THAT(report(1, 4,
                     [](Handle) {
                       auto s = shared("s", hidet::f32, {4, 2});
                       s(threadIdx.x, threadIdx.x) = 1.0f;
                     }),
              HasSubstr("index (2, 2) is outside 's' of shape [4, 2]"));
}

TEST(SimulatorFaults, RegisterOutOfBounds) {
  EXPECT_THAT(report(1, 1,
                     [](Handle x) {
                       auto r = registers("r", hidet::f32, {3});
                       for (auto i : range(4)) r(i) = x[i];
                     }),
              HasSubstr("index (3) is outside 'r' of shape [3]"));
}

TEST(SimulatorFaults, ViewLargerThanItsMemory) {
  EXPECT_THAT(report(1, 1,
                     [](Handle x) {
                       auto v = global("v", x, {4, 4});
                       v(2, 1) = 1.0f;
                     }),
              HasSubstr("write outside 'x' (as 'v'): index 9 on"));
}

TEST(SimulatorFaults, UnwrittenShared) {
  EXPECT_THAT(report(1, 2,
                     [](Handle x) {
                       auto s = shared("s", hidet::f32, {4});
                       s[threadIdx.x] = 1.0f;
                       syncthreads();
                       x[threadIdx.x] = s[threadIdx.x + 1];
                     }),
              HasSubstr("read of shared memory 's' that was never written (kernel 'fault', block "
                        "(0, 0, 0), thread (1, 0, 0))"));
}

TEST(SimulatorFaults, UnwrittenRegisters) {
  EXPECT_THAT(report(1, 1,
                     [](Handle x) {
                       auto r = registers("r", hidet::f32, {2});
                       r(0) = 1.0f;
                       x[0] = r(0) + r(1);
                     }),
              HasSubstr("read of 'r' in registers, index 1, that was never written"));
}

TEST(SimulatorFaults, RaceInSharedMemory) {
  EXPECT_THAT(
      report(1, 2,
             [](Handle x) {
               auto s = shared("s", hidet::f32, {2});
               s[threadIdx.x] = 1.0f;
               x[threadIdx.x] = s[1 - threadIdx.x];
             }),
      AllOf(HasSubstr("race on 's'"), HasSubstr("of the same block are not ordered by a barrier")));
  EXPECT_THAT(
      report(1, 33,
             [](Handle) {
               auto s = shared("s", hidet::f32, {1});
               if (auto _ = when(threadIdx.x % 32 == 0)) s[0] = 1.0f;
             }),
      AllOf(HasSubstr("race on 's': this write and the write at"), HasSubstr("thread (0, 0, 0)")));
}

TEST(SimulatorFaults, SyncwarpOrdersAWarpAndNoMore) {
  const auto body = [](Handle) {
    auto s = shared("s", hidet::f32, {64});
    auto t = let("t", threadIdx.x);
    s[t] = 1.0f;
    syncwarp();
    s[blockDim.x - 1 - t] = 2.0f;
  };
  EXPECT_EQ(report(1, 32, body), "");
  EXPECT_THAT(report(1, 64, body), HasSubstr("race on 's'"));
}

TEST(SimulatorFaults, RaceBetweenThreadsAndBlocksOnGlobalMemory) {
  EXPECT_THAT(report(1, 2, [](Handle x) { x[0] = 1.0f; }), HasSubstr("race on 'x'"));
  EXPECT_THAT(report(2, 1, [](Handle x) { x[0] = x[0] + 1.0f; }),
              HasSubstr("by thread (0, 0, 0) of block (0, 0, 0) are not ordered (kernel 'fault', "
                        "block (1, 0, 0)"));
  EXPECT_EQ(report(2, 2, [](Handle x) { atomic_add(x, 1.0f); }), "");
  EXPECT_THAT(report(2, 1,
                     [](Handle x) {
                       if (auto _ = when(blockIdx.x == 0)) atomic_add(x, 1.0f);
                       if (auto _ = otherwise()) x[0] = 2.0f;
                     }),
              HasSubstr("race on 'x'"));
}

TEST(SimulatorFaults, ReadsOfOthersAreNoRaceAndLaunchesAreOrdered) {
  EXPECT_EQ(report(2, 40, [](Handle x) { let("v", x[3]); }), "");
  ScriptModule m("twice");
  auto k = m.cuda_kernel("k", [](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    f.grid_dim(1);
    f.block_dim(4);
    x[3 - threadIdx.x] = x[3 - threadIdx.x] + 1.0f;
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    k(x);
    k(x);
  });
  const Tensor x = hidet::zeros({4});
  m.simulate("launch", x);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 2, 2, 2}));
}

TEST(SimulatorFaults, DivergentBarriers) {
  EXPECT_THAT(report(1, 40, [](Handle x) { x[threadIdx.x / 5] = 0.0f; }), HasSubstr("race"));
  const auto divergent = [](Handle) {
    auto s = shared("s", hidet::f32, {40});
    s[threadIdx.x] = cast(threadIdx.x, hidet::f32);
    if (auto _ = when(s[threadIdx.x] < 33.0f)) syncthreads();
    if (auto _ = otherwise()) syncthreads();
    syncthreads();
  };
  EXPECT_THAT(report(1, 40, divergent),
              AllOf(HasSubstr("divergent barrier"),
                    HasSubstr("thread (0, 0, 0) waits at the barrier at faults_test.cpp"),
                    HasSubstr("thread (33, 0, 0) waits at the barrier at faults_test.cpp")));
}

TEST(SimulatorFaults, BarrierSkippedInALoop) {
  EXPECT_THAT(report(1, 2,
                     [](Handle x) {
                       auto s = shared("s", hidet::i32, {2});
                       s[threadIdx.x] = 2 + threadIdx.x;
                       for (auto i : range(s[threadIdx.x])) {
                         (void)i;
                         syncthreads();
                       }
                       syncthreads();
                       x[threadIdx.x] = 1.0f;
                     }),
              HasSubstr("divergent barrier"));
}

TEST(SimulatorFaults, ShuffleThatSomeLanesMissOrThatReadsNobody) {
  EXPECT_THAT(report(1, 16,
                     [](Handle x) {
                       x[threadIdx.x / 2] = shfl_xor(1.0f * cast(threadIdx.x, hidet::f32), 16);
                     }),
              HasSubstr("shuffle from lane 16 of the warp, which the block does not have"));
  EXPECT_THAT(report(1, 32,
                     [](Handle) {
                       if (auto _ = when(threadIdx.x < 8)) shfl(threadIdx.x, 0);
                       if (auto _ = otherwise()) syncwarp();
                     }),
              AllOf(HasSubstr("divergent"), HasSubstr("waits for its warp")));
}

TEST(SimulatorFaults, MisalignedAccesses) {
  EXPECT_THAT(report(1, 1,
                     [](Handle x) {
                       auto bytes = reinterpret(x, ptr(hidet::u8));
                       store(reinterpret(bytes + 2, ptr(hidet::f32)), 1.0f);
                     }),
              HasSubstr("misaligned write of 'x': byte 2 is not a multiple of 4"));
  EXPECT_THAT(report(1, 1,
                     [](Handle x) {
                       auto s = shared("s", hidet::f32, {8});
                       cp_async(s.ptr(0), x + 1, 16);
                     }),
              HasSubstr("misaligned cp_async read of 'x': byte 4 is not a multiple of 16"));
}

TEST(SimulatorFaults, CopyReadBeforeItsWait) {
  EXPECT_THAT(report(1, 1,
                     [](Handle x) {
                       auto s = shared("s", hidet::f32, {4});
                       cp_async(s.ptr(0), x, 16);
                       cp_async_commit();
                       x[4] = s[1];
                     }),
              HasSubstr("read of 's' before cp_async_wait"));
}

TEST(SimulatorFaults, Assert) {
  EXPECT_THAT(report(1, 4, [](Handle) { assert_(threadIdx.x < 3, "three is enough"); }),
              HasSubstr("three is enough (kernel 'fault', block (0, 0, 0), thread (3, 0, 0))"));
}

TEST(SimulatorFaults, EndlessLoop) {
  EXPECT_THAT(report(1, 2,
                     [](Handle x) {
                       for (auto _ : loop_while(x[0] == 0.0f)) let("v", x[1]);
                     },
                     {.max_steps = 100000}),
              AllOf(HasSubstr("stopped after 100000 loop iterations"),
                    HasSubstr("thread (0, 0, 0) is at")));
}

TEST(SimulatorFaults, LaunchSizes) {
  ScriptModule m("sizes");
  m.cuda_kernel("sizes", [](Function& f) {
    auto g = f.arg("g", hidet::i32);
    auto b = f.arg("b", hidet::i32);
    f.grid_dim(g);
    f.block_dim(b, 2);
  });
  const auto what = [&](int g, int b) {
    try {
      m.simulate("launch", g, b);
    } catch (const hidet::Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(what(3, 512), "");
  EXPECT_EQ(what(0, 1), "");
  EXPECT_THAT(what(1, 513), HasSubstr("kernel 'sizes' is launched with block (513, 2, 1), which is "
                                      "1026 threads; the limit is 1024"));
  EXPECT_THAT(what(1, 0), HasSubstr("is launched with block (0, 2, 1); sizes are from 1 to"));
  EXPECT_THAT(what(-1, 1), HasSubstr("is launched with grid (-1, 1, 1)"));
}

TEST(SimulatorFaults, ArgumentsAndNames) {
  ScriptModule m("arguments");
  m.public_func("launch", [](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i8);
    x[n] = 1.0f;
  });
  const Tensor x = hidet::zeros({4}), wrong = hidet::zeros({4}, hidet::f64);
  EXPECT_THROW(m.simulate("nothing", x, 1), hidet::Error);
  EXPECT_THROW(m.simulate("launch", x), hidet::Error);
  EXPECT_THROW(m.simulate("launch", wrong, 1), hidet::Error);
  EXPECT_THROW(m.simulate("launch", x, 300), hidet::Error);
  EXPECT_THROW(m.simulate("launch", x, 1.5), hidet::Error);
  EXPECT_THROW(m.simulate("launch", x, -1), hidet::Error);
  m.simulate("launch", x, 3);
  EXPECT_EQ(x.to_vector<float>()[3], 1.0f);
}
