// move.cpp - operators that only move elements: transpose, expand, tile, slice, pad, concat, split.
#include <hidet/graph/ops.h>

#include <algorithm>
#include <limits>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::Value;
using Ints = std::vector<int64_t>;

const Dims& only(const std::string& op, const OpCall& call) {
  op_inputs(op, call, 1);
  return call.inputs[0].shape;
}

/// Output element `at` is the input's at map(at).
ir::Task move_task(const std::string& name, const OpCall& call, const Dims& out,
                   const std::function<Values(const Values&)>& map) {
  ir::Task task = new_task(name, call);
  task.outputs = {add_compute(task, "y", {call.inputs[0].dtype, out},
                              [&](const Values& at) { return element(task.inputs[0], map(at)); })};
  return task;
}

// --- transpose

Ints perm_of(const OpCall& call) {
  const Dims& x = only("transpose", call);
  const Ints& perm = call.attrs.integers("perm");
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool fine = perm.size() == x.size();
  for (size_t d = 0; fine && d < sorted.size(); d++) fine = sorted[d] == static_cast<int64_t>(d);
  HIDET_OP_REQUIRE(fine, "transpose", shape_text(perm), " is no order of the axes of ",
                   shape_text(x));
  return perm;
}
std::vector<TensorSpec> infer_transpose(const OpCall& call) {
  Dims out;
  for (int64_t p : perm_of(call)) out.push_back(call.inputs[0].shape[p]);
  return {{call.inputs[0].dtype, out}};
}
ir::Task compute_transpose(const OpCall& call) {
  const Ints perm = perm_of(call);
  ir::Task task =
      move_task("transpose", call, infer_transpose(call)[0].shape, [&](const Values& at) {
        Values from(at.size());
        for (size_t d = 0; d < at.size(); d++) from[perm[d]] = at[d];
        return from;
      });
  set_inverse(task, 0, [&](const Values& at) {
    Values to;
    for (int64_t p : perm) to.push_back(at[p]);
    return to;
  });
  return task;
}

// --- expand, tile

std::vector<TensorSpec> infer_expand(const OpCall& call) {
  return {{call.inputs.at(0).dtype,
           op_broadcast("expand", {only("expand", call), call.attrs.dims("shape")})}};
}
ir::Task compute_expand(const OpCall& call) {
  const Dims out = infer_expand(call)[0].shape;
  return move_task("expand", call, out, [&](const Values& at) {
    return broadcast_indices(call.inputs[0].shape, out, at);
  });
}

std::vector<TensorSpec> infer_tile(const OpCall& call) {
  Dims out = only("tile", call);
  const Ints& repeats = call.attrs.integers("repeats");
  HIDET_OP_REQUIRE(repeats.size() == out.size() && std::all_of(repeats.begin(), repeats.end(),
                                                               [](int64_t r) { return r >= 0; }),
                   "tile", shape_text(repeats), " are not repeats of 0 or more for each axis of ",
                   shape_text(out));
  for (size_t d = 0; d < out.size(); d++) out[d] *= repeats[d];
  return {{call.inputs[0].dtype, out}};
}
ir::Task compute_tile(const OpCall& call) {
  return move_task("tile", call, infer_tile(call)[0].shape, [&](const Values& at) {
    Values from;
    for (size_t d = 0; d < at.size(); d++) {
      const bool once = call.attrs.integers("repeats")[d] == 1;
      from.push_back(once ? at[d] : at[d] % index_value(call.inputs[0].shape[d]));
    }
    return from;
  });
}

// --- slice: ONNX's clamping. Sizes that are symbols are taken as what the formulas say.

