// split_product.cpp - products of f32 on tile registers of bf16 (docs/cpu_kernels.md, 3c). A number is cut into three parts of 8 bits; a
// word holds one part of two numbers, 16 apart in K, of rows and of panels alike. While a chunk of panels is multiplied, the next one is
// split between the products. Numbers that the parts cannot hold are for the caller to multiply plainly.
#include "schedules/split_product.h"

#include <hidet/ir/primitives.h>

#include <array>

namespace hidet::graph {
using namespace ir;

namespace {
constexpr int kParts = 3;
/// Numbers of a step of K; words of a tile register and of a row of it; lanes of the vectors, at the only level that has tiles.
constexpr int64_t kStep = 32, kTile = 256, kWords = 16;
constexpr int kLanes = 16;
/// Steps of K in a run, so that the rows of a run stay in the L2 cache; column blocks whose results wait for the next run together; floats of the
/// row of zeros and of the largest values of a block's columns.
constexpr int64_t kRunSteps = 24, kGroup = 24, kZeros = kPanelColumns, kMaxima = 2 * kPanelColumns;
/// Results of a pair of tiles.
constexpr int64_t kResults = 2 * kTileRows * 2 * kPanelColumns;
/// The bits of 2^-48 and of 2^48. Sums of products of numbers below do not overflow; where the largest of a row and of a column is not less, what
/// the hardware drops of subnormal parts is less than f32's rounding of the result. A row or column of zeros is fine.
constexpr int64_t kLeastBits = 0x27800000, kMostBits = 0x57800000;

/// Tile registers: sums, two tiles of rows, two of panels.
constexpr int kSumTile = 0, kRowTile = 4, kPanelTile = 6;

/// Products of parts in an order in which only one operand changes from most to the next.
struct PartProduct {
  int a, b;
};
constexpr std::array<PartProduct, 6> kProducts = {{{0, 2}, {0, 1}, {1, 1}, {1, 0}, {0, 0}, {2, 0}}};

const Type kWordVector = Type::vector(u32, kLanes), kFloatVector = Type::vector(f32, kLanes);
const Type kFloats = Type::pointer(Type(f32)), kWordsPointer = Type::pointer(Type(u32));

Value words(int64_t v) { return Value(make_int(v, Type(u32))); }
Value as_words(const Value& v) { return Value(make_bitcast(v.expr(), kWordVector)); }
Value as_floats(const Value& v) { return Value(make_bitcast(v.expr(), kFloatVector)); }
Value load_floats(const Value& from, const Value& at) {
  return Value(make_load(from.expr(), at.expr(), kLanes));
}
Value word_pointer(const Value& floats) {
  return Value(make_pointer_cast(floats.expr(), kWordsPointer));
}
Value larger(const Value& a, const Value& b) {
  return Value(make_binary(BinaryOp::max, a.expr(), b.expr()));
}
Stmt assign(const VarRef& v, const Value& value) { return make_stmt<Assign>({}, v, value.expr()); }
Stmt store(const Value& to, const Value& at, const Value& value) {
  return make_stmt<Store>({}, to.expr(), at.expr(), value.expr());
}
Stmt tile_prim(const char* name, std::vector<Expr> args, std::vector<int64_t> attrs) {
  return make_stmt<Evaluate>({}, make_prim(name, std::move(args), Type(), std::move(attrs)));
}

Function internal(const std::string& name) {
  Function f;
  f.name = name;
  f.kind = FuncKind::cpu_internal;
  return f;
}
Value parameter(Function& f, const char* name, const Type& type) {
  f.params.push_back(make_var(name, type));
  return Value(Expr(f.params.back()));
}
VarRef mutable_var(std::vector<Stmt>& body, const char* name, const Type& type, const Value& init) {
  const VarRef v = make_var(name, type, true);
  body.push_back(make_stmt<DeclVar>({}, v, init.expr()));
  return v;
}

Value zero_words() { return Value(make_cast(make_int(0, Type(u32)), kWordVector)); }

/// to[at], to[at + distance] ...: the parts of x in the low halves of words, those of y in the high ones. `largest` keeps the largest bits of
/// their absolute values.
void split(std::vector<Stmt>& body, Value x, Value y, const Value& to, const Value& at,
           int64_t distance, const VarRef& largest) {
  const Value high = words(0xffff0000), absolute = words(0x7fffffff);
  Value a = declare(body, "x", as_words(x)), b = declare(body, "y", as_words(y));
  body.push_back(assign(largest, larger(Value(Expr(largest)), larger(a & absolute, b & absolute))));
  for (int part = 0; part < kParts; part++) {
    // The last part has no more bits than that.
    const Value top = part + 1 < kParts ? declare(body, "top", b & high) : b;
    body.push_back(store(to, at + number(part * distance), (a >> words(16)) | top));
    if (part + 1 == kParts) break;
    const Value rest_a = as_floats(a) - as_floats(a & high), rest_b = as_floats(b) - as_floats(top);
    a = declare(body, "x", as_words(rest_a));
    b = declare(body, "y", as_words(rest_b));
  }
}

/// How far a largest value is from what can be split; see too_far. A row or column of zeros can.
Value beyond(const Value& largest) {
  const Value least_fit = words(kLeastBits);
  return select(largest == words(0), least_fit, largest) - least_fit;
}
Value too_far(const Value& v) { return v >= words(kMostBits - kLeastBits); }

/// The largest lane of a vector of words.
Value largest_lane(std::vector<Stmt>& body, const VarRef& vector) {
  std::vector<Value> lanes;
  for (int l = 0; l < kLanes; l++) lanes.emplace_back(make_lane(vector, make_int(l, Type(i32))));
  for (size_t n = lanes.size() / 2; n >= 1; n /= 2)
    for (size_t k = 0; k < n; k++) lanes[k] = declare(body, "lane", larger(lanes[k], lanes[k + n]));
  return lanes[0];
}
}  // namespace

std::pair<Value, Value> panels_of_block(const Value& b, const Value& block, int64_t n, int64_t k) {
  const int64_t panels = (n + kPanelColumns - 1) / kPanelColumns, panel = k * kPanelColumns;
  // The last block may have one panel, which stands for both.
  const Value stride =
      panels % 2 ? select(block * number(2) + number(1) < number(panels), number(panel), number(0))
                 : number(panel);
  return {b + block * number(2 * panel), stride};
}

SplitProduct::SplitProduct(int64_t k)
    : k_(k), steps_((k + kStep - 1) / kStep), runs_((steps_ + kRunSteps - 1) / kRunSteps) {
  run_steps_ = (steps_ + runs_ - 1) / runs_;
}

std::vector<Function> SplitProduct::functions() const {
  return {row_function(), chunk_function(), tiles_function(2), tiles_function(1)};
}

Value SplitProduct::steps_of(const Value& run) const {
  return least(number(run_steps_), number(steps_) - run * number(run_steps_));
}
/// Words of a part of a chunk's panel: 16 for every two numbers of K, and a line more, so that parts do not share sets of the L1 cache.
int64_t SplitProduct::panel_size() const { return run_steps_ * kTile + kWords; }
int64_t SplitProduct::chunk_size() const { return 2 * kParts * panel_size(); }
/// Words of a run of a pair of tiles of rows: [step][part][2][16][16].
int64_t SplitProduct::pair_size() const { return run_steps_ * kParts * 2 * kTile; }

/// split_row(from, to, run_distance): parts of a row, a run after the other, `run_distance` words apart. How far its largest value is from what
/// can be split.
Function SplitProduct::row_function() const {
  Function f = internal("split_row");
  f.returns = Type(u32);
  const Value from = parameter(f, "from", kFloats), to = parameter(f, "to", kWordsPointer),
              run_distance = parameter(f, "run_distance", Type(i64));
  std::vector<Stmt> body;
  const VarRef largest = mutable_var(body, "largest", kWordVector, zero_words());
  const auto step = [&](const Value& s, const Value& x, const Value& y) {
    std::vector<Stmt> in;
    const Value at = declare(in, "at",
                             s / number(run_steps_) * run_distance +
                                 s % number(run_steps_) * number(2 * kParts * kTile));
    split(in, x, y, to, at, 2 * kTile, largest);
    return make_seq(std::move(in));
  };
  const int64_t whole = k_ / kStep, left = k_ % kStep;
  body.push_back(loop("step", index(whole), LoopKind::serial, [&](const Value& s) {
    const Value k = s * number(kStep);
    return step(s, load_floats(from, k), load_floats(from, k + number(kWords)));
  }));
  if (left) {
    // Nothing behind the row's end is read.
    const auto last = [&](int64_t first) {
      if (first >= left) return Value(make_cast(make_const(0, f32), kFloatVector));
      const Value at = from + number(whole * kStep + first);
      std::vector<Expr> mask;
      for (int64_t l = first; l < first + kLanes; l++) mask.push_back(make_bool(l < left));
      return Value(make_prim("masked_load", {at.expr(), make_vector(mask)}, kFloatVector));
    };
    body.push_back(step(number(whole), last(0), last(kWords)));
  }
  const Value most = largest_lane(body, largest);
  body.push_back(make_stmt<Return>({}, beyond(most).expr()));
  f.body = make_seq(std::move(body));
  return f;
}

/// Splits unit `i` of a chunk: word i of both panels.
Stmt SplitProduct::unit(const Chunk& chunk, const Value& i, const Value& to, const Value& zeros,
                        const std::vector<VarRef>& largest) const {
  std::vector<Stmt> in;
  // Numbers k and k + 16 of K; a step has 16 units.
  const Value k = declare(in, "k", i * number(2) - i % number(kWords));
  for (int panel = 0; panel < 2; panel++) {
    const auto row = [&](int64_t behind) {
      Value at = chunk.from + (k + number(behind)) * number(kPanelColumns);
      if (panel) at = at + chunk.panel_stride;
      if (k_ % kStep) at = select(k + number(behind) < chunk.left, at, zeros);
      at = declare(in, "row", at);
      // The same place of the next column block.
      in.push_back(make_stmt<Evaluate>(
          {}, make_prim("prefetch", {(at + number(2 * k_ * kPanelColumns)).expr()}, Type())));
      return load_floats(at, number(0));
    };
    split(in, row(0), row(kWords), to + number(panel * panel_size()), i * number(kWords),
          2 * panel_size(), largest[static_cast<size_t>(panel)]);
  }
  return make_seq(std::move(in));
}

namespace {
std::vector<VarRef> load_maxima(std::vector<Stmt>& body, const Value& maxima) {
  std::vector<VarRef> largest;
  for (int panel = 0; panel < 2; panel++)
    largest.push_back(
        mutable_var(body, "largest", kWordVector,
                    Value(make_load(maxima.expr(), index(panel * kPanelColumns), kLanes))));
  return largest;
}
void store_maxima(std::vector<Stmt>& body, const Value& maxima,
                  const std::vector<VarRef>& largest) {
  for (int panel = 0; panel < 2; panel++)
    body.push_back(store(maxima, number(panel * kPanelColumns),
                         Value(Expr(largest[static_cast<size_t>(panel)]))));
}
}  // namespace

/// split_chunk(from, panel_stride, left, maxima, units, to, zeros)
Function SplitProduct::chunk_function() const {
  Function f = internal("split_chunk");
  Chunk chunk;
  chunk.from = parameter(f, "from", kFloats);
  chunk.panel_stride = parameter(f, "panel_stride", Type(i64));
  chunk.left = parameter(f, "left", Type(i64));
  chunk.maxima = parameter(f, "maxima", kWordsPointer);
  const Value units = parameter(f, "units", Type(i64)), to = parameter(f, "to", kWordsPointer),
              zeros = parameter(f, "zeros", kFloats);
  std::vector<Stmt> body;
  const std::vector<VarRef> largest = load_maxima(body, chunk.maxima);
  body.push_back(loop("i", units.expr(), LoopKind::serial,
                      [&](const Value& i) { return unit(chunk, i, to, zeros, largest); }));
  store_maxima(body, chunk.maxima, largest);
  f.body = make_seq(std::move(body));
  return f;
}

/// tiles_R(rows, chunk, steps, to, adds, from, panel_stride, left, maxima, first, end, each, next, zeros): R tiles of rows times a chunk, `steps`
/// steps of K; meanwhile units from `first` to `end` of the next chunk are split, at most `each` a step.
Function SplitProduct::tiles_function(int rows) const {
  Function f = internal("tiles_" + std::to_string(rows));
  const Value a = parameter(f, "rows", kWordsPointer), b = parameter(f, "chunk", kWordsPointer),
              steps = parameter(f, "steps", Type(i64)), to = parameter(f, "to", kFloats),
              adds = parameter(f, "adds", Type(i64));
  Chunk chunk;
  chunk.from = parameter(f, "from", kFloats);
  chunk.panel_stride = parameter(f, "panel_stride", Type(i64));
  chunk.left = parameter(f, "left", Type(i64));
  chunk.maxima = parameter(f, "maxima", kWordsPointer);
  const Value first = parameter(f, "first", Type(i64)), end = parameter(f, "end", Type(i64)),
              each = parameter(f, "each", Type(i64)), next = parameter(f, "next", kWordsPointer),
              zeros = parameter(f, "zeros", kFloats);
  std::vector<Stmt> body;
  const std::vector<VarRef> largest = load_maxima(body, chunk.maxima);
  const Value row_bytes = number(2 * kPanelColumns * 4);
  const auto each_sum = [&](const std::function<Stmt(int tile, const Value& at)>& one) {
    std::vector<Stmt> all;
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < 2; j++)
        all.push_back(
            one(kSumTile + 2 * i + j, to + number((i * kTileRows * 2 + j) * kPanelColumns)));
    return make_seq(std::move(all));
  };
  body.push_back(make_stmt<If>(
      {}, (adds != number(0)).expr(), each_sum([&](int tile, const Value& at) {
        return tile_prim("amx_load", {at.expr(), row_bytes.expr()}, {tile});
      }),
      each_sum([&](int tile, const Value&) { return tile_prim("amx_zero", {}, {tile}); })));
  // Where the units of a step stop behind each of the products of parts.
  std::vector<Value> stops = {number(0)};
  for (size_t p = 1; p <= kProducts.size(); p++)
    stops.push_back(declare(
        body, "stop",
        each * number(static_cast<int64_t>(p)) / number(static_cast<int64_t>(kProducts.size()))));
  body.push_back(loop("step", steps.expr(), LoopKind::serial, [&](const Value& s) {
    std::vector<Stmt> in;
    const Value row = declare(in, "row", a + s * number(2 * kParts * kTile)),
                panel = declare(in, "panel", b + s * number(kTile)),
                unit_now = declare(in, "unit_now", first + s * each);
    PartProduct held = {-1, -1};
    for (size_t p = 0; p < kProducts.size(); p++) {
      const PartProduct q = kProducts[p];
      for (int i = 0; i < rows && q.a != held.a; i++)
        in.push_back(tile_prim("amx_load",
                               {(row + number((q.a * 2 + i) * kTile)).expr(), index(kWords * 4)},
                               {kRowTile + i}));
      for (int j = 0; j < 2 && q.b != held.b; j++)
        in.push_back(tile_prim(
            "amx_load", {(panel + number((q.b * 2 + j) * panel_size())).expr(), index(kWords * 4)},
            {kPanelTile + j}));
      held = q;
      for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++)
          in.push_back(
              tile_prim("amx_dot_bf16", {}, {kSumTile + 2 * i + j, kRowTile + i, kPanelTile + j}));
      in.push_back(loop_from("i", least(unit_now + stops[p], end).expr(),
                             least(unit_now + stops[p + 1], end).expr(), 1,
                             [&](const Value& i) { return unit(chunk, i, next, zeros, largest); }));
    }
    return make_seq(std::move(in));
  }));
  body.push_back(each_sum([&](int tile, const Value& at) {
    return tile_prim("amx_store", {at.expr(), row_bytes.expr()}, {tile});
  }));
  store_maxima(body, chunk.maxima, largest);
  f.body = make_seq(std::move(body));
  return f;
}

