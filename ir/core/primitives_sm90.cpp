// primitives_sm90.cpp - rows of the table of primitives that sm_90 and sm_90a brought: mbarriers, bulk copies with and
// without tensor maps, clusters, matrix products of four warps. The columns are those of primitives.cpp.
#include <hidet/runtime/error.h>

#include "primitive_tables.h"

namespace hidet::ir {
namespace {
using T = PrimTarget;
using R = PrimResult;

constexpr const char kHopper[] =
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
__device__ __forceinline__ void hidet_mbarrier_wait(uint64_t* b, int parity) {
  asm volatile("{\n.reg .pred p;\nhidet_wait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@!p bra hidet_wait;\n}" ::"r"(hidet_shared(b)), "r"(parity) : "memory");
}
__device__ __forceinline__ void hidet_bulk_load(void* to, const void* from, int bytes, uint64_t* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(hidet_shared(to)), "l"(from), "r"(bytes), "r"(hidet_shared(b)) : "memory");
}
__device__ __forceinline__ void hidet_bulk_load_multicast(void* to, const void* from, int bytes, uint64_t* b, int blocks) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(hidet_shared(to)), "l"(from), "r"(bytes), "r"(hidet_shared(b)), "h"((unsigned short)blocks) : "memory");
}
__device__ __forceinline__ void hidet_bulk_store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(hidet_shared(from)), "r"(bytes) : "memory");
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

std::string number(int64_t v) { return std::to_string(v); }

/// Attributes of the copies with tensor maps: rank, multicast (loads).
std::string tma_load(const std::vector<int64_t>& attrs) {
  const int64_t rank = attrs.at(0);
  const bool multicast = attrs.at(1) != 0;
  std::string params, places, values;
  for (int64_t i = 0; i < rank; i++) {
    params += ", int c" + number(i);
    places += (i ? ", %" : "%") + number(3 + i);
    values += ", \"r\"(c" + number(i) + ")";
  }
  return "__device__ __forceinline__ void hidet_tma_load_" + number(rank) + "_" + number(attrs[1]) +
         "(void* to, const hidet_tensor_map& map, uint64_t* b" + (multicast ? ", int blocks" : "") +
         params + ") {\n  asm volatile(\"cp.async.bulk.tensor." + number(rank) +
         "d.shared::cluster.global.mbarrier::complete_tx::bytes" +
         (multicast ? ".multicast::cluster" : "") + " [%0], [%1, {" + places + "}], [%2]" +
         (multicast ? ", %" + number(3 + rank) : "") +
         ";\" ::\"r\"(hidet_shared(to)), \"l\"(&map), \"r\"(hidet_shared(b))" + values +
         (multicast ? ", \"h\"((unsigned short)blocks)" : "") + " : \"memory\");\n}\n";
}

std::string tma_store(const std::vector<int64_t>& attrs) {
  const int64_t rank = attrs.at(0);
  std::string params, places, values;
  for (int64_t i = 0; i < rank; i++) {
    params += ", int c" + number(i);
    places += (i ? ", %" : "%") + number(2 + i);
    values += ", \"r\"(c" + number(i) + ")";
  }
  return "__device__ __forceinline__ void hidet_tma_store_" + number(rank) +
         "(const hidet_tensor_map& map, const void* from" + params +
         ") {\n  asm volatile(\"cp.async.bulk.tensor." + number(rank) +
         "d.global.shared::cta.bulk_group [%0, {" + places +
         "}], [%1];\" ::\"l\"(&map), \"r\"(hidet_shared(from))" + values + " : \"memory\");\n}\n";
}

