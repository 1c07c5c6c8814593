// primitives_cuda.cpp - rows of the table of primitives that every CUDA architecture has.
// The columns are those of primitives.cpp.
#include "primitive_tables.h"

namespace hidet::ir {
namespace {
using T = PrimTarget;
using R = PrimResult;

// Atomics of every type: the hardware's where it has one, else compare and swap of the bits.
constexpr const char kAtomics[] =
    R"(template <int bytes> struct hidet_word { typedef unsigned type; };
template <> struct hidet_word<2> { typedef unsigned short type; };
template <> struct hidet_word<8> { typedef unsigned long long type; };
template <class T> struct hidet_same { typedef T type; };
template <class T> __device__ __forceinline__ T hidet_atomic_cas(T* p, typename hidet_same<T>::type expected, typename hidet_same<T>::type v) {
  typedef typename hidet_word<sizeof(T)>::type W;
  return hidet_bits<T>(atomicCAS((W*)p, hidet_bits<W>(expected), hidet_bits<W>(v)));
}
template <class T, class F> __device__ __forceinline__ T hidet_atomic_update(T* p, F next) {
  typedef typename hidet_word<sizeof(T)>::type W;
  W seen = *(volatile W*)p, old;
  do {
    old = seen;
    seen = atomicCAS((W*)p, old, hidet_bits<W>(next(hidet_bits<T>(old))));
  } while (seen != old);
  return hidet_bits<T>(old);
}
template <class T> __device__ __forceinline__ T hidet_atomic_add(T* p, T v) { return atomicAdd(p, v); }
__device__ __forceinline__ int64_t hidet_atomic_add(int64_t* p, int64_t v) { return (int64_t)atomicAdd((unsigned long long*)p, (unsigned long long)v); }
__device__ __forceinline__ uint64_t hidet_atomic_add(uint64_t* p, uint64_t v) { return (uint64_t)atomicAdd((unsigned long long*)p, (unsigned long long)v); }
template <class T> __device__ __forceinline__ T hidet_atomic_max(T* p, T v) {
  return hidet_atomic_update(p, [=](T old) { return hidet_max(old, v); });
}
template <class T> __device__ __forceinline__ T hidet_atomic_min(T* p, T v) {
  return hidet_atomic_update(p, [=](T old) { return hidet_min(old, v); });
}
template <class T> __device__ __forceinline__ T hidet_atomic_exch(T* p, T v) {
  return hidet_atomic_update(p, [=](T) { return v; });
}
#define HIDET_WORDS(T, W) \
__device__ __forceinline__ T hidet_atomic_max(T* p, T v) { return (T)atomicMax((W*)p, (W)v); } \
__device__ __forceinline__ T hidet_atomic_min(T* p, T v) { return (T)atomicMin((W*)p, (W)v); } \
__device__ __forceinline__ T hidet_atomic_exch(T* p, T v) { return (T)atomicExch((unsigned_##W*)p, (unsigned_##W)v); } \
__device__ __forceinline__ T hidet_atomic_and(T* p, T v) { return (T)atomicAnd((unsigned_##W*)p, (unsigned_##W)v); } \
__device__ __forceinline__ T hidet_atomic_or(T* p, T v) { return (T)atomicOr((unsigned_##W*)p, (unsigned_##W)v); } \
__device__ __forceinline__ T hidet_atomic_xor(T* p, T v) { return (T)atomicXor((unsigned_##W*)p, (unsigned_##W)v); }
typedef int hidet_i;
typedef unsigned hidet_u;
typedef long long hidet_l;
typedef unsigned long long hidet_ul;
typedef unsigned unsigned_hidet_i, unsigned_hidet_u;
typedef unsigned long long unsigned_hidet_l, unsigned_hidet_ul;
HIDET_WORDS(int32_t, hidet_i)
HIDET_WORDS(uint32_t, hidet_u)
HIDET_WORDS(int64_t, hidet_l)
HIDET_WORDS(uint64_t, hidet_ul)
)";
constexpr const char kAtomicPairs[] =
    R"(#define HIDET_ATOMIC_PAIR(T, P) \
__device__ __forceinline__ hidet_vec<T, 2> hidet_atomic_add_pair(T* p, hidet_vec<T, 2> v) { \
  return hidet_bits<hidet_vec<T, 2>>(atomicAdd((P*)p, hidet_bits<P>(v))); \
}
HIDET_ATOMIC_PAIR(__half, __half2)
HIDET_ATOMIC_PAIR(__nv_bfloat16, __nv_bfloat162)
)";

constexpr const char kAtomicVectors[] =
    R"(__device__ __forceinline__ hidet_vec<float, 2> hidet_atomic_add_vector(float* p, hidet_vec<float, 2> v) {
  return hidet_bits<hidet_vec<float, 2>>(atomicAdd((float2*)p, hidet_bits<float2>(v)));
}
__device__ __forceinline__ hidet_vec<float, 4> hidet_atomic_add_vector(float* p, hidet_vec<float, 4> v) {
  return hidet_bits<hidet_vec<float, 4>>(atomicAdd((float4*)p, hidet_bits<float4>(v)));
}
)";
/// Four or eight halves: $T is their type in CUDA, $P a pair's in PTX.
constexpr const char kAtomicHalves[] =
    R"(__device__ __forceinline__ hidet_vec<$T, 4> hidet_atomic_add_vector($T* p, hidet_vec<$T, 4> v) {
  hidet_vec<unsigned, 2> w = hidet_bits<hidet_vec<unsigned, 2>>(v), r;
  asm volatile("atom.global.v2.$P.add.noftz {%0, %1}, [%2], {%3, %4};"
               : "=r"(r.v[0]), "=r"(r.v[1]) : "l"(p), "r"(w.v[0]), "r"(w.v[1]) : "memory");
  return hidet_bits<hidet_vec<$T, 4>>(r);
}
__device__ __forceinline__ hidet_vec<$T, 8> hidet_atomic_add_vector($T* p, hidet_vec<$T, 8> v) {
  hidet_vec<unsigned, 4> w = hidet_bits<hidet_vec<unsigned, 4>>(v), r;
  asm volatile("atom.global.v4.$P.add.noftz {%0, %1, %2, %3}, [%4], {%5, %6, %7, %8};"
               : "=r"(r.v[0]), "=r"(r.v[1]), "=r"(r.v[2]), "=r"(r.v[3])
               : "l"(p), "r"(w.v[0]), "r"(w.v[1]), "r"(w.v[2]), "r"(w.v[3]) : "memory");
  return hidet_bits<hidet_vec<$T, 8>>(r);
}
)";
std::string atomic_halves(const std::vector<int64_t>& attrs) {
  const DType t(static_cast<DTypeCode>(attrs.at(0)));
  if (t == f32) return "";
  std::string text = kAtomicHalves;
  for (size_t at; (at = text.find('$')) != text.npos;)
    text.replace(at, 2,
                 text[at + 1] == 'T' ? (t == f16 ? "__half" : "__nv_bfloat16")
                                     : (t == f16 ? "f16x2" : "bf16x2"));
  return text;
}

constexpr const char kAtomicPieces[] =
    R"(__device__ __forceinline__ hidet_vec<uint64_t, 2> hidet_atomic_exch_128(uint64_t* p, hidet_vec<uint64_t, 2> v) {
  hidet_vec<uint64_t, 2> r;
  asm volatile("{ .reg .b128 v, r; mov.b128 v, {%2, %3}; atom.exch.b128 r, [%4], v; mov.b128 {%0, %1}, r; }"
               : "=l"(r.v[0]), "=l"(r.v[1]) : "l"(v.v[0]), "l"(v.v[1]), "l"(p) : "memory");
  return r;
}
__device__ __forceinline__ hidet_vec<uint64_t, 2> hidet_atomic_cas_128(uint64_t* p, hidet_vec<uint64_t, 2> expected, hidet_vec<uint64_t, 2> v) {
  hidet_vec<uint64_t, 2> r;
  asm volatile("{ .reg .b128 e, v, r; mov.b128 e, {%2, %3}; mov.b128 v, {%4, %5}; atom.cas.b128 r, [%6], e, v; mov.b128 {%0, %1}, r; }"
               : "=l"(r.v[0]), "=l"(r.v[1]) : "l"(expected.v[0]), "l"(expected.v[1]), "l"(v.v[0]), "l"(v.v[1]), "l"(p) : "memory");
  return r;
}
)";

const std::vector<Primitive> kTable = {
    // --- CUDA: indices
    {"thread_idx_x", 0, T::cuda, R::i32, nullptr, "((int)threadIdx.x)", 0, true, false, false,
     "thread index in the block"},
    {"thread_idx_y", 0, T::cuda, R::i32, nullptr, "((int)threadIdx.y)", 0, true, false, false,
     "thread index in the block"},
    {"thread_idx_z", 0, T::cuda, R::i32, nullptr, "((int)threadIdx.z)", 0, true, false, false,
     "thread index in the block"},
    {"block_idx_x", 0, T::cuda, R::i32, nullptr, "((int)blockIdx.x)", 0, true, false, false,
     "block index in the grid"},
    {"block_idx_y", 0, T::cuda, R::i32, nullptr, "((int)blockIdx.y)", 0, true, false, false,
     "block index in the grid"},
    {"block_idx_z", 0, T::cuda, R::i32, nullptr, "((int)blockIdx.z)", 0, true, false, false,
     "block index in the grid"},
    {"block_dim_x", 0, T::cuda, R::i32, nullptr, "((int)blockDim.x)", 0, true, false, false,
     "threads in a block"},
    {"block_dim_y", 0, T::cuda, R::i32, nullptr, "((int)blockDim.y)", 0, true, false, false,
     "threads in a block"},
    {"block_dim_z", 0, T::cuda, R::i32, nullptr, "((int)blockDim.z)", 0, true, false, false,
     "threads in a block"},
    {"grid_dim_x", 0, T::cuda, R::i32, nullptr, "((int)gridDim.x)", 0, true, false, false,
     "blocks in the grid"},
    {"grid_dim_y", 0, T::cuda, R::i32, nullptr, "((int)gridDim.y)", 0, true, false, false,
     "blocks in the grid"},
    {"grid_dim_z", 0, T::cuda, R::i32, nullptr, "((int)gridDim.z)", 0, true, false, false,
     "blocks in the grid"},
    // --- CUDA: synchronisation
    {"syncthreads", 0, T::cuda, R::none, nullptr, "__syncthreads()", 0, false, false, true,
     "barrier of the block"},
    {"syncwarp", 0, T::cuda, R::none, nullptr, "__syncwarp()", 0, false, false, true,
     "barrier of the warp"},
    {"threadfence", 0, T::cuda, R::none, nullptr, "__threadfence()", 0, false, false, false,
     "memory fence, device"},
    {"threadfence_block", 0, T::cuda, R::none, nullptr, "__threadfence_block()", 0, false, false,
     false, "memory fence, block"},
    {"syncthreads_and", 1, T::cuda, R::boolean, nullptr, "(__syncthreads_and($0) != 0)", 0, false,
     false, true, "barrier of the block; condition holds on all threads"},
    {"syncthreads_or", 1, T::cuda, R::boolean, nullptr, "(__syncthreads_or($0) != 0)", 0, false,
     false, true, "barrier of the block; condition holds on a thread"},
    {"syncthreads_count", 1, T::cuda, R::i32, nullptr, "__syncthreads_count($0)", 0, false, false,
     true, "barrier of the block; threads where the condition holds"},
    {"threadfence_system", 0, T::cuda, R::none, nullptr, "__threadfence_system()", 0, false, false,
     false, "memory fence, all devices"},
    {"barrier_sync", 2, T::cuda, R::none, nullptr,
     "asm volatile(\"bar.sync %0, %1;\" ::\"r\"($0), \"r\"($1) : \"memory\")", 0, false, false,
     false, "waits at named barrier $0 until $1 threads, whole warps, are there",
     "i32, i32 -> void"},
    {"barrier_arrive", 2, T::cuda, R::none, nullptr,
     "asm volatile(\"bar.arrive %0, %1;\" ::\"r\"($0), \"r\"($1) : \"memory\")", 0, false, false,
     false, "counts as arrived at named barrier $0 of $1 threads, and goes on", "i32, i32 -> void"},
    // --- CUDA: warp exchange (full mask, width 32)
    {"shfl_sync", 2, T::cuda, R::same, nullptr, "__shfl_sync(0xffffffffu, $0, $1)", 0, false, false,
     true, "value of lane $1"},
    {"shfl_up_sync", 2, T::cuda, R::same, nullptr, "__shfl_up_sync(0xffffffffu, $0, $1)", 0, false,
     false, true, "value of the lane $1 below"},
    {"shfl_down_sync", 2, T::cuda, R::same, nullptr, "__shfl_down_sync(0xffffffffu, $0, $1)", 0,
     false, false, true, "value of the lane $1 above"},
    {"shfl_xor_sync", 2, T::cuda, R::same, nullptr, "__shfl_xor_sync(0xffffffffu, $0, $1)", 0,
     false, false, true, "value of lane (own ^ $1)"},
    {"ballot_sync", 1, T::cuda, R::u32, nullptr, "__ballot_sync(0xffffffffu, $0)", 0, false, false,
     true, "bit mask of a condition"},
    {"any_sync", 1, T::cuda, R::boolean, nullptr, "(__any_sync(0xffffffffu, $0) != 0)", 0, false,
     false, true, "condition holds on a lane"},
    {"all_sync", 1, T::cuda, R::boolean, nullptr, "(__all_sync(0xffffffffu, $0) != 0)", 0, false,
     false, true, "condition holds on all lanes"},
    {"match_any_sync", 1, T::cuda, R::u32, nullptr, "__match_any_sync(0xffffffffu, $0)", 0, false,
     false, true, "bit mask of the lanes with an equal value, 32 or 64 bits"},
    {"match_all_sync", 1, T::cuda, R::u32, nullptr, "hidet_match_all($0)", 70, false, false, true,
     "bit mask of the lanes where all have an equal value, 32 or 64 bits; else 0", nullptr,
     R"(template <class T> __device__ __forceinline__ unsigned hidet_match_all(T v) {
  int all;
  return __match_all_sync(0xffffffffu, v, &all);
}
)"},
    // --- atomics on (pointer, value); the old value. max and min give NaN where one is. CPU: 32 and 64 bits, sequentially consistent
    {"atomic_add", 2, T::any, R::custom, "@", "hidet_atomic_add($0, $1)", 0, false, false, false,
     "*p += v", nullptr, kAtomics},
    {"atomic_max", 2, T::any, R::custom, "@", "hidet_atomic_max($0, $1)", 0, false, false, false,
     "*p = max(*p, v)", nullptr, kAtomics},
    {"atomic_min", 2, T::any, R::custom, "@", "hidet_atomic_min($0, $1)", 0, false, false, false,
     "*p = min(*p, v)", nullptr, kAtomics},
    {"atomic_exch", 2, T::any, R::custom, "@", "hidet_atomic_exch($0, $1)", 0, false, false, false,
     "*p = v", nullptr, kAtomics},
    {"atomic_and", 2, T::any, R::custom, "@", "hidet_atomic_and($0, $1)", 0, false, false, false,
     "*p &= v; integers", nullptr, kAtomics},
    {"atomic_or", 2, T::any, R::custom, "@", "hidet_atomic_or($0, $1)", 0, false, false, false,
     "*p |= v; integers", nullptr, kAtomics},
    {"atomic_xor", 2, T::any, R::custom, "@", "hidet_atomic_xor($0, $1)", 0, false, false, false,
     "*p ^= v; integers", nullptr, kAtomics},
    {"atomic_cas", 3, T::any, R::custom, "@", "hidet_atomic_cas($0, $1, $2)", 0, false, false,
     false, "compare the bits and swap", nullptr, kAtomics},
    {"atomic_inc", 2, T::any, R::custom, "@", "atomicInc($0, $1)", 0, false, false, false,
     "*p = *p >= v ? 0 : *p + 1", "ptr, u32 -> u32"},
    {"atomic_dec", 2, T::any, R::custom, "@", "atomicDec($0, $1)", 0, false, false, false,
     "*p = *p == 0 || *p > v ? v : *p - 1", "ptr, u32 -> u32"},
    {"atomic_add_pair", 2, T::cuda, R::custom, nullptr, "hidet_atomic_add_pair($0, $1)", 80, false,
     false, false, "adds two halves, each atomically", nullptr, kAtomicPairs},
    {"atomic_add_vector", 2, T::cuda, R::custom, nullptr, "hidet_atomic_add_vector($0, $1)", 90,
     false, false, false,
     "adds 8 or 16 bytes of f32, f16 or bf16 in global memory, each number atomically; $k0: dtype",
     nullptr, kAtomicVectors, atomic_halves},
    {"atomic_exch_128", 2, T::cuda, R::custom, nullptr, "hidet_atomic_exch_128($0, $1)", 90, false,
     false, false, "16 bytes at once: *p = v", "ptr(u64), u64x2 -> u64x2", kAtomicPieces},
    {"atomic_cas_128", 3, T::cuda, R::custom, nullptr, "hidet_atomic_cas_128($0, $1, $2)", 90,
     false, false, false, "16 bytes at once: compare and swap", "ptr(u64), u64x2, u64x2 -> u64x2",
     kAtomicPieces},
    {"assume_aligned", 1, T::cuda, R::none, nullptr,
     "__builtin_assume(((unsigned long long)($0) & ($k0 - 1)) == 0)", 0, false, false, false,
     "promises that a pointer is a multiple of $k0 bytes, a power of two"},
};
}  // namespace

const std::vector<Primitive>& cuda_primitives() { return kTable; }

}  // namespace hidet::ir
