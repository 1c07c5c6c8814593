// cpu_matmul.cpp - products with a packed weight (docs/cpu_kernels.md, 3). A task is a block of rows times a group of
// column blocks; rows go through the micro kernel in even parts. Rows whose distance is a multiple of a page fall
// into one set of the L1 cache: those are copied to scratch first, with a longer distance. A tile's results go to scratch and
// from there through the epilogue, which so is written once and not in every tile.
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
    std::vector<int64_t> widths;
    if (n_ >= shape_.columns()) widths.push_back(shape_.columns());
    if (n_ % shape_.columns()) widths.push_back(n_ % shape_.columns());
    for (int64_t width : widths) {
      for (int64_t r : sizes) m.functions.push_back(tile(r, width));
      m.functions.push_back(finish(width));
    }
    m.functions.push_back(fused_.launch(tasks(sizes)));
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

  static std::string finish_name(int64_t columns) { return "finish_" + std::to_string(columns); }

  /// tile_RxC(rows of A, panels, results)
  Function tile(int64_t rows, int64_t columns) const {
    TileKernel t;
    t.shape = shape_;
    t.columns = columns;
    t.panel_stride = k_ * kPanelColumns;
    t.run = k_;
    return raw_tile(tile_name(rows, columns), t, rows, distance_, false);
  }

  /// finish_C(parameters..., results, number of rows, first row, column block)
  Function finish(int64_t columns) const {
    Function f;
    f.name = finish_name(columns);
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    const VarRef from = make_var("from", Type::pointer(Type(f32))),
                 rows = make_var("rows", Type(i64)), row = make_var("row", Type(i64)),
                 block = make_var("block", Type(u32));
    for (const VarRef& p : {from, rows, row, block}) f.params.push_back(p);
    f.body = loop("i", rows, LoopKind::serial, [&](const Value& i) {
      Unflattened at = unflatten((Value(Expr(row)) + i).expr(), outer_);
      std::vector<Stmt> body = at.declarations;
      const Value results =
          declare(body, "results", Value(Expr(from)) + i * number(shape_.columns()));
      const Value first = Value(make_cast(block, Type(i64))) * number(shape_.columns());
      for (Stmt& s :
           store_raw_row(results, columns, shape_.lanes, [&](const Value& c, const Value& value) {
             std::vector<Value> indices = at.indices;
             indices.push_back(first + c);
             return fused_.store(indices, value);
           }))
        body.push_back(std::move(s));
      return make_seq(std::move(body));
    });
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
          const Value results =
              declare(in, "results", scratch_floats(1, number(shape_.rows * shape_.columns())));
          in.push_back(loop_from("columns", (group * number(group_)).expr(), end.expr(), 1,
                                 [&](const Value& c) {
                                   return column_block(sizes, rows, b, results, first, count, c);
                                 }));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  /// All row tiles of one column block.
  Stmt column_block(const std::vector<int64_t>& sizes, const Value& rows, const Value& b,
                    const Value& results, const Value& first, const Value& count,
                    const Value& c) const {
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
      const Value source = declare(in, "source", rows + at * number(distance_));
      std::vector<Value> last = parameter_values(fused_);
      for (const Value& v : {results, r, first + at, Value(make_cast(c.expr(), Type(u32)))})
        last.push_back(v);
      const auto run = [&](int64_t columns) {
        Stmt choice;
        for (size_t s = sizes.size(); s-- > 0;) {
          const Stmt one = call(tile_name(sizes[s], columns), {source, panel, results});
          choice =
              choice ? Stmt(make_stmt<If>({}, (r == number(sizes[s])).expr(), one, choice)) : one;
        }
        return make_seq({choice, call(finish_name(columns), last)});
      };
      const int64_t full = n_ / shape_.columns(), rest = n_ % shape_.columns();
      if (!rest) in.push_back(run(shape_.columns()));
      else if (!full) in.push_back(run(rest));
      else
        in.push_back(
            make_stmt<If>({}, (c < number(full)).expr(), run(shape_.columns()), run(rest)));
      return make_seq(std::move(in));
    }));
    return make_seq(std::move(body));
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
  return {
      "packed matmul", accepts, false, true, true, [](const FusedTask& f, const CpuTargetInfo& t) {
        return PackedMatmul(f, t).run();
      }};
}

}  // namespace hidet::graph
