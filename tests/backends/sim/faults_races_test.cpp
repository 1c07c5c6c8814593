// faults_races_test.cpp - planted races: accesses of two threads, one of them a write, that nothing orders.
#include "faults.h"

using namespace faults;
using hidet::f16, hidet::f32, hidet::i32;

namespace {

Value number(const Value& v) { return cast(v, f32); }

const Fault kTable[] = {
    {"SharedWriteThenReadWithoutABarrier", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {64});
       FAULT(s[threadIdx.x] = 1.0f);
       if (!bad) syncthreads();
       OTHER(k.x[threadIdx.x] = s[63 - threadIdx.x]);
     },
     "race on 's': this write and the read at $ by thread (31, 0, 0) of the same block are not "
     "ordered by a barrier (kernel 'fault', block (0, 0, 0), thread (32, 0, 0))"},
    {"SharedWriteByAll", 1, 33,
     [](const Args&, bool bad) {
       auto s = shared("s", f32, {33});
       auto i = let("i", bad ? threadIdx.x / 33 : Value(threadIdx.x));
       FAULT(OTHER(s[i] = 1.0f));
     },
     "race on 's': this write and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (1, 0, 0))"},
    {"SecondBarrierOfALoopMissing", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {64});
       auto sum = var("sum", f32, 0.0f);
       for (auto i : range(3)) {
         FAULT(s[threadIdx.x] = k.x[threadIdx.x] + number(i));
         syncthreads();
         OTHER(sum += s[(threadIdx.x + 33) % 64]);
         if (!bad) syncthreads();
       }
     },
     "race on 's': this write and the read at $ by thread (31, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (0, 0, 0))"},
    {"DoubleBufferingOffByOne", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {2, 64});
       auto sum = var("sum", f32, 0.0f);
       s(0, threadIdx.x) = k.x[threadIdx.x];
       for (auto i : range(4)) {
         syncthreads();
         auto next = let("next", bad ? i % 2 : (i + 1) % 2);
         FAULT(sum += s(i % 2, (threadIdx.x + 32) % 64));
         OTHER(s(next, threadIdx.x) = sum);
       }
     },
     "race on 's': this read and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier (kernel 'fault', block (0, 0, 0), thread (32, 0, 0))"},
    {"SyncwarpWhereSyncthreadsIsNeeded", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {64});
       FAULT(s[threadIdx.x] = 1.0f);
       if (bad) syncwarp();
       else syncthreads();
       OTHER(k.x[threadIdx.x] = s[(threadIdx.x + 1) % 64]);
     },
     "race on 's': this write and the read at $ by thread (31, 0, 0) of the same block are not "
     "ordered by a barrier (kernel 'fault', block (0, 0, 0), thread (32, 0, 0))"},
    {"LanesThatTrustTheirWarp", 1, 32,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {32});
       OTHER(s[threadIdx.x] = 1.0f);
       if (!bad) syncwarp();
       FAULT(k.x[threadIdx.x] = s[31 - threadIdx.x]);
     },
     "race on 's': this read and the write at $ by thread (31, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (0, 0, 0))"},
    {"WarpReductionWithoutSyncwarp", 1, 32,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {32});
       s[threadIdx.x] = k.x[threadIdx.x];
       syncwarp();
       for (int d = 16; d > 0; d /= 2) {
         if (auto _ = when(threadIdx.x < d)) {
           FAULT(OTHER(s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + d]));
         }
         if (!bad) syncwarp();
       }
     },
     "race on 's': this read and the write at $ by thread (8, 0, 0) of the same block are not "
     "ordered by a barrier (kernel 'fault', block (0, 0, 0), thread (0, 0, 0))"},
    {"ReductionThatSkipsItsLastBarrier", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {64});
       s[threadIdx.x] = k.x[threadIdx.x];
       syncthreads();
       if (auto _ = when(threadIdx.x < 32)) OTHER(s[threadIdx.x] = 2.0f);
       if (!bad) syncthreads();
       if (auto _ = when(threadIdx.x == 40)) FAULT(k.x[40] = s[0]);
     },
     "race on 's': this read and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (40, 0, 0))"},
    {"GlobalWriteByAllThreads", 1, 2,
     [](const Args& k, bool bad) { FAULT(OTHER(k.x[bad ? Value(0) : Value(threadIdx.x)] = 1.0f)); },
     "race on 'x': this write and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (1, 0, 0))"},
    {"GlobalWriteThenReadInABlock", 1, 64,
     [](const Args& k, bool bad) {
       FAULT(k.x[threadIdx.x] = 1.0f);
       if (!bad) syncthreads();
       OTHER(let("v", k.x[(threadIdx.x + 32) % 64]));
     },
     "race on 'x': this write and the read at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier (kernel 'fault', block (0, 0, 0), thread (32, 0, 0))"},
    {"BlocksWriteOnePlace", 3, 1,
     [](const Args& k, bool bad) {
       FAULT(OTHER(k.x[bad ? blockIdx.x / 2 : Value(blockIdx.x)] = 1.0f));
     },
     "race on 'x': this write and the write at $ by thread (0, 0, 0) of block (0, 0, 0) are not "
     "ordered "
     "(kernel 'fault', block (1, 0, 0), thread (0, 0, 0))"},
    {"BlockReadsWhatAnotherWrites", 4, 16,
     [](const Args& k, bool bad) {
       auto i = let("i", blockIdx.x * 16 + threadIdx.x);
       OTHER(k.x[i] = 1.0f);
       FAULT(let("v", k.x[bad ? select(blockIdx.x > 0, i - 16, i) : i]));
     },
     "race on 'x': this read and the write at $ by thread (0, 0, 0) of block (0, 0, 0) are not "
     "ordered "
     "(kernel 'fault', block (1, 0, 0), thread (0, 0, 0))"},
    {"BlockWritesWhatAnotherReads", 4, 16,
     [](const Args& k, bool bad) {
       auto i = let("i", blockIdx.x * 16 + threadIdx.x);
       OTHER(let("v", k.x[bad ? min(i + 16, 63) : i]));
       FAULT(k.x[i] = 1.0f);
     },
     "race on 'x': this write and the read at $ by thread (0, 0, 0) of block (0, 0, 0) are not "
     "ordered "
     "(kernel 'fault', block (1, 0, 0), thread (0, 0, 0))"},
    {"BarrierOfABlockDoesNotOrderBlocks", 2, 32,
     [](const Args& k, bool bad) {
       FAULT(k.x[blockIdx.x * 32 + threadIdx.x] = 1.0f);
       syncthreads();
       auto from = let("from", bad ? 1 - blockIdx.x : Value(blockIdx.x));
       OTHER(let("v", k.x[from * 32 + threadIdx.x]));
     },
     "race on 'x': this write and the read at $ by thread (0, 0, 0) of block (0, 0, 0) are not "
     "ordered (kernel 'fault', block (1, 0, 0), thread (0, 0, 0))"},
    {"PlainWriteAgainstAnAtomic", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", i32, {1});
       if (auto _ = when(threadIdx.x == 0)) OTHER(s[0] = 0);
       if (!bad) syncthreads();
       FAULT(atomic_add(s.ptr(0), k.n[0]));
     },
     "race on 's': this atomic access and the write at $ by thread (0, 0, 0) of the same block are "
     "not ordered by a "
     "barrier (kernel 'fault', block (0, 0, 0), thread (1, 0, 0))"},
    {"PlainReadAgainstAnAtomic", 1, 64,
     [](const Args& k, bool bad) {
       OTHER(atomic_add(k.n, 1));
       if (!bad) syncthreads();
       if (auto _ = when(threadIdx.x == 0)) FAULT(let("v", k.n[0]));
     },
     "race on 'n': this read and the atomic access at $ by thread (1, 0, 0) of the same block are "
     "not ordered by a "
     "barrier (kernel 'fault', block (0, 0, 0), thread (0, 0, 0))"},
    {"PlainReadOfAnotherBlocksAtomic", 2, 1,
     [](const Args& k, bool bad) {
       FAULT(atomic_add(k.n + (bad ? Value(0) : Value(blockIdx.x)), 1));
       OTHER(let("v", k.n[blockIdx.x * 1]));
     },
     "race on 'n': this atomic access and the read at $ by thread (0, 0, 0) of block (0, 0, 0) are "
     "not ordered (kernel 'fault', block (1, 0, 0), thread (0, 0, 0))"},
    {"VectorsThatOverlap", 1, 8,
     [](const Args& k, bool bad) {
       auto v = let("v", load(k.x + 32, 4));
       FAULT(OTHER(store(k.x + threadIdx.x * (bad ? 3 : 4), v)));
     },
     "race on 'x': this write and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (1, 0, 0))"},
    {"HalvesOfAWordAreTwoPlaces", 1, 2,
     [](const Args& k, bool bad) {
       auto s = shared("s", f16, {4});
       auto i = let("i", threadIdx.x * (bad ? 0 : 1));
       FAULT(OTHER(s[i] = cast(k.x[0], f16)));
     },
     "race on 's': this write and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (1, 0, 0))"},
    {"NamedBarrierThatDoesNotCoverAll", 1, 96,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {96});
       FAULT(s[threadIdx.x] = 1.0f);
       if (bad) {
         if (auto _ = when(threadIdx.x < 64)) barrier_sync(1, 64);
       } else {
         barrier_sync(1, 96);
       }
       if (auto _ = when(threadIdx.x < 64)) OTHER(k.x[threadIdx.x] = s[threadIdx.x + 32]);
     },
     "race on 's': this write and the read at $ by thread (32, 0, 0) of the same block are not "
     "ordered by a barrier (kernel 'fault', block (0, 0, 0), thread (64, 0, 0))"},
    {"NamedBarriersOfTwoHalves", 1, 128,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {128});
       auto half = let("half", threadIdx.x / 64);
       FAULT(s[threadIdx.x] = 1.0f);
       barrier_sync(1 + half, 64);
       auto from =
           let("from", bad ? (threadIdx.x + 64) % 128 : half * 64 + (threadIdx.x + 32) % 64);
       OTHER(let("v", s[from] + k.x[0]));
     },
     "race on 's': this write and the read at $ by thread (32, 0, 0) of the same block are not "
     "ordered by a barrier (kernel 'fault', block (0, 0, 0), thread (96, 0, 0))"},
    {"ArrivalBeforeTheWrite", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {32});
       if (auto _ = when(threadIdx.x < 32)) {
         if (bad) barrier_arrive(1, 64);
         OTHER(s[threadIdx.x] = 1.0f);
         if (!bad) barrier_arrive(1, 64);
       }
       if (auto _ = otherwise()) {
         barrier_sync(1, 64);
         FAULT(k.x[threadIdx.x] = s[threadIdx.x - 32]);
       }
     },
     "race on 's': this read and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (32, 0, 0))"},
    {"ProducerThatDoesNotWaitForItsConsumers", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {32});
       for (auto i : range(2)) {
         if (auto _ = when(threadIdx.x < 32)) {
           if (!bad) {
             if (auto _ = when(i > 0)) barrier_sync(2, 64);
           }
           s[threadIdx.x] = number(i);
           barrier_arrive(1, 64);
         }
         if (auto _ = otherwise()) {
           FAULT(OTHER(barrier_sync(1, 64)));
           k.x[threadIdx.x] = s[threadIdx.x - 32];
           if (!bad) {
             if (auto _ = when(i < 1)) barrier_arrive(2, 64);
           }
         }
       }
     },
     "divergent barrier or warp operation, which some threads never reach: thread (32, 0, 0) waits "
     "at named barrier 1 (32 of 64 threads are there) at $ (kernel 'fault', block (0, 0, 0), "
     "thread (32, 0, 0))"},
    {"FlagWithoutAFenceBeforeIt", 2, 1,
     [](const Args& k, bool bad) {
       if (auto _ = when(blockIdx.x == 0)) {
         OTHER(k.x[0] = 1.0f);
         if (!bad) threadfence();
         atomic_exch(k.n, 1);
       }
       if (auto _ = otherwise()) {
         for (auto _ : loop_while(atomic_add(k.n, 0) == 0)) comment("waits");
         threadfence();
         FAULT(let("v", k.x[0]));
       }
     },
     "race on 'x': this read and the write at $ by thread (0, 0, 0) of block (0, 0, 0) are not "
     "ordered "
     "(kernel 'fault', block (1, 0, 0), thread (0, 0, 0))"},
    {"FlagWithoutAFenceBehindIt", 2, 1,
     [](const Args& k, bool bad) {
       if (auto _ = when(blockIdx.x == 0)) {
         OTHER(k.x[0] = 1.0f);
         threadfence();
         atomic_exch(k.n, 1);
       }
       if (auto _ = otherwise()) {
         for (auto _ : loop_while(atomic_add(k.n, 0) == 0)) comment("waits");
         if (!bad) threadfence();
         FAULT(let("v", k.x[0]));
       }
     },
     "race on 'x': this read and the write at $ by thread (0, 0, 0) of block (0, 0, 0) are not "
     "ordered "
     "(kernel 'fault', block (1, 0, 0), thread (0, 0, 0))"},
    {"FlagOfALaterBlock", 2, 1,
     [](const Args& k, bool bad) {
       if (auto _ = when(blockIdx.x == 1)) {
         OTHER(k.x[0] = 1.0f);
         if (!bad) threadfence();
         atomic_exch(k.n, 1);
       }
       if (auto _ = otherwise()) {
         for (auto _ : loop_while(atomic_add(k.n, 0) == 0)) comment("waits");
         threadfence();
         FAULT(let("v", k.x[0]));
       }
     },
     "race on 'x': this read and the write at $ by thread (0, 0, 0) of block (1, 0, 0) are not "
     "ordered "
     "(kernel 'fault', block (0, 0, 0), thread (0, 0, 0))"},
    {"FenceOfABlockBetweenBlocks", 2, 1,
     [](const Args& k, bool bad) {
       if (auto _ = when(blockIdx.x == 0)) {
         OTHER(k.x[0] = 1.0f);
         if (bad) threadfence_block();
         else threadfence();
         atomic_exch(k.n, 1);
       }
       if (auto _ = otherwise()) {
         for (auto _ : loop_while(atomic_add(k.n, 0) == 0)) comment("waits");
         threadfence();
         FAULT(let("v", k.x[0]));
       }
     },
     "race on 'x': this read and the write at $ by thread (0, 0, 0) of block (0, 0, 0) are not "
     "ordered "
     "(kernel 'fault', block (1, 0, 0), thread (0, 0, 0))"},
    {"LastBlockReadsWhatOnlyOneThreadReleased", 3, 16,
     [](const Args& k, bool bad) {
       auto last = shared("last", i32, {1});
       OTHER(k.x[blockIdx.x * 16 + threadIdx.x] = 1.0f);
       if (!bad) syncthreads();
       if (auto _ = when(threadIdx.x == 0)) {
         threadfence();
         last[0] = atomic_add(k.n, 1);
         threadfence();
       }
       syncthreads();
       if (auto _ = when(last[0] == 2)) FAULT(let("v", k.x[threadIdx.x + 1]));
     },
     "race on 'x': this read and the write at $ by thread (1, 0, 0) of block (0, 0, 0) are not "
     "ordered "
     "(kernel 'fault', block (2, 0, 0), thread (0, 0, 0))"},
    {"LanesThatDidNotSeeTheFlag", 1, 64,
     [](const Args& k, bool bad) {
       auto flag = shared("flag", i32, {1});
       auto s = shared("s", f32, {1});
       if (auto _ = when(threadIdx.x == 0)) flag[0] = 0;
       syncthreads();
       if (auto _ = when(threadIdx.x == 0)) {
         OTHER(s[0] = 1.0f);
         threadfence_block();
         atomic_exch(flag.ptr(0), 1);
       }
       if (auto _ = when(threadIdx.x == 32)) {
         for (auto _ : loop_while(atomic_add(flag.ptr(0), 0) == 0)) comment("waits");
         threadfence_block();
       }
       if (!bad) syncwarp();
       if (auto _ = when(threadIdx.x >= 32)) FAULT(k.x[threadIdx.x] = s[0]);
     },
     "race on 's': this read and the write at $ by thread (0, 0, 0) of the same block are not "
     "ordered by a barrier "
     "(kernel 'fault', block (0, 0, 0), thread (33, 0, 0))"},
    {"ThreeReadersAndAWriterThatWaitedForTwo", 1, 128,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {1});
       if (auto _ = when(threadIdx.x == 0)) s[0] = 1.0f;
       syncthreads();
       if (auto _ = when(threadIdx.x < 96)) OTHER(let("v", k.x[0] * s[0]));
       if (bad) {
         if (auto _ = when(threadIdx.x < 64 || threadIdx.x >= 96)) barrier_sync(1, 96);
       } else {
         barrier_sync(1, 128);
       }
       if (auto _ = when(threadIdx.x == 127)) FAULT(s[0] = 2.0f);
     },
     "race on 's': this write and the read at $ by thread (95, 0, 0) of the same block are not "
     "ordered by a barrier (kernel 'fault', block (0, 0, 0), thread (127, 0, 0))"},
    {"CopyIntoWhatIsStillRead", 1, 64,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {2, 64});
       auto t = let("t", threadIdx.x);
       auto sum = var("sum", f32, 0.0f);
       if (auto _ = when(t < 16)) cp_async(s.ptr(0, t * 4), k.x + t * 4, 16);
       cp_async_commit();
       for (auto i : range(3)) {
         cp_async_wait(0);
         syncthreads();
         if (auto _ = when(t < 16))
           OTHER(cp_async(s.ptr(bad ? i % 2 : (i + 1) % 2, t * 4), k.x + t * 4, 16));
         cp_async_commit();
         FAULT(sum += s(i % 2, 63 - t));
       }
     },
     "read of 's' before cp_async_wait for the copy at $ (kernel 'fault', block (0, 0, 0), thread "
     "(0, 0, 0))"},
};

PLANTED_FAULTS(Races, kTable);

}  // namespace
