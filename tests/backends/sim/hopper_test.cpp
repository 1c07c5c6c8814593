// hopper_test.cpp - mbarriers, bulk copies and clusters in the simulator: values against loops, and planted faults, each with a
// correct twin that gives no report.
#include <gmock/gmock.h>
#include <hidet/hidet.h>

#include "../../gpu/primitive_cases.h"

using namespace hidet::lang;
using hidet::Tensor;
using ::testing::AllOf;
using ::testing::HasSubstr;

void PrintTo(const PrimitiveCase& c, std::ostream* out) { *out << c.name; }

namespace {

class HopperPrimitives : public testing::TestWithParam<PrimitiveCase> {};

TEST_P(HopperPrimitives, EqualTheLoops) {
  const PrimitiveCase& c = GetParam();
  std::vector<hidet::lang::SimArg> args;
  for (const hidet::Tensor& t : c.args) args.emplace_back(t);
  hidet::lang::simulate_module(c.module.module(), "launch", args);
  if (!c.expected.empty()) {
    EXPECT_EQ(c.args.back().to_doubles(), c.expected) << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HopperPrimitives, testing::ValuesIn(primitive_cases()),
                         [](const auto& info) { return std::to_string(info.index); });
INSTANTIATE_TEST_SUITE_P(Older, HopperPrimitives, testing::ValuesIn(older_primitive_cases()),
                         [](const auto& info) { return std::to_string(info.index); });

/// What a fault's kernel gets. x, y: 4096 numbers of f16 in global memory, and a tensor map of x as 64 x 64, boxes of 64 x 64.
struct Parts {
  Handle map, x, y, tile, acc, barriers;
};
struct Kernel {
  int threads = 128, blocks = 1, cluster = 1;
  bool prepare = true;  ///< mbarriers 0 and 1 for one arrival, the tile zero, all fenced
};

/// What the simulator reports; "" for nothing.
std::string report(const Kernel& k, const std::function<void(const Parts&)>& body) {
  ScriptModule m("fault");
  auto kernel = m.cuda_kernel("fault", [&](Function& f) {
    auto map = f.arg("map", tensor_map_type);
    auto x = f.arg("x", ptr(hidet::f16));
    auto y = f.arg("y", ptr(hidet::f16));
    f.grid_dim(k.blocks);
    f.block_dim(k.threads);
    f.cluster_dim(k.cluster);
    auto tile = shared("tile", hidet::f16, {64, 64}, swizzled_rows(hidet::f16, 128));
    auto barriers = shared("barriers", hidet::u64, {4});
    auto acc = registers("acc", hidet::f32, {32});
    auto whole = let("whole", reinterpret(tile.ptr(), ptr(hidet::u32)));
    if (k.prepare) {
      for (int e = 0; e < 32; e++) acc(e) = 0.f;
      for (auto i : range(2048 / k.threads)) whole[i * k.threads + threadIdx.x] = 0u;
      if (auto _ = when(threadIdx.x == 0)) {
        for (int i = 0; i < 2; i++) mbarrier_init(barriers.ptr(i), 1);
        fence_mbarrier_init();
      }
      fence_proxy_async();
      syncthreads();
      if (k.cluster > 1) cluster_sync();
    }
    body({map, x, y, tile, acc, barriers});
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f16));
    auto y = f.arg("y", ptr(hidet::f16));
    kernel(tensor_map("map", x, {64, 64}, {64, 64}, {.swizzle = 128}), x, y);
  });
  try {
    m.simulate("launch", hidet::randn({4096}, hidet::f16, {}, 1), hidet::zeros({4096}, hidet::f16));
  } catch (const hidet::Error& e) {
    EXPECT_EQ(e.code(), hidet::ErrorCode::usage);
    EXPECT_THAT(e.where(), HasSubstr("hopper_test.cpp:"));
    return e.what();
  }
  return "";
}

constexpr int kTileBytes = 64 * 64 * 2;

/// Thread 0 loads the tile and tells barrier 0.
void load_tile(const Parts& p, int bytes = kTileBytes) {
  mbarrier_arrive_expect_tx(p.barriers.ptr(0), bytes);
  tma_load(p.tile.ptr(), p.map, {0, 0}, p.barriers.ptr(0));
}
void by_one(const std::function<void()>& body) {
  if (auto _ = when(threadIdx.x == 0)) body();
}
void multiply(const Parts& p) {
  auto d = let("d", wgmma_matrix(p.tile.ptr()));
  wgmma(p.acc, d, d, {.n = 64});
  wgmma_commit();
}
void use_sums(const Parts& p) { p.y[threadIdx.x] = cast(p.acc(3), hidet::f16); }

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
                       by_one([&] { tma_load(p.tile.ptr(), p.map, {0, 0}, p.barriers.ptr(0), 2); });
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
