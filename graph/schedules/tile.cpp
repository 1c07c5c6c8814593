// tile.cpp - the micro kernel that matmul and convolution share, and pieces for writing such kernels.
#include "schedules/tile.h"

#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

namespace hidet::graph {
using namespace ir;

TileShape tile_shape(const CpuTargetInfo& target) {
  // 28 accumulators of 32 registers with 64-byte vectors; 12 of 16 with shorter ones, where two steps of k
  // hide the loads.
  return target.vector_bytes >= 64 ? TileShape{16, 14, 2, 1} : TileShape{8, 6, 1, 2};
}

TileShape tile_shape(const CpuTargetInfo& target, int64_t panels) {
  TileShape t = tile_shape(target);
  if (panels == 0 || panels == t.panels) return t;
  const int registers = target.vector_bytes >= 64 ? 32 : 16;
  const int vectors = static_cast<int>(panels * kPanelColumns) / t.lanes;  // of a row
  t.panels = static_cast<int>(panels);
  t.rows = std::max(1, (registers - vectors - 1) / vectors);
  return t;
}

std::vector<int64_t> split_evenly(int64_t n, int64_t most) {
  const int64_t parts = (n + most - 1) / most;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < parts; i++) out.push_back(n / parts + (i < n % parts));
  return out;
}

std::vector<int64_t> distinct_heights(std::vector<int64_t> heights) {
  std::sort(heights.rbegin(), heights.rend());
  heights.erase(std::unique(heights.begin(), heights.end()), heights.end());
  return heights;
}

std::vector<int64_t> block_widths(int64_t n, const TileShape& shape) {
  std::vector<int64_t> out;
  if (n >= shape.columns()) out.push_back(shape.columns());
  if (n % shape.columns()) out.push_back(n % shape.columns());
  return out;
}

Stmt even_runs(const std::vector<int64_t>& parts,
               const std::function<Stmt(const Value&, int64_t)>& one) {
  std::vector<Stmt> out;
  int64_t at = 0;
  for (size_t i = 0; i < parts.size();) {
    size_t j = i;
    while (j < parts.size() && parts[j] == parts[i]) j++;
    const int64_t size = parts[i], end = at + static_cast<int64_t>(j - i) * size;
    if (j - i == 1) out.push_back(one(number(at), size));
    else
      out.push_back(loop_from("at", index(at), index(end), size,
                              [&](const Value& v) { return one(v, size); }));
    at = end;
    i = j;
  }
  return make_seq(std::move(out));
}

int64_t equal_blocks(int64_t n, int64_t most) {
  const int64_t least = (n + most - 1) / most;
  for (int64_t parts = least; parts <= 2 * least; parts++)
    if (n % parts == 0) return n / parts;
  return n;
}

bool is_f32_or_half(DType t) { return t == f32 || t == f16 || t == bf16; }

Expr load_f32(const Value& from, const Value& at, int lanes) {
  const Expr value = make_load(from.expr(), at.expr(), lanes);
  return make_cast(value, value->type.with_dtype(f32));
}

Value pointer_to(const VarRef& tensor) {
  return Value(make_address(tensor, std::vector<Expr>(shape_of(tensor).size(), index(0))));
}

Value least(const Value& a, const Value& b) {
  return Value(make_binary(BinaryOp::min, a.expr(), b.expr()));
}

Value sum_of_lanes(std::vector<Stmt>& body, const VarRef& vector) {
  std::vector<Value> lanes;
  for (int l = 0; l < vector->type.lanes(); l++)
    lanes.emplace_back(make_lane(vector, make_int(l, Type(i32))));
  for (size_t n = lanes.size() / 2; n >= 1; n /= 2)
    for (size_t k = 0; k < n; k++) lanes[k] = declare(body, "lane", lanes[k] + lanes[k + n]);
  return lanes[0];
}

Value scratch_floats(int slot, const Value& count) {
  return Value(make_prim("scratch", {make_int(slot, Type(i32)), (count * number(4)).expr()},
                         Type::pointer(Type(f32))));
}

Stmt call(const std::string& function, const std::vector<Value>& args) {
  std::vector<Expr> list;
  for (const Value& a : args) list.push_back(a.expr());
  return make_stmt<Evaluate>({}, make_call(function, std::move(list), Type()));
}

std::vector<Value> parameter_values(const FusedTask& fused) {
  std::vector<Value> out;
  for (const VarRef& v : fused.parameters()) out.emplace_back(Expr(v));
  return out;
}

bool batch_fits(const VarRef& operand, const VarRef& output) {
  const std::vector<Expr>&in = shape_of(operand), &y = shape_of(output);
  for (size_t d = 0; d + 2 < in.size(); d++) {
    int64_t n = 0;
    const bool one = is_const_int(in[d], &n) && n == 1;
    if (!one && !equal(in[d], y[d + y.size() - in.size()])) return false;
  }
  return true;
}

