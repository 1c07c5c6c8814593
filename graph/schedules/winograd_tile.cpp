// winograd_tile.cpp - the transforms of a tile, the products, and the direct computation of a tile whose results are not finite.
#include "schedules/winograd_tile.h"

#include <hidet/ir/primitives.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

std::string input_name(bool edge) { return edge ? "input_edge" : "input"; }
std::string products_name(int64_t rows, int64_t columns) {
  return "products_" + std::to_string(rows) + "x" + std::to_string(columns);
}
std::string output_name(int64_t columns) { return "output_" + std::to_string(columns); }

std::vector<Value> with_sizes(const WinogradPlan& plan, std::vector<Value> args,
                              const WinogradSizes& at) {
  if (!plan.fixed) args.insert(args.end(), {at.height, at.width, at.oh, at.ow});
  return args;
}

namespace {

std::string direct_name(int64_t columns) { return "direct_" + std::to_string(columns); }

class Tile {
 public:
  explicit Tile(const WinogradPlan& plan) : plan_(plan) {}

  std::vector<Function> run(const std::set<int64_t>& heights) const {
    std::vector<Function> out{input(false), weight()};
    if (plan_.edges) out.push_back(input(true));
    const int64_t n = plan_.window.n;
    for (int64_t columns : {plan_.shape.columns(), n % plan_.shape.columns()}) {
      if (columns == 0 || columns > n) continue;
      for (int64_t rows : heights) out.push_back(products(rows, columns));
      out.push_back(direct(columns));
      out.push_back(output(columns));
    }
    return out;
  }

 private:
  /// A function with parameters of these types: p a pointer to f32, s one to stored values (image, weight), i an i64, b an u32 (a column
  /// block: the vectorizer sees its multiples).
  std::vector<Value> parameters(Function& f,
                                const std::vector<std::pair<const char*, char>>& list) const {
    std::vector<Value> out;
    for (auto [name, kind] : list) {
      f.params.push_back(make_var(name, kind == 'p'   ? Type::pointer(Type(f32))
                                        : kind == 's' ? Type::pointer(Type(plan_.window.dtype))
                                        : kind == 'i' ? Type(i64)
                                                      : Type(u32)));
      out.emplace_back(Expr(f.params.back()));
    }
    return out;
  }
  static Function internal(const std::string& name) {
    Function f;
    f.name = name;
    f.kind = FuncKind::cpu_internal;
    return f;
  }
  static Value vector_at(const Value& from, const Value& at, int lanes) {
    return Value(load_f32(from, at, lanes));
  }
  static Stmt put(const Value& to, const Value& at, const Value& value) {
    return make_stmt<Store>({}, to.expr(), at.expr(), value.expr());
  }
  WinogradSizes sizes_in(Function& f) const {
    if (plan_.fixed) return plan_.sizes();
    const std::vector<Value> p =
        parameters(f, {{"height", 'i'}, {"width", 'i'}, {"oh", 'i'}, {"ow", 'i'}});
    return {p[0], p[1], p[2], p[3]};
  }

  Function input(bool edge) const {
    Function f = internal(input_name(edge));
    const std::vector<Value> p =
        parameters(f, {{"x", 's'}, {"to", 'p'}, {"step", 'i'}, {"row", 'i'}, {"column", 'i'}});
    const WinogradSizes at = sizes_in(f);
    const Value &to = p[1], &step = p[2], &row = p[3], &column = p[4];
    std::vector<Stmt> body;
    std::vector<Value> rows, columns;  // inside the image
    const int64_t e = plan_.map.extent();
    for (int64_t i = 0; edge && i < e; i++) {
      const Value h = row + number(i), w = column + number(i);
      rows.push_back(declare(body, "inside", number(0) <= h && h < at.height));
      columns.push_back(declare(body, "inside", number(0) <= w && w < at.width));
    }
    const Value first = declare(body, "first", (row * at.width + column) * number(plan_.window.c));
    const auto one = [&](const Value& c, int lanes) {
      std::vector<Stmt> in;
      std::vector<Value> values;
      for (int64_t i = 0; i < e; i++)
        for (int64_t j = 0; j < e; j++) {
          const Value place =
              first + (c + (number(i) * at.width + number(j)) * number(plan_.window.c));
          const Expr load = load_f32(p[0], place, lanes);
          const VarRef d = make_var("d", load->type, edge);
          if (edge) {
            in.push_back(make_stmt<DeclVar>({}, d, zero(lanes)));
            in.push_back(make_stmt<If>({}, (rows[i] && columns[j]).expr(),
                                       make_stmt<Assign>({}, d, load), Stmt()));
          } else {
            in.push_back(make_stmt<DeclVar>({}, d, load));
          }
          values.emplace_back(Expr(d));
        }
      const std::vector<Value> results = plan_.map.both(in, &WinogradTransform::input, values);
      for (size_t k = 0; k < results.size(); k++)
        in.push_back(put(to, step * number(static_cast<int64_t>(k)) + c, results[k]));
      return make_seq(std::move(in));
    };
    const int64_t whole = plan_.window.c / plan_.shape.lanes * plan_.shape.lanes;
    if (whole)
      body.push_back(loop_from("c", index(0), index(whole), plan_.shape.lanes,
                               [&](const Value& c) { return one(c, plan_.shape.lanes); }));
    int64_t done = whole;
    for (int width = plan_.shape.lanes / 2; width >= 1; width /= 2)
      if (plan_.window.c - done >= width) {
        body.push_back(one(number(done), width));
        done += width;
      }
    f.body = make_seq(std::move(body));
    return f;
  }
  static Expr zero(int lanes) {
    const Expr z = make_const(0, f32);
    return lanes == 1 ? z : make_cast(z, Type::vector(f32, lanes));
  }

