// c_math.cpp - f32 algorithms of the emitted C, branch-free over vectors $V (float) and $I (int32), with
// $fma for one rounding. The same text serves one lane, so that vector and scalar code give equal bits.
// Polynomials are own minimax fits (docs/cpu_kernels.md). NaN goes through; infinities give the limits. All 2^32 inputs
// of each were compared with double (tests/bench/math): at most 2 ULP.
#include "prelude.h"

#include <map>

namespace hidet::codegen {
namespace {

// Each text is a function body of `x` that returns $V. `$exp(y)` is e^y, a call of the exp below; `$clamp` and `$scale` are
// the two texts here.

// x within [low, high]; NaN stays. One instruction for each end.
constexpr const char kClamp[] =
    R"(  $I m = ($I)(($V){} + low > x);
  x = ($V)((m & ($I)(($V){} + low)) | (~m & ($I)x));
  m = ($I)(($V){} + high < x);
  return ($V)((m & ($I)(($V){} + high)) | (~m & ($I)x));
)";

// x * 2^t for a whole t. 2^t goes in as two factors, of which the first gives no rounding, so that results near the denormals
// and the largest float are right; AVX-512 has an instruction with this result. |x| < 2, so that below 2^-150 nothing is left: it
// becomes 0 before, since the CPU takes 50 times as long for a result that it has to round to a denormal or to 0.
constexpr const char kScale[] =
    R"(  $I n = ($I)(t + 0x1.8p23f) - 0x4b400000, half = n >> 1;
  x = ($V)(($I)x & ~($I)(t < -150.0f));
  return x * ($V)((half + 127) << 23) * ($V)((n - half + 127) << 23);
)";
constexpr const char kScale512[] =
    R"(  typedef float part __attribute__((vector_size(64), may_alias));
  for (unsigned i = 0; i < sizeof x / sizeof(part); ++i)
    ((part*)&x)[i] = __builtin_ia32_scalefps512_mask(((part*)&x)[i], ((part*)&t)[i], (part){},
        __builtin_ia32_cmpps512_mask(((part*)&t)[i], (part){} - 150.0f, 0x15, (unsigned short)-1, 4), 4);
  return x;
)";

// What is 0 or infinity anyway is bounded, so that t is a whole number; in whole AVX-512 vectors `$scale` makes 0 of anything below
// 2^-150, infinities and all, so that only large x is.
std::string bounded(const char* low, const char* high, bool wide) {
  const std::string both = std::string("  $V y = $clamp(x, ") + low + ", " + high + ");\n";
  if (!wide) return both;
  return std::string("#ifdef __AVX512F__\n  $I m = ($I)(($V){} + ") + high +
         " < x);\n  $V y = ($V)((m & ($I)(($V){} + " + high + ")) | (~m & ($I)x));\n#else\n" +
         both + "#endif\n";
}

// 2^t * 2^r for |r| <= 1/2. Worst error of exp2 0.88 ULP, of exp 1.02.
constexpr const char kPower[] =
    R"(  $V p = $fma(r, ($V){} + 0x1.41fbb2p-13f, ($V){} + 0x1.5f3e52p-10f);
  p = $fma(p, r, ($V){} + 0x1.3b2d5p-7f);
  p = $fma(p, r, ($V){} + 0x1.c6aefp-5f);
  p = $fma(p, r, ($V){} + 0x1.ebfbd8p-3f);
  p = $fma(p, r, ($V){} + 0x1.62e43p-1f);
  p = $fma(p, r, ($V){} + 1.0f);
  return $scale(p, t);
)";

// e^x = 2^t * 2^r, t = round(x log2 e) by adding 1.5 * 2^23, r what is left of x log2 e, whose last digits are a number of their own.
constexpr const char kExp[] =
    R"(  $V t = $fma(y, ($V){} + 0x1.715476p+0f, ($V){} + 0x1.8p23f) - 0x1.8p23f;
  $V r = $fma(y, ($V){} + 0x1.715476p+0f, -t);
  r = $fma(y, ($V){} + 0x1.4ae0cp-26f, r);
)";

constexpr const char kExp2[] =
    R"(  $V t = (y + 0x1.8p23f) - 0x1.8p23f;
  $V r = y - t;
)";

// e^x - 1 = 2 (s q + (s - 1/2)), q = e^r - 1, s = 2^(n-1). |x| < 2^-24 gives x.
constexpr const char kExpm1[] =
    R"(  $V y = $clamp(x, -30.0f, 89.0f);
  $V t = $fma(y, ($V){} + 0x1.715476p+0f, ($V){} + 0x1.8p23f);
  $I n = ($I)t - 0x4b400000;
  t = t - 0x1.8p23f;
  $V r = $fma(t, ($V){} - 0x1.62e4p-1f, y);
  r = $fma(t, ($V){} - 0x1.7f7d1cp-20f, r);
  $V p = $fma(r, ($V){} + 0x1.6dbcc4p-10f, ($V){} + 0x1.124146p-7f);
  p = $fma(p, r, ($V){} + 0x1.555454p-5f);
  p = $fma(p, r, ($V){} + 0x1.555486p-3f);
  p = $fma(p, r, ($V){} + 0.5f);
  $V q = $fma(p, r * r, r), s = ($V)((n + 126) << 23);
  $V z = 2.0f * $fma(q, s, s - 0.5f);
  $I tiny = ($I)(($V)(($I)x & 0x7fffffff) < 0x1p-24f);
  return ($V)((tiny & ($I)x) | (~tiny & ($I)z));
)";