bool constant_shape(const VarRef& tensor, size_t from) {
  const std::vector<Expr>& shape = shape_of(tensor);
  for (size_t d = from; d < shape.size(); d++)
    if (!is_const_int(shape[d])) return false;
  return true;
}

int64_t extent_of(const VarRef& tensor, size_t d) {
  int64_t n = 0;
  HIDET_CHECK(is_const_int(shape_of(tensor).at(d), &n), "extent ", d, " of '", tensor->name,
              "' is not constant");
  return n;
}

Stmt in_chunks(int64_t count, int lanes,
               const std::function<Stmt(const Value& at, int width)>& body) {
  std::vector<Stmt> out;
  const int64_t whole = count / lanes * lanes;
  if (whole == lanes) out.push_back(body(number(0), lanes));
  if (whole > lanes)
    out.push_back(loop_from("j", index(0), index(whole), lanes,
                            [&](const Value& j) { return body(j, lanes); }));
  int64_t at = whole;
  for (int width = lanes / 2; width >= 1; width /= 2)
    if (count - at >= width) {
      out.push_back(body(number(at), width));
      at += width;
    }
  return make_seq(std::move(out));
}

Stmt pack_columns(const Value& panels, const Value& from, const Value& width, const Value& distance,
                  const Value& k, const TileShape& shape) {
  const int64_t columns = shape.columns();
  return loop_from("c", index(0), width.expr(), columns, [&](const Value& c) {
    return loop("k", k.expr(), LoopKind::serial, [&](const Value& kk) {
      std::vector<Stmt> row;
      const Value to = declare(row, "to", panels + (c * k + kk * number(columns))),
                  source = declare(row, "source", from + (kk * distance + c));
      std::vector<Stmt> part{zero_values(to, columns, shape.lanes)};
      part.push_back(loop("j", (width - c).expr(), LoopKind::serial, [&](const Value& j) -> Stmt {
        return make_stmt<Store>({}, to.expr(), j.expr(), load_f32(source, j));
      }));
      row.push_back(make_stmt<If>({}, (width - c >= number(columns)).expr(),
                                  copy_values(to, source, columns, shape.lanes),
                                  make_seq(std::move(part))));
      return make_seq(std::move(row));
    });
  });
}

Stmt choose_rows(const std::vector<int64_t>& sizes, const Value& height,
                 const std::function<Stmt(int64_t)>& one) {
  Stmt choice = one(sizes.back());
  for (size_t s = sizes.size() - 1; s-- > 0;)
    choice = make_stmt<If>({}, (height > number(sizes[s + 1])).expr(), one(sizes[s]), choice);
  return choice;
}

Stmt choose_columns(int64_t n, const TileShape& shape, const Value& block,
                    const std::function<Stmt(int64_t)>& one) {
  const int64_t full = n / shape.columns(), rest = n % shape.columns();
  if (!rest) return one(shape.columns());
  if (!full) return one(rest);
  return make_stmt<If>({}, (block < number(full)).expr(), one(shape.columns()), one(rest));
}

Stmt copy_values(const Value& to, const Value& from, int64_t count, int lanes) {
  return in_chunks(count, lanes, [&](const Value& at, int width) -> Stmt {
    return make_stmt<Store>({}, to.expr(), at.expr(), load_f32(from, at, width));
  });
}

Stmt zero_values(const Value& to, int64_t count, int lanes) {
  return in_chunks(count, lanes, [&](const Value& at, int width) -> Stmt {
    return make_stmt<Store>({}, to.expr(), at.expr(),
                            make_cast(make_const(0, f32), Type::vector(f32, width)));
  });
}

std::vector<Stmt> store_lanes(const Expr& v, int64_t count,
                              const std::function<Stmt(const Value&, const Value&)>& store) {
  std::vector<Stmt> out;
  const int lanes = v->type.lanes();
  int64_t at = 0;
  for (int width = lanes; width >= 1; width /= 2) {
    if (count - at < width) continue;
    if (width == 1) {
      out.push_back(store(number(at), Value(make_lane(v, make_int(at, Type(i32))))));
    } else {
      out.push_back(loop("lane", index(width), LoopKind::vectorize, [&](const Value& lane) {
        const Value l = at ? lane + number(at) : lane;
        return store(l, Value(make_lane(v, l.expr())));
      }));
    }
    at += width;
  }
  return out;
}

namespace {
class TileWriter {
 public:
  explicit TileWriter(const TileKernel& t)
      : t_(t), vectors_((t.columns + t.shape.lanes - 1) / t.shape.lanes) {}

