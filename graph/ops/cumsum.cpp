// cumsum.cpp - running sums along one axis. Each output is a sum of its own, so that the result does
// not depend on how the work is cut; the cost grows with the square of the axis.
#include <hidet/graph/op.h>
#include <hidet/runtime/error.h>

namespace hidet::graph {
namespace {

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec& x = call.inputs.at(0);
  const int64_t axis = call.attrs.integer("axis");
  HIDET_REQUIRE(axis >= 0 && axis < static_cast<int64_t>(x.shape.size()), ErrorCode::usage, "",
                "cumsum: axis ", axis, " is outside of ", shape_text(x.shape));
  return {x};
}

ir::Task compute(const OpCall& call) {
  const TensorSpec& spec = call.inputs.at(0);
  const auto axis = static_cast<size_t>(call.attrs.integer("axis"));
  const bool exclusive = call.attrs.integer("exclusive") != 0;
  const bool reverse = call.attrs.integer("reverse") != 0;
  ir::Task task;
  task.name = "cumsum";
  const ir::VarRef x = task_input(0, spec);
  task.inputs = {x};
  task.outputs = {add_compute(task, "y", spec, [&](const std::vector<ir::Value>& at) {
    return reduce(ir::ReduceOp::sum, {spec.shape[axis]}, [&](const std::vector<ir::Value>& k) {
      std::vector<ir::Value> from = at;
      from[axis] = k[0];
      const ir::Value &low = reverse ? at[axis] : k[0], &high = reverse ? k[0] : at[axis];
      const ir::Value counts = exclusive ? low < high : low <= high;
      return ir::select(counts, element(x, from), ir::cast(ir::Value(0), spec.dtype));
    });
  })};
  return task;
}

}  // namespace

void register_cumsum(OpRegistry& ops) {
  ops.add({
      .name = "cumsum",
      .doc = "sums of the values up to each one along `axis`; `exclusive` leaves it out, `reverse` "
             "sums from the end",
      .infer = infer,
      .compute = compute,
      .samples = {{{{f32, {3, 7}}}, {{"axis", 1}, {"exclusive", 0}, {"reverse", 0}}},
                  {{{i64, {"n", 5}}}, {{"axis", 0}, {"exclusive", 1}, {"reverse", 1}}}},
  });
}

}  // namespace hidet::graph
