// primitives_sm90.cpp - rows of the table of primitives that sm_90 and sm_90a brought: mbarriers, clusters, matrix products of
// four warps. Bulk copies are in primitives_bulk.cpp. The columns are those of primitives.cpp.
#include <hidet/ir/bulk.h>

#include "primitive_tables.h"

namespace hidet::ir {

const char kHopperHelper[] =
    R"(__device__ __forceinline__ unsigned hidet_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
struct __align__(64) hidet_tensor_map { uint64_t v[16]; };
__device__ __forceinline__ void hidet_mbarrier_init(uint64_t* b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(hidet_shared(b)), "r"(count) : "memory");
}
__device__ __forceinline__ void hidet_mbarrier_invalidate(uint64_t* b) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(hidet_shared(b)) : "memory");
}
__device__ __forceinline__ void hidet_mbarrier_arrive(uint64_t* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(hidet_shared(b)) : "memory");
}
__device__ __forceinline__ void hidet_mbarrier_arrive_remote(uint64_t* b, int rank) {
  asm volatile("{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r]; }" ::"r"(hidet_shared(b)), "r"(rank) : "memory");
}
__device__ __forceinline__ void hidet_mbarrier_arrive_expect_tx(uint64_t* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(hidet_shared(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void hidet_mbarrier_expect_tx(uint64_t* b, int bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(hidet_shared(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void hidet_mbarrier_arrive_expect_tx_remote(uint64_t* b, int bytes, int rank) {
  asm volatile("{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %2; mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [r], %1; }" ::"r"(hidet_shared(b)), "r"(bytes), "r"(rank) : "memory");
}
__device__ __forceinline__ uint64_t hidet_mbarrier_arrive_state(uint64_t* b, int count) {
  uint64_t s;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;" : "=l"(s) : "r"(hidet_shared(b)), "r"(count) : "memory");
  return s;
}
__device__ __forceinline__ uint64_t hidet_mbarrier_arrive_no_complete(uint64_t* b, int count) {
  uint64_t s;
  asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], %2;" : "=l"(s) : "r"(hidet_shared(b)), "r"(count) : "memory");
  return s;
}
__device__ __forceinline__ void hidet_mbarrier_arrive_drop(uint64_t* b) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive_drop.shared::cta.b64 s, [%0]; }" ::"r"(hidet_shared(b)) : "memory");
}
__device__ __forceinline__ void hidet_mbarrier_complete_tx(uint64_t* b, int bytes) {
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(hidet_shared(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ int hidet_mbarrier_pending(uint64_t state) {
  int n;
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(state));
  return n;
}
__device__ __forceinline__ bool hidet_mbarrier_test_wait(uint64_t* b, int parity) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(hidet_shared(b)), "r"(parity) : "memory");
  return done != 0;
}
__device__ __forceinline__ bool hidet_mbarrier_test_state(uint64_t* b, uint64_t state) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(hidet_shared(b)), "l"(state) : "memory");
  return done != 0;
}
__device__ __forceinline__ bool hidet_mbarrier_try_wait(uint64_t* b, int parity, unsigned ns) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2, %3; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(hidet_shared(b)), "r"(parity), "r"(ns) : "memory");
  return done != 0;
}
__device__ __forceinline__ bool hidet_mbarrier_try_state(uint64_t* b, uint64_t state, unsigned ns) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.acquire.cluster.shared::cta.b64 p, [%1], %2, %3; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(hidet_shared(b)), "l"(state), "r"(ns) : "memory");
  return done != 0;
}
__device__ __forceinline__ void hidet_mbarrier_arrive_copies(uint64_t* b, int counted) {
  if (counted) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(hidet_shared(b)) : "memory");
  else asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(hidet_shared(b)) : "memory");
}
__device__ __forceinline__ void hidet_mbarrier_wait(uint64_t* b, int parity) {
  asm volatile("{\n.reg .pred p;\nhidet_wait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@!p bra hidet_wait;\n}" ::"r"(hidet_shared(b)), "r"(parity) : "memory");
}
__device__ __forceinline__ int hidet_cluster_rank() { int r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ __forceinline__ int hidet_cluster_size() { int r; asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r)); return r; }
template <class P> __device__ __forceinline__ P* hidet_map_shared_rank(P* p, int rank) {
  P* r;
  asm("mapa.u64 %0, %1, %2;" : "=l"(r) : "l"(p), "r"(rank));
  return r;
}
__device__ __forceinline__ bool hidet_elect_one() {
  unsigned r;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(r));
  return r != 0;
}
__device__ __forceinline__ uint64_t hidet_wgmma_descriptor(const void* p, unsigned low, unsigned high) {
  return (uint64_t)high << 32 | low | (hidet_shared(p) & 0x3ffff) >> 4;
}
__device__ __forceinline__ void hidet_pin(float& x) { asm volatile("" : "+f"(x)::"memory"); }
__device__ __forceinline__ void hidet_pin(uint32_t& x) { asm volatile("" : "+r"(x)::"memory"); }
__device__ __forceinline__ void hidet_pin(int32_t& x) { asm volatile("" : "+r"(x)::"memory"); }
template <int count, class P> __device__ __forceinline__ void hidet_wgmma_pin(P* x) {
#pragma unroll
  for (int i = 0; i < count; ++i) hidet_pin(x[i]);
}
)";