/// Splits all rows; `far` becomes how far the worst one is from what can be split. Rows that fill the last tile up are whatever was in memory:
/// their results are not stored, and no other row's depend on them.
SplitProduct::Work SplitProduct::split_rows(std::vector<Stmt>& body, const SplitTask& t,
                                            const VarRef& far) const {
  Work w;
  w.tiles = declare(body, "tiles", (t.rows + number(kTileRows - 1)) / number(kTileRows));
  w.pairs = declare(body, "pairs", (w.tiles + number(1)) / number(2));
  w.run_distance = declare(body, "run_distance", w.pairs * number(pair_size()));
  w.rows = declare(body, "parts",
                   word_pointer(scratch_floats(t.rows_slot, w.run_distance * number(runs_))));
  body.push_back(loop("i", t.rows.expr(), LoopKind::serial, [&](const Value& i) {
    std::vector<Stmt> in;
    const Value tile = declare(in, "tile", i / number(kTileRows));
    const Value to =
        w.rows + (tile / number(2) * number(pair_size()) + tile % number(2) * number(kTile) +
                  i % number(kTileRows) * number(kWords));
    const Value one = declare(
        in, "one",
        Value(make_call("split_row", {t.row(in, i).expr(), to.expr(), w.run_distance.expr()},
                        Type(u32))));
    in.push_back(assign(far, larger(Value(Expr(far)), one)));
    return make_seq(std::move(in));
  }));
  return w;
}