/// Attributes: n, dtype of the operands, dtype of the sums, a in registers, a and b contiguous along m and n.
std::string wgmma(const std::vector<int64_t>& attrs) {
  const int64_t n = attrs.at(0);
  const DType in(static_cast<DTypeCode>(attrs.at(1))), sum(static_cast<DTypeCode>(attrs.at(2)));
  const bool registers_a = attrs.at(3) != 0, halves = in == f16 || in == bf16;
  const int64_t count = sum == f16 ? n / 4 : n / 2;
  const char* const of_sum = sum == f32 ? "float" : sum == f16 ? "uint32_t" : "int32_t";
  const std::string constraint = sum == f32 ? "\"+f\"" : "\"+r\"";
  const auto ptx = [](DType t) -> std::string {
    return t == f8e4m3   ? "e4m3"
           : t == f8e5m2 ? "e5m2"
           : t == i8     ? "s8"
           : t == u8     ? "u8"
           : t == i32    ? "s32"
                         : t.name();
  };
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
  std::string tail = sum == i32 ? "" : ", 1, 1";
  if (halves && !registers_a) tail += ", " + number(attrs.at(4));
  if (halves) tail += ", " + number(attrs.at(5));
  return "__device__ __forceinline__ void " + name + "(" + of_sum + "* d, " +
         (registers_a ? "hidet_vec<uint32_t, 4>" : "uint64_t") +
         " a, uint64_t b, int accumulate) {\n  asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %" +
         number(at_b + 1) + ", 0; wgmma.mma_async.sync.aligned.m64n" + number(n) + "k" +
         number(256 / in.bits()) + "." + ptx(sum) + "." + ptx(in) + "." + ptx(in) + " {" + sums +
         "}, " + text_a + ", %" + number(at_b) + ", p" + tail + "; }\"\n : " + outputs + " : " +
         inputs + ", \"l\"(b), \"r\"(accumulate) : \"memory\");\n}\n";
}

#define HIDET_ASM(text) "asm volatile(\"" text "\" ::: \"memory\")"

