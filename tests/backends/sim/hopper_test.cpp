// hopper_test.cpp - mbarriers, bulk copies and clusters in the simulator: planted faults, each with a correct twin that gives no
// report. Their values are in tests/primitives.
#include "hopper_report.h"

using namespace hopper_faults;

namespace {

TEST(HopperFaults, CopyReadBeforeItsWait) {
  const auto fault = [](bool waits) {
    return report({}, [&](const Parts& p) {
      by_one([&] { load_tile(p); });
      if (waits) mbarrier_wait(p.barriers.ptr(0), 0);
      p.y[threadIdx.x] = p.tile(threadIdx.x % 64, 1);
    });
  };
  EXPECT_THAT(fault(false), AllOf(HasSubstr("race on 'tile': this read and the bulk copy at"),
                                  HasSubstr("are not ordered by mbarrier_wait")));
  EXPECT_EQ(fault(true), "");
}

TEST(HopperFaults, ProductReadsACopyBeforeItsWait) {
  const auto fault = [](bool waits) {
    return report({}, [&](const Parts& p) {
      by_one([&] { load_tile(p); });
      if (waits) mbarrier_wait(p.barriers.ptr(0), 0);
      else if (auto _ = when(threadIdx.x < 32)) mbarrier_wait(p.barriers.ptr(0), 0);
      wgmma_fence({p.acc});
      multiply(p);
      wgmma_wait(0, {p.acc});
      use_sums(p);
    });
  };
  EXPECT_THAT(fault(false), HasSubstr("race on 'tile': this wgmma and the bulk copy at"));
  EXPECT_EQ(fault(true), "");
}

TEST(HopperFaults, TileOverwrittenWhileAProductReadsIt) {
  const auto fault = [](bool early) {
    return report({.threads = 256}, [&](const Parts& p) {
      if (auto _ = when(threadIdx.x < 128)) {
        wgmma_fence({p.acc});
        multiply(p);
        if (early) by_one([&] { mbarrier_arrive(p.barriers.ptr(1)); });
        wgmma_wait(0, {p.acc});
        if (!early) by_one([&] { mbarrier_arrive(p.barriers.ptr(1)); });
        use_sums(p);
      }
      if (auto _ = when(threadIdx.x == 128)) {
        mbarrier_wait(p.barriers.ptr(1), 0);
        load_tile(p);
        mbarrier_wait(p.barriers.ptr(0), 0);
      }
    });
  };
  EXPECT_THAT(fault(true), AllOf(HasSubstr("race on 'tile': this bulk copy and the wgmma at"),
                                 HasSubstr("are not ordered by wgmma_wait")));
  EXPECT_EQ(fault(false), "");
}

TEST(HopperFaults, SumsTouchedBeforeTheWait) {
  const auto fault = [](bool waits) {
    return report({}, [&](const Parts& p) {
      wgmma_fence({p.acc});
      multiply(p);
      if (waits) wgmma_wait(0, {p.acc});
      use_sums(p);
    });
  };
  EXPECT_THAT(fault(false), HasSubstr("sums are touched before wgmma_wait for the wgmma at"));
  EXPECT_EQ(fault(true), "");
}

TEST(HopperFaults, AWaitForAnEarlierGroup) {
  const auto fault = [](int pending) {
    return report({}, [&](const Parts& p) {
      auto other = registers("other", hidet::f32, {32});
      for (int e = 0; e < 32; e++) other(e) = 0.f;
      wgmma_fence({p.acc, other});
      multiply(p);
      multiply({p.map, p.x, p.y, p.tile, other, p.barriers});
      wgmma_wait(pending, {});
      use_sums(p);
      p.y[threadIdx.x] = cast(other(3), hidet::f16);
    });
  };
  EXPECT_THAT(fault(1), HasSubstr("sums are touched before wgmma_wait"));
  EXPECT_EQ(fault(0), "");
}

TEST(HopperFaults, ProductWithoutFence) {
  const auto fault = [](bool fences) {
    return report({}, [&](const Parts& p) {
      if (fences) wgmma_fence({p.acc});
      multiply(p);
      wgmma_wait(0, {p.acc});
      use_sums(p);
    });
  };
  EXPECT_THAT(fault(false),
              HasSubstr("wgmma uses 'acc', which was written after the last wgmma_fence"));
  EXPECT_EQ(fault(true), "");
}

TEST(HopperFaults, NoProxyFenceBetweenWritesAndAProduct) {
  const auto fault = [](bool fences, bool store) {
    return report({}, [&](const Parts& p) {
      p.tile(threadIdx.x % 64, threadIdx.x / 64) = hidet::lang::cast(threadIdx.x, hidet::f16);
      if (fences) fence_proxy_async();
      syncthreads();
      if (store) {
        by_one([&] {
          tma_store(p.map, {0, 0}, p.tile.ptr());
          bulk_commit();
          bulk_wait();
        });
        return;
      }
      wgmma_fence({p.acc});
      multiply(p);
      wgmma_wait(0, {p.acc});
      use_sums(p);
    });
  };
  for (bool store : {false, true}) {
    EXPECT_THAT(fault(false, store), HasSubstr("there is no fence_proxy_async after the write at"));
    EXPECT_EQ(fault(true, store), "");
  }
}

TEST(HopperFaults, ExpectedBytesDiffer) {
  const auto fault = [](int bytes) {
    return report({}, [&](const Parts& p) {
      by_one([&] { load_tile(p, bytes); });
      mbarrier_wait(p.barriers.ptr(0), 0);
      p.y[threadIdx.x] = p.tile(threadIdx.x % 64, 1);
    });
  };
  EXPECT_THAT(
      fault(kTileBytes + 32),
      AllOf(HasSubstr("deadlock"), HasSubstr("waits for phase 0 of the mbarrier 'barriers[0]' "
                                             "(0 of 1 arrivals are missing, 32 bytes are "
                                             "missing)")));
  EXPECT_THAT(fault(kTileBytes - 32), HasSubstr("32 bytes came unexpected"));
  EXPECT_EQ(fault(kTileBytes), "");
}

TEST(HopperFaults, DeadlockOfTwoThatWaitForEachOther) {
  const auto fault = [](bool first) {
    return report({.threads = 64}, [&](const Parts& p) {
      if (auto _ = when(threadIdx.x == 0)) {
        if (first) mbarrier_arrive(p.barriers.ptr(1));
        mbarrier_wait(p.barriers.ptr(0), 0);
        if (!first) mbarrier_arrive(p.barriers.ptr(1));
      }
      if (auto _ = when(threadIdx.x == 32)) {
        mbarrier_wait(p.barriers.ptr(1), 0);
        mbarrier_arrive(p.barriers.ptr(0));
      }
    });
  };
  EXPECT_THAT(
      fault(false),
      AllOf(HasSubstr("deadlock: nothing that these threads wait for will happen: thread "
                      "(0, 0, 0) waits for phase 0 of the mbarrier 'barriers[0]' (1 of 1 "
                      "arrivals are missing"),
            HasSubstr("thread (32, 0, 0) waits for phase 0 of the mbarrier 'barriers[1]'")));
  EXPECT_EQ(fault(true), "");
}

TEST(HopperFaults, WrongParity) {
  const auto fault = [](int parity) {
    return report({.threads = 32}, [&](const Parts& p) {
      by_one([&] { mbarrier_arrive(p.barriers.ptr(0)); });
      mbarrier_wait(p.barriers.ptr(0), 0);
      mbarrier_wait(p.barriers.ptr(0), parity);
    });
  };
  EXPECT_THAT(fault(1), HasSubstr("waits for phase 1 of the mbarrier 'barriers[0]'"));
  EXPECT_THAT(fault(2), HasSubstr("mbarrier_wait for the parity 2"));
  EXPECT_EQ(fault(0), "");
}

TEST(HopperFaults, MoreArrivalsThanThePhaseHas) {
  const auto fault = [](int times) {
    return report({.threads = 32}, [&](const Parts& p) {
      by_one([&] {
        mbarrier_expect_tx(p.barriers.ptr(0), 16);
        for (int i = 0; i < times; i++) mbarrier_arrive(p.barriers.ptr(0));
      });
    });
  };
  EXPECT_THAT(fault(2), HasSubstr("more arrivals at 'barriers[0]' than the 1 of a phase"));
  EXPECT_EQ(fault(1), "");
}

TEST(HopperFaults, BarrierThatIsNotMade) {
  EXPECT_THAT(report({.threads = 32}, [](const Parts& p) { mbarrier_arrive(p.barriers.ptr(2)); }),
              HasSubstr("arrival of 'barriers[2]', which mbarrier_init has not made an mbarrier"));
  EXPECT_THAT(report({.threads = 32},
                     [](const Parts& p) { by_one([&] { mbarrier_init(p.barriers.ptr(0), 1); }); }),
              HasSubstr("mbarrier_init of 'barriers[0]', which is one already"));
  EXPECT_EQ(report({.threads = 32},
                   [](const Parts& p) {
                     by_one([&] {
                       mbarrier_invalidate(p.barriers.ptr(0));
                       mbarrier_init(p.barriers.ptr(0), 1);
                     });
                   }),
            "");
}

TEST(HopperFaults, BarrierUsedBeforeItsInitIsSeen) {
  const auto fault = [](bool syncs, bool fences) {
    return report({.threads = 64, .prepare = false}, [&](const Parts& p) {
      by_one([&] {
        mbarrier_init(p.barriers.ptr(0), 1);
        if (fences) fence_mbarrier_init();
      });
      if (syncs) syncthreads();
      if (auto _ = when(threadIdx.x == 32)) load_tile(p);
      syncthreads();
    });
  };
  EXPECT_THAT(fault(false, true), HasSubstr("and its mbarrier_init at"));
  EXPECT_THAT(fault(true, false), HasSubstr("without fence_mbarrier_init after its mbarrier_init"));
  EXPECT_EQ(fault(true, true), "");
}

TEST(HopperFaults, StoredTileOverwrittenBeforeItIsRead) {
  const auto fault = [](bool waits) {
    return report({}, [&](const Parts& p) {
      by_one([&] {
        bulk_store(p.x, p.tile.ptr(), 512);
        bulk_commit();
        if (waits) bulk_wait_read();
        p.tile(0, 0) = hidet::lang::cast(1.f, hidet::f16);
        bulk_wait();
      });
    });
  };
  EXPECT_THAT(fault(false), AllOf(HasSubstr("race on 'tile': this write and the bulk store at"),
                                  HasSubstr("are not ordered by bulk_wait_read")));
  EXPECT_EQ(fault(true), "");
}

TEST(HopperFaults, StoreReadBackBeforeItsEnd) {
  const auto fault = [](bool waits) {
    return report({}, [&](const Parts& p) {
      by_one([&] {
        bulk_store(p.x, p.tile.ptr(), 512);
        bulk_commit();
        if (waits) bulk_wait();
        else bulk_wait_read();
        p.x[300] = p.x[0];
      });
    });
  };
  EXPECT_THAT(fault(false), AllOf(HasSubstr("race on 'x': this read and the bulk store at"),
                                  HasSubstr("are not ordered by bulk_wait")));
  EXPECT_EQ(fault(true), "");
}

TEST(HopperFaults, NeighboursMemoryWithoutBarrierOfTheCluster) {
  const auto fault = [](bool before, bool after) {
    return report({.threads = 32, .blocks = 2, .cluster = 2}, [&](const Parts& p) {
      auto rank = let("rank", cluster_rank);
      p.tile(0, threadIdx.x) = hidet::lang::cast(threadIdx.x, hidet::f16);
      if (before) cluster_sync();
      auto other = let("other", map_shared_rank(p.tile.ptr(), 1 - rank));
      p.y[rank * 32 + threadIdx.x] = other[threadIdx.x];
      if (after) cluster_sync();
    });
  };
  EXPECT_THAT(fault(false, true), HasSubstr("race on 'tile'"));
  EXPECT_THAT(fault(true, false), HasSubstr("of the cluster, which has ended"));
  EXPECT_EQ(fault(true, true), "");
}

TEST(HopperFaults, BarrierOfTheCluster) {
  const Kernel two{.threads = 32, .blocks = 2, .cluster = 2};
  EXPECT_THAT(report(two,
                     [](const Parts&) {
                       cluster_arrive();
                       cluster_arrive();
                     }),
              HasSubstr("a second cluster_arrive without a cluster_wait between"));
  EXPECT_THAT(report(two, [](const Parts&) { cluster_wait(); }),
              HasSubstr("cluster_wait without cluster_arrive before"));
  EXPECT_THAT(report(two,
                     [](const Parts& p) {
                       if (auto _ = when(blockIdx.x == 0)) cluster_sync();
                       if (auto _ = otherwise()) mbarrier_wait(p.barriers.ptr(0), 0);
                     }),
              AllOf(HasSubstr("deadlock"), HasSubstr("waits at the barrier of the cluster at")));
  // A block that ended counts as arrived.
  EXPECT_EQ(report(two,
                   [](const Parts&) {
                     if (auto _ = when(blockIdx.x == 0)) cluster_sync();
                   }),
            "");
  EXPECT_THAT(report({.threads = 32, .blocks = 3, .cluster = 2, .prepare = false},
                     [](const Parts&) { comment("empty"); }),
              HasSubstr("clusters of (2, 1, 1) blocks, which must divide the grid (3, 1, 1)"));
}

TEST(HopperFaults, ProductOfLessThanAWarpGroup) {
  const auto fault = [](int threads, int those) {
    return report({.threads = threads}, [&](const Parts& p) {
      if (auto _ = when(threadIdx.x < those)) {
        wgmma_fence({p.acc});
        multiply(p);
        wgmma_wait(0, {p.acc});
        use_sums(p);
      }
    });
  };
  EXPECT_THAT(fault(128, 96), HasSubstr("waits for its warp group at"));
  EXPECT_THAT(fault(64, 64), HasSubstr("wgmma needs four whole warps"));
  EXPECT_EQ(fault(128, 128), "");
}

TEST(HopperFaults, RegistersOfWarpGroups) {
  // 384 threads have 168 registers each at first, or what the largest setmaxnreg_inc asks for.
  const auto fault = [](int fewer, int more, int those = 128, int min_blocks = 1) {
    return report({.threads = 384, .min_blocks = min_blocks}, [&](const Parts&) {
      if (auto _ = when(threadIdx.x < those)) setmaxnreg_dec(fewer);
      if (auto _ = when(threadIdx.x >= 128)) setmaxnreg_inc(more);
    });
  };
  EXPECT_EQ(fault(24, 240), "");
  EXPECT_THAT(fault(24, 248), AllOf(HasSubstr("deadlock"),
                                    HasSubstr("waits for 10240 registers (8192 are given back)")));
  EXPECT_THAT(fault(176, 240),
              HasSubstr("setmaxnreg_dec to 176 registers, where threads have 168"));
  EXPECT_EQ(fault(24, 160), "");
  EXPECT_THAT(fault(168, 160),
              HasSubstr("setmaxnreg_dec to 168 registers, where threads have 160"));
  EXPECT_THAT(report({.threads = 128, .min_blocks = 1},
                     [](const Parts&) {
                       setmaxnreg_inc(240);
                       setmaxnreg_inc(200);
                     }),
              HasSubstr("setmaxnreg_inc to 200 registers, where threads have 240"));
  EXPECT_THAT(fault(24, 168, 96), HasSubstr("waits for its warp group at"));
  EXPECT_THAT(fault(24, 240, 128, 0),
              HasSubstr("setmaxnreg_dec, which the assembler ignores: the kernel needs a constant "
                        "block_dim and min_blocks"));
  EXPECT_THAT(report({.threads = 96, .min_blocks = 1}, [](const Parts&) { setmaxnreg_dec(24); }),
              HasSubstr("setmaxnreg_dec needs four whole warps"));
}

TEST(HopperFaults, MatricesOutOfPlace) {
  const auto fault = [](int row, int n) {
    return report({}, [&](const Parts& p) {
      auto a = let("a", wgmma_matrix(p.tile.ptr()));
      auto b = let("b", wgmma_matrix(p.tile.ptr(row, 0)));
      auto sums = registers("sums", hidet::f32, {n / 2});
      wgmma_fence({sums});
      wgmma(sums, a, b, {.n = n}, false);
      wgmma_commit();
      wgmma_wait(0, {sums});
      p.y[threadIdx.x] = cast(sums(0), hidet::f16);
    });
  };
  EXPECT_THAT(fault(1, 8), HasSubstr("within the rows that its swizzle permutes"));
  EXPECT_THAT(fault(16, 64), HasSubstr("'barriers'"));  // behind the tile
  EXPECT_EQ(fault(16, 48), "");
}

TEST(HopperFaults, SumsThatHoldNothing) {
  const auto fault = [](bool accumulate) {
    return report({}, [&](const Parts& p) {
      auto a = let("a", wgmma_matrix(p.tile.ptr()));
      auto sums = registers("sums", hidet::f32, {4});
      wgmma_fence({sums});
      wgmma(sums, a, a, {.n = 8}, accumulate);
      wgmma_commit();
      wgmma_wait(0, {sums});
      p.y[threadIdx.x] = cast(sums(0), hidet::f16);
    });
  };
  EXPECT_THAT(fault(true), HasSubstr("wgmma adds to 'sums', which was never written"));
  EXPECT_EQ(fault(false), "");
}

TEST(HopperFaults, CopiesOutOfPlace) {
  EXPECT_THAT(report({},
                     [](const Parts& p) {
                       by_one([&] { bulk_load(p.tile.ptr(), p.x + 4090, 32, p.barriers.ptr(0)); });
                     }),
              HasSubstr("bulk_load outside 'x'"));
  EXPECT_THAT(report({},
                     [](const Parts& p) {
                       by_one([&] { bulk_load(p.tile.ptr(), p.x + 4, 32, p.barriers.ptr(0)); });
                     }),
              HasSubstr("misaligned bulk_load of 'x'"));
  EXPECT_THAT(
      report({},
             [](const Parts& p) {
               by_one([&] { tma_load(p.tile.ptr(1, 0), p.map, {0, 0}, p.barriers.ptr(0)); });
             }),
      HasSubstr("tma_load outside 'tile'"));
  EXPECT_THAT(report({},
                     [](const Parts& p) {
                       by_one([&] {
                         tma_load(p.tile.ptr(), p.map, {0, 0}, p.barriers.ptr(0), {.blocks = 2});
                       });
                     }),
              HasSubstr("to the blocks of the mask 2 of a cluster of 1"));
}

TEST(HopperFaults, BoxesThatTheHardwareRefuses) {
  const auto fault = [](bool store, int row, int column) {
    return report({}, [&](const Parts& p) {
      by_one([&] {
        if (!store) {
          mbarrier_arrive_expect_tx(p.barriers.ptr(0), kTileBytes);
          tma_load(p.tile.ptr(), p.map, {row, column}, p.barriers.ptr(0));
          return;
        }
        tma_store(p.map, {row, column}, p.tile.ptr());
        bulk_commit();
        bulk_wait();
      });
    });
  };
  for (bool store : {false, true}) {
    EXPECT_THAT(fault(store, 0, 4), HasSubstr("at the innermost coordinate 4, which is 8 bytes"));
    EXPECT_EQ(fault(store, 60, 8), "");
  }
  EXPECT_THAT(fault(true, -1, 0), HasSubstr("tma_store at the coordinate -1"));
  EXPECT_EQ(fault(false, -1, 0), "");
}

/// What a public function that makes a map of 64 numbers is reported for.
std::string map_report(const std::vector<Value>& shape, const std::vector<int>& box,
                       const MapOptions& options = {}) {
  try {
    ScriptModule m("map");
    auto kernel = m.cuda_kernel("k", [](Function& f) {
      (void)f.arg("map", tensor_map_type);
      f.grid_dim(1);
      f.block_dim(1);
      comment("nothing");
    });
    m.public_func("launch", [&](Function& f) {
      auto x = f.arg("x", ptr(hidet::f32));
      kernel(tensor_map("map", x, shape, box, options));
    });
    m.simulate("launch", hidet::zeros({64}));
  } catch (const hidet::Error& e) {
    return e.what();
  }
  return "";
}

TEST(HopperFaults, TensorMaps) {
  EXPECT_EQ(map_report({8, 8}, {4, 4}), "");
  EXPECT_THAT(map_report({9, 8}, {4, 4}), HasSubstr("tensor map outside 'x'"));
  EXPECT_THAT(map_report({8, 5}, {4, 4}), HasSubstr("a stride of the tensor map is 20 bytes"));
  EXPECT_THAT(map_report({0, 8}, {4, 4}), HasSubstr("an extent of the tensor map is 0"));
  EXPECT_THAT(map_report({8, 8}, {4}), HasSubstr("as many of the box"));
  EXPECT_THAT(map_report({8, 8}, {4, 3}), HasSubstr("a row of a tensor map's box has 12 bytes"));
  EXPECT_THAT(map_report({8, 8}, {4, 16}, {.swizzle = 32}),
              HasSubstr("no more than the swizzle's 32"));
  EXPECT_THAT(map_report({8, 8}, {512, 4}), HasSubstr("is 512; it must be from 1 to 256"));
  EXPECT_THAT(map_report({8, 8}, {4, 4}, {.swizzle = 16}), HasSubstr("0, 32, 64 or 128, not 16"));
  EXPECT_THAT(map_report({2, 2, 2, 2, 2, 2}, {1, 1, 1, 1, 1, 4}), HasSubstr("1 to 5 extents"));
}

}  // namespace
