// primitives_sm80.cpp - rows of the table of primitives that sm_80 brought: asynchronous copies, matrix loads, reductions of a
// warp; and stmatrix of sm_90. Fragments are vectors of 32-bit registers, as PTX lays them out.
// The columns are those of primitives.cpp.
#include "primitive_tables.h"

namespace hidet::ir {
namespace {
using T = PrimTarget;
using R = PrimResult;

// bytes; `kept` of them are copied, the rest is zero.
constexpr const char kCopy[] =
    R"(template <int bytes> __device__ __forceinline__ void hidet_cp_async(void* to, const void* from, int kept) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  if (bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(kept) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(bytes), "r"(kept) : "memory");
}
template <int bytes> __device__ __forceinline__ void hidet_cp_async(void* to, const void* from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  if (bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(bytes) : "memory");
}
)";

constexpr const char kLoadMatrix[] =
    R"(template <int count, int trans> __device__ __forceinline__ auto hidet_ldmatrix(const void* row) {
  unsigned at = (unsigned)__cvta_generic_to_shared(row);
  hidet_vec<uint32_t, count> r;
  if constexpr (count == 1) {
    if (trans) asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r.v[0]) : "r"(at) : "memory");
    else asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r.v[0]) : "r"(at) : "memory");
  } else if constexpr (count == 2) {
    if (trans) asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r.v[0]), "=r"(r.v[1]) : "r"(at) : "memory");
    else asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r.v[0]), "=r"(r.v[1]) : "r"(at) : "memory");
  } else {
    if (trans) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r.v[0]), "=r"(r.v[1]), "=r"(r.v[2]), "=r"(r.v[3]) : "r"(at) : "memory");
    else asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r.v[0]), "=r"(r.v[1]), "=r"(r.v[2]), "=r"(r.v[3]) : "r"(at) : "memory");
  }
  if constexpr (count == 1) return r.v[0];
  else return r;
}
)";

constexpr const char kStoreMatrix[] =
    R"(template <int count, int trans> __device__ __forceinline__ void hidet_stmatrix(void* row, hidet_vec<uint32_t, count> x) {
  unsigned at = (unsigned)__cvta_generic_to_shared(row);
  if constexpr (count == 1) {
    if (trans) asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(at), "r"(x.v[0]) : "memory");
    else asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(at), "r"(x.v[0]) : "memory");
  } else if constexpr (count == 2) {
    if (trans) asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(x.v[0]), "r"(x.v[1]) : "memory");
    else asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(x.v[0]), "r"(x.v[1]) : "memory");
  } else {
    if (trans) asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x.v[0]), "r"(x.v[1]), "r"(x.v[2]), "r"(x.v[3]) : "memory");
    else asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x.v[0]), "r"(x.v[1]), "r"(x.v[2]), "r"(x.v[3]) : "memory");
  }
}
template <int count, int trans> __device__ __forceinline__ void hidet_stmatrix(void* row, uint32_t x) {
  hidet_stmatrix<count, trans>(row, hidet_vec<uint32_t, 1>{{x}});
}
)";

const std::vector<Primitive> kTable = {
    // --- asynchronous copies to shared memory (bytes: $k0 = 4, 8 or 16)
    {"cp_async", 2, T::cuda, R::none, nullptr, "hidet_cp_async<$k0>($0, $1)", 80, false, false,
     false, "copy $k0 bytes from global to shared memory", "ptr, ptr -> void", kCopy},
    {"cp_async_part", 3, T::cuda, R::none, nullptr, "hidet_cp_async<$k0>($0, $1, $2)", 80, false,
     false, false, "copy $2 of $k0 bytes from global to shared memory; the rest is 0",
     "ptr, ptr, i32 -> void", kCopy},
    {"cp_async_commit", 0, T::cuda, R::none, nullptr,
     "asm volatile(\"cp.async.commit_group;\\n\" ::: \"memory\")", 80, false, false, false,
     "closes a group of copies"},
    {"cp_async_wait", 0, T::cuda, R::none, nullptr,
     "asm volatile(\"cp.async.wait_group %0;\\n\" ::\"n\"($k0) : \"memory\")", 80, false, false,
     false, "waits until $k0 groups are pending"},
    // --- matrices of 8 x 8 16-bit values: the address of row i of matrix j is lane 8 j + i's
    {"ldmatrix", 1, T::cuda, R::custom, nullptr, "hidet_ldmatrix<$k0, $k1>($0)", 80, false, false,
     true, "$k0 matrices from shared memory; $k1: each transposed", "ptr -> *", kLoadMatrix},
    {"stmatrix", 2, T::cuda, R::none, nullptr, "hidet_stmatrix<$k0, $k1>($0, $1)", 90, false, false,
     true, "$k0 matrices to shared memory; $k1: each transposed", "ptr, * -> void", kStoreMatrix},
    {"movmatrix", 1, T::cuda, R::same, nullptr, "hidet_movmatrix($0)", 80, false, false, true,
     "a matrix of 8 x 8 16-bit values in a register of each lane, transposed", "u32 -> u32",
     R"(__device__ __forceinline__ uint32_t hidet_movmatrix(uint32_t a) {
  uint32_t r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(a));
  return r;
}
)"},
    // --- a whole warp's integers combined, one result for all lanes (full mask)
    {"redux_add", 1, T::cuda, R::same, nullptr, "__reduce_add_sync(0xffffffffu, $0)", 80, false,
     false, true, "sum over the lanes, i32 or u32; wrapping"},
    {"redux_min", 1, T::cuda, R::same, nullptr, "__reduce_min_sync(0xffffffffu, $0)", 80, false,
     false, true, "least over the lanes, i32 or u32"},
    {"redux_max", 1, T::cuda, R::same, nullptr, "__reduce_max_sync(0xffffffffu, $0)", 80, false,
     false, true, "largest over the lanes, i32 or u32"},
    {"redux_and", 1, T::cuda, R::same, nullptr, "__reduce_and_sync(0xffffffffu, $0)", 80, false,
     false, true, "bits that are 1 on all lanes, u32"},
    {"redux_or", 1, T::cuda, R::same, nullptr, "__reduce_or_sync(0xffffffffu, $0)", 80, false,
     false, true, "bits that are 1 on a lane, u32"},
    {"redux_xor", 1, T::cuda, R::same, nullptr, "__reduce_xor_sync(0xffffffffu, $0)", 80, false,
     false, true, "bits that are 1 on an odd number of lanes, u32"},
};
}  // namespace

const std::vector<Primitive>& sm80_primitives() { return kTable; }

}  // namespace hidet::ir
