// elementwise_unary.cpp - elementwise operators of one tensor, clip, leaky_relu, elu, cast.
// f16 and bf16 compute in f32 and round once.
#include <hidet/graph/ops.h>

#include <cmath>
#include <limits>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::Value;

enum class Domain { floats, numbers, booleans, integers };

Value num(double v, const Value& like) { return constant(v, like.dtype()); }
Value prim(const char* name, const Value& x) { return math(name, x); }

template <int N>
struct Text {
  char value[N];
  constexpr Text(const char (&s)[N]) { std::copy_n(s, N, value); }
};
/// The primitive of that name.
template <Text name>
Value direct(const Value& x) {
  return prim(name.value, x);
}

Value f_neg(const Value& x) { return -x; }
Value f_abs(const Value& x) { return prim("abs", x); }
Value f_sign(const Value& x) {
  const Value one = num(1, x), zero = num(0, x);
  const Value s = ir::select(x > zero, one,
                             ir::select(x < zero, x.dtype().is_signed() ? num(-1, x) : zero, zero));
  return x.dtype().is_float() ? ir::select(prim("isnan", x), x, s) : s;
}
Value f_reciprocal(const Value& x) { return num(1, x) / x; }
Value f_not(const Value& x) { return !x; }
Value f_bit_not(const Value& x) { return ~x; }
Value f_relu(const Value& x) { return ir::max(x, num(0, x)); }
Value f_gelu(const Value& x) {
  return num(0.5, x) * x * (num(1, x) + prim("erf", x * num(std::sqrt(0.5), x)));
}
Value f_gelu_tanh(const Value& x) {
  const Value inner = num(std::sqrt(2 / M_PI), x) * (x + num(0.044715, x) * x * x * x);
  return num(0.5, x) * x * (num(1, x) + prim("tanh", inner));
}
Value f_silu(const Value& x) { return x * prim("sigmoid", x); }
/// log(1 + e^x) without overflow.
Value f_softplus(const Value& x) {
  return ir::max(x, num(0, x)) + prim("log1p", prim("exp", -prim("abs", x)));
}
Value f_softsign(const Value& x) { return x / (num(1, x) + prim("abs", x)); }
Value unit_clip(const Value& x) { return ir::min(ir::max(x, num(0, x)), num(1, x)); }
Value f_hard_sigmoid(const Value& x) { return unit_clip(x * num(0.2, x) + num(0.5, x)); }
Value f_hard_swish(const Value& x) { return x * unit_clip(x * num(1.0 / 6, x) + num(0.5, x)); }

struct Row {
  const char* name;
  Domain domain;
  Value (*f)(const Value&);
  const char* doc;
  bool to_boolean = false;
};
constexpr Row kRows[] = {
    {"neg", Domain::numbers, f_neg, "-x"},
    {"exp", Domain::floats, direct<"exp">, "e^x"},
    {"log", Domain::floats, direct<"log">, "natural logarithm"},
    {"sqrt", Domain::floats, direct<"sqrt">, "square root"},
    {"rsqrt", Domain::floats, direct<"rsqrt">, "1 / sqrt(x)"},
    {"tanh", Domain::floats, direct<"tanh">, "hyperbolic tangent"},
    {"erf", Domain::floats, direct<"erf">, "error function"},
    {"sigmoid", Domain::floats, direct<"sigmoid">, "1 / (1 + e^-x)"},
    {"sin", Domain::floats, direct<"sin">, "sine"},
    {"cos", Domain::floats, direct<"cos">, "cosine"},
    {"tan", Domain::floats, direct<"tan">, "tangent"},
    {"asin", Domain::floats, direct<"asin">, "arc sine"},
    {"acos", Domain::floats, direct<"acos">, "arc cosine"},
    {"atan", Domain::floats, direct<"atan">, "arc tangent"},
    {"sinh", Domain::floats, direct<"sinh">, "hyperbolic sine"},
    {"cosh", Domain::floats, direct<"cosh">, "hyperbolic cosine"},
    {"asinh", Domain::floats, direct<"asinh">, "inverse hyperbolic sine"},
    {"acosh", Domain::floats, direct<"acosh">, "inverse hyperbolic cosine"},
    {"atanh", Domain::floats, direct<"atanh">, "inverse hyperbolic tangent"},
    {"floor", Domain::floats, direct<"floor">, "the largest integer that is not above x"},
    {"ceil", Domain::floats, direct<"ceil">, "the least integer that is not below x"},
    {"round", Domain::floats, direct<"round">, "the nearest integer, ties to even"},
    {"abs", Domain::numbers, f_abs, "absolute value"},
    {"sign", Domain::numbers, f_sign, "-1, 0 or 1; NaN stays"},
    {"reciprocal", Domain::floats, f_reciprocal, "1 / x"},
    {"logical_not", Domain::booleans, f_not, "not x"},
    {"bitwise_not", Domain::integers, f_bit_not, "~x"},
    {"isnan", Domain::floats, direct<"isnan">, "is NaN", true},
    {"isinf", Domain::floats, direct<"isinf">, "is infinite", true},
    {"relu", Domain::numbers, f_relu, "max(x, 0); NaN stays"},
    {"gelu", Domain::floats, f_gelu, "x/2 (1 + erf(x / sqrt 2))"},
    {"gelu_tanh", Domain::floats, f_gelu_tanh, "gelu by its tanh formula"},
    {"silu", Domain::floats, f_silu, "x sigmoid(x)"},
    {"softplus", Domain::floats, f_softplus, "log(1 + e^x)"},
    {"softsign", Domain::floats, f_softsign, "x / (1 + |x|)"},
    {"hard_sigmoid", Domain::floats, f_hard_sigmoid, "0.2 x + 0.5 between 0 and 1"},
    {"hard_swish", Domain::floats, f_hard_swish, "x times (x / 6 + 0.5 between 0 and 1)"},
};

