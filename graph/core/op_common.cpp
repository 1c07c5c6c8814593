// op_common.cpp - what the files of graph/ops share (see op_common.h).
#include "core/op_common.h"

#include <hidet/ir/dim.h>
#include <hidet/ir/primitives.h>

#include <algorithm>

namespace hidet::graph {

int64_t op_axis(const std::string& op, int64_t axis, int64_t rank) {
  HIDET_OP_REQUIRE(axis >= -rank && axis < rank, op, "axis ", axis, " of a tensor of rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> op_axes(const std::string& op, const std::vector<int64_t>& axes, int64_t rank,
                             bool empty_is_all) {
  std::vector<int64_t> out;
  for (int64_t a : axes) out.push_back(op_axis(op, a, rank));
  if (axes.empty() && empty_is_all)
    for (int64_t a = 0; a < rank; a++) out.push_back(a);
  std::sort(out.begin(), out.end());
  HIDET_OP_REQUIRE(std::adjacent_find(out.begin(), out.end()) == out.end(), op,
                   "an axis is given twice in ", shape_text(axes));
  return out;
}

namespace {
DimExpr broadcast_dim(const DimExpr& a, const DimExpr& b, bool& fine) {
  if (a == b || b.is_const(1)) return a;
  if (a.is_const(1)) return b;
  try {
    return broadcast(a, b);
  } catch (const Error&) {
    fine = false;
    return a;
  }
}
std::string list_shapes(const std::vector<Dims>& shapes) {
  std::string out;
  for (size_t i = 0; i < shapes.size(); i++)
    out += (i == 0 ? "" : i + 1 == shapes.size() ? " and " : ", ") + shape_text(shapes[i]);
  return out;
}
}  // namespace

Dims op_broadcast(const std::string& op, const std::vector<Dims>& shapes) {
  size_t rank = 0;
  for (const Dims& s : shapes) rank = std::max(rank, s.size());
  Dims out(rank, DimExpr(1));
  bool fine = true;
  for (const Dims& s : shapes)
    for (size_t d = 0; d < s.size(); d++) {
      DimExpr& to = out[rank - s.size() + d];
      to = broadcast_dim(to, s[d], fine);
    }
  HIDET_OP_REQUIRE(fine, op, "the shapes ", list_shapes(shapes), " do not broadcast");
  return out;
}

void op_inputs(const std::string& op, const OpCall& call, size_t count) {
  HIDET_OP_REQUIRE(call.inputs.size() == count, op, "takes ", count, " inputs, not ",
                   call.inputs.size());
}
void op_same_dtype(const std::string& op, const OpCall& call, size_t first) {
  for (size_t i = first + 1; i < call.inputs.size(); i++)
    HIDET_OP_REQUIRE(call.inputs[i].dtype == call.inputs[first].dtype, op, "inputs of types ",
                     call.inputs[first].dtype, shape_text(call.inputs[first].shape), " and ",
                     call.inputs[i].dtype, shape_text(call.inputs[i].shape), "; cast one of them");
}

Values broadcast_indices(const Dims& from, const Dims& to, const Values& at) {
  Values out;
  for (size_t d = 0; d < from.size(); d++) {
    const size_t t = to.size() - from.size() + d;
    if (from[d] == to[t]) out.push_back(at[t]);
    else if (from[d].is_const(1)) out.push_back(index_value(0));
    else if (from[d].is_const()) out.push_back(at[t]);
    else out.push_back(ir::select(index_value(from[d]) == index_value(1), index_value(0), at[t]));
  }
  return out;
}

ir::Task new_task(const std::string& name, const OpCall& call) {
  ir::Task task;
  task.name = name;
  for (size_t i = 0; i < call.inputs.size(); i++)
    task.inputs.push_back(task_input(static_cast<int>(i), call.inputs[i]));
  return task;
}

ir::Value constant(double value, DType dtype) { return ir::Value(ir::make_const(value, dtype)); }
ir::Value index_value(int64_t value) { return ir::Value(ir::make_int(value, ir::Type(i64))); }
ir::Value index_value(const DimExpr& value) { return ir::Value(ir::to_expr(value)); }
DType working_dtype(DType dtype) { return is_half(dtype) ? f32 : dtype; }
ir::Value math(const std::string& name, const ir::Value& x) {
  return ir::Value(ir::call_math(name, {x.expr()}));
}

void no_inverse_maps(ir::Task& task) { task.inverse_maps.assign(task.inputs.size(), std::nullopt); }

void set_inverse(ir::Task& task, int k, const std::function<Values(const Values&)>& map) {
  if (task.inverse_maps.empty()) no_inverse_maps(task);
  ir::InverseMap inverse;
  Values axes;
  for (size_t d = 0; d < ir::shape_of(task.inputs[k]).size(); d++) {
    inverse.axes.push_back(ir::make_var("j" + std::to_string(d), ir::Type(i64)));
    axes.emplace_back(ir::Expr(inverse.axes.back()));
  }
  for (const ir::Value& v : map(axes)) inverse.indices.push_back(v.expr());
  task.inverse_maps[k] = std::move(inverse);
}

void set_identity_inverse(ir::Task& task, int k) {
  const Dims from = ir::to_dims(ir::shape_of(task.inputs[k])),
             to = ir::to_dims(ir::shape_of(task.outputs[0]));
  if (from == to) set_inverse(task, k, [](const Values& at) { return at; });
}

ir::Value flatten_index(const Values& at, const Dims& shape) {
  ir::Value out = index_value(0);
  for (size_t d = 0; d < shape.size(); d++) out = out * index_value(shape[d]) + at[d];
  return out;
}

Values unflatten_index(const ir::Value& flat, const Dims& shape) {
  Values out(shape.size());
  ir::Value rest = flat;
  for (size_t d = shape.size(); d-- > 0;) {
    out[d] = d == 0 ? rest : rest % index_value(shape[d]);
    if (d > 0) rest = rest / index_value(shape[d]);
  }
  return out;
}

}  // namespace hidet::graph