namespace {
using T = PrimTarget;
using R = PrimResult;

std::string number(int64_t v) { return std::to_string(v); }

/// Attributes: n, dtypes of a, b and the sums, a in registers, a and b contiguous along m and n, what else (kNegateA ...).
std::string wgmma(const std::vector<int64_t>& attrs) {
  const auto dtype = [&](size_t i) { return DType(static_cast<DTypeCode>(attrs.at(i))); };
  const int64_t n = attrs.at(0), more = attrs.at(7);
  const DType in = dtype(1), in_b = dtype(2), sum = dtype(3);
  const bool registers_a = attrs.at(4) != 0, halves = in == f16 || in == bf16;
  const int64_t count = sum == f16 ? n / 4 : n / 2;
  const char* const of_sum = sum == f32 ? "float" : sum == f16 ? "uint32_t" : "int32_t";
  const std::string constraint = sum == f32 ? "\"+f\"" : "\"+r\"";
  std::string name = "hidet_wgmma", sums, outputs;
  for (const int64_t a : attrs) name += "_" + number(a);
  for (int64_t i = 0; i < count; i++) {
    sums += (i ? ", %" : "%") + number(i);
    outputs += (i ? ", " : "") + constraint + "(d[" + number(i) + "])";
  }
  const int64_t at_a = count, at_b = count + (registers_a ? 4 : 1);
  std::string text_a = "%" + number(at_a), inputs = "\"l\"(a)";
  if (registers_a) {
    text_a = "{%" + number(at_a) + ", %" + number(at_a + 1) + ", %" + number(at_a + 2) + ", %" +
             number(at_a + 3) + "}";
    inputs = R"("r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]))";
  }
  std::string tail;
  if (sum != i32)
    tail = std::string(more & kNegateA ? ", -1" : ", 1") + (more & kNegateB ? ", -1" : ", 1");
  if (halves && !registers_a) tail += ", " + number(attrs.at(5));
  if (halves) tail += ", " + number(attrs.at(6));
  return "__device__ __forceinline__ void " + name + "(" + of_sum + "* d, " +
         (registers_a ? "hidet_vec<uint32_t, 4>" : "uint64_t") +
         " a, uint64_t b, int accumulate) {\n  asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %" +
         number(at_b + 1) + ", 0; wgmma.mma_async.sync.aligned.m64n" + number(n) + "k" +
         number(256 / in.bits()) + "." + ptx_type(sum) + "." + ptx_type(in) + "." + ptx_type(in_b) +
         (more & kSaturate ? ".satfinite" : "") + " {" + sums + "}, " + text_a + ", %" +
         number(at_b) + ", p" + tail + "; }\"\n : " + outputs + " : " + inputs +
         ", \"l\"(b), \"r\"(accumulate) : \"memory\");\n}\n";
}

#define HIDET_ASM(text) "asm volatile(\"" text "\" ::: \"memory\")"

