// arith.h - bits of integers, packed halves, fast approximations, memory access with hints and masks, clocks.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/lang/primitives.h>
#include <hidet/lang/types.h>

namespace hidet::lang {

// --- bits of integers of 32 or 64 bits, signed or not; popc, clz and ffs on the CPU, too
Value popc(const Located& v);  ///< number of bits that are 1, i32
Value clz(const Located& v);   ///< number of 0 bits above the highest 1, i32
Value ffs(const Located& v);   ///< place of the lowest 1, from 1 on; 0: none; i32
Value brev(const Located& v);  ///< bits in reverse, unsigned
/// Upper half of the product of two i32, u32, i64 or u64.
Value mulhi(const Located& a, const Located& b);
/// Byte i of the result is byte (nibble i of `selector`) & 7 of the 8 bytes of b:a, where a has the lower ones.
Value byte_perm(const Located& a, const Located& b, const Located& selector);
/// The upper (left) or lower (right) 32 bits of high:low shifted by n & 31.
Value funnel_shift_left(const Located& low, const Located& high, const Located& n);
Value funnel_shift_right(const Located& low, const Located& high, const Located& n);
/// c + the dot product of the 4 bytes of a and b (u32): signed where c is i32, unsigned where it is u32. (sm_61)
Value dp4a(const Located& a, const Located& b, const Located& c);

// --- CUDA: two halves (f16x2, bf16x2) in one instruction (sm_80); min and max give NaN where one is, and -0 is below 0
Value packed_add(const Located& a, const Located& b);
Value packed_sub(const Located& a, const Located& b);
Value packed_mul(const Located& a, const Located& b);
Value packed_min(const Located& a, const Located& b);
Value packed_max(const Located& a, const Located& b);
Value packed_fma(const Located& a, const Located& b, const Located& c);
Value packed_fma_relu(const Located& a, const Located& b, const Located& c);  ///< not below 0
Value packed_neg(const Located& a);
Value packed_abs(const Located& a);
Value packed_fast_exp2(const Located& a);
Value packed_fast_tanh(const Located& a);

// --- CUDA: approximations of f32 in one or two instructions; how good they are is in CUDA's manual. saturate: exactly x between 0 and 1, 0 for NaN
#define HIDET_FAST_MATH(each)                                                                      \
  each(fast_exp) each(fast_exp2) each(fast_exp10) each(fast_log) each(fast_log2) each(fast_log10)  \
      each(fast_sin) each(fast_cos) each(fast_tan) each(fast_rsqrt) each(fast_sqrt) each(fast_rcp) \
          each(fast_tanh) each(saturate)
#define HIDET_DECLARE(name) Value name(const Located& x);
HIDET_FAST_MATH(HIDET_DECLARE)
#undef HIDET_DECLARE
Value fast_div(const Located& a, const Located& b);
Value fast_pow(const Located& x, const Located& y);

// --- CUDA, `store` with cs on CPUs, too: global memory with a cache hint. 1, 2, 4, 8 or 16 bytes, and the address is a multiple of them.
/// Loads: nc (nothing writes it while the kernel runs), ca, cg, cs, lu, cv; stores: wb, cg, cs (CPU: past the caches), wt. As PTX calls them.
enum class Cache : uint8_t { nc, ca, cg, cs, lu, cv, wb, wt };
Value load(const Located& pointer, int width, Cache hint);
void store(const Located& pointer, const Located& value, Cache hint);

// --- vectors, on the CPU in one instruction where it has them: 16 values of 32 bits at x86-64-v4
/// The lanes of `mask` (a vector of booleans), 0 elsewhere; memory of other lanes is not touched.
Value masked_load(const Located& pointer, const Located& mask);
void masked_store(const Located& pointer, const Located& value, const Located& mask);
/// A mask of the first `n` lanes.
Value lanes_below(const Located& n, int lanes);
/// Lanes of a and b by number: b's come after a's. (a, a reversed: shuffle_lanes(a, a, {3, 2, 1, 0}))
Value shuffle_lanes(const Located& a, const Located& b, const std::vector<int>& lanes);

// --- CUDA: more atomics; the old value
/// Adds two halves, each atomically, at a pointer to f16 or bf16 that is a multiple of 4 bytes. (sm_80)
CallResult atomic_add_pair(const Located& p, const Located& v);
/// Adds 8 or 16 bytes of f32, f16 or bf16 (a vector) in global memory, each number atomically, at a multiple of the bytes. (sm_90)
CallResult atomic_add_vector(const Located& p, const Located& v);
/// 16 bytes at once (u64x2), at a pointer to u64 that is a multiple of 16. (sm_90)
CallResult atomic_exch_128(const Located& p, const Located& v);
CallResult atomic_cas_128(const Located& p, const Located& expected, const Located& v);
/// u32: p = p >= v ? 0 : p + 1, and p = p == 0 || p > v ? v : p - 1.
CallResult atomic_inc(const Located& p, const Located& v);
CallResult atomic_dec(const Located& p, const Located& v);

// --- CUDA: time
/// Cycles of the multiprocessor, i64.
Value clock(Here at = Here::current());
void nanosleep(const Located& ns);

}  // namespace hidet::lang
