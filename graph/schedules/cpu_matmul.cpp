// cpu_matmul.cpp - products with a packed weight (docs/cpu_kernels.md, 3). A task is a block of rows times a group of
// column blocks; rows go through the micro kernel in even parts. Rows whose distance is a multiple of a page fall
// into one set of the L1 cache: those are copied to scratch first, with a longer distance. A long K goes in blocks, so that rows
// and panels stay in the L2 cache. While a column block is multiplied, the next one is prefetched. A tile's results go to
// scratch and from there through the epilogue, which so is written once and not in every tile.
#include "schedules/one_row.h"

#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Most rows of a task: 12 full tiles.
constexpr int64_t kRowBlock = 168;
/// Column blocks are grouped so that at least about so many tasks exist.
constexpr int64_t kTasks = 16;
/// Most of K in one block, and rows that are copied in one piece of the parallel loop.
constexpr int64_t kDepth = 1024, kCopyGrain = 16;

class PackedMatmul {
 public:
  PackedMatmul(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused),
        one_row_(fused, target),
        shape_(tile_shape(target, fused.chosen("panels", 0))),
        row_block_(fused.chosen("rows", kRowBlock)) {
    shape_.k_step = static_cast<int>(fused.chosen("unroll", shape_.k_step));
    const VarRef& a = fused.anchor.inputs[0];
    const std::vector<Expr>& as = shape_of(a);
    outer_.assign(as.begin(), as.end() - 1);
    rows_ = Value(size_of(outer_));
    k_ = extent_of(a, as.size() - 1);
    n_ = fused.anchor.attrs.at("n");
    copied_ = k_ * 4 % 4096 == 0 || k_ > 1024;
    distance_ = copied_ ? k_ + 16 : k_;
    depth_ = equal_blocks(k_, fused.chosen("depth", kDepth));
    blocks_ = (n_ + shape_.columns() - 1) / shape_.columns();
    const int64_t tasks = fused.chosen("tasks", copied_ ? kTasks / 2 : kTasks);
    group_ = std::max<int64_t>(1, blocks_ / tasks);
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    int64_t rows = 0;
    const bool fixed = is_const_int(rows_.expr(), &rows);
    if (!fixed || rows == 1) m.functions = one_row_.functions();
    if (rows == 1) {
      m.functions.push_back(fused_.launch(one_row_.run()));
      return m;
    }
    const std::vector<int64_t> sizes = row_counts();
    for (int64_t width : block_widths(n_, shape_)) {
      for (int64_t r : sizes) m.functions.push_back(tile(r, width));
      m.functions.push_back(finish(width));
    }
    const Stmt all = tasks(sizes);
    m.functions.push_back(fused_.launch(
        fixed ? all : make_stmt<If>({}, (rows_ == number(1)).expr(), one_row_.run(), all)));
    return m;
  }

