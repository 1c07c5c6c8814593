// The thread pool: every iteration once, statuses, exceptions, nested and concurrent regions, fork.
#include <gtest/gtest.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/thread_pool.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

namespace hidet::runtime {
namespace {

TEST(ThreadPool, EveryIterationOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    for (const int64_t count : {0, 1, 2, 3, 7, 64, 1000, 4099}) {
      for (const int64_t grain : {-1, 0, 1, 3, 100, 5000}) {
        std::vector<int> seen(static_cast<size_t>(count));
        std::atomic<int> short_chunks{0};
        parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          if (end - begin < grain) short_chunks++;
          for (int64_t i = begin; i < end; i++) seen[static_cast<size_t>(i)]++;
        });
        EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), int64_t{0}), count);
        for (const int n : seen) ASSERT_EQ(n, 1);
        EXPECT_EQ(short_chunks, count > 0 && count < grain ? 1 : 0);
      }
    }
  }
}

TEST(ThreadPool, FirstFailingStatus) {
  set_num_threads(4);
  for (int round = 0; round < 200; round++) {
    // Iterations 40 and 70 fail: whatever runs first, 40's status comes.
    const int32_t status = parallel_for(100, 1, [](int64_t begin, int64_t end) -> int32_t {
      for (int64_t i = begin; i < end; i++)
        if (i == 40 || i == 70) return static_cast<int32_t>(i);
      return 0;
    });
    ASSERT_EQ(status, 40);
  }
  EXPECT_EQ(parallel_for(100, 1, [](int64_t, int64_t) -> int32_t { return 0; }), 0);
}

TEST(ThreadPool, ExceptionsReachTheCaller) {
  set_num_threads(4);
  for (int round = 0; round < 100; round++) {
    try {
      parallel_for(64, 1, [](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++)
          if (i >= 20) throw Error("iteration " + std::to_string(i));
      });
      FAIL();
    } catch (const Error& e) {
      ASSERT_STREQ(e.what(), "iteration 20");
    }
  }
}

TEST(ThreadPool, NestedAndConcurrentRegions) {
  set_num_threads(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 4; t++) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; round++) {
        parallel_for(8, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++)
            parallel_for(10, 1, [&](int64_t b, int64_t e) { total += e - b; });
        });
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(total, 4 * 100 * 8 * 10);
}

TEST(ThreadPool, SizeChangesWhileRegionsRun) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int i = 0; !stop; i++) {
      set_num_threads(1 + i % 4);
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 2000; round++) {
    std::atomic<int64_t> total{0};
    parallel_for(50, 1, [&](int64_t begin, int64_t end) { total += end - begin; });
    ASSERT_EQ(total, 50);
  }
  stop = true;
  changer.join();
  set_num_threads(2);
  EXPECT_EQ(num_threads(), 2);
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(1025), Error);
}

// Two iterations that wait for one another end only where both run at once.
TEST(ThreadPool, RegionsDoRunInParallel) {
  set_num_threads(2);
  std::atomic<int> arrived{0};
  std::atomic<bool> met{false};
  for (int attempt = 0; attempt < 50 && !met; attempt++) {
    arrived = 0;
    parallel_for(2, 1, [&](int64_t, int64_t) {
      arrived++;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
      while (arrived < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      if (arrived == 2) met = true;
    });
  }
  EXPECT_TRUE(met);
}

TEST(ThreadPool, ParkedWorkersWakeUp) {
  set_num_threads(3);
  for (int round = 0; round < 20; round++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int64_t> total{0};
    parallel_for(100, 1, [&](int64_t begin, int64_t end) { total += end - begin; });
    ASSERT_EQ(total, 100);
  }
}

TEST(ThreadPool, ForkedChildRunsInline) {
  set_num_threads(2);
  parallel_for(2, 1, [](int64_t, int64_t) {});
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    int64_t total = 0;  // no workers: no race
    parallel_for(100, 1, [&](int64_t begin, int64_t end) { total += end - begin; });
    _exit(total == 100 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace hidet::runtime
