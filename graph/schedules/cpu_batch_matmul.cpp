// cpu_batch_matmul.cpp - products of two computed matrices, any sizes, batch dims broadcast (docs/cpu_kernels.md, 4). A task is one
// matrix of the batch and a group of column blocks. Its part of the right side is packed into scratch, zero beyond the
// last column; each row tile of the left side is copied to scratch in runs of K with a constant distance.
#include "schedules/tile.h"

#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Columns of a task; K of one run of the copied rows, and the distance of those rows (odd in cache lines, so that rows differ in
/// their L1 set).
constexpr int64_t kColumns = 128, kRun = 256, kDistance = kRun + 16;

class BatchMatmul {
 public:
  BatchMatmul(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), shape_(tile_shape(target)) {
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
    int64_t n = 0;
    const bool known = is_const_int(n_.expr(), &n);
    if (!known || n >= shape_.columns())
      for (int64_t r : sizes) m.functions.push_back(full_tile(r));
    m.functions.push_back(part_tile());
    Function f;
    f.name = "launch";
    f.kind = FuncKind::public_;
    f.params = fused_.parameters();
    f.no_alias = fused_.anchor.share_map.empty();
    f.body = tasks(sizes, known && n < shape_.columns());
    m.functions.push_back(std::move(f));
    return m;
  }

 private:
  std::vector<int64_t> row_counts() const {
    int64_t m = 0;
    std::vector<int64_t> all;
    if (is_const_int(m_.expr(), &m)) {
      all = split_evenly(m, shape_.rows);
      std::sort(all.rbegin(), all.rend());
      all.erase(std::unique(all.begin(), all.end()), all.end());
    } else {
      // Even parts of more than one tile have at least these rows; the few others go through tile_part.
      for (int64_t r = shape_.rows; r > shape_.rows / 2; r--) all.push_back(r);
    }
    return all;
  }

  std::vector<Value> position(std::vector<Stmt>& body, const Value& batch) const {
    if (batch_.empty()) return {};
    Unflattened u = unflatten(batch.expr(), batch_);
    body.insert(body.end(), u.declarations.begin(), u.declarations.end());
    return u.indices;
  }

  struct Parts {
    Function f;
    TileKernel t;
    Value k, batch, row, column;
  };
  /// name(parameters..., rows, panels, k, batch, first row, first column [, more])
  Parts start(const std::string& name, int64_t rows, const std::vector<VarRef>& more) const {
    Parts p;
    p.f.name = name;
    p.f.kind = FuncKind::cpu_internal;
    p.f.params = fused_.parameters();
    const Type pointer = Type::pointer(Type(f32));
    const VarRef a = make_var("a", pointer), b = make_var("b", pointer);
    std::vector<VarRef> list{a, b};
    for (const char* n : {"k", "batch", "row", "column"}) list.push_back(make_var(n, Type(i64)));
    p.f.params.insert(p.f.params.end(), list.begin(), list.end());
    p.f.params.insert(p.f.params.end(), more.begin(), more.end());
    p.k = Value(Expr(list[2])), p.batch = Value(Expr(list[3])), p.row = Value(Expr(list[4])),
    p.column = Value(Expr(list[5]));
    p.t.shape = shape_;
    p.t.columns = shape_.columns();
    p.t.a = Value(Expr(a));
    p.t.b = Value(Expr(b));
    p.t.panel_stride = kPanelColumns;
    p.t.b_step = shape_.columns();
    p.t.run = kRun;
    p.t.total = p.k;
    p.t.run_step = shape_.rows * kDistance;
    for (int64_t i = 0; i < rows; i++) p.t.row_offset.push_back(i * kDistance);
    return p;
  }

  Function full_tile(int64_t rows) const {
    Parts p = start("tile_" + std::to_string(rows), rows, {});
    std::vector<Stmt> body;
    const std::vector<Value> at = position(body, p.batch);
    p.t.store = [&](int64_t i, const Value& c, const Value& value) {
      std::vector<Value> indices = at;
      indices.push_back(p.row + number(i));
      indices.push_back(p.column + c);
      return fused_.store(indices, value);
    };
    body.push_back(tile_kernel(p.t));
    p.f.body = make_seq(std::move(body));
    return std::move(p.f);
  }

