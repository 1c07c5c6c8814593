// cpu_attention.cpp - attention without a score matrix in memory (docs/cpu_kernels.md, 7a). A task is one matrix of the batch and a
// group of rows of q. It packs k and v into column blocks; each row tile of q meets k in passes of 256 keys, whose scores stay
// in the L1 cache: they become shares of the largest score so far, the sums so far are scaled to it, and the shares' product
// with v is added. Keys at either end whose shares the mask provably makes 0 in all rows of a tile are left out.
#include "schedules/live_keys.h"
#include "schedules/row_lanes.h"
#include "schedules/square.h"
#include "schedules/tile.h"

#include <hidet/ir/primitives.h>

#include <algorithm>
#include <cmath>

namespace hidet::graph {
using namespace ir;

namespace {

/// Keys of a pass, and the distance of rows of q, scores and results in scratch (odd in cache lines, so that rows differ in their
/// L1 set); most columns of q and v.
constexpr int64_t kKeys = 256, kDistance = kKeys + 16;
/// Most and least rows of a task, and the tasks wanted.
constexpr int64_t kMostRows = 504, kLeastRows = 56, kTasks = 16;

Value ceil_of(const Value& a, int64_t b) { return (a + number(b - 1)) / number(b); }

class Attention {
 public:
  Attention(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused),
        shape_(tile_shape(target)),
        row_(shape_.columns()),
        live_(row_, shape_.lanes,
              extent_of(fused.anchor.inputs[0], shape_of(fused.anchor.inputs[0]).size() - 1)) {
    const auto operand = [&](size_t k) -> const std::vector<Expr>& {
      return shape_of(fused.anchor.inputs[k]);
    };
    const std::vector<Expr>&q = operand(0), &v = operand(2), &y = shape_of(fused.anchor.outputs[0]);
    m_ = Value(q[q.size() - 2]);
    n_ = Value(v[v.size() - 2]);
    d_ = extent_of(fused.anchor.inputs[0], q.size() - 1);
    e_ = extent_of(fused.anchor.inputs[2], v.size() - 1);
    batch_.assign(y.begin(), y.end() - 2);
    sizes_ = tile_heights();
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    for (int64_t r : sizes_) m.functions.push_back(tile("tile_", r, shape_.columns()));
    if (v_in_place() && e_ != shape_.columns())
      for (int64_t r : sizes_) m.functions.push_back(tile("values_", r, e_));
    m.functions.push_back(shares());
    m.functions.push_back(finish());
    m.functions.push_back(fused_.launch(tasks()));
    return m;
  }

 private:
  /// Rows that tiles have, the largest first. Of sizes not known: rows are split evenly, so that tiles have more than half of the most;
  /// a lone one may compute a few for nothing.
  std::vector<int64_t> tile_heights() const {
    std::vector<int64_t> all;
    int64_t m = 0, batches = 0;
    if (is_const_int(m_.expr(), &m) && is_const_int(size_of(batch_), &batches)) {
      const int64_t wanted = (kTasks - 1) / std::max<int64_t>(batches, 1) + 1,
                    groups = std::max((m + kMostRows - 1) / kMostRows,
                                      std::min((m + kLeastRows - 1) / kLeastRows, wanted));
      for (int64_t rows : {groups ? m / groups + (m % groups != 0) : 1, groups ? m / groups : 1})
        for (int64_t height : split_evenly(std::max<int64_t>(rows, 1), shape_.rows))
          all.push_back(height);
      all = distinct_heights(std::move(all));
    } else {
      for (int64_t r = shape_.rows; r > shape_.rows / 2; r--) all.push_back(r);
    }
    return all;
  }

  /// KIND_R(rows, panels, k, sums, adds): sums = rows panels (+ sums), all but the panels at kDistance
  Function tile(const char* kind, int64_t rows, int64_t panel_distance) const {
    TileKernel t;
    t.shape = shape_;
    t.columns = shape_.columns();
    t.panel_stride = kPanelColumns;
    t.b_step = panel_distance;
    t.run = kKeys;
    return raw_tile(kind + std::to_string(rows), t, rows, kDistance,
                    {.runtime_k = true, .begin = Begin::either, .to_distance = kDistance});
  }

