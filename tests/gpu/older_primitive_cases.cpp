// older_primitive_cases.cpp - kernels of the primitives that sm_80 has. The matrices of a warp are compared with loops in
// matrix_test; here they are for the GPU.
#include <numeric>

#include "primitive_cases.h"
#include "wgmma_cases.h"

using namespace hidet::lang;
using hidet::DType;
using hidet::Tensor;

namespace {

Tensor ints(int n) { return hidet::zeros({n}, hidet::i32); }
Tensor scattered(int n) {
  std::vector<int32_t> v(static_cast<size_t>(n));
  for (int i = 0; i < n; i++) v[static_cast<size_t>(i)] = i * 37 % 23 - 5;
  return hidet::from_vector<int32_t>(v, {n});
}

/// A kernel of one block over x and y.
ScriptModule one_block(int threads, const Type& from, const Type& to,
                       const std::function<void(Handle, Handle, Handle)>& body) {
  ScriptModule m("one_block");
  m.cuda_kernel("k", [&](Function& f) {
    auto x = f.arg("x", ptr(from));
    auto y = f.arg("y", ptr(to));
    f.grid_dim(1);
    f.block_dim(threads);
    body(x, y, let("tid", threadIdx.x));
  });
  return m;
}

PrimitiveCase warp_exchange() {
  auto m = one_block(32, hidet::i32, hidet::i32, [](Handle x, Handle y, Handle tid) {
    auto v = let("v", x[tid]);
    auto odd = let("odd", (v & 1) == 1);
    y[tid] = shfl(v, tid * 7 % 32);
    y[tid + 32] = shfl_up(v, 3);
    y[tid + 64] = shfl_down(v, 3);
    y[tid + 96] = shfl_xor(v, 5);
    y[tid + 128] = cast(ballot(odd), hidet::i32);
    y[tid + 160] = select(any_lane(v > 16), 1, 0);
    y[tid + 192] = select(all_lanes(v > -4), 1, 0);
    y[tid + 224] = cast(match_any(v % 4), hidet::i32);
    syncwarp();
  });
  const Tensor x = scattered(32);
  const std::vector<double> v = x.to_doubles();
  std::vector<double> out(256);
  const auto at = [&](int i) { return v[static_cast<size_t>(i)]; };
  const auto mask = [&](auto holds) {
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits |= static_cast<uint32_t>(holds(static_cast<int>(at(i)))) << i;
    return static_cast<int32_t>(bits);
  };
  for (int i = 0; i < 32; i++) {
    const auto put = [&](int row, double value) { out[static_cast<size_t>(row * 32 + i)] = value; };
    put(0, at(i * 7 % 32));
    put(1, at(i >= 3 ? i - 3 : i));
    put(2, at(i < 29 ? i + 3 : i));
    put(3, at(i ^ 5));
    put(4, mask([](int w) { return (w & 1) == 1; }));
    put(5, mask([](int w) { return w > 16; }) != 0);
    put(6, mask([](int w) { return w > -4; }) == -1);
    put(7, mask([&](int w) { return w % 4 == static_cast<int>(at(i)) % 4; }));
  }
  return {"exchange in a warp", m, {x, ints(256)}, out};
}

PrimitiveCase block_barriers() {
  auto m = one_block(64, hidet::i32, hidet::i32, [](Handle x, Handle y, Handle tid) {
    auto s = shared("s", hidet::i32, {64});
    auto v = let("v", x[tid]);
    y[tid] = select(syncthreads_and(v > -6), 1, 0) + select(syncthreads_or(v > 100), 2, 0) +
             syncthreads_count(v > 0) * 4;
    // The first warp hands numbers to the second through named barriers.
    if (auto _ = when(tid < 32)) {
      s(tid) = v;
      threadfence_block();
      barrier_arrive(1, 64);
      barrier_sync(2, 64);
      y[tid + 64] = s(tid + 32);
    }
    if (auto _ = otherwise()) {
      barrier_sync(1, 64);
      s(tid) = s(63 - tid) * 2;
      threadfence();
      barrier_sync(2, 64);
      y[tid + 64] = v;
    }
    threadfence_system();
    syncthreads();
  });
  const Tensor x = scattered(64);
  const std::vector<double> v = x.to_doubles();
  std::vector<double> out(128);
  int positive = 0;
  for (double w : v) positive += w > 0;
  for (size_t i = 0; i < 64; i++) {
    out[i] = 1 + positive * 4;
    out[i + 64] = i < 32 ? v[31 - i] * 2 : v[i];
  }
  return {"barriers of a block", m, {x, ints(128)}, out};
}

/// Sums, most and least of 64 numbers, and own elements exchanged and compared.
PrimitiveCase atomics(DType t) {
  const bool bits = t.is_integer();
  auto m = one_block(64, t, t, [&](Handle x, Handle y, Handle tid) {
    auto v = let("v", x[tid]);
    atomic_add(y, v);
    atomic_max(y + 1, v);
    atomic_min(y + 2, v);
    if (bits) {
      atomic_or(y + 3, v);
      atomic_and(y + 4, v);
      atomic_xor(y + 5, v);
    }
    y[tid + 8] = atomic_exch(y + (tid + 72), v);
    y[tid + 136] = atomic_cas(y + (tid + 72), x[0], x[1]);
  });
  std::vector<double> v(64), out(200);
  int64_t all_or = 0, all_xor = 0;
  for (int i = 0; i < 64; i++) {
    const int w = i * 5 % 4;  // sums that bf16 holds
    v[static_cast<size_t>(i)] = w;
    all_or |= w, all_xor ^= w;
  }
  out[0] = std::accumulate(v.begin(), v.end(), 0.0);
  out[1] = 3;
  if (bits) out[3] = static_cast<double>(all_or), out[5] = static_cast<double>(all_xor);
  for (size_t i = 0; i < 64; i++) {
    out[i + 72] = v[i] == v[0] ? v[1] : v[i];
    out[i + 136] = v[i];
  }
  const Tensor x = hidet::from_doubles(v, {64}, t);
  return {std::string("atomics of ") + t.name(), m, {x, hidet::zeros({200}, t)}, out};
}

PrimitiveCase asynchronous_copies() {
  auto m = one_block(32, hidet::i32, hidet::i32, [](Handle x, Handle y, Handle tid) {
    auto s = shared("s", hidet::i32, {32, 16});
    for (int i = 0; i < 16; i++) s(tid, i) = -1;
    syncthreads();
    cp_async(s.ptr(tid, 0), x + tid * 12, 16);
    cp_async(s.ptr(tid, 4), x + (tid * 12 + 4), 8);
    cp_async_commit();
    cp_async(s.ptr(tid, 6), x + (tid * 12 + 6), 4);
    cp_async(s.ptr(tid, 8), x + (tid * 12 + 8), 16, tid % 5 * 4 % 17);
    cp_async_commit();
    cp_async_wait(1);
    y[tid * 16] = s(tid, 3) + s(tid, 5);
    cp_async_wait(0);
    for (int i = 1; i < 16; i++) y[tid * 16 + i] = s(tid, i);
  });
  const Tensor x = scattered(384);
  const std::vector<double> v = x.to_doubles();
  std::vector<double> out(512, -1);
  for (int t = 0; t < 32; t++) {
    const auto from = [&](int i) { return v[static_cast<size_t>(t * 12 + i)]; };
    const auto put = [&](int i, double w) { out[static_cast<size_t>(t * 16 + i)] = w; };
    put(0, from(3) + from(5));
    for (int i = 1; i < 7; i++) put(i, from(i));
    for (int i = 8; i < 12; i++) put(i, i - 8 < t % 5 ? from(i) : 0);
  }
  return {"cp_async", m, {x, ints(512)}, out};
}

PrimitiveCase matrices(int count, bool transposed) {
  auto m = one_block(32, hidet::u32, hidet::u32, [&](Handle x, Handle y, Handle tid) {
    auto s = shared("s", hidet::u32, {32, 4});
    auto out = shared("out", hidet::u32, {32, 4});
    for (int i = 0; i < 4; i++) s(tid, i) = x[tid * 4 + i], out(tid, i) = 0u;
    syncthreads();
    auto rows = let("rows", s.ptr(tid % (8 * count), 0));
    auto fragment = let("fragment", ldmatrix(rows, count, transposed));
    stmatrix(out.ptr(tid % (8 * count), 0), fragment, !transposed);
    syncthreads();
    for (int i = 0; i < count; i++)
      y[tid * 8 + i] = count == 1 ? Value(fragment) : lane(fragment, i);
    for (int i = 0; i < 4; i++) y[tid * 8 + 4 + i] = out(tid, i);
  });
  std::vector<uint32_t> words(128);
  for (size_t i = 0; i < 128; i++) words[i] = static_cast<uint32_t>(2 * i | (2 * i + 1) << 16);
  return {"ldmatrix, stmatrix " + std::to_string(count) + (transposed ? " transposed" : ""),
          m,
          {hidet::from_vector<uint32_t>(words, {128}), hidet::zeros({256}, hidet::u32)},
          {}};
}

PrimitiveCase warp_product(const Mma& mma, DType in, DType sum, int sums) {
  ScriptModule m("mma");
  m.cuda_kernel("k", [&](Function& f) {
    auto a = f.arg("a", ptr(hidet::u32));
    auto b = f.arg("b", ptr(hidet::u32));
    auto c = f.arg("c", ptr(sum));
    f.grid_dim(1);
    f.block_dim(32);
    auto tid = let("tid", threadIdx.x);
    store(c + tid * sums,
          mma(load(a + tid * 4, 4), load(b + tid * 2, 2), load(c + tid * sums, sums)));
  });
  const auto packed = [&](int words) {
    const int each = 32 / in.bits();
    std::vector<uint32_t> out(static_cast<size_t>(words));
    for (int i = 0; i < words * each; i++)
      out[static_cast<size_t>(i / each)] |= encode(i * 31 % 7 - (in == hidet::u8 ? 0 : 3), in)
                                            << i % each * in.bits();
    return hidet::from_vector<uint32_t>(out, {words});
  };
  return {mma.row, m, {packed(128), packed(64), hidet::zeros({32 * sums}, sum)}, {}};
}

}  // namespace

std::vector<PrimitiveCase> older_primitive_cases() {
  using hidet::bf16, hidet::f16, hidet::f32, hidet::i32, hidet::i8, hidet::tf32, hidet::u32,
      hidet::u8;
  std::vector<PrimitiveCase> out{warp_exchange(), block_barriers(), asynchronous_copies()};
  for (DType t : {i32, u32, hidet::i64, hidet::u64, f16, bf16, f32, hidet::f64})
    out.push_back(atomics(t));
  for (int count : {1, 2, 4})
    for (bool transposed : {false, true}) out.push_back(matrices(count, transposed));
  out.push_back(warp_product(mma_m16n8k16_f16_f32, f16, f32, 4));
  out.push_back(warp_product(mma_m16n8k16_bf16_f32, bf16, f32, 4));
  out.push_back(warp_product(mma_m16n8k16_f16_f16, f16, u32, 2));
  out.push_back(warp_product(mma_m16n8k8_tf32_f32, tf32, f32, 4));
  out.push_back(warp_product(mma_m16n8k32_i8_i32, i8, i32, 4));
  out.push_back(warp_product(mma_m16n8k32_u8_i32, u8, i32, 4));
  return out;
}