const std::vector<Primitive> kTable = {
    // --- host: the tensor map of a kernel's argument, from (pointer, extents, strides in bytes), innermost first
    {"tensor_map", -1, T::cpu, R::custom, "@", nullptr, 0, false, false, false,
     "$k0: dtype; $k1: rank; $k2: swizzle in bytes or 0; then the box, innermost first"},
    // --- mbarriers: 64 bits of shared memory
    {"mbarrier_init", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_init($0, $1)", 90, false, false,
     false, "a phase ends after $1 arrivals", "ptr(u64), i32 -> void", kHopper},
    {"mbarrier_invalidate", 1, T::cuda, R::none, nullptr, "hidet_mbarrier_invalidate($0)", 90,
     false, false, false, "the memory may be used for something else", "ptr(u64) -> void", kHopper},
    {"mbarrier_arrive", 1, T::cuda, R::none, nullptr, "hidet_mbarrier_arrive($0)", 90, false, false,
     false, "one arrival", "ptr(u64) -> void", kHopper},
    {"mbarrier_arrive_remote", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_arrive_remote($0, $1)",
     90, false, false, false, "one arrival at the barrier at that place in block $1 of the cluster",
     "ptr(u64), i32 -> void", kHopper},
    {"mbarrier_arrive_expect_tx", 2, T::cuda, R::none, nullptr,
     "hidet_mbarrier_arrive_expect_tx($0, $1)", 90, false, false, false,
     "one arrival; the phase waits for $1 bytes of copies more", "ptr(u64), i32 -> void", kHopper},
    {"mbarrier_expect_tx", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_expect_tx($0, $1)", 90,
     false, false, false, "the phase waits for $1 bytes of copies more", "ptr(u64), i32 -> void",
     kHopper},
    {"mbarrier_wait", 2, T::cuda, R::none, nullptr, "hidet_mbarrier_wait($0, $1)", 90, false, false,
     false, "waits until the phase of parity $1 has ended", "ptr(u64), i32 -> void", kHopper},
    {"fence_mbarrier_init", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("fence.mbarrier_init.release.cluster;"), 90, false, false, false,
     "barriers are ready for other blocks of the cluster and for copies"},
    {"fence_proxy_async", 0, T::cuda, R::none, nullptr, HIDET_ASM("fence.proxy.async;"), 90, false,
     false, false, "writes of threads come before bulk copies and wgmma that follow"},
    // --- bulk copies. Loads end at an mbarrier, stores in groups of the thread
    {"tma_load", -1, T::cuda, R::none, nullptr, "hidet_tma_load_$k0_$k1($*)", 90, false, false,
     false, "a box of a tensor of rank $k0 to shared memory; $k1: in several blocks of the cluster",
     nullptr, kHopper, tma_load},
    {"tma_store", -1, T::cuda, R::none, nullptr, "hidet_tma_store_$k0($*)", 90, false, false, false,
     "a box from shared memory to a tensor of rank $k0", nullptr, kHopper, tma_store},
    {"tma_prefetch", 1, T::cuda, R::none, nullptr,
     "asm volatile(\"prefetch.tensormap [%0];\" ::\"l\"(&$0) : \"memory\")", 90, false, false,
     false, "loads a tensor map before its first use", "u64x16 -> void", kHopper},
    {"bulk_load", 4, T::cuda, R::none, nullptr, "hidet_bulk_load($0, $1, $2, $3)", 90, false, false,
     false, "$2 bytes, a multiple of 16, to shared memory", "ptr, ptr, i32, ptr(u64) -> void",
     kHopper},
    {"bulk_load_multicast", 5, T::cuda, R::none, nullptr,
     "hidet_bulk_load_multicast($0, $1, $2, $3, $4)", 90, false, false, false,
     "$2 bytes to the same place in the blocks of the mask $4",
     "ptr, ptr, i32, ptr(u64), i32 -> void", kHopper},
    {"bulk_store", 3, T::cuda, R::none, nullptr, "hidet_bulk_store($0, $1, $2)", 90, false, false,
     false, "$2 bytes, a multiple of 16, from shared to global memory", "ptr, ptr, i32 -> void",
     kHopper},
    {"bulk_commit", 0, T::cuda, R::none, nullptr, HIDET_ASM("cp.async.bulk.commit_group;"), 90,
     false, false, false, "closes a group of stores"},
    {"bulk_wait", 0, T::cuda, R::none, nullptr, HIDET_ASM("cp.async.bulk.wait_group $k0;"), 90,
     false, false, false, "waits until $k0 groups of stores are pending"},
    {"bulk_wait_read", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("cp.async.bulk.wait_group.read $k0;"), 90, false, false, false,
     "waits until all but $k0 groups of stores have read their shared memory"},
    // --- clusters
    {"cluster_rank", 0, T::cuda, R::i32, nullptr, "hidet_cluster_rank()", 90, true, false, false,
     "number of the block in its cluster", nullptr, kHopper},
    {"cluster_size", 0, T::cuda, R::i32, nullptr, "hidet_cluster_size()", 90, true, false, false,
     "blocks of the cluster", nullptr, kHopper},
    {"cluster_arrive", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("barrier.cluster.arrive.release.aligned;"), 90, false, false, true,
     "barrier of the cluster: arrives"},
    {"cluster_wait", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("barrier.cluster.wait.acquire.aligned;"), 90, false, false, true,
     "barrier of the cluster: waits"},
    {"map_shared_rank", 2, T::cuda, R::custom, nullptr, "hidet_map_shared_rank($0, $1)", 90, true,
     false, false, "the pointer to the same place in block $1 of the cluster", "ptr, i32 -> *",
     kHopper},
    // --- launches that overlap
    {"griddep_wait", 0, T::cuda, R::none, nullptr, HIDET_ASM("griddepcontrol.wait;"), 90, false,
     false, false, "waits for the grids that this one was launched to follow"},
    {"griddep_launch", 0, T::cuda, R::none, nullptr, HIDET_ASM("griddepcontrol.launch_dependents;"),
     90, false, false, false, "lets the grids that follow begin"},
    {"elect_one", 0, T::cuda, R::boolean, nullptr, "hidet_elect_one()", 90, false, false, true,
     "true on one lane of the warp", nullptr, kHopper},
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
     "ptr -> void", kHopper},
    {"wgmma_descriptor", 1, T::cuda, R::custom, nullptr, "hidet_wgmma_descriptor($0, $k0, $k1)",
     kHopperOnly, true, false, false,
     "matrix in shared memory: low and high words of the descriptor without the address",
     "ptr -> u64", kHopper},
    {"wgmma", 4, T::cuda, R::none, nullptr, "hidet_wgmma_$k0_$k1_$k2_$k3_$k4_$k5($*)", kHopperOnly,
     false, false, true,
     "64 x $k0 sums += a b; dtypes $k1, $k2; $k3: a in registers; $k4, $k5: a, b contiguous along "
     "m, n; $3: whether to add to the sums",
     "ptr, *, u64, boolean -> void", kHopper, wgmma},
};
}  // namespace

const std::vector<Primitive>& sm90_primitives() { return kTable; }

}  // namespace hidet::ir
