// cpu_matmul.cpp - products with a packed weight (docs/cpu_kernels.md, 3). A task is a block of rows times a group of
// column blocks; rows go through the micro kernel in even parts. Rows whose distance is a multiple of a page fall
// into one set of the L1 cache: those are copied to scratch first, with a longer distance.
#include "schedules/tile.h"

#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Most rows of a task: 12 full tiles.
constexpr int64_t kRowBlock = 168;
/// Column blocks are grouped so that at least about so many tasks exist.
constexpr int64_t kTasks = 16;

class PackedMatmul {
 public:
  PackedMatmul(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), shape_(tile_shape(target)) {
    const VarRef& a = fused.anchor.inputs[0];
    const std::vector<Expr>& as = shape_of(a);
    outer_.assign(as.begin(), as.end() - 1);
    rows_ = Value(size_of(outer_));
    k_ = extent_of(a, as.size() - 1);
    n_ = fused.anchor.attrs.at("n");
    copied_ = k_ * 4 % 4096 == 0 || k_ > 1024;
    distance_ = copied_ ? k_ + 16 : k_;
    blocks_ = (n_ + shape_.columns() - 1) / shape_.columns();
    group_ = std::max<int64_t>(1, blocks_ / (copied_ ? kTasks / 2 : kTasks));
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    const std::vector<int64_t> sizes = row_counts();
    for (int64_t r : sizes) {
      if (n_ >= shape_.columns()) m.functions.push_back(tile(r, shape_.columns()));
      if (n_ % shape_.columns()) m.functions.push_back(tile(r, n_ % shape_.columns()));
    }
    Function f;
    f.name = "launch";
    f.kind = FuncKind::public_;
    f.params = fused_.parameters();
    f.no_alias = fused_.anchor.share_map.empty();
    f.body = tasks(sizes);
    m.functions.push_back(std::move(f));
    return m;
  }

