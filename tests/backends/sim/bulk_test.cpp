// bulk_test.cpp - bulk reductions, copies between blocks, policies, the family of mbarriers and proxy fences in the simulator:
// planted faults, each with a correct twin that gives no report.
#include "hopper_report.h"

using namespace hopper_faults;

namespace {

constexpr Kernel kPair{.threads = 32, .blocks = 2, .cluster = 2};
const auto one = [] { return hidet::lang::cast(Value(1.f), hidet::f16); };

TEST(BulkFaults, ReductionReadBackBeforeItsEnd) {
  const auto fault = [](bool waits, bool tensor) {
    return report({}, [&](const Parts& p) {
      by_one([&] {
        if (tensor) tma_reduce(Combine::add, p.map, {0, 0}, p.tile.ptr());
        else bulk_reduce(Combine::add, p.x, p.tile.ptr(), 512);
        bulk_commit();
        if (waits) bulk_wait();
        else bulk_wait_read();
        p.y[0] = p.x[3];
      });
    });
  };
  for (bool tensor : {false, true}) {
    EXPECT_THAT(fault(false, tensor), AllOf(HasSubstr("race on 'x': this read and the bulk store"),
                                            HasSubstr("are not ordered by bulk_wait")));
    EXPECT_EQ(fault(true, tensor), "");
  }
}

TEST(BulkFaults, ReductionsOfBlocksMeetPlainAccessesOnly) {
  const auto fault = [](bool plain) {
    return report({.blocks = 2}, [&](const Parts& p) {
      by_one([&] {
        if (plain) bulk_store(p.x, p.tile.ptr(), 512);
        else bulk_reduce(Combine::max, p.x, p.tile.ptr(), 512);
        bulk_reduce(Combine::max, p.x + 256, p.tile.ptr(), 512);
        bulk_commit();
        bulk_wait();
      });
    });
  };
  EXPECT_THAT(fault(true), HasSubstr("race on 'x': this bulk store and the bulk store at"));
  EXPECT_EQ(fault(false), "");
}

TEST(BulkFaults, ReductionMeetsAnAtomicOfThreadsWithoutARace) {
  const auto fault = [](bool atomic) {
    return report({.threads = 64}, [&](const Parts& p) {
      by_one([&] {
        bulk_reduce(Combine::add, p.x, p.tile.ptr(), 512);
        bulk_commit();
        bulk_wait();
      });
      if (auto _ = when(threadIdx.x == 32)) {
        if (atomic) atomic_add(p.x + 8, one());
        else p.x[8] = one();
      }
    });
  };
  EXPECT_THAT(fault(false), HasSubstr("race on 'x': this write and the bulk store at"));
  EXPECT_EQ(fault(true), "");
}

TEST(BulkFaults, StoreMeetsAnAtomic) {
  const auto fault = [](bool syncs) {
    return report({.threads = 64}, [&](const Parts& p) {
      if (auto _ = when(threadIdx.x == 32)) atomic_add(p.x + 8, one());
      if (syncs) syncthreads();
      by_one([&] {
        bulk_store(p.x, p.tile.ptr(), 512);
        bulk_commit();
        bulk_wait();
      });
      if (!syncs) syncthreads();
    });
  };
  EXPECT_THAT(fault(false), HasSubstr("race on 'x'"));
  EXPECT_EQ(fault(true), "");
}

TEST(BulkFaults, OperationsThatTheTypeLacks) {
  EXPECT_THAT(report({},
                     [](const Parts& p) {
                       by_one([&] { tma_reduce(Combine::inc, p.map, {0, 0}, p.tile.ptr()); });
                     }),
              HasSubstr("there is no bulk reduction 'inc' of f16"));
}

TEST(BulkFaults, LoadedMemoryOverwrittenBeforeTheLoadEnds) {
  const auto fault = [](bool waits, bool tensor) {
    return report({}, [&](const Parts& p) {
      by_one([&] {
        if (tensor) {
          load_tile(p);
        } else {
          mbarrier_arrive_expect_tx(p.barriers.ptr(0), 512);
          bulk_load(p.tile.ptr(), p.x, 512, p.barriers.ptr(0));
        }
        if (waits) mbarrier_wait(p.barriers.ptr(0), 0);
        p.x[100] = one();
      });
      mbarrier_wait(p.barriers.ptr(0), 0);
    });
  };
  for (bool tensor : {false, true}) {
    EXPECT_THAT(fault(false, tensor), AllOf(HasSubstr("race on 'x': this write and the bulk copy"),
                                            HasSubstr("are not ordered by mbarrier_wait")));
    EXPECT_EQ(fault(true, tensor), "");
  }
}

TEST(BulkFaults, GlobalMemoryLoadedWithoutAProxyFence) {
  enum Fence { none, shared_only, global, all };
  const auto fault = [](Fence fence) {
    return report({}, [&](const Parts& p) {
      p.x[threadIdx.x] = one();
      if (fence == shared_only) fence_proxy_async_shared();
      if (fence == global) fence_proxy_async_global();
      if (fence == all) fence_proxy_async();
      syncthreads();
      by_one([&] { load_tile(p); });
      mbarrier_wait(p.barriers.ptr(0), 0);
    });
  };
  for (Fence f : {none, shared_only})
    EXPECT_THAT(fault(f), HasSubstr("'x' is read by a copy or product, and there is no "
                                    "fence_proxy_async after the write at"));
  EXPECT_EQ(fault(global), "");
  EXPECT_EQ(fault(all), "");
}

TEST(BulkFaults, SharedMemoryStoredWithTheFenceOfTheOtherKind) {
  const auto fault = [](bool global) {
    return report({}, [&](const Parts& p) {
      p.tile(threadIdx.x % 64, threadIdx.x / 64) = one();
      if (global) fence_proxy_async_global();
      else fence_proxy_async_shared();
      syncthreads();
      by_one([&] {
        bulk_store(p.x, p.tile.ptr(), 512);
        bulk_commit();
        bulk_wait();
      });
    });
  };
  EXPECT_THAT(fault(true), HasSubstr("'tile' is read by a copy or product, and there is no "
                                     "fence_proxy_async after the write at"));
  EXPECT_EQ(fault(false), "");
}

/// Each block of two sends the first 512 bytes of its tile to the other's bytes from 1024 on.
std::string sending(const std::function<void(const Parts&, const Value& rank)>& before,
                    const std::function<void(const Parts&, const Value& rank)>& after,
                    bool own_barrier = false) {
  return report(kPair, [&](const Parts& p) {
    auto rank = let("rank", cluster_rank);
    auto to = let("to", map_shared_rank(p.tile.ptr(8, 0), 1 - rank));
    auto counted = let("counted", map_shared_rank(p.barriers.ptr(0), 1 - rank));
    by_one([&] {
      mbarrier_arrive_expect_tx(p.barriers.ptr(0), 512);
      before(p, rank);
      bulk_send(to, p.tile.ptr(), 512, own_barrier ? Value(p.barriers.ptr(0)) : Value(counted));
      after(p, rank);
    });
    mbarrier_wait(p.barriers.ptr(0), 0);
    p.y[rank * 32 + threadIdx.x] = p.tile(8, threadIdx.x);
    cluster_sync();
  });
}

TEST(BulkFaults, CopiesBetweenBlocks) {
  const auto nothing = [](const Parts&, const Value&) {};
  EXPECT_EQ(sending(nothing, nothing), "");
  EXPECT_THAT(sending(nothing, nothing, true),
              HasSubstr("bulk_send to one block, and its mbarrier is in another"));
  EXPECT_THAT(sending(nothing, [](const Parts& p, const Value&) { p.tile(0, 0) = one(); }),
              HasSubstr("race on 'tile': this write and the bulk copy at"));
  EXPECT_THAT(sending([](const Parts& p, const Value&) { p.tile(0, 0) = one(); }, nothing),
              HasSubstr("there is no fence_proxy_async after the write at"));
  EXPECT_EQ(sending(
                [](const Parts& p, const Value&) {
                  p.tile(0, 0) = one();
                  fence_proxy_async_shared();
                },
                nothing),
            "");
}

TEST(BulkFaults, SentBytesReadBeforeTheWait) {
  const auto fault = [](bool waits) {
    return report(kPair, [&](const Parts& p) {
      auto rank = let("rank", cluster_rank);
      auto to = let("to", map_shared_rank(p.tile.ptr(8, 0), 1 - rank));
      auto counted = let("counted", map_shared_rank(p.barriers.ptr(0), 1 - rank));
      by_one([&] {
        mbarrier_arrive_expect_tx(p.barriers.ptr(0), 512);
        bulk_send(to, p.tile.ptr(), 512, counted);
      });
      cluster_sync();
      if (waits) mbarrier_wait(p.barriers.ptr(0), 0);
      p.y[rank * 32 + threadIdx.x] = p.tile(8, threadIdx.x);
      cluster_sync();
    });
  };
  EXPECT_THAT(fault(false), HasSubstr("race on 'tile': this read and the bulk copy at"));
  EXPECT_EQ(fault(true), "");
}

TEST(BulkFaults, StoredValues) {
  // Thread 0 of each block sends 4 bytes to the other.
  const auto fault = [](bool waits, bool combines, int offset = 0, bool own_barrier = false) {
    return report(kPair, [&](const Parts& p) {
      auto rank = let("rank", cluster_rank);
      auto words = let("words", reinterpret(p.tile.ptr(8, offset), ptr(hidet::u32)));
      auto to = let("to", map_shared_rank(words, 1 - rank));
      auto counted = let("counted", map_shared_rank(p.barriers.ptr(0), 1 - rank));
      by_one([&] {
        const Value barrier = own_barrier ? Value(p.barriers.ptr(0)) : Value(counted);
        mbarrier_arrive_expect_tx(p.barriers.ptr(0), 4);
        if (combines) async_reduce(Combine::add, to, 7, barrier);
        else async_store(to, cast(Value(7), hidet::u32), barrier);
      });
      cluster_sync();
      if (waits) mbarrier_wait(p.barriers.ptr(0), 0);
      p.y[rank * 32 + threadIdx.x] = p.tile(8, threadIdx.x);
      cluster_sync();
    });
  };
  for (const bool combines : {false, true}) {
    EXPECT_EQ(fault(true, combines), "");
    EXPECT_THAT(fault(false, combines),
                HasSubstr("race on 'tile': this read and the bulk copy at"));
    EXPECT_THAT(fault(true, combines, 1),
                HasSubstr(std::string("misaligned async_") + (combines ? "reduce" : "store") +
                          " of 'tile': byte 1026 is not at a multiple of 4 of shared memory"));
    EXPECT_THAT(fault(true, combines, 0, true),
                HasSubstr("to one block, and its mbarrier is in another"));
  }
}

TEST(BulkFaults, Policies) {
  const auto fault = [](const std::function<Value()>& policy) {
    return report({}, [&](const Parts& p) {
      by_one([&] {
        bulk_store(p.x, p.tile.ptr(), 512, {.policy = policy()});
        bulk_commit();
        bulk_wait();
      });
    });
  };
  EXPECT_THAT(fault([] { return let("p", cast(Value(7), hidet::u64)); }),
              HasSubstr("bulk_store with a cache policy that cache_policy() did not make"));
  EXPECT_THAT(fault([] { return cache_policy(Evict::last, 1.5f); }),
              HasSubstr("a cache policy for a part of 1.5; above 0, up to 1"));
  EXPECT_EQ(fault([] { return cache_policy(Evict::last, 0.25f); }), "");
  EXPECT_THAT(report({}, [](const Parts& p) { by_one([&] { bulk_prefetch(p.x + 4090, 32); }); }),
              HasSubstr("bulk_prefetch outside 'x'"));
  EXPECT_THAT(report({}, [](const Parts& p) { by_one([&] { bulk_prefetch(p.x, 24); }); }),
              HasSubstr("bulk_prefetch of 24 bytes; multiples of 16"));
}

TEST(MbarrierFaults, ArrivalsThatMayNotEndThePhase) {
  const auto fault = [](int arrivals) {
    return report({.threads = 32}, [&](const Parts& p) {
      by_one([&] {
        mbarrier_init(p.barriers.ptr(2), 3);
        p.y[0] = cast(mbarrier_pending(mbarrier_arrive_no_complete(p.barriers.ptr(2), arrivals)),
                      hidet::f16);
      });
    });
  };
  EXPECT_THAT(fault(3), HasSubstr("of 3 arrivals, and the phase misses 3"));
  EXPECT_THAT(fault(0), HasSubstr("0 arrivals at 'barriers[2]'; at least 1"));
  EXPECT_EQ(fault(2), "");
}

TEST(MbarrierFaults, TheLastArrivalDropped) {
  const auto fault = [](int arrivals) {
    return report({.threads = 32}, [&](const Parts& p) {
      by_one([&] {
        mbarrier_init(p.barriers.ptr(2), arrivals);
        mbarrier_arrive_drop(p.barriers.ptr(2));
      });
    });
  };
  EXPECT_THAT(fault(1), HasSubstr("mbarrier_arrive_drop of the last arrival of 'barriers[2]'"));
  EXPECT_EQ(fault(2), "");
}

TEST(MbarrierFaults, StatesOfOldPhases) {
  const auto fault = [](int phases) {
    return report({.threads = 32}, [&](const Parts& p) {
      by_one([&] {
        auto state = let("state", mbarrier_arrive_state(p.barriers.ptr(0)));
        for (int i = 1; i < phases; i++) mbarrier_arrive(p.barriers.ptr(0));
        p.y[0] = select(mbarrier_test_wait(p.barriers.ptr(0), state), one(), one());
      });
    });
  };
  EXPECT_THAT(fault(2), HasSubstr("for a state of phase 0, where phase 2 is the current one"));
  EXPECT_EQ(fault(1), "");
}

TEST(MbarrierFaults, ATestThatFailsOrdersNothing) {
  const auto fault = [](bool looks) {
    return report({.threads = 64}, [&](const Parts& p) {
      if (auto _ = when(threadIdx.x == 0)) {
        p.x[5] = one();
        mbarrier_arrive(p.barriers.ptr(0));
      }
      if (auto _ = when(threadIdx.x == 32)) {
        auto done = var("done", hidet::boolean, false);
        if (looks)
          for (auto _ : loop_while(!done)) done = mbarrier_test_wait(p.barriers.ptr(0), 0);
        else done = !mbarrier_test_wait(p.barriers.ptr(0), 1);  // of the phase that begins
        if (auto _ = when(done)) p.y[0] = p.x[5];
      }
    });
  };
  EXPECT_THAT(fault(false), HasSubstr("race on 'x'"));
  EXPECT_EQ(fault(true), "");
}

TEST(MbarrierFaults, CopiesOfAThreadReadBeforeTheirBarrier) {
  const auto fault = [](bool waits) {
    return report({.threads = 64}, [&](const Parts& p) {
      if (auto _ = when(threadIdx.x == 0)) {
        cp_async(p.tile.ptr(), p.x, 16);
        mbarrier_arrive_copies(p.barriers.ptr(0));
      }
      if (auto _ = when(threadIdx.x == 32)) {
        if (waits) mbarrier_wait(p.barriers.ptr(0), 0);
        p.y[0] = p.tile(0, 1);
      }
    });
  };
  EXPECT_THAT(fault(false), HasSubstr("race on 'tile'"));
  EXPECT_EQ(fault(true), "");
}

TEST(MbarrierFaults, OwnCopiesAreNotThereEither) {
  const auto fault = [](bool waits) {
    return report({.threads = 32}, [&](const Parts& p) {
      by_one([&] {
        cp_async(p.tile.ptr(), p.x, 16);
        mbarrier_arrive_copies(p.barriers.ptr(0));
        if (waits) mbarrier_wait(p.barriers.ptr(0), 0);
        p.y[0] = p.tile(0, 1);
      });
    });
  };
  EXPECT_THAT(fault(false), HasSubstr("race on 'tile': this read and the bulk copy at"));
  EXPECT_EQ(fault(true), "");
}

/// A number goes to the other block through an atomic; `after` and `before` are fences of the one and the other.
std::string handed_over(const std::function<void()>& after, const std::function<void()>& before) {
  return report(kPair, [&](const Parts& p) {
    auto rank = let("rank", cluster_rank);
    auto flag = shared("flag", hidet::i32, {1});
    by_one([&] { flag(0) = 0; });
    cluster_sync();
    if (auto _ = when(threadIdx.x == 0 && rank == 0)) {
      auto there = let("there", map_shared_rank(p.tile.ptr(), 1 - rank));
      there[0] = one();
      after();
      atomic_add(map_shared_rank(flag.ptr(), 1 - rank), 1);
    }
    if (auto _ = when(threadIdx.x == 0 && rank == 1)) {
      auto seen = var("seen", hidet::i32, 0);
      for (auto _ : loop_while(seen == 0)) seen = atomic_add(flag.ptr(), 0);
      before();
      p.y[0] = p.tile(0, 0);
    }
    cluster_sync();
  });
}

TEST(MbarrierFaults, FencesOfACluster) {
  const auto cluster = [] { threadfence_cluster(); };
  const auto block = [] { threadfence_block(); };
  const auto device = [] { threadfence(); };
  EXPECT_THAT(handed_over(cluster, block), HasSubstr("race on 'tile'"));
  EXPECT_THAT(handed_over(block, cluster), HasSubstr("race on 'tile'"));
  EXPECT_EQ(handed_over(cluster, cluster), "");
  EXPECT_EQ(handed_over(device, cluster), "");
}

}  // namespace
