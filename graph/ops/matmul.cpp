// matmul.cpp - products of matrices with broadcast batch dims; sides of rank 1 as numpy.
// f16 and bf16 accumulate in f32. Integers wrap.
#include <hidet/graph/ops.h>

#include <algorithm>

#include "core/gemm.h"
#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::Value;

/// Shapes of one product: batch dims and m, n, k; a side of rank 1 is a row or a column.
struct Sizes {
  Dims a, b;  ///< of rank 2 or more
  Dims batch;
  DimExpr m, n, k;
  bool drop_m, drop_n;
  Dims out;
};

Sizes sizes_of(const OpCall& call) {
  op_inputs("matmul", call, 2);
  op_same_dtype("matmul", call);
  Sizes s;
  s.a = call.inputs[0].shape;
  s.b = call.inputs[1].shape;
  HIDET_OP_REQUIRE(!s.a.empty() && !s.b.empty(), "matmul", "the shapes ", shape_text(s.a), " and ",
                   shape_text(s.b), ": a side of rank 0");
  HIDET_OP_REQUIRE(!call.inputs[0].dtype.is_boolean(), "matmul", "takes numbers, not boolean",
                   shape_text(s.a));
  s.drop_m = s.a.size() == 1;
  s.drop_n = s.b.size() == 1;
  if (s.drop_m) s.a.insert(s.a.begin(), 1);
  if (s.drop_n) s.b.push_back(1);
  s.m = s.a[s.a.size() - 2];
  s.n = s.b.back();
  s.k = s.a.back();
  const DimExpr& k = s.b[s.b.size() - 2];
  HIDET_OP_REQUIRE(s.k == k || !s.k.is_const() || !k.is_const(), "matmul", "the shapes ",
                   shape_text(call.inputs[0].shape), " and ", shape_text(call.inputs[1].shape),
                   ": ", s.k, " columns meet ", k, " rows");
  if (!s.k.is_const()) s.k = k;  // a number where one side has one
  s.batch =
      op_broadcast("matmul", {Dims(s.a.begin(), s.a.end() - 2), Dims(s.b.begin(), s.b.end() - 2)});
  s.out = s.batch;
  if (!s.drop_m) s.out.push_back(s.m);
  if (!s.drop_n) s.out.push_back(s.n);
  return s;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  return {{call.inputs.at(0).dtype, sizes_of(call).out}};
}

ir::Task compute(const OpCall& call) {
  const Sizes s = sizes_of(call);
  const DType t = call.inputs[0].dtype, wide = working_dtype(t);
  ir::Task task = new_task("matmul", call);
  task.outputs = {add_compute(task, "y", {t, s.out}, [&](const Values& at) {
    const Values batch(at.begin(), at.begin() + static_cast<int64_t>(s.batch.size()));
    const Value total = reduce(ir::ReduceOp::sum, {s.k}, [&](const Values& k) {
      Values a = broadcast_indices(Dims(s.a.begin(), s.a.end() - 2), s.batch, batch);
      Values b = broadcast_indices(Dims(s.b.begin(), s.b.end() - 2), s.batch, batch);
      if (!s.drop_m) a.push_back(at[s.batch.size()]);
      a.push_back(k[0]);
      b.push_back(k[0]);
      if (!s.drop_n) b.push_back(at.back());
      return ir::cast(element(task.inputs[0], a), ir::Type(wide)) *
             ir::cast(element(task.inputs[1], b), ir::Type(wide));
    });
    return ir::cast(total, ir::Type(t));
  })};
  return task;
}

template <class T>
void run_batches(const Sizes& s, const Tensor& a, const Tensor& b, const Tensor& c) {
  const int64_t m = s.m.value(), n = s.n.value(), k = s.k.value();
  const Shape batch = to_concrete(s.batch);
  const auto offset = [&](const Dims& shape, const Shape& at) {
    int64_t out = 0;
    for (size_t d = 0; d + 2 < shape.size(); d++) {
      const int64_t i = at[at.size() - (shape.size() - 2) + d];
      out = out * shape[d].value() + (shape[d].is_const(1) ? 0 : i);
    }
    return out;
  };
  Shape at(batch.size());
  for (int64_t i = 0, count = product(batch); i < count; i++) {
    gemm(static_cast<const T*>(a.data()) + offset(s.a, at) * m * k,
         static_cast<const T*>(b.data()) + offset(s.b, at) * k * n,
         static_cast<T*>(c.data()) + i * m * n, m, n, k);
    for (size_t d = batch.size(); d-- > 0 && ++at[d] == batch[d];) at[d] = 0;
  }
}

std::vector<Tensor> reference(const OpCall& call, const std::vector<Tensor>& inputs) {
  const Sizes s = sizes_of(call);
  const DType t = inputs[0].dtype();
  if (!t.is_float()) return interpret(compute(call), inputs);
  const Tensor a = widened(inputs[0]), b = widened(inputs[1]);
  const Tensor c = empty(to_concrete(s.out), a.dtype());
  if (c.num_elements() > 0) {
    if (a.dtype() == f64) run_batches<double>(s, a, b, c);
    else run_batches<float>(s, a, b, c);
  }
  return {narrowed(c, t)};
}
}  // namespace

void register_matmul(OpRegistry& ops) {
  std::vector<OpSample> samples;
  for (DType t : {f32, f16, bf16, f64, i32, i8})
    samples.push_back({{{t, {17, 31}}, {t, {31, 33}}}});
  samples.push_back({{{f32, {2, 1, 5, 8}}, {f32, {3, 8, 7}}}});
  samples.push_back({{{f32, {8}}, {f32, {2, 8, 7}}}});
  samples.push_back({{{f32, {2, 7, 8}}, {f32, {8}}}});
  samples.push_back({{{f32, {8}}, {f32, {8}}}});
  samples.push_back({{{f32, {"n", 8}}, {f32, {8, 5}}}});
  samples.push_back({{{f32, {"n", 3, 8}}, {f32, {3, 8, 5}}}});
  samples.push_back({{{f32, {3, "n"}}, {f32, {"n", 5}}}});
  samples.push_back({{{f32, {3, 0}}, {f32, {0, 5}}}});
  samples.push_back({{{f32, {0, 3}}, {f32, {3, 5}}}});
  samples.push_back({{{f32, {1, 1}}, {f32, {1, 1}}}});
  ops.add({.name = "matmul",
           .doc = "[.., m, k] x [.., k, n] with broadcast batch dims; sides of rank 1 as numpy",
           .infer = infer,
           .compute = compute,
           .reference = reference,
           .samples = samples});
}

}  // namespace hidet::graph

namespace hidet::ops {
Tensor matmul(const Tensor& a, const Tensor& b) { return graph::apply("matmul", {a, b})[0]; }
}  // namespace hidet::ops