  Stmt run() {
    std::vector<Stmt> body;
    if (t_.other.expr())
      sign_ = declare(body, "sign", Value(make_broadcast(t_.sign.expr(), t_.shape.lanes)));
    for (size_t i = 0; i < t_.row_offset.size(); i++)
      for (int64_t j = 0; j < vectors_; j++) {
        const Type vector = Type::vector(f32, lanes_of(j));
        acc_.push_back(make_var("c" + std::to_string(i) + "_" + std::to_string(j), vector, true));
        body.push_back(make_stmt<DeclVar>({}, acc_.back(), first_sum(i, j, vector)));
      }
    if (t_.begin_if.expr()) body.push_back(begin_where_wanted());
    body.push_back(t_.total.expr() ? runs_of_total() : tap(0, number(0), number(0)));
    for (size_t i = 0; i < t_.row_offset.size(); i++)
      for (int64_t j = 0; j < vectors_; j++) {
        const int64_t first = j * t_.shape.lanes;
        for (Stmt& s :
             store_lanes(accumulator(i, j), std::min<int64_t>(t_.columns - first, t_.shape.lanes),
                         [&](const Value& lane, const Value& value) {
                           return t_.store(static_cast<int64_t>(i),
                                           first ? lane + number(first) : lane, value);
                         }))
          body.push_back(std::move(s));
      }
    return make_seq(std::move(body));
  }

 private:
  const VarRef& accumulator(size_t i, int64_t j) const { return acc_[i * vectors_ + j]; }
  /// Half a vector where the last columns fill no more: with 24 columns a quarter less work.
  int lanes_of(int64_t j) const {
    const int lanes = t_.shape.lanes;
    const bool half = !t_.begin_with && lanes == 16 && t_.columns - j * lanes <= lanes / 2;
    return half ? lanes / 2 : lanes;
  }

  Expr first_sum(size_t i, int64_t j, const Type& vector) const {
    if (!t_.begin_with || t_.begin_if.expr()) return make_cast(make_const(0, f32), vector);
    return t_.begin_with(static_cast<int64_t>(i), number(j * t_.shape.lanes)).expr();
  }

  Stmt begin_where_wanted() const {
    std::vector<Stmt> all;
    for (size_t i = 0; i < t_.row_offset.size(); i++)
      for (int64_t j = 0; j < vectors_; j++)
        all.push_back(make_stmt<Assign>(
            {}, accumulator(i, j),
            t_.begin_with(static_cast<int64_t>(i), number(j * t_.shape.lanes)).expr()));
    return make_stmt<If>({}, t_.begin_if.expr(), make_seq(std::move(all)), Stmt());
  }

  /// Loop number d of the taps; `a` and `b`: elements so far (b in rows of a panel).
  Stmt tap(size_t d, const Value& a, const Value& b) {
    if (d == t_.taps.size()) return run_of_k(a, b, number(t_.run));
    int64_t inner = t_.run;
    for (size_t e = d + 1; e < t_.taps.size(); e++) inner *= t_.taps[e].first;
    return loop("tap", index(t_.taps[d].first), LoopKind::serial, [&](const Value& v) {
      return tap(d + 1, a + v * t_.taps[d].second, b + v * number(inner));
    });
  }

  Stmt runs_of_total() {
    return loop_from("done", index(0), t_.total.expr(), t_.run, [&](const Value& done) {
      std::vector<Stmt> body;
      const Value count = declare(body, "count", least(number(t_.run), t_.total - done));
      body.push_back(run_of_k(done / number(t_.run) * number(t_.run_step), done, count));
      return make_seq(std::move(body));
    });
  }

  Stmt run_of_k(const Value& a, const Value& b, const Value& count) {
    std::vector<Stmt> body;
    const Value pa = declare(body, "row", t_.a + a),
                pb = declare(body, "panel", t_.b + b * number(t_.b_step));
    const bool whole = t_.total.expr() ? t_.whole_steps : t_.run % t_.shape.k_step == 0;
    const int64_t step = whole ? t_.shape.k_step : 1;
    body.push_back(loop_from("k", index(0), count.expr(), step, [&](const Value& k) {
      std::vector<Stmt> steps;
      for (int64_t p = 0; p < t_.ahead_panels; p++)
        steps.push_back(make_stmt<Evaluate>(
            {}, make_prim("prefetch",
                          {(t_.ahead + (k * t_.ahead_step + number(p * t_.panel_stride))).expr()},
                          Type())));
      for (int64_t u = 0; u < step; u++) multiply(steps, pa, pb, u ? k + number(u) : k);
      return make_seq(std::move(steps));
    }));
    return make_seq(std::move(body));
  }

