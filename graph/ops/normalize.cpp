// normalize.cpp - softmax, log_softmax, layer_norm, batch_norm. Several computes each: what is reduced has the
// shape without the reduced dims. f16 and bf16 compute in f32 and round once.
#include <hidet/graph/ops.h>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::ReduceOp;
using ir::Value;

void check_float(const std::string& op, const OpCall& call) {
  HIDET_OP_REQUIRE(call.inputs[0].dtype.is_float(), op, "takes floating-point numbers, not ",
                   call.inputs[0].dtype, shape_text(call.inputs[0].shape));
}

std::vector<TensorSpec> infer_softmax(const std::string& name, const OpCall& call) {
  op_inputs(name, call, 1);
  check_float(name, call);
  op_axis(name, call.attrs.integer("axis"), static_cast<int64_t>(call.inputs[0].shape.size()));
  return call.inputs;
}

Values with_axis(Values at, size_t axis, const Value& k) {
  at.insert(at.begin() + static_cast<int64_t>(axis), k);
  return at;
}
Values without_axis(Values at, size_t axis) {
  at.erase(at.begin() + static_cast<int64_t>(axis));
  return at;
}

ir::Task compute_softmax(const std::string& name, bool is_log, const OpCall& call) {
  const TensorSpec& x = call.inputs[0];
  const auto axis = static_cast<size_t>(
      op_axis(name, call.attrs.integer("axis"), static_cast<int64_t>(x.shape.size())));
  const DType t = working_dtype(x.dtype);
  Dims rest = x.shape;
  rest.erase(rest.begin() + static_cast<int64_t>(axis));
  ir::Task task = new_task(name, call);
  task.attrs = {{"axis", static_cast<int64_t>(axis)},
                {"rank", static_cast<int64_t>(x.shape.size())}};
  const auto read = [&](const Values& at) {
    return ir::cast(element(task.inputs[0], at), ir::Type(t));
  };
  const ir::VarRef top = add_compute(task, "largest", {t, rest}, [&](const Values& at) {
    return reduce(ReduceOp::max, {x.shape[axis]},
                  [&](const Values& k) { return read(with_axis(at, axis, k[0])); });
  });
  const ir::VarRef sum = add_compute(task, "total", {t, rest}, [&](const Values& at) {
    return reduce(ReduceOp::sum, {x.shape[axis]}, [&](const Values& k) {
      return math("exp", read(with_axis(at, axis, k[0])) - element(top, at));
    });
  });
  task.outputs = {add_compute(task, "y", x, [&](const Values& at) {
    const Values row = without_axis(at, axis);
    const Value shifted = read(at) - element(top, row);
    const Value y = is_log ? shifted - math("log", element(sum, row))
                           : math("exp", shifted) / element(sum, row);
    return ir::cast(y, ir::Type(x.dtype));
  })};
  return task;
}

// --- layer_norm

std::vector<TensorSpec> infer_layer_norm(const OpCall& call) {
  HIDET_OP_REQUIRE(call.inputs.size() == 2 || call.inputs.size() == 3, "layer_norm",
                   "takes 2 or 3 inputs, not ", call.inputs.size());
  check_float("layer_norm", call);
  op_same_dtype("layer_norm", call);
  const Dims& x = call.inputs[0].shape;
  const int64_t axis =
      op_axis("layer_norm", call.attrs.integer("axis"), static_cast<int64_t>(x.size()));
  const Dims tail(x.begin() + axis, x.end());
  for (size_t k = 1; k < call.inputs.size(); k++) {
    const Dims& s = call.inputs[k].shape;
    HIDET_OP_REQUIRE(s.size() <= tail.size() && op_broadcast("layer_norm", {s, tail}) == tail,
                     "layer_norm", k == 1 ? "the scale" : "the bias", " has the shape ",
                     shape_text(s), ", not ", shape_text(tail));
  }
  return {call.inputs[0]};
}