  /// `height` rows and `width` columns of a tile: the results go through `buffer`.
  Function part_tile() const {
    const VarRef height = make_var("height", Type(i64)), width = make_var("width", Type(i64)),
                 buffer = make_var("buffer", Type::pointer(Type(f32)));
    Parts p = start("tile_part", shape_.rows, {height, width, buffer});
    std::vector<Stmt> body;
    const std::vector<Value> at = position(body, p.batch);
    const int64_t columns = shape_.columns();
    p.t.store = [&](int64_t i, const Value& c, const Value& value) -> Stmt {
      return make_stmt<Store>({}, buffer, (c + number(i * columns)).expr(), value.expr());
    };
    body.push_back(tile_kernel(p.t));
    body.push_back(loop("i", height, LoopKind::serial, [&](const Value& i) {
      return loop("j", width, LoopKind::serial, [&](const Value& j) {
        std::vector<Value> indices = at;
        indices.push_back(p.row + i);
        indices.push_back(p.column + j);
        return fused_.store(indices, Value(make_load(buffer, (i * number(columns) + j).expr())));
      });
    }));
    p.f.body = make_seq(std::move(body));
    return std::move(p.f);
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

  Stmt tasks(const std::vector<int64_t>& sizes, bool narrow) const {
    std::vector<Stmt> body;
    const Value m = declare(body, "m", m_), n = declare(body, "n", n_), k = declare(body, "k", k_);
    const Value groups = declare(body, "groups", (n + number(kColumns - 1)) / number(kColumns));
    const Value a = declare(body, "a", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    body.push_back(loop(
        "task", (Value(size_of(batch_)) * groups).expr(), LoopKind::parallel,
        [&](const Value& task) {
          std::vector<Stmt> in;
          const Value batch = declare(in, "batch", task / groups),
                      first = declare(in, "first", task % groups * number(kColumns));
          const std::vector<Value> at = position(in, batch);
          const Value left = declare(in, "left", a + matrix(a_batch_, at) * m * k),
                      right = declare(in, "right", b + (matrix(b_batch_, at) * k * n + first));
          const Value width = declare(in, "width", least(number(kColumns), n - first));
          const Value panels = declare(in, "panels", scratch_floats(0, k * number(kColumns)));
          in.push_back(pack(panels, right, width, n, k));
          const Value runs = (k + number(kRun - 1)) / number(kRun);
          const Value rows =
              declare(in, "rows", scratch_floats(1, runs * number(shape_.rows * kDistance)));
          const Value buffer =
              declare(in, "buffer", scratch_floats(2, number(shape_.rows * shape_.columns())));
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
                  std::vector<Value> args = parameter_values(fused_);
                  for (const Value& v : {rows, panels + c * k, k, batch, row, first + c})
                    args.push_back(v);
                  std::vector<Value> part = args;
                  for (const Value& v :
                       {height, least(number(shape_.columns()), width - c), buffer})
                    part.push_back(v);
                  const Stmt rest = call("tile_part", part);
                  if (narrow) return rest;
                  Stmt full = rest;
                  for (size_t s = sizes.size(); s-- > 0;)
                    full = make_stmt<If>({}, (height == number(sizes[s])).expr(),
                                         call("tile_" + std::to_string(sizes[s]), args), full);
                  return Stmt(make_stmt<If>({}, (width - c >= number(shape_.columns())).expr(),
                                            full, rest));
                }));
            return make_seq(std::move(one));
          }));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  /// Column blocks [block][k][columns] of `width` columns from `right` on, zero behind them.
  Stmt pack(const Value& panels, const Value& right, const Value& width, const Value& n,
            const Value& k) const {
    const int64_t columns = shape_.columns();
    return loop_from("c", index(0), width.expr(), columns, [&](const Value& c) {
      return loop("k", k.expr(), LoopKind::serial, [&](const Value& kk) {
        std::vector<Stmt> row;
        const Value to = declare(row, "to", panels + (c * k + kk * number(columns))),
                    from = declare(row, "from", right + (kk * n + c));
        std::vector<Stmt> part{zero_values(to, columns, shape_.lanes)};
        part.push_back(loop("j", (width - c).expr(), LoopKind::serial, [&](const Value& j) -> Stmt {
          return make_stmt<Store>({}, to.expr(), j.expr(), make_load(from.expr(), j.expr()));
        }));
        row.push_back(make_stmt<If>({}, (width - c >= number(columns)).expr(),
                                    copy_values(to, from, columns, shape_.lanes),
                                    make_seq(std::move(part))));
        return make_seq(std::move(row));
      });
    });
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
          return make_stmt<Store>({}, to.expr(), at.expr(),
                                  make_load(source.expr(), at.expr(), width));
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
  Value m_, n_, k_;
  std::vector<Expr> batch_, a_batch_, b_batch_;
};

bool accepts(const Task& t) {
  if (t.name != "matmul" || t.inputs.size() != 2 || t.outputs.size() != 1) return false;
  if (dtype_of(t.inputs[0]) != f32 || dtype_of(t.inputs[1]) != f32 || dtype_of(t.outputs[0]) != f32)
    return false;
  const std::vector<Expr>&a = shape_of(t.inputs[0]), &b = shape_of(t.inputs[1]),
        &y = shape_of(t.outputs[0]);
  if (a.size() < 2 || b.size() < 2 || y.size() != std::max(a.size(), b.size())) return false;
  if (!equal(a.back(), b[b.size() - 2]) || !equal(a[a.size() - 2], y[y.size() - 2]) ||
      !equal(b.back(), y.back()))
    return false;
  // Batch dims: the output's, or 1.
  for (const auto* in : {&a, &b})
    for (size_t d = 0; d + 2 < in->size(); d++) {
      int64_t n = 0;
      const bool one = is_const_int((*in)[d], &n) && n == 1;
      if (!one && !equal((*in)[d], y[d + y.size() - in->size()])) return false;
    }
  return true;
}

}  // namespace

CpuSchedule cpu_batch_matmul_schedule() {
  return {"batch matmul", accepts, false, true,
          [](const FusedTask& f, const CpuTargetInfo& t) { return BatchMatmul(f, t).run(); }};
}

}  // namespace hidet::graph