  /// Indices into input k for position `at` of the batch, row i and column j: 0 in dims that are broadcast.
  std::vector<Value> indices_of(size_t k, const std::vector<Value>& at, const Value& i,
                                const Value& j) const {
    std::vector<Value> all = at;
    all.push_back(i);
    all.push_back(j);
    const std::vector<Expr>& shape = shape_of(fused_.anchor.inputs[k]);
    all.erase(all.begin(), all.end() - static_cast<int64_t>(shape.size()));
    for (size_t d = 0; d < shape.size(); d++) {
      int64_t n = 0;
      if (is_const_int(shape[d], &n) && n == 1) all[d] = number(0);
    }
    return all;
  }

  bool masked() const { return fused_.anchor.inputs.size() == 4; }

  /// v is read where it lies: f32 whose rows are whole column blocks.
  bool v_in_place() const {
    return e_ % shape_.columns() == 0 && dtype_of(fused_.anchor.inputs[2]) == f32;
  }
  /// Input k at `indices` as f32.
  Value load(int k, const std::vector<Value>& indices) const {
    return Value(make_cast(fused_.load(k, indices).expr(), Type(f32)));
  }

  Stmt tiles_of(const char* kind, const Value& height, const std::vector<Value>& args) const {
    return choose_rows(sizes_, height,
                       [&](int64_t r) { return call(kind + std::to_string(r), args); });
  }

  struct Piece {  ///< A row tile in its matrix of the batch.
    Value batch, row, height;
  };
  static Piece piece_of(Function& f) {
    const auto parameter = [&](const char* name) {
      f.params.push_back(make_var(name, Type(i64)));
      return Value(Expr(f.params.back()));
    };
    Piece p;
    p.batch = parameter("batch"), p.row = parameter("row"), p.height = parameter("height");
    return p;
  }
  Function function(const char* name) const {
    Function f;
    f.name = name;
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    return f;
  }
  static Value pointer(Function& f, const char* name) {
    f.params.push_back(make_var(name, Type::pointer(Type(f32))));
    return Value(Expr(f.params.back()));
  }

  // State of a tile of rows, in numbers of state_rows(): the largest score so far, that of this pass, what shares are counted from, what earlier sums are
  // scaled with; behind them a block of lanes a row, whose sum is the total of its shares.
  enum State { kTop, kHere, kShift, kFactor, kTotals };
  int64_t state_rows() const {
    return (shape_.rows + shape_.lanes - 1) / shape_.lanes * shape_.lanes;
  }
  int64_t state_size() const { return kTotals * state_rows() + shape_.rows * row_.block(); }
  Value state_at(const Value& state, State which, const Value& i) const {
    return RowLanes::get(state, i + number(which * state_rows()));
  }
  Stmt put_state(const Value& state, State which, const Value& i, const Value& value) const {
    return RowLanes::put(state, i + number(which * state_rows()), value.expr());
  }
  Value totals_of(const Value& state, const Value& i) const {
    return state + (i * number(row_.block()) + number(kTotals * state_rows()));
  }

  /// shares(parameters..., scores, sums, state, batch, row, height, first key, keys, passes before): a pass's scores become shares of the largest score so
  /// far; sums and totals so far are scaled to it. First the largest of all rows, then the rest of each: so a row does not wait for its own largest.
  Function shares() const {
    Function f = function("shares");
    const Value scores = pointer(f, "scores"), sums = pointer(f, "sums"),
                state = pointer(f, "state");
    const Piece p = piece_of(f);
    f.params.push_back(make_var("key", Type(i64)));
    const Value key(Expr(f.params.back()));
    f.params.push_back(make_var("keys", Type(i64)));
    const Value keys(Expr(f.params.back()));
    f.params.push_back(make_var("later", Type(i64)));
    const Value later(Expr(f.params.back()));
    std::vector<Stmt> body;
    const std::vector<Value> at =
        masked() ? declare_indices(body, p.batch, batch_) : std::vector<Value>();
    const Value filled =
        declare(body, "filled", ceil_of(keys, row_.block()) * number(row_.block()));
    body.push_back(loop("i", p.height.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> one;
      const Value values = declare(one, "values", scores + i * number(kDistance));
      if (masked()) add_mask(one, values, at, p.row + i, key, keys);
      one.push_back(RowLanes::fill(values, keys, filled));
      const VarRef top = row_.accumulators(one, "top", -HUGE_VAL);
      one.push_back(row_.blocks(number(0), filled, [&](const Value& lane, const Value& j) {
        return RowLanes::combine(top, lane, RowLanes::get(values, j), RowLanes::larger_of);
      }));
      one.push_back(put_state(state, kHere, i, row_.combined(one, top, RowLanes::larger_of)));
      return make_seq(std::move(one));
    }));
    body.push_back(scales(state));
    body.push_back(loop("i", p.height.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> one;
      const Value values = declare(one, "values", scores + i * number(kDistance));
      one_row(one, values, filled, sums + i * number(kDistance), state, i, later);
      return make_seq(std::move(one));
    }));
    f.body = make_seq(std::move(body));
    return f;
  }

