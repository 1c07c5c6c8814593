// attention.cpp - scaled dot-product attention as one operator: softmax(q k^T + mask) v, the scale multiplied into q by
// who makes it. The pass fuse_attention makes it of products and a softmax.
#include <hidet/graph/ops.h>

#include <cmath>

#include "core/gemm.h"
#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::ReduceOp;
using ir::Value;

/// q [.., m, d], k [.., n, d], v [.., n, e], mask broadcast to [.., m, n]; y [.., m, e].
struct Sizes {
  Dims batch, q, k, v;  ///< batch dims: of the output and of the operands
  DimExpr m, n, d, e;
};

Dims batch_of(const TensorSpec& x) { return Dims(x.shape.begin(), x.shape.end() - 2); }

Sizes sizes_of(const OpCall& call) {
  HIDET_OP_REQUIRE(call.inputs.size() == 3 || call.inputs.size() == 4, "attention",
                   "takes 3 or 4 inputs, not ", call.inputs.size());
  op_same_dtype("attention", call);
  const TensorSpec &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  HIDET_OP_REQUIRE(q.dtype.is_float(), "attention", "takes floating-point numbers, not ", q.dtype);
  HIDET_OP_REQUIRE(q.shape.size() >= 2 && k.shape.size() >= 2 && v.shape.size() >= 2, "attention",
                   "takes matrices, not the shapes ", shape_text(q.shape), ", ",
                   shape_text(k.shape), " and ", shape_text(v.shape));
  Sizes s;
  s.q = batch_of(q), s.k = batch_of(k), s.v = batch_of(v);
  s.batch = op_broadcast("attention", {s.q, s.k, s.v});
  s.m = q.shape[s.q.size()], s.d = q.shape.back(), s.n = k.shape[s.k.size()], s.e = v.shape.back();
  HIDET_OP_REQUIRE(k.shape.back() == s.d && v.shape[s.v.size()] == s.n, "attention", "the shapes ",
                   shape_text(q.shape), ", ", shape_text(k.shape), " and ", shape_text(v.shape),
                   " are not [m, d], [n, d] and [n, e]");
  if (call.inputs.size() == 4) {
    Dims scores = s.batch;
    scores.insert(scores.end(), {s.m, s.n});
    HIDET_OP_REQUIRE(op_broadcast("attention", {call.inputs[3].shape, scores}) == scores,
                     "attention", "the mask of shape ", shape_text(call.inputs[3].shape),
                     " does not fit the scores ", shape_text(scores));
  }
  return s;
}

Dims with(Dims dims, const DimExpr& a, const DimExpr& b) {
  dims.insert(dims.end(), {a, b});
  return dims;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const Sizes s = sizes_of(call);
  return {{call.inputs[0].dtype, with(s.batch, s.m, s.e)}};
}

ir::Task compute(const OpCall& call) {
  const Sizes s = sizes_of(call);
  const DType t = working_dtype(call.inputs[0].dtype);
  ir::Task task = new_task("attention", call);
  const auto read = [&](int k, const Dims& batch, const Values& at, const Value& i,
                        const Value& j) {
    Values indices = broadcast_indices(batch, s.batch, at);
    indices.insert(indices.end(), {i, j});
    return ir::cast(element(task.inputs[k], indices), ir::Type(t));
  };
  const auto batch = [&](const Values& at) {
    return Values(at.begin(), at.begin() + static_cast<int64_t>(s.batch.size()));
  };
  const ir::VarRef scores =
      add_compute(task, "scores", {t, with(s.batch, s.m, s.n)}, [&](const Values& at) {
        const Value &i = at[at.size() - 2], &j = at.back();
        const Value sum = reduce(ReduceOp::sum, {s.d}, [&](const Values& d) {
          return read(0, s.q, batch(at), i, d[0]) * read(1, s.k, batch(at), j, d[0]);
        });
        if (call.inputs.size() == 3) return sum;
        return sum +
               ir::cast(element(task.inputs[3], broadcast_indices(call.inputs[3].shape,
                                                                  with(s.batch, s.m, s.n), at)),
                        ir::Type(t));
      });
  Dims rows = s.batch;
  rows.push_back(s.m);
  const auto score = [&](Values row, const Value& j) {
    row.push_back(j);
    return element(scores, row);
  };
  const ir::VarRef top = add_compute(task, "largest", {t, rows}, [&](const Values& at) {
    return reduce(ReduceOp::max, {s.n}, [&](const Values& j) { return score(at, j[0]); });
  });
  const ir::VarRef total = add_compute(task, "total", {t, rows}, [&](const Values& at) {
    return reduce(ReduceOp::sum, {s.n},
                  [&](const Values& j) { return math("exp", score(at, j[0]) - element(top, at)); });
  });
  task.outputs = {add_compute(task, "y", infer(call)[0], [&](const Values& at) {
    const Values row(at.begin(), at.end() - 1);
    const Value sum = reduce(ReduceOp::sum, {s.n}, [&](const Values& j) {
      return math("exp", score(row, j[0]) - element(top, row)) / element(total, row) *
             read(2, s.v, batch(at), j[0], at.back());
    });
    return ir::cast(sum, ir::Type(call.inputs[0].dtype));
  })};
  return task;
}

