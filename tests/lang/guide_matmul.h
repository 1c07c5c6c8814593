// guide_matmul.h - the product with tensor cores of docs/script.md, word for word. guide_test.cpp runs it here, script_gpu on a
// GPU. Threading: one thread at a time.
#pragma once
#include <hidet/hidet.h>
#include <hidet/runtime/error.h>

#include <bit>
#include <vector>

using namespace hidet::lang;

struct Tiles {
  int m = 128, n = 256, k = 32;  // of a block: powers of two
  int stages = 4;                // tiles of a and b in shared memory
  int warps_m = 2, warps_n = 4;  // how the warps cut the block's tile
};

inline ScriptModule tensor_core_matmul(const Tiles& t) {
  const int threads = t.warps_m * t.warps_n * 32, warp_m = t.m / t.warps_m,
            warp_n = t.n / t.warps_n;
  const int rows_a = threads / (t.k / 8), rows_b = threads / (t.n / 8);  // copied at a time
  const int size_a = t.m * t.k, size_b = t.k * t.n, steps = t.k / 16;
  const int bits_a = std::countr_zero(unsigned(t.k / 8)),
            shift_b = std::countr_zero(unsigned(t.n)) - 3;
  HIDET_REQUIRE(rows_a % 8 == 0 && rows_b % 8 == 0, hidet::ErrorCode::usage, "",
                "too few warps: they copy ", rows_a, " and ", rows_b, " rows at a time");
  ScriptModule module("tensor_core_matmul");
  auto kernel = module.cuda_kernel("matmul", [&](Function& f) {
    auto a = f.arg("a", ptr(hidet::f16));
    auto b = f.arg("b", ptr(hidet::f16));
    auto c = f.arg("c", ptr(hidet::f16));
    auto m = f.arg("m", hidet::i32);
    auto n = f.arg("n", hidet::i32);
    auto k = f.arg("k", hidet::i32);
    f.grid_dim((m / t.m) * (n / t.n));
    f.block_dim(threads);
    // Swizzled: 8 rows of a column of 16 bytes meet 8 different groups of banks. The pattern repeats after 8 rows,
    // so that a pointer plus a multiple of 8 rows is the pointer to the same column further down.
    auto tile_a = dynamic_shared("tile_a", hidet::f16, {t.stages, t.m, t.k}, swizzle(bits_a, 3, 3));
    auto tile_b =
        dynamic_shared("tile_b", hidet::f16, {t.stages, t.k, t.n}, swizzle(3, 3, shift_b));
    auto acc = registers("acc", hidet::f32, {warp_m / 16, warp_n / 8, 4});
    auto frag_a = registers("frag_a", hidet::u32, {2, warp_m / 16, 4});
    auto frag_b = registers("frag_b", hidet::u32, {2, warp_n / 16, 4});
    auto tid = let("tid", threadIdx.x);
    auto lane = let("lane", tid % 32);
    auto warp_row = let("warp_row", tid / 32 / t.warps_n * warp_m);
    auto warp_col = let("warp_col", tid / 32 % t.warps_n * warp_n);

    // Blocks go down in groups of 8 rows of tiles, so that neighbours share what they read.
    auto per_group = let("per_group", n / t.n * 8);
    auto first = let("first", blockIdx.x / per_group * 8);
    auto height = let("height", min(m / t.m - first, 8));
    auto row = let("row", (first + blockIdx.x % per_group % height) * t.m);
    auto col = let("col", blockIdx.x % per_group / height * t.n);

    auto row_a = let("row_a", tid / (t.k / 8)), col_a = let("col_a", tid % (t.k / 8) * 8);
    auto row_b = let("row_b", tid / (t.n / 8)), col_b = let("col_b", tid % (t.n / 8) * 8);
    auto to_a = let("to_a", tile_a.ptr(0, row_a, col_a));
    auto to_b = let("to_b", tile_b.ptr(0, row_b, col_b));
    auto from_a = let("from_a", a + (cast(row + row_a, hidet::i64) * k + col_a));
    auto from_b = let("from_b", b + (cast(row_b, hidet::i64) * n + (col + col_b)));
    auto tiles = let("tiles", k / t.k);
    const auto copy_tile = [&](const Value& which) {
      if (auto _ = when(which < tiles)) {
        auto stage = let("stage", which % t.stages);
        auto depth = let("depth", cast(which * t.k, hidet::i64));
        for (int i = 0; i < t.m / rows_a; i++)
          cp_async(to_a + (stage * size_a + i * rows_a * t.k),
                   from_a + (depth + cast(i * rows_a * k, hidet::i64)), 16);
        for (int i = 0; i < t.k / rows_b; i++)
          cp_async(to_b + (stage * size_b + i * rows_b * t.n), from_b + (depth + i * rows_b) * n,
                   16);
      }
      cp_async_commit();
    };

    std::vector<Handle> rows_of_a, columns_of_b;
    for (int s = 0; s < steps; s++)
      rows_of_a.push_back(let("a_at", tile_a.ptr(0, warp_row + lane % 16, s * 16 + lane / 16 * 8)));
    for (int j = 0; j < warp_n / 16; j++)
      columns_of_b.push_back(
          let("b_at", tile_b.ptr(0, lane % 16, warp_col + j * 16 + lane / 16 * 8)));
    const auto load_fragments = [&](const Value& which, int step) {
      auto stage = let("stage", which % t.stages);
      for (int i = 0; i < warp_m / 16; i++)
        frag_a.store({step % 2, i, 0},
                     ldmatrix(rows_of_a[step] + (stage * size_a + i * 16 * t.k), 4));
      for (int j = 0; j < warp_n / 16; j++)
        frag_b.store({step % 2, j, 0},
                     ldmatrix(columns_of_b[j] + (stage * size_b + step * 16 * t.n), 4, true));
    };

    for (int i = 0; i < warp_m / 16; i++)
      for (int j = 0; j < warp_n / 8; j++)
        for (int e = 0; e < 4; e++) acc(i, j, e) = 0.f;
    for (int s = 0; s + 1 < t.stages; s++) copy_tile(s);
    cp_async_wait(t.stages - 2);
    syncthreads();
    load_fragments(0, 0);
    for (auto tile : range(tiles))
      for (int s = 0; s < steps; s++) {
        // The next step's fragments are on their way while this step's are multiplied.
        if (s + 1 < steps) load_fragments(tile, s + 1);
        else {
          cp_async_wait(t.stages - 2);
          syncthreads();
          load_fragments(min(tile + 1, tiles - 1), 0);
        }
        if (s == 0) copy_tile(tile + (t.stages - 1));
        for (int i = 0; i < warp_m / 16; i++)
          for (int j = 0; j < warp_n / 8; j++)
            acc.store({i, j, 0}, mma_m16n8k16_f16_f32(frag_a.load({s % 2, i, 0}, 4),
                                                      frag_b.load({s % 2, j / 2, j % 2 * 2}, 2),
                                                      acc.load({i, j, 0}, 4)));
      }

    auto pairs = let("pairs", reinterpret(c, ptr(hidet::u32)));  // of f16
    auto at = let("at", cast(row + warp_row + lane / 4, hidet::i64) * (n / 2) +
                            (col + warp_col + lane % 4 * 2) / 2);
    for (int i = 0; i < warp_m / 16; i++)
      for (int j = 0; j < warp_n / 8; j++)
        for (int e = 0; e < 4; e += 2)
          pairs[at + cast((i * 16 + e * 4) * (n / 2) + j * 4, hidet::i64)] =
              reinterpret(cast(make_vec({acc(i, j, e), acc(i, j, e + 1)}), f16x2), hidet::u32);
  });
  module.public_func("launch", [&](Function& f) {
    auto a = f.arg("a", ptr(hidet::f16));
    auto b = f.arg("b", ptr(hidet::f16));
    auto c = f.arg("c", ptr(hidet::f16));
    auto m = f.arg("m", hidet::i32);
    auto n = f.arg("n", hidet::i32);
    auto k = f.arg("k", hidet::i32);
    assert_(m % t.m == 0 && n % t.n == 0 && k % t.k == 0, "m, n and k are multiples of the tiles");
    kernel(a, b, c, m, n, k);
  });
  return module;
}
