// arith.cpp - the simulator's meaning of bits of integers, packed halves and fast approximations.
// Threading: pure functions; thread-safe.
#include <bit>
#include <cmath>

#include "sim/values.h"

namespace hidet::backends::sim {
namespace {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

uint32_t word(Cell c) { return static_cast<uint32_t>(c.i); }
Cell number(int64_t v) { return Cell{.i = v}; }
Cell real(float v) {
  Cell c{.i = 0};
  c.f = v;
  return c;
}
uint64_t joined(Cell low, Cell high) { return uint64_t{word(high)} << 32 | word(low); }

template <class W>
W reversed(W v) {
  W r = 0;
  for (size_t i = 0; i < sizeof(W) * 8; i++) r |= (v >> i & 1) << (sizeof(W) * 8 - 1 - i);
  return r;
}

uint32_t byte_perm(Cell a, Cell b, Cell selector) {
  const uint64_t bytes = joined(a, b);
  uint32_t r = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t nibble = word(selector) >> 4 * i & 7;
    r |= static_cast<uint32_t>(bytes >> 8 * nibble & 255) << 8 * i;
  }
  return r;
}

template <class Byte, class Word>
Cell dot(Cell a, Cell b, Cell c) {
  uint32_t sum = word(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<uint32_t>(static_cast<Byte>(word(a) >> i) * static_cast<Byte>(word(b) >> i));
  return number(static_cast<Word>(sum));
}

template <ir::BinaryOp op>
Cell packed(Cell a, Cell b, Cell, DType t) {
  return binary(op, a, b, t);
}

/// Of two zeros the negative one is the least.
template <ir::BinaryOp op>
Cell packed_extreme(Cell a, Cell b, Cell, DType t) {
  const double x = to_double(a, t), y = to_double(b, t);
  if (x != 0 || y != 0) return binary(op, a, b, t);
  const bool negative = op == ir::BinaryOp::min ? std::signbit(x) || std::signbit(y)
                                                : std::signbit(x) && std::signbit(y);
  return from_double(negative ? -0.0 : 0.0, t);
}
template <double (*f)(double)>
Cell packed_of(Cell a, Cell, Cell, DType t) {
  return from_double(f(to_double(a, t)), t);
}
/// Exact in f64: products of two halves have at most 22 bits.
double fused(Cell a, Cell b, Cell c, DType t) {
  return std::fma(to_double(a, t), to_double(b, t), to_double(c, t));
}

struct Row {
  const char* name;
  Cell (*eval)(Cell, Cell, Cell, DType);
};
#define HIDET_BITS(name, value) \
  {name,                        \
   [](Cell a, [[maybe_unused]] Cell b, [[maybe_unused]] Cell c, DType) { return number(value); }}
#define HIDET_FAST(name, value) \
  {name, [](Cell a, [[maybe_unused]] Cell b, Cell, DType) { return real(value); }}
constexpr Row kRows[] = {
    HIDET_BITS("popc_u32", std::popcount(word(a))),
    HIDET_BITS("popc_u64", std::popcount(static_cast<uint64_t>(a.i))),
    HIDET_BITS("clz_u32", std::countl_zero(word(a))),
    HIDET_BITS("clz_u64", std::countl_zero(static_cast<uint64_t>(a.i))),
    HIDET_BITS("ffs_u32", word(a) ? std::countr_zero(word(a)) + 1 : 0),
    HIDET_BITS("ffs_u64", a.i ? std::countr_zero(static_cast<uint64_t>(a.i)) + 1 : 0),
    HIDET_BITS("brev_u32", reversed(word(a))),
    HIDET_BITS("brev_u64", static_cast<int64_t>(reversed(static_cast<uint64_t>(a.i)))),
    HIDET_BITS("mulhi_i32", (a.i * b.i) >> 32),
    HIDET_BITS("mulhi_u32", static_cast<int64_t>(uint64_t{word(a)} * word(b) >> 32)),
    HIDET_BITS("mulhi_i64", static_cast<int64_t>(static_cast<Wide>(a.i) * b.i >> 64)),
    HIDET_BITS("mulhi_u64",
               static_cast<int64_t>(static_cast<UnsignedWide>(static_cast<uint64_t>(a.i)) *
                                        static_cast<uint64_t>(b.i) >>
                                    64)),
    HIDET_BITS("byte_perm", byte_perm(a, b, c)),
    HIDET_BITS("funnel_shift_left", static_cast<uint32_t>(joined(a, b) << (word(c) & 31) >> 32)),
    HIDET_BITS("funnel_shift_right", static_cast<uint32_t>(joined(a, b) >> (word(c) & 31))),
    {"dp4a_i32", [](Cell a, Cell b, Cell c, DType) { return dot<int8_t, int32_t>(a, b, c); }},
    {"dp4a_u32", [](Cell a, Cell b, Cell c, DType) { return dot<uint8_t, uint32_t>(a, b, c); }},
    {"packed_add", packed<ir::BinaryOp::add>},
    {"packed_sub", packed<ir::BinaryOp::sub>},
    {"packed_mul", packed<ir::BinaryOp::mul>},
    {"packed_min", packed_extreme<ir::BinaryOp::min>},
    {"packed_max", packed_extreme<ir::BinaryOp::max>},
    {"packed_fma",
     [](Cell a, Cell b, Cell c, DType t) { return from_double(fused(a, b, c, t), t); }},
    {"packed_fma_relu",
     [](Cell a, Cell b, Cell c, DType t) {
       const double v = fused(a, b, c, t);
       return from_double(v > 0 || std::isnan(v) ? v : 0, t);
     }},
    {"packed_neg", packed_of<[](double v) { return -v; }>},
    {"packed_abs", packed_of<[](double v) { return std::fabs(v); }>},
    {"packed_fast_exp2", packed_of<[](double v) { return std::exp2(v); }>},
    {"packed_fast_tanh", packed_of<[](double v) { return std::tanh(v); }>},
    HIDET_FAST("fast_exp", std::exp(a.f)),
    HIDET_FAST("fast_exp2", std::exp2(a.f)),
    HIDET_FAST("fast_exp10", std::pow(10.0f, a.f)),
    HIDET_FAST("fast_log", std::log(a.f)),
    HIDET_FAST("fast_log2", std::log2(a.f)),
    HIDET_FAST("fast_log10", std::log10(a.f)),
    HIDET_FAST("fast_sin", std::sin(a.f)),
    HIDET_FAST("fast_cos", std::cos(a.f)),
    HIDET_FAST("fast_tan", std::tan(a.f)),
    HIDET_FAST("saturate", a.f > 0 ? std::fmin(a.f, 1.0f) : 0.0f),
    HIDET_FAST("fast_pow", std::pow(a.f, b.f)),
    HIDET_FAST("fast_div", a.f / b.f),
    HIDET_FAST("fast_rsqrt", 1 / std::sqrt(a.f)),
    HIDET_FAST("fast_sqrt", std::sqrt(a.f)),
    HIDET_FAST("fast_rcp", 1 / a.f),
    HIDET_FAST("fast_tanh", std::tanh(a.f)),
};
#undef HIDET_BITS
#undef HIDET_FAST
static_assert(kArith + sizeof kRows / sizeof kRows[0] < 252);

}  // namespace

int arith_row(const std::string& primitive) {
  for (const Row& row : kRows)
    if (primitive == row.name) return kArith + static_cast<int>(&row - kRows);
  return -1;
}
Cell arith(int row, Cell a, Cell b, Cell c, DType t) {
  return kRows[row - kArith].eval(a, b, c, t);
}

}  // namespace hidet::backends::sim
