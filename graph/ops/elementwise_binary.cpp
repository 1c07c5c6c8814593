// elementwise_binary.cpp - elementwise operators of two tensors with numpy broadcasting, and `where`.
// Integers wrap, x / 0 is 0; minimum and maximum let NaN through.
#include <hidet/graph/ops.h>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::BinaryOp;

enum class Domain { numbers, any, booleans, bits };

struct Row {
  const char* name;
  BinaryOp op;
  Domain domain;
  const char* doc;
};
constexpr Row kRows[] = {
    {"add", BinaryOp::add, Domain::numbers, "a + b"},
    {"sub", BinaryOp::sub, Domain::numbers, "a - b"},
    {"mul", BinaryOp::mul, Domain::numbers, "a * b"},
    {"div", BinaryOp::div, Domain::numbers, "a / b; integers truncate, x / 0 is 0"},
    {"mod", BinaryOp::mod, Domain::numbers, "remainder; attribute fmod: sign of a, else sign of b"},
    {"pow", BinaryOp::pow, Domain::numbers, "a to the power of b"},
    {"minimum", BinaryOp::min, Domain::numbers, "the lesser; NaN wins"},
    {"maximum", BinaryOp::max, Domain::numbers, "the greater; NaN wins"},
    {"equal", BinaryOp::eq, Domain::any, "a == b"},
    {"not_equal", BinaryOp::ne, Domain::any, "a != b"},
    {"less", BinaryOp::lt, Domain::any, "a < b"},
    {"less_equal", BinaryOp::le, Domain::any, "a <= b"},
    {"greater", BinaryOp::gt, Domain::any, "a > b"},
    {"greater_equal", BinaryOp::ge, Domain::any, "a >= b"},
    {"logical_and", BinaryOp::logical_and, Domain::booleans, "a and b"},
    {"logical_or", BinaryOp::logical_or, Domain::booleans, "a or b"},
    {"logical_xor", BinaryOp::ne, Domain::booleans, "either a or b"},
    {"bitwise_and", BinaryOp::bit_and, Domain::bits, "a & b"},
    {"bitwise_or", BinaryOp::bit_or, Domain::bits, "a | b"},
    {"bitwise_xor", BinaryOp::bit_xor, Domain::bits, "a ^ b"},
};

bool takes(Domain domain, DType t) {
  switch (domain) {
    case Domain::numbers: return !t.is_boolean();
    case Domain::booleans: return t.is_boolean();
    case Domain::bits: return !t.is_float();
    default: return true;
  }
}
const char* domain_text(Domain domain) {
  return domain == Domain::numbers    ? "numbers"
         : domain == Domain::booleans ? "booleans"
                                      : "integers";
}

std::vector<TensorSpec> infer(const Row& row, const OpCall& call) {
  op_inputs(row.name, call, 2);
  op_same_dtype(row.name, call);
  const DType t = call.inputs[0].dtype;
  HIDET_OP_REQUIRE(takes(row.domain, t), row.name, "takes ", domain_text(row.domain), ", not ", t,
                   shape_text(call.inputs[0].shape));
  const DType result = ir::info(row.op).comparison ? boolean : t;
  return {{result, op_broadcast(row.name, {call.inputs[0].shape, call.inputs[1].shape})}};
}

ir::Task compute(const Row& row, const OpCall& call) {
  const TensorSpec out = infer(row, call)[0];
  BinaryOp op = row.op;
  if (op == BinaryOp::mod && call.attrs.integer("fmod") == 0) op = BinaryOp::floormod;
  ir::Task task = new_task(row.name, call);
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    Values side;
    for (size_t k = 0; k < 2; k++)
      side.push_back(
          element(task.inputs[k], broadcast_indices(call.inputs[k].shape, out.shape, at)));
    // Truth values compare as 0 and 1.
    const bool order =
        op == BinaryOp::lt || op == BinaryOp::le || op == BinaryOp::gt || op == BinaryOp::ge;
    if (side[0].dtype().is_boolean() && order)
      for (ir::Value& v : side) v = ir::cast(v, ir::Type(i32));
    return ir::binary(op, side[0], side[1]);
  })};
  for (int k = 0; k < 2; k++) set_identity_inverse(task, k);
  return task;
}

