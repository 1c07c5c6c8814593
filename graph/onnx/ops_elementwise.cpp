// ops_elementwise.cpp - ONNX operators that work value by value. Most are one row: the operator's
// type, the opsets that have this form, and the graph function. Types are checked by the graph.
// Threading: thread-safe.
#include <hidet/graph/ops.h>

#include <array>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {
namespace {

using Outputs = std::vector<Tensor>;

/// A row of one input: `op` is the name that ops::unary knows.
Converter unary(const char* op_type, int64_t since, const char* op) {
  return {op_type, since, kAnyOpset,
          [op](const NodeCall& call) { return Outputs{ops::unary(op, call.input(0))}; }};
}

template <Tensor (*F)(const Tensor&, const Tensor&)>
Outputs binary(const NodeCall& call) {
  return {F(call.input(0), call.input(1))};
}

/// Min, Max, Sum: any number of inputs, from the left.
template <Tensor (*F)(const Tensor&, const Tensor&)>
Outputs variadic(const NodeCall& call) {
  const std::vector<Tensor> in = call.inputs();
  Tensor out = in[0];
  for (size_t i = 1; i < in.size(); i++) out = F(out, in[i]);
  return {out};
}

Outputs mean(const NodeCall& call) {
  const Outputs total = variadic<ops::add>(call);
  return {ops::mul(total[0], ops::scalar_like(total[0], 1.0 / call.input_count()))};
}

// fmod = 1 takes the dividend's sign, as C does; else the divisor's.
Outputs mod(const NodeCall& call) {
  const Tensor &a = call.input(0), &b = call.input(1);
  if (call.attr_int("fmod", 0) != 0) return {ops::mod(a, b, true)};
  if (a.dtype().is_float()) call.fail("needs fmod = 1 for floating point values");
  return {ops::mod(a, b, false)};
}

// The exponent may have another type than the base, which the result has. Squares and cubes, which norms and gelus
// write so, are products: a power costs fifty times as much.
Outputs power(const NodeCall& call) {
  const Tensor& base = call.input(0);
  const bool wide = base.dtype() == f32 || base.dtype() == f64;
  if (wide && call.shape(1).empty()) {
    const double known = call.scalar_if_constant(1).value_or(0);
    if (known == 2 || known == 3) {
      const Tensor square = ops::mul(base, base);
      return {known == 2 ? square : ops::mul(square, base)};
    }
  }
  Tensor exponent = call.input(1);
  if (exponent.dtype() == base.dtype()) return {ops::pow(base, exponent)};
  if (!base.dtype().is_float() && exponent.dtype().is_float())
    return {ops::cast(ops::pow(ops::cast(base, f64), ops::cast(exponent, f64)), base.dtype())};
  return {ops::pow(base, ops::cast(exponent, base.dtype()))};
}

// The smallest types are for storage: rounding to them is not part of the graph library.
Tensor cast_to(const NodeCall& call, DType to) {
  if (to.bits() < 8 || (to.is_float() && to.bits() < 16))
    call.unsupported("conversion to ", to.name());
  return call.dtype(0) == to ? call.input(0) : ops::cast(call.input(0), to);
}
Outputs cast(const NodeCall& call) {
  return {cast_to(
      call, dtype_of_onnx(static_cast<int32_t>(call.attr_int("to", 0)), call.context().file.name(),
                          call.describe() + ": attribute 'to'"))};
}
Outputs cast_like(const NodeCall& call) { return {cast_to(call, call.dtype(1))}; }

// Each bound may be left out; one that is computed at run time stays a tensor. The order makes the
// upper bound win where the two cross.
Outputs clip(const NodeCall& call) {
  Tensor out = call.input(0);
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!call.has_input(i)) continue;
    if (!product(call.shape(i)).is_const(1) || call.rank(i) > 1)
      call.fail(i == 1 ? "min" : "max", " has the shape ", shape_text(call.shape(i)),
                ", expected a scalar");
    const auto bound = out.dtype().is_float() ? call.scalar_if_constant(i) : std::nullopt;
    if (bound) {
      out = i == 1 ? ops::clip(out, bound, std::nullopt) : ops::clip(out, std::nullopt, bound);
      continue;
    }
    const Tensor& tensor = call.input(i);
    const Tensor value = call.rank(i) == 0 ? tensor : ops::reshape(tensor, {});
    out = i == 1 ? ops::maximum(out, value) : ops::minimum(out, value);
  }
  return {out};
}
// The bounds were attributes.
Outputs clip_6(const NodeCall& call) {
  std::optional<double> low, high;
  if (call.has_attr("min")) low = call.attr_float("min", 0);
  if (call.has_attr("max")) high = call.attr_float("max", 0);
  return {ops::clip(call.input(0), low, high)};
}