bool takes(Domain domain, DType t) {
  switch (domain) {
    case Domain::floats: return t.is_float();
    case Domain::numbers: return !t.is_boolean();
    case Domain::booleans: return t.is_boolean();
    default: return t.is_integer();
  }
}
const char* domain_text(Domain domain) {
  static const char* const names[] = {"floating-point numbers", "numbers", "booleans", "integers"};
  return names[static_cast<int>(domain)];
}

/// y = f(x) elementwise, halves through f32.
ir::Task map_task(const std::string& name, const OpCall& call, DType result,
                  const std::function<Value(const Value&)>& f) {
  ir::Task task = new_task(name, call);
  const DType t = call.inputs[0].dtype;
  task.outputs = {add_compute(task, "y", {result, call.inputs[0].shape}, [&](const Values& at) {
    const Value x = element(task.inputs[0], at);
    const Value y = f(is_half(t) ? ir::cast(x, ir::Type(f32)) : x);
    return is_half(t) && y.dtype() == f32 ? ir::cast(y, ir::Type(result)) : y;
  })};
  set_identity_inverse(task, 0);
  return task;
}

void check_domain(const std::string& name, Domain domain, const OpCall& call) {
  op_inputs(name, call, 1);
  HIDET_OP_REQUIRE(takes(domain, call.inputs[0].dtype), name, "takes ", domain_text(domain),
                   ", not ", call.inputs[0].dtype, shape_text(call.inputs[0].shape));
}

std::vector<OpSample> samples(Domain domain, const Attrs& attrs = {}) {
  std::vector<OpSample> out;
  for (DType t : {f32, f16, bf16, f64, i32, i64, i8, u8, boolean})
    if (takes(domain, t)) out.push_back({{{t, {3, 67}}}, attrs});
  const DType t = out[0].inputs[0].dtype;
  out.push_back({{{t, {"n", 3}}}, attrs});
  out.push_back({{{t, {0, 3}}}, attrs});
  out.push_back({{{t, {}}}, attrs});
  return out;
}

void add_parametric(OpRegistry& ops, const std::string& name, const std::string& doc, Domain domain,
                    const Attrs& sample, Value (*f)(const Value&, const Attrs&)) {
  ops.add({.name = name,
           .doc = doc,
           .infer =
               [name, domain](const OpCall& call) {
                 check_domain(name, domain, call);
                 return call.inputs;
               },
           .compute =
               [name, f](const OpCall& call) {
                 return map_task(name, call, call.inputs[0].dtype,
                                 [&](const Value& x) { return f(x, call.attrs); });
               },
           .samples = samples(domain, sample)});
}

