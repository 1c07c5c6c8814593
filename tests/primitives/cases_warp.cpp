// cases_warp.cpp - matrix instructions and reductions of a warp.
#include <hidet/ir/mma.h>

#include "primitives/cases.h"

#include <algorithm>

namespace hidet::primitives {
using namespace lang;

namespace {

/// Matrices of 8 x 8 halves from memory to fragments, or back.
Case matrices(int count, bool transposed, bool store) {
  const Tensor tile = numbers(f16, sequence(count * 64, [](int i) { return i * 0.25 - 30; }));
  // Element (i, j) of matrix m is in lane 4 i + j / 2, or transposed 4 j + i / 2.
  std::vector<double> expected(static_cast<size_t>(count) * 64);
  const std::vector<double> values = tile.to_doubles();
  for (int m = 0; m < count; m++)
    for (int i = 0; i < 8; i++)
      for (int j = 0; j < 8; j++) {
        const int lane = transposed ? 4 * j + i / 2 : 4 * i + j / 2,
                  half = (transposed ? i : j) % 2;
        const auto memory = static_cast<size_t>((m * 8 + i) * 8 + j),
                   fragment = static_cast<size_t>((lane * count + m) * 2 + half);
        if (store) expected[memory] = values[fragment];
        else expected[fragment] = values[memory];
      }
  const auto body = [&](Function&, const std::vector<Handle>& in, const Handle& out) {
    auto box = shared("box", f16, {8 * count, 8});
    auto row = let("row", box.ptr(threadIdx.x % (8 * count), 0));
    auto from = let("from", reinterpret(in[0], ptr(u32)) + threadIdx.x * count);
    auto to = let("to", reinterpret(out, ptr(u32)) + threadIdx.x * count);
    auto halves = let("halves", reinterpret(box.ptr(0, 0), ptr(u32)));
    if (store) {
      stmatrix(row, load(from, count), transposed);
      syncthreads();
      for (int i = 0; i < count; i++) to[i] = halves[threadIdx.x * count + i];
      return;
    }
    for (int i = 0; i < count; i++) halves[threadIdx.x * count + i] = from[i];
    syncthreads();
    lang::store(to, ldmatrix(row, count, transposed));
  };
  return kernel({.row = store ? "stmatrix" : "ldmatrix",
                 .name = std::to_string(count) + (transposed ? " transposed" : ""),
                 .inputs = {tile},
                 .output = zeros({count * 64}, f16),
                 .body = body,
                 .expected = expected});
}

/// Fragments as they lie in memory, one after the other by lane; matrix_test knows what they are and what comes out.
Case product(const ir::MmaShape& s) {
  const auto values = [](DType t, int n) {
    const DType kept = t == tf32 ? f32 : t;
    return numbers(kept, sequence(n, [&](int i) {
                     return t.bits() == 8 && t.is_float() ? (i * 29 % 16 - 8) * 0.5
                            : t.is_float()                ? (i * 29 % 64 - 32) * 0.0625
                                                          : i * 29 % 100;
                   }));
  };
  const int sums = s.m / 8 * 2;
  const auto registers = [](const Handle& h, DType t, int n) {
    const Handle p = let("p", t == f64 ? Value(h) : reinterpret(h, ptr(u32)));
    return load(p + threadIdx.x * n, n);
  };
  // Saturating sums: those of some lanes are at the limit.
  const auto sum = [&](int i) { return s.saturate && i % 3 ? 2147483000.0 : i % 9; };
  return kernel({.row = s.name,
                 .inputs = {values(s.a, 32 * s.registers_a() * s.each()),
                            values(s.b, 32 * s.registers_b() * s.each()),
                            numbers(s.sum, sequence(32 * sums, sum))},
                 .output = zeros({32 * sums}, s.sum),
                 .body =
                     [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                       const bool pairs = s.sum == f16;
                       const Value c = pairs ? registers(in[2], u32, s.registers_sum())
                                             : load(in[2] + threadIdx.x * sums, sums);
                       const Value d =
                           Mma{s.name.c_str()}(registers(in[0], s.a, s.registers_a()),
                                               registers(in[1], s.b, s.registers_b()), c);
                       if (pairs)
                         store(reinterpret(out, ptr(u32)) + threadIdx.x * s.registers_sum(), d);
                       else store(out + threadIdx.x * sums, d);
                     },
                 .gpu = s.sum == f16   ? Tolerance{2e-3, 1e-2}
                        : s.sum == f32 ? Tolerance{1e-5, 1e-5}
                                       : Tolerance{},
                 .elsewhere = "tests/backends/sim/matrix_test.cpp"});
}

/// Element (i, j) becomes element (j, i).
Case transposed_fragment() {
  const std::vector<double> v = sequence(64, [](int i) { return i * 3 + 1; });
  return kernel(
      {.row = "movmatrix",
       .inputs = {numbers(u16, v)},
       .output = zeros({64}, u16),
       .body =
           [](Function&, const std::vector<Handle>& in, const Handle& out) {
             const Value word = reinterpret(in[0], ptr(u32))[threadIdx.x];
             store(reinterpret(out, ptr(u32)) + threadIdx.x, movmatrix(word));
           },
       .expected = sequence(64, [&](int i) { return v[static_cast<size_t>(i % 8 * 8 + i / 8)]; })});
}

void add_redux(Cases& cases) {
  struct Row {
    const char* row;
    Value (*record)(const Located&);
    int64_t (*combine)(int64_t, int64_t);
    bool bits;
  };
  const Row rows[] = {
      {"redux_add", redux_add, [](int64_t a, int64_t b) { return a + b; }, false},
      {"redux_min", redux_min, [](int64_t a, int64_t b) { return std::min(a, b); }, false},
      {"redux_max", redux_max, [](int64_t a, int64_t b) { return std::max(a, b); }, false},
      {"redux_and", redux_and, [](int64_t a, int64_t b) { return a & b; }, true},
      {"redux_or", redux_or, [](int64_t a, int64_t b) { return a | b; }, true},
      {"redux_xor", redux_xor, [](int64_t a, int64_t b) { return a ^ b; }, true},
  };
  for (const DType t : {i32, u32})
    for (const Row& row : rows) {
      if (row.bits && t == i32) continue;
      // Two warps; sums of the second wrap.
      const auto value = [&](int i) -> int64_t {
        const int64_t v = 2000000007LL * (i + 3) % 1999993 - (t == i32 ? 999999 : 0);
        return i < 32 ? v : v * 2003 % 2000000000 + (row.bits ? 0x5a0 : 0);
      };
      std::vector<double> expected;
      for (int i = 0; i < 64; i++) {
        int64_t all = value(i / 32 * 32);
        for (int j = 1; j < 32; j++) all = row.combine(all, value(i / 32 * 32 + j));
        expected.push_back(t == i32 ? static_cast<double>(static_cast<int32_t>(all))
                                    : static_cast<double>(static_cast<uint32_t>(all)));
      }
      cases.push_back(kernel(
          {.row = row.row,
           .name = t.name(),
           .threads = 64,
           .inputs = {numbers(t, sequence(64, value))},
           .output = zeros({64}, t),
           .body = [&](Function&, const std::vector<Handle>& in,
                       const Handle& out) { out[threadIdx.x] = row.record(in[0][threadIdx.x]); },
           .expected = expected}));
    }
}

}  // namespace

void add_warp(Cases& cases) {
  for (const int count : {1, 2, 4})
    for (const bool transposed : {false, true})
      for (const bool store : {false, true}) cases.push_back(matrices(count, transposed, store));
  cases.push_back(transposed_fragment());
  for (const ir::MmaShape& s : ir::mma_shapes()) cases.push_back(product(s));
  add_redux(cases);
}

}  // namespace hidet::primitives
