// cpu_matmul.cpp - products with a packed weight (docs/cpu_kernels.md, 3). A task is a block of rows times a group of
// column blocks; rows go through the micro kernel in even parts. Rows whose distance is a multiple of a page fall
// into one set of the L1 cache: those are copied to scratch first, with a longer distance, and so are f16 and bf16, as f32 (their
// panels are widened as they are loaded). A long K goes in blocks, so that rows
// and panels stay in the L2 cache. While a column block is multiplied, the next one is prefetched. A tile's results go to
// scratch and from there through the epilogue, which so is written once and not in every tile. Many rows go through Strassen's seven products.
#include "schedules/one_row.h"
#include "schedules/split_product.h"
#include "schedules/strassen.h"

#include <hidet/runtime/error.h>

#include <hidet/ir/passes.h>

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
/// Strassen's products: least rows, columns and K; most columns (results of more go to memory, whose time the plain products hide); most of
/// a half of K in one run; pairs of column blocks whose sums stay in the cache (one where K has at most two runs: its sums are still in the L1
/// cache or close); rows of results that are finished together, in the L1 cache.
constexpr int64_t kLeastRows = 64, kLeastColumns = 256, kMostColumns = 16384, kLeastDepth = 256,
                  kHalfRun = 256, kPairs = 6, kResultRows = 8;
/// Products on tile registers: least rows, columns and K; most tiles of rows of a task.
constexpr int64_t kLeastTileRows = 40, kLeastTileColumns = 64, kLeastTileDepth = 96,
                  kMostTiles = 14;
/// Scratch memory by number: copied rows are shared by tasks, the rest is a task's own.
enum Slot { kRows, kSums, kHalves, kTaskRows };