struct Cut {
  std::vector<DimExpr> start, count;  ///< one a dimension
  Ints step;
};
/// `v` counted from the end where negative, clamped to [low, high].
DimExpr clamped(const DimExpr& v, const DimExpr& extent, const DimExpr& low, const DimExpr& high) {
  constexpr int64_t kFar = int64_t{1} << 40;  // sentinels for "to the end"
  if (v.is_const() && v.value() >= kFar) return high;
  if (v.is_const() && v.value() <= -kFar) return low;
  if (v == extent) return min(high, extent);
  const bool from_end = v.is_const() ? v.value() < 0 : false;
  return max(low, min(from_end ? v + extent : v, high));
}
Cut cut_of(const OpCall& call) {
  const Dims& x = only("slice", call);
  const auto &starts = call.attrs.dims("starts"), &ends = call.attrs.dims("ends");
  const auto &axes = call.attrs.integers("axes"), &steps = call.attrs.integers("steps");
  HIDET_OP_REQUIRE(
      starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
      "slice", starts.size(), " starts, ", ends.size(), " ends, ", axes.size(), " axes and ",
      steps.size(), " steps");
  op_axes("slice", axes, static_cast<int64_t>(x.size()), false);
  Cut cut{Dims(x.size(), DimExpr(0)), x, Ints(x.size(), 1)};
  for (size_t i = 0; i < axes.size(); i++) {
    const int64_t d = op_axis("slice", axes[i], static_cast<int64_t>(x.size())), step = steps[i];
    HIDET_OP_REQUIRE(step != 0, "slice", "a step of 0 along axis ", d, " of ", shape_text(x));
    const DimExpr& n = x[d];
    const DimExpr start = step > 0 ? clamped(starts[i], n, 0, n) : clamped(starts[i], n, 0, n - 1);
    const DimExpr end = step > 0 ? clamped(ends[i], n, 0, n) : clamped(ends[i], n, -1, n - 1);
    const int64_t size = step > 0 ? step
                         : step == std::numeric_limits<int64_t>::min()
                             ? std::numeric_limits<int64_t>::max()
                             : -step;
    const DimExpr distance = step > 0 ? end - start : start - end;
    cut.start[d] = start;
    cut.step[d] = step;
    if (distance.is_const())
      cut.count[d] = distance.value() <= 0 ? 0 : (distance.value() - 1) / size + 1;
    else
      cut.count[d] = size == 1 ? (distance.never_negative() ? distance : max(distance, 0))
                               : max(ceildiv(distance, size), 0);
    // Backwards, an empty axis still starts at 0, before its end at -1: nothing is to be read.
    if (step < 0) cut.count[d] = min(cut.count[d], n);
  }
  return cut;
}
std::vector<TensorSpec> infer_slice(const OpCall& call) {
  return {{call.inputs.at(0).dtype, cut_of(call).count}};
}
ir::Task compute_slice(const OpCall& call) {
  const Cut cut = cut_of(call);
  return move_task("slice", call, cut.count, [&](const Values& at) {
    Values from;
    for (size_t d = 0; d < at.size(); d++) {
      const Value scaled = cut.step[d] == 1 ? at[d] : at[d] * index_value(cut.step[d]);
      from.push_back(cut.start[d].is_const(0) ? scaled : scaled + index_value(cut.start[d]));
    }
    return from;
  });
}

// --- pad

