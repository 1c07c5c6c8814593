// cpu_batch_matmul.cpp - products of two computed matrices, any sizes, batch dims broadcast (docs/cpu_kernels.md, 4). A task is one
// matrix of the batch and a group of column blocks. Its part of the right side is packed into scratch, zero beyond the
// last column; each row tile of the left side is copied to scratch in runs of K with a constant distance. A tile's results
// go to scratch and from there through the epilogue, row by row: a tile may have more rows and columns than are wanted.
#include "schedules/tile.h"

#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Columns of a task (whole column blocks); K of one run of the copied rows, and the distance of those rows (odd in cache lines, so that rows differ in
/// their L1 set).
constexpr int64_t kColumns = 128, kRun = 256, kDistance = kRun + 16;

class BatchMatmul {
 public:
  BatchMatmul(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused),
        shape_(tile_shape(target, fused.chosen("panels", 0))),
        columns_(fused.chosen("columns", kColumns)) {
    const std::vector<Expr>&as = shape_of(fused.anchor.inputs[0]),
          &bs = shape_of(fused.anchor.inputs[1]), &ys = shape_of(fused.anchor.outputs[0]);
    m_ = Value(ys[ys.size() - 2]);
    n_ = Value(ys.back());
    k_ = Value(as.back());
    batch_.assign(ys.begin(), ys.end() - 2);
    a_batch_.assign(as.begin(), as.end() - 2);
    b_batch_.assign(bs.begin(), bs.end() - 2);
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    const std::vector<int64_t> sizes = row_counts();
    for (int64_t r : sizes) m.functions.push_back(tile(r));
    m.functions.push_back(finish());
    m.functions.push_back(fused_.launch(tasks(sizes)));
    return m;
  }

 private:
  std::vector<int64_t> row_counts() const {
    int64_t m = 0;
    if (is_const_int(m_.expr(), &m))  // no rows: a tile that is not called
      return distinct_heights(split_evenly(std::max<int64_t>(m, 1), shape_.rows));
    // Even parts of more than one tile have at least these rows; a tile of fewer computes a few for nothing.
    std::vector<int64_t> all;
    for (int64_t r = shape_.rows; r > shape_.rows / 2; r--) all.push_back(r);
    return all;
  }

  /// tile_R(rows, panels, k, results)
  Function tile(int64_t rows) const {
    TileKernel t;
    t.shape = shape_;
    t.columns = shape_.columns();
    t.panel_stride = kPanelColumns;
    t.b_step = shape_.columns();
    t.run = kRun;
    t.run_step = shape_.rows * kDistance;
    return raw_tile("tile_" + std::to_string(rows), t, rows, kDistance, {.runtime_k = true});
  }

