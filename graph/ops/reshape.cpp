// reshape.cpp - the same elements in row-major order under another shape: reshape, flatten, squeeze, unsqueeze.
#include <hidet/graph/ops.h>

#include <algorithm>

#include "core/op_common.h"

namespace hidet::graph {
namespace {

/// The target shape with its -1 replaced.
Dims resolve(const std::string& name, const Dims& from, Dims to) {
  int64_t unknown = -1;
  DimExpr known = 1;
  for (size_t d = 0; d < to.size(); d++) {
    if (!to[d].is_const(-1)) {
      HIDET_OP_REQUIRE(!to[d].is_const() || to[d].value() >= 0, name, "the size ", to[d], " in ",
                       shape_text(to));
      known *= to[d];
      continue;
    }
    HIDET_OP_REQUIRE(unknown < 0, name, "two sizes of ", shape_text(to), " are -1");
    unknown = static_cast<int64_t>(d);
  }
  const DimExpr total = product(from);
  if (unknown >= 0) {
    HIDET_OP_REQUIRE(!known.is_const(0), name, "-1 in ", shape_text(to), " could be any size");
    HIDET_OP_REQUIRE(!known.is_const() || !total.is_const() || total.value() % known.value() == 0,
                     name, shape_text(from), " does not divide into ", shape_text(to));
    to[unknown] = floordiv(total, known);
  }
  HIDET_OP_REQUIRE(!total.is_const() || !product(to).is_const() || total == product(to), name,
                   shape_text(from), " cannot become ", shape_text(to));
  return to;
}

using Infer = Dims (*)(const OpCall&);

Dims infer_reshape(const OpCall& call) {
  return resolve("reshape", call.inputs[0].shape, call.attrs.dims("shape"));
}
Dims infer_flatten(const OpCall& call) {
  const Dims& x = call.inputs[0].shape;
  int64_t axis = call.attrs.integer("axis");
  const auto rank = static_cast<int64_t>(x.size());
  HIDET_OP_REQUIRE(axis >= -rank && axis <= rank, "flatten", "axis ", axis, " of ", shape_text(x));
  if (axis < 0) axis += rank;
  return {product(Dims(x.begin(), x.begin() + axis)), product(Dims(x.begin() + axis, x.end()))};
}
Dims infer_squeeze(const OpCall& call) {
  const Dims& x = call.inputs[0].shape;
  const auto axes =
      op_axes("squeeze", call.attrs.integers("axes"), static_cast<int64_t>(x.size()), false);
  Dims out;
  for (size_t d = 0; d < x.size(); d++) {
    const bool drop = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d));
    HIDET_OP_REQUIRE(!drop || !x[d].is_const() || x[d].value() == 1, "squeeze", "axis ", d, " of ",
                     shape_text(x), " is not 1");
    if (!drop) out.push_back(x[d]);
  }
  return out;
}
Dims infer_unsqueeze(const OpCall& call) {
  const Dims& x = call.inputs[0].shape;
  const auto& given = call.attrs.integers("axes");
  const auto axes =
      op_axes("unsqueeze", given, static_cast<int64_t>(x.size() + given.size()), false);
  Dims out = x;
  for (int64_t a : axes) out.insert(out.begin() + a, 1);
  return out;
}

/// Sizes [a, a + n) of one shape and [b, b + m) of another hold the same number of elements.
struct Section {
  size_t a, n, b, m;
};

/// The smallest sections that two shapes of as many elements fall into: [n, 6] and [n, 2, 3] into n and n,
/// 6 and 2 * 3. Symbols are compared as formulas. A shape with a size of 0 is one section.
std::vector<Section> sections_of(const Dims& x, const Dims& y) {
  const auto is_zero = [](const DimExpr& d) { return d.is_const(0); };
  std::vector<Section> out;
  size_t a = 0, b = 0;
  const bool empty =
      std::any_of(x.begin(), x.end(), is_zero) || std::any_of(y.begin(), y.end(), is_zero);
  while (!empty && a < x.size() && b < y.size()) {
    bool found = false;
    for (size_t sum = 2; !found && sum <= x.size() - a + y.size() - b; sum++)
      for (size_t n = 1; !found && n < sum; n++) {
        const size_t m = sum - n;
        if (a + n > x.size() || b + m > y.size()) continue;
        const auto size = [](const Dims& s, size_t from, size_t count) {
          return product(Dims(s.begin() + static_cast<int64_t>(from),
                              s.begin() + static_cast<int64_t>(from + count)));
        };
        if (!(size(x, a, n) == size(y, b, m))) continue;
        out.push_back({a, n, b, m});
        found = true;
      }
    if (!found) break;
    a += out.back().n;
    b += out.back().m;
  }
  if (a < x.size() || b < y.size()) out.push_back({a, x.size() - a, b, y.size() - b});
  return out;
}

