// cases_threads.cpp - indices, barriers, exchange within a warp, time.
#include "primitives/cases.h"

#include <hidet/ir/primitives.h>

#include <bit>

namespace hidet::primitives {
using namespace lang;

namespace {

using Body = std::function<void(Function&, const std::vector<Handle>&, const Handle&)>;

/// A grid of 2 x 3 x 2 blocks of 4 x 2 x 3 threads; each thread stores one index at its place.
void add_indices(Cases& cases) {
  const int grid[] = {2, 3, 2}, block[] = {4, 2, 3};
  const char* const names[] = {"thread_idx", "block_idx", "block_dim", "grid_dim"};
  for (int which = 0; which < 4; which++)
    for (int axis = 0; axis < 3; axis++) {
      const std::string row = std::string(names[which]) + "_" + "xyz"[axis];
      std::vector<double> expected;
      for (int b = 0; b < 12; b++)
        for (int t = 0; t < 24; t++) {
          const int bi[] = {b % 2, b / 2 % 3, b / 6}, ti[] = {t % 4, t / 4 % 2, t / 8};
          expected.push_back(which == 0   ? ti[axis]
                             : which == 1 ? bi[axis]
                             : which == 2 ? block[axis]
                                          : grid[axis]);
        }
      cases.push_back(kernel({.row = row,
                              .output = zeros({12 * 24}, i32),
                              .body =
                                  [&](Function& f, const std::vector<Handle>&, const Handle& out) {
                                    f.grid_dim(grid[0], grid[1], grid[2]);
                                    f.block_dim(block[0], block[1], block[2]);
                                    auto b =
                                        let("b", (blockIdx.z * 3 + blockIdx.y) * 2 + blockIdx.x);
                                    auto t =
                                        let("t", (threadIdx.z * 2 + threadIdx.y) * 4 + threadIdx.x);
                                    out[b * 24 + t] = prim(row, {}, i32);
                                  },
                              .expected = expected}));
    }
}

void add_barriers(Cases& cases) {
  const auto add = [&](const char* row, int threads, std::vector<double> expected,
                       const Body& body) {
    cases.push_back(kernel({.row = row,
                            .threads = threads,
                            .output = zeros({threads}, i32),
                            .body = body,
                            .expected = std::move(expected)}));
  };
  add("syncthreads", 64, sequence(64, [](int i) { return 63 - i; }),
      [](Function&, const std::vector<Handle>&, const Handle& out) {
        auto box = shared("box", i32, {64});
        box(63 - threadIdx.x) = threadIdx.x + 0;
        syncthreads();
        out[threadIdx.x] = box(threadIdx.x);
      });
  add("syncwarp", 64, sequence(64, [](int i) { return i / 32 * 32 + (i + 1) % 32; }),
      [](Function&, const std::vector<Handle>&, const Handle& out) {
        auto box = shared("box", i32, {64});
        box(threadIdx.x) = threadIdx.x + 0;
        syncwarp();
        out[threadIdx.x] = box(threadIdx.x / 32 * 32 + (threadIdx.x + 1) % 32);
      });
  const auto count = [&](const char* row, Value (*f)(const Located&), int least, double expected) {
    add(row, 64, std::vector<double>(64, expected),
        [f, least](Function&, const std::vector<Handle>&, const Handle& out) {
          out[threadIdx.x] = cast(f(threadIdx.x >= least), i32);
        });
  };
  count("syncthreads_and", syncthreads_and, 0, 1);
  count("syncthreads_and", syncthreads_and, 1, 0);
  count("syncthreads_or", syncthreads_or, 63, 1);
  count("syncthreads_or", syncthreads_or, 64, 0);
  count("syncthreads_count", syncthreads_count, 10, 54);
  // The first warp leaves numbers and goes on, the second takes them.
  for (const char* row : {"barrier_sync", "barrier_arrive"})
    add(row, 64, sequence(64, [](int i) { return i < 32 ? 0 : 2 * (i - 32); }),
        [](Function&, const std::vector<Handle>&, const Handle& out) {
          auto box = shared("box", i32, {32});
          if (auto _ = when(threadIdx.x < 32)) {
            box(threadIdx.x) = threadIdx.x * 2;
            barrier_arrive(1, 64);
          }
          if (auto _ = otherwise()) {
            barrier_sync(1, 64);
            out[threadIdx.x] = box(threadIdx.x - 32);
          }
        });
}

/// Two warps hand numbers to each other through named barriers, with fences on the way.
void add_hand_over(Cases& cases) {
  const std::vector<double> v = sequence(64, [](int i) { return i * 37 % 23 - 5; });
  int positive = 0;
  for (double w : v) positive += w > 0;
  cases.push_back(kernel({.row = "barrier_sync",
                          .name = "both ways",
                          .threads = 64,
                          .inputs = {numbers(i32, v)},
                          .output = zeros({128}, i32),
                          .body =
                              [](Function&, const std::vector<Handle>& in, const Handle& out) {
                                auto s = shared("s", i32, {64});
                                auto tid = let("tid", threadIdx.x);
                                auto mine = let("mine", in[0][tid]);
                                out[tid] = select(syncthreads_and(mine > -6), 1, 0) +
                                           select(syncthreads_or(mine > 100), 2, 0) +
                                           syncthreads_count(mine > 0) * 4;
                                if (auto _ = when(tid < 32)) {
                                  s(tid) = mine;
                                  threadfence_block();
                                  barrier_arrive(1, 64);
                                }
                                if (auto _ = otherwise()) {
                                  barrier_sync(1, 64);
                                  s(tid) = s(63 - tid) * 2;
                                  threadfence();
                                }
                                // In one place: synccheck takes two for threads that part.
                                barrier_sync(2, 64);
                                if (auto _ = when(tid < 32)) out[tid + 64] = s(tid + 32);
                                if (auto _ = otherwise()) out[tid + 64] = mine;
                                threadfence_system();
                                syncthreads();
                              },
                          .expected = sequence(128, [&](int i) {
                            if (i < 64) return 1.0 + positive * 4;
                            return i < 96 ? v[static_cast<size_t>(95 - i)] * 2
                                          : v[static_cast<size_t>(i - 64)];
                          })}));
}

void add_exchange(Cases& cases) {
  struct Shuffle {
    const char* row;
    Value (*record)(const Located&, const Located&);
    int (*from)(int lane, int n);
  };
  const Shuffle shuffles[] = {
      {"shfl_sync", shfl, [](int, int n) { return n; }},
      {"shfl_up_sync", shfl_up, [](int lane, int n) { return lane < n ? lane : lane - n; }},
      {"shfl_down_sync", shfl_down,
       [](int lane, int n) { return lane + n > 31 ? lane : lane + n; }},
      {"shfl_xor_sync", shfl_xor, [](int lane, int n) { return lane ^ n; }},
  };
  for (const Shuffle& s : shuffles)
    for (const DType t : {i32, u32, i64, f32, f64}) {
      const std::vector<double> values = sequence(64, [](int i) { return i * 1.5 + 3; });
      const Tensor in = t.is_float() ? numbers(t, values)
                                     : numbers(t, sequence(64, [](int i) { return i * 3 + 1; }));
      const std::vector<double> held = in.to_doubles();
      cases.push_back(kernel(
          {.row = s.row,
           .name = t.name(),
           .threads = 64,
           .inputs = {in},
           .output = zeros({64}, t),
           .body = [&](Function&, const std::vector<Handle>& p,
                       const Handle& out) { out[threadIdx.x] = s.record(p[0][threadIdx.x], 5); },
           .expected = sequence(64, [&](int i) {
             return held[static_cast<size_t>(i / 32 * 32 + s.from(i % 32, 5))];
           })}));
    }
  const auto vote = [&](const char* row, DType out,
                        const std::function<Value(const Value&)>& record,
                        const std::function<double(int)>& expected) {
    cases.push_back(kernel(
        {.row = row,
         .threads = 64,
         .output = zeros({64}, out),
         .body = [&](Function&, const std::vector<Handle>&,
                     const Handle& p) { p[threadIdx.x] = cast(record(threadIdx.x + 0), out); },
         .expected = sequence(64, expected)}));
  };
  vote(
      "ballot_sync", u32, [](const Value& i) { return ballot(i % 32 % 3 == 0); },
      [](int) { return static_cast<double>(0x49249249u); });
  vote(
      "any_sync", i32, [](const Value& i) { return any_lane(i == 40); },
      [](int i) { return i >= 32; });
  vote(
      "all_sync", i32, [](const Value& i) { return all_lanes(i != 40); },
      [](int i) { return i < 32; });
  vote(
      "match_any_sync", u32, [](const Value& i) { return match_any(i % 4); },
      [](int i) { return static_cast<double>(0x11111111u << (i % 4)); });
  vote(
      "match_all_sync", u32, [](const Value& i) { return match_all(i / 33); },
      [](int i) { return i < 32 ? 4294967295.0 : 0; });
}

void add_others(Cases& cases) {
  // A later clock is not less; what else it says is the machine's.
  cases.push_back(kernel({.row = "clock",
                          .output = zeros({32}, i32),
                          .body =
                              [](Function&, const std::vector<Handle>&, const Handle& out) {
                                auto first = let("first", clock());
                                auto second = let("second", clock());
                                out[threadIdx.x] = cast(second >= first, i32);
                              },
                          .expected = std::vector<double>(32, 1)}));
  cases.push_back(kernel({.row = "nanosleep",
                          .output = zeros({32}, i32),
                          .body =
                              [](Function&, const std::vector<Handle>&, const Handle& out) {
                                nanosleep(100);
                                out[threadIdx.x] = threadIdx.x + 1;
                              },
                          .expected = sequence(32, [](int i) { return i + 1; })}));
  cases.push_back(kernel({.row = "assume_aligned",
                          .output = zeros({128}),
                          .body =
                              [](Function&, const std::vector<Handle>&, const Handle& out) {
                                assume_aligned(out, 16);
                                store(out + threadIdx.x * 4, broadcast(1.5f, 4));
                              },
                          .expected = std::vector<double>(128, 1.5)}));
}

}  // namespace

void add_threads(Cases& cases) {
  add_indices(cases);
  add_barriers(cases);
  add_hand_over(cases);
  add_exchange(cases);
  add_others(cases);
}

}  // namespace hidet::primitives