std::vector<TensorSpec> infer_pad(const OpCall& call) {
  Dims out = only("pad", call);
  const Ints& pads = call.attrs.integers("pads");
  const std::string& mode = call.attrs.text("mode");
  HIDET_OP_REQUIRE(mode == "constant" || mode == "reflect" || mode == "edge", "pad",
                   "there is no mode '", mode, "'; use constant, reflect or edge");
  HIDET_OP_REQUIRE(pads.size() == 2 * out.size(), "pad", "the pads ", shape_text(pads),
                   " are not two for each axis of ", shape_text(out));
  for (size_t d = 0; d < out.size(); d++) {
    const int64_t before = pads[d], after = pads[d + out.size()];
    constexpr int64_t kMost = int64_t{1} << 48;
    HIDET_OP_REQUIRE(std::max(before, after) <= kMost && std::min(before, after) >= -kMost, "pad",
                     "the pads ", shape_text(pads), " of axis ", d, " are too large");
    const DimExpr& n = call.inputs[0].shape[d];
    // What is left after cropping is what is reflected.
    const DimExpr kept = n + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    const int64_t most = std::max(before, after);
    if (mode == "reflect" && kept.is_const() && most > 0)
      HIDET_OP_REQUIRE(most < kept.value(), "pad", "a reflection of ", most, " along axis ", d,
                       " needs more than ", kept, " elements of ",
                       shape_text(call.inputs[0].shape));
    HIDET_OP_REQUIRE(mode != "edge" || !kept.is_const() || kept.value() > 0 || most <= 0, "pad",
                     "axis ", d, " has no edge to repeat");
    out[d] += before + after;
    HIDET_OP_REQUIRE(!out[d].is_const() || out[d].value() >= 0, "pad", "the pads ",
                     shape_text(pads), " crop more than ", shape_text(call.inputs[0].shape),
                     " has along axis ", d);
  }
  return {{call.inputs[0].dtype, out}};
}
ir::Task compute_pad(const OpCall& call) {
  const TensorSpec& x = call.inputs[0];
  const TensorSpec out = infer_pad(call)[0];
  const Ints& pads = call.attrs.integers("pads");
  const std::string& mode = call.attrs.text("mode");
  ir::Task task = new_task("pad", call);
  const size_t rank = x.shape.size();
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    Values from;
    Value in(ir::make_bool(true));
    for (size_t d = 0; d < rank; d++) {
      const int64_t before = pads[d], after = pads[d + rank];
      Value i = before == 0 ? at[d] : at[d] - index_value(before);
      // The elements that cropping leaves are [low, high].
      const Value low = index_value(std::max<int64_t>(-before, 0));
      const Value high = index_value(x.shape[d] + std::min<int64_t>(after, 0) - 1);
      if (before <= 0 && after <= 0) {
        from.push_back(i);
        continue;
      }
      if (mode == "constant") in = in && (i >= low && i <= high);
      if (mode == "edge") i = ir::min(ir::max(i, low), high);
      if (mode == "reflect")
        i = ir::select(i < low, low + low - i, ir::select(i > high, high + high - i, i));
      from.push_back(i);
    }
    const Value v = element(task.inputs[0], from);
    return mode == "constant" ? ir::select(in, v, constant(call.attrs.number("value"), x.dtype))
                              : v;
  })};
  return task;
}

// --- concat, split

std::vector<TensorSpec> infer_concat(const OpCall& call) {
  HIDET_OP_REQUIRE(!call.inputs.empty(), "concat", "of no tensors");
  op_same_dtype("concat", call);
  Dims out = call.inputs[0].shape;
  const int64_t axis =
      op_axis("concat", call.attrs.integer("axis"), static_cast<int64_t>(out.size()));
  for (size_t k = 1; k < call.inputs.size(); k++) {
    const Dims& s = call.inputs[k].shape;
    bool fine = s.size() == out.size();
    for (size_t d = 0; fine && d < s.size(); d++)
      fine = static_cast<int64_t>(d) == axis || s[d] == out[d] || !s[d].is_const() ||
             !out[d].is_const();
    HIDET_OP_REQUIRE(fine, "concat", "the shapes ", shape_text(call.inputs[0].shape), " and ",
                     shape_text(s), " differ beyond axis ", axis);
    out[axis] += s[axis];
  }
  return {{call.inputs[0].dtype, out}};
}
/// Input k of [first, last), whose elements begin at begins[k], by halving.
Value pick_part(const ir::Task& task, const Dims& begins, size_t first, size_t last, size_t axis,
                const Values& at) {
  if (first + 1 == last) {
    Values from = at;
    if (!begins[first].is_const(0)) from[axis] = at[axis] - index_value(begins[first]);
    return element(task.inputs[first], from);
  }
  const size_t middle = (first + last) / 2;
  return ir::select(at[axis] < index_value(begins[middle]),
                    pick_part(task, begins, first, middle, axis, at),
                    pick_part(task, begins, middle, last, axis, at));
}
ir::Task compute_concat(const OpCall& call) {
  const TensorSpec out = infer_concat(call)[0];
  const auto axis = static_cast<size_t>(
      op_axis("concat", call.attrs.integer("axis"), static_cast<int64_t>(out.shape.size())));
  Dims begins{DimExpr(0)};
  for (const TensorSpec& s : call.inputs) begins.push_back(begins.back() + s.shape[axis]);
  ir::Task task = new_task("concat", call);
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) {
    return pick_part(task, begins, 0, call.inputs.size(), axis, at);
  })};
  return task;
}

