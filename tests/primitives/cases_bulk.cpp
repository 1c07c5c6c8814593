// cases_bulk.cpp - bulk reductions of every operation and type, in global memory and in that of the cluster; copies between
// blocks; policies of L2 and prefetches.
#include <hidet/ir/bulk.h>

#include "primitives/cases.h"

#include <algorithm>

namespace hidet::primitives {
using namespace lang;

namespace {

const Combine kOperations[] = {Combine::add, Combine::min,     Combine::max,    Combine::inc,
                               Combine::dec, Combine::bit_and, Combine::bit_or, Combine::bit_xor};
const DType kTypes[] = {i32, u32, i64, u64, f16, bf16, f32, f64};

double combine(Combine op, double old, double v) {
  const auto a = static_cast<int64_t>(old), b = static_cast<int64_t>(v);
  switch (op) {
    case Combine::add: return old + v;
    case Combine::min: return std::min(old, v);
    case Combine::max: return std::max(old, v);
    case Combine::inc: return old >= v ? 0 : old + 1;
    case Combine::dec: return old == 0 || old > v ? v : old - 1;
    case Combine::bit_and: return static_cast<double>(a & b);
    case Combine::bit_or: return static_cast<double>(a | b);
    default: return static_cast<double>(a ^ b);
  }
}
std::string name_of(Combine op, DType t) { return std::string(ir::name_of(op)) + " " + t.name(); }
bool is_signed(DType t) { return t.is_float() || t == i32 || t == i64; }

/// What is there, and what arrives: small, so that halves hold all sums.
std::vector<double> there(int n, DType t) {
  return sequence(n, [&](int i) { return i * 7 % 19 - (is_signed(t) ? 9 : 0); });
}
std::vector<double> arriving(int n, DType t) {
  return sequence(n, [&](int i) { return i * 11 % 23 - (is_signed(t) ? 11 : 0); });
}

/// The numbers in `tile` go out by one thread, as `copy` says, when all have written theirs.
void store_tile(const Handle& tile, const Handle& x, int count, const std::function<void()>& copy) {
  for (int i = 0; i < count; i += 64)
    if (auto _ = when(threadIdx.x + i < count)) tile(threadIdx.x + i) = x[threadIdx.x + i];
  fence_proxy_async_shared();
  syncthreads();
  if (auto _ = when(threadIdx.x == 0)) {
    copy();
    bulk_commit();
    bulk_wait();
  }
}

/// Two blocks combine the same 4 x 16 numbers with those at (3, 16) of 6 x 24: a part of the box is outside.
Case tensor_reduction(Combine op, DType t) {
  const std::vector<int> at{3, 16};
  ScriptModule m("reduce");
  auto kernel = m.cuda_kernel("k", [&](Function& f) {
    auto map = f.arg("map", tensor_map_type);
    auto x = f.arg("x", ptr(t));
    f.grid_dim(2);
    f.block_dim(64);
    auto tile = shared("tile", t, {512});
    store_tile(tile, x, 64, [&] { tma_reduce(op, map, {at[0], at[1]}, tile.ptr()); });
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(t));
    auto y = f.arg("y", ptr(t));
    kernel(tensor_map("map", y, {6, 24}, {4, 16}), x);
  });
  std::vector<double> expected = there(144, t);
  const std::vector<double> v = arriving(64, t);
  for (int twice = 0; twice < 2; twice++)
    for (int r = 3; r < 6; r++)
      for (int c = 16; c < 24; c++) {
        double& e = expected[static_cast<size_t>(r * 24 + c)];
        e = combine(op, e, v[static_cast<size_t>((r - 3) * 16 + c - 16)]);
      }
  return whole("tma_reduce", name_of(op, t), m, {numbers(t, v)}, numbers(t, there(144, t)),
               expected);
}

Case reduction(Combine op, DType t) {
  const int count = 48;
  std::vector<double> expected = there(count, t);
  const std::vector<double> v = arriving(count, t);
  for (int twice = 0; twice < 2; twice++)
    for (size_t i = 0; i < count; i++) expected[i] = combine(op, expected[i], v[i]);
  return kernel({.row = "bulk_reduce",
                 .name = name_of(op, t),
                 .blocks = 2,
                 .threads = 64,
                 .inputs = {numbers(t, v)},
                 .output = numbers(t, there(count, t)),
                 .body =
                     [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                       auto tile = shared("tile", t, {64});
                       store_tile(tile, in[0], count, [&] {
                         bulk_reduce(op, out, tile.ptr(), count * static_cast<int>(t.bytes()));
                       });
                     },
                 .expected = expected});
}

/// Two blocks of a cluster send 32 numbers to each other, as they are or combined with what is there.
Case sent(const Combine* op, DType t) {
  const int bytes = 32 * static_cast<int>(t.bytes());
  std::vector<double> expected = there(64, t);
  const std::vector<double> v = arriving(64, t);
  for (size_t i = 0; i < 64; i++) {
    const double w = v[(i + 32) % 64];
    expected[i] = op ? combine(*op, expected[i], w) : w;
  }
  return kernel({.row = op ? "bulk_send_reduce" : "bulk_send",
                 .name = op ? name_of(*op, t) : t.name(),
                 .blocks = 2,
                 .inputs = {numbers(t, v), numbers(t, there(64, t))},
                 .output = zeros({64}, t),
                 .body =
                     [&](Function& f, const std::vector<Handle>& in, const Handle& out) {
                       f.cluster_dim(2);
                       auto tile = shared("tile", t, {32});
                       auto given = shared("given", t, {32});
                       auto barrier = shared("barrier", u64, {1});
                       auto rank = let("rank", cluster_rank);
                       auto at = let("at", rank * 32 + threadIdx.x);
                       tile(threadIdx.x) = in[0][at];
                       given(threadIdx.x) = in[1][at];
                       if (auto _ = when(threadIdx.x == 0)) {
                         mbarrier_init(barrier.ptr(), 1);
                         fence_mbarrier_init();
                         mbarrier_arrive_expect_tx(barrier.ptr(), bytes);
                       }
                       fence_proxy_async();
                       cluster_sync();
                       if (auto _ = when(threadIdx.x == 0)) {
                         auto to = let("to", map_shared_rank(given.ptr(), 1 - rank));
                         auto counted = let("counted", map_shared_rank(barrier.ptr(), 1 - rank));
                         if (op) bulk_send(*op, to, tile.ptr(), bytes, counted);
                         else bulk_send(to, tile.ptr(), bytes, counted);
                       }
                       mbarrier_wait(barrier.ptr(), 0);
                       out[at] = given(threadIdx.x);
                       cluster_sync();
                     },
                 .expected = expected});
}

/// Each thread of two blocks of a cluster sends its numbers to the other block: a vector of `lanes`, or one that is combined with
/// what is there.
Case stored(const Combine* op, DType t, int lanes) {
  const int n = 32 * lanes, bytes = n * static_cast<int>(t.bytes());
  std::vector<double> expected = there(2 * n, t);
  const std::vector<double> v = arriving(2 * n, t);
  for (int i = 0; i < 2 * n; i++) {
    const double w = v[static_cast<size_t>((i + n) % (2 * n))];
    double& e = expected[static_cast<size_t>(i)];
    e = op ? combine(*op, e, w) : w;
  }
  return kernel(
      {.row = op ? "async_reduce" : "async_store",
       .name = op ? name_of(*op, t) : std::string(t.name()) + " x " + std::to_string(lanes),
       .blocks = 2,
       .inputs = {numbers(t, v), numbers(t, there(2 * n, t))},
       .output = zeros({2 * n}, t),
       .body =
           [&](Function& f, const std::vector<Handle>& in, const Handle& out) {
             f.cluster_dim(2);
             auto given = shared("given", t, {n});
             auto barrier = shared("barrier", u64, {1});
             auto rank = let("rank", cluster_rank);
             auto own = let("own", threadIdx.x * lanes);
             auto at = let("at", rank * n + own);
             store(given.ptr(own), load(in[1] + at, lanes));
             if (auto _ = when(threadIdx.x == 0)) {
               mbarrier_init(barrier.ptr(), 1);
               fence_mbarrier_init();
               mbarrier_arrive_expect_tx(barrier.ptr(), bytes);
             }
             cluster_sync();
             auto to = let("to", map_shared_rank(given.ptr(own), 1 - rank));
             auto counted = let("counted", map_shared_rank(barrier.ptr(), 1 - rank));
             const Value value = load(in[0] + at, lanes);
             if (op) async_reduce(*op, to, value, counted);
             else async_store(to, value, counted);
             mbarrier_wait(barrier.ptr(), 0);
             store(out + at, load(given.ptr(own), lanes));
             cluster_sync();
           },
       .expected = expected});
}

/// 512 numbers there and back, with a policy for the way in and one for the way out.
Case with_policies(bool tensor, Evict in, Evict out, bool several) {
  ScriptModule m("policies");
  auto kernel = m.cuda_kernel("k", [&](Function& f) {
    auto from = f.arg("from", tensor_map_type);
    auto to = f.arg("to", tensor_map_type);
    auto x = f.arg("x", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    f.grid_dim(1);
    f.block_dim(64);
    auto tile = shared("tile", i32, {512});
    auto barrier = shared("barrier", u64, {1});
    if (auto _ = when(threadIdx.x == 0)) {
      mbarrier_init(barrier.ptr(), 1);
      fence_mbarrier_init();
      auto p = let("p", cache_policy(in, 0.5f, Evict::first));
      auto q = let("q", cache_policy(out));
      mbarrier_arrive_expect_tx(barrier.ptr(), 2048);
      CopyOptions load{.policy = p};
      if (several) load.blocks = 1;
      if (tensor) {
        tma_prefetch(from);
        tma_prefetch(from, {0, 0}, {.policy = p});
        tma_load(tile.ptr(), from, {0, 0}, barrier.ptr(), load);
      } else {
        bulk_prefetch(x, 1024, {.policy = p});
        bulk_load(tile.ptr(), x, 2048, barrier.ptr(), load);
      }
      mbarrier_wait(barrier.ptr(), 0);
      if (tensor) {
        tma_prefetch(to, {8, 0});
        tma_store(to, {0, 0}, tile.ptr(), {.policy = q});
        tma_reduce(Combine::add, to, {8, 0}, tile.ptr(), {.policy = q});
      } else {
        bulk_prefetch(y, 16);
        bulk_store(y, tile.ptr(), 2048, {.policy = q});
        bulk_reduce(Combine::add, y + 256, tile.ptr(), 0 + 1024, {.policy = q});
      }
      bulk_commit();
      bulk_wait();
    }
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    kernel(tensor_map("from", x, {16, 32}, {16, 32}), tensor_map("to", y, {16, 32}, {16, 32}), x,
           y);
  });
  const std::string name = std::string(tensor ? "tensor" : "bytes") + " " +
                           std::to_string(static_cast<int>(in)) +
                           std::to_string(static_cast<int>(out)) + (several ? " multicast" : "");
  return whole("cache_policy", name, m, {numbers(i32, sequence(512, [](int i) { return i; }))},
               zeros({512}, i32), sequence(512, [](int i) { return i < 256 ? i : i + (i - 256); }));
}

}  // namespace

void add_bulk(Cases& cases) {
  for (Combine op : kOperations)
    for (DType t : kTypes) {
      if (!ir::can_reduce(op, t, false)) continue;
      // Maps of i64 take min and max only; those of u64 the rest, too.
      if (t != i64 || op == Combine::min || op == Combine::max)
        cases.push_back(tensor_reduction(op, t));
      cases.push_back(reduction(op, t));
      if (!ir::can_reduce(op, t, true)) continue;
      cases.push_back(sent(&op, t));
      cases.push_back(stored(&op, t, 1));
    }
  for (DType t : {i32, f16}) cases.push_back(sent(nullptr, t));
  for (int lanes : {1, 2, 4}) cases.push_back(stored(nullptr, f32, lanes));
  cases.push_back(stored(nullptr, f16, 8));
  cases.push_back(stored(nullptr, u64, 1));
  const Evict orders[] = {Evict::last, Evict::normal, Evict::first, Evict::unchanged};
  for (int i = 0; i < 4; i++)
    for (bool tensor : {false, true})
      cases.push_back(with_policies(tensor, orders[i], orders[3 - i], i == 3));
}

}  // namespace hidet::primitives
