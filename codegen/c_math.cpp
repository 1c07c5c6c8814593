// c_math.cpp - f32 algorithms of the emitted C, branch-free over vectors $V (float) and $I (int32), with
// $fma for one rounding. The same text serves one lane, so that vector and scalar code give equal bits.
// NaN goes through; infinities give the limits.
#include "prelude.h"

#include <cstring>
#include <utility>

namespace hidet::codegen {
namespace {

// e^x = 2^n * e^r, n = round(x / ln 2), |r| <= ln 2 / 2, a polynomial of degree 6 for e^r.
// 2^n in two factors, so that results near the denormals and the largest float are right.
constexpr const char kExp[] = R"(  $V t = x * 1.44269504f;
  $V big = $fma(x, ($V){} + 1.44269504f, ($V){} + 12582912.0f) - 12582912.0f;
  $I low = ($I)(x < -104.0f), high = ($I)(x > 89.0f);
  $V n = big;
  (void)t;
  $V r = $fma(n, ($V){} - 0.693359375f, x);
  r = $fma(n, ($V){} + 2.12194440e-4f, r);
  $V p = ($V){} + 1.38888889e-3f;
  p = $fma(p, r, ($V){} + 8.33333333e-3f);
  p = $fma(p, r, ($V){} + 4.16666667e-2f);
  p = $fma(p, r, ($V){} + 1.66666667e-1f);
  p = $fma(p, r, ($V){} + 0.5f);
  p = $fma(p, r, ($V){} + 1.0f);
  p = $fma(p, r, ($V){} + 1.0f);
  $I safe = ~(low | high | ($I)(x != x));
  $I k = __builtin_convertvector(($V)(($I)n & safe), $I);
  $I half = k >> 1;
  $V y = p * ($V)((half + 127) << 23) * ($V)((k - half + 127) << 23);
  $V inf = ($V)(($I){} + 0x7f800000);
  y = ($V)((high & ($I)inf) | (~high & ($I)y));
  y = ($V)(~low & ($I)y);
  $I nan = ($I)(x != x);
  return ($V)((nan & ($I)x) | (~nan & ($I)y));
)";

constexpr std::pair<const char*, const char*> kTable[] = {
    {"exp", kExp},
};

}  // namespace

const char* vector_math(const std::string& name) {
  for (const auto& [key, body] : kTable)
    if (name == key) return body;
  return nullptr;
}

}  // namespace hidet::codegen