std::vector<TensorSpec> infer_split(const OpCall& call) {
  const Dims& x = only("split", call);
  const int64_t axis = op_axis("split", call.attrs.integer("axis"), static_cast<int64_t>(x.size()));
  std::vector<TensorSpec> out;
  int64_t total = 0;
  for (int64_t size : call.attrs.integers("sizes")) {
    HIDET_OP_REQUIRE(size >= 0, "split", "a part of size ", size);
    out.push_back({call.inputs[0].dtype, x});
    out.back().shape[axis] = size;
    total += size;
  }
  HIDET_OP_REQUIRE(!out.empty() && (!x[axis].is_const() || x[axis].value() == total), "split",
                   "parts of ", shape_text(call.attrs.integers("sizes")), " do not make up axis ",
                   axis, " of ", shape_text(x));
  return out;
}
ir::Task compute_split(const OpCall& call) {
  const std::vector<TensorSpec> outs = infer_split(call);
  const auto axis = static_cast<size_t>(op_axis("split", call.attrs.integer("axis"),
                                                static_cast<int64_t>(call.inputs[0].shape.size())));
  ir::Task task = new_task("split", call);
  int64_t begin = 0;
  for (size_t k = 0; k < outs.size(); k++) {
    task.outputs.push_back(
        add_compute(task, "y" + std::to_string(k), outs[k], [&](const Values& at) {
          Values from = at;
          if (begin > 0) from[axis] = at[axis] + index_value(begin);
          return element(task.inputs[0], from);
        }));
    begin += outs[k].shape[axis].value();
  }
  return task;
}

Attrs slice_attrs(Dims starts, Dims ends, Ints axes, Ints steps) {
  return {{"starts", std::move(starts)},
          {"ends", std::move(ends)},
          {"axes", std::move(axes)},
          {"steps", std::move(steps)}};
}
Attrs pad_attrs(Ints pads, const char* mode) {
  return {{"pads", std::move(pads)}, {"mode", std::string(mode)}, {"value", 1.5}};
}

void add(OpRegistry& ops, const char* name, const char* doc,
         std::vector<TensorSpec> (*infer)(const OpCall&), ir::Task (*compute)(const OpCall&),
         std::vector<OpSample> samples) {
  ops.add({.name = name,
           .doc = doc,
           .infer = infer,
           .compute = compute,
           .samples = std::move(samples)});
}
}  // namespace