  void multiply(std::vector<Stmt>& out, const Value& a, const Value& b, const Value& k) {
    std::vector<Value> w;
    for (int64_t j = 0; j < vectors_; j++) {
      const int64_t column = j * t_.shape.lanes;
      const Value at = k * number(t_.b_step) +
                       number(column / kPanelColumns * t_.panel_stride + column % kPanelColumns);
      w.push_back(declare(out, "w", Value(load_f32(b, at, lanes_of(j)))));
      if (t_.other.expr()) add_other(out, w.back(), at);
    }
    for (size_t i = 0; i < t_.row_offset.size(); i++) {
      const Expr x = make_load(a.expr(), (k + number(t_.row_offset[i])).expr());
      std::optional<Value> splat;
      for (int64_t j = 0; j < vectors_; j++) {
        if (!splat || lanes_of(j) != lanes_of(j - 1))
          splat = declare(out, "x", Value(make_broadcast(x, lanes_of(j))));
        out.push_back(
            make_stmt<Assign>({}, accumulator(i, j),
                              call_math("fma", {splat->expr(), w[j].expr(), accumulator(i, j)})));
      }
    }
  }

  void add_other(std::vector<Stmt>& out, Value& w, const Value& at) const {
    const Expr other = load_f32(t_.other, at, t_.shape.lanes);
    w = declare(out, "w", Value(call_math("fma", {sign_.expr(), other, w.expr()})));
    out.push_back(make_stmt<Store>({}, t_.kept.expr(), at.expr(), w.expr()));
  }

  const TileKernel& t_;
  int64_t vectors_;
  std::vector<VarRef> acc_;
  Value sign_;
};
}  // namespace

Stmt tile_kernel(const TileKernel& t) { return TileWriter(t).run(); }

Function raw_tile(const std::string& name, TileKernel t, int64_t rows, int64_t row_distance,
                  const RawTile& how) {
  Function f;
  f.name = name;
  f.kind = FuncKind::cpu_internal;
  const auto parameter = [&](const char* called, const Type& type) {
    f.params.push_back(make_var(called, type));
    return Value(Expr(f.params.back()));
  };
  const Type pointer = Type::pointer(Type(f32)), panels = Type::pointer(Type(how.panels));
  t.a = parameter("a", pointer);
  t.b = parameter("b", panels);
  if (how.adds_panels) {
    t.other = parameter("other", panels);
    t.sign = parameter("sign", Type(f32));
    t.kept = parameter("kept", pointer);
  }
  if (how.runtime_k) t.total = parameter("k", Type(i64));
  const Value to = parameter("to", pointer);
  if (how.begin == Begin::either) t.begin_if = parameter("adds", Type(i64)) != number(0);
  if (how.prefetches) {
    t.ahead = parameter("ahead", panels);
    t.ahead_step = parameter("ahead_step", Type(i64));
    t.ahead_panels = 1;
  }
  for (int64_t i = 0; i < rows; i++) t.row_offset.push_back(i * row_distance);
  const int64_t distance = how.to_distance ? how.to_distance : t.shape.columns();
  if (how.begin != Begin::zero)
    t.begin_with = [&](int64_t i, const Value& c) {
      return Value(make_load(to.expr(), (c + number(i * distance)).expr(), t.shape.lanes));
    };
  t.store = [&](int64_t i, const Value& c, const Value& value) -> Stmt {
    return make_stmt<Store>({}, to.expr(), (c + number(i * distance)).expr(), value.expr());
  };
  f.body = tile_kernel(t);
  return f;
}

Value AheadOfTiles::step(const Value& tiles) const {
  const Value parts(make_binary(BinaryOp::max, (tiles / number(panels_)).expr(), index(1)));
  return (number(kPanelColumns - 1) + parts) / parts;
}

Value AheadOfTiles::begin(const Value& next, const Value& i, const Value& step) const {
  return next +
         (i % number(panels_) * number(stride_) + i / number(panels_) * (step * number(run_)));
}

std::vector<Stmt> store_raw_row(
    const Value& from, int64_t columns, int lanes,
    const std::function<Stmt(const Value& c, const Value& value)>& store) {
  std::vector<Stmt> out;
  for (int64_t first = 0; first < columns; first += lanes) {
    const Value v = declare(out, "value", Value(make_load(from.expr(), index(first), lanes)));
    for (Stmt& s : store_lanes(v.expr(), std::min<int64_t>(columns - first, lanes),
                               [&](const Value& lane, const Value& value) {
                                 return store(first ? lane + number(first) : lane, value);
                               }))
      out.push_back(std::move(s));
  }
  return out;
}

}  // namespace hidet::graph