  Function weight() const {
    Function f = internal("weight");
    const std::vector<Value> p = parameters(f, {{"from", 's'}, {"to", 'p'}});
    f.body = loop_from(
        "at", index(0), index(plan_.depth * kPanelColumns), plan_.shape.lanes,
        [&](const Value& at) {
          std::vector<Stmt> in;
          std::vector<Value> g;
          for (int64_t tap = 0; tap < 9; tap++)
            g.push_back(declare(in, "g",
                                vector_at(p[0], at + number(tap * plan_.window.c * kPanelColumns),
                                          plan_.shape.lanes)));
          const std::vector<Value> results = plan_.map.both(in, &WinogradTransform::weight, g);
          for (size_t k = 0; k < results.size(); k++)
            in.push_back(
                put(p[1], at + number(static_cast<int64_t>(k) * plan_.product_size), results[k]));
          return make_seq(std::move(in));
        });
    return f;
  }

  Function products(int64_t rows, int64_t columns) const {
    TileKernel t;
    t.shape = plan_.shape;
    t.columns = columns;
    t.panel_stride = plan_.panel_size;
    t.run = plan_.depth;
    return raw_tile(products_name(rows, columns), t, rows, plan_.distance,
                    {.begin = plan_.depth < plan_.window.c ? Begin::sums : Begin::zero});
  }

  Function output(int64_t columns) const {
    Function f = internal(output_name(columns));
    f.params = plan_.fused.parameters();
    const std::vector<Value> p = parameters(f, {{"sums", 'p'},
                                                {"step", 'i'},
                                                {"results", 'p'},
                                                {"image", 'i'},
                                                {"row", 'i'},
                                                {"column", 'i'},
                                                {"block", 'b'}});
    const WinogradSizes at = sizes_in(f);
    const Value &results = p[2], &image = p[3], &row = p[4], &column = p[5];
    const Value block(make_cast(p[6].expr(), Type(i64)));
    std::vector<Stmt> body;
    const Value broken = transformed_back(body, p[0], p[1], results, columns);
    body.push_back(make_stmt<If>(
        {}, broken.expr(),
        call(
            direct_name(columns),
            with_sizes(plan_,
                       {pointer_to(plan_.fused.anchor.inputs[0]) +
                            image * (at.height * at.width * number(plan_.window.c)),
                        pointer_to(plan_.fused.anchor.inputs[1]) +
                            block * number(plan_.shape.panels * 9 * plan_.window.c * kPanelColumns),
                        results, row, column},
                       at)),
        Stmt()));
    const Value rows = declare(body, "rows", least(number(plan_.map.m), at.oh - row)),
                across = declare(body, "across", least(number(plan_.map.m), at.ow - column));
    const auto store = [&](const Value& i, const Value& j, const Value& c, const Value& value) {
      return plan_.fused.store(
          {image, row + i, column + j, block * number(plan_.shape.columns()) + c}, value);
    };
    body.push_back(stores_along_pixels(plan_.fused)
                       ? channel_by_channel(results, columns, rows, across, store)
                       : pixel_by_pixel(results, columns, rows, across, store));
    f.body = make_seq(std::move(body));
    return f;
  }
  using TileStore =
      std::function<Stmt(const Value& i, const Value& j, const Value& c, const Value& value)>;
  Value pixel_of(const Value& results, const Value& i, const Value& j) const {
    return results + (i * number(plan_.map.m) + j) * number(plan_.shape.columns());
  }
  Stmt pixel_by_pixel(const Value& results, int64_t columns, const Value& rows, const Value& across,
                      const TileStore& store) const {
    return loop("i", rows.expr(), LoopKind::serial, [&](const Value& i) {
      return loop("j", across.expr(), LoopKind::serial, [&](const Value& j) {
        std::vector<Stmt> in;
        const Value from = declare(in, "from", pixel_of(results, i, j));
        for (Stmt& s : store_raw_row(
                 from, columns, plan_.shape.lanes,
                 [&](const Value& c, const Value& value) { return store(i, j, c, value); }))
          in.push_back(std::move(s));
        return make_seq(std::move(in));
      });
    });
  }
  /// For outputs in NCHW.
  Stmt channel_by_channel(const Value& results, int64_t columns, const Value& rows,
                          const Value& across, const TileStore& store) const {
    return loop("c", index(columns), LoopKind::serial, [&](const Value& c) {
      return loop("i", rows.expr(), LoopKind::serial, [&](const Value& i) {
        return loop("j", across.expr(), LoopKind::serial, [&](const Value& j) {
          std::vector<Stmt> in;
          const Value value =
              declare(in, "value", Value(make_load(pixel_of(results, i, j).expr(), c.expr(), 1)));
          in.push_back(store(i, j, c, value));
          return make_seq(std::move(in));
        });
      });
    });
  }
  /// A tile's results in results[pixel][columns of a block]; whether one of them is not finite.
  Value transformed_back(std::vector<Stmt>& body, const Value& sums, const Value& step,
                         const Value& results, int64_t columns) const {
    const Type vector = Type::vector(f32, plan_.shape.lanes);
    const VarRef check = make_var("check", vector, true);
    body.push_back(make_stmt<DeclVar>({}, check, zero(plan_.shape.lanes)));
    const int64_t vectors = (columns + plan_.shape.lanes - 1) / plan_.shape.lanes;
    body.push_back(loop_from(
        "c", index(0), index(vectors * plan_.shape.lanes), plan_.shape.lanes, [&](const Value& c) {
          std::vector<Stmt> in;
          std::vector<Value> values;
          for (int64_t k = 0; k < plan_.map.products(); k++)
            values.push_back(
                declare(in, "s", vector_at(sums, step * number(k) + c, plan_.shape.lanes)));
          std::vector<Value> y = plan_.map.both(in, &WinogradTransform::output, values);
          for (size_t k = 0; k < y.size(); k++) {
            in.push_back(
                put(results, c + number(static_cast<int64_t>(k) * plan_.shape.columns()), y[k]));
            y[k] = declare(in, "zero", y[k] - y[k]);  // NaN unless finite
          }
          for (size_t n = y.size() / 2; n >= 1; n /= 2)
            for (size_t k = 0; k < n; k++) y[k] = declare(in, "zero", y[k] + y[k + n]);
          in.push_back(make_stmt<Assign>({}, check, (Value(Expr(check)) + y[0]).expr()));
          return make_seq(std::move(in));
        }));
    const Value total = sum_of_lanes(body, check);
    return total != total;
  }