Value f_clip(const Value& x, const Attrs& attrs) {
  Value y = x;
  if (attrs.has("low")) y = ir::max(y, num(attrs.number("low"), x));
  if (attrs.has("high")) y = ir::min(y, num(attrs.number("high"), x));
  return y;
}
Value f_leaky_relu(const Value& x, const Attrs& attrs) {
  return ir::select(x < num(0, x), x * num(attrs.number("alpha"), x), x);
}
Value f_elu(const Value& x, const Attrs& attrs) {
  return ir::select(x < num(0, x), num(attrs.number("alpha"), x) * prim("expm1", x), x);
}

std::vector<TensorSpec> infer_cast(const OpCall& call) {
  op_inputs("cast", call, 1);
  return {{call.attrs.dtype("dtype"), call.inputs[0].shape}};
}
ir::Task compute_cast(const OpCall& call) {
  ir::Task task = new_task("cast", call);
  const TensorSpec out = infer_cast(call)[0];
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    const Value x = element(task.inputs[0], at);
    if (out.dtype.is_boolean() && !x.dtype().is_boolean()) return x != num(0, x);
    return ir::cast(x, ir::Type(out.dtype));
  })};
  set_identity_inverse(task, 0);
  return task;
}
std::vector<OpSample> cast_samples() {
  std::vector<OpSample> out;
  for (DType from : {f32, f16, f64, i32, i64, u8, boolean})
    for (DType to : {f32, bf16, f64, i32, i8, u8, i64, boolean})
      if (!(from == to)) out.push_back({{{from, {37}}}, {{"dtype", to}}, -300, 300});
  out.push_back({{{f32, {"n"}}}, {{"dtype", f16}}});
  out.push_back({{{f32, {0}}}, {{"dtype", f16}}});
  return out;
}
}  // namespace

void register_elementwise_unary(OpRegistry& ops) {
  for (const Row& row : kRows)
    ops.add({.name = row.name,
             .doc = row.doc,
             .infer = [&row](const OpCall& call) -> std::vector<TensorSpec> {
               check_domain(row.name, row.domain, call);
               return {{row.to_boolean ? boolean : call.inputs[0].dtype, call.inputs[0].shape}};
             },
             .compute =
                 [&row](const OpCall& call) {
                   return map_task(row.name, call, row.to_boolean ? boolean : call.inputs[0].dtype,
                                   row.f);
                 },
             .samples = samples(row.domain)});
  add_parametric(ops, "clip", "x between low and high; each may be left out; NaN stays",
                 Domain::numbers, {{"low", -1.0}, {"high", 2.0}}, f_clip);
  add_parametric(ops, "leaky_relu", "x, or alpha x where x < 0", Domain::floats, {{"alpha", 0.01}},
                 f_leaky_relu);
  add_parametric(ops, "elu", "x, or alpha (e^x - 1) where x < 0", Domain::floats, {{"alpha", 0.5}},
                 f_elu);
  ops.add({.name = "cast",
           .doc = "conversion: integers wrap, floats to integers saturate, NaN gives 0",
           .infer = infer_cast,
           .compute = compute_cast,
           .samples = cast_samples()});
}

}  // namespace hidet::graph

namespace hidet::ops {

Tensor unary(const std::string& name, const Tensor& x) { return graph::apply(name, {x})[0]; }
#define HIDET_UNARY(name) \
  Tensor name(const Tensor& x) { return unary(#name, x); }
HIDET_UNARY(neg)
HIDET_UNARY(exp)
HIDET_UNARY(log)
HIDET_UNARY(sqrt)
HIDET_UNARY(rsqrt)
HIDET_UNARY(tanh)
HIDET_UNARY(erf)
HIDET_UNARY(sigmoid)
HIDET_UNARY(abs)
HIDET_UNARY(relu)
HIDET_UNARY(gelu)
HIDET_UNARY(silu)
#undef HIDET_UNARY

Tensor clip(const Tensor& x, std::optional<double> low, std::optional<double> high) {
  graph::Attrs attrs;
  if (low) attrs.set("low", *low);
  if (high) attrs.set("high", *high);
  return graph::apply("clip", {x}, attrs)[0];
}
Tensor leaky_relu(const Tensor& x, double alpha) {
  return graph::apply("leaky_relu", {x}, {{"alpha", alpha}})[0];
}
Tensor elu(const Tensor& x, double alpha) {
  return graph::apply("elu", {x}, {{"alpha", alpha}})[0];
}
Tensor cast(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : graph::apply("cast", {x}, {{"dtype", dtype}})[0];
}

}  // namespace hidet::ops
