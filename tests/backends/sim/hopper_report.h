// hopper_report.h - the kernel into which faults of sm_90 are planted, and what the simulator says of it.
// Threading: one thread at a time.
#pragma once
#include <gmock/gmock.h>
#include <hidet/hidet.h>

namespace hopper_faults {
using namespace hidet::lang;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// What a fault's kernel gets. x, y: 4096 numbers of f16 in global memory, and a tensor map of x as 64 x 64, boxes of 64 x 64.
struct Parts {
  Handle map, x, y, tile, acc, barriers;
};
struct Kernel {
  int threads = 128, blocks = 1, cluster = 1;
  int min_blocks = 0;
  bool prepare = true;  ///< mbarriers 0 and 1 for one arrival, the tile zero, all fenced
};

/// What the simulator reports; "" for nothing.
inline std::string report(const Kernel& k, const std::function<void(const Parts&)>& body) {
  ScriptModule m("fault");
  auto kernel = m.cuda_kernel("fault", [&](Function& f) {
    auto map = f.arg("map", tensor_map_type);
    auto x = f.arg("x", ptr(hidet::f16));
    auto y = f.arg("y", ptr(hidet::f16));
    f.grid_dim(k.blocks);
    f.block_dim(k.threads);
    f.cluster_dim(k.cluster);
    if (k.min_blocks) f.min_blocks(k.min_blocks);
    auto tile = shared("tile", hidet::f16, {64, 64}, swizzled_rows(hidet::f16, 128));
    auto barriers = shared("barriers", hidet::u64, {4});
    auto acc = registers("acc", hidet::f32, {32});
    auto whole = let("whole", reinterpret(tile.ptr(), ptr(hidet::u32)));
    if (k.prepare) {
      for (int e = 0; e < 32; e++) acc(e) = 0.f;
      for (auto i : range((2048 + k.threads - 1) / k.threads))
        if (auto _ = when(i * k.threads + threadIdx.x < 2048))
          whole[i * k.threads + threadIdx.x] = 0u;
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
    EXPECT_THAT(e.where(), testing::AnyOf(HasSubstr("_test.cpp:"), HasSubstr("hopper_report.h:")));
    return e.what();
  }
  return "";
}

inline constexpr int kTileBytes = 64 * 64 * 2;

/// Thread 0 loads the tile and tells barrier 0.
inline void load_tile(const Parts& p, int bytes = kTileBytes) {
  mbarrier_arrive_expect_tx(p.barriers.ptr(0), bytes);
  tma_load(p.tile.ptr(), p.map, {0, 0}, p.barriers.ptr(0));
}
inline void by_one(const std::function<void()>& body) {
  if (auto _ = when(threadIdx.x == 0)) body();
}
inline void multiply(const Parts& p) {
  auto d = let("d", wgmma_matrix(p.tile.ptr()));
  wgmma(p.acc, d, d, {.n = 64});
  wgmma_commit();
}
inline void use_sums(const Parts& p) { p.y[threadIdx.x] = cast(p.acc(3), hidet::f16); }

}  // namespace hopper_faults
