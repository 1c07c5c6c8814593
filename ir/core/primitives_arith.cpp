// primitives_arith.cpp - rows of the table of primitives for bits of integers, packed halves and fast approximations.
// The columns are those of primitives.cpp.
#include "primitive_tables.h"

namespace hidet::ir {
namespace {
using T = PrimTarget;
using R = PrimResult;

// Pairs of halves as the type that the intrinsics take.
constexpr const char kPacked[] =
    R"(template <class T> struct hidet_pair;
template <> struct hidet_pair<hidet_vec<__half, 2>> { typedef __half2 type; };
template <> struct hidet_pair<hidet_vec<__nv_bfloat16, 2>> { typedef __nv_bfloat162 type; };
#define HIDET_PACKED(name, call) \
template <class V> __device__ __forceinline__ V hidet_packed_##name(V a, V b) { \
  typedef typename hidet_pair<V>::type P; \
  return hidet_bits<V>(call(hidet_bits<P>(a), hidet_bits<P>(b))); \
}
HIDET_PACKED(add, __hadd2)
HIDET_PACKED(sub, __hsub2)
HIDET_PACKED(mul, __hmul2)
HIDET_PACKED(min, __hmin2_nan)
HIDET_PACKED(max, __hmax2_nan)
template <class V> __device__ __forceinline__ V hidet_packed_fma(V a, V b, V c) {
  typedef typename hidet_pair<V>::type P;
  return hidet_bits<V>(__hfma2(hidet_bits<P>(a), hidet_bits<P>(b), hidet_bits<P>(c)));
}
template <class V> __device__ __forceinline__ V hidet_packed_fma_relu(V a, V b, V c) {
  typedef typename hidet_pair<V>::type P;
  return hidet_bits<V>(__hfma2_relu(hidet_bits<P>(a), hidet_bits<P>(b), hidet_bits<P>(c)));
}
#define HIDET_PACKED_ONE(name, call) \
template <class V> __device__ __forceinline__ V hidet_packed_##name(V a) { \
  return hidet_bits<V>(call(hidet_bits<typename hidet_pair<V>::type>(a))); \
}
HIDET_PACKED_ONE(neg, __hneg2)
HIDET_PACKED_ONE(abs, __habs2)
HIDET_PACKED_ONE(fast_exp2, h2exp2)
HIDET_PACKED_ONE(fast_tanh, h2tanh_approx)
)";

constexpr const char kApproximate[] =
    R"(#define HIDET_APPROXIMATE(name, ptx) \
__device__ __forceinline__ float hidet_##name(float x) { \
  float r; \
  asm(ptx " %0, %1;" : "=f"(r) : "f"(x)); \
  return r; \
}
HIDET_APPROXIMATE(fast_exp2, "ex2.approx.f32")
HIDET_APPROXIMATE(fast_rsqrt, "rsqrt.approx.f32")
HIDET_APPROXIMATE(fast_sqrt, "sqrt.approx.f32")
HIDET_APPROXIMATE(fast_rcp, "rcp.approx.f32")
HIDET_APPROXIMATE(fast_tanh, "tanh.approx.f32")
)";

