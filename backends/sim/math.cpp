// math.cpp - the simulator's meaning of math primitives, and of values as bytes and other types.
#include <hidet/ir/fold.h>
#include <hidet/runtime/error.h>

#include <cmath>
#include <cstring>

#include "sim/values.h"

namespace hidet::backends::sim {

#define HIDET_SIM_MATH(name) \
  {#name, [](float x) { return std::name(x); }, [](double x) { return std::name(x); }}
const MathRow kMath[] = {
    HIDET_SIM_MATH(exp),
    HIDET_SIM_MATH(exp2),
    HIDET_SIM_MATH(expm1),
    HIDET_SIM_MATH(log),
    HIDET_SIM_MATH(log2),
    HIDET_SIM_MATH(log10),
    HIDET_SIM_MATH(log1p),
    HIDET_SIM_MATH(sqrt),
    HIDET_SIM_MATH(tanh),
    HIDET_SIM_MATH(erf),
    HIDET_SIM_MATH(sin),
    HIDET_SIM_MATH(cos),
    HIDET_SIM_MATH(tan),
    HIDET_SIM_MATH(asin),
    HIDET_SIM_MATH(acos),
    HIDET_SIM_MATH(atan),
    HIDET_SIM_MATH(sinh),
    HIDET_SIM_MATH(cosh),
    HIDET_SIM_MATH(asinh),
    HIDET_SIM_MATH(acosh),
    HIDET_SIM_MATH(atanh),
    HIDET_SIM_MATH(floor),
    HIDET_SIM_MATH(ceil),
    HIDET_SIM_MATH(trunc),
    {"round", [](float x) { return std::nearbyint(x); },
     [](double x) { return std::nearbyint(x); }},
    {"rsqrt", [](float x) { return 1.0f / std::sqrt(x); },
     [](double x) { return 1.0 / std::sqrt(x); }},
    {"sigmoid", [](float x) { return 1.0f / (1.0f + std::exp(-x)); },
     [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
};
#undef HIDET_SIM_MATH
const int kMathRows = static_cast<int>(sizeof kMath / sizeof kMath[0]);

Cell from_double(double v, DType t) {
  Cell c{.i = 0};
  if (t == f64) c.d = v;
  else c.f = static_cast<float>(ir::round_to(v, t));
  return c;
}

Cell convert(Cell c, DType from, DType to) {
  if (from.is_float()) {
    const double v = to_double(c, from);
    return to.is_float() ? from_double(v, to) : Cell{.i = ir::saturate(v, to)};
  }
  if (!to.is_float()) return Cell{.i = ir::wrap_int(c.i, to)};
  if (to == f32) {  // one rounding
    Cell out{.i = 0};
    out.f = from == u64 ? static_cast<float>(static_cast<uint64_t>(c.i)) : static_cast<float>(c.i);
    return out;
  }
  return from_double(ir::int_to_double(c.i, from), to);
}

Cell binary(ir::BinaryOp op, Cell a, Cell b, DType t) {
  if (!t.is_float()) return Cell{.i = ir::eval_int(op, a.i, b.i, t)};
  const double x = to_double(a, t), y = to_double(b, t);
  return ir::info(op).comparison ? Cell{.i = ir::eval_float_compare(op, x, y)}
                                 : from_double(ir::eval_float(op, x, y, t), t);
}

Cell combined(ir::Combine op, Cell old, Cell v, DType t) {
  using ir::BinaryOp, ir::Combine;
  switch (op) {
    case Combine::add: return binary(BinaryOp::add, old, v, t);
    case Combine::min: return binary(BinaryOp::min, old, v, t);
    case Combine::max: return binary(BinaryOp::max, old, v, t);
    case Combine::inc: return Cell{.i = old.i >= v.i ? 0 : old.i + 1};
    case Combine::dec: return Cell{.i = old.i == 0 || old.i > v.i ? v.i : old.i - 1};
    case Combine::bit_and: return binary(BinaryOp::bit_and, old, v, t);
    case Combine::bit_or: return binary(BinaryOp::bit_or, old, v, t);
    case Combine::bit_xor: return binary(BinaryOp::bit_xor, old, v, t);
  }
  HIDET_CHECK(false, "a reduction that is none");
}

Cell unary(ir::UnaryOp op, Cell a, DType t) {
  if (t.is_float()) return from_double(-to_double(a, t), t);
  const int64_t v = op == ir::UnaryOp::neg ? static_cast<int64_t>(0 - static_cast<uint64_t>(a.i))
                    : op == ir::UnaryOp::bit_not ? ~a.i
                                                 : !a.i;
  return Cell{.i = ir::wrap_int(v, t)};
}

Cell absolute(Cell a, DType t) {
  if (t.is_float()) return from_double(std::fabs(to_double(a, t)), t);
  return t.is_signed() && a.i < 0 ? unary(ir::UnaryOp::neg, a, t) : a;
}

Cell math(uint8_t row, Cell a, Cell b, Cell c, DType t) {
  const double x = to_double(a, t);
  switch (row) {
    case 255:
      return t == f64 ? from_double(std::fma(x, b.d, c.d), t)
                      : from_double(std::fma(a.f, b.f, c.f), t);
    case 254: return Cell{.i = std::isnan(x)};
    case 253: return Cell{.i = std::isinf(x)};
    case 252: return Cell{.i = std::isfinite(x)};
    default:
      if (row >= kArith) return arith(row, a, b, c, t);
      return t == f64 ? from_double(kMath[row].d(a.d), t) : from_double(kMath[row].f(a.f), t);
  }
}

}  // namespace hidet::backends::sim