class PackedMatmul {
 public:
  PackedMatmul(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused),
        one_row_(fused, target),
        shape_(tile_shape(target, fused.chosen("panels", 0))),
        row_block_(fused.chosen("rows", kRowBlock)),
        run_(fused.chosen("half", kHalfRun)) {
    shape_.k_step = static_cast<int>(fused.chosen("unroll", shape_.k_step));
    const VarRef& a = fused.anchor.inputs[0];
    const std::vector<Expr>& as = shape_of(a);
    outer_.assign(as.begin(), as.end() - 1);
    rows_ = Value(size_of(outer_));
    k_ = extent_of(a, as.size() - 1);
    n_ = fused.anchor.attrs.at("n");
    pairs_ = k_ / 2 <= 2 * run_ ? 1 : kPairs;
    weight_ = dtype_of(fused.anchor.inputs[1]);
    copied_ = dtype_of(a) != f32 || k_ * 4 % 4096 == 0 || k_ > 1024;
    distance_ = copied_ ? k_ + 16 : k_;
    depth_ = equal_blocks(k_, fused.chosen("depth", kDepth));
    blocks_ = (n_ + shape_.columns() - 1) / shape_.columns();
    const int64_t tasks = fused.chosen("tasks", copied_ ? kTasks / 2 : kTasks);
    group_ = std::max<int64_t>(1, blocks_ / tasks);
    if (has_parts(target)) {
      parts_.emplace(k_);
    } else if (has_halves(target)) {
      const int64_t m = known_rows(), least = m ? m : kLeastRows;
      halves_.emplace(shape_, k_, distance_, run_, any_height(shape_.columns()));
      const int64_t most = m ? rows_of_blocks(m).front() : row_block_;
      for (int64_t rows = rows_of_blocks(least).back(); rows <= most; rows++)
        halves_->add_heights(rows);
    }
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
      if (halves_) m.functions.push_back(tile_of_any_height(sizes, width));
      m.functions.push_back(finish(width));
    }
    Stmt all = tasks(sizes);
    if (halves_) {
      for (Function& f : halves_->functions()) m.functions.push_back(std::move(f));
      m.functions.push_back(whole_columns(sizes));
      all = fixed ? halved_tasks()
                  : make_stmt<If>({}, (rows_ >= number(kLeastRows)).expr(), halved_tasks(), all);
    }
    if (parts_) {
      for (Function& f : parts_->functions()) m.functions.push_back(std::move(f));
      m.functions.push_back(whole_columns(sizes));
      all = fixed ? split_tasks()
                  : make_stmt<If>({}, (rows_ >= number(kLeastTileRows)).expr(), split_tasks(), all);
    }
    m.functions.push_back(fused_.launch(
        fixed ? all : make_stmt<If>({}, (rows_ == number(1)).expr(), one_row_.run(), all)));
    return m;
  }

 private:
  /// What a task works on: rows from `first` on, column blocks from `begin` to `end`.
  struct Block {
    Value b, rows, first, count, begin, end, tiles = {}, ahead_step = {};
  };

  /// 0 where they are known at run time alone.
  int64_t known_rows() const {
    int64_t m = 0;
    return is_const_int(rows_.expr(), &m) ? m : 0;
  }

  bool is_f32_of(int64_t least_rows) const {
    int64_t m = 0;
    const bool rows = !is_const_int(rows_.expr(), &m) || m >= least_rows;
    return weight_ == f32 && dtype_of(fused_.anchor.inputs[0]) == f32 && rows;
  }
  bool has_parts(const CpuTargetInfo& target) const {
    return SplitProduct::can(target) && is_f32_of(kLeastTileRows) && n_ >= kLeastTileColumns &&
           k_ >= kLeastTileDepth && shape_.panels == 2 && fused_.chosen("tiles", 1);
  }
  bool has_halves(const CpuTargetInfo& target) const {
    return target.fewer_products && is_f32_of(kLeastRows) && n_ >= kLeastColumns &&
           n_ <= kMostColumns && k_ >= kLeastDepth && Strassen::fits(k_, shape_) &&
           fused_.chosen("strassen", 1);
  }

  /// Blocks of `m` rows. Strassen's are an even number where there are several, so that two threads make no operands of one block both; not a
  /// multiple of the threads that there are, since rows of one block are added up together and results are the same for any number of threads.
  Value blocks_of(const Value& m) const {
    const Value blocks = (m + number(row_block_ - 1)) / number(row_block_);
    return halves_ ? blocks + select(blocks > number(1), blocks % number(2), number(0)) : blocks;
  }
  /// The different numbers of rows of such blocks, the larger first.
  std::vector<int64_t> rows_of_blocks(int64_t m) const {
    int64_t blocks = 0;
    HIDET_CHECK(is_const_int(simplify(blocks_of(number(m)).expr()), &blocks), "blocks of ", m);
    return {(m + blocks - 1) / blocks, m / blocks};
  }

  /// Blocks of rows for tile registers, and the rows of block `block`: whole tiles in even parts.
  static Value blocks_of_tiles(const Value& tiles) {
    return (tiles + number(kMostTiles - 1)) / number(kMostTiles);
  }
  Block rows_of_tiles(std::vector<Stmt>& body, const Value& block, const Value& m,
                      const Value& tiles, const Value& row_blocks) const {
    Block t = rows_of_block(body, block, tiles, row_blocks);
    t.first = declare(body, "first_row", t.first * number(kTileRows));
    t.count = declare(body, "rows_here", least(t.count * number(kTileRows), m - t.first));
    return t;
  }

  /// The tile heights that can occur.
  std::vector<int64_t> row_counts() const {
    const int64_t m = known_rows();
    std::vector<int64_t> all;
    if (!m) {
      // One row alone has its own kernel, and even parts of more have one only where tiles are that low.
      for (int64_t r = shape_.rows; r >= std::min(2, shape_.rows); r--) all.push_back(r);
      return all;
    }
    const std::vector<int64_t> blocks = parts_ ? rows_of_tile_blocks(m) : rows_of_blocks(m);
    for (int64_t block : blocks)
      for (int64_t r : split_evenly(block, shape_.rows)) all.push_back(r);
    if (halves_) all.insert(all.end(), halves_->heights().begin(), halves_->heights().end());
    return distinct_heights(std::move(all));
  }

  /// The different numbers of rows of blocks for tile registers.
  static std::vector<int64_t> rows_of_tile_blocks(int64_t m) {
    const int64_t tiles = (m + kTileRows - 1) / kTileRows;
    std::vector<int64_t> all;
    for (int64_t t : split_evenly(tiles, kMostTiles)) all.push_back(t * kTileRows);
    all.push_back(all.back() - (tiles * kTileRows - m));
    return all;
  }

  std::string tile_name(int64_t rows, int64_t columns) const {
    return "tile_" + std::to_string(rows) + "x" + std::to_string(columns);
  }

  static std::string any_height(int64_t columns) { return "tile_" + std::to_string(columns); }

  static std::string finish_name(int64_t columns) { return "finish_" + std::to_string(columns); }

  /// tile_RxC(rows of A, panels, [K,] results, [adds,] ahead, ahead_step)
  Function tile(int64_t rows, int64_t columns) const {
    TileKernel t;
    t.shape = shape_;
    t.columns = columns;
    t.panel_stride = k_ * kPanelColumns;
    t.run = halves_ ? k_ : depth_;
    t.whole_steps = depth_ % shape_.k_step == 0;
    const Begin begin = halves_ ? Begin::either : depth_ < k_ ? Begin::sums : Begin::zero;
    return raw_tile(
        tile_name(rows, columns), t, rows, distance_,
        {.runtime_k = halves_.has_value(), .prefetches = true, .begin = begin, .panels = weight_});
  }

  /// tile_C(height, rows of A, panels, K, results, adds, ahead, ahead_step): one place for all heights, or the compiler copies the tiles to
  /// each place that calls them.
  Function tile_of_any_height(const std::vector<int64_t>& sizes, int64_t columns) const {
    Function f = tile(sizes.back(), columns);  // for its parameters
    std::vector<Value> args;
    for (const VarRef& p : f.params) args.emplace_back(Expr(p));
    const VarRef height = make_var("height", Type(i64));
    f.name = any_height(columns);
    f.body = choose_rows(sizes, Value(Expr(height)),
                         [&](int64_t rows) { return call(tile_name(rows, columns), args); });
    f.params.insert(f.params.begin(), height);
    return f;
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
          const Value block = declare(in, "block", task / number(groups)),
                      group = declare(in, "group", task % number(groups));
          Block t = rows_of_block(in, block, m, row_blocks);
          t.b = b;
          t.rows = declare(in, "rows", a + t.first * number(distance_));
          t.begin = declare(in, "begin", group * number(group_));
          t.end = declare(in, "end", least(t.begin + number(group_), number(blocks_)));
          in.push_back(halves_ || parts_ ? whole_columns(t) : columns(sizes, t));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  /// The rows at a longer distance in scratch memory.
  Value copied_rows(std::vector<Stmt>& body, const Value& a, const Value& m, Slot slot = kRows,
                    LoopKind how = LoopKind::parallel) const {
    const Value copy = declare(body, "copy", scratch_floats(slot, m * number(distance_)));
    body.push_back(loop(
        "i", m.expr(), how,
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

  /// First row and number of rows of a block. Even parts: the first m % row_blocks have one row more.
  static Block rows_of_block(std::vector<Stmt>& body, const Value& block, const Value& m,
                             const Value& row_blocks) {
    const Value least_rows = declare(body, "least_rows", m / row_blocks),
                more = declare(body, "more", m % row_blocks);
    Block t;
    t.first = declare(body, "first", block * least_rows + least(block, more));
    t.count = declare(body, "count", least_rows + select(block < more, number(1), number(0)));
    return t;
  }

  Stmt columns(const std::vector<int64_t>& sizes, Block t) const {
    std::vector<Stmt> body;
    t.tiles = declare(body, "tiles", (t.count + number(shape_.rows - 1)) / number(shape_.rows));
    t.ahead_step = declare(body, "ahead_step", fetched().step(t.tiles));
    body.push_back(depth_ < k_ ? blocks_of_k(sizes, t) : whole_k(sizes, t));
    return make_seq(std::move(body));
  }

  AheadOfTiles fetched() const { return {shape_, k_ * kPanelColumns, depth_}; }

  /// whole_columns(parameters..., rows, first row, number of rows, first column block, one behind the last): the plain product.
  Function whole_columns(const std::vector<int64_t>& sizes) const {
    Function f;
    f.name = "whole_columns";
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    const auto parameter = [&](const char* name, const Type& type) {
      f.params.push_back(make_var(name, type));
      return Value(Expr(f.params.back()));
    };
    Block t;
    std::vector<Stmt> body;
    t.b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    t.rows = parameter("rows", Type::pointer(Type(f32)));
    t.first = parameter("first", Type(i64));
    t.count = parameter("count", Type(i64));
    t.begin = parameter("begin", Type(i64));
    t.end = parameter("end", Type(i64));
    body.push_back(columns(sizes, t));
    f.body = make_seq(std::move(body));
    return f;
  }

  /// Strassen's products of pairs of column blocks, and the plain ones of what is left of the columns. A task makes the operands of its rows for
  /// itself: between cores, what the other one has just written comes slower than it is computed. So there are no more tasks than the threads need.
  Stmt halved_tasks() const {
    const int64_t pairs = n_ / shape_.columns() / 2;
    std::vector<Stmt> body;
    const Value m = declare(body, "m", rows_);
    const Value row_blocks = declare(body, "row_blocks", blocks_of(m));
    const Value a = declare(body, "a", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    const Value groups = declare(body, "groups", groups_for_threads(body, row_blocks, pairs));
    body.push_back(
        loop("task", (row_blocks * groups).expr(), LoopKind::parallel, [&](const Value& task) {
          std::vector<Stmt> in;
          const Value block = declare(in, "block", task / groups),
                      group = declare(in, "group", task % groups);
          Block t = rows_of_block(in, block, m, row_blocks);
          t.b = b;
          t.rows = declare(in, "rows", a + t.first * number(k_));
          t.begin = declare(in, "begin", group * number(pairs) / groups);
          t.end = declare(in, "end", (group + number(1)) * number(pairs) / groups);
          in.push_back(pairs_of_task(t));
          if (2 * pairs < blocks_)
            in.push_back(make_stmt<If>({}, (t.end == number(pairs)).expr(),
                                       plain(t, number(2 * pairs), number(blocks_)), Stmt()));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  /// Products on tile registers. As few tasks as the threads need: each splits the rows and the panels that it reads.
  Stmt split_tasks() const {
    std::vector<Stmt> body;
    const Value m = declare(body, "m", rows_);
    const Value tiles = declare(body, "tiles", (m + number(kTileRows - 1)) / number(kTileRows));
    const Value row_blocks = declare(body, "row_blocks", blocks_of_tiles(tiles));
    const Value a = declare(body, "a", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    const Value groups = declare(body, "groups", groups_for_threads(body, row_blocks, blocks_));
    body.push_back(
        loop("task", (row_blocks * groups).expr(), LoopKind::parallel, [&](const Value& task) {
          std::vector<Stmt> in;
          const Value block = declare(in, "block", task / groups),
                      group = declare(in, "group", task % groups);
          Block t = rows_of_tiles(in, block, m, tiles, row_blocks);
          t.rows = declare(in, "rows", a + t.first * number(k_));
          t.begin = declare(in, "begin", group * number(blocks_) / groups);
          t.end = declare(in, "end", (group + number(1)) * number(blocks_) / groups);
          in.push_back(parts_->run(split_task(t, b)));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  SplitTask split_task(const Block& t, const Value& b) const {
    SplitTask s;
    s.rows = t.count, s.begin = t.begin, s.end = t.end;
    s.rows_slot = kRows, s.work_slot = kHalves;
    s.row = [this, t](std::vector<Stmt>&, const Value& i) { return t.rows + i * number(k_); };
    s.panels = [this, b](const Value& block) { return panels_of_block(b, block, n_, k_); };
    s.finish = [this, t](const Value& block, const Value& results) {
      std::vector<Value> args = parameter_values(fused_);
      args.insert(args.end(),
                  {results, t.count, t.first, Value(make_cast(block.expr(), Type(u32)))});
      return choose_columns(n_, shape_, block,
                            [&](int64_t columns) { return call(finish_name(columns), args); });
    };
    s.plain = [this, t](const Value& begin, const Value& end) { return plain(t, begin, end); };
    return s;
  }

  /// Groups of the `columns` for which tasks go: one where the blocks of rows are enough for the threads.
  static Value groups_for_threads(std::vector<Stmt>& body, const Value& row_blocks,
                                  int64_t columns) {
    const Value threads =
        declare(body, "threads", Value(make_prim("parallel_threads", {}, Type(i64))));
    return least(number(columns), select(row_blocks % threads == number(0), number(1), threads));
  }

  Stmt whole_columns(const Block& t) const {
    std::vector<Value> args = parameter_values(fused_);
    args.insert(args.end(), {t.rows, t.first, t.count, t.begin, t.end});
    return call("whole_columns", args);
  }

  /// The plain product of column blocks from `begin` to `end` in a task of Strassen's.
  Stmt plain(Block t, const Value& begin, const Value& end) const {
    std::vector<Stmt> in;
    if (copied_) t.rows = copied_rows(in, t.rows, t.count, kTaskRows, LoopKind::serial);
    t.begin = begin;
    t.end = end;
    in.push_back(whole_columns(t));
    return make_seq(std::move(in));
  }

  Stmt pairs_of_task(const Block& t) const {
    std::vector<Stmt> in;
    const Value half = declare(in, "half", (t.count + number(1)) / number(2));
    const Value operands =
        declare(in, "operands", scratch_floats(kRows, halves_->operands_size(half)));
    in.push_back(loop("i", half.expr(), LoopKind::serial, [&](const Value& i) {
      const Value top = t.rows + i * number(k_);
      return halves_->operands_of_row(operands, half, i, top, top + half * number(k_),
                                      i + half < t.count);
    }));
    in.push_back(loop_from("first_pair", t.begin.expr(), t.end.expr(), pairs_, [&](const Value& c) {
      Block part = t;
      part.begin = c;
      part.end = least(c + number(pairs_), t.end);
      return pairs_of_columns(part, half, operands);
    }));
    return make_seq(std::move(in));
  }

  Stmt pairs_of_columns(const Block& t, const Value& half, const Value& operands) const {
    std::vector<Stmt> in;
    const Value size = declare(in, "sums_size", halves_->sums_size(half)),
                count = declare(in, "count", t.end - t.begin);
    const Value results =
        declare(in, "results",
                scratch_floats(kHalves, number(4 * quarter_size()) + size * count +
                                            number(halves_->panels_size())));
    const Value sums = declare(in, "sums", results + number(4 * quarter_size()));
    const Value panels = declare(in, "panels", sums + size * count);
    in.push_back(halves_->products(operands, half, t.b, t.begin, t.end, sums, panels));
    in.push_back(loop_from("pair", t.begin.expr(), t.end.expr(), 1, [&](const Value& c) {
      const Value from = sums + (c - t.begin) * size;
      return loop_from("row", index(0), half.expr(), kResultRows, [&](const Value& row) {
        std::vector<Stmt> one;
        const Value rows = declare(one, "rows", least(half - row, number(kResultRows)));
        const Value broken = halves_->results(one, half, from + row * number(shape_.columns()),
                                              rows, results, quarter_size());
        one.push_back(make_stmt<If>({}, broken.expr(),
                                    make_seq({plain_rest(t, half, row, c), make_stmt<Break>({})}),
                                    finish_quarters(t, half, results, row, rows, c)));
        return make_seq(std::move(one));
      });
    }));
    return make_seq(std::move(in));
  }

  /// Elements of a quarter of the rows of results that are finished together.
  int64_t quarter_size() const { return kResultRows * shape_.columns(); }

  /// The plain product of pair `c` of column blocks in the rows of both halves from `row` on. Any number of rows may be left, so they are
  /// copied to a tile of one of the heights that there are, the last one again behind them.
  Stmt plain_rest(const Block& t, const Value& half, const Value& row, const Value& c) const {
    const int64_t height = row_counts().front();
    return loop("part", index(2), LoopKind::serial, [&](const Value& part) {
      std::vector<Stmt> in;
      const Value end = declare(in, "end", select(part == number(0), half, t.count));
      in.push_back(loop_from(
          "first", (part * half + row).expr(), end.expr(), height, [&](const Value& first) {
            std::vector<Stmt> one;
            const Value rows =
                declare(one, "rows", scratch_floats(kTaskRows, number(height * distance_)));
            one.push_back(loop("i", index(height), LoopKind::serial, [&](const Value& i) {
              const Value from = t.rows + least(first + i, end - number(1)) * number(k_);
              return copy_values(rows + i * number(distance_), from, k_, shape_.lanes);
            }));
            one.push_back(loop("column", index(2), LoopKind::serial, [&](const Value& column) {
              return plain_tile(t, rows, height, first, least(end - first, number(height)),
                                c * number(2) + column);
            }));
            return make_seq(std::move(one));
          }));
      return make_seq(std::move(in));
    });
  }

  /// One tile of the plain product; `count` of its rows, from `first` of the task on, go through the epilogue.
  Stmt plain_tile(const Block& t, const Value& rows, int64_t height, const Value& first,
                  const Value& count, const Value& column) const {
    std::vector<Stmt> in;
    const Value panel = declare(in, "panel", t.b + column * number(shape_.columns() * k_));
    const Value results =
        declare(in, "results", scratch_floats(kSums, number(shape_.rows * shape_.columns())));
    const Value step = fetched().step(number(1));
    in.push_back(loop_from("depth", index(0), index(k_), depth_, [&](const Value& depth) {
      const Value from = panel + depth * number(kPanelColumns);
      return call(any_height(shape_.columns()),
                  {number(height), rows + depth, from, number(depth_), results, depth,
                   from + number(depth_ * kPanelColumns), step});
    }));
    std::vector<Value> args = parameter_values(fused_);
    args.insert(args.end(),
                {results, count, t.first + first, Value(make_cast(column.expr(), Type(u32)))});
    in.push_back(call(finish_name(shape_.columns()), args));
    return make_seq(std::move(in));
  }

  /// `rows` rows of the results of pair `c` of column blocks, from `row` of both halves on, through the epilogue.
  Stmt finish_quarters(const Block& t, const Value& half, const Value& results, const Value& row,
                       const Value& rows, const Value& c) const {
    return loop("q", index(4), LoopKind::serial, [&](const Value& q) {
      const Value top = q < number(2);
      std::vector<Value> args = parameter_values(fused_);
      args.insert(args.end(),
                  {results + q * number(quarter_size()),
                   select(top, rows, least(rows, t.count - half - row)),
                   t.first + row + select(top, number(0), half),
                   Value(make_cast((c * number(2) + q % number(2)).expr(), Type(u32)))});
      return call(finish_name(shape_.columns()), args);
    });
  }

  /// Results of one tile at a time in scratch.
  Stmt whole_k(const std::vector<int64_t>& sizes, const Block& t) const {
    std::vector<Stmt> body;
    const Value results =
        declare(body, "results", scratch_floats(kSums, number(shape_.rows * shape_.columns())));
    body.push_back(loop_from("columns", t.begin.expr(), t.end.expr(), 1, [&](const Value& c) {
      return column_block(sizes, t, c, number(0), [&](const Value&) { return results; });
    }));
    return make_seq(std::move(body));
  }

  /// Sums of all rows and columns of the task in scratch.
  Stmt blocks_of_k(const std::vector<int64_t>& sizes, const Block& t) const {
    std::vector<Stmt> body;
    const Value size = declare(body, "size", t.count * number(shape_.columns()));
    const Value sums = declare(body, "sums", scratch_floats(kSums, size * (t.end - t.begin)));
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
                  ahead = declare(in, "ahead", fetched().begin(next, i, t.ahead_step));
      std::vector<Value> last = parameter_values(fused_);
      for (const Value& v : {to, r, t.first + at, Value(make_cast(c.expr(), Type(u32)))})
        last.push_back(v);
      const auto run = [&](int64_t columns) {
        const Stmt choice =
            halves_
                ? call(any_height(columns), {r, source, panel, number(depth_), to,
                                             number(depth_ < k_), ahead, t.ahead_step})
                : choose_rows(sizes, r, [&](int64_t rows) {
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
  int64_t row_block_, run_, pairs_ = kPairs;
  DType weight_;
  std::vector<Expr> outer_;
  Value rows_;
  int64_t k_ = 0, depth_ = 0, n_ = 0, distance_ = 0, blocks_ = 0, group_ = 1;
  bool copied_ = false;
  std::optional<Strassen> halves_;
  std::optional<SplitProduct> parts_;
};

bool accepts(const Task& t) {
  if (t.name != "matmul_packed") return false;
  const VarRef& a = t.inputs[0];
  return is_f32_or_half(dtype_of(a)) && is_f32_or_half(dtype_of(t.inputs[1])) &&
         constant_shape(a, shape_of(a).size() - 1) && extent_of(a, shape_of(a).size() - 1) > 0;
}

}  // namespace

CpuSchedule cpu_matmul_schedule() {
  const std::vector<ScheduleParameter> space = {
      {"panels", {2, 3, 4}}, {"unroll", {2}},   {"depth", {512, 2048}}, {"rows", {84, 336}},
      {"tasks", {4, 32}},    {"strassen", {0}}, {"half", {128, 384}}};
  return {"packed matmul",
          accepts,
          false,
          true,
          true,
          [](const FusedTask& f, const CpuTargetInfo& t) { return PackedMatmul(f, t).run(); },
          space};
}

}  // namespace hidet::graph