// log x = e ln 2 + log m, m in [sqrt(1/2), sqrt 2), f = m - 1, log m = f - f^2/2 + f^3 L(f). Denormals are scaled first.
constexpr const char kLogHead[] = R"(  $I small = ($I)(x < 0x1p-126f);
  $I bits = ($I)((small & ($I)(x * 0x1p23f)) | (~small & ($I)x)) - 0x3f3504f3;
  $V e = __builtin_convertvector((bits >> 23) - (small & 23), $V);
  $V f = ($V)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  $V p = $fma(f, ($V){} + 0x1.145df6p-4f, ($V){} - 0x1.de3ed2p-4f);
  p = $fma(p, f, ($V){} + 0x1.e6ef22p-4f);
  p = $fma(p, f, ($V){} - 0x1.fc218p-4f);
  p = $fma(p, f, ($V){} + 0x1.233774p-3f);
  p = $fma(p, f, ($V){} - 0x1.555c52p-3f);
  p = $fma(p, f, ($V){} + 0x1.99a4b4p-3f);
  p = $fma(p, f, ($V){} - 0x1.000006p-2f);
  p = $fma(p, f, ($V){} + 0x1.555548p-2f);
  p = $fma(p, f, ($V){} - 0.5f);
  $V g = $fma(p, f * f, f);
)";
// -inf at 0, NaN below, +inf and NaN stay.
constexpr const char kLogTail[] =
    R"(  $I zero = ($I)(x == 0.0f), bad = ($I)(x < 0.0f), keep = ($I)(x != x) | ($I)(x > 0x1.fffffep127f);
  $I fine = ~(zero | bad | keep);
  return ($V)((fine & ($I)y) | (keep & ($I)x) | (bad & 0x7fc00000) | (zero & (int32_t)0xff800000));
)";
constexpr const char kLog[] =
    R"(  $V y = $fma(e, ($V){} + 0x1.62e4p-1f, $fma(e, ($V){} + 0x1.7f7d1cp-20f, g));
)";
constexpr const char kLog2[] =
    R"(  $V y = $fma(g, ($V){} + 0x1.715476p+0f, $fma(g, ($V){} + 0x1.4ae0cp-26f, e));
)";
constexpr const char kLog10[] =
    R"(  $V y = $fma(e, ($V){} + 0x1.344p-2f, $fma(g, ($V){} + 0x1.bcb7b2p-2f, e * 0x1.3509f8p-18f));
)";

// 1 - 2 / (e^(2 |x|) + 1) with x's sign; |x| < 0.625: x + x^3 H(x^2).
constexpr const char kTanh[] = R"(  $I sign = ($I)x & (int32_t)0x80000000;
  $V a = ($V)(($I)x & 0x7fffffff), u = x * x;
  $I high = ($I)(a > 10.0f);
  $V b = ($V)((high & ($I)(($V){} + 10.0f)) | (~high & ($I)a));
  $V big = 1.0f - 2.0f / ($exp(b + b) + 1.0f);
  $V p = $fma(u, ($V){} - 0x1.76ac22p-8f, ($V){} + 0x1.5256dap-6f);
  p = $fma(p, u, ($V){} - 0x1.b8444ap-5f);
  p = $fma(p, u, ($V){} + 0x1.110768p-3f);
  p = $fma(p, u, ($V){} - 0x1.555534p-2f);
  $V near = $fma(p * u, x, x);
  $I small = ($I)(a < 0.625f);
  return ($V)((small & ($I)near) | (~small & ($I)big) | sign);
)";

// x + x Q(x^2) below 0.921875; above 1 - e^-S(|x|) with x's sign. Worst error 1.25 ULP.
constexpr const char kErf[] = R"(  $I sign = ($I)x & (int32_t)0x80000000;
  $V a = ($V)(($I)x & 0x7fffffff), u = x * x;
  $V s = $fma(u, ($V){} - 0x1.3b4654p-11f, ($V){} + 0x1.478c84p-8f);
  s = $fma(s, u, ($V){} - 0x1.b69a7cp-6f);
  s = $fma(s, u, ($V){} + 0x1.ce1b94p-4f);
  s = $fma(s, u, ($V){} - 0x1.8126eep-2f);
  s = $fma(s, u, ($V){} + 0x1.06eba6p-3f);
  s = $fma(s, x, x);
  $I high = ($I)(a > 3.95f);
  $V t = ($V)((high & ($I)(($V){} + 3.95f)) | (~high & ($I)a));
  $V q = $fma(t, ($V){} + 0x1.625118p-16f, ($V){} - 0x1.c7db3ep-12f);
  q = $fma(q, t, ($V){} + 0x1.11714p-8f);
  q = $fma(q, t, ($V){} - 0x1.9b9d44p-6f);
  q = $fma(q, t, ($V){} + 0x1.bb899ap-4f);
  q = $fma(q, t, ($V){} + 0x1.444566p-1f);
  q = $fma(q, t, ($V){} + 0x1.21280cp+0f);
  q = $fma(q, t, ($V){} - 0x1.6f676p-13f);
  $V big = 1.0f - $exp(-q);
  big = ($V)(($I)big | sign);
  $I small = ($I)(a < 0.921875f);
  return ($V)((small & ($I)s) | (~small & ($I)big));
)";

