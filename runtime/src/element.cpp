// element.cpp - elements of every dtype to doubles and back.
// Threading: pure functions; thread-safe.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "hidet/runtime/error.h"
#include "hidet/runtime/thread_pool.h"
#include "src/tensor_data.h"

namespace hidet::detail {
namespace {

using ToDoubles = void (*)(const uint8_t*, int64_t, double*);
using FromDoubles = void (*)(const double*, int64_t, uint8_t*, DType);

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A small float of 8 bits. e4m3 has no infinity: only all ones is NaN.
double small_float(uint8_t bits, int mantissa, bool has_infinity) {
  const int exponent_bits = 7 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7f) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  const double sign = bits & 0x80 ? -1 : 1;
  const bool top = exponent == (1 << exponent_bits) - 1;
  if (top && has_infinity)
    return sign * (fraction ? std::numeric_limits<double>::quiet_NaN()
                            : std::numeric_limits<double>::infinity());
  if (top && fraction == (1 << mantissa) - 1)
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}

// Nearest even; e5m2 overflows to infinity, e4m3 to NaN.
uint8_t to_small_float(double value, int mantissa, bool has_infinity) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  const int exponent_bits = 7 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  const int top = ((1 << exponent_bits) - 1) << mantissa;
  const auto too_large = static_cast<uint8_t>(sign | (has_infinity ? top : 0x7f));
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7f);
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return too_large;
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // nearbyint rounds to nearest even; a carry moves into the exponent by itself.
  const double steps = std::nearbyint(std::ldexp(magnitude, mantissa - exponent));
  const double bits = steps + static_cast<double>((exponent + bias - 1) * (1 << mantissa));
  const int largest = has_infinity ? top - 1 : 0x7e;
  if (bits > largest) return too_large;
  return static_cast<uint8_t>(sign | static_cast<int>(bits));
}

template <class T>
void numbers_to(const uint8_t* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; i++)
    to[i] = static_cast<double>(load<T>(from + i * static_cast<int64_t>(sizeof(T))));
}
template <float (*F)(uint16_t)>
void halves_to(const uint8_t* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; i++) to[i] = static_cast<double>(F(load<uint16_t>(from + i * 2)));
}
template <int Mantissa>
void eighths_to(const uint8_t* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; i++) to[i] = small_float(from[i], Mantissa, Mantissa == 2);
}
// The low half of a byte comes first.
template <bool Signed>
void nibbles_to(const uint8_t* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; i++) {
    const int nibble = (from[i / 2] >> (i % 2 * 4)) & 15;
    to[i] = Signed && nibble > 7 ? nibble - 16 : nibble;
  }
}

// 2^63 and 2^64 are doubles, the largest integers below them are not: compare with < the power.
void check_integer(double value, DType dtype) {
  const double low = static_cast<double>(dtype.min_int());
  const double high =
      std::ldexp(1.0, dtype.is_boolean() ? 1 : dtype.bits() - (dtype.is_signed() ? 1 : 0));
  HIDET_REQUIRE(value >= low && value < high && value == std::trunc(value), ErrorCode::usage, "",
                dtype, " does not hold the value ", value);
}

template <class T>
void integers_from(const double* from, int64_t count, uint8_t* to, DType dtype) {
  for (int64_t i = 0; i < count; i++) {
    check_integer(from[i], dtype);
    const T value = static_cast<T>(from[i]);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &value, sizeof value);
  }
}
template <class T>
void floats_from(const double* from, int64_t count, uint8_t* to, DType) {
  for (int64_t i = 0; i < count; i++) {
    const T value = static_cast<T>(from[i]);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &value, sizeof value);
  }
}
template <uint16_t (*F)(double)>
void halves_from(const double* from, int64_t count, uint8_t* to, DType) {
  for (int64_t i = 0; i < count; i++) {
    const uint16_t value = F(from[i]);
    std::memcpy(to + i * 2, &value, sizeof value);
  }
}
// tf32 is a float with a mantissa of 10 bits.
void tf32_from(const double* from, int64_t count, uint8_t* to, DType) {
  for (int64_t i = 0; i < count; i++) {
    auto bits = std::bit_cast<uint32_t>(static_cast<float>(from[i]));
    if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
    std::memcpy(to + i * 4, &bits, sizeof bits);
  }
}
template <int Mantissa>
void eighths_from(const double* from, int64_t count, uint8_t* to, DType) {
  for (int64_t i = 0; i < count; i++) to[i] = to_small_float(from[i], Mantissa, Mantissa == 2);
}
void nibbles_from(const double* from, int64_t count, uint8_t* to, DType dtype) {
  for (int64_t i = 0; i < count; i++) {
    check_integer(from[i], dtype);
    const int nibble = static_cast<int>(from[i]) & 15;
    to[i / 2] = static_cast<uint8_t>(i % 2 ? to[i / 2] | nibble << 4 : nibble);
  }
}

struct Row {
  ToDoubles to;
  FromDoubles from;
};

// In the order of DTypeCode.
constexpr Row kRows[kNumDTypes] = {
    {numbers_to<uint8_t>, integers_from<uint8_t>},    // boolean
    {numbers_to<int8_t>, integers_from<int8_t>},      // i8
    {numbers_to<int16_t>, integers_from<int16_t>},    // i16
    {numbers_to<int32_t>, integers_from<int32_t>},    // i32
    {numbers_to<int64_t>, integers_from<int64_t>},    // i64
    {numbers_to<uint8_t>, integers_from<uint8_t>},    // u8
    {numbers_to<uint16_t>, integers_from<uint16_t>},  // u16
    {numbers_to<uint32_t>, integers_from<uint32_t>},  // u32
    {numbers_to<uint64_t>, integers_from<uint64_t>},  // u64
    {halves_to<f16_to_f32>, halves_from<f64_to_f16>},
    {halves_to<bf16_to_f32>, halves_from<f64_to_bf16>},
    {numbers_to<float>, floats_from<float>},    // f32
    {numbers_to<double>, floats_from<double>},  // f64
    {numbers_to<float>, tf32_from},
    {eighths_to<3>, eighths_from<3>},  // f8e4m3
    {eighths_to<2>, eighths_from<2>},  // f8e5m2
    {nibbles_to<true>, nibbles_from},
    {nibbles_to<false>, nibbles_from},
};

}  // namespace

void to_doubles(DType dtype, const void* from, int64_t count, double* to) {
  kRows[static_cast<size_t>(dtype.code())].to(static_cast<const uint8_t*>(from), count, to);
}

void from_doubles(DType dtype, const double* from, int64_t count, void* to) {
  kRows[static_cast<size_t>(dtype.code())].from(from, count, static_cast<uint8_t*>(to), dtype);
}

void over_elements(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  constexpr int64_t kPiece = 4096;
  runtime::parallel_for((count + kPiece - 1) / kPiece, 4, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; piece++)
      body(piece * kPiece, std::min(count, (piece + 1) * kPiece));
  });
}

}  // namespace hidet::detail