  Function direct(int64_t columns) const {
    Function f = internal(direct_name(columns));
    const std::vector<Value> p =
        parameters(f, {{"x", 's'}, {"panels", 's'}, {"to", 'p'}, {"row", 'i'}, {"column", 'i'}});
    const WinogradSizes at = sizes_in(f);
    const int64_t vectors = (columns + plan_.shape.lanes - 1) / plan_.shape.lanes;
    f.body =
        loop("pixel", index(plan_.map.m * plan_.map.m), LoopKind::serial, [&](const Value& pixel) {
          std::vector<Stmt> outer;
          const Value row = declare(outer, "h",
                                    p[3] + pixel / number(plan_.map.m) - number(plan_.window.top)),
                      column =
                          declare(outer, "w",
                                  p[4] + pixel % number(plan_.map.m) - number(plan_.window.left));
          outer.push_back(loop("v", index(vectors), LoopKind::serial, [&](const Value& v) {
            std::vector<Stmt> in;
            const Value c = declare(in, "c", v * number(plan_.shape.lanes));
            const VarRef sum = make_var("sum", Type::vector(f32, plan_.shape.lanes), true);
            in.push_back(make_stmt<DeclVar>({}, sum, zero(plan_.shape.lanes)));
            const Value panel = declare(
                in, "panel",
                p[1] + (c / number(kPanelColumns) * number(9 * plan_.window.c * kPanelColumns) +
                        c % number(kPanelColumns)));
            in.push_back(loop("tap", index(9), LoopKind::serial, [&](const Value& tap) {
              std::vector<Stmt> one;
              const Value h = declare(one, "y", row + tap / number(3)),
                          w = declare(one, "x", column + tap % number(3));
              const Value inside =
                  number(0) <= h && h < at.height && number(0) <= w && w < at.width;
              const Stmt sums =
                  loop("k", index(plan_.window.c), LoopKind::serial, [&](const Value& k) {
                    const Expr x = load_f32(p[0], (h * at.width + w) * number(plan_.window.c) + k);
                    const Value weight =
                        vector_at(panel, (tap * number(plan_.window.c) + k) * number(kPanelColumns),
                                  plan_.shape.lanes);
                    return Stmt(make_stmt<Assign>(
                        {}, sum,
                        call_math("fma",
                                  {make_broadcast(x, plan_.shape.lanes), weight.expr(), sum})));
                  });
              one.push_back(make_stmt<If>({}, inside.expr(), sums, Stmt()));
              return make_seq(std::move(one));
            }));
            in.push_back(put(p[2], pixel * number(plan_.shape.columns()) + c, Value(Expr(sum))));
            return make_seq(std::move(in));
          }));
          return make_seq(std::move(outer));
        });
    return f;
  }
  const WinogradPlan& plan_;
};

}  // namespace

std::vector<Function> winograd_functions(const WinogradPlan& plan,
                                         const std::set<int64_t>& heights) {
  return Tile(plan).run(heights);
}

}  // namespace hidet::graph