std::vector<OpSample> samples(const Row& row) {
  const Attrs attrs = row.op == BinaryOp::mod ? Attrs{{"fmod", int64_t{0}}} : Attrs{};
  std::vector<OpSample> out;
  for (DType t : {f32, f16, bf16, f64, i32, i64, u8, i8, boolean})
    if (takes(row.domain, t)) out.push_back({{{t, {3, 5}}, {t, {3, 5}}}, attrs});
  const DType t = row.domain == Domain::booleans ? boolean : row.domain == Domain::bits ? i32 : f32;
  out.push_back({{{t, {"n", 1, 4}}, {t, {3, 1}}}, attrs});
  out.push_back({{{t, {0, 3}}, {t, {3}}}, attrs});
  out.push_back({{{t, {2, 67}}, {t, {}}}, attrs});
  if (row.op == BinaryOp::mod) out.push_back({{{i32, {40}}, {i32, {40}}}, {{"fmod", int64_t{1}}}});
  return out;
}

std::vector<TensorSpec> infer_where(const OpCall& call) {
  op_inputs("where", call, 3);
  op_same_dtype("where", call, 1);
  HIDET_OP_REQUIRE(call.inputs[0].dtype.is_boolean(), "where", "the condition is ",
                   call.inputs[0].dtype, shape_text(call.inputs[0].shape), ", not boolean");
  return {{call.inputs[1].dtype, op_broadcast("where", {call.inputs[0].shape, call.inputs[1].shape,
                                                        call.inputs[2].shape})}};
}

ir::Task compute_where(const OpCall& call) {
  const TensorSpec out = infer_where(call)[0];
  ir::Task task = new_task("where", call);
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    Values v;
    for (size_t k = 0; k < 3; k++)
      v.push_back(element(task.inputs[k], broadcast_indices(call.inputs[k].shape, out.shape, at)));
    return ir::select(v[0], v[1], v[2]);
  })};
  for (int k = 0; k < 3; k++) set_identity_inverse(task, k);
  return task;
}
}  // namespace

void register_elementwise_binary(OpRegistry& ops) {
  for (const Row& row : kRows)
    ops.add({.name = row.name,
             .doc = row.doc,
             .infer = [&row](const OpCall& call) { return infer(row, call); },
             .compute = [&row](const OpCall& call) { return compute(row, call); },
             .samples = samples(row)});
  ops.add({.name = "where",
           .doc = "a where the condition holds, else b",
           .infer = infer_where,
           .compute = compute_where,
           .samples = {{{{boolean, {3, 5}}, {f32, {3, 5}}, {f32, {3, 5}}}},
                       {{{boolean, {"n", 1}}, {i64, {4}}, {i64, {}}}},
                       {{{boolean, {0}}, {f16, {1}}, {f16, {1}}}}}});
}

}  // namespace hidet::graph

namespace hidet::ops {

#define HIDET_BINARY(name) \
  Tensor name(const Tensor& a, const Tensor& b) { return graph::apply(#name, {a, b})[0]; }
HIDET_BINARY(add)
HIDET_BINARY(sub)
HIDET_BINARY(mul)
HIDET_BINARY(div)
HIDET_BINARY(pow)
HIDET_BINARY(minimum)
HIDET_BINARY(maximum)
HIDET_BINARY(equal)
HIDET_BINARY(not_equal)
HIDET_BINARY(less)
HIDET_BINARY(less_equal)
HIDET_BINARY(greater)
HIDET_BINARY(greater_equal)
HIDET_BINARY(logical_and)
HIDET_BINARY(logical_or)
HIDET_BINARY(logical_xor)
HIDET_BINARY(bitwise_and)
HIDET_BINARY(bitwise_or)
HIDET_BINARY(bitwise_xor)
#undef HIDET_BINARY

Tensor mod(const Tensor& a, const Tensor& b, bool fmod) {
  return graph::apply("mod", {a, b}, {{"fmod", int64_t{fmod}}})[0];
}
Tensor where(const Tensor& cond, const Tensor& a, const Tensor& b) {
  return graph::apply("where", {cond, a, b})[0];
}

}  // namespace hidet::ops

namespace hidet {

#define HIDET_TENSOR_OP(symbol, name)                                                  \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return ops::name(a, b); } \
  Tensor operator symbol(const Tensor& a, double b) {                                  \
    return ops::name(a, ops::scalar_like(a, b));                                       \
  }                                                                                    \
  Tensor operator symbol(double a, const Tensor& b) { return ops::name(ops::scalar_like(b, a), b); }
HIDET_TENSOR_OP(+, add)
HIDET_TENSOR_OP(-, sub)
HIDET_TENSOR_OP(*, mul)
HIDET_TENSOR_OP(/, div)
#undef HIDET_TENSOR_OP
Tensor operator-(const Tensor& a) { return ops::neg(a); }

}  // namespace hidet
