// guide.h - the programs of docs/script.md, word for word, but for the one with tensor cores (guide_matmul.h). guide_test.cpp runs them here, script_gpu on a GPU.
// Threading: one thread at a time.
#pragma once
#include <hidet/hidet.h>
#include <hidet/runtime/error.h>

#include <cmath>
#include <vector>

using namespace hidet::lang;

inline ScriptModule hello() {
  ScriptModule m("hello");
  m.public_func("launch", [](Function& f) {
    auto n = f.arg("n", hidet::i32);
    for (auto i : range(n)) printf("hello from iteration %d of %d\n", i, n);
  });
  return m;
}

inline ScriptModule vector_add() {
  ScriptModule m("vector_add");
  m.public_func("launch", [](Function& f) {
    auto a = f.arg("a", ptr(hidet::f32));
    auto b = f.arg("b", ptr(hidet::f32));
    auto c = f.arg("c", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i64);
    for (auto i : parallel(n, 4096)) c[i] = a[i] + b[i];
  });
  return m;
}

inline ScriptModule vector_add_cuda() {
  ScriptModule m("vector_add_cuda");
  m.cuda_kernel("vector_add", [](Function& f) {
    auto a = f.arg("a", ptr(hidet::f32));
    auto b = f.arg("b", ptr(hidet::f32));
    auto c = f.arg("c", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i32);
    f.grid_dim((n + 1023) / 1024);
    f.block_dim(256);
    for (const Handle& p : {a, b, c}) assume_aligned(p, 16);
    auto i = let("i", (blockIdx.x * 256 + threadIdx.x) * 4);
    if (auto _ = when(i + 4 <= n)) store(c + i, load(a + i, 4) + load(b + i, 4));
    if (auto _ = otherwise())
      for (auto j : range(i, n)) c[j] = a[j] + b[j];
  });
  return m;  // one kernel and no public function: it gets `launch` with the kernel's arguments
}

inline ScriptModule sum_of_squares() {
  ScriptModule m("sum_of_squares");
  auto square = m.cpu_internal("square", [](Function& f) {
    auto x = f.arg("x", hidet::f32);
    f.returns(x * x);
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i32);
    auto sum = var("sum", hidet::f32, 0.f);
    for (auto i : range(n)) sum += square(x[i]);
    f.returns(sum);
  });
  return m;
}

inline ScriptModule softmax(int rows, int columns) {
  ScriptModule m("softmax");
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", tensor(hidet::f32, {rows, columns}));
    auto y = f.arg("y", tensor(hidet::f32, {rows, columns}));
    for (auto i : parallel(rows)) {
      auto most = var("most", hidet::f32, x(i, 0));
      for (auto j : range(1, columns)) most = max(most, x(i, j));
      auto sum = var("sum", hidet::f32, 0.f);
      for (auto j : range(columns)) {
        auto e = let("e", exp(x(i, j) - most));
        y(i, j) = e;
        sum += e;
      }
      for (auto j : range(columns)) y(i, j) /= sum;
    }
  });
  return m;
}

inline ScriptModule softmax_cuda(int columns) {
  const int vectors =
      columns / 128;  // columns is a multiple of 128: a warp takes a row, 4 values a lane at a time
  ScriptModule m("softmax_cuda");
  m.cuda_kernel("softmax", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto y = f.arg("y", ptr(hidet::f32));
    auto rows = f.arg("rows", hidet::i32);
    f.grid_dim((rows + 3) / 4);
    f.block_dim(128);
    assume_aligned(x, 16);
    assume_aligned(y, 16);
    auto row = let("row", cast(blockIdx.x * 4 + threadIdx.x / 32, hidet::i64));
    auto at = let("at", row * columns + threadIdx.x % 32 * 4);
    auto kept = registers("kept", hidet::f32, {vectors, 4});
    auto most = var("most", hidet::f32, -INFINITY);
    auto sum = var("sum", hidet::f32, 0.f);
    if (auto _ = when(row < rows)) {
      for (int v = 0; v < vectors; v++) kept.store({v, 0}, load(x + (at + v * 128), 4));
      for (int v = 0; v < vectors; v++)
        for (int e = 0; e < 4; e++) most = max(most, kept(v, e));
      for (int d = 16; d > 0; d /= 2) most = max(most, shfl_xor(most, d));
      for (int v = 0; v < vectors; v++)
        for (int e = 0; e < 4; e++) {
          kept(v, e) = exp(kept(v, e) - most);
          sum += kept(v, e);
        }
      for (int d = 16; d > 0; d /= 2) sum += shfl_xor(sum, d);
      auto scale = let("scale", 1.f / sum);
      for (int v = 0; v < vectors; v++)
        store(y + (at + v * 128), kept.load({v, 0}, 4) * broadcast(scale, 4));
    }
  });
  return m;
}

