// reduce.cpp - reductions over axes, argmax and argmin. f16 and bf16 accumulate in f32; max and min let NaN
// through; an empty reduction gives the identity.
#include <hidet/graph/ops.h>

#include <algorithm>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::ReduceOp;
using ir::Value;

struct Row {
  const char* name;
  ReduceOp op;
  const char* doc;
  bool mean = false;
};
constexpr Row kRows[] = {
    {"reduce_sum", ReduceOp::sum, "sum over axes (empty: all)"},
    {"reduce_mean", ReduceOp::sum, "mean over axes (empty: all)", true},
    {"reduce_max", ReduceOp::max, "largest value over axes (empty: all); NaN wins"},
    {"reduce_min", ReduceOp::min, "least value over axes (empty: all); NaN wins"},
    {"reduce_prod", ReduceOp::prod, "product over axes (empty: all)"},
};

/// What stays of the shape.
struct Axes {
  std::vector<int64_t> reduced;
  bool keep;
  Dims extents, out;
  Axes(const std::string& op, const TensorSpec& x, const std::vector<int64_t>& axes, bool keep_dims,
       bool empty_is_all)
      : reduced(op_axes(op, axes, static_cast<int64_t>(x.shape.size()), empty_is_all)),
        keep(keep_dims) {
    for (size_t d = 0; d < x.shape.size(); d++) {
      if (is_reduced(d)) extents.push_back(x.shape[d]);
      if (!is_reduced(d)) out.push_back(x.shape[d]);
      else if (keep) out.push_back(1);
    }
  }
  bool is_reduced(size_t d) const {
    return std::binary_search(reduced.begin(), reduced.end(), static_cast<int64_t>(d));
  }
  Values indices(size_t rank, const Values& at, const Values& over) const {
    Values out_indices;
    size_t a = 0, k = 0;
    for (size_t d = 0; d < rank; d++) {
      if (!is_reduced(d)) {
        out_indices.push_back(at[a++]);
      } else {
        out_indices.push_back(over[k++]);
        a += keep;
      }
    }
    return out_indices;
  }
};

std::vector<TensorSpec> infer(const Row& row, const OpCall& call) {
  op_inputs(row.name, call, 1);
  const TensorSpec& x = call.inputs[0];
  HIDET_OP_REQUIRE(!x.dtype.is_boolean(), row.name, "takes numbers, not boolean",
                   shape_text(x.shape));
  return {
      {x.dtype,
       Axes(row.name, x, call.attrs.integers("axes"), call.attrs.integer("keep_dims"), true).out}};
}

ir::Task compute(const Row& row, const OpCall& call) {
  const TensorSpec& x = call.inputs[0];
  const Axes axes(row.name, x, call.attrs.integers("axes"), call.attrs.integer("keep_dims"), true);
  ir::Task task = new_task(row.name, call);
  const DType sum_type = row.mean ? working_dtype(x.dtype) : x.dtype;
  const auto total = [&](const Values& at) {
    return reduce(row.op, axes.extents, [&](const Values& over) {
      return ir::cast(element(task.inputs[0], axes.indices(x.shape.size(), at, over)),
                      ir::Type(sum_type));
    });
  };
  if (!row.mean) {
    task.outputs = {add_compute(task, "y", {x.dtype, axes.out}, total)};
    return task;
  }
  const ir::VarRef sum = add_compute(task, "total", {sum_type, axes.out}, total);
  task.outputs = {add_compute(task, "y", {x.dtype, axes.out}, [&](const Values& at) {
    const Value count = ir::cast(index_value(product(axes.extents)), ir::Type(sum_type));
    return ir::cast(element(sum, at) / count, ir::Type(x.dtype));
  })};
  return task;
}

std::vector<OpSample> samples() {
  using Ints = std::vector<int64_t>;
  const auto attrs = [](Ints axes, int64_t keep) {
    return Attrs{{"axes", std::move(axes)}, {"keep_dims", keep}};
  };
  std::vector<OpSample> out;
  for (DType t : {f32, f16, bf16, f64, i32, i64, i8, u8})
    out.push_back({{{t, {4, 37}}}, attrs({1}, 0)});
  out.push_back({{{f32, {3, 4, 5}}}, attrs({}, 0)});
  out.push_back({{{f32, {3, 4, 5}}}, attrs({0, -1}, 1)});
  out.push_back({{{f32, {3, 1, 5}}}, attrs({1}, 0)});
  out.push_back({{{f32, {"n", 6}}}, attrs({0}, 0)});
  out.push_back({{{f32, {"n", 6}}}, attrs({-1}, 1)});
  out.push_back({{{f32, {2, 0}}}, attrs({1}, 1)});
  out.push_back({{{f32, {0, 2}}}, attrs({1}, 0)});
  out.push_back({{{f32, {}}}, attrs({}, 0)});
  return out;
}

