// half.cpp - the three conversions that Clang calls by name, in integer arithmetic.
// A shared object must need nothing but libc and libm, so it brings them along where it calls them.
// Threading: pure functions.
#include "cpu/half.h"

#include <algorithm>
#include <string_view>

namespace hidet::backends::cpu {
namespace {

constexpr std::string_view kNames[] = {"__extendhfsf2", "__truncsfhf2", "__truncdfhf2"};

// Round to nearest even, one rounding; NaN stays NaN and becomes quiet; too large gives infinity.
constexpr const char* kText = R"(
_Float16 __truncdfhf2(double value) {
  unsigned long bits;
  __builtin_memcpy(&bits, &value, 8);
  const unsigned long magnitude = bits & 0x7fffffffffffffffUL;
  unsigned long half;
  if (magnitude > 0x7ff0000000000000UL) {
    half = 0x7e00 | ((magnitude >> 42) & 0x1ff);
  } else if (magnitude >= 0x40effe0000000000UL) { /* 65520: halfway to the first that has no half */
    half = 0x7c00;
  } else if (magnitude < 0x3f10000000000000UL) { /* below 2^-14: the sum's last bit is worth 2^-24 */
    double positive, sum;
    __builtin_memcpy(&positive, &magnitude, 8);
    sum = positive + 0x1p28;
    __builtin_memcpy(&half, &sum, 8);
    half &= 0x7ff;
  } else {
    half = magnitude - (1008UL << 52);
    half = (half + 0x1ffffffffffUL + ((half >> 42) & 1)) >> 42;
  }
  const unsigned short result = (unsigned short)(half | (bits >> 48 & 0x8000));
  _Float16 out;
  __builtin_memcpy(&out, &result, 2);
  return out;
}
_Float16 __truncsfhf2(float value) { return __truncdfhf2(value); }
float __extendhfsf2(_Float16 value) {
  unsigned short half;
  __builtin_memcpy(&half, &value, 2);
  const unsigned exponent = half >> 10 & 31, fraction = half & 0x3ff;
  unsigned bits;
  float out;
  if (exponent == 0) {
    out = (float)(int)fraction * 0x1p-24f;
    __builtin_memcpy(&bits, &out, 4);
  } else if (exponent == 31) {
    bits = 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0);
  } else {
    bits = (exponent + 112) << 23 | fraction << 13;
  }
  bits |= (half & 0x8000u) << 16;
  __builtin_memcpy(&out, &bits, 4);
  return out;
}
)";

}  // namespace

bool needs_half_support(std::span<const Bytes> objects) {
  return std::any_of(objects.begin(), objects.end(), [](const Bytes& object) {
    const std::string_view text(reinterpret_cast<const char*>(object.data()), object.size());
    return std::any_of(std::begin(kNames), std::end(kNames),
                       [&](std::string_view name) { return text.find(name) != text.npos; });
  });
}

const Unit& half_support() {
  static const Unit unit{"half conversions", kText};
  return unit;
}

}  // namespace hidet::backends::cpu
