// warp.h - CUDA: matrix products and reductions of a warp. Each is a row of the table ir/primitives.h.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/lang/handle.h>

namespace hidet::lang {

// --- matrix instructions (sm_80; stmatrix sm_90). Fragments are 32-bit registers, one or a vector of them.
/// `count` (1, 2, 4) matrices of 8 x 8 16-bit values: lane 8 j + i points to row i of matrix j, 16-byte aligned.
Value ldmatrix(const Located& row, int count, bool transposed = false);
void stmatrix(const Located& row, const Located& fragment, bool transposed = false);
/// A matrix of 8 x 8 16-bit values, in a u32 of each lane, transposed.
Value movmatrix(const Located& fragment);

/// c + a b, where a is m x k and b k x 8: fragments as PTX lays them out (mma.sync), in 32-bit registers (f64: in f64). c has
/// the accumulator's type; f16 come in pairs in u32. f8 need sm_89, f64 of 16 rows sm_90. `_sat`: sums stay at the limits.
struct Mma {
  const char* row;
  Value operator()(const Located& a, const Located& b, const Located& c) const;
};
#define HIDET_MMA_F8(each, a)                                                \
  each(m16n8k16_##a##_f32) each(m16n8k16_##a##_f16) each(m16n8k32_##a##_f32) \
      each(m16n8k32_##a##_f16)
#define HIDET_MMA_BYTES(each, a)                                            \
  each(m8n8k16_##a##_i32) each(m16n8k16_##a##_i32) each(m16n8k32_##a##_i32) \
      each(m8n8k16_##a##_i32_sat) each(m16n8k16_##a##_i32_sat) each(m16n8k32_##a##_i32_sat)
#define HIDET_MMA(each)                                                                            \
  each(m16n8k8_f16_f32) each(m16n8k16_f16_f32) each(m16n8k8_f16_f16) each(m16n8k16_f16_f16)        \
      each(m16n8k8_bf16_f32) each(m16n8k16_bf16_f32) each(m16n8k4_tf32_f32) each(m16n8k8_tf32_f32) \
          each(m8n8k4_f64_f64) each(m16n8k4_f64_f64) each(m16n8k8_f64_f64) each(m16n8k16_f64_f64)  \
              HIDET_MMA_BYTES(each, i8) HIDET_MMA_BYTES(each, i8_u8) HIDET_MMA_BYTES(each, u8_i8)  \
                  HIDET_MMA_BYTES(each, u8) HIDET_MMA_F8(each, f8e4m3)                             \
                      HIDET_MMA_F8(each, f8e4m3_f8e5m2) HIDET_MMA_F8(each, f8e5m2_f8e4m3)          \
                          HIDET_MMA_F8(each, f8e5m2)
#define HIDET_DECLARE(shape) inline constexpr Mma mma_##shape{"mma_" #shape};
HIDET_MMA(HIDET_DECLARE)
#undef HIDET_DECLARE

// --- one result of all lanes' numbers (sm_80): i32 or u32; the bits: u32
Value redux_add(const Located& v);
Value redux_min(const Located& v);
Value redux_max(const Located& v);
Value redux_and(const Located& v);
Value redux_or(const Located& v);
Value redux_xor(const Located& v);
/// The lanes whose value (32 or 64 bits) has the same bits as this lane's; match_all: all lanes if theirs has, else 0.
Value match_any(const Located& v);
Value match_all(const Located& v);

}  // namespace hidet::lang