// --- argmax, argmin

std::vector<TensorSpec> infer_arg(const std::string& name, const OpCall& call) {
  op_inputs(name, call, 1);
  const TensorSpec& x = call.inputs[0];
  const int64_t axis =
      op_axis(name, call.attrs.integer("axis"), static_cast<int64_t>(x.shape.size()));
  HIDET_OP_REQUIRE(!x.shape[axis].is_const(0), name, "axis ", axis, " of ", shape_text(x.shape),
                   " is empty");
  return {{i64, Axes(name, x, {axis}, call.attrs.integer("keep_dims"), false).out}};
}

ir::Task compute_arg(const std::string& name, bool is_max, const OpCall& call) {
  const TensorSpec& x = call.inputs[0];
  const Axes axes(name, x, {call.attrs.integer("axis")}, call.attrs.integer("keep_dims"), false);
  ir::Task task = new_task(name, call);
  task.outputs = {add_compute(task, "y", infer_arg(name, call)[0], [&](const Values& at) {
    const ir::VarRef k = ir::make_var("k", ir::Type(i64));
    Value v = element(task.inputs[0], axes.indices(x.shape.size(), at, {Value(ir::Expr(k))}));
    if (v.dtype().is_boolean()) v = ir::cast(v, ir::Type(i32));
    return Value(ir::make_arg_reduce(is_max, call.attrs.integer("last"), k,
                                     index_value(axes.extents[0]).expr(), v.expr()));
  })};
  return task;
}

std::vector<OpSample> arg_samples() {
  const auto attrs = [](int64_t axis, int64_t keep, int64_t last) {
    return Attrs{{"axis", axis}, {"keep_dims", keep}, {"last", last}};
  };
  return {{{{f32, {4, 37}}}, attrs(1, 1, 0)},  {{{i32, {4, 37}}}, attrs(-1, 0, 1)},
          {{{f16, {5, 3}}}, attrs(0, 0, 0)},   {{{f64, {"n", 3}}}, attrs(1, 1, 0)},
          {{{i64, {3, "n"}}}, attrs(1, 0, 1)}, {{{u8, {0, 3}}}, attrs(1, 0, 0)},
          {{{f32, {3, 1}}}, attrs(1, 1, 0)}};
}
}  // namespace

void register_reduce(OpRegistry& ops) {
  for (const Row& row : kRows)
    ops.add({.name = row.name,
             .doc = row.doc,
             .infer = [&row](const OpCall& call) { return infer(row, call); },
             .compute = [&row](const OpCall& call) { return compute(row, call); },
             .samples = samples()});
  for (const bool is_max : {true, false}) {
    const std::string name = is_max ? "argmax" : "argmin";
    ops.add(
        {.name = name,
         .doc = is_max ? "index of the largest value along `axis`, i64; NaN wins"
                       : "index of the least value along `axis`, i64; NaN wins",
         .infer = [name](const OpCall& call) { return infer_arg(name, call); },
         .compute = [name, is_max](const OpCall& call) { return compute_arg(name, is_max, call); },
         .samples = arg_samples()});
  }
}

}  // namespace hidet::graph

namespace hidet::ops {

#define HIDET_REDUCE(name)                                                                   \
  Tensor name(const Tensor& x, const std::vector<int64_t>& axes, bool keep_dims) {           \
    return graph::apply(#name, {x}, {{"axes", axes}, {"keep_dims", int64_t{keep_dims}}})[0]; \
  }
HIDET_REDUCE(reduce_sum)
HIDET_REDUCE(reduce_mean)
HIDET_REDUCE(reduce_max)
HIDET_REDUCE(reduce_min)
HIDET_REDUCE(reduce_prod)
#undef HIDET_REDUCE

Tensor argmax(const Tensor& x, int64_t axis, bool keep_dims, bool last) {
  return graph::apply(
      "argmax", {x},
      {{"axis", axis}, {"keep_dims", int64_t{keep_dims}}, {"last", int64_t{last}}})[0];
}
Tensor argmin(const Tensor& x, int64_t axis, bool keep_dims, bool last) {
  return graph::apply(
      "argmin", {x},
      {{"axis", axis}, {"keep_dims", int64_t{keep_dims}}, {"last", int64_t{last}}})[0];
}

}  // namespace hidet::ops