/// Offset of the matrix of `operand` (rows x columns) for position `at` of the batch.
int64_t offset_of(const Dims& operand, const Shape& at, int64_t rows, int64_t columns) {
  int64_t out = 0;
  for (size_t d = 0; d < operand.size(); d++)
    out = out * operand[d].value() +
          (operand[d].is_const(1) ? 0 : at[at.size() - operand.size() + d]);
  return out * rows * columns;
}

/// p[j] = exp(p[j] - largest) / sum, for a row of n scores.
template <class T>
void softmax_row(T* p, int64_t n) {
  T top = -std::numeric_limits<T>::infinity(), sum = 0;
  for (int64_t j = 0; j < n; j++) top = p[j] > top || std::isnan(p[j]) ? p[j] : top;
  for (int64_t j = 0; j < n; j++) sum += p[j] = std::exp(p[j] - top);
  for (int64_t j = 0; j < n; j++) p[j] /= sum;
}

template <class T>
void run(const OpCall& call, const std::vector<Tensor>& in, const Tensor& y) {
  const Sizes s = sizes_of(call);
  const int64_t m = s.m.value(), n = s.n.value(), d = s.d.value(), e = s.e.value();
  const Shape batch = to_concrete(s.batch);
  const auto data = [&](size_t k) { return static_cast<const T*>(in[k].data()); };
  std::vector<T> scores(static_cast<size_t>(m * n)), columns(static_cast<size_t>(d * n));
  Shape at(batch.size());
  for (int64_t b = 0, count = product(batch); b < count; b++) {
    const T* keys = data(1) + offset_of(s.k, at, n, d);
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < d; i++) columns[static_cast<size_t>(i * n + j)] = keys[j * d + i];
    gemm(data(0) + offset_of(s.q, at, m, d), columns.data(), scores.data(), m, n, d);
    for (int64_t i = 0; i < m; i++) {
      if (in.size() == 4) {
        const Tensor& mask = in[3];
        Shape place = at;
        place.insert(place.end(), {i, int64_t{0}});
        for (int64_t j = 0; j < n; j++) {
          place.back() = j;
          int64_t from = 0;
          for (int k = 0; k < mask.rank(); k++) {
            const int64_t size = mask.shape(k);
            from = from * size +
                   (size == 1 ? 0 : place[place.size() - static_cast<size_t>(mask.rank() - k)]);
          }
          scores[static_cast<size_t>(i * n + j)] += data(3)[from];
        }
      }
      softmax_row(scores.data() + i * n, n);
    }
    gemm(scores.data(), data(2) + offset_of(s.v, at, n, e), static_cast<T*>(y.data()) + b * m * e,
         m, e, n);
    for (size_t k = batch.size(); k-- > 0 && ++at[k] == batch[k];) at[k] = 0;
  }
}

std::vector<Tensor> reference(const OpCall& call, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> wide;
  for (const Tensor& t : inputs) wide.push_back(widened(t));
  const Tensor y = empty(to_concrete(infer(call)[0].shape), wide[0].dtype());
  if (y.num_elements() > 0) {
    if (y.dtype() == f64) run<double>(call, wide, y);
    else run<float>(call, wide, y);
  }
  return {narrowed(y, inputs[0].dtype())};
}

}  // namespace

void register_attention(OpRegistry& ops) {
  ops.add({.name = "attention",
           .doc = "softmax(q k^T + mask) v of q [.., m, d], k [.., n, d], v [.., n, e]",
           .infer = infer,
           .compute = compute,
           .reference = reference,
           .samples = {{{{f32, {2, 3, 9, 16}}, {f32, {2, 3, 33, 16}}, {f32, {2, 3, 33, 20}}}},
                       {{{f32, {2, 2, 9, 8}},
                         {f32, {2, 1, 33, 8}},
                         {f32, {2, 1, 33, 8}},
                         {f32, {1, 1, 9, 33}}}},
                       {{{f32, {"n", 8}}, {f32, {"n", 8}}, {f32, {"n", 40}}, {f32, {"n"}}}},
                       {{{f64, {8, 4}}, {f64, {5, 4}}, {f64, {5, 3}}}},
                       {{{f16, {8, 4}}, {f16, {5, 4}}, {f16, {5, 3}}}},
                       {{{f32, {0, 4}}, {f32, {5, 4}}, {f32, {5, 3}}}},
                       {{{f32, {2, 4}}, {f32, {0, 4}}, {f32, {0, 3}}}},
                       {{{f32, {1, 1}}, {f32, {1, 1}}, {f32, {1, 1}}}}}});
}

}  // namespace hidet::graph