Stmt SplitProduct::run(const SplitTask& t) const {
  std::vector<Stmt> body;
  const VarRef far = mutable_var(body, "far", Type(u32), words(0));
  const Work w = split_rows(body, t, far);
  body.push_back(
      make_stmt<If>({}, too_far(Value(Expr(far))).expr(), t.plain(t.begin, t.end), blocks(t, w)));
  return make_seq(std::move(body));
}

SplitProduct::Chunk SplitProduct::chunk_of(std::vector<Stmt>& body, const SplitTask& t,
                                           const Work& w, const Value& block,
                                           const Value& run) const {
  const auto [panel, stride] = t.panels(block);
  const Value k = declare(body, "k", run * number(run_steps_ * kStep));
  Chunk c;
  c.from = declare(body, "from", panel + k * number(kPanelColumns));
  c.panel_stride = declare(body, "panel_stride", stride);
  c.left = declare(body, "left", number(k_) - k);
  c.maxima = declare(body, "maxima", w.maxima + (block - t.begin) * number(kMaxima));
  return c;
}

/// All column blocks of the task, in groups where K has several runs.
Stmt SplitProduct::blocks(const SplitTask& t, Work w) const {
  std::vector<Stmt> body;
  const Value count = declare(body, "count", t.end - t.begin);
  const int64_t group_size = runs_ > 1 ? kGroup : 1;
  // One more than there are: behind the last chunk nothing is split.
  const Value maxima_size = declare(body, "maxima_size", (count + number(1)) * number(kMaxima));
  w.zeros = declare(body, "zeros",
                    scratch_floats(t.work_slot, number(kZeros + 2 * chunk_size()) + maxima_size +
                                                    w.pairs * number(group_size * kResults)));
  w.chunks = declare(body, "chunks", word_pointer(w.zeros + number(kZeros)));
  w.maxima = declare(body, "maxima", w.chunks + number(2 * chunk_size()));
  w.results = declare(body, "results", w.zeros + (number(kZeros + 2 * chunk_size()) + maxima_size));
  body.push_back(zero_values(w.zeros, kZeros, kLanes));
  body.push_back(loop_from("m", index(0), maxima_size.expr(), kMaxima, [&](const Value& m) {
    std::vector<Stmt> in;
    for (int panel = 0; panel < 2; panel++)
      in.push_back(store(w.maxima, m + number(panel * kPanelColumns), zero_words()));
    return make_seq(std::move(in));
  }));
  body.push_back(tile_prim("amx_config", {}, {}));
  const Chunk first = chunk_of(body, t, w, t.begin, number(0));
  body.push_back(call("split_chunk", {first.from, first.panel_stride, first.left, first.maxima,
                                      steps_of(number(0)) * number(kWords), w.chunks, w.zeros}));
  const VarRef turn = mutable_var(body, "turn", Type(i64), number(0));
  body.push_back(runs_ > 1
                     ? loop_from("group", t.begin.expr(), t.end.expr(), kGroup,
                                 [&](const Value& g) {
                                   return group(t, w, g, least(g + number(kGroup), t.end), turn);
                                 })
                     : group(t, w, t.begin, t.end, turn));
  body.push_back(tile_prim("amx_release", {}, {}));
  return make_seq(std::move(body));
}