  /// finish(parameters..., results, height, width, batch, first row, column block)
  Function finish() const {
    Function f;
    f.name = "finish";
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    const VarRef from = make_var("from", Type::pointer(Type(f32))),
                 height = make_var("height", Type(i64)), width = make_var("width", Type(i64)),
                 batch = make_var("batch", Type(i64)), row = make_var("row", Type(i64)),
                 block = make_var("block", Type(u32));
    for (const VarRef& p : {from, height, width, batch, row, block}) f.params.push_back(p);
    std::vector<Stmt> body;
    const std::vector<Value> at = declare_indices(body, Value(Expr(batch)), batch_);
    const int64_t columns = shape_.columns();
    const Value first = Value(make_cast(block, Type(i64))) * number(columns);
    body.push_back(loop("i", height, LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> one;
      const Value results = declare(one, "results", Value(Expr(from)) + i * number(columns));
      const auto store = [&](const Value& c, const Value& value) {
        std::vector<Value> indices = at;
        indices.push_back(Value(Expr(row)) + i);
        indices.push_back(first + c);
        return fused_.store(indices, value);
      };
      const Stmt part = loop("j", width, LoopKind::serial, [&](const Value& j) {
        return store(j, Value(make_load(results.expr(), j.expr())));
      });
      one.push_back(make_stmt<If>({}, (Value(Expr(width)) == number(columns)).expr(),
                                  make_seq(store_raw_row(results, columns, shape_.lanes, store)),
                                  part));
      return make_seq(std::move(one));
    }));
    f.body = make_seq(std::move(body));
    return f;
  }

  /// Number of the input's matrix for a position in the batch.
  static Value matrix(const std::vector<Expr>& input, const std::vector<Value>& at) {
    Value flat = number(0);
    const size_t skip = at.size() - input.size();
    for (size_t d = 0; d < input.size(); d++) {
      int64_t n = 0;
      const bool one = is_const_int(input[d], &n) && n == 1;
      flat = flat * Value(input[d]) + (one ? number(0) : at[d + skip]);
    }
    return flat;
  }

  Stmt tasks(const std::vector<int64_t>& sizes) const {
    std::vector<Stmt> body;
    const Value m = declare(body, "m", m_), n = declare(body, "n", n_), k = declare(body, "k", k_);
    const Value groups = declare(body, "groups", (n + number(columns_ - 1)) / number(columns_));
    const Value a = declare(body, "a", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    body.push_back(loop(
        "task", (Value(size_of(batch_)) * groups).expr(), LoopKind::parallel,
        [&](const Value& task) {
          std::vector<Stmt> in;
          const Value batch = declare(in, "batch", task / groups),
                      first = declare(in, "first", task % groups * number(columns_));
          const std::vector<Value> at = declare_indices(in, batch, batch_);
          const Value left = declare(in, "left", a + matrix(a_batch_, at) * m * k),
                      right = declare(in, "right", b + (matrix(b_batch_, at) * k * n + first));
          const Value width = declare(in, "width", least(number(columns_), n - first));
          const Value panels = declare(in, "panels", scratch_floats(0, k * number(columns_)));
          in.push_back(pack_columns(panels, right, width, n, k, shape_));
          const Value runs = (k + number(kRun - 1)) / number(kRun);
          const Value rows =
              declare(in, "rows", scratch_floats(1, runs * number(shape_.rows * kDistance)));
          const Value results =
              declare(in, "results", scratch_floats(2, number(shape_.rows * shape_.columns())));
          const Value tiles =
              declare(in, "tiles", (m + number(shape_.rows - 1)) / number(shape_.rows));
          in.push_back(loop("tile", tiles.expr(), LoopKind::serial, [&](const Value& i) {
            std::vector<Stmt> one;
            const Value row = declare(one, "row", i * (m / tiles) + least(i, m % tiles));
            const Value height =
                declare(one, "height", m / tiles + select(i < m % tiles, number(1), number(0)));
            one.push_back(copy_rows(rows, left + row * k, height, k));
            one.push_back(
                loop_from("c", index(0), width.expr(), shape_.columns(), [&](const Value& c) {
                  const Stmt choice = choose_rows(sizes, height, [&](int64_t r) {
                    return call("tile_" + std::to_string(r), {rows, panels + c * k, k, results});
                  });
                  std::vector<Value> last = parameter_values(fused_);
                  const Value block = (first + c) / number(shape_.columns());
                  for (const Value& v :
                       {results, height, least(number(shape_.columns()), width - c), batch, row,
                        Value(make_cast(block.expr(), Type(u32)))})
                    last.push_back(v);
                  return make_seq({choice, call("finish", last)});
                }));
            return make_seq(std::move(one));
          }));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  /// rows[run][i][k in run] = from[i][k].
  Stmt copy_rows(const Value& rows, const Value& from, const Value& height, const Value& k) const {
    return loop_from("done", index(0), k.expr(), kRun, [&](const Value& done) {
      std::vector<Stmt> body;
      const Value count = declare(body, "count", least(number(kRun), k - done));
      body.push_back(loop("i", height.expr(), LoopKind::serial, [&](const Value& i) {
        std::vector<Stmt> one;
        const Value to = declare(
            one, "to",
            rows + (done / number(kRun) * number(shape_.rows * kDistance) + i * number(kDistance)));
        const Value source = declare(one, "source", from + (i * k + done));
        const auto copy = [&](const Value& at, int width) -> Stmt {
          return make_stmt<Store>({}, to.expr(), at.expr(), load_f32(source, at, width));
        };
        const Value whole =
            declare(one, "whole", count / number(shape_.lanes) * number(shape_.lanes));
        one.push_back(loop_from("j", index(0), whole.expr(), shape_.lanes,
                                [&](const Value& j) { return copy(j, shape_.lanes); }));
        one.push_back(loop_from("j", whole.expr(), count.expr(), 1,
                                [&](const Value& j) { return copy(j, 1); }));
        return make_seq(std::move(one));
      }));
      return make_seq(std::move(body));
    });
  }

  const FusedTask& fused_;
  TileShape shape_;
  int64_t columns_;
  Value m_, n_, k_;
  std::vector<Expr> batch_, a_batch_, b_batch_;
};

bool accepts(const Task& t) {
  if (t.name != "matmul" || t.inputs.size() != 2 || t.outputs.size() != 1) return false;
  for (const VarRef& x : {t.inputs[0], t.inputs[1], t.outputs[0]})
    if (!is_f32_or_half(dtype_of(x))) return false;
  const std::vector<Expr>&a = shape_of(t.inputs[0]), &b = shape_of(t.inputs[1]),
        &y = shape_of(t.outputs[0]);
  if (a.size() < 2 || b.size() < 2 || y.size() != std::max(a.size(), b.size())) return false;
  if (!equal(a.back(), b[b.size() - 2]) || !equal(a[a.size() - 2], y[y.size() - 2]) ||
      !equal(b.back(), y.back()))
    return false;
  return batch_fits(t.inputs[0], t.outputs[0]) && batch_fits(t.inputs[1], t.outputs[0]);
}

}  // namespace

CpuSchedule cpu_batch_matmul_schedule() {
  return {"batch matmul",
          accepts,
          false,
          true,
          true,
          [](const FusedTask& f, const CpuTargetInfo& t) { return BatchMatmul(f, t).run(); },
          {{"panels", {1, 2, 4}}, {"columns", {64, 256}}}};
}

}  // namespace hidet::graph
