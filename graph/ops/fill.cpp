// fill.cpp - tensors made from nothing but attributes: full, range, dims (formulas of sizes), and what is built on
// them: scalar_like, shape. A tensor without symbols is made at once unless operators are being recorded.
#include <hidet/graph/ops.h>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::Value;

std::vector<TensorSpec> infer_full(const OpCall& call) {
  op_inputs("full", call, 0);
  for (const DimExpr& d : call.attrs.dims("shape"))
    HIDET_OP_REQUIRE(!d.is_const() || d.value() >= 0, "full", "the size ", d, " in ",
                     shape_text(call.attrs.dims("shape")));
  return {{call.attrs.dtype("dtype"), call.attrs.dims("shape")}};
}
ir::Task compute_full(const OpCall& call) {
  const TensorSpec out = infer_full(call)[0];
  ir::Task task = new_task("full", call);
  task.outputs = {add_compute(task, "y", out, [&](const Values&) {
    return constant(call.attrs.number("value"), out.dtype);
  })};
  return task;
}

std::vector<TensorSpec> infer_range(const OpCall& call) {
  op_inputs("range", call, 0);
  const Dims& d = call.attrs.dims("start_count");
  HIDET_OP_REQUIRE(!call.attrs.dtype("dtype").is_boolean(), "range", "takes numbers, not boolean");
  HIDET_OP_REQUIRE(!d[1].is_const() || d[1].value() >= 0, "range", "a count of ", d[1]);
  return {{call.attrs.dtype("dtype"), {d[1]}}};
}
ir::Task compute_range(const OpCall& call) {
  const TensorSpec out = infer_range(call)[0];
  ir::Task task = new_task("range", call);
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    const Value v = index_value(call.attrs.dims("start_count")[0]) +
                    at[0] * index_value(call.attrs.integer("step"));
    return ir::cast(v, ir::Type(out.dtype));
  })};
  return task;
}

std::vector<TensorSpec> infer_dims(const OpCall& call) {
  op_inputs("dims", call, 0);
  const Dims& values = call.attrs.dims("values");
  const bool scalar = call.attrs.integer("scalar") != 0;
  HIDET_OP_REQUIRE(!scalar || values.size() == 1, "dims", "a scalar of ", values.size(), " values");
  return {{i64, scalar ? Dims{} : Dims{static_cast<int64_t>(values.size())}}};
}
ir::Task compute_dims(const OpCall& call) {
  const Dims& values = call.attrs.dims("values");
  ir::Task task = new_task("dims", call);
  task.outputs = {add_compute(task, "y", infer_dims(call)[0], [&](const Values& at) {
    if (values.empty()) return index_value(0);
    Value out = index_value(values.back());
    if (!at.empty())
      for (size_t i = values.size() - 1; i-- > 0;)
        out =
            ir::select(at[0] == index_value(static_cast<int64_t>(i)), index_value(values[i]), out);
    return out;
  })};
  return task;
}
}  // namespace

void register_fill(OpRegistry& ops) {
  const auto full = [](Dims shape, double value, DType t) {
    return Attrs{{"shape", std::move(shape)}, {"value", value}, {"dtype", t}};
  };
  const auto range = [](int64_t start, int64_t count, int64_t step, DType t) {
    return Attrs{{"start_count", Dims{start, count}}, {"step", step}, {"dtype", t}};
  };
  const auto dims = [](Dims values, int64_t scalar) {
    return Attrs{{"values", std::move(values)}, {"scalar", scalar}};
  };
  ops.add({.name = "full",
           .doc = "every element `value`",
           .infer = infer_full,
           .compute = compute_full,
           .samples = {{{}, full({2, 3}, 1.5, f32)},
                       {{}, full({}, -7, i64)},
                       {{}, full({0}, 1, f16)},
                       {{}, full({5}, 1, boolean)}}});
  ops.add({.name = "range",
           .doc = "`count` values from `start` on by `step`",
           .infer = infer_range,
           .compute = compute_range,
           .samples = {
               {{}, range(3, 7, -2, i64)}, {{}, range(0, 37, 1, f32)}, {{}, range(1, 0, 1, i32)}}});
  ops.add({.name = "dims",
           .doc = "formulas of sizes as i64 values",
           .infer = infer_dims,
           .compute = compute_dims,
           .samples = {{{}, dims({4, 5, 6}, 0)}, {{}, dims({9}, 1)}, {{}, dims({}, 0)}}});
}

}  // namespace hidet::graph

namespace hidet::ops {
using graph::apply;

Tensor full(const std::vector<DimExpr>& shape, double value, DType dtype, Device device) {
  return apply(
      "full", {},
      {{"shape", shape}, {"value", value}, {"dtype", dtype}, {"device", device.name()}})[0];
}
Tensor scalar_like(const Tensor& x, double value) {
  if (!x.is_symbolic()) return ops::full(std::vector<DimExpr>{}, value, x.dtype(), x.device());
  const graph::RecordScope record;  // a constant of the graph, not a weight
  return ops::full(std::vector<DimExpr>{}, value, x.dtype(), x.device());
}
Tensor range(const DimExpr& start, const DimExpr& count, int64_t step, DType dtype, Device device) {
  return apply("range", {},
               {{"start_count", std::vector<DimExpr>{start, count}},
                {"step", step},
                {"dtype", dtype},
                {"device", device.name()}})[0];
}
Tensor dims(const std::vector<DimExpr>& values, bool scalar, Device device) {
  return apply("dims", {},
               {{"values", values}, {"scalar", int64_t{scalar}}, {"device", device.name()}})[0];
}
Tensor shape(const Tensor& x) { return dims(x.shape_expr(), false, x.device()); }

}  // namespace hidet::ops