ir::Task compute_layer_norm(const OpCall& call) {
  const TensorSpec& x = call.inputs[0];
  const auto axis = static_cast<size_t>(
      op_axis("layer_norm", call.attrs.integer("axis"), static_cast<int64_t>(x.shape.size())));
  const Dims rest(x.shape.begin(), x.shape.begin() + static_cast<int64_t>(axis));
  const Dims tail(x.shape.begin() + static_cast<int64_t>(axis), x.shape.end());
  const DType t = working_dtype(x.dtype);
  ir::Task task = new_task("layer_norm", call);
  task.attrs = {{"axis", static_cast<int64_t>(axis)},
                {"rank", static_cast<int64_t>(x.shape.size())},
                {"has_bias", call.inputs.size() == 3}};
  const auto read = [&](int k, const Values& at) {
    return ir::cast(element(task.inputs[k], at), ir::Type(t));
  };
  const auto both = [](Values a, const Values& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const Value count = ir::cast(index_value(product(tail)), ir::Type(t));
  const ir::VarRef sum = add_compute(task, "total", {t, rest}, [&](const Values& at) {
    return reduce(ReduceOp::sum, tail, [&](const Values& k) { return read(0, both(at, k)); });
  });
  const ir::VarRef squares = add_compute(task, "squares", {t, rest}, [&](const Values& at) {
    return reduce(ReduceOp::sum, tail, [&](const Values& k) {
      const Value d = read(0, both(at, k)) - element(sum, at) / count;
      return d * d;
    });
  });
  task.outputs = {add_compute(task, "y", x, [&](const Values& at) {
    const Values row(at.begin(), at.begin() + static_cast<int64_t>(axis)),
        column(at.begin() + static_cast<int64_t>(axis), at.end());
    const Value centred = read(0, at) - element(sum, row) / count;
    const Value inverse =
        math("rsqrt", element(squares, row) / count + constant(call.attrs.number("epsilon"), t));
    Value y = centred * inverse * read(1, broadcast_indices(call.inputs[1].shape, tail, column));
    if (call.inputs.size() == 3)
      y = y + read(2, broadcast_indices(call.inputs[2].shape, tail, column));
    return ir::cast(y, ir::Type(x.dtype));
  })};
  return task;
}

// --- batch_norm

std::vector<TensorSpec> infer_batch_norm(const OpCall& call) {
  op_inputs("batch_norm", call, 5);
  check_float("batch_norm", call);
  const Dims& x = call.inputs[0].shape;
  HIDET_OP_REQUIRE(x.size() >= 2, "batch_norm", "takes a tensor of rank 2 or more, not ",
                   shape_text(x));
  for (size_t k = 1; k < 5; k++)
    HIDET_OP_REQUIRE(call.inputs[k].shape == Dims{x[1]} && call.inputs[k].dtype.is_float(),
                     "batch_norm", "input ", k, " is ", call.inputs[k].dtype,
                     shape_text(call.inputs[k].shape), ", not floating-point numbers of shape ",
                     shape_text(Dims{x[1]}));
  return {call.inputs[0]};
}

ir::Task compute_batch_norm(const OpCall& call) {
  const TensorSpec& x = call.inputs[0];
  const DType t = working_dtype(x.dtype);
  ir::Task task = new_task("batch_norm", call);
  task.outputs = {add_compute(task, "y", x, [&](const Values& at) {
    const auto channel = [&](int k) {
      return ir::cast(element(task.inputs[k], {at[1]}), ir::Type(t));
    };
    const Value factor =
        channel(1) * math("rsqrt", channel(4) + constant(call.attrs.number("epsilon"), t));
    const Value y =
        (ir::cast(element(task.inputs[0], at), ir::Type(t)) - channel(3)) * factor + channel(2);
    return ir::cast(y, ir::Type(x.dtype));
  })};
  set_identity_inverse(task, 0);
  return task;
}

std::vector<OpSample> softmax_samples() {
  const auto axis = [](int64_t a) { return Attrs{{"axis", a}}; };
  return {{{{f32, {4, 37}}}, axis(-1)},  {{{f16, {4, 37}}}, axis(1)}, {{{bf16, {3, 8}}}, axis(1)},
          {{{f64, {3, 5, 7}}}, axis(1)}, {{{f32, {3, 1}}}, axis(1)},  {{{f32, {"n", 9}}}, axis(-1)},
          {{{f32, {3, "n"}}}, axis(-1)}, {{{f32, {0, 3}}}, axis(1)},  {{{f32, {3, 0}}}, axis(1)}};
}
}  // namespace

void register_normalize(OpRegistry& ops) {
  for (const bool is_log : {false, true}) {
    const std::string name = is_log ? "log_softmax" : "softmax";
    ops.add({.name = name,
             .doc = is_log ? "logarithm of softmax along `axis`"
                           : "exp(x - max) / sum(exp(x - max)) along `axis`",
             .infer = [name](const OpCall& call) { return infer_softmax(name, call); },
             .compute =
                 [name, is_log](const OpCall& call) { return compute_softmax(name, is_log, call); },
             .samples = softmax_samples()});
  }
  const auto layer = [](int64_t axis) { return Attrs{{"axis", axis}, {"epsilon", 1e-5}}; };
  ops.add(
      {.name = "layer_norm",
       .doc = "(x - mean) / sqrt(variance + epsilon) * scale + bias over the dims from `axis` on",
       .infer = infer_layer_norm,
       .compute = compute_layer_norm,
       .samples = {{{{f32, {4, 37}}, {f32, {37}}, {f32, {37}}}, layer(-1)},
                   {{{f16, {4, 32}}, {f16, {32}}}, layer(1)},
                   {{{f64, {2, 3, 5}}, {f64, {3, 5}}, {f64, {3, 5}}}, layer(1)},
                   {{{f32, {"n", 9}}, {f32, {9}}, {f32, {9}}}, layer(-1)},
                   {{{f32, {0, 9}}, {f32, {9}}, {f32, {9}}}, layer(-1)}}});
  ops.add({.name = "batch_norm",
           .doc = "(x - mean) / sqrt(variance + epsilon) * scale + bias per channel (axis 1)",
           .infer = infer_batch_norm,
           .compute = compute_batch_norm,
           .samples = {{{{f32, {2, 3, 4, 5}}, {f32, {3}}, {f32, {3}}, {f32, {3}}, {f32, {3}}},
                        {{"epsilon", 30.0}}},
                       {{{f16, {"n", 3, 4}}, {f16, {3}}, {f16, {3}}, {f16, {3}}, {f16, {3}}},
                        {{"epsilon", 30.0}}},
                       {{{f32, {0, 3}}, {f32, {3}}, {f32, {3}}, {f32, {3}}, {f32, {3}}},
                        {{"epsilon", 30.0}}}}});
}

}  // namespace hidet::graph

namespace hidet::ops {

Tensor softmax(const Tensor& x, int64_t axis) {
  return graph::apply("softmax", {x}, {{"axis", axis}})[0];
}
Tensor log_softmax(const Tensor& x, int64_t axis) {
  return graph::apply("log_softmax", {x}, {{"axis", axis}})[0];
}
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis,
                  double epsilon) {
  std::vector<Tensor> inputs{x, scale};
  if (bias.defined()) inputs.push_back(bias);
  return graph::apply("layer_norm", inputs, {{"axis", axis}, {"epsilon", epsilon}})[0];
}
Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean,
                  const Tensor& variance, double epsilon) {
  return graph::apply("batch_norm", {x, scale, bias, mean, variance}, {{"epsilon", epsilon}})[0];
}

}  // namespace hidet::ops