const std::vector<Primitive> kTable = {
    // --- host: the tensor map of a kernel's argument, from (pointer, extents, strides in bytes), innermost first
    {"tensor_map", -1, T::cpu, R::custom, "@", nullptr, 0, false, false, false,
     "$k0: dtype; $k1: rank; $k2: swizzle in bytes or 0; then the box, innermost first"},
    // --- mbarriers: 64 bits of shared memory
    {"mbarrier_init", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_init($0, $1)", 90, false, false,
     false, "a phase ends after $1 arrivals", "ptr(u64), i32 -> void", kHopperHelper},
    {"mbarrier_invalidate", 1, T::cuda, R::none, nullptr, "hidet_mbarrier_invalidate($0)", 90,
     false, false, false, "the memory may be used for something else", "ptr(u64) -> void",
     kHopperHelper},
    {"mbarrier_arrive", 1, T::cuda, R::none, nullptr, "hidet_mbarrier_arrive($0)", 90, false, false,
     false, "one arrival", "ptr(u64) -> void", kHopperHelper},
    {"mbarrier_arrive_remote", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_arrive_remote($0, $1)",
     90, false, false, false, "one arrival at the barrier at that place in block $1 of the cluster",
     "ptr(u64), i32 -> void", kHopperHelper},
    {"mbarrier_arrive_expect_tx", 2, T::cuda, R::none, nullptr,
     "hidet_mbarrier_arrive_expect_tx($0, $1)", 90, false, false, false,
     "one arrival; the phase waits for $1 bytes of copies more", "ptr(u64), i32 -> void",
     kHopperHelper},
    {"mbarrier_expect_tx", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_expect_tx($0, $1)", 90,
     false, false, false, "the phase waits for $1 bytes of copies more", "ptr(u64), i32 -> void",
     kHopperHelper},
    {"mbarrier_arrive_expect_tx_remote", 3, T::cuda, R::none, nullptr,
     "hidet_mbarrier_arrive_expect_tx_remote($0, $1, $2)", 90, false, false, false,
     "the same at the barrier at that place in block $2 of the cluster",
     "ptr(u64), i32, i32 -> void", kHopperHelper},
    {"mbarrier_arrive_state", 2, T::cuda, R::custom, nullptr, "hidet_mbarrier_arrive_state($0, $1)",
     90, false, false, false, "$1 arrivals; the state of the phase before them",
     "ptr(u64), i32 -> u64", kHopperHelper},
    {"mbarrier_arrive_no_complete", 2, T::cuda, R::custom, nullptr,
     "hidet_mbarrier_arrive_no_complete($0, $1)", 90, false, false, false,
     "the same, where the phase does not end with them", "ptr(u64), i32 -> u64", kHopperHelper},
    {"mbarrier_arrive_drop", 1, T::cuda, R::none, nullptr, "hidet_mbarrier_arrive_drop($0)", 90,
     false, false, false, "one arrival, and phases from the next on wait for one less",
     "ptr(u64) -> void", kHopperHelper},
    {"mbarrier_arrive_copies", 1, T::cuda, R::none, nullptr,
     "hidet_mbarrier_arrive_copies($0, $k0)", 90, false, false, false,
     "an arrival when the thread's cp_async before it have ended; $k0: one of those that the phase "
     "waits for, else one more",
     "ptr(u64) -> void", kHopperHelper},
    {"mbarrier_complete_tx", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_complete_tx($0, $1)", 90,
     false, false, false, "counts as $1 bytes of copies", "ptr(u64), i32 -> void", kHopperHelper},
    {"mbarrier_pending", 1, T::cuda, R::custom, nullptr, "hidet_mbarrier_pending($0)", 90, true,
     false, false, "arrivals that a state's phase missed", "u64 -> i32", kHopperHelper},
    {"mbarrier_test_wait", 2, T::cuda, R::custom, nullptr, "hidet_mbarrier_test_wait($0, $1)", 90,
     false, false, false, "whether the phase of parity $1 has ended", "ptr(u64), i32 -> boolean",
     kHopperHelper},
    {"mbarrier_test_state", 2, T::cuda, R::custom, nullptr, "hidet_mbarrier_test_state($0, $1)", 90,
     false, false, false, "whether a state's phase has ended", "ptr(u64), u64 -> boolean",
     kHopperHelper},
    {"mbarrier_try_wait", 3, T::cuda, R::custom, nullptr, "hidet_mbarrier_try_wait($0, $1, $2)", 90,
     false, false, false, "the same as test_wait, after waiting for up to about $2 ns",
     "ptr(u64), i32, u32 -> boolean", kHopperHelper},
    {"mbarrier_try_state", 3, T::cuda, R::custom, nullptr, "hidet_mbarrier_try_state($0, $1, $2)",
     90, false, false, false, "the same as test_state, after waiting for up to about $2 ns",
     "ptr(u64), u64, u32 -> boolean", kHopperHelper},
    {"mbarrier_wait", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_wait($0, $1)", 90, false, false,
     false, "waits until the phase of parity $1 has ended", "ptr(u64), i32 -> void", kHopperHelper},
    {"fence_mbarrier_init", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("fence.mbarrier_init.release.cluster;"), 90, false, false, false,
     "barriers are ready for other blocks of the cluster and for copies"},
    {"fence_proxy_async", 0, T::cuda, R::none, nullptr, HIDET_ASM("fence.proxy.async;"), 90, false,
     false, false, "writes of threads come before bulk copies and wgmma that follow"},
    {"fence_proxy_async_shared", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("fence.proxy.async.shared::cta;"), 90, false, false, false,
     "the same for shared memory"},
    {"fence_proxy_async_global", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("fence.proxy.async.global;"), 90, false, false, false, "the same for global memory"},
    {"fence_proxy_alias", 0, T::cuda, R::none, nullptr, HIDET_ASM("fence.proxy.alias;"), 70, false,
     false, false, "accesses through one address come before those through another of the memory"},
    {"threadfence_cluster", 0, T::cuda, R::none, nullptr, HIDET_ASM("fence.acq_rel.cluster;"), 90,
     false, false, false, "memory fence, cluster"},
    // --- clusters
    {"cluster_rank", 0, T::cuda, R::i32, nullptr, "hidet_cluster_rank()", 90, true, false, false,
     "number of the block in its cluster", nullptr, kHopperHelper},
    {"cluster_size", 0, T::cuda, R::i32, nullptr, "hidet_cluster_size()", 90, true, false, false,
     "blocks of the cluster", nullptr, kHopperHelper},
    {"cluster_arrive", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("barrier.cluster.arrive.release.aligned;"), 90, false, false, true,
     "barrier of the cluster: arrives"},
    {"cluster_wait", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("barrier.cluster.wait.acquire.aligned;"), 90, false, false, true,
     "barrier of the cluster: waits"},
    {"map_shared_rank", 2, T::cuda, R::custom, nullptr, "hidet_map_shared_rank($0, $1)", 90, true,
     false, false, "the pointer to the same place in block $1 of the cluster", "ptr, i32 -> *",
     kHopperHelper},
    // --- launches that overlap
    {"griddep_wait", 0, T::cuda, R::none, nullptr, HIDET_ASM("griddepcontrol.wait;"), 90, false,
     false, false, "waits for the grids that this one was launched to follow"},
    {"griddep_launch", 0, T::cuda, R::none, nullptr, HIDET_ASM("griddepcontrol.launch_dependents;"),
     90, false, false, false, "lets the grids that follow begin"},
    {"elect_one", 0, T::cuda, R::boolean, nullptr, "hidet_elect_one()", 90, false, false, true,
     "true on one lane of the warp", nullptr, kHopperHelper},
    // --- sm_90a: registers of a warp group, and its matrix products
    {"setmaxnreg_inc", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("setmaxnreg.inc.sync.aligned.u32 $k0;"), kHopperOnly, false, false, true,
     "waits for registers until a thread has $k0"},
    {"setmaxnreg_dec", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("setmaxnreg.dec.sync.aligned.u32 $k0;"), kHopperOnly, false, false, true,
     "gives registers back until a thread has $k0"},
    {"wgmma_fence", 0, T::cuda, R::none, nullptr, HIDET_ASM("wgmma.fence.sync.aligned;"),
     kHopperOnly, false, false, true, "registers are ready for products that follow"},
    {"wgmma_commit", 0, T::cuda, R::none, nullptr, HIDET_ASM("wgmma.commit_group.sync.aligned;"),
     kHopperOnly, false, false, true, "closes a group of products"},
    {"wgmma_wait", 0, T::cuda, R::none, nullptr, HIDET_ASM("wgmma.wait_group.sync.aligned $k0;"),
     kHopperOnly, false, false, true, "waits until $k0 groups of products are pending"},
    {"wgmma_pin", 1, T::cuda, R::none, nullptr, "hidet_wgmma_pin<$k0>($0)", kHopperOnly, false,
     false, false, "keeps the use of $k0 registers of sums on its side of a fence or wait",
     "ptr -> void", kHopperHelper},
    {"wgmma_descriptor", 1, T::cuda, R::custom, nullptr, "hidet_wgmma_descriptor($0, $k0, $k1)",
     kHopperOnly, true, false, false,
     "matrix in shared memory: low and high words of the descriptor without the address",
     "ptr -> u64", kHopperHelper},
    {"wgmma", 4, T::cuda, R::none, nullptr, "hidet_wgmma_$k0_$k1_$k2_$k3_$k4_$k5_$k6_$k7($*)",
     kHopperOnly, false, false, true,
     "64 x $k0 sums += a b; dtypes of a, b, sums $k1, $k2, $k3; $k4: a in registers; $k5, $k6: a, "
     "b "
     "contiguous along m, n; $k7: -a, -b, saturating; $3: whether to add to the sums",
     "ptr, *, u64, boolean -> void", kHopperHelper, wgmma},
};
}  // namespace

const std::vector<Primitive>& sm90_primitives() { return kTable; }

}  // namespace hidet::ir