  void add_mask(std::vector<Stmt>& body, const Value& values, const std::vector<Value>& at,
                const Value& row, const Value& key, const Value& keys) const {
    const auto add = [&](const Value& j) {
      return RowLanes::put(
          values, j, (RowLanes::get(values, j) + load(3, indices_of(3, at, row, key + j))).expr());
    };
    RowLanes::each(body, keys, shape_.lanes, add);
  }

  /// What shares are counted from, and what is scaled, of all rows at once. A row of nothing but -inf so far has shares of 0, not NaN: finite scores may
  /// follow.
  Stmt scales(const Value& state) const {
    std::vector<Stmt> body;
    const auto one = [&](const Value& i) {
      std::vector<Stmt> in;
      const Value before = declare(in, "before", state_at(state, kTop, i)),
                  here = declare(in, "here", state_at(state, kHere, i)),
                  most = declare(in, "most", RowLanes::larger_of(before, here)),
                  none = declare(in, "none", Value(make_const(0, f32))),
                  shift = declare(in, "shift",
                                  select(most == Value(make_const(-HUGE_VAL, f32)), none, most));
      in.push_back(put_state(state, kTop, i, most));
      in.push_back(put_state(state, kShift, i, shift));
      in.push_back(
          put_state(state, kFactor, i, Value(call_math("exp", {(before - shift).expr()}))));
      return make_seq(std::move(in));
    };
    RowLanes::each(body, number(state_rows()), shape_.lanes, one);
    return make_seq(std::move(body));
  }

  void one_row(std::vector<Stmt>& body, const Value& values, const Value& filled, const Value& sums,
               const Value& state, const Value& i, const Value& later) const {
    const Value totals = declare(body, "totals", totals_of(state, i));
    // Not in a variable: 16 registers have no place for it.
    const VarRef sum = row_.exps(body, values, filled, state_at(state, kShift, i));
    // What earlier passes left is scaled to the new largest score.
    std::vector<Stmt> scale;
    const Value factor = declare(scale, "factor", state_at(state, kFactor, i));
    scale.push_back(
        row_.blocks(number(0), number(row_.block()), [&](const Value& lane, const Value& j) {
          return RowLanes::combine(sum, lane, RowLanes::get(totals, j) * factor, RowLanes::sum_of);
        }));
    scale.push_back(row_.blocks(number(0), number(width()), [&](const Value&, const Value& j) {
      return RowLanes::put(sums, j, (RowLanes::get(sums, j) * factor).expr());
    }));
    body.push_back(
        make_stmt<If>({}, (later > number(0)).expr(), make_seq(std::move(scale)), Stmt()));
    body.push_back(
        row_.blocks(number(0), number(row_.block()), [&](const Value& lane, const Value& j) {
          return RowLanes::put(totals, j, RowLanes::lane_of(sum, lane).expr());
        }));
  }

  /// Columns of the results, whole blocks.
  int64_t width() const { return (e_ + row_.block() - 1) / row_.block() * row_.block(); }

