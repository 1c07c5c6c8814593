// pool2d.cpp - max and average pooling of [n, c, h, w]. Pads take no part in a maximum, and in an average only
// where `count_pads` is set. NaN wins a maximum.
#include <hidet/graph/ops.h>

#include "core/window.h"

namespace hidet::graph {
namespace {
using ir::ReduceOp;
using ir::Value;

Window window_of(const std::string& name, const OpCall& call) {
  Window window{call.attrs.integers("kernel"), call.attrs.integers("stride"),
                call.attrs.integers("pads"), call.attrs.integers("dilation"),
                call.attrs.integer("ceil_mode") != 0};
  window.check(name);
  for (int d = 0; d < 4; d++)
    HIDET_OP_REQUIRE(window.pads[d] < window.reach(d % 2), name, "the pads ",
                     shape_text(window.pads), " are not smaller than the window");
  return window;
}

std::vector<TensorSpec> infer(const std::string& name, const OpCall& call) {
  op_inputs(name, call, 1);
  const TensorSpec& x = call.inputs[0];
  HIDET_OP_REQUIRE(x.shape.size() == 4 && !x.dtype.is_boolean(), name,
                   "takes numbers of shape [n, c, h, w], not ", x.dtype, shape_text(x.shape));
  const Window window = window_of(name, call);
  return {{x.dtype,
           {x.shape[0], x.shape[1], window.out_size(name, 0, x.shape[2]),
            window.out_size(name, 1, x.shape[3])}}};
}

/// The reduction of the window, pads as `pad`.
Value over_window(const Window& window, ReduceOp op, const ir::VarRef& x, const Dims& shape,
                  DType wide, const Value& pad, const Values& at) {
  return reduce(op, {window.kernel[0], window.kernel[1]}, [&](const Values& k) {
    const Value h = window.coordinate(0, at[2], k[0]), w = window.coordinate(1, at[3], k[1]);
    const Value pixel = ir::cast(element(x, {at[0], at[1], h, w}), ir::Type(wide));
    return window.padded() ? ir::select(inside(h, shape[2], w, shape[3]), pixel, pad) : pixel;
  });
}

ir::Task compute_max(const OpCall& call) {
  const TensorSpec out = infer("max_pool2d", call)[0];
  const Window window = window_of("max_pool2d", call);
  ir::Task task = new_task("max_pool2d", call);
  window.set_attrs(task);
  const Value least(ir::reduce_identity(ReduceOp::max, out.dtype));
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    return over_window(window, ReduceOp::max, task.inputs[0], call.inputs[0].shape, out.dtype,
                       least, at);
  })};
  return task;
}

/// How many positions of the window along d are inside [low, high).
Value positions(const Window& window, int d, const Value& o, int64_t low, const DimExpr& high) {
  const Value start = o * index_value(window.stride[d]) - index_value(window.pads[d]);
  const Value first = ir::max(start, index_value(low));
  const Value last = ir::min(start + index_value(window.kernel[d]), index_value(high));
  return last - first;
}

ir::Task compute_average(const OpCall& call) {
  const TensorSpec out = infer("avg_pool2d", call)[0];
  const Window window = window_of("avg_pool2d", call);
  const Dims& shape = call.inputs[0].shape;
  const bool count_pads = call.attrs.integer("count_pads") != 0;
  const DType wide = working_dtype(out.dtype);
  ir::Task task = new_task("avg_pool2d", call);
  window.set_attrs(task);
  task.attrs["count_pads"] = count_pads;
  const ir::VarRef total = add_compute(task, "total", {wide, out.shape}, [&](const Values& at) {
    return over_window(window, ReduceOp::sum, task.inputs[0], shape, wide, constant(0, wide), at);
  });
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    Value count = index_value(window.kernel[0] * window.kernel[1]);
    if (window.padded()) {
      const auto along = [&](int d, const DimExpr& extent) {
        return count_pads
                   ? positions(window, d, at[2 + d], -window.pads[d], extent + window.pads[d + 2])
                   : positions(window, d, at[2 + d], 0, extent);
      };
      count = along(0, shape[2]) * along(1, shape[3]);
    }
    return ir::cast(element(total, at) / ir::cast(count, ir::Type(wide)), ir::Type(out.dtype));
  })};
  return task;
}

using Ints = std::vector<int64_t>;
std::vector<OpSample> samples(bool is_max) {
  const auto attrs = [&](Ints kernel, Ints stride, Ints pads, Ints dilation, int64_t ceil,
                         int64_t count) {
    Attrs a{{"kernel", kernel},
            {"stride", stride},
            {"pads", pads},
            {"dilation", dilation},
            {"ceil_mode", ceil}};
    if (!is_max) a.set("count_pads", count);
    return a;
  };
  const Ints one{1, 1}, two{2, 2}, none{0, 0, 0, 0}, around{1, 1, 1, 1};
  std::vector<OpSample> out;
  for (DType t : {f32, f16, f64, i32})
    out.push_back({{{t, {2, 3, 7, 9}}}, attrs({3, 3}, two, around, one, 0, 0)});
  out.push_back({{{f32, {1, 2, 6, 8}}},
                 attrs({2, 3}, {1, 2}, {0, 1, 1, 0}, is_max ? Ints{2, 1} : one, 0, 1)});
  out.push_back({{{f32, {1, 2, 8, 8}}}, attrs({3, 3}, two, none, one, 1, 0)});
  out.push_back({{{f32, {1, 2, 8, 8}}}, attrs({3, 3}, two, around, one, 1, 1)});
  out.push_back({{{f32, {"n", 2, 5, 5}}}, attrs(two, two, none, one, 0, 0)});
  out.push_back({{{f32, {0, 2, 5, 5}}}, attrs(two, two, none, one, 0, 0)});
  out.push_back({{{f32, {1, 2, 1, 1}}}, attrs(one, one, none, one, 0, 0)});
  return out;
}
}  // namespace

void register_pool2d(OpRegistry& ops) {
  ops.add({.name = "max_pool2d",
           .doc = "largest value of each window of [n, c, h, w]; NaN wins",
           .infer = [](const OpCall& call) { return infer("max_pool2d", call); },
           .compute = compute_max,
           .samples = samples(true)});
  ops.add({.name = "avg_pool2d",
           .doc = "mean of each window of [n, c, h, w]; pads count where count_pads is set",
           .infer = [](const OpCall& call) { return infer("avg_pool2d", call); },
           .compute = compute_average,
           .samples = samples(false)});
}

}  // namespace hidet::graph

namespace hidet::ops {

Tensor max_pool2d(const Tensor& x, const std::vector<int64_t>& kernel,
                  const std::vector<int64_t>& stride, const std::vector<int64_t>& pads,
                  const std::vector<int64_t>& dilation, bool ceil_mode) {
  return graph::apply("max_pool2d", {x},
                      {{"kernel", kernel},
                       {"stride", stride},
                       {"pads", pads},
                       {"dilation", dilation},
                       {"ceil_mode", int64_t{ceil_mode}}})[0];
}
Tensor avg_pool2d(const Tensor& x, const std::vector<int64_t>& kernel,
                  const std::vector<int64_t>& stride, const std::vector<int64_t>& pads,
                  bool count_pads, bool ceil_mode) {
  return graph::apply("avg_pool2d", {x},
                      {{"kernel", kernel},
                       {"stride", stride},
                       {"pads", pads},
                       {"dilation", std::vector<int64_t>{1, 1}},
                       {"ceil_mode", int64_t{ceil_mode}},
                       {"count_pads", int64_t{count_pads}}})[0];
}

}  // namespace hidet::ops