const std::vector<Primitive> kTable = {
    // --- bits of integers
    {"popc_u32", 1, T::any, R::i32, "__builtin_popcount($0)", "__popc($0)", 0, true, false, false,
     "number of bits that are 1", "u32 -> i32"},
    {"popc_u64", 1, T::any, R::i32, "__builtin_popcountll($0)", "__popcll($0)", 0, true, false,
     false, "number of bits that are 1", "u64 -> i32"},
    {"clz_u32", 1, T::any, R::i32,
     "({ uint32_t hidet_x = $0; hidet_x ? __builtin_clz(hidet_x) : 32; })", "__clz((int)$0)", 0,
     true, false, false, "number of 0 bits above the highest 1", "u32 -> i32"},
    {"clz_u64", 1, T::any, R::i32,
     "({ uint64_t hidet_x = $0; hidet_x ? __builtin_clzll(hidet_x) : 64; })",
     "__clzll((long long)$0)", 0, true, false, false, "number of 0 bits above the highest 1",
     "u64 -> i32"},
    {"ffs_u32", 1, T::any, R::i32, "__builtin_ffs((int)$0)", "__ffs((int)$0)", 0, true, false,
     false, "place of the lowest 1, from 1 on; 0: none", "u32 -> i32"},
    {"ffs_u64", 1, T::any, R::i32, "__builtin_ffsll((long long)$0)", "__ffsll((long long)$0)", 0,
     true, false, false, "place of the lowest 1, from 1 on; 0: none", "u64 -> i32"},
    {"brev_u32", 1, T::cuda, R::same, nullptr, "__brev($0)", 0, true, false, false,
     "bits in reverse", "u32 -> u32"},
    {"brev_u64", 1, T::cuda, R::same, nullptr, "__brevll($0)", 0, true, false, false,
     "bits in reverse", "u64 -> u64"},
    {"mulhi_i32", 2, T::cuda, R::same, nullptr, "__mulhi($0, $1)", 0, true, false, false,
     "upper half of the product", "i32, i32 -> i32"},
    {"mulhi_u32", 2, T::cuda, R::same, nullptr, "__umulhi($0, $1)", 0, true, false, false,
     "upper half of the product", "u32, u32 -> u32"},
    {"mulhi_i64", 2, T::cuda, R::same, nullptr, "__mul64hi($0, $1)", 0, true, false, false,
     "upper half of the product", "i64, i64 -> i64"},
    {"mulhi_u64", 2, T::cuda, R::same, nullptr, "__umul64hi($0, $1)", 0, true, false, false,
     "upper half of the product", "u64, u64 -> u64"},
    {"byte_perm", 3, T::cuda, R::same, nullptr, "__byte_perm($0, $1, $2)", 0, true, false, false,
     "byte i is byte (nibble i of $2) & 7 of the 8 bytes $1:$0", "u32, u32, u32 -> u32"},
    {"funnel_shift_left", 3, T::cuda, R::same, nullptr, "__funnelshift_l($0, $1, $2)", 0, true,
     false, false, "upper half of $1:$0 << ($2 & 31)", "u32, u32, u32 -> u32"},
    {"funnel_shift_right", 3, T::cuda, R::same, nullptr, "__funnelshift_r($0, $1, $2)", 0, true,
     false, false, "lower half of $1:$0 >> ($2 & 31)", "u32, u32, u32 -> u32"},
    {"dp4a_i32", 3, T::cuda, R::i32, nullptr, "__dp4a((int)$0, (int)$1, $2)", 61, true, false,
     false, "$2 + dot product of 4 signed bytes, wrapping", "u32, u32, i32 -> i32"},
    {"dp4a_u32", 3, T::cuda, R::u32, nullptr, "__dp4a($0, $1, $2)", 61, true, false, false,
     "$2 + dot product of 4 unsigned bytes, wrapping", "u32, u32, u32 -> u32"},
    // --- pairs of f16 or bf16 in one register, each result rounded once
    {"packed_add", 2, T::cuda, R::same, nullptr, "hidet_packed_add($0, $1)", 80, true, false, false,
     "a + b of two halves", nullptr, kPacked},
    {"packed_sub", 2, T::cuda, R::same, nullptr, "hidet_packed_sub($0, $1)", 80, true, false, false,
     "a - b of two halves", nullptr, kPacked},
    {"packed_mul", 2, T::cuda, R::same, nullptr, "hidet_packed_mul($0, $1)", 80, true, false, false,
     "a * b of two halves", nullptr, kPacked},
    {"packed_min", 2, T::cuda, R::same, nullptr, "hidet_packed_min($0, $1)", 80, true, false, false,
     "least of two halves; NaN where one is", nullptr, kPacked},
    {"packed_max", 2, T::cuda, R::same, nullptr, "hidet_packed_max($0, $1)", 80, true, false, false,
     "largest of two halves; NaN where one is", nullptr, kPacked},
    {"packed_fma", 3, T::cuda, R::same, nullptr, "hidet_packed_fma($0, $1, $2)", 80, true, false,
     false, "a * b + c of two halves", nullptr, kPacked},
    {"packed_fma_relu", 3, T::cuda, R::same, nullptr, "hidet_packed_fma_relu($0, $1, $2)", 80, true,
     false, false, "max(a * b + c, 0) of two halves; NaN where that is", nullptr, kPacked},
    {"packed_neg", 1, T::cuda, R::same, nullptr, "hidet_packed_neg($0)", 80, true, false, false,
     "-a of two halves", nullptr, kPacked},
    {"packed_abs", 1, T::cuda, R::same, nullptr, "hidet_packed_abs($0)", 80, true, false, false,
     "|a| of two halves", nullptr, kPacked},
    {"packed_fast_exp2", 1, T::cuda, R::same, nullptr, "hidet_packed_fast_exp2($0)", 80, true,
     false, false, "approximate 2^a of two halves", nullptr, kPacked},
    {"packed_fast_tanh", 1, T::cuda, R::same, nullptr, "hidet_packed_fast_tanh($0)", 80, true,
     false, false, "approximate hyperbolic tangent of two halves", nullptr, kPacked},
    // --- fast approximations in f32; the simulator computes them accurately
    {"fast_exp", 1, T::cuda, R::f32, nullptr, "__expf($0)", 0, true, false, false,
     "approximate e^x", "f32 -> f32"},
    {"fast_exp2", 1, T::cuda, R::f32, nullptr, "hidet_fast_exp2($0)", 0, true, false, false,
     "approximate 2^x", "f32 -> f32", kApproximate},
    {"fast_exp10", 1, T::cuda, R::f32, nullptr, "__exp10f($0)", 0, true, false, false,
     "approximate 10^x", "f32 -> f32"},
    {"fast_log", 1, T::cuda, R::f32, nullptr, "__logf($0)", 0, true, false, false,
     "approximate logarithm", "f32 -> f32"},
    {"fast_log2", 1, T::cuda, R::f32, nullptr, "__log2f($0)", 0, true, false, false,
     "approximate logarithm to base 2", "f32 -> f32"},
    {"fast_log10", 1, T::cuda, R::f32, nullptr, "__log10f($0)", 0, true, false, false,
     "approximate logarithm to base 10", "f32 -> f32"},
    {"fast_sin", 1, T::cuda, R::f32, nullptr, "__sinf($0)", 0, true, false, false,
     "approximate sine; good in [-pi, pi]", "f32 -> f32"},
    {"fast_cos", 1, T::cuda, R::f32, nullptr, "__cosf($0)", 0, true, false, false,
     "approximate cosine; good in [-pi, pi]", "f32 -> f32"},
    {"fast_tan", 1, T::cuda, R::f32, nullptr, "__tanf($0)", 0, true, false, false,
     "approximate tangent", "f32 -> f32"},
    {"saturate", 1, T::cuda, R::f32, nullptr, "__saturatef($0)", 0, true, false, false,
     "x between 0 and 1; NaN gives 0", "f32 -> f32"},
    {"fast_pow", 2, T::cuda, R::f32, nullptr, "__powf($0, $1)", 0, true, false, false,
     "approximate x^y, x above 0", "f32, f32 -> f32"},
    {"fast_div", 2, T::cuda, R::f32, nullptr, "__fdividef($0, $1)", 0, true, false, false,
     "approximate a / b, |b| below 2^126", "f32, f32 -> f32"},
    {"fast_rsqrt", 1, T::cuda, R::f32, nullptr, "hidet_fast_rsqrt($0)", 0, true, false, false,
     "approximate 1 / sqrt(x)", "f32 -> f32", kApproximate},
    {"fast_sqrt", 1, T::cuda, R::f32, nullptr, "hidet_fast_sqrt($0)", 0, true, false, false,
     "approximate square root", "f32 -> f32", kApproximate},
    {"fast_rcp", 1, T::cuda, R::f32, nullptr, "hidet_fast_rcp($0)", 0, true, false, false,
     "approximate 1 / x", "f32 -> f32", kApproximate},
    {"fast_tanh", 1, T::cuda, R::f32, nullptr, "hidet_fast_tanh($0)", 75, true, false, false,
     "approximate hyperbolic tangent", "f32 -> f32", kApproximate},
};
}  // namespace

const std::vector<Primitive>& arith_primitives() { return kTable; }

}  // namespace hidet::ir
