// dtype.cpp - the table of scalar types, and conversions of the 16-bit and 8-bit floats.
// Threading: constant tables and pure functions; thread-safe.
#include "hidet/runtime/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

#include "hidet/runtime/error.h"

namespace hidet {
namespace {

enum class Class : uint8_t { boolean, sint, uint, floating };

struct Row {
  const char* name;
  const char* c_name;
  const char* numpy_name;
  int bits;
  Class kind;
  const char* aliases;  // other names that parse() takes, each with a blank before and after
};

// In the order of DTypeCode.
constexpr Row kRows[kNumDTypes] = {
    {"boolean", "bool", "|b1", 8, Class::boolean, " bool "},
    {"i8", "int8_t", "|i1", 8, Class::sint, " int8 "},
    {"i16", "int16_t", "<i2", 16, Class::sint, " int16 "},
    {"i32", "int32_t", "<i4", 32, Class::sint, " int32 "},
    {"i64", "int64_t", "<i8", 64, Class::sint, " int64 "},
    {"u8", "uint8_t", "|u1", 8, Class::uint, " uint8 "},
    {"u16", "uint16_t", "<u2", 16, Class::uint, " uint16 "},
    {"u32", "uint32_t", "<u4", 32, Class::uint, " uint32 "},
    {"u64", "uint64_t", "<u8", 64, Class::uint, " uint64 "},
    {"f16", "_Float16", "<f2", 16, Class::floating, " float16 half "},
    {"bf16", "uint16_t", "|V2", 16, Class::floating, " bfloat16 "},
    {"f32", "float", "<f4", 32, Class::floating, " float32 float "},
    {"f64", "double", "<f8", 64, Class::floating, " float64 double "},
    {"tf32", "float", "<f4", 32, Class::floating, " tfloat32 "},
    {"f8e4m3", "uint8_t", "|V1", 8, Class::floating,
     " float8e4m3 float8e4m3fn float8_e4m3fn f8e4m3fn "},
    {"f8e5m2", "uint8_t", "|V1", 8, Class::floating, " float8e5m2 float8_e5m2 "},
    {"i4", "uint8_t", "|V1", 4, Class::sint, " int4 int4b "},
    {"u4", "uint8_t", "|V1", 4, Class::uint, " uint4 uint4b "},
};

const Row& row(DTypeCode code) {
  const auto at = static_cast<size_t>(code);
  HIDET_CHECK(at < kNumDTypes, "dtype code ", at);
  return kRows[at];
}

// Rounds a finite or infinite double's bits to a smaller binary format with `exponent` and `mantissa`
// bits: nearest even, subnormals kept, overflow to infinity.
uint16_t narrow(double value, int exponent, int mantissa) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 63) << (exponent + mantissa));
  const auto infinity = static_cast<uint16_t>(((1 << exponent) - 1) << mantissa);
  const int biased = static_cast<int>((bits >> 52) & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (biased == 0x7ff) {
    if (fraction == 0) return sign | infinity;
    const auto payload = static_cast<uint16_t>(fraction >> (52 - mantissa));
    return sign | infinity | payload | static_cast<uint16_t>(1 << (mantissa - 1));  // quiet
  }
  if (biased == 0) return sign;  // a double's subnormal is far below every smaller format
  const int bias = (1 << (exponent - 1)) - 1;
  int target = biased - 1023 + bias;
  uint64_t significand = fraction | (uint64_t{1} << 52);
  int drop = 52 - mantissa;
  if (target <= 0) {
    drop += 1 - target;
    target = 0;
    if (drop > 53) return sign;  // less than half of the least subnormal
  }
  const uint64_t half = uint64_t{1} << (drop - 1);
  const uint64_t rest = significand & ((half << 1) - 1);
  uint64_t kept = significand >> drop;
  if (rest > half || (rest == half && (kept & 1))) kept++;
  // The hidden bit is added to the exponent field: a carry out of the fraction does the right thing.
  const uint64_t result =
      target == 0 ? kept : (static_cast<uint64_t>(target - 1) << mantissa) + kept;
  return sign | static_cast<uint16_t>(result >= infinity ? infinity : result);
}

}  // namespace

const char* DType::name() const { return row(code_).name; }
const char* DType::c_name() const { return row(code_).c_name; }
const char* DType::numpy_name() const { return row(code_).numpy_name; }
int DType::bits() const { return row(code_).bits; }
bool DType::is_float() const { return row(code_).kind == Class::floating; }
bool DType::is_integer() const {
  return row(code_).kind == Class::sint || row(code_).kind == Class::uint;
}
bool DType::is_signed() const {
  return row(code_).kind == Class::sint || row(code_).kind == Class::floating;
}

int64_t DType::min_int() const {
  HIDET_CHECK(!is_float(), name(), " has no integer range");
  if (!is_signed()) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - bits());
}

uint64_t DType::max_int() const {
  HIDET_CHECK(!is_float(), name(), " has no integer range");
  if (is_boolean()) return 1;
  return std::numeric_limits<uint64_t>::max() >> (64 - bits() + (is_signed() ? 1 : 0));
}

DType DType::parse(std::string_view name) {
  const std::string word = " " + std::string(name) + " ";
  for (int i = 0; i < kNumDTypes; i++) {
    if (name == kRows[i].name) return DType(static_cast<DTypeCode>(i));
    if (name.find(' ') == name.npos && std::strstr(kRows[i].aliases, word.c_str()))
      return DType(static_cast<DTypeCode>(i));
  }
  std::string known;
  for (const Row& r : kRows) known += std::string(known.empty() ? "" : ", ") + r.name;
  throw Error(ErrorCode::usage, detail::concat("no dtype is called '", name, "': use ", known));
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype.name(); }

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t f64_to_f16(double value) { return narrow(value, 5, 10); }
uint16_t f32_to_f16(float value) { return narrow(static_cast<double>(value), 5, 10); }

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f64_to_bf16(double value) { return narrow(value, 8, 7); }

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace hidet
