// ops_elementwise.cpp - ONNX operators that work value by value. Most are one row: the operator's
// type, the opsets that have this form, and the graph function. Types are checked by the graph.
// Threading: thread-safe.
#include <hidet/graph/ops.h>

#include <array>
#include <limits>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {
namespace {

using Outputs = std::vector<Tensor>;

template <Tensor (*F)(const Tensor&)>
Outputs unary(const NodeCall& call) {
  return {F(call.input(0))};
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

/// A constant of the dtype of `like`.
Tensor scalar_like(const Tensor& like, double value) { return full({}, value, like.dtype()); }

Outputs mean(const NodeCall& call) {
  const Outputs total = variadic<ops::add>(call);
  return {ops::multiply(total[0], scalar_like(total[0], 1.0 / call.input_count()))};
}

// fmod = 1 takes the dividend's sign, as C does; else the divisor's.
Outputs mod(const NodeCall& call) {
  const Tensor &a = call.input(0), &b = call.input(1);
  if (call.attr_int("fmod", 0) != 0) return {ops::fmod(a, b)};
  if (a.dtype().is_float()) call.fail("needs fmod = 1 for floating point values");
  return {ops::floormod(a, b)};
}

// The exponent may have another type than the base, which the result has.
Outputs power(const NodeCall& call) {
  const Tensor& base = call.input(0);
  Tensor exponent = call.input(1);
  if (exponent.dtype() == base.dtype()) return {ops::pow(base, exponent)};
  if (!base.dtype().is_float() && exponent.dtype().is_float())
    return {ops::cast(ops::pow(ops::cast(base, f64), ops::cast(exponent, f64)), base.dtype())};
  return {ops::pow(base, ops::cast(exponent, base.dtype()))};
}

Outputs cast(const NodeCall& call) {
  const DType to = dtype_of_onnx(static_cast<int32_t>(call.attr_int("to", 0)),
                                 call.context().file.name(), call.describe() + ": attribute 'to'");
  return {ops::cast(call.input(0), to)};
}
Outputs cast_like(const NodeCall& call) {
  return {ops::cast(call.input(0), call.input(1).dtype())};
}

// Each bound may be left out; one that is computed at run time stays a tensor.
Outputs clip(const NodeCall& call) {
  Tensor out = call.input(0);
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!call.has_input(i)) continue;
    const Tensor& bound = call.input(i);
    if (!is_concrete(call.shape(i)) || product(to_concrete(call.shape(i))) != 1 || call.rank(i) > 1)
      call.fail(i == 1 ? "min" : "max", " has the shape ", shape_text(call.shape(i)),
                ", expected a scalar");
    const Tensor value = call.rank(i) == 0 ? bound : ops::reshape(bound, {});
    out = i == 1 ? ops::maximum(out, value) : ops::minimum(out, value);
  }
  return {out};
}

Outputs leaky_relu(const NodeCall& call) {
  return {ops::leaky_relu(call.input(0), call.attr_float("alpha", 0.01f))};
}
Outputs elu(const NodeCall& call) {
  return {ops::elu(call.input(0), call.attr_float("alpha", 1.0))};
}
Outputs hard_sigmoid(const NodeCall& call) {
  return {ops::hard_sigmoid(call.input(0), call.attr_float("alpha", 0.2f),
                            call.attr_float("beta", 0.5))};
}
Outputs gelu(const NodeCall& call) {
  const std::string how = call.attr_string("approximate", "none");
  if (how != "none" && how != "tanh") call.fail("approximate is '", how, "', expected none or tanh");
  return {ops::gelu(call.input(0), how == "tanh")};
}
Outputs prelu(const NodeCall& call) {
  const Tensor &x = call.input(0), &slope = call.input(1);
  return {ops::where(ops::less(x, scalar_like(x, 0)), ops::multiply(x, slope), x)};
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
    out.push_back(ops::broadcast_to(full({}, 1, boolean), call.shape(0)));
  return out;
}

constexpr auto kAny = kAnyOpset;
const std::array kRows = std::to_array<Converter>({
    {"Abs", 6, kAny, unary<ops::abs>},
    {"Ceil", 6, kAny, unary<ops::ceil>},
    {"Cos", 7, kAny, unary<ops::cos>},
    {"Erf", 9, kAny, unary<ops::erf>},
    {"Exp", 6, kAny, unary<ops::exp>},
    {"Floor", 6, kAny, unary<ops::floor>},
    {"HardSwish", 14, kAny, unary<ops::hardswish>},
    {"IsNaN", 9, kAny, unary<ops::isnan>},
    {"Log", 6, kAny, unary<ops::log>},
    {"Neg", 6, kAny, unary<ops::negative>},
    {"Not", 1, kAny, unary<ops::logical_not>},
    {"Reciprocal", 6, kAny, unary<ops::reciprocal>},
    {"Relu", 6, kAny, unary<ops::relu>},
    {"Round", 11, kAny, unary<ops::round>},
    {"Sigmoid", 6, kAny, unary<ops::sigmoid>},
    {"Sign", 9, kAny, unary<ops::sign>},
    {"Sin", 7, kAny, unary<ops::sin>},
    {"Softplus", 1, kAny, unary<ops::softplus>},
    {"Sqrt", 6, kAny, unary<ops::sqrt>},
    {"Tanh", 6, kAny, unary<ops::tanh>},
    {"Add", 7, kAny, binary<ops::add>},
    {"And", 7, kAny, binary<ops::logical_and>},
    {"Div", 7, kAny, binary<ops::divide>},
    {"Equal", 7, kAny, binary<ops::equal>},
    {"Greater", 7, kAny, binary<ops::greater>},
    {"GreaterOrEqual", 12, kAny, binary<ops::greater_equal>},
    {"Less", 7, kAny, binary<ops::less>},
    {"LessOrEqual", 12, kAny, binary<ops::less_equal>},
    {"Mul", 7, kAny, binary<ops::multiply>},
    {"Or", 7, kAny, binary<ops::logical_or>},
    {"Sub", 7, kAny, binary<ops::subtract>},
    {"Xor", 7, kAny, binary<ops::logical_xor>},
    {"Max", 8, kAny, variadic<ops::maximum>},
    {"Mean", 8, kAny, mean},
    {"Min", 8, kAny, variadic<ops::minimum>},
    {"Sum", 8, kAny, variadic<ops::add>},
    {"Cast", 9, kAny, cast},
    {"CastLike", 15, kAny, cast_like},
    {"Clip", 11, kAny, clip},
    {"Dropout", 12, kAny, dropout},
    {"Elu", 6, kAny, elu},
    {"Gelu", 20, kAny, gelu},
    {"HardSigmoid", 6, kAny, hard_sigmoid},
    {"Identity", 1, kAny, identity},
    {"LeakyRelu", 6, kAny, leaky_relu},
    {"Mod", 10, kAny, mod},
    {"PRelu", 9, kAny, prelu},
    {"Pow", 12, kAny, power},
    {"Where", 9, kAny, where},
});

}  // namespace

std::span<const Converter> elementwise_converters() { return kRows; }

}  // namespace hidet::graph::onnx