 private:
  /// The tile heights that can occur.
  std::vector<int64_t> row_counts() const {
    int64_t m = 0;
    std::vector<int64_t> all;
    if (!is_const_int(rows_.expr(), &m)) {
      for (int64_t r = shape_.rows; r >= 1; r--) all.push_back(r);
      return all;
    }
    for (int64_t block : split_evenly(m, kRowBlock))
      for (int64_t r : split_evenly(block, shape_.rows)) all.push_back(r);
    std::sort(all.rbegin(), all.rend());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  std::string tile_name(int64_t rows, int64_t columns) const {
    return "tile_" + std::to_string(rows) + "x" + std::to_string(columns);
  }

  /// tile_RxC(parameters..., rows of A, panels, first row, first column)
  Function tile(int64_t rows, int64_t columns) const {
    Function f;
    f.name = tile_name(rows, columns);
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    f.no_alias = false;
    const VarRef a = make_var("a", Type::pointer(Type(f32))),
                 b = make_var("b", Type::pointer(Type(f32)));
    const VarRef row = make_var("row", Type(i64)), column = make_var("column", Type(i64));
    for (const VarRef& p : {a, b, row, column}) f.params.push_back(p);
    TileKernel t;
    t.shape = shape_;
    t.columns = columns;
    for (int64_t i = 0; i < rows; i++) t.row_offset.push_back(i * distance_);
    t.a = Value(Expr(a));
    t.b = Value(Expr(b));
    t.panel_stride = k_ * kPanelColumns;
    t.run = k_;
    std::vector<Stmt> body;
    std::vector<std::vector<Value>> at;
    for (int64_t i = 0; i < rows; i++) {
      if (outer_.size() == 1) {
        at.push_back({Value(Expr(row)) + number(i)});
        continue;
      }
      Unflattened u = unflatten((Value(Expr(row)) + number(i)).expr(), outer_);
      body.insert(body.end(), u.declarations.begin(), u.declarations.end());
      at.push_back(u.indices);
    }
    t.store = [&](int64_t i, const Value& c, const Value& value) {
      std::vector<Value> indices = at[static_cast<size_t>(i)];
      indices.push_back(Value(Expr(column)) + c);
      return fused_.store(indices, value);
    };
    body.push_back(tile_kernel(t));
    f.body = make_seq(std::move(body));
    return f;
  }

  Stmt tasks(const std::vector<int64_t>& sizes) const {
    std::vector<Stmt> body;
    const Value m = declare(body, "m", rows_);
    const Value row_blocks =
        declare(body, "row_blocks", (m + number(kRowBlock - 1)) / number(kRowBlock));
    const int64_t groups = (blocks_ + group_ - 1) / group_;
    const Value a = declare(body, "a", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    body.push_back(loop(
        "task", (row_blocks * number(groups)).expr(), LoopKind::parallel, [&](const Value& task) {
          std::vector<Stmt> in;
          const Value group = declare(in, "group", task / row_blocks),
                      block = declare(in, "block", task % row_blocks);
          // Even parts: the first m % row_blocks have one row more.
          const Value least_rows = declare(in, "least_rows", m / row_blocks),
                      more = declare(in, "more", m % row_blocks);
          const Value first = declare(in, "first", block * least_rows + least(block, more));
          const Value count =
              declare(in, "count", least_rows + select(block < more, number(1), number(0)));
          Value rows = declare(in, "rows", a + first * number(k_));
          if (copied_) {
            const Value copy = declare(in, "copy", scratch_floats(0, count * number(distance_)));
            in.push_back(loop("i", count.expr(), LoopKind::serial, [&](const Value& i) {
              std::vector<Stmt> one;
              const Value to = declare(one, "to", copy + i * number(distance_)),
                          from = declare(one, "from", rows + i * number(k_));
              one.push_back(copy_values(to, from, k_, shape_.lanes));
              return make_seq(std::move(one));
            }));
            rows = copy;
          }
          const Value end =
              declare(in, "end", least((group + number(1)) * number(group_), number(blocks_)));
          in.push_back(loop_from(
              "columns", (group * number(group_)).expr(), end.expr(), 1,
              [&](const Value& c) { return column_block(sizes, rows, b, first, count, c); }));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  /// All row tiles of one column block.
  Stmt column_block(const std::vector<int64_t>& sizes, const Value& rows, const Value& b,
                    const Value& first, const Value& count, const Value& c) const {
    std::vector<Stmt> body;
    const Value tiles =
        declare(body, "tiles", (count + number(shape_.rows - 1)) / number(shape_.rows));
    const Value height = declare(body, "height", count / tiles),
                more = declare(body, "taller", count % tiles);
    const Value panel = declare(body, "panel", b + c * number(shape_.columns() * k_));
    body.push_back(loop("tile", tiles.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> in;
      const Value at = declare(in, "at", i * height + least(i, more));
      const Value r = declare(in, "r", height + select(i < more, number(1), number(0)));
      std::vector<Value> args = parameter_values(fused_);
      for (const Value& v :
           {rows + at * number(distance_), panel, first + at, c * number(shape_.columns())})
        args.push_back(v);
      Stmt choice;
      for (size_t s = sizes.size(); s-- > 0;) {
        const Stmt run = for_columns(sizes[s], c, args);
        choice =
            choice ? Stmt(make_stmt<If>({}, (r == number(sizes[s])).expr(), run, choice)) : run;
      }
      in.push_back(choice);
      return make_seq(std::move(in));
    }));
    return make_seq(std::move(body));
  }

  Stmt for_columns(int64_t rows, const Value& c, const std::vector<Value>& args) const {
    const int64_t full = n_ / shape_.columns(), rest = n_ % shape_.columns();
    if (!rest) return call(tile_name(rows, shape_.columns()), args);
    if (!full) return call(tile_name(rows, rest), args);
    return make_stmt<If>({}, (c < number(full)).expr(),
                         call(tile_name(rows, shape_.columns()), args),
                         call(tile_name(rows, rest), args));
  }

  const FusedTask& fused_;
  TileShape shape_;
  std::vector<Expr> outer_;
  Value rows_;
  int64_t k_ = 0, n_ = 0, distance_ = 0, blocks_ = 0, group_ = 1;
  bool copied_ = false;
};

bool accepts(const Task& t) {
  if (t.name != "matmul_packed") return false;
  const VarRef& a = t.inputs[0];
  return dtype_of(a) == f32 && constant_shape(a, shape_of(a).size() - 1) &&
         extent_of(a, shape_of(a).size() - 1) > 0;
}

}  // namespace

CpuSchedule cpu_matmul_schedule() {
  return {"packed matmul", accepts, false, true,
          [](const FusedTask& f, const CpuTargetInfo& t) { return PackedMatmul(f, t).run(); }};
}

}  // namespace hidet::graph