Stmt SplitProduct::group(const SplitTask& t, const Work& w, const Value& begin, const Value& end,
                         const VarRef& turn) const {
  return loop("run", index(runs_), LoopKind::serial, [&](const Value& run) {
    return loop_from("block", begin.expr(), end.expr(), 1, [&](const Value& block) {
      std::vector<Stmt> in;
      // The next block, or the first one in the next run, or the first of the next group.
      const Value inside = declare(in, "inside", block + number(1) < end),
                  again = declare(in, "again", run + number(1) < number(runs_));
      const Value next_block =
          declare(in, "next_block", select(inside, block + number(1), select(again, begin, end)));
      const Value next_run =
          declare(in, "next_run", select(inside, run, select(again, run + number(1), number(0))));
      const Chunk next = chunk_of(in, t, w, next_block, next_run);
      const Value units = declare(
          in, "units", select(next_block < t.end, steps_of(next_run) * number(kWords), number(0)));
      const Value now(Expr{turn});
      const Value chunk = declare(in, "chunk", w.chunks + now * number(chunk_size())),
                  next_chunk = declare(in, "next_chunk",
                                       w.chunks + (number(1) - now) * number(chunk_size()));
      const Value results =
          declare(in, "to",
                  runs_ > 1 ? w.results + (block - begin) * w.pairs * number(kResults) : w.results);
      in.push_back(products(w, run, next, units, chunk, next_chunk, results));
      in.push_back(assign(turn, number(1) - now));
      in.push_back(make_stmt<If>({}, again.expr(), Stmt(), finish(t, w, block, results)));
      return make_seq(std::move(in));
    });
  });
}