 private:
  /// The tile heights that can occur.
  std::vector<int64_t> row_counts() const {
    int64_t m = 0;
    std::vector<int64_t> all;
    if (!is_const_int(rows_.expr(), &m)) {
      // One row alone has its own kernel, and even parts of more have one only where tiles are that low.
      for (int64_t r = shape_.rows; r >= std::min(2, shape_.rows); r--) all.push_back(r);
      return all;
    }
    for (int64_t block : split_evenly(m, row_block_))
      for (int64_t r : split_evenly(block, shape_.rows)) all.push_back(r);
    return distinct_heights(std::move(all));
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
    t.run = depth_;
    return raw_tile(tile_name(rows, columns), t, rows, distance_,
                    {.prefetches = true, .begin = depth_ < k_ ? Begin::sums : Begin::zero});
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
        declare(body, "row_blocks", (m + number(row_block_ - 1)) / number(row_block_));
    const int64_t groups = (blocks_ + group_ - 1) / group_;
    Value a = declare(body, "a", pointer_to(fused_.anchor.inputs[0]));
    const Value b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    if (copied_) a = copied_rows(body, a, m);
    body.push_back(loop(
        "task", (row_blocks * number(groups)).expr(), LoopKind::parallel, [&](const Value& task) {
          std::vector<Stmt> in;
          const Value group = declare(in, "group", task / row_blocks),
                      block = declare(in, "block", task % row_blocks);
          // Even parts: the first m % row_blocks have one row more.
          const Value least_rows = declare(in, "least_rows", m / row_blocks),
                      more = declare(in, "more", m % row_blocks);
          Block t;
          t.b = b;
          t.first = declare(in, "first", block * least_rows + least(block, more));
          t.count = declare(in, "count", least_rows + select(block < more, number(1), number(0)));
          t.rows = declare(in, "rows", a + t.first * number(distance_));
          t.begin = declare(in, "begin", group * number(group_));
          t.end = declare(in, "end", least(t.begin + number(group_), number(blocks_)));
          t.tiles = declare(in, "tiles", (t.count + number(shape_.rows - 1)) / number(shape_.rows));
          t.ahead_step = declare(in, "ahead_step", (number(kPanelColumns - 1) + t.tiles) / t.tiles);
          in.push_back(depth_ < k_ ? blocks_of_k(sizes, t) : whole_k(sizes, t));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  /// The rows at a longer distance in scratch memory.
  Value copied_rows(std::vector<Stmt>& body, const Value& a, const Value& m) const {
    const Value copy = declare(body, "copy", scratch_floats(0, m * number(distance_)));
    body.push_back(loop(
        "i", m.expr(), LoopKind::parallel,
        [&](const Value& i) {
          std::vector<Stmt> one;
          const Value to = declare(one, "to", copy + i * number(distance_)),
                      from = declare(one, "from", a + i * number(k_));
          one.push_back(copy_values(to, from, k_, shape_.lanes));
          return make_seq(std::move(one));
        },
        kCopyGrain));
    return copy;
  }

  /// What a task works on: rows from `first` on, column blocks from `begin` to `end`.
  struct Block {
    Value b, rows, first, count, begin, end, tiles, ahead_step;
  };

  /// Results of one tile at a time in scratch.
  Stmt whole_k(const std::vector<int64_t>& sizes, const Block& t) const {
    std::vector<Stmt> body;
    const Value results =
        declare(body, "results", scratch_floats(1, number(shape_.rows * shape_.columns())));
    body.push_back(loop_from("columns", t.begin.expr(), t.end.expr(), 1, [&](const Value& c) {
      return column_block(sizes, t, c, number(0), [&](const Value&) { return results; });
    }));
    return make_seq(std::move(body));
  }

  /// Sums of all rows and columns of the task in scratch.
  Stmt blocks_of_k(const std::vector<int64_t>& sizes, const Block& t) const {
    std::vector<Stmt> body;
    const Value size = declare(body, "size", t.count * number(shape_.columns()));
    const Value sums = declare(body, "sums", scratch_floats(1, size * number(group_)));
    body.push_back(loop_from(
        "zero", index(0), (size * (t.end - t.begin)).expr(), shape_.columns(),
        [&](const Value& i) { return zero_values(sums + i, shape_.columns(), shape_.lanes); }));
    body.push_back(loop_from("depth", index(0), index(k_), depth_, [&](const Value& depth) {
      return loop_from("columns", t.begin.expr(), t.end.expr(), 1, [&](const Value& c) {
        return column_block(sizes, t, c, depth, [&](const Value& row) {
          return sums + ((c - t.begin) * size + row * number(shape_.columns()));
        });
      });
    }));
    return make_seq(std::move(body));
  }

  /// All row tiles of one column block, from `depth` of K on; results(row) is where those of a row lie.
  Stmt column_block(const std::vector<int64_t>& sizes, const Block& t, const Value& c,
                    const Value& depth,
                    const std::function<Value(const Value& row)>& results) const {
    std::vector<Stmt> body;
    const Value height = declare(body, "height", t.count / t.tiles),
                more = declare(body, "taller", t.count % t.tiles);
    const Value block_size = number(shape_.columns() * k_);
    const Value panel =
        declare(body, "panel", t.b + (c * block_size + depth * number(kPanelColumns)));
    // The next block of columns, or the first of the next block of K.
    Value next = panel + block_size;
    if (depth_ < k_)
      next = Value(make_select(
          (c + number(1) < t.end).expr(), next.expr(),
          (t.b + (t.begin * block_size + (depth + number(depth_)) * number(kPanelColumns)))
              .expr()));
    next = declare(body, "next", next);
    body.push_back(loop("tile", t.tiles.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> in;
      const Value at = declare(in, "at", i * height + least(i, more));
      const Value r = declare(in, "r", height + select(i < more, number(1), number(0)));
      const Value source = declare(in, "source", t.rows + (at * number(distance_) + depth)),
                  to = declare(in, "to", results(at)),
                  ahead = declare(in, "ahead", next + i * (t.ahead_step * number(depth_)));
      std::vector<Value> last = parameter_values(fused_);
      for (const Value& v : {to, r, t.first + at, Value(make_cast(c.expr(), Type(u32)))})
        last.push_back(v);
      const auto run = [&](int64_t columns) {
        const Stmt choice = choose_rows(sizes, r, [&](int64_t rows) {
          return call(tile_name(rows, columns), {source, panel, to, ahead, t.ahead_step});
        });
        Stmt finish = call(finish_name(columns), last);
        if (depth_ < k_)
          finish = make_stmt<If>({}, (depth == number(k_ - depth_)).expr(), finish, Stmt());
        return make_seq({choice, finish});
      };
      in.push_back(choose_columns(n_, shape_, c, run));
      return make_seq(std::move(in));
    }));
    return make_seq(std::move(body));
  }

  const FusedTask& fused_;
  OneRow one_row_;
  TileShape shape_;
  int64_t row_block_;
  std::vector<Expr> outer_;
  Value rows_;
  int64_t k_ = 0, depth_ = 0, n_ = 0, distance_ = 0, blocks_ = 0, group_ = 1;
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
  const std::vector<ScheduleParameter> space = {{"panels", {2, 3, 4}},
                                                {"unroll", {2}},
                                                {"depth", {512, 2048}},
                                                {"rows", {84, 336}},
                                                {"tasks", {4, 32}}};
  return {"packed matmul",
          accepts,
          false,
          true,
          true,
          [](const FusedTask& f, const CpuTargetInfo& t) { return PackedMatmul(f, t).run(); },
          space};
}

}  // namespace hidet::graph
