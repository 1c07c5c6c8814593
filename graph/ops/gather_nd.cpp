// gather_nd.cpp - slices of x at index tuples: the last dimension of `indices` holds one index for
// each of x's dimensions after `batch_dims`. Negative indices count from the end; others
// outside of x are refused or clamped as gather does.
#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::Value;

/// How the dimensions fall: `batch` common ones, `outer` of the indices, `depth` that are indexed.
struct Parts {
  size_t batch, outer, depth;
};

Parts parts_of(const OpCall& call) {
  op_inputs("gather_nd", call, 2);
  const Dims &x = call.inputs[0].shape, &i = call.inputs[1].shape;
  const int64_t batch = call.attrs.integer("batch_dims");
  const DType dtype = call.inputs[1].dtype;
  HIDET_OP_REQUIRE(dtype == i32 || dtype == i64, "gather_nd", "the indices are ", dtype,
                   shape_text(i), ", not i32 or i64");
  HIDET_OP_REQUIRE(!i.empty() && i.back().is_const(), "gather_nd", "the last size of the indices ",
                   shape_text(i), " must be a number");
  HIDET_OP_REQUIRE(batch >= 0 && batch < static_cast<int64_t>(i.size()), "gather_nd", batch,
                   " batch dimensions of the indices ", shape_text(i));
  const int64_t depth = i.back().value();
  HIDET_OP_REQUIRE(depth >= 1 && batch + depth <= static_cast<int64_t>(x.size()), "gather_nd",
                   depth, " indices after ", batch, " batch dimensions do not fit ", shape_text(x));
  return {static_cast<size_t>(batch), i.size() - 1 - static_cast<size_t>(batch),
          static_cast<size_t>(depth)};
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const Parts parts = parts_of(call);
  const Dims &x = call.inputs[0].shape, &i = call.inputs[1].shape;
  Dims out(i.begin(), i.end() - 1);
  out.insert(out.end(), x.begin() + static_cast<int64_t>(parts.batch + parts.depth), x.end());
  return {{call.inputs[0].dtype, out}};
}

/// Counted from the end where negative, within [0, extent).
Value wrapped(const Value& index, const DimExpr& extent) {
  const Value i = ir::cast(index, ir::Type(i64)), n = index_value(extent);
  const Value counted = ir::select(i < index_value(0), i + n, i);
  return ir::max(ir::min(counted, n - index_value(1)), index_value(0));
}

ir::Task compute(const OpCall& call) {
  const Parts parts = parts_of(call);
  ir::Task task = new_task("gather_nd", call);
  task.outputs = {add_compute(task, "y", infer(call)[0], [&](const Values& at) {
    const auto rest = at.begin() + static_cast<int64_t>(parts.batch + parts.outer);
    Values from(at.begin(), at.begin() + static_cast<int64_t>(parts.batch));
    for (size_t d = 0; d < parts.depth; d++) {
      Values place(at.begin(), rest);
      place.push_back(index_value(static_cast<int64_t>(d)));
      from.push_back(
          wrapped(element(task.inputs[1], place), call.inputs[0].shape[parts.batch + d]));
    }
    from.insert(from.end(), rest, at.end());
    return element(task.inputs[0], from);
  })};
  return task;
}

std::vector<Tensor> reference(const OpCall& call, const std::vector<Tensor>& inputs) {
  const Parts parts = parts_of(call);
  const std::vector<double> index = inputs[1].to_doubles();
  for (size_t k = 0; k < index.size(); k++) {
    const size_t axis = parts.batch + k % parts.depth;
    const auto n = static_cast<double>(inputs[0].shape(static_cast<int>(axis)));
    HIDET_OP_REQUIRE(index[k] >= -n && index[k] < n, "gather_nd", "the index ", index[k],
                     " is outside axis ", axis, " of ", shape_text(inputs[0].shape()));
  }
  return interpret(compute(call), inputs);
}

}  // namespace

void register_gather_nd(OpRegistry& ops) {
  ops.add({.name = "gather_nd",
           .doc = "slices of x at index tuples after `batch_dims` common dimensions",
           .infer = infer,
           .compute = compute,
           .reference = reference,
           .samples = {{{{f32, {4, 5, 3}}, {i64, {6, 2}}}, {{"batch_dims", 0}}, -4, 4},
                       {{{f32, {"n", 5}}, {i32, {"n", 2, 1}}}, {{"batch_dims", 1}}, 0, 5}}});
}

}  // namespace hidet::graph
