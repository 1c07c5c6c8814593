// gather.cpp - elements by index tensors. Negative indices count from the end; the reference and the CPU's kernels
// (build/index_checks) refuse others outside the axis. The compute definition clamps them: memory is never read out of
// bounds, and a CUDA kernel reads an element at the edge of the axis.
#include <hidet/graph/ops.h>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::Value;

size_t check(const std::string& name, const OpCall& call) {
  op_inputs(name, call, 2);
  const TensorSpec &x = call.inputs[0], &i = call.inputs[1];
  HIDET_OP_REQUIRE(i.dtype == i32 || i.dtype == i64, name, "the indices are ", i.dtype,
                   shape_text(i.shape), ", not i32 or i64");
  return static_cast<size_t>(
      op_axis(name, call.attrs.integer("axis"), static_cast<int64_t>(x.shape.size())));
}

/// Counted from the end where negative, within [0, extent).
Value wrapped(const Value& index, const DimExpr& extent) {
  const Value i = ir::cast(index, ir::Type(i64)), n = index_value(extent);
  return ir::max(ir::min(ir::select(i < index_value(0), i + n, i), n - index_value(1)),
                 index_value(0));
}

std::vector<TensorSpec> infer_gather(const OpCall& call) {
  const size_t axis = check("gather", call);
  const Dims &x = call.inputs[0].shape, &i = call.inputs[1].shape;
  Dims out(x.begin(), x.begin() + static_cast<int64_t>(axis));
  out.insert(out.end(), i.begin(), i.end());
  out.insert(out.end(), x.begin() + static_cast<int64_t>(axis) + 1, x.end());
  return {{call.inputs[0].dtype, out}};
}
ir::Task compute_gather(const OpCall& call) {
  const size_t axis = check("gather", call), count = call.inputs[1].shape.size();
  ir::Task task = new_task("gather", call);
  task.outputs = {add_compute(task, "y", infer_gather(call)[0], [&](const Values& at) {
    const auto middle = at.begin() + static_cast<int64_t>(axis),
               end = middle + static_cast<int64_t>(count);
    Values from(at.begin(), middle);
    from.push_back(
        wrapped(element(task.inputs[1], Values(middle, end)), call.inputs[0].shape[axis]));
    from.insert(from.end(), end, at.end());
    return element(task.inputs[0], from);
  })};
  return task;
}

std::vector<TensorSpec> infer_elements(const OpCall& call) {
  const size_t axis = check("gather_elements", call);
  const Dims &x = call.inputs[0].shape, &i = call.inputs[1].shape;
  bool fine = x.size() == i.size();
  for (size_t d = 0; fine && d < x.size(); d++)
    fine = d == axis || !x[d].is_const() || !i[d].is_const() || i[d].value() <= x[d].value();
  HIDET_OP_REQUIRE(fine, "gather_elements", "indices of shape ", shape_text(i), " do not fit ",
                   shape_text(x), " beyond axis ", axis);
  return {{call.inputs[0].dtype, i}};
}
ir::Task compute_elements(const OpCall& call) {
  const size_t axis = check("gather_elements", call);
  ir::Task task = new_task("gather_elements", call);
  task.outputs = {add_compute(task, "y", infer_elements(call)[0], [&](const Values& at) {
    Values from = at;
    from[axis] = wrapped(element(task.inputs[1], at), call.inputs[0].shape[axis]);
    return element(task.inputs[0], from);
  })};
  return task;
}

/// Refuses an index outside the axis.
void check_indices(const std::string& name, const OpCall& call, const Tensor& indices) {
  const size_t axis = check(name, call);
  const int64_t n = call.inputs[0].shape[axis].value();
  for (int64_t k = 0, count = indices.num_elements(); k < count; k++) {
    const int64_t i =
        indices.dtype() == i32 ? indices.data<int32_t>()[k] : indices.data<int64_t>()[k];
    HIDET_OP_REQUIRE(i >= -n && i < n, name, "the index ", i, " is outside axis ", axis, " of ",
                     shape_text(call.inputs[0].shape));
  }
}

void add(OpRegistry& ops, const std::string& name, const char* doc,
         std::vector<TensorSpec> (*infer)(const OpCall&), ir::Task (*compute)(const OpCall&),
         std::vector<OpSample> samples) {
  ops.add({.name = name,
           .doc = doc,
           .infer = infer,
           .compute = compute,
           .reference =
               [name, infer, compute](const OpCall& call, const std::vector<Tensor>& inputs) {
                 (void)infer(call);
                 check_indices(name, call, inputs[1]);
                 return interpret(compute(call), inputs);
               },
           .samples = std::move(samples)});
}
}  // namespace

void register_gather(OpRegistry& ops) {
  const auto axis = [](int64_t a) { return Attrs{{"axis", a}}; };
  add(ops, "gather", "x at `indices` along `axis`", infer_gather, compute_gather,
      {{{{f32, {6, 5}}, {i64, {2, 3}}}, axis(0), -6, 6},
       {{{f16, {4, 7}}, {i32, {3}}}, axis(-1), -7, 7},
       {{{f32, {6, 5}}, {i64, {}}}, axis(1), 0, 5},
       {{{i64, {9, 2}}, {i64, {"n"}}}, axis(0), 0, 9},
       {{{f32, {3}}, {i64, {0}}}, axis(0), 0, 3}});
  add(ops, "gather_elements", "x at `indices` along `axis`, position by position", infer_elements,
      compute_elements,
      {{{{f32, {4, 5}}, {i64, {4, 3}}}, axis(1), -5, 5},
       {{{i32, {4, 5}}, {i32, {2, 5}}}, axis(0), 0, 4},
       {{{f32, {"n", 5}}, {i64, {"n", 2}}}, axis(1), 0, 5}});
}

}  // namespace hidet::graph

namespace hidet::ops {
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis) {
  return graph::apply("gather", {x, indices}, {{"axis", axis}})[0];
}
Tensor gather_elements(const Tensor& x, const Tensor& indices, int64_t axis) {
  return graph::apply("gather_elements", {x, indices}, {{"axis", axis}})[0];
}
}  // namespace hidet::ops
