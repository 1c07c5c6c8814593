// cases_math.cpp - mathematical functions in f32, f64 and f16, against the C library in f64.
#include "primitives/cases.h"

#include <limits>

namespace hidet::primitives {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = HUGE_VAL;

struct Function1 {
  const char* row;
  double (*f)(double);
};
#define HIDET_F(name) {#name, [](double x) { return std::name(x); }}
const Function1 kFunctions[] = {
    HIDET_F(exp),
    HIDET_F(exp2),
    HIDET_F(expm1),
    HIDET_F(log),
    HIDET_F(log2),
    HIDET_F(log10),
    HIDET_F(log1p),
    HIDET_F(sqrt),
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    HIDET_F(tanh),
    HIDET_F(erf),
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    HIDET_F(sin),
    HIDET_F(cos),
    HIDET_F(tan),
    HIDET_F(asin),
    HIDET_F(acos),
    HIDET_F(atan),
    HIDET_F(sinh),
    HIDET_F(cosh),
    HIDET_F(asinh),
    HIDET_F(acosh),
    HIDET_F(atanh),
    HIDET_F(floor),
    HIDET_F(ceil),
    {"round", [](double x) { return std::nearbyint(x); }},
    HIDET_F(trunc),
    {"abs", [](double x) { return std::fabs(x); }},
};
#undef HIDET_F

/// Numbers inside and outside the domains, ties, both zeros, a denormal, infinities, NaN.
std::vector<double> arguments() {
  std::vector<double> out{0.0,   -0.0, 1,     -1,    0.5,  -0.5, 1.5,   2.5,  -2.5,  3.7,
                          -3.7,  10,   -10,   20.25, -20,  50,   -50,   1e-3, -1e-3, 1e-20,
                          1e-40, 7,    100.5, 1e6,   1e10, kInf, -kInf, kNaN};
  for (int i = 0; i < 36; i++) out.push_back((i - 18) * 0.37 + 0.011);
  return out;
}

}  // namespace

void add_math(Cases& cases) {
  for (const DType t : {f32, f64, f16})
    for (const Function1& f : kFunctions) {
      if (t == f16 && f.row[0] != 'e' && f.row[0] != 't')
        continue;  // a few: they are computed in f32
      const Tensor x = numbers(t, arguments());
      const Tolerance close = t == f64   ? Tolerance{1e-14, 1e-300}
                              : t == f16 ? Tolerance{2e-3, 1e-7}
                                         : Tolerance{1e-6, 1e-37};
      cases.push_back(elementwise(
          {.row = f.row,
           .name = t.name(),
           .out = t,
           .inputs = {x},
           .record =
               [&](const auto& v) { return lang::detail::math(f.row, {lang::Located(v[0])}); },
           // Overflow is that of the dtype.
           .expect = [&](const auto& v) { return numbers(t, {f.f(v[0])}).to_doubles()[0]; },
           .value = close,
           .gpu = close}));
    }
  const std::vector<double> a = arguments(), b(a.rbegin(), a.rend()),
                            c = sequence(64, [](int i) { return i * 0.25 - 3; });
  cases.push_back(elementwise({.row = "fma",
                               .out = f32,
                               .inputs = {numbers(f32, a), numbers(f32, b), numbers(f32, c)},
                               .record = [](const auto& v) { return lang::fma(v[0], v[1], v[2]); },
                               .expect =
                                   [](const auto& v) {
                                     return std::fma(static_cast<float>(v[0]),
                                                     static_cast<float>(v[1]),
                                                     static_cast<float>(v[2]));
                                   }}));
  cases.push_back(elementwise({.row = "isnan",
                               .out = boolean,
                               .inputs = {numbers(f32, a)},
                               .record = [](const auto& v) { return lang::isnan(v[0]); },
                               .expect = [](const auto& v) { return std::isnan(v[0]); }}));
  cases.push_back(elementwise({.row = "isinf",
                               .out = boolean,
                               .inputs = {numbers(f32, a)},
                               .record = [](const auto& v) { return lang::isinf(v[0]); },
                               .expect = [](const auto& v) { return std::isinf(v[0]); }}));
}

}  // namespace hidet::primitives