// e = e^-|x|: 1 / (1 + e), or e / (1 + e) below 0, so that small results keep their bits; what 1 + e rounds
// away is put back.
constexpr const char kSigmoid[] =
    R"(  $V e = $exp(($V)(($I)x | (int32_t)0x80000000));
  $I negative = ($I)(x < 0.0f);
  $V above = ($V)((negative & ($I)e) | (~negative & 0x3f800000));
  $V y = 1.0f + e, rest = e - (y - 1.0f), q = above / y;
  return $fma(q, -rest, q);
)";

// r = x - n pi/2, |r| <= pi/4, n through the low bits of 1.5 * 2^23, pi/2 in three parts; s = sin r, c = cos r.
constexpr const char kQuarters[] = R"(  $V a = ($V)(($I)x & 0x7fffffff);
  $V t = $fma(x, ($V){} + 0x1.45f306p-1f, ($V){} + 0x1.8p23f);
  $I n = ($I)t - 0x4b400000;
  t = t - 0x1.8p23f;
  $V r = $fma(t, ($V){} - 0x1.921fb6p+0f, x);
  r = $fma(t, ($V){} + 0x1.777a5cp-25f, r);
  r = $fma(t, ($V){} + 0x1.ee59dap-50f, r);
  $V u = r * r;
  $V s = $fma(u, ($V){} - 0x1.994222p-13f, ($V){} + 0x1.110736p-7f);
  s = $fma(s, u, ($V){} - 0x1.555546p-3f);
  s = $fma(s * u, r, r);
  $V c = $fma(u, ($V){} + 0x1.99ea04p-16f, ($V){} - 0x1.6c0c2ep-10f);
  c = $fma(c, u, ($V){} + 0x1.55554ap-5f);
  c = $fma(c, u * u, $fma(u, ($V){} - 0.5f, ($V){} + 1.0f));
)";
constexpr const char kSin[] = R"(  $I odd = -(n & 1), tiny = ($I)(a < 0x1p-12f);
  $I bits = ((odd & ($I)c) | (~odd & ($I)s)) ^ ((n << 30) & (int32_t)0x80000000);
  $V y = ($V)((tiny & ($I)x) | (~tiny & bits));
)";
constexpr const char kCos[] = R"(  $I odd = -(n & 1);
  $V y = ($V)(((odd & ($I)s) | (~odd & ($I)c)) ^ (((n + 1) << 30) & (int32_t)0x80000000));
)";
/// Lanes so large that three parts of pi/2 are too few go through the C library; so do infinities and NaN.
std::string with_large_lanes(const std::string& name) {
  return R"(  $I large = ~($I)(a < 0x1p17f);
  int32_t some = 0;
  for (unsigned i = 0; i < sizeof x / sizeof(float); ++i) some |= large[i];
  if (some)
    for (unsigned i = 0; i < sizeof x / sizeof(float); ++i)
      if (large[i]) y[i] = __builtin_)" +
         name + R"(f(x[i]);
  return y;
)";
}

const std::map<std::string, std::string>& table() {
  static const auto* const map = new std::map<std::string, std::string>{
      {"exp", bounded("-105.0f", "89.0f", false) + kExp + kPower},
      {"exp of 16s", bounded("-105.0f", "89.0f", true) + kExp + kPower},
      {"exp2", bounded("-151.0f", "129.0f", false) + kExp2 + kPower},
      {"exp2 of 16s", bounded("-151.0f", "129.0f", true) + kExp2 + kPower},
      {"expm1", kExpm1},
      {"log", std::string(kLogHead) + kLog + kLogTail},
      {"log2", std::string(kLogHead) + kLog2 + kLogTail},
      {"log10", std::string(kLogHead) + kLog10 + kLogTail},
      {"tanh", kTanh},
      {"erf", kErf},
      {"sigmoid", kSigmoid},
      {"sin", std::string(kQuarters) + kSin + with_large_lanes("sin")},
      {"cos", std::string(kQuarters) + kCos + with_large_lanes("cos")},
      {"clamp", kClamp},
      {"scale", kScale},
      {"scale of 16s",
       std::string("#ifdef __AVX512F__\n") + kScale512 + "#else\n" + kScale + "#endif\n"},
  };
  return *map;
}

}  // namespace

const char* vector_math(const std::string& name) {
  const auto it = table().find(name);
  return it == table().end() ? nullptr : it->second.c_str();
}

}  // namespace hidet::codegen