/// Indices in `other` of the element at `at` of `shape`: through the flat index of each section, so that what the
/// shapes have in common needs no arithmetic. Neither do sizes of 1.
Values same_element(const Values& at, const Dims& shape, const Dims& other) {
  const auto part = [](const auto& list, size_t from, size_t count) {
    return std::decay_t<decltype(list)>(list.begin() + static_cast<int64_t>(from),
                                        list.begin() + static_cast<int64_t>(from + count));
  };
  Values indices, to;
  Dims from_dims, to_dims;
  for (size_t d = 0; d < shape.size(); d++)
    if (!shape[d].is_const(1)) indices.push_back(at[d]), from_dims.push_back(shape[d]);
  for (const DimExpr& d : other)
    if (!d.is_const(1)) to_dims.push_back(d);
  for (const Section& s : sections_of(from_dims, to_dims)) {
    if (s.m == 0) continue;
    const Values from = part(indices, s.a, s.n);
    const Values found = s.n == 1 && s.m == 1
                             ? from
                             : unflatten_index(flatten_index(from, part(from_dims, s.a, s.n)),
                                               part(to_dims, s.b, s.m));
    to.insert(to.end(), found.begin(), found.end());
  }
  for (size_t d = 0; d < other.size(); d++)
    if (other[d].is_const(1))
      to.insert(to.begin() + static_cast<int64_t>(d), ir::Value(ir::make_int(0, ir::Type(i64))));
  return to;
}

ir::Task compute(const std::string& name, Infer infer, const OpCall& call) {
  const TensorSpec& x = call.inputs[0];
  const Dims out = infer(call);
  ir::Task task = new_task(name, call);
  task.outputs = {add_compute(task, "y", {x.dtype, out}, [&](const Values& at) {
    return element(task.inputs[0], same_element(at, out, x.shape));
  })};
  set_inverse(task, 0, [&](const Values& at) { return same_element(at, x.shape, out); });
  return task;
}

void add(OpRegistry& ops, const std::string& name, const std::string& doc, Infer infer,
         std::vector<OpSample> samples) {
  ops.add({.name = name,
           .doc = doc,
           .infer = [name, infer](const OpCall& call) -> std::vector<TensorSpec> {
             op_inputs(name, call, 1);
             return {{call.inputs[0].dtype, infer(call)}};
           },
           .compute = [name, infer](const OpCall& call) { return compute(name, infer, call); },
           .reference = [infer](const OpCall& call,
                                const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
             return {inputs[0].reshape(to_concrete(infer(call))).clone()};
           },
           .samples = std::move(samples)});
}
}  // namespace

void register_reshape(OpRegistry& ops) {
  const auto to = [](Dims shape) { return Attrs{{"shape", std::move(shape)}}; };
  const auto axes = [](std::vector<int64_t> a) { return Attrs{{"axes", std::move(a)}}; };
  add(ops, "reshape", "the same elements under another shape; one size may be -1", infer_reshape,
      {{{{f32, {3, 4}}}, to({2, -1})},
       {{{i64, {6}}}, to({3, 2})},
       {{{boolean, {2, 3}}}, to({3, 1, 2})},
       {{{f32, {"n", 4}}}, to({-1, 2})},
       {{{f16, {"n", 4, 3}}}, to({-1, 12})},
       {{{f32, {0, 3}}}, to({3, 0})},
       {{{f32, {1}}}, to({})}});
  add(ops, "flatten", "a matrix: the dims before `axis` and those from it on", infer_flatten,
      {{{{f32, {2, 3, 4}}}, {{"axis", int64_t{1}}}},
       {{{f32, {"n", 3, 4}}}, {{"axis", int64_t{2}}}},
       {{{f32, {0, 3}}}, {{"axis", int64_t{0}}}}});
  add(ops, "squeeze", "without the dims `axes`, which are 1", infer_squeeze,
      {{{{f32, {1, 3, 1}}}, axes({0, -1})},
       {{{i32, {"n", 1}}}, axes({1})},
       {{{f32, {0, 1}}}, axes({1})}});
  add(ops, "unsqueeze", "with dims of 1 at `axes`", infer_unsqueeze,
      {{{{f32, {3, 2}}}, axes({0, -1})}, {{{i32, {"n"}}}, axes({1})}, {{{f32, {0}}}, axes({0})}});
}

}  // namespace hidet::graph

namespace hidet::ops {
Tensor reshape(const Tensor& x, const std::vector<DimExpr>& shape) {
  return graph::apply("reshape", {x}, {{"shape", shape}})[0];
}
Tensor flatten(const Tensor& x, int64_t axis) {
  return graph::apply("flatten", {x}, {{"axis", axis}})[0];
}
Tensor squeeze(const Tensor& x, const std::vector<int64_t>& axes) {
  return graph::apply("squeeze", {x}, {{"axes", axes}})[0];
}
Tensor unsqueeze(const Tensor& x, const std::vector<int64_t>& axes) {
  return graph::apply("unsqueeze", {x}, {{"axes", axes}})[0];
}
}  // namespace hidet::ops