  /// finish(parameters..., sums, state, batch, row, height): the results through the epilogue.
  Function finish() const {
    Function f = function("finish");
    const Value sums = pointer(f, "sums"), state = pointer(f, "state");
    const Piece p = piece_of(f);
    std::vector<Stmt> body;
    const std::vector<Value> at = declare_indices(body, p.batch, batch_);
    body.push_back(loop("i", p.height.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> one;
      const Value totals = declare(one, "totals", totals_of(state, i));
      const VarRef sum = row_.accumulators(one, "sum", 0);
      one.push_back(
          row_.blocks(number(0), number(row_.block()), [&](const Value& lane, const Value& j) {
            return RowLanes::combine(sum, lane, RowLanes::get(totals, j), RowLanes::sum_of);
          }));
      const Value total = row_.combined(one, sum, RowLanes::sum_of),
                  share = declare(one, "share", Value(make_const(1, f32)) / total);
      const Value from = declare(one, "from", sums + i * number(kDistance));
      for (Stmt& s : store_raw_row(from, e_, shape_.lanes, [&](const Value& c, const Value& value) {
             std::vector<Value> indices = at;
             indices.push_back(p.row + i);
             indices.push_back(c);
             return fused_.store(indices, value * share);
           }))
        one.push_back(std::move(s));
      return make_seq(std::move(one));
    }));
    f.body = make_seq(std::move(body));
    return f;
  }

  /// Pointer to the matrix of input k for position `at` of the batch.
  Value matrix(size_t k, const std::vector<Value>& at) const {
    std::vector<Expr> indices;
    for (const Value& i : indices_of(k, at, number(0), number(0))) indices.push_back(i.expr());
    return Value(make_address(fused_.anchor.inputs[k], std::move(indices)));
  }

  Stmt tasks() const {
    std::vector<Stmt> body;
    const Value m = declare(body, "m", m_), n = declare(body, "n", n_),
                batches = declare(body, "batches", Value(size_of(batch_)));
    const auto most = [](const Value& a, const Value& b) {
      return Value(make_binary(BinaryOp::max, a.expr(), b.expr()));
    };
    const Value wanted = number(kTasks - 1) / most(batches, number(1)) + number(1);
    const Value groups =
        declare(body, "groups", most(ceil_of(m, kMostRows), least(ceil_of(m, kLeastRows), wanted)));
    body.push_back(
        loop("task", (batches * groups).expr(), LoopKind::parallel,
             [&](const Value& task) { return group(declare_task(task, groups, m), n); }));
    return make_seq(std::move(body));
  }

  struct Group {
    std::vector<Stmt> body;
    Value batch, first, count;
  };
  static Group declare_task(const Value& task, const Value& groups, const Value& m) {
    Group g;
    g.batch = declare(g.body, "batch", task / groups);
    const Value part = declare(g.body, "part", task % groups);
    g.first = declare(g.body, "first", part * (m / groups) + least(part, m % groups));
    g.count =
        declare(g.body, "count", m / groups + select(part < m % groups, number(1), number(0)));
    return g;
  }

  /// The keys of a matrix of the batch: packed k and v, their number, and, where there is a mask, LiveKeys::parts and key_size.
  struct Keys {
    Value k, v, n, parts, size;
  };

  LiveKeys::Mask mask(const std::vector<Value>& at, const Value& row, const Value& count) const {
    const std::vector<Expr>& shape = shape_of(fused_.anchor.inputs[3]);
    int64_t rows = 0;
    const bool one =
        shape.size() < 2 || (is_const_int(shape[shape.size() - 2], &rows) && rows == 1);
    return {one ? least(count, number(1)) : count, [this, at, row](const Value& i, const Value& j) {
              return load(3, indices_of(3, at, row + i, j));
            }};
  }

  Stmt group(Group g, const Value& n) const {
    std::vector<Stmt>& body = g.body;
    const std::vector<Value> at = declare_indices(body, g.batch, batch_);
    const int64_t columns = shape_.columns();
    const Value keys = declare(body, "keys", ceil_of(n, columns) * number(columns)),
                k = declare(body, "k", scratch_floats(0, keys * number(d_))),
                v = declare(body, "v",
                            v_in_place() ? matrix(2, at) : scratch_floats(1, n * number(width())));
    const int64_t tile_floats = shape_.rows * kDistance;
    const Value rows =
        declare(body, "rows", scratch_floats(2, number(3 * tile_floats + state_size())));
    body.push_back(pack_keys(k, matrix(1, at), n));
    if (!v_in_place())
      body.push_back(pack_columns(v, matrix(2, at), number(e_), number(e_), n, shape_));
    Keys all{k, v, n, {}, {}};
    if (masked()) {
      all.parts = live_.parts(body, n, mask(at, g.first, g.count));
      const VarRef size = make_var("size", Type(f32), true);
      body.push_back(make_stmt<DeclVar>({}, size, make_const(0, f32)));
      std::vector<Stmt> measured;
      const Value length = live_.key_size(measured, k, keys, v, n * number(width()));
      measured.push_back(make_stmt<Assign>({}, size, length.expr()));
      body.push_back(make_stmt<If>({}, all.parts.expr(), make_seq(std::move(measured)), Stmt()));
      all.size = Value(Expr(size));
    }
    const Value tiles = declare(body, "tiles", ceil_of(g.count, shape_.rows));
    body.push_back(loop("tile", tiles.expr(), LoopKind::serial, [&](const Value& t) {
      std::vector<Stmt> one;
      const Value row = declare(one, "row",
                                g.first + t * (g.count / tiles) + least(t, g.count % tiles)),
                  height =
                      declare(one, "height",
                              g.count / tiles + select(t < g.count % tiles, number(1), number(0)));
      row_tile(one, {g.batch, row, height}, at, rows, all);
      return make_seq(std::move(one));
    }));
    return make_seq(std::move(body));
  }

  /// The rows of k, at `from`, as the columns of column blocks: in squares of vectors, what is left of the rows one by one. Behind the last key of the last
  /// block it comes again.
  Stmt pack_keys(const Value& blocks, const Value& from, const Value& n) const {
    const int64_t columns = shape_.columns(), lanes = shape_.lanes, whole = d_ / lanes * lanes;
    return loop_from("c", index(0), n.expr(), columns, [&](const Value& c) {
      std::vector<Stmt> in;
      const Value to = declare(in, "to", blocks + c * number(d_));
      const auto key = [&](const Value& j) {
        return from + least(c + j, n - number(1)) * number(d_);
      };
      if (whole)
        in.push_back(loop_from("j", index(0), index(columns), lanes, [&](const Value& j) {
          std::vector<Stmt> one;
          std::vector<Value> keys;
          for (int64_t i = 0; i < lanes; i++)
            keys.push_back(declare(one, "key", key(j + number(i))));
          one.push_back(loop_from("d", index(0), index(whole), lanes, [&](const Value& d) {
            std::vector<Stmt> square;
            std::vector<Expr> rows;
            for (const Value& k : keys)
              rows.push_back(
                  declare(square, "row", Value(load_f32(k, d, static_cast<int>(lanes)))).expr());
            rows = turned_square(std::move(rows), square);
            for (int64_t i = 0; i < lanes; i++)
              square.push_back(make_stmt<Store>({}, to.expr(),
                                                ((d + number(i)) * number(columns) + j).expr(),
                                                rows[static_cast<size_t>(i)]));
            return make_seq(std::move(square));
          }));
          return make_seq(std::move(one));
        }));
      in.push_back(loop_from("d", index(whole), index(d_), 1, [&](const Value& d) {
        return loop("j", index(columns), LoopKind::serial, [&](const Value& j) -> Stmt {
          return make_stmt<Store>({}, to.expr(), (d * number(columns) + j).expr(),
                                  load_f32(key(j), d));
        });
      }));
      return make_seq(std::move(in));
    });
  }

  void row_tile(std::vector<Stmt>& body, const Piece& p, const std::vector<Value>& at,
                const Value& rows, const Keys& all) const {
    const Value &k = all.k, &v = all.v, &n = all.n;
    const int64_t columns = shape_.columns(), tile_floats = shape_.rows * kDistance;
    const Value scores = declare(body, "scores", rows + number(tile_floats)),
                sums = declare(body, "sums", rows + number(2 * tile_floats)),
                state = declare(body, "state", rows + number(3 * tile_floats));
    body.push_back(loop("i", p.height.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> one;
      const Value to = declare(one, "to", rows + i * number(kDistance));
      one.push_back(copy_row(to, at, p.row + i));
      return make_seq(std::move(one));
    }));
    body.push_back(loop_from("i", index(0), index(state_rows()), shape_.lanes, [&](const Value& i) {
      return loop("lane", index(shape_.lanes), LoopKind::vectorize, [&](const Value& lane) {
        return put_state(state, kTop, i + lane, Value(make_const(-HUGE_VAL, f32)));
      });
    }));
    body.push_back(
        make_stmt<If>({}, (n == number(0)).expr(), no_keys(sums, state, p.height), Stmt()));
    const auto with_parameters = [&](std::vector<Value> args) {
      std::vector<Value> all = parameter_values(fused_);
      all.insert(all.end(), args.begin(), args.end());
      return all;
    };
    Value begin = number(0), end = n;
    if (masked()) {
      const VarRef first = make_var("begin", Type(i64), true),
                   last = make_var("end", Type(i64), true);
      body.push_back(make_stmt<DeclVar>({}, first, begin.expr()));
      body.push_back(make_stmt<DeclVar>({}, last, end.expr()));
      body.push_back(make_stmt<If>({}, all.parts.expr(),
                                   live_.range(first, last, {rows, kDistance, p.height}, all.size,
                                               n, mask(at, p.row, p.height)),
                                   Stmt()));
      begin = Value(Expr(first)), end = Value(Expr(last));
    }
    body.push_back(loop_from("key", begin.expr(), end.expr(), kKeys, [&](const Value& key) {
      std::vector<Stmt> pass;
      const Value keys = declare(pass, "keys", least(number(kKeys), end - key)),
                  later = declare(pass, "later", key - begin);
      pass.push_back(loop_from("c", index(0), keys.expr(), columns, [&](const Value& c) {
        return tiles_of("tile_", p.height,
                        {rows, k + (key + c) * number(d_), number(d_), scores + c, number(0)});
      }));
      pass.push_back(call("shares", with_parameters({scores, sums, state, p.batch, p.row, p.height,
                                                     key, keys, later})));
      pass.push_back(loop_from("c", index(0), index(width()), columns, [&](const Value& c) {
        const Value part = v_in_place() ? key * number(e_) + c : c * n + key * number(columns);
        return tiles_of(v_in_place() && e_ != columns ? "values_" : "tile_", p.height,
                        {scores, v + part, keys, sums + c, later});
      }));
      return make_seq(std::move(pass));
    }));
    body.push_back(call("finish", with_parameters({sums, state, p.batch, p.row, p.height})));
  }

  /// to[0, d) = a row of q, through the prologue.
  Stmt copy_row(const Value& to, const std::vector<Value>& at, const Value& row) const {
    const auto copy = [&](const Value& d) {
      return RowLanes::put(to, d, load(0, indices_of(0, at, row, d)).expr());
    };
    std::vector<Stmt> body;
    RowLanes::each(body, number(d_), shape_.lanes, copy);
    return make_seq(std::move(body));
  }

  /// Results without any key are sums of nothing, 0: they are divided by 1.
  Stmt no_keys(const Value& sums, const Value& state, const Value& height) const {
    return loop("i", height.expr(), LoopKind::serial, [&](const Value& i) {
      const Value totals = totals_of(state, i);
      return make_seq({zero_values(sums + i * number(kDistance), width(), shape_.lanes),
                       zero_values(totals, row_.block(), shape_.lanes),
                       RowLanes::put(totals, number(0), make_const(1, f32))});
    });
  }

  const FusedTask& fused_;
  TileShape shape_;
  RowLanes row_;
  LiveKeys live_;
  Value m_, n_;
  int64_t d_ = 0, e_ = 0;
  std::vector<Expr> batch_;
  std::vector<int64_t> sizes_;
};

bool accepts(const Task& t) {
  if (t.name != "attention") return false;
  for (const VarRef& x : t.inputs)
    if (!is_f32_or_half(dtype_of(x))) return false;
  for (size_t k : {0, 2}) {
    int64_t n = 0;
    if (!is_const_int(shape_of(t.inputs[k]).back(), &n) || n < 1 || n > kKeys) return false;
  }
  for (size_t k = 0; k < 3; k++)
    if (!batch_fits(t.inputs[k], t.outputs[0])) return false;
  return true;
}

}  // namespace

CpuSchedule cpu_attention_schedule() {
  return {
      "attention", accepts,
      true,        true,
      true,        [](const FusedTask& f, const CpuTargetInfo& t) { return Attention(f, t).run(); },
      {},          {},
      false};
}

}  // namespace hidet::graph