inline ScriptModule matmul(int m_size, int n_size, int k_size) {
  constexpr int block = 32, k_tile = 8;
  ScriptModule m("matmul");
  m.cuda_kernel("matmul", [&](Function& f) {
    auto a = f.arg("a", tensor(hidet::f32, {m_size, k_size}));
    auto b = f.arg("b", tensor(hidet::f32, {k_size, n_size}));
    auto c = f.arg("c", tensor(hidet::f32, {m_size, n_size}));
    f.grid_dim((n_size + block - 1) / block, (m_size + block - 1) / block);
    f.block_dim(64);
    auto tile_a = shared("tile_a", hidet::f32, {block, k_tile});
    auto tile_b = shared("tile_b", hidet::f32, {k_tile, block});
    auto acc = registers("acc", hidet::f32, {4, 4});
    auto row = let("row", blockIdx.y * block);
    auto col = let("col", blockIdx.x * block);
    for (auto [i, j] : grid(4, 4)) acc(i, j) = 0.f;
    for (auto k0 : range((k_size + k_tile - 1) / k_tile)) {
      for (auto [i, k] : repeat(4, 1).spatial(8, 8).on(threadIdx.x))
        tile_a(i, k) = a.read({row + i, k0 * k_tile + k});  // 0 outside the tensor
      for (auto [k, j] : repeat(1, 4).spatial(8, 8).on(threadIdx.x))
        tile_b(k, j) = b.read({k0 * k_tile + k, col + j});
      syncthreads();
      for (auto [ti, tj] : spatial(8, 8).on(threadIdx.x))
        for (auto [i, j] : grid(4, 4))
          for (auto k : range(k_tile)) acc(i, j) += tile_a(ti * 4 + i, k) * tile_b(k, tj * 4 + j);
      syncthreads();
    }
    for (auto [ti, tj] : spatial(8, 8).on(threadIdx.x))
      for (auto [i, j] : grid(4, 4))
        c.write({row + ti * 4 + i, col + tj * 4 + j}, acc(i, j));  // dropped outside
  });
  return m;
}

inline ScriptModule tuned_sum() {
  ScriptModule m("tuned_sum");
  m.space({{"lanes", {4, 8, 16}}, {"grain", {1024, 65536}}}, [](ScriptModule& s, const Params& p) {
    s.public_func("launch", [&](Function& f) {
      auto a = f.arg("a", ptr(hidet::f32));
      auto b = f.arg("b", ptr(hidet::f32));
      auto n = f.arg("n", hidet::i64);
      const auto lanes = static_cast<int>(p["lanes"]);
      assert_(n % lanes == 0, "n is a multiple of the lanes");
      for (auto i : parallel(n / lanes, p["grain"] / lanes))
        store(b + i * lanes, load(a + i * lanes, lanes) + load(b + i * lanes, lanes));
    });
  });
  return m;
}

inline ScriptModule reverse(bool with_barrier) {
  ScriptModule m("reverse");
  m.cuda_kernel("reverse", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    f.grid_dim(1);
    f.block_dim(64);
    auto s = shared("s", hidet::f32, {64});
    s[threadIdx.x] = x[threadIdx.x];
    if (with_barrier) syncthreads();
    x[threadIdx.x] = s[63 - threadIdx.x];
  });
  return m;
}
