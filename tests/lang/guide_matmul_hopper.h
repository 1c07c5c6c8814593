// guide_matmul_hopper.h - the Hopper product of docs/script.md, word for word.
#pragma once
#include <hidet/lang.h>
#include <hidet/runtime/error.h>

#include <vector>

using namespace hidet::lang;

struct HopperTiles {
  int m = 128, n = 256;  // of a block; a consumer takes 64 rows
  int stages = 4;        // tiles of a and b in shared memory
};

inline ScriptModule hopper_matmul(const HopperTiles& t) {
  constexpr int k_tile = 64;  // a row of 128 bytes
  const int consumers = t.m / 64, size_a = t.m * k_tile, size_b = t.n * k_tile;
  ScriptModule module("hopper_matmul");
  auto kernel = module.cuda_kernel("matmul", [&](Function& f) {
    auto map_a = f.arg("map_a", tensor_map_type);
    auto map_b = f.arg("map_b", tensor_map_type);
    auto c = f.arg("c", ptr(hidet::f16));
    auto m = f.arg("m", hidet::i32);
    auto n = f.arg("n", hidet::i32);
    auto k = f.arg("k", hidet::i32);
    f.grid_dim((m / t.m) * (n / t.n));
    f.block_dim(128 * (consumers + 1));
    f.min_blocks(1);
    const Layout rows = swizzled_rows(hidet::f16, 128);
    auto tile_a = dynamic_shared("tile_a", hidet::f16, {t.stages, t.m, k_tile}, rows);
    auto tile_b = dynamic_shared("tile_b", hidet::f16, {t.stages, t.n / 64, k_tile, 64}, rows);
    auto full = dynamic_shared("full", hidet::u64, {t.stages});
    auto empty = dynamic_shared("empty", hidet::u64, {t.stages});
    auto tid = let("tid", threadIdx.x);

    // Blocks go down in groups of 8 rows of tiles, so that neighbours share what they read.
    auto per_group = let("per_group", n / t.n * 8);
    auto first = let("first", blockIdx.x / per_group * 8);
    auto height = let("height", min(m / t.m - first, 8));
    auto row = let("row", (first + blockIdx.x % per_group % height) * t.m);
    auto col = let("col", blockIdx.x % per_group / height * t.n);
    auto tiles = let("tiles", k / k_tile);

    if (auto _ = when(tid == 0)) {
      for (int s = 0; s < t.stages; s++) {
        mbarrier_init(full.ptr(s), 1);
        mbarrier_init(empty.ptr(s), consumers);
      }
      fence_mbarrier_init();
    }
    syncthreads();

    if (auto _ = when(tid < 128)) {  // the producer
      setmaxnreg_dec(40);
      if (auto _ = when(tid == 0))
        for (auto tile : range(tiles)) {
          auto stage = let("stage", tile % t.stages);
          mbarrier_wait(empty.ptr(stage), (tile / t.stages + 1) % 2);
          mbarrier_arrive_expect_tx(full.ptr(stage), (size_a + size_b) * 2);
          tma_load(tile_a.ptr(stage, 0, 0), map_a, {row, tile * k_tile}, full.ptr(stage));
          for (int j = 0; j < t.n / 64; j++)
            tma_load(tile_b.ptr(stage, j, 0, 0), map_b, {tile * k_tile, col + j * 64},
                     full.ptr(stage));
        }
    }
    if (auto _ = otherwise()) {
      setmaxnreg_inc(232);
      auto group = let("group", tid / 128 - 1);
      auto acc = registers("acc", hidet::f32, {t.n / 8, 4});
      for (int j = 0; j < t.n / 8; j++)
        for (int e = 0; e < 4; e++) acc(j, e) = 0.f;
      auto from_a = let("from_a", wgmma_matrix(tile_a.ptr(0, group * 64, 0)));
      auto from_b = let("from_b", wgmma_matrix(tile_b.ptr(0, 0, 0, 0),
                                               {.mn_major = true, .leading = k_tile * 128}));
      for (auto tile : range(tiles)) {
        auto stage = let("stage", tile % t.stages);
        auto a = let("a", from_a + cast(stage * (size_a / 8), hidet::u64));
        auto b = let("b", from_b + cast(stage * (size_b / 8), hidet::u64));
        mbarrier_wait(full.ptr(stage), tile / t.stages % 2);
        wgmma_fence({acc});
        for (int s = 0; s < k_tile / 16; s++)
          wgmma(acc, a + s * 2, b + s * 128, {.n = t.n, .b_mn_major = true});
        wgmma_commit();
        wgmma_wait(1, {});  // the former tile's products have ended
        if (auto _ = when(tid % 128 == 0 && tile > 0))
          mbarrier_arrive(empty.ptr((tile + (t.stages - 1)) % t.stages));
      }
      wgmma_wait(0, {acc});
      auto pairs = let("pairs", reinterpret(c, ptr(hidet::u32)));  // of f16
      auto at = let(
          "at", cast(row + group * 64 + tid % 128 / 32 * 16 + tid % 32 / 4, hidet::i64) * (n / 2) +
                    (col / 2 + tid % 4));
      for (int j = 0; j < t.n / 8; j++)
        for (int e = 0; e < 4; e += 2)
          pairs[at + cast(e * 4 * (n / 2) + j * 4, hidet::i64)] =
              reinterpret(cast(make_vec({acc(j, e), acc(j, e + 1)}), f16x2), hidet::u32);
    }
  });
  module.public_func("launch", [&](Function& f) {
    auto a = f.arg("a", ptr(hidet::f16));
    auto b = f.arg("b", ptr(hidet::f16));
    auto c = f.arg("c", ptr(hidet::f16));
    auto m = f.arg("m", hidet::i32);
    auto n = f.arg("n", hidet::i32);
    auto k = f.arg("k", hidet::i32);
    assert_(m % t.m == 0 && n % t.n == 0 && k % k_tile == 0,
            "m, n and k are multiples of the tiles");
    auto map_a = tensor_map("map_a", a, {m, k}, {t.m, k_tile}, {.swizzle = 128});
    auto map_b = tensor_map("map_b", b, {k, n}, {k_tile, 64}, {.swizzle = 128});
    kernel(map_a, map_b, c, m, n, k);
  });
  return module;
}
