// faults_memory_test.cpp - planted faults of single accesses: out of bounds, misaligned, never written.
#include "faults.h"

using namespace faults;
using hidet::f16, hidet::f32, hidet::i32, hidet::u32, hidet::u8;

namespace {

const Fault kTable[] = {
    {"GlobalWriteBehindTheEnd", 2, 32,
     [](const Args& k, bool bad) {
       auto i = let("i", blockIdx.x * (bad ? 33 : 32) + threadIdx.x);
       FAULT(k.x[i] = 1.0f);
     },
     "write outside 'x': index 64 on; it has 64 elements (kernel 'fault', block (1, 0, 0), thread "
     "(31, 0, 0))"},
    {"GlobalReadBeforeTheBegin", 1, 64,
     [](const Args& k, bool bad) {
       auto i = let("i", threadIdx.x - 1);
       auto v = var("v", f32, 0.0f);
       if (bad) FAULT(v = k.x[i]);
       else if (auto _ = when(i >= 0)) v = k.x[i];
     },
     "read outside 'x': index -1 on; it has 64 elements (kernel 'fault', block (0, 0, 0), thread "
     "(0, 0, 0))"},
    {"GlobalIndexFromData", 1, 1,
     [](const Args& k, bool bad) { FAULT(k.x[k.n[0] + (bad ? 100 : 63)] = 1.0f); },
     "write outside 'x': index 100 on; it has 64 elements (kernel 'fault', block (0, 0, 0), thread "
     "(0, 0, 0))"},
    {"GlobalGuardOffByOne", 3, 32,
     [](const Args& k, bool bad) {
       auto i = let("i", blockIdx.x * 32 + threadIdx.x);
       if (auto _ = when(bad ? i <= 64 : i < 64)) FAULT(k.x[i] = 1.0f);
     },
     "write outside 'x': index 64 on; it has 64 elements (kernel 'fault', block (2, 0, 0), thread "
     "(0, 0, 0))"},
    {"GlobalVectorReadSticksOut", 1, 16,
     [](const Args& k, bool bad) {
       auto at = let("at", threadIdx.x * 4 + (bad ? 1 : 0));
       FAULT(let("v", load(k.x + at, 4)));
     },
     "read outside 'x': 16 bytes from index 61 on; it has 64 elements (kernel 'fault', block (0, "
     "0, 0), thread (15, 0, 0))"},
    {"GlobalVectorWriteSticksOut", 1, 1,
     [](const Args& k, bool bad) {
       auto v = let("v", load(k.x, 4));
       FAULT(store(k.x + (bad ? 62 : 60), v));
     },
     "write outside 'x': 16 bytes from index 62 on; it has 64 elements (kernel 'fault', block (0, "
     "0, 0), thread (0, 0, 0))"},
    {"ViewLargerThanItsMemory", 1, 8,
     [](const Args& k, bool bad) {
       auto v = global("v", k.x, {bad ? 9 : 8, 8});
       for (auto i : range(bad ? 9 : 8)) FAULT(v(i, threadIdx.x) = 1.0f);
     },
     "write outside 'x' (as 'v'): index 64 on; it has 64 elements (kernel 'fault', block (0, 0, "
     "0), thread (0, 0, 0))"},
    {"ViewIndexOutsideItsShape", 1, 8,
     [](const Args& k, bool bad) {
       auto v = global("v", k.x, {8, 4});
       FAULT(v(threadIdx.x, bad ? 4 : 3) = 1.0f);
     },
     "index (0, 4) is outside 'v' of shape [8, 4] (kernel 'fault', block (0, 0, 0), thread (0, 0, "
     "0))"},
    {"ReinterpretedBehindTheEnd", 1, 1,
     [](const Args& k, bool bad) {
       auto bytes = let("bytes", reinterpret(k.x, ptr(u8)));
       FAULT(bytes[bad ? 256 : 255] = cast(Value(1), u8));
     },
     "write outside 'x' (as 'bytes'): index 64 on; it has 64 elements (kernel 'fault', block (0, "
     "0, 0), thread "
     "(0, 0, 0))"},
    {"AtomicBehindTheEnd", 1, 4,
     [](const Args& k, bool bad) { FAULT(atomic_add(k.n + (threadIdx.x + (bad ? 13 : 12)), 1)); },
     "atomic access outside 'n': index 16 on; it has 16 elements (kernel 'fault', block (0, 0, 0), "
     "thread (3, 0, 0))"},
    {"SharedIndexOutside", 1, 8,
     [](const Args&, bool bad) {
       auto s = shared("s", f32, {8, 8});
       FAULT(s(threadIdx.x, threadIdx.x + (bad ? 1 : 0)) = 1.0f);
     },
     "index (7, 8) is outside 's' of shape [8, 8] (kernel 'fault', block (0, 0, 0), thread (7, 0, "
     "0))"},
    {"SharedIndexNegative", 1, 8,
     [](const Args&, bool bad) {
       auto s = shared("s", f32, {8});
       FAULT(s[threadIdx.x - (bad ? 1 : 0)] = 1.0f);
     },
     "index (-1) is outside 's' of shape [8] (kernel 'fault', block (0, 0, 0), thread (0, 0, 0))"},
    {"SharedRowInsteadOfColumn", 1, 16,
     [](const Args&, bool bad) {
       auto s = shared("s", f32, {4, 16});
       if (bad) FAULT(s(threadIdx.x, 0) = 1.0f);
       else s(0, threadIdx.x) = 1.0f;
     },
     "index (4, 0) is outside 's' of shape [4, 16] (kernel 'fault', block (0, 0, 0), thread (4, 0, "
     "0))"},
    {"SharedVectorSticksOut", 1, 1,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {10});
       FAULT(s.store({bad ? 7 : 6}, load(k.x, 4)));
     },
     "index (7) of 4 elements is outside 's' of shape [10] (kernel 'fault', block (0, 0, 0), "
     "thread (0, 0, 0))"},
    {"SharedPointerRunsIntoTheNextTensor", 1, 1,
     [](const Args&, bool bad) {
       auto s = shared("s", f32, {32});
       auto t = shared("t", f32, {32});
       t[0] = 1.0f;
       auto p = let("p", s.ptr(0));
       FAULT(p[bad ? 32 : 31] = 2.0f);
     },
     "write outside 's' (as 'p'): index 32 on; it has 32 elements (kernel 'fault', block (0, 0, "
     "0), thread "
     "(0, 0, 0))"},
    {"DynamicSharedIndexOutside", 1, 8,
     [](const Args&, bool bad) {
       auto s = dynamic_shared("s", f32, {2, 4});
       FAULT(s(threadIdx.x / 4, threadIdx.x % (bad ? 5 : 4)) = 1.0f);
     },
     "index (1, 4) is outside 's' of shape [2, 4] (kernel 'fault', block (0, 0, 0), thread (4, 0, "
     "0))"},
    {"DynamicSharedPointerOutside", 1, 8,
     [](const Args&, bool bad) {
       auto s = dynamic_shared("s", f32, {8});
       auto p = let("p", s.ptr(0));
       FAULT(p[threadIdx.x + (bad ? 1 : 0)] = 1.0f);
     },
     "write outside 's' (as 'p'): index 8 on; it has 8 elements (kernel 'fault', block (0, 0, 0), "
     "thread "
     "(7, 0, 0))"},
    {"RegisterIndexOutside", 1, 33,
     [](const Args& k, bool bad) {
       auto r = registers("r", f32, {4});
       for (auto i : range(bad ? 5 : 4)) FAULT(r(i) = k.x[i]);
     },
     "index (4) is outside 'r' of shape [4] (kernel 'fault', block (0, 0, 0), thread (0, 0, 0))"},
    {"RegisterIndexOfOneThread", 1, 64,
     [](const Args&, bool bad) {
       auto r = registers("r", f32, {4});
       FAULT(r(select(threadIdx.x == 40, bad ? 4 : 3, 0)) = 1.0f);
     },
     "index (4) is outside 'r' of shape [4] (kernel 'fault', block (0, 0, 0), thread (40, 0, 0))"},
    {"SliceReachesOverItsTensor", 1, 4,
     [](const Args&, bool bad) {
       auto s = shared("s", f32, {8, 4});
       auto half = s.slice({4, 0}, {4, 4});
       FAULT(half(threadIdx.x + (bad ? 1 : 0), 0) = 1.0f);
     },
     "index (4, 0) is outside 'slice' of shape [4, 4] (kernel 'fault', block (0, 0, 0), thread (3, "
     "0, 0))"},
    {"SwizzledIndexOutside", 1, 8,
     [](const Args&, bool bad) {
       auto s = shared("s", f32, {8, 8}, swizzle(1, 2, 1));
       FAULT(s(bad ? 8 : 7, threadIdx.x) = 1.0f);
     },
     "index (8, 0) is outside 's' of shape [8, 8] (kernel 'fault', block (0, 0, 0), thread (0, 0, "
     "0))"},
    {"CopyFromBehindTheEnd", 1, 16,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {64});
       auto t = let("t", threadIdx.x);
       FAULT(cp_async(s.ptr(t * 4), k.x + t * (bad ? 8 : 4), 16));
       cp_async_wait(0);
     },
     "cp_async read outside 'x': 16 bytes from index 64 on; it has 64 elements (kernel 'fault', "
     "block (0, 0, 0), thread (8, 0, 0))"},
    {"CopyToBehindTheEnd", 1, 16,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {bad ? 60 : 64});
       auto t = let("t", threadIdx.x);
       FAULT(cp_async(s.ptr(t * 4), k.x + t * 4, 16));
       cp_async_wait(0);
     },
     "cp_async write outside 's': 16 bytes from index 60 on; it has 60 elements (kernel 'fault', "
     "block (0, 0, 0), thread (15, 0, 0))"},
    {"CopyBetweenTheWrongMemories", 1, 1,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {4});
       if (bad) FAULT(cp_async(k.x, k.x + 4, 16));
       else cp_async(s.ptr(0), k.x + 4, 16);
     },
     "cp_async copies from global to shared memory, not from 'x' to 'x' (kernel 'fault', block (0, "
     "0, 0), thread (0, 0, 0))"},
    {"CopyKeepsMoreThanItsBytes", 1, 1,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {4});
       FAULT(cp_async(s.ptr(0), k.x, 16, k.n[0] + (bad ? 20 : 12)));
       cp_async_wait(0);
     },
     "cp_async of 20 of 16 bytes (kernel 'fault', block (0, 0, 0), thread (0, 0, 0))"},
    {"MisalignedElement", 1, 1,
     [](const Args& k, bool bad) {
       auto bytes = let("bytes", reinterpret(k.x, ptr(u8)));
       FAULT(store(reinterpret(bytes + (bad ? 2 : 4), ptr(f32)), 1.0f));
     },
     "misaligned write of 'x': byte 2 is not a multiple of 4 (kernel 'fault', block (0, 0, 0), "
     "thread (0, 0, 0))"},
    {"MisalignedCopy", 1, 1,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {8});
       FAULT(cp_async(s.ptr(0), k.x + (bad ? 1 : 4), 16));
     },
     "misaligned cp_async read of 'x': byte 4 is not a multiple of 16 (kernel 'fault', block (0, "
     "0, 0), thread (0, 0, 0))"},
    {"MisalignedCopyTarget", 1, 1,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {8});
       FAULT(cp_async(s.ptr(bad ? 2 : 4), k.x, 16));
     },
     "misaligned cp_async write of 's': byte 8 is not a multiple of 16 (kernel 'fault', block (0, "
     "0, 0), thread (0, 0, 0))"},
    {"MisalignedMatrixRow", 1, 32,
     [](const Args&, bool bad) {
       auto s = shared("s", f16, {8, 12});
       for (auto i : range(threadIdx.x, 96, 32)) s(i / 12, i % 12) = cast(Value(1.0f), f16);
       syncthreads();
       auto row = let("row", s.ptr(0, 0) + threadIdx.x % 4 * (bad ? 12 : 24));
       FAULT(let("m", ldmatrix(row, 1)));
     },
     "misaligned ldmatrix read of 's': byte 24 is not a multiple of 16 (kernel 'fault', block (0, "
     "0, 0), thread (1, 0, 0))"},
    {"BrokenPromiseOfAlignment", 1, 4,
     [](const Args& k, bool bad) {
       auto p = let("p", k.x + threadIdx.x * (bad ? 3 : 4));
       FAULT(assume_aligned(p, 16));
       let("v", load(p, 4));
     },
     "assume_aligned of 'x': byte 12 is not a multiple of 16 (kernel 'fault', block (0, 0, 0), "
     "thread (1, 0, 0))"},
    {"SharedNeverWritten", 1, 32,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {33});
       s[threadIdx.x] = 1.0f;
       if (auto _ = when(threadIdx.x < (bad ? 0 : 1))) s[32] = 2.0f;
       syncthreads();
       FAULT(k.x[threadIdx.x] = s[threadIdx.x + 1]);
     },
     "read of shared memory 's' that was never written (kernel 'fault', block (0, 0, 0), thread "
     "(31, 0, 0))"},
    {"SharedOfTheBlockBefore", 2, 32,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {32});
       if (auto _ = when(blockIdx.x < (bad ? 1 : 2))) s[threadIdx.x] = 1.0f;
       syncthreads();
       FAULT(k.x[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x]);
     },
     "read of shared memory 's' that was never written (kernel 'fault', block (1, 0, 0), thread "
     "(0, 0, 0))"},
    {"PartOfASharedVectorNeverWritten", 1, 1,
     [](const Args& k, bool bad) {
       auto s = shared("s", f32, {4});
       for (auto i : range(bad ? 3 : 4)) s[i] = k.x[i];
       FAULT(store(k.x, s.load({0}, 4)));
     },
     "read of shared memory 's' that was never written (kernel 'fault', block (0, 0, 0), thread "
     "(0, 0, 0))"},
    {"RegistersNeverWritten", 1, 40,
     [](const Args& k, bool bad) {
       auto r = registers("r", f32, {2});
       r(0) = 1.0f;
       if (auto _ = when(threadIdx.x != (bad ? 35 : 40))) r(1) = 2.0f;
       FAULT(k.x[threadIdx.x] = r(0) + r(1));
     },
     "read of 'r' in registers, index 1, that was never written (kernel 'fault', block (0, 0, 0), "
     "thread (35, 0, 0))"},
    {"VariableNeverGivenAValue", 1, 40,
     [](const Args& k, bool bad) {
       auto v = var("v", f32);
       if (auto _ = when(threadIdx.x != (bad ? 35 : 40))) v = 1.0f;
       FAULT(k.x[threadIdx.x] = v);
     },
     "the variable 'v' is read before it has a value (kernel 'fault', block (0, 0, 0), thread "
     "(35, 0, 0))"},
    {"VariableOfTheIterationBefore", 1, 1,
     [](const Args& k, bool bad) {
       for (auto i : range(2)) {
         auto v = var("v", f32x4);
         if (auto _ = when(i < (bad ? 1 : 2))) v = load(k.x, 4);
         FAULT(store(k.x + i * 4, v));
       }
     },
     "the variable 'v' is read before it has a value (kernel 'fault', block (0, 0, 0), thread "
     "(0, 0, 0))"},
    {"PartOfARegisterVectorNeverWritten", 1, 1,
     [](const Args& k, bool bad) {
       auto r = registers("r", f32, {2, 4});
       for (auto i : range(4)) r(0, i) = k.x[i];
       for (auto i : range(bad ? 3 : 4)) r(1, i) = k.x[i];
       FAULT(store(k.x, r.load({1, 0}, 4)));
     },
     "read of 'r' in registers, index 7, that was never written (kernel 'fault', block (0, 0, 0), "
     "thread (0, 0, 0))"},
    {"RegistersOfTheIterationBefore", 1, 1,
     [](const Args& k, bool bad) {
       for (auto i : range(2)) {
         auto r = registers("r", f32, {1});
         if (auto _ = when(i < (bad ? 1 : 2))) r(0) = 1.0f;
         FAULT(k.x[i] = r(0));
       }
     },
     "read of 'r' in registers, index 0, that was never written (kernel 'fault', block (0, 0, 0), "
     "thread (0, 0, 0))"},
    {"WorkspaceNeverWritten",
     2,
     8,
     [](const Args& k, bool bad) {
       auto i = let("i", blockIdx.x * 8 + threadIdx.x);
       if (auto _ = when(i != (bad ? 12 : 16))) k.n[i] = i;
       FAULT(k.x[i] = cast(k.n[i], f32));
     },
     "read of 'n', index 12, that was never written (kernel 'fault', block (1, 0, 0), thread (4, "
     "0, 0))",
     {.undefined = {1}}},
    {"WorkspaceCountedUpWithoutAStart",
     1,
     4,
     [](const Args& k, bool bad) {
       if (auto _ = when(threadIdx.x == 0)) k.n[bad ? 1 : 0] = 0;
       syncthreads();
       FAULT(atomic_add(k.n, 1));
     },
     "read of 'n', index 0, that was never written (kernel 'fault', block (0, 0, 0), thread (0, 0, "
     "0))",
     {.undefined = {1}}},
    {"PartOfAWorkspaceVectorNeverWritten",
     1,
     1,
     [](const Args& k, bool bad) {
       for (auto i : range(bad ? 3 : 4)) k.x[i] = 1.0f;
       FAULT(let("v", load(k.x, 4)));
     },
     "read of 'x', index 3, that was never written (kernel 'fault', block (0, 0, 0), thread (0, 0, "
     "0))",
     {.undefined = {0}}},
};

PLANTED_FAULTS(MemoryFaults, kTable);

}  // namespace