Outputs leaky_relu(const NodeCall& call) {
  return {ops::leaky_relu(call.input(0), call.attr_float("alpha", 0.01f))};
}
Outputs elu(const NodeCall& call) {
  return {ops::elu(call.input(0), call.attr_float("alpha", 1.0))};
}
Outputs hard_sigmoid(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const Tensor line = ops::add(ops::mul(x, ops::scalar_like(x, call.attr_float("alpha", 0.2f))),
                               ops::scalar_like(x, call.attr_float("beta", 0.5)));
  return {ops::clip(line, 0.0, 1.0)};
}
Outputs gelu(const NodeCall& call) {
  const std::string how = call.attr_string("approximate", "none");
  if (how != "none" && how != "tanh")
    call.fail("approximate is '", how, "', expected none or tanh");
  return {ops::unary(how == "tanh" ? "gelu_tanh" : "gelu", call.input(0))};
}
Outputs thresholded_relu(const NodeCall& call) {
  const Tensor& x = call.input(0);
  const Tensor limit = ops::scalar_like(x, call.attr_float("alpha", 1.0));
  return {ops::where(ops::greater(x, limit), x, ops::scalar_like(x, 0))};
}
Outputs is_inf(const NodeCall& call) {
  const Tensor& x = call.input(0);
  Tensor out = ops::unary("isinf", x);
  const Tensor zero = ops::scalar_like(x, 0);
  if (call.attr_int("detect_negative", 1) == 0) out = ops::logical_and(out, ops::greater(x, zero));
  if (call.attr_int("detect_positive", 1) == 0) out = ops::logical_and(out, ops::less(x, zero));
  return {out};
}
Outputs prelu(const NodeCall& call) {
  const Tensor &x = call.input(0), &slope = call.input(1);
  return {ops::where(ops::less(x, ops::scalar_like(x, 0)), ops::mul(x, slope), x)};
}

Outputs where(const NodeCall& call) {
  return {ops::where(call.input(0), call.input(1), call.input(2))};
}

Outputs identity(const NodeCall& call) { return {call.input(0)}; }

// Inference: the values as they are; the mask keeps all.
Outputs dropout(const NodeCall& call) {
  if (call.has_input(2) && call.scalar_input(2, "training_mode") != 0)
    call.unsupported("training_mode is true");
  Outputs out{call.input(0)};
  if (call.output_count() > 1)
    out.push_back(ops::full(call.shape(0), 1, boolean, call.context().device));
  return out;
}

constexpr auto kAny = kAnyOpset;
const std::array kRows = std::to_array<Converter>({
    unary("Abs", 6, "abs"),
    unary("Acos", 7, "acos"),
    unary("Acosh", 9, "acosh"),
    unary("Asin", 7, "asin"),
    unary("Asinh", 9, "asinh"),
    unary("Atan", 7, "atan"),
    unary("Atanh", 9, "atanh"),
    unary("BitwiseNot", 18, "bitwise_not"),
    unary("Ceil", 6, "ceil"),
    unary("Cos", 7, "cos"),
    unary("Cosh", 9, "cosh"),
    unary("Erf", 9, "erf"),
    unary("Exp", 6, "exp"),
    unary("Floor", 6, "floor"),
    unary("HardSwish", 14, "hard_swish"),
    unary("IsNaN", 9, "isnan"),
    unary("Log", 6, "log"),
    unary("Neg", 6, "neg"),
    unary("Not", 1, "logical_not"),
    unary("Reciprocal", 6, "reciprocal"),
    unary("Relu", 6, "relu"),
    unary("Round", 11, "round"),
    unary("Sigmoid", 6, "sigmoid"),
    unary("Sign", 9, "sign"),
    unary("Sin", 7, "sin"),
    unary("Sinh", 9, "sinh"),
    unary("Softplus", 1, "softplus"),
    unary("Softsign", 1, "softsign"),
    unary("Sqrt", 6, "sqrt"),
    unary("Tan", 7, "tan"),
    unary("Tanh", 6, "tanh"),
    {"Add", 7, kAny, binary<ops::add>},
    {"And", 7, kAny, binary<ops::logical_and>},
    {"BitwiseAnd", 18, kAny, binary<ops::bitwise_and>},
    {"BitwiseOr", 18, kAny, binary<ops::bitwise_or>},
    {"BitwiseXor", 18, kAny, binary<ops::bitwise_xor>},
    {"Div", 7, kAny, binary<ops::div>},
    {"Equal", 7, kAny, binary<ops::equal>},
    {"Greater", 7, kAny, binary<ops::greater>},
    {"GreaterOrEqual", 12, kAny, binary<ops::greater_equal>},
    {"Less", 7, kAny, binary<ops::less>},
    {"LessOrEqual", 12, kAny, binary<ops::less_equal>},
    {"Mul", 7, kAny, binary<ops::mul>},
    {"Or", 7, kAny, binary<ops::logical_or>},
    {"Sub", 7, kAny, binary<ops::sub>},
    {"Xor", 7, kAny, binary<ops::logical_xor>},
    {"Max", 8, kAny, variadic<ops::maximum>},
    {"Mean", 8, kAny, mean},
    {"Min", 8, kAny, variadic<ops::minimum>},
    {"Sum", 8, kAny, variadic<ops::add>},
    {"Cast", 9, kAny, cast},
    {"CastLike", 15, kAny, cast_like},
    {"Clip", 6, 10, clip_6},
    {"Clip", 11, kAny, clip},
    {"Dropout", 12, kAny, dropout},
    {"Elu", 6, kAny, elu},
    {"Gelu", 20, kAny, gelu},
    {"HardSigmoid", 6, kAny, hard_sigmoid},
    {"Identity", 1, kAny, identity},
    {"IsInf", 10, kAny, is_inf},
    {"LeakyRelu", 6, kAny, leaky_relu},
    {"Mod", 10, kAny, mod},
    {"PRelu", 9, kAny, prelu},
    {"Pow", 12, kAny, power},
    {"ThresholdedRelu", 10, kAny, thresholded_relu},
    {"Where", 9, kAny, where},
});

}  // namespace

std::span<const Converter> elementwise_converters() { return kRows; }

}  // namespace hidet::graph::onnx
