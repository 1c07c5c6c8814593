// strassen.cpp - products of packed weights with seven products of half the size instead of eight (docs/cpu_kernels.md, 3b). Rows,
// K and a pair of column blocks are halved; sums of parts of A are made once a run, sums of panels while the first tile reads them. A
// result that is not finite is for the caller to compute again: a NaN or an infinity reaches results that it does not belong to.
#include "schedules/strassen.h"

#include <algorithm>
#include <array>

namespace hidet::graph {
using namespace ir;

namespace {
/// A product of sums of quarters: of the rows' halves A11 (top, first half of K) to A22, and of B11 to B22.
struct Product {
  int a, a_sign, a_other;  ///< quarter 0..3, and what is added with a sign, if that is not 0
  int b, b_sign, b_other;
};
constexpr int kProducts = 7;
constexpr std::array<Product, kProducts> kStrassen = {{
    {0, 1, 3, 0, 1, 3},   // (A11 + A22) (B11 + B22)
    {2, 1, 3, 0, 0, 0},   // (A21 + A22) B11
    {0, 0, 0, 1, -1, 3},  // A11 (B12 - B22)
    {3, 0, 0, 2, -1, 0},  // A22 (B21 - B11)
    {0, 1, 1, 3, 0, 0},   // (A11 + A12) B22
    {2, -1, 0, 0, 1, 1},  // (A21 - A11) (B11 + B12)
    {1, -1, 3, 2, 1, 3},  // (A12 - A22) (B21 + B22)
}};
/// Quarter q of the result: the products that it is the sum of, and their signs.
constexpr std::array<std::array<int, kProducts>, 4> kResults = {{
    {1, 0, 0, 1, -1, 0, 1},
    {0, 0, 1, 0, 1, 0, 0},
    {0, 1, 0, 1, 0, 0, 0},
    {1, -1, 1, 0, 0, 1, 0},
}};

/// Elements between the sums, the quarters of a result and the operands of products: at multiples of a page they would share one set
/// of the L1 cache.
constexpr int64_t kStagger = 80;

/// Rows of the tile that adds panels: as many as leave registers for the sign and the other panel.
int64_t rows_beside_sums(const TileShape& shape) { return shape.rows - 2; }

Value with_sign(const Value& a, int sign, const Value& b) { return sign > 0 ? a + b : a - b; }

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

Value pointer_parameter(Function& f, const char* name) {
  return parameter(f, name, Type::pointer(Type(f32)));
}
}  // namespace

Strassen::Strassen(const TileShape& shape, int64_t k, int64_t distance, int64_t run,
                   std::string tile)
    : shape_(shape),
      k_(k),
      distance_(distance),
      run_(equal_blocks(k / 2, run)),
      tile_(std::move(tile)),
      first_(rows_beside_sums(shape)) {
  if (run_ % shape_.k_step) run_ = k_ / 2;
}

void Strassen::add_heights(int64_t rows) {
  heights_.push_back(first_);
  for (int64_t r : split_evenly((rows + 1) / 2 - first_, shape_.rows)) heights_.push_back(r);
  heights_ = distinct_heights(std::move(heights_));
}

std::vector<Function> Strassen::functions() const {
  return {operand_row(true), operand_row(false), first_tile(), product()};
}

/// Two operands lie side by side, as the halves of K do.
Value Strassen::operand(const Value& operands, const Value& half, int product) const {
  return operands + ((half * number(distance_) + number(kStagger)) * number(product / 2) +
                     number(product % 2 * (k_ / 2)));
}

Value Strassen::operands_size(const Value& half) const {
  return (half * number(distance_) + number(kStagger)) * number((kProducts + 1) / 2);
}

Value Strassen::quarter_size(const Value& half) const {
  return half * number(shape_.columns()) + number(kStagger);
}

Value Strassen::sums_size(const Value& half) const {
  return quarter_size(half) * number(kProducts);
}

int64_t Strassen::panels_size() const { return ((shape_.panels - 1) * k_ + run_) * kPanelColumns; }

/// operands_N(to, half, top[, bottom]): one row of the operands.
Function Strassen::operand_row(bool has_bottom) const {
  Function f = internal(has_bottom ? "operands_2" : "operands_1");
  const Value to = pointer_parameter(f, "to"), half = parameter(f, "half", Type(i64)),
              top = pointer_parameter(f, "top");
  const Value bottom = has_bottom ? pointer_parameter(f, "bottom") : top;
  f.body = in_chunks(k_ / 2, shape_.lanes, [&](const Value& k, int lanes) {
    std::vector<Stmt> in;
    const auto quarter = [&](const Value& row, int64_t begin) {
      return declare(in, "quarter",
                     Value(make_load(row.expr(), (k + number(begin)).expr(), lanes)));
    };
    std::vector<Value> a = {quarter(top, 0), quarter(top, k_ / 2)};
    if (has_bottom) a.insert(a.end(), {quarter(bottom, 0), quarter(bottom, k_ / 2)});
    else
      a.resize(4,
               declare(in, "none", Value(make_cast(make_const(0, f32), Type::vector(f32, lanes)))));
    for (int p = 0; p < kProducts; p++) {
      const Product& q = kStrassen[p];
      const Value v = q.a_sign ? with_sign(a[q.a], q.a_sign, a[q.a_other]) : a[q.a];
      in.push_back(make_stmt<Store>({}, operand(to, half, p).expr(), k.expr(), v.expr()));
    }
    return make_seq(std::move(in));
  });
  return f;
}

Stmt Strassen::operands_of_row(const Value& to, const Value& half, const Value& i, const Value& top,
                               const Value& bottom, const Value& has_bottom) const {
  const Value row = to + i * number(distance_);
  return make_stmt<If>({}, has_bottom.expr(), call("operands_2", {row, half, top, bottom}),
                       call("operands_1", {row, half, top}));
}

Function Strassen::first_tile() const {
  TileKernel t;
  t.shape = shape_;
  t.columns = shape_.columns();
  t.panel_stride = k_ * kPanelColumns;
  t.run = k_;
  t.whole_steps = true;
  return raw_tile(
      "tile_adding_panels", t, first_, distance_,
      {.runtime_k = true, .prefetches = true, .adds_panels = true, .begin = Begin::either});
}

/// half_product(a, b, other, sign, kept, to, half, adds, ahead): all tiles of one product; sign 0: of b alone.
Function Strassen::product() const {
  Function f = internal("half_product");
  const Value a = pointer_parameter(f, "a"), b = pointer_parameter(f, "b"),
              other = pointer_parameter(f, "other"), sign = parameter(f, "sign", Type(f32)),
              kept = pointer_parameter(f, "kept"), to = pointer_parameter(f, "to"),
              half = parameter(f, "half", Type(i64)), adds = parameter(f, "adds", Type(i64)),
              ahead = pointer_parameter(f, "ahead");
  const Value first = number(first_), run = number(run_);
  std::vector<Stmt> body;
  const Value rest = declare(body, "rest", half - first);
  const Value tiles =
      declare(body, "tiles", (rest + number(shape_.rows - 1)) / number(shape_.rows));
  const Value height = declare(body, "height", rest / tiles),
              more = declare(body, "taller", rest % tiles);
  const AheadOfTiles fetched(shape_, k_ * kPanelColumns, run_);
  const Value step = declare(body, "step", fetched.step(tiles + number(1)));
  const Value alone = declare(body, "alone", sign == Value(make_const(0, f32)));
  body.push_back(make_stmt<If>(
      {}, alone.expr(), call(tile_, {first, a, b, run, to, adds, ahead, step}),
      call("tile_adding_panels", {a, b, other, sign, kept, run, to, adds, ahead, step})));
  const Value panel =
      declare(body, "panel", Value(make_select(alone.expr(), b.expr(), kept.expr())));
  body.push_back(loop("tile", tiles.expr(), LoopKind::serial, [&](const Value& i) {
    std::vector<Stmt> in;
    const Value at = declare(in, "at", first + i * height + least(i, more));
    const Value r = declare(in, "r", height + select(i < more, number(1), number(0)));
    in.push_back(
        call(tile_, {r, a + at * number(distance_), panel, run, to + at * number(shape_.columns()),
                     adds, fetched.begin(ahead, i + number(1), step), step}));
    return make_seq(std::move(in));
  }));
  f.body = make_seq(std::move(body));
  return f;
}

Stmt Strassen::products(const Value& operands, const Value& half, const Value& b,
                        const Value& begin, const Value& end, const Value& sums,
                        const Value& panels) const {
  const Value pair_size = number(2 * block_size());
  return loop_from("k", index(0), index(k_ / 2), run_, [&](const Value& k) {
    return loop_from("pair", begin.expr(), end.expr(), 1, [&](const Value& c) {
      std::vector<Stmt> in;
      const Value panel = declare(in, "panel", b + (c * pair_size + k * number(kPanelColumns)));
      // The next pair of column blocks, or the first in the next run of K, or the first of the next such group.
      const Value again = b + (begin * pair_size + (k + number(run_)) * number(kPanelColumns)),
                  onwards = b + end * pair_size;
      const Value turn(
          make_select((k + number(run_) < number(k_ / 2)).expr(), again.expr(), onwards.expr()));
      const Value next = declare(in, "next",
                                 Value(make_select((c + number(1) < end).expr(),
                                                   (panel + pair_size).expr(), turn.expr())));
      in.push_back(
          pair(operands + k, half, panel, next, sums + (c - begin) * sums_size(half), panels, k));
      return make_seq(std::move(in));
    });
  });
}

Stmt Strassen::pair(const Value& operands, const Value& half, const Value& panel, const Value& next,
                    const Value& sums, const Value& panels, const Value& adds) const {
  std::vector<Stmt> all;
  const auto quarter = [&](const Value& from, int q) {
    return from + number(q / 2 * (k_ / 2) * kPanelColumns + q % 2 * block_size());
  };
  for (int p = 0; p < kProducts; p++) {
    const Product& q = kStrassen[p];
    all.push_back(call("half_product",
                       {operand(operands, half, p), quarter(panel, q.b), quarter(panel, q.b_other),
                        Value(make_const(q.b_sign, f32)), panels,
                        sums + quarter_size(half) * number(p), half, adds, quarter(next, p % 4)}));
  }
  return make_seq(std::move(all));
}

Value Strassen::results(std::vector<Stmt>& body, const Value& half, const Value& sums,
                        const Value& rows, const Value& to, int64_t distance) const {
  const int lanes = shape_.lanes;
  const Type vector = Type::vector(f32, lanes);
  const VarRef check = make_var("check", vector, true);
  body.push_back(make_stmt<DeclVar>({}, check, make_cast(make_const(0, f32), vector)));
  const Value size = declare(body, "size", quarter_size(half));
  body.push_back(loop_from(
      "i", index(0), (rows * number(shape_.columns())).expr(), lanes, [&](const Value& i) {
        std::vector<Stmt> in;
        std::vector<Value> p;
        for (int n = 0; n < kProducts; n++)
          p.push_back(declare(in, "p",
                              Value(make_load((sums + size * number(n)).expr(), i.expr(), lanes))));
        Value zero;
        for (int q = 0; q < 4; q++) {
          Value sum;
          for (int n = 0; n < kProducts; n++)
            if (const int sign = kResults[q][n])
              sum = sum.expr() ? with_sign(sum, sign, p[n]) : p[n];
          sum = declare(in, "sum", sum);
          in.push_back(
              make_stmt<Store>({}, (to + number(q * distance)).expr(), i.expr(), sum.expr()));
          const Value none = declare(in, "zero", sum - sum);  // NaN unless finite
          zero = q ? declare(in, "zero", zero + none) : none;
        }
        in.push_back(make_stmt<Assign>({}, check, (Value(Expr(check)) + zero).expr()));
        return make_seq(std::move(in));
      }));
  const Value total = declare(body, "total", sum_of_lanes(body, check));
  return total != total;
}

}  // namespace hidet::graph
