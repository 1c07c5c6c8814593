// math_check.h - the error of emitted f32 functions against double, in units of the last place.
#pragma once
#include <hidet/ir/primitives.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "codegen/harness.h"

namespace hidet::testing {

struct MathRow {
  const char* name;
  double (*exact)(double);
};
inline constexpr MathRow kMathRows[] = {
    {"exp", [](double x) { return std::exp(x); }},
    {"exp2", [](double x) { return std::exp2(x); }},
    {"expm1", [](double x) { return std::expm1(x); }},
    {"log", [](double x) { return std::log(x); }},
    {"log2", [](double x) { return std::log2(x); }},
    {"log10", [](double x) { return std::log10(x); }},
    {"log1p", [](double x) { return std::log1p(x); }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"erf", [](double x) { return std::erf(x); }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"tan", [](double x) { return std::tan(x); }},
    {"asin", [](double x) { return std::asin(x); }},
    {"acos", [](double x) { return std::acos(x); }},
    {"atan", [](double x) { return std::atan(x); }},
    {"sinh", [](double x) { return std::sinh(x); }},
    {"cosh", [](double x) { return std::cosh(x); }},
    {"asinh", [](double x) { return std::asinh(x); }},
    {"acosh", [](double x) { return std::acosh(x); }},
    {"atanh", [](double x) { return std::atanh(x); }},
};

/// launch(x, y, n) with n a multiple of 16: y = name(x), by 16 lanes or one by one.
inline ir::Module math_module(const char* name, bool vectors) {
  using namespace ir;
  const auto whole = [](int64_t v) { return make_int(v, Type(i64)); };
  Function fn;
  fn.name = "launch";
  fn.kind = FuncKind::public_;
  const VarRef x = make_var("x", Type::pointer(Type(f32))),
               y = make_var("y", Type::pointer(Type(f32))), n = make_var("n", Type(i64)),
               j = make_var("j", Type(i64)), v = make_var("v", Type(i64));
  fn.params = {x, y, n};
  const Expr at = make_binary(BinaryOp::add, j, v);
  const Stmt body = make_stmt<Store>({}, y, at, call_math(name, {make_load(x, at)}));
  const LoopKind how = vectors ? LoopKind::vectorize : LoopKind::serial;
  const Stmt lanes = make_stmt<For>({}, v, whole(0), whole(16), whole(1), how, int64_t{1}, body);
  fn.body = make_stmt<For>({}, j, whole(0), n, whole(16), LoopKind::serial, int64_t{1}, lanes);
  Module m;
  m.name = name;
  m.functions = {fn};
  return m;
}

/// |y - exact| in units of the last place of a float beside `exact`; infinity where one is NaN or infinite
/// and the other is not so in f32.
inline double ulps(float y, double exact) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(y) || std::isnan(exact)) return std::isnan(y) && std::isnan(exact) ? 0 : inf;
  if (y == rounded) return std::signbit(y) == std::signbit(rounded) ? 0 : inf;
  // The step after the largest float counts as one place.
  const double most = std::ldexp(1.0, 128), got = std::isinf(y) ? std::copysign(most, y) : y;
  const double want = std::fabs(exact) > most ? std::copysign(most, exact) : exact;
  const int e = want == 0 ? -126 : std::max(std::ilogb(want), -126);
  return std::fabs(got - want) / std::ldexp(1.0, std::min(e, 127) - 23);
}

/// The worst error of one function.
struct Worst {
  double error = 0;
  float at = 0, result = 0;
};

inline std::string text(const MathRow& row, const Worst& worst) {
  char out[160];
  std::snprintf(out, sizeof out, "%-8s %.3f ULP at %a (%.9g) = %.9g", row.name, worst.error,
                static_cast<double>(worst.at), static_cast<double>(worst.at),
                static_cast<double>(worst.result));
  return out;
}

class MathChecker {
 public:
  explicit MathChecker(const MathRow& row, const std::string& level = "native")
      : row_(row),
        vector_(math_module(row.name, true), level),
        scalar_(math_module(row.name, false), level) {}

  /// Checks bit patterns first, first + stride ... (count of them, a multiple of 16); false where scalar and vector
  /// code differ in a bit.
  bool run(uint32_t first, uint32_t stride, size_t count) {
    x_.resize(count), y_.resize(count), z_.resize(count);
    for (size_t i = 0; i < count; i++)
      x_[i] = std::bit_cast<float>(first + static_cast<uint32_t>(i) * stride);
    const auto n = static_cast<int64_t>(count);
    bool fine = vector_.call("launch", {value(x_.data()), value(y_.data()), value(n)}) == 0 &&
                scalar_.call("launch", {value(x_.data()), value(z_.data()), value(n)}) == 0;
    for (size_t i = 0; i < count; i++) {
      fine = fine && (std::bit_cast<uint32_t>(y_[i]) == std::bit_cast<uint32_t>(z_[i]) ||
                      (std::isnan(y_[i]) && std::isnan(z_[i])));
      const double error = ulps(y_[i], row_.exact(x_[i]));
      if (error > worst.error) worst = {error, x_[i], y_[i]};
    }
    return fine;
  }
  std::string text() const { return testing::text(row_, worst); }
  Worst worst;

 private:
  const MathRow& row_;
  Loaded vector_, scalar_;
  std::vector<float> x_, y_, z_;
};

}  // namespace hidet::testing
