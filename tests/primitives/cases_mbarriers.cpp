// cases_mbarriers.cpp - the rest of the family of mbarriers, and fences of proxies and clusters.
#include "primitives/cases.h"

namespace hidet::primitives {
using namespace lang;

namespace {

/// A kernel of one block with mbarriers for so many arrivals, and numbers in shared memory.
Case with_barriers(const std::string& row, int threads, const std::vector<int>& arrivals,
                   int outputs,
                   const std::function<void(const Handle& barriers, const Handle& out)>& body,
                   const std::vector<double>& expected, const std::vector<Tensor>& inputs = {}) {
  return kernel({.row = row,
                 .threads = threads,
                 .inputs = inputs,
                 .output = zeros({outputs}, i32),
                 .body =
                     [&](Function&, const std::vector<Handle>&, const Handle& out) {
                       auto barriers = shared("barriers", u64, {static_cast<int>(arrivals.size())});
                       if (auto _ = when(threadIdx.x == 0)) {
                         for (size_t i = 0; i < arrivals.size(); i++)
                           mbarrier_init(barriers.ptr(static_cast<int>(i)), arrivals[i]);
                         fence_mbarrier_init();
                       }
                       syncthreads();
                       body(barriers, out);
                     },
                 .expected = expected});
}

/// One thread arrives step by step, and is told what is missing and what has ended.
Case states() {
  return with_barriers("mbarrier_arrive_state", 1, {6}, 12,
                       [](const Handle& barriers, const Handle& out) {
                         const Value b = barriers.ptr(0);
                         const auto flag = [](const Value& v) { return select(v, 1, 0); };
                         auto first = let("first", mbarrier_arrive_no_complete(b, 2));
                         out[0] = mbarrier_pending(first);
                         auto second = let("second", mbarrier_arrive_state(b));
                         out[1] = mbarrier_pending(second);
                         out[2] = flag(mbarrier_test_wait(b, first));
                         out[3] = flag(mbarrier_test_wait(b, 0));
                         out[4] = flag(mbarrier_test_wait(b, 1));
                         out[5] = flag(mbarrier_try_wait(b, second, 20));
                         auto third = let("third", mbarrier_arrive_state(b, 3));
                         out[6] = mbarrier_pending(third);
                         out[7] = flag(mbarrier_test_wait(b, third));
                         out[8] = flag(mbarrier_try_wait(b, 0, 20));
                         out[9] = flag(mbarrier_try_wait(b, first, 20));
                         auto fourth = let("fourth", mbarrier_arrive_no_complete(b));
                         out[10] = mbarrier_pending(fourth);
                         out[11] = flag(mbarrier_test_wait(b, 1));
                       },
                       {6, 4, 0, 0, 1, 0, 3, 1, 1, 1, 6, 0});
}

/// Two warps leave one after the other; the phases wait for those who stay.
Case dropping() {
  return with_barriers(
      "mbarrier_arrive_drop", 96, {96}, 96,
      [](const Handle& barriers, const Handle& out) {
        const Value b = barriers.ptr(0);
        auto box = shared("box", i32, {96});
        auto last = let("last", threadIdx.x / 32);  // the warp's last phase
        for (auto i : range(3))
          if (auto _ = when(i <= last)) {
            if (auto inner = when(i == last && last < 2)) mbarrier_arrive_drop(b);
            if (auto inner = otherwise()) {
              box(threadIdx.x) = i * 100 + threadIdx.x;
              mbarrier_arrive(b);
              mbarrier_wait(b, i % 2);
            }
          }
        out[threadIdx.x] = select(last < 2, -1, box(threadIdx.x));
      },
      sequence(96, [](int i) { return i < 64 ? -1 : 200 + i; }));
}

/// Bytes that no copy brings.
Case counted_bytes() {
  return with_barriers(
      "mbarrier_complete_tx", 64, {1}, 64,
      [](const Handle& barriers, const Handle& out) {
        const Value b = barriers.ptr(0);
        auto ended = var("ended", i32, 7);
        if (auto _ = when(threadIdx.x == 0)) {
          mbarrier_arrive_expect_tx(b, 64);
          mbarrier_complete_tx(b, 48);
          ended = select(mbarrier_test_wait(b, 0), 1, 0);
          mbarrier_complete_tx(b, 16);
        }
        mbarrier_wait(b, 0);
        out[threadIdx.x] = ended;
      },
      sequence(64, [](int i) { return i == 0 ? 0 : 7; }));
}

/// Threads wait with tests in a loop, by parity and by state, for a warp that arrives late.
Case polled() {
  return with_barriers(
      "mbarrier_test_wait", 96, {32, 96}, 96,
      [](const Handle& barriers, const Handle& out) {
        auto box = shared("box", i32, {32});
        const Value first = barriers.ptr(0), second = barriers.ptr(1);
        if (auto _ = when(threadIdx.x < 32)) {
          box(threadIdx.x) = threadIdx.x * 3;
          mbarrier_arrive(first);
        }
        if (auto _ = otherwise()) {
          auto done = var("done", boolean, false);
          for (auto _ : loop_while(!done)) done = mbarrier_test_wait(first, 0);
          out[threadIdx.x] = box(threadIdx.x % 32);
        }
        auto state = let("state", mbarrier_arrive_state(second));
        auto done = var("done2", boolean, false);
        for (auto _ : loop_while(!done)) done = mbarrier_try_wait(second, state, 100);
        if (auto _ = when(threadIdx.x < 32)) out[threadIdx.x] = box(31 - threadIdx.x);
      },
      sequence(96, [](int i) { return i < 32 ? (31 - i) * 3 : i % 32 * 3; }));
}

/// cp_async of a warp, and another waits for them at an mbarrier; counted among the arrivals or not.
Case copies(bool counted) {
  return kernel({.row = "mbarrier_arrive_copies",
                 .name = counted ? "counted" : "one more",
                 .threads = 64,
                 .inputs = {numbers(i32, sequence(128, [](int i) { return i; }))},
                 .output = zeros({128}, i32),
                 .body =
                     [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                       auto tile = shared("tile", i32, {128});
                       auto barrier = shared("barrier", u64, {1});
                       if (auto _ = when(threadIdx.x == 0)) {
                         mbarrier_init(barrier.ptr(), 32);
                         fence_mbarrier_init();
                       }
                       syncthreads();
                       if (auto _ = when(threadIdx.x < 32)) {
                         cp_async(tile.ptr(threadIdx.x * 4), in[0] + threadIdx.x * 4, 16);
                         mbarrier_arrive_copies(barrier.ptr(), counted);
                         if (!counted) mbarrier_arrive(barrier.ptr());
                       }
                       if (auto _ = otherwise()) {
                         mbarrier_wait(barrier.ptr(), 0);
                         for (int i = 0; i < 128; i += 32)
                           out[threadIdx.x - 32 + i] =
                               tile(159 - threadIdx.x - i) - threadIdx.x % 32;
                       }
                     },
                 .expected = sequence(128, [](int i) { return 127 - i - i % 32; })});
}

/// Blocks of a cluster: each tells the next how many bytes to expect, sends them, and arrives there.
Case told() {
  return kernel({.row = "mbarrier_arrive_expect_tx_remote",
                 .blocks = 4,
                 .output = zeros({128}, i32),
                 .body =
                     [](Function& f, const std::vector<Handle>&, const Handle& out) {
                       f.cluster_dim(4);
                       auto own = shared("own", i32, {32});
                       auto given = shared("given", i32, {32});
                       auto barrier = shared("barrier", u64, {1});
                       auto rank = let("rank", cluster_rank);
                       auto next = let("next", (rank + 1) % 4);
                       own(threadIdx.x) = rank * 100 + threadIdx.x;
                       if (auto _ = when(threadIdx.x == 0)) {
                         mbarrier_init(barrier.ptr(), 1);
                         fence_mbarrier_init();
                       }
                       fence_proxy_async();
                       cluster_sync();
                       if (auto _ = when(threadIdx.x == 0)) {
                         mbarrier_arrive_expect_tx(barrier.ptr(), 128, next);
                         bulk_send(map_shared_rank(given.ptr(), next), own.ptr(), 128,
                                   map_shared_rank(barrier.ptr(), next));
                       }
                       mbarrier_wait(barrier.ptr(), 0);
                       out[rank * 32 + threadIdx.x] = given(threadIdx.x);
                       cluster_sync();
                     },
                 .expected = sequence(128, [](int i) { return (i / 32 + 3) % 4 * 100 + i % 32; })});
}

/// A number goes from block to block through atomics of the cluster's memory and fences.
Case handed_on() {
  return kernel({.row = "threadfence_cluster",
                 .blocks = 2,
                 .threads = 32,
                 .output = zeros({64}, i32),
                 .body =
                     [](Function& f, const std::vector<Handle>&, const Handle& out) {
                       f.cluster_dim(2);
                       auto box = shared("box", i32, {32});
                       auto flag = shared("flag", i32, {1});
                       auto rank = let("rank", cluster_rank);
                       if (auto _ = when(threadIdx.x == 0)) flag(0) = 0;
                       cluster_sync();
                       auto there = let("there", map_shared_rank(box.ptr(), 1 - rank));
                       auto raised = let("raised", map_shared_rank(flag.ptr(), 1 - rank));
                       there[threadIdx.x] = rank * 50 + threadIdx.x;
                       threadfence_cluster();
                       atomic_add(raised, 1);
                       auto seen = var("seen", i32, 0);
                       for (auto _ : loop_while(seen < 32)) seen = atomic_add(flag.ptr(), 0);
                       threadfence_cluster();
                       out[rank * 32 + threadIdx.x] = box(31 - threadIdx.x);
                       cluster_sync();
                     },
                 .expected = sequence(64, [](int i) { return (1 - i / 32) * 50 + 31 - i % 32; })});
}

/// What a thread wrote to global memory is read by a copy, after a fence for it.
Case fenced() {
  return kernel({.row = "fence_proxy_async_global",
                 .threads = 32,
                 .inputs = {zeros({32}, i32)},
                 .output = zeros({32}, i32),
                 .body =
                     [](Function&, const std::vector<Handle>& in, const Handle& out) {
                       auto tile = shared("tile", i32, {32});
                       auto barrier = shared("barrier", u64, {1});
                       in[0][threadIdx.x] = threadIdx.x * threadIdx.x;
                       fence_proxy_async_global();
                       fence_proxy_alias();
                       if (auto _ = when(threadIdx.x == 0)) {
                         mbarrier_init(barrier.ptr(), 1);
                         fence_mbarrier_init();
                       }
                       syncthreads();
                       if (auto _ = when(threadIdx.x == 0)) {
                         mbarrier_arrive_expect_tx(barrier.ptr(), 128);
                         bulk_load(tile.ptr(), in[0], 128, barrier.ptr());
                       }
                       mbarrier_wait(barrier.ptr(), 0);
                       out[threadIdx.x] = tile(threadIdx.x);
                     },
                 .expected = sequence(32, [](int i) { return i * i; })});
}

}  // namespace

void add_mbarriers(Cases& cases) {
  cases.push_back(states());
  cases.push_back(dropping());
  cases.push_back(counted_bytes());
  cases.push_back(polled());
  for (bool counted : {true, false}) cases.push_back(copies(counted));
  cases.push_back(told());
  cases.push_back(handed_on());
  cases.push_back(fenced());
}

}  // namespace hidet::primitives