/// A chunk times all tiles of rows.
Stmt SplitProduct::products(const Work& w, const Value& run, const Chunk& next, const Value& units,
                            const Value& chunk, const Value& next_chunk, const Value& to) const {
  std::vector<Stmt> body;
  const Value steps = declare(body, "steps", steps_of(run));
  // Each pair of tiles splits a part of the next chunk.
  const Value all = declare(body, "all", w.pairs * steps);
  const Value each = declare(body, "each", (units + all - number(1)) / all);
  const Value part = declare(body, "part", each * steps);
  const Value rows = declare(body, "rows", w.rows + run * w.run_distance);
  body.push_back(loop("pair", w.pairs.expr(), LoopKind::serial, [&](const Value& p) {
    std::vector<Stmt> in;
    const Value first = declare(in, "first", least(units, p * part)),
                end = declare(in, "end", least(units, first + part));
    const std::vector<Value> args = {rows + p * number(pair_size()),
                                     chunk,
                                     steps,
                                     to + p * number(kResults),
                                     run,
                                     next.from,
                                     next.panel_stride,
                                     next.left,
                                     next.maxima,
                                     first,
                                     end,
                                     each,
                                     next_chunk,
                                     w.zeros};
    in.push_back(make_stmt<If>({}, (p * number(2) + number(1) < w.tiles).expr(),
                               call("tiles_2", args), call("tiles_1", args)));
    return make_seq(std::move(in));
  }));
  return make_seq(std::move(body));
}

/// The results of a block to where they belong, where its columns could be split.
Stmt SplitProduct::finish(const SplitTask& t, const Work& w, const Value& block,
                          const Value& results) const {
  std::vector<Stmt> in;
  const Value maxima = w.maxima + (block - t.begin) * number(kMaxima);
  const VarRef far = mutable_var(in, "far", kWordVector, zero_words());
  for (int panel = 0; panel < 2; panel++) {
    const Value v =
        declare(in, "most", Value(make_load(maxima.expr(), index(panel * kPanelColumns), kLanes)));
    in.push_back(assign(far, larger(Value(Expr(far)), beyond(v))));
  }
  const Value worst = largest_lane(in, far);
  in.push_back(make_stmt<If>({}, too_far(worst).expr(), t.plain(block, block + number(1)),
                             t.finish(block, results)));
  return make_seq(std::move(in));
}

}  // namespace hidet::graph
