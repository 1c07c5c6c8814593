// faults_sync_test.cpp - planted faults of barriers, warp operations, asynchronous copies, waiting and arithmetic.
#include "faults.h"

using namespace faults;
using hidet::f16, hidet::f32, hidet::i32, hidet::u32;

namespace {

const char* const kEnd = " (kernel 'fault', block (0, 0, 0), thread (0, 0, 0))";
std::string divergent(const std::string& list, const char* end = kEnd) {
  return "divergent barrier or warp operation, which some threads never reach: " + list + end;
}
/// 256 halves, written by all 32 threads.
Handle filled(const Args& k) {
  auto s = shared("s", f16, {16, 16});
  for (auto i : range(threadIdx.x, 256, 32)) s(i / 16, i % 16) = cast(k.x[0], f16);
  syncwarp();
  return s;
}

const Fault kTable[] = {
    {"BarrierInABranch", 1, 64,
     [](const Args&, bool bad) {
       if (auto _ = when(threadIdx.x < (bad ? 40 : 64))) FAULT(syncthreads());
       OTHER(syncthreads());
     },
     divergent("thread (0, 0, 0) waits at the barrier at #; thread (40, 0, 0) waits at the barrier "
               "at $")},
    {"BarrierInBothBranches", 1, 64,
     [](const Args& k, bool bad) {
       auto c = let("c", bad ? threadIdx.x < 32 : threadIdx.x >= 0);
       if (auto _ = when(c)) FAULT(syncthreads());
       if (auto _ = otherwise()) OTHER(syncthreads());
       k.x[threadIdx.x] = 1.0f;
     },
     divergent("thread (0, 0, 0) waits at the barrier at #; thread (32, 0, 0) waits at the barrier "
               "at $")},
    {"BarrierInALoopOfDifferentLengths", 1, 64,
     [](const Args&, bool bad) {
       for (auto i : range(bad ? 1 + threadIdx.x / 32 : Value(2))) {
         comment("an iteration");
         OTHER(syncthreads());
       }
       FAULT(syncthreads());
     },
     divergent("thread (0, 0, 0) waits at the barrier at #; thread (32, 0, 0) waits at the barrier "
               "at $")},
    {"BarrierMissedByBreak", 1, 64,
     [](const Args&, bool bad) {
       for (auto i : range(3)) {
         if (bad) {
           if (auto _ = when(threadIdx.x == 5 && i == 1)) break_loop();
         }
         FAULT(syncthreads());
       }
       OTHER(syncthreads());
     },
     divergent(
         "thread (0, 0, 0) waits at the barrier at #; thread (5, 0, 0) waits at the barrier at $")},
    {"CountingBarrierSkipped", 1, 64,
     [](const Args& k, bool bad) {
       if (bad) {
         if (auto _ = when(threadIdx.x != 63)) FAULT(k.n[0] * syncthreads_count(threadIdx.x > 3));
       } else {
         let("count", syncthreads_count(threadIdx.x > 3));
       }
       OTHER(syncthreads());
     },
     divergent("thread (0, 0, 0) waits at the barrier at #; thread (63, 0, 0) waits at the barrier "
               "at $")},
    {"NamedBarrierThatNobodyElseReaches", 1, 96,
     [](const Args&, bool bad) {
       if (auto _ = when(threadIdx.x < (bad ? 32 : 64))) FAULT(barrier_sync(3, 64));
     },
     divergent("thread (0, 0, 0) waits at named barrier 3 (32 of 64 threads are there) at #")},
    {"NamedBarriersInOppositeOrder", 1, 64,
     [](const Args&, bool bad) {
       if (auto _ = when(threadIdx.x < 32)) {
         FAULT(barrier_sync(1, 64));
         barrier_sync(2, 64);
       }
       if (auto _ = otherwise()) {
         OTHER(barrier_sync(bad ? 2 : 1, 64));
         barrier_sync(bad ? 1 : 2, 64);
       }
     },
     divergent("thread (0, 0, 0) waits at named barrier 1 (32 of 64 threads are there) at #; "
               "thread (32, 0, 0) waits at "
               "named barrier 2 (32 of 64 threads are there) at $")},
    {"NamedBarrierOfPartOfAWarp", 1, 64,
     [](const Args&, bool bad) { FAULT(barrier_sync(1, bad ? 48 : 64)); },
     std::string("named barrier 1 for 48 threads, which are no whole warps") + kEnd},
    {"NamedBarrierOfTwoCounts", 1, 64,
     [](const Args&, bool bad) {
       if (auto _ = when(threadIdx.x < 32)) barrier_sync(1, 64);
       if (auto _ = otherwise()) FAULT(barrier_sync(1, bad ? 96 : 64));
     },
     "named barrier 1 for 96 threads, where others wait for 64 (kernel 'fault', block (0, 0, 0), "
     "thread (32, 0, 0))"},
    {"NamedBarrierThatDoesNotExist", 1, 32,
     [](const Args&, bool bad) { FAULT(barrier_sync(bad ? 16 : 15, 32)); },
     std::string("named barrier 16; there are 16, from 0 to 15") + kEnd},
    {"ShuffleInABranch", 1, 32,
     [](const Args&, bool bad) {
       if (auto _ = when(threadIdx.x < (bad ? 16 : 32))) FAULT(shfl(threadIdx.x, 0));
       OTHER(syncwarp());
     },
     divergent(
         "thread (0, 0, 0) waits for its warp at #; thread (16, 0, 0) waits for its warp at $")},
    {"ShuffleWhileOthersWaitAtTheBarrier", 1, 64,
     [](const Args&, bool bad) {
       if (auto _ = when(threadIdx.x < (bad ? 8 : 32))) FAULT(shfl_xor(threadIdx.x, 4));
       OTHER(syncthreads());
     },
     divergent(
         "thread (0, 0, 0) waits for its warp at #; thread (8, 0, 0) waits at the barrier at $")},
    {"ShuffleFromALaneThatIsNotThere", 1, 16,
     [](const Args&, bool bad) { FAULT(shfl_xor(threadIdx.x, bad ? 16 : 8)); },
     std::string("shuffle from lane 16 of the warp, which the block does not have") + kEnd},
    {"ShuffleFromALaneThatHasEnded", 1, 32,
     [](const Args& k, bool bad) {
       if (auto _ = when(threadIdx.x < (bad ? 31 : 32))) {
         if (auto _ = when(k.n[0] == 0)) FAULT(shfl(threadIdx.x, 31));
       }
     },
     std::string("shuffle from lane 31 of the warp, which has ended") + kEnd},
    {"VoteInABranch", 1, 32,
     [](const Args&, bool bad) {
       if (auto _ = when(threadIdx.x % 2 == 0 || (bad ? threadIdx.x < 0 : threadIdx.x >= 0)))
         FAULT(ballot(threadIdx.x > 3));
       OTHER(syncwarp());
     },
     divergent(
         "thread (0, 0, 0) waits for its warp at #; thread (1, 0, 0) waits for its warp at $")},
    {"MatrixLoadOfHalfAWarp", 1, 32,
     [](const Args& k, bool bad) {
       auto s = filled(k);
       if (auto _ = when(threadIdx.x < (bad ? 16 : 32)))
         FAULT(ldmatrix(s.ptr(threadIdx.x % 16, threadIdx.x / 16 * 8), 4));
     },
     std::string("a matrix instruction needs all 32 lanes of the warp, not 16") + kEnd},
    {"MatrixLoadOfGlobalMemory", 1, 32,
     [](const Args& k, bool bad) {
       auto s = filled(k);
       auto v = view(k.x, tensor(f32, {16, 4}));
       if (bad) FAULT(ldmatrix(v.ptr(threadIdx.x % 16, 0), 1));
       else ldmatrix(s.ptr(threadIdx.x % 16, 0), 1);
     },
     std::string("ldmatrix read of 'x', which is not shared memory") + kEnd},
    {"MatrixProductOfHalfAWarp", 1, 32,
     [](const Args& k, bool bad) {
       auto a = let("a", broadcast(cast(k.n[0], u32), 4));
       auto b = let("b", broadcast(cast(k.n[0], u32), 2));
       auto c = let("c", broadcast(k.x[0], 4));
       if (auto _ = when(threadIdx.x >= (bad ? 16 : 0)))
         FAULT(let("d", mma_m16n8k16_f16_f32(a, b, c)));
     },
     "a matrix instruction needs all 32 lanes of the warp, not 16 (kernel 'fault', block (0, 0, "
     "0), thread (16, 0, 0))"},
    {"CopyReadBeforeItsWait", 1, 32,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {128});
       auto t = let("t", threadIdx.x * 2);
       OTHER(cp_async(s.ptr(t), k.x + t, 8));
       cp_async_commit();
       if (!bad) cp_async_wait(0);
       FAULT(k.x[t] = s[t]);
     },
     std::string("read of 's' before cp_async_wait for the copy at $") + kEnd},
    {"CopyWaitOffByOne", 1, 16,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {2, 64});
       auto t = let("t", threadIdx.x * 4);
       for (int stage = 0; stage < 2; stage++) {
         OTHER(cp_async(s.ptr(stage, t), k.x + t, 16));
         cp_async_commit();
       }
       cp_async_wait(bad ? 1 : 0);
       syncthreads();
       FAULT(let("v", s(0, 63 - threadIdx.x) + s(1, threadIdx.x)));
     },
     std::string("read of 's' before cp_async_wait for the copy at $") + kEnd},
    {"CopyWithoutCommit", 1, 16,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {64});
       auto t = let("t", threadIdx.x * 4);
       OTHER(cp_async(s.ptr(t), k.x + t, 16));
       if (!bad) cp_async_commit();
       cp_async_wait(0);
       syncthreads();
       FAULT(let("v", s[threadIdx.x]));
     },
     std::string("read of 's' before cp_async_wait for the copy at $") + kEnd},
    {"CopyOfAnotherThreadWithoutABarrier", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {64});
       auto t = let("t", threadIdx.x);
       OTHER(cp_async(s.ptr(t), k.x + t, 4));
       cp_async_commit();
       cp_async_wait(0);
       if (!bad) syncthreads();
       if (auto _ = when(t >= 32)) FAULT(let("v", s[t - 32]));
     },
     "race on 's': this read and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (32, 0, 0))"},
    {"WriteOverACopyOnItsWay", 1, 1,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {4});
       OTHER(cp_async(s.ptr(0), k.x, 16));
       cp_async_commit();
       if (!bad) cp_async_wait(0);
       FAULT(s[1] = 1.0f);
     },
     std::string("race on 's': this write meets the copy at $ that was not waited for") + kEnd},
    {"FlagThatNobodySets",
     1,
     1,
     [](const Args& k, bool bad) {
       if (!bad) atomic_exch(k.n, 1);
       lines.fault = __LINE__ + 1;
       for (auto _ : loop_while(atomic_add(k.n, 0) == 0)) comment("waits");
     },
     std::string("stopped after 50000 loop iterations: thread (0, 0, 0) is at #") + kEnd,
     {.max_steps = 50000}},
    {"BlocksThatWaitForEachOther",
     2,
     1,
     [](const Args& k, bool bad) {
       auto b = let("b", blockIdx.x);
       if (!bad) atomic_exch(k.n + b, 1);
       lines.fault = __LINE__ + 1;
       for (auto _ : loop_while(atomic_add(k.n + (1 - b), 0) == 0)) comment("waits");
       if (bad) atomic_exch(k.n + b, 1);
     },
     std::string("stopped after 2000000 loop iterations: thread (0, 0, 0) is at #") + kEnd,
     {.max_steps = 2000000}},
    {"LockThatIsNotGivenBack",
     1,
     8,
     [](const Args& k, bool bad) {
       FAULT(for (auto _ : loop_while(atomic_cas(k.n, 0, 1) != 0)) comment("waits"));
       if (bad) {
         if (auto _ = when(threadIdx.x != 3)) atomic_exch(k.n, 0);
       } else {
         atomic_exch(k.n, 0);
       }
     },
     "stopped after 400000 loop iterations: thread (4, 0, 0) is at # (kernel 'fault', block (0, 0, "
     "0), thread (4, 0, 0))",
     {.max_steps = 400000}},
    {"AssertOfAThread", 2, 40,
     [](const Args&, bool bad) {
       auto i = let("i", blockIdx.x * 40 + threadIdx.x);
       FAULT(assert_(i < (bad ? 77 : 80), "i is in range"));
     },
     "i is in range (kernel 'fault', block (1, 0, 0), thread (37, 0, 0))"},
    {"DivisionByZero",
     1,
     32,
     [](const Args& k, bool bad) {
       FAULT(let("v", 100 / (k.n[0] + threadIdx.x - (bad ? 9 : -1))));
     },
     "integer division by zero (kernel 'fault', block (0, 0, 0), thread (9, 0, 0))",
     {.arithmetic = true}},
    {"RemainderByZero",
     1,
     32,
     [](const Args& k, bool bad) { FAULT(let("v", threadIdx.x % (k.n[0] + (bad ? 0 : 3)))); },
     std::string("integer division by zero") + kEnd,
     {.arithmetic = true}},
    {"ShiftOutOfRange",
     1,
     40,
     [](const Args& k, bool bad) {
       FAULT(let("v", (k.n[0] + 1) << (bad ? Value(threadIdx.x) : threadIdx.x % 32)));
     },
     "shift of 32 bits by 32 (kernel 'fault', block (0, 0, 0), thread (32, 0, 0))",
     {.arithmetic = true}},
};

PLANTED_FAULTS(SyncFaults, kTable);

}  // namespace
