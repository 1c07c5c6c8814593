// lanes_math.cpp - the mathematical primitives of the reference, from the C++ library: float functions
// for f32 and below, double ones for f64.
#include <cmath>
#include <unordered_map>

#include "core/lanes.h"

namespace hidet::graph {
namespace {
template <class T>
T rsqrt(T x) {
  return 1 / std::sqrt(x);
}
template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}
template <class T>
T is_nan(T x) {
  return std::isnan(x);
}
template <class T>
T is_inf(T x) {
  return std::isinf(x);
}
template <class T>
T first(T x) {
  return x;
}

#define HIDET_STD(name) \
  {#name, [](float x) { return std::name(x); }, [](double x) { return std::name(x); }}
const MathFunction kTable[] = {
    HIDET_STD(exp),
    HIDET_STD(exp2),
    HIDET_STD(expm1),
    HIDET_STD(log),
    HIDET_STD(log2),
    HIDET_STD(log10),
    HIDET_STD(log1p),
    HIDET_STD(sqrt),
    HIDET_STD(tanh),
    HIDET_STD(erf),
    HIDET_STD(sin),
    HIDET_STD(cos),
    HIDET_STD(tan),
    HIDET_STD(asin),
    HIDET_STD(acos),
    HIDET_STD(atan),
    HIDET_STD(sinh),
    HIDET_STD(cosh),
    HIDET_STD(asinh),
    HIDET_STD(acosh),
    HIDET_STD(atanh),
    HIDET_STD(floor),
    HIDET_STD(ceil),
    HIDET_STD(trunc),
    {"round", [](float x) { return std::nearbyint(x); },
     [](double x) { return std::nearbyint(x); }},
    {"abs", [](float x) { return std::fabs(x); }, [](double x) { return std::fabs(x); }},
    {"rsqrt", rsqrt<float>, rsqrt<double>},
    {"sigmoid", sigmoid<float>, sigmoid<double>},
    {"isnan", is_nan<float>, is_nan<double>},
    {"isinf", is_inf<float>, is_inf<double>},
    {"fma", first<float>, first<double>},  // of three operands: LaneMachine does it
};
#undef HIDET_STD
}  // namespace

const MathFunction* find_math(const std::string& name) {
  static const auto* const index = [] {
    auto* map = new std::unordered_map<std::string, const MathFunction*>;
    for (const MathFunction& f : kTable) map->emplace(f.name, &f);
    return map;
  }();
  auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
}

}  // namespace hidet::graph