void register_move(OpRegistry& ops) {
  const int64_t least = std::numeric_limits<int64_t>::min(),
                most = std::numeric_limits<int64_t>::max();
  add(ops, "transpose", "axes in the order `perm`", infer_transpose, compute_transpose,
      {{{{f32, {2, 3, 4}}}, {{"perm", Ints{2, 0, 1}}}},
       {{{i64, {3, 5}}}, {{"perm", Ints{1, 0}}}},
       {{{f16, {"n", 3}}}, {{"perm", Ints{1, 0}}}},
       {{{f32, {0, 3}}}, {{"perm", Ints{1, 0}}}},
       {{{boolean, {}}}, {{"perm", Ints{}}}}});
  add(ops, "expand", "broadcast to a shape, both ways", infer_expand, compute_expand,
      {{{{f32, {3, 1}}}, {{"shape", Dims{2, 1, 4}}}},
       {{{i64, {}}}, {{"shape", Dims{3}}}},
       {{{f32, {"n", 1}}}, {{"shape", Dims{1, 5}}}},
       {{{boolean, {1}}}, {{"shape", Dims{0}}}}});
  add(ops, "tile", "repeated along each axis", infer_tile, compute_tile,
      {{{{f32, {2, 3}}}, {{"repeats", Ints{2, 3}}}},
       {{{i32, {"n", 3}}}, {{"repeats", Ints{1, 2}}}},
       {{{f32, {2}}}, {{"repeats", Ints{0}}}}});
  add(ops, "slice", "numpy's x[start:end:step] by axis, ONNX's clamping", infer_slice,
      compute_slice,
      {{{{f32, {10}}}, slice_attrs({-1}, {least}, {0}, {-3})},
       {{{f32, {4, 9}}}, slice_attrs({1, 2}, {3, most}, {0, -1}, {1, 2})},
       {{{i64, {10}}}, slice_attrs({8}, {-100}, {0}, {-4})},
       {{{f32, {"n", 4}}}, slice_attrs({1}, {3}, {1}, {1})},
       {{{f32, {3, 4}}}, slice_attrs({3}, {1}, {1}, {1})},
       {{{f32, {0, 3}}}, slice_attrs({2}, {least}, {1}, {-1})}});
  add(ops, "pad", "constant, reflect or edge pads; negative ones crop", infer_pad, compute_pad,
      {{{{f32, {3, 4}}}, pad_attrs({1, 2, 0, 1}, "constant")},
       {{{f32, {3, 4}}}, pad_attrs({1, -1, 2, 3}, "edge")},
       {{{f64, {5}}}, pad_attrs({-2, 2}, "reflect")},
       {{{f32, {"n", 4}}}, pad_attrs({1, 1, 1, 1}, "constant")},
       {{{f32, {0, 2}}}, pad_attrs({1, 0, 0, 0}, "constant")}});
  add(ops, "concat", "joined along `axis`", infer_concat, compute_concat,
      {{{{f32, {2, 3}}, {f32, {2, 1}}, {f32, {2, 4}}}, {{"axis", int64_t{1}}}},
       {{{i64, {3}}}, {{"axis", int64_t{0}}}},
       {{{f16, {"n", 3}}, {f16, {2, 3}}}, {{"axis", int64_t{0}}}},
       {{{f32, {0, 3}}, {f32, {2, 3}}}, {{"axis", int64_t{0}}}}});
  add(ops, "split", "parts of `sizes` along `axis`", infer_split, compute_split,
      {{{{f32, {2, 7}}}, {{"axis", int64_t{-1}}, {"sizes", Ints{3, 0, 4}}}},
       {{{i64, {5}}}, {{"axis", int64_t{0}}, {"sizes", Ints{5}}}},
       {{{f32, {"n", 4}}}, {{"axis", int64_t{1}}, {"sizes", Ints{1, 3}}}}});
}

}  // namespace hidet::graph

namespace hidet::ops {
using graph::apply;

Tensor transpose(const Tensor& x, const std::vector<int64_t>& perm) {
  return apply("transpose", {x}, {{"perm", perm}})[0];
}
Tensor expand(const Tensor& x, const std::vector<DimExpr>& shape) {
  return apply("expand", {x}, {{"shape", shape}})[0];
}
Tensor tile(const Tensor& x, const std::vector<int64_t>& repeats) {
  return apply("tile", {x}, {{"repeats", repeats}})[0];
}
Tensor concat(const std::vector<Tensor>& parts, int64_t axis) {
  // A kernel takes at most 4 KiB of parameters on some drivers: more parts are joined by parts.
  constexpr size_t kMost = 256;
  if (parts.size() <= kMost) return apply("concat", parts, {{"axis", axis}})[0];
  std::vector<Tensor> joined;
  for (size_t i = 0; i < parts.size(); i += kMost)
    joined.push_back(
        concat({parts.begin() + static_cast<std::ptrdiff_t>(i),
                parts.begin() + static_cast<std::ptrdiff_t>(std::min(i + kMost, parts.size()))},
               axis));
  return concat(joined, axis);
}
std::vector<Tensor> split(const Tensor& x, int64_t axis, const std::vector<int64_t>& sizes) {
  return apply("split", {x}, {{"axis", axis}, {"sizes", sizes}});
}
Tensor slice(const Tensor& x, const std::vector<DimExpr>& starts, const std::vector<DimExpr>& ends,
             const std::vector<int64_t>& axes, const std::vector<int64_t>& steps) {
  return apply("slice", {x},
               {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}})[0];
}
Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, const std::string& mode,
           double value) {
  return apply("pad", {x}, {{"pads", pads}, {"mode", mode}, {"value", value}})[0];
}

}  // namespace hidet::ops
