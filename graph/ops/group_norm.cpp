// group_norm.cpp - the CPU's inner form of group and instance norms: [n, h, w, c], whose channels are `groups` runs of equal length.
// Mean and inverse deviation are kept by channel, so that the last step reads them along its vectors. Made by the packing pass.
#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::ReduceOp;
using ir::Value;
constexpr const char* kName = "group_norm_nhwc";

std::vector<TensorSpec> infer(const OpCall& call) {
  op_inputs(kName, call, 1);
  const TensorSpec& x = call.inputs[0];
  const int64_t groups = call.attrs.integer("groups");
  HIDET_OP_REQUIRE(x.shape.size() == 4 && x.dtype.is_float() && x.shape[3].is_const(), kName,
                   "takes floating-point numbers of shape [n, h, w, c], c known, not ", x.dtype,
                   shape_text(x.shape));
  HIDET_OP_REQUIRE(groups >= 1 && x.shape[3].value() % groups == 0, kName, groups,
                   " groups do not divide the ", x.shape[3], " channels");
  return {x};
}

ir::Task compute(const OpCall& call) {
  const TensorSpec x = infer(call)[0];
  const int64_t groups = call.attrs.integer("groups"), size = x.shape[3].value() / groups;
  const DType t = working_dtype(x.dtype);
  ir::Task task = new_task(kName, call);
  task.attrs["groups"] = groups;
  const Value count = ir::cast(index_value(x.shape[1] * x.shape[2] * size), ir::Type(t));
  const auto read = [&](const Values& at) {
    return ir::cast(element(task.inputs[0], at), ir::Type(t));
  };
  const auto over_group = [&](const Values& at, const std::function<Value(const Value&)>& term) {
    return reduce(ReduceOp::sum, {x.shape[1], x.shape[2], DimExpr(size)}, [&](const Values& k) {
      return term(read({at[0], k[0], k[1], at[1] * index_value(size) + k[2]}));
    });
  };
  const auto of_channel = [&](const ir::VarRef& sums, const Values& at) {
    return element(sums, {at[0], at[1] / index_value(size)}) / count;
  };
  const Dims by_group{x.shape[0], DimExpr(groups)}, by_channel{x.shape[0], x.shape[3]};
  const ir::VarRef total = add_compute(task, "total", {t, by_group}, [&](const Values& at) {
    return over_group(at, [](const Value& v) { return v; });
  });
  const ir::VarRef mean = add_compute(task, "mean", {t, by_channel},
                                      [&](const Values& at) { return of_channel(total, at); });
  const ir::VarRef squares = add_compute(task, "squares", {t, by_group}, [&](const Values& at) {
    return over_group(at, [&](const Value& v) {
      const Value d = v - element(total, at) / count;
      return d * d;
    });
  });
  const ir::VarRef inverse = add_compute(task, "inverse", {t, by_channel}, [&](const Values& at) {
    return math("rsqrt", of_channel(squares, at) + constant(call.attrs.number("epsilon"), t));
  });
  task.outputs = {add_compute(task, "y", x, [&](const Values& at) {
    const Values channel{at[0], at[3]};
    return ir::cast((read(at) - element(mean, channel)) * element(inverse, channel),
                    ir::Type(x.dtype));
  })};
  return task;
}
}  // namespace

void register_group_norm(OpRegistry& ops) {
  const auto groups = [](int64_t n) { return Attrs{{"groups", n}, {"epsilon", 1e-5}}; };
  ops.add({.name = kName,
           .doc = "(x - mean) / sqrt(variance + epsilon) of each of `groups` runs of channels of "
                  "[n, h, w, c]",
           .infer = infer,
           .compute = compute,
           .samples = {{{{f32, {2, 5, 7, 12}}}, groups(3)},
                       {{{f16, {1, 4, 4, 16}}}, groups(16)},
                       {{{bf16, {2, 3, 3, 32}}}, groups(1)},
                       {{{f64, {2, 3, 5, 4}}}, groups(2)},
                       {{{f32, {"n", 3, 5, 8}}}, groups(2)},
                       {{{f32, {2, 3, "n", 20}}}, groups(5)},
                       {{{f32, {0, 3, 5, 8}}}, groups(2)}}});
}

}  // namespace hidet::graph
