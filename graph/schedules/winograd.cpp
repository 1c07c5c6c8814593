// winograd.cpp - convolution 3 x 3, stride 1, in NHWC with a packed weight, by F(m x m, 3 x 3) (docs/cpu_kernels.md, 5a). An image is cut
// into tiles of m x m outputs. Their (m + 2)^2 inputs are transformed, and so are the weights; for each of the (m + 2)^2 products the
// tiles are the rows of a small matrix, which the micro kernel multiplies; the inverse transform makes m x m outputs of the
// sums. The weights are transformed in each run: that costs less than reading transformed ones from memory would, and the file
// stays as small as that of the direct kernel. A tile with an infinity or a NaN is computed again directly, so that these appear where
// they do in a direct convolution.
#include "schedules/winograd.h"

#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <set>

#include "schedules/winograd_transform.h"

namespace hidet::graph {
using namespace ir;

namespace {

/// Tiles that a strip has at most: one pass of the micro kernel over the weights.
constexpr int64_t kStrip = 14;
/// With at most so many tiles an image, and so many column blocks, tasks are column blocks and share the transformed inputs.
constexpr int64_t kFewTiles = 64, kColumnTasks = 4;
/// Input channels whose weights are transformed at once there (fewer where they are used for few tiles), and images whose inputs are.
constexpr int64_t kDepth = 64, kDepthOfFew = 32, kImages = 8;
/// Scratch memory: transformed inputs, sums, transformed weights.
constexpr int kInputs = 0, kSums = 1, kWeights = 2;

/// Predicted cycles of one vector, times 20: a multiplication one, about six for each value that a transform writes, four for a weight's.
struct Costs {
  int64_t c, panels, vectors;
  Costs(int64_t channels, int64_t n)
      : c(channels),
        panels((n + kPanelColumns - 1) / kPanelColumns),
        vectors((channels + kPanelColumns - 1) / kPanelColumns) {}
  int64_t tile(const WinogradTransform& t) const {
    return 23 * t.products() * (c * panels + 6 * (vectors + panels));
  }
  int64_t weights(const WinogradTransform& t) const { return 23 * t.products() * 4 * c * panels; }
  /// An output pixel of the direct kernel: the other must win by 15 %.
  int64_t pixel() const { return 20 * 9 * c * panels; }
};

class Winograd {
 public:
  Winograd(const FusedTask& fused, const CpuTargetInfo& target, int64_t m)
      : fused_(fused), target_(target), w_(fused), shape_(tile_shape(target)), map_{m} {
    fixed_ =
        constant_shape(fused.anchor.inputs[0], 1) && constant_shape(fused.anchor.outputs[0], 1);
    at_ = {w_.height, w_.width, w_.oh, w_.ow};
    int64_t oh = 0, ow = 0;
    if (is_const_int(w_.oh.expr(), &oh) && is_const_int(w_.ow.expr(), &ow))
      tiles_ = (oh + m - 1) / m * ((ow + m - 1) / m), across_ = number((ow + m - 1) / m);
    strip_ = fixed_ ? kStrip : shape_.rows;
    blocks_ = (w_.n + shape_.columns() - 1) / shape_.columns();
    panels_ = (w_.n + kPanelColumns - 1) / kPanelColumns;
    by_columns_ = fixed_ && tiles_ <= kFewTiles && blocks_ >= kColumnTasks;
    depth_ = by_columns_ ? equal_blocks(w_.c, tiles_ <= kStrip / 2 ? kDepthOfFew : kDepth) : w_.c;
    // Rows of the micro kernel must not fall into one set of the L1 cache.
    distance_ = w_.c >= 512 || w_.c * 4 % 4096 == 0 ? w_.c + 16 : w_.c;
    product_size_ = (depth_ + 1) * kPanelColumns;
    panel_size_ = map_.products() * product_size_;
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    const Stmt body = !fixed_       ? tasks_of_any_size(m)
                      : by_columns_ ? column_tasks()
                                    : strip_tasks();  // first: it notes the tiles
    for (const Function& f : {input(false), weight()}) m.functions.push_back(f);
    if (edges()) m.functions.push_back(input(true));
    for (int64_t columns : {shape_.columns(), w_.n % shape_.columns()}) {
      if (columns == 0 || columns > w_.n) continue;
      for (int64_t rows : heights_) m.functions.push_back(tile(rows, columns));
      m.functions.push_back(direct(columns));
      m.functions.push_back(output(columns));
    }
    m.functions.push_back(fused_.launch(body));
    return m;
  }

 private:
  static std::string named(const char* what, int64_t columns) {
    return std::string(what) + "_" + std::to_string(columns);
  }
  static std::string tile_name(int64_t rows, int64_t columns) {
    return named("products", rows) + "x" + std::to_string(columns);
  }
  /// A function with parameters of these types: p a pointer to f32, s one to stored values (image, weight), i an i64, b an u32 (a column
  /// block: the vectorizer sees its multiples).
  std::vector<Value> parameters(Function& f,
                                const std::vector<std::pair<const char*, char>>& list) const {
    std::vector<Value> out;
    for (auto [name, kind] : list) {
      f.params.push_back(make_var(name, kind == 'p'   ? Type::pointer(Type(f32))
                                        : kind == 's' ? Type::pointer(Type(w_.dtype))
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

  // --- the transforms

  /// A tile of which some inputs lie outside the image exists.
  bool edges() const {
    int64_t height = 0, width = 0, oh = 0, ow = 0;
    return !fixed_ || w_.top > 0 || w_.left > 0 || !is_const_int(at_.oh.expr(), &oh) ||
           !is_const_int(at_.ow.expr(), &ow) || !is_const_int(at_.height.expr(), &height) ||
           !is_const_int(at_.width.expr(), &width) || oh % map_.m || ow % map_.m ||
           oh + 2 - w_.top > height || ow + 2 - w_.left > width;
  }
  /// The sizes inside a function: numbers, or parameters of it; and the arguments for these.
  struct Sizes {
    Value height, width, oh, ow;
  };
  Sizes sizes_in(Function& f) const {
    if (fixed_) return at_;
    const std::vector<Value> p =
        parameters(f, {{"height", 'i'}, {"width", 'i'}, {"oh", 'i'}, {"ow", 'i'}});
    return {p[0], p[1], p[2], p[3]};
  }
  std::vector<Value> with_sizes(std::vector<Value> args, const Sizes& at) const {
    if (!fixed_) args.insert(args.end(), {at.height, at.width, at.oh, at.ow});
    return args;
  }
  std::string input_name(bool edge) const { return edge ? "input_edge" : "input"; }

  /// input(image, results, elements from a product to the next, row and column of the first input)
  Function input(bool edge) const {
    Function f = internal(input_name(edge));
    const std::vector<Value> p =
        parameters(f, {{"x", 's'}, {"to", 'p'}, {"step", 'i'}, {"row", 'i'}, {"column", 'i'}});
    const Sizes at = sizes_in(f);
    const Value &to = p[1], &step = p[2], &row = p[3], &column = p[4];
    std::vector<Stmt> body;
    std::vector<Value> rows, columns;  // inside the image
    const int64_t e = map_.extent();
    for (int64_t i = 0; edge && i < e; i++) {
      const Value h = row + number(i), w = column + number(i);
      rows.push_back(declare(body, "inside", number(0) <= h && h < at.height));
      columns.push_back(declare(body, "inside", number(0) <= w && w < at.width));
    }
    const Value first = declare(body, "first", (row * at.width + column) * number(w_.c));
    const auto one = [&](const Value& c, int lanes) {
      std::vector<Stmt> in;
      std::vector<Value> values;
      for (int64_t i = 0; i < e; i++)
        for (int64_t j = 0; j < e; j++) {
          const Value place = first + (c + (number(i) * at.width + number(j)) * number(w_.c));
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
      const std::vector<Value> results = map_.both(in, &WinogradTransform::input, values);
      for (size_t k = 0; k < results.size(); k++)
        in.push_back(put(to, step * number(static_cast<int64_t>(k)) + c, results[k]));
      return make_seq(std::move(in));
    };
    const int64_t whole = w_.c / shape_.lanes * shape_.lanes;
    if (whole)
      body.push_back(loop_from("c", index(0), index(whole), shape_.lanes,
                               [&](const Value& c) { return one(c, shape_.lanes); }));
    int64_t done = whole;
    for (int width = shape_.lanes / 2; width >= 1; width /= 2)
      if (w_.c - done >= width) {
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

  /// weight(panel, results): depth_ channels of one panel.
  Function weight() const {
    Function f = internal("weight");
    const std::vector<Value> p = parameters(f, {{"from", 's'}, {"to", 'p'}});
    f.body = loop_from(
        "at", index(0), index(depth_ * kPanelColumns), shape_.lanes, [&](const Value& at) {
          std::vector<Stmt> in;
          std::vector<Value> g;
          for (int64_t tap = 0; tap < 9; tap++)
            g.push_back(declare(
                in, "g", vector_at(p[0], at + number(tap * w_.c * kPanelColumns), shape_.lanes)));
          const std::vector<Value> results = map_.both(in, &WinogradTransform::weight, g);
          for (size_t k = 0; k < results.size(); k++)
            in.push_back(
                put(p[1], at + number(static_cast<int64_t>(k) * product_size_), results[k]));
          return make_seq(std::move(in));
        });
    return f;
  }

  /// tile_RxC(inputs, weights, sums)
  Function tile(int64_t rows, int64_t columns) const {
    TileKernel t;
    t.shape = shape_;
    t.columns = columns;
    t.panel_stride = panel_size_;
    t.run = depth_;
    return raw_tile(tile_name(rows, columns), t, rows, distance_,
                    {.begin = depth_ < w_.c ? Begin::sums : Begin::zero});
  }

  /// output_C(parameters..., sums, elements from a product to the next, a tile's results, image, row, column, column block)
  Function output(int64_t columns) const {
    Function f = internal(named("output", columns));
    f.params = fused_.parameters();
    const std::vector<Value> p = parameters(f, {{"sums", 'p'},
                                                {"step", 'i'},
                                                {"results", 'p'},
                                                {"image", 'i'},
                                                {"row", 'i'},
                                                {"column", 'i'},
                                                {"block", 'b'}});
    const Sizes at = sizes_in(f);
    const Value &results = p[2], &image = p[3], &row = p[4], &column = p[5];
    const Value block(make_cast(p[6].expr(), Type(i64)));
    std::vector<Stmt> body;
    const Value broken = transformed_back(body, p[0], p[1], results, columns);
    body.push_back(
        make_stmt<If>({}, broken.expr(),
                      call(named("direct", columns),
                           with_sizes({pointer_to(fused_.anchor.inputs[0]) +
                                           image * (at.height * at.width * number(w_.c)),
                                       pointer_to(fused_.anchor.inputs[1]) +
                                           block * number(shape_.panels * 9 * w_.c * kPanelColumns),
                                       results, row, column},
                                      at)),
                      Stmt()));
    const Value rows = declare(body, "rows", least(number(map_.m), at.oh - row)),
                across = declare(body, "across", least(number(map_.m), at.ow - column));
    const auto store = [&](const Value& i, const Value& j, const Value& c, const Value& value) {
      return fused_.store({image, row + i, column + j, block * number(shape_.columns()) + c},
                          value);
    };
    body.push_back(stores_along_pixels(fused_)
                       ? channel_by_channel(results, columns, rows, across, store)
                       : pixel_by_pixel(results, columns, rows, across, store));
    f.body = make_seq(std::move(body));
    return f;
  }
  using TileStore =
      std::function<Stmt(const Value& i, const Value& j, const Value& c, const Value& value)>;
  Value pixel_of(const Value& results, const Value& i, const Value& j) const {
    return results + (i * number(map_.m) + j) * number(shape_.columns());
  }
  Stmt pixel_by_pixel(const Value& results, int64_t columns, const Value& rows, const Value& across,
                      const TileStore& store) const {
    return loop("i", rows.expr(), LoopKind::serial, [&](const Value& i) {
      return loop("j", across.expr(), LoopKind::serial, [&](const Value& j) {
        std::vector<Stmt> in;
        const Value from = declare(in, "from", pixel_of(results, i, j));
        for (Stmt& s : store_raw_row(
                 from, columns, shape_.lanes,
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
    const Type vector = Type::vector(f32, shape_.lanes);
    const VarRef check = make_var("check", vector, true);
    body.push_back(make_stmt<DeclVar>({}, check, zero(shape_.lanes)));
    const int64_t vectors = (columns + shape_.lanes - 1) / shape_.lanes;
    body.push_back(
        loop_from("c", index(0), index(vectors * shape_.lanes), shape_.lanes, [&](const Value& c) {
          std::vector<Stmt> in;
          std::vector<Value> values;
          for (int64_t k = 0; k < map_.products(); k++)
            values.push_back(declare(in, "s", vector_at(sums, step * number(k) + c, shape_.lanes)));
          std::vector<Value> y = map_.both(in, &WinogradTransform::output, values);
          for (size_t k = 0; k < y.size(); k++) {
            in.push_back(
                put(results, c + number(static_cast<int64_t>(k) * shape_.columns()), y[k]));
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

  /// direct_C(image, panels, a tile's results, row, column): the tile as the direct kernel computes it.
  Function direct(int64_t columns) const {
    Function f = internal(named("direct", columns));
    const std::vector<Value> p =
        parameters(f, {{"x", 's'}, {"panels", 's'}, {"to", 'p'}, {"row", 'i'}, {"column", 'i'}});
    const Sizes at = sizes_in(f);
    const int64_t vectors = (columns + shape_.lanes - 1) / shape_.lanes;
    f.body = loop("pixel", index(map_.m * map_.m), LoopKind::serial, [&](const Value& pixel) {
      std::vector<Stmt> outer;
      const Value row = declare(outer, "h", p[3] + pixel / number(map_.m) - number(w_.top)),
                  column = declare(outer, "w", p[4] + pixel % number(map_.m) - number(w_.left));
      outer.push_back(loop("v", index(vectors), LoopKind::serial, [&](const Value& v) {
        std::vector<Stmt> in;
        const Value c = declare(in, "c", v * number(shape_.lanes));
        const VarRef sum = make_var("sum", Type::vector(f32, shape_.lanes), true);
        in.push_back(make_stmt<DeclVar>({}, sum, zero(shape_.lanes)));
        const Value panel =
            declare(in, "panel",
                    p[1] + (c / number(kPanelColumns) * number(9 * w_.c * kPanelColumns) +
                            c % number(kPanelColumns)));
        in.push_back(loop("tap", index(9), LoopKind::serial, [&](const Value& tap) {
          std::vector<Stmt> one;
          const Value h = declare(one, "y", row + tap / number(3)),
                      w = declare(one, "x", column + tap % number(3));
          const Value inside = number(0) <= h && h < at.height && number(0) <= w && w < at.width;
          const Stmt sums = loop("k", index(w_.c), LoopKind::serial, [&](const Value& k) {
            const Expr x = load_f32(p[0], (h * at.width + w) * number(w_.c) + k);
            const Value weight =
                vector_at(panel, (tap * number(w_.c) + k) * number(kPanelColumns), shape_.lanes);
            return Stmt(make_stmt<Assign>(
                {}, sum, call_math("fma", {make_broadcast(x, shape_.lanes), weight.expr(), sum})));
          });
          one.push_back(make_stmt<If>({}, inside.expr(), sums, Stmt()));
          return make_seq(std::move(one));
        }));
        in.push_back(put(p[2], pixel * number(shape_.columns()) + c, Value(Expr(sum))));
        return make_seq(std::move(in));
      }));
      return make_seq(std::move(outer));
    });
    return f;
  }

  // --- tasks

  /// One tile's input transform; `image` is a pointer.
  Stmt transform(const Value& image, const Value& tile, const Value& to, const Value& step) const {
    std::vector<Stmt> body;
    const int64_t e = map_.extent();
    const Value row = declare(body, "row", tile / across_ * number(map_.m) - number(w_.top)),
                column = declare(body, "column", tile % across_ * number(map_.m) - number(w_.left));
    const std::vector<Value> args = with_sizes({image, to, step, row, column}, at_);
    const Stmt inner = call(input_name(false), args);
    if (!edges()) {
      body.push_back(inner);
    } else {
      const Value inside = number(0) <= row && row <= at_.height - number(e) &&
                           number(0) <= column && column <= at_.width - number(e);
      body.push_back(make_stmt<If>({}, inside.expr(), inner, call(input_name(true), args)));
    }
    return make_seq(std::move(body));
  }

  /// All products of `count` tiles with one column block; row parts of known heights. Meanwhile the weights at `next`, of one panel
  /// after the other, come to the cache.
  Stmt products(const Value& inputs, const Value& weights, const Value& sums, int64_t count,
                const Value& block, const Value& next = Value()) {
    return loop("product", index(map_.products()), LoopKind::serial, [&](const Value& k) {
      std::vector<Stmt> body;
      const Value a = declare(body, "a", inputs + k * number(count * distance_)),
                  b = declare(body, "b", weights + k * number(product_size_)),
                  to = declare(body, "to", sums + k * number(count * shape_.columns()));
      int64_t at = 0;
      for (int64_t rows : split_evenly(count, shape_.rows)) {
        heights_.insert(rows);
        const std::vector<Value> args{a + number(at * distance_), b,
                                      to + number(at * shape_.columns())};
        if (next.expr()) body.push_back(fetched(next, k, at, at + rows, count));
        body.push_back(choose_columns(w_.n, shape_, block, [&](int64_t columns) {
          return call(tile_name(rows, columns), args);
        }));
        at += rows;
      }
      return make_seq(std::move(body));
    });
  }
  /// The share of product k, rows [from, to) of `count`, of the weights at `next`: depth_ lines for each tap of each panel.
  Stmt fetched(const Value& next, const Value& k, int64_t from, int64_t to, int64_t count) const {
    const int64_t share = (9 * depth_ + map_.products() - 1) / map_.products(),
                  begin = share * from / count, end = share * to / count;
    return loop_from("line", index(begin), index(end), 1, [&](const Value& i) {
      std::vector<Stmt> body;
      const Value line = declare(body, "at", k * number(share) + i);
      const Value at =
          declare(body, "ahead",
                  next + (line / number(depth_) * number(w_.c) + line % number(depth_)) *
                             number(kPanelColumns));
      for (int64_t p = 0; p < shape_.panels; p++)
        body.push_back(make_stmt<Evaluate>(
            {},
            make_prim("prefetch", {(at + number(p * 9 * w_.c * kPanelColumns)).expr()}, Type())));
      return make_seq(std::move(body));
    });
  }
  /// The outputs of `count` tiles from `first` on.
  Stmt outputs(const Value& sums, const Value& results, const Value& image, const Value& first,
               const Value& count, const Value& block) const {
    return loop("t", count.expr(), LoopKind::serial, [&](const Value& t) {
      std::vector<Stmt> body;
      const Value tile = declare(body, "tile", first + t);
      std::vector<Value> args = parameter_values(fused_);
      const std::vector<Value> more{sums + t * number(shape_.columns()),
                                    count * number(shape_.columns()),
                                    results,
                                    image,
                                    tile / across_ * number(map_.m),
                                    tile % across_ * number(map_.m),
                                    Value(make_cast(block.expr(), Type(u32)))};
      args.insert(args.end(), more.begin(), more.end());
      args = with_sizes(args, at_);
      body.push_back(choose_columns(w_.n, shape_, block, [&](int64_t columns) {
        return call(named("output", columns), args);
      }));
      return make_seq(std::move(body));
    });
  }
  int64_t result_size() const { return map_.m * map_.m * shape_.columns(); }

  Value image_count() const {
    return Value(make_cast(shape_of(fused_.anchor.inputs[0])[0], Type(i64)));
  }

  /// Many tiles: all weights are transformed, then each task takes a strip of tiles through all steps, which stays in the L2 cache.
  Stmt strip_tasks() {
    int64_t strips = (tiles_ + kStrip - 1) / kStrip;
    strips += strips % 2 && strips > 1;  // for two threads
    const int64_t size = tiles_ / strips, more = tiles_ % strips, most = size + (more > 0);
    return strips_of(number(strips), most, number(size), number(more), [&](const Strip& t) {
      const auto steps = [&](int64_t count) {
        return strip_steps(t, number(count), [&](const Value& panels, const Value& block) {
          return products(t.inputs, panels, t.sums, count, block);
        });
      };
      if (!more) return steps(size);
      return Stmt(make_stmt<If>({}, (t.strip < number(more)).expr(), steps(most),
                                size ? steps(size) : Stmt()));
    });
  }
  /// The same with strips counted at run time, where that is predicted to win; the direct kernel elsewhere, whose functions go to `m`.
  Stmt tasks_of_any_size(Module& m) {
    Module direct = conv_of_any_size(fused_, target_);
    const Stmt otherwise = direct.functions.back().body;
    m.functions.assign(direct.functions.begin(), direct.functions.end() - 1);
    std::vector<Stmt> body, strips;
    for (auto [value, name] : {std::pair{&at_.height, "height"},
                               {&at_.width, "width"},
                               {&at_.oh, "oh"},
                               {&at_.ow, "ow"}})
      *value = declare(body, name, *value);
    const auto tiles_along = [&](const Value& n) {
      return (n + number(map_.m - 1)) / number(map_.m);
    };
    across_ = declare(body, "across", tiles_along(at_.ow));
    const Value tiles = declare(body, "tiles", tiles_along(at_.oh) * across_);
    const Costs costs(w_.c, w_.n);
    const Value wins = number(costs.weights(map_)) + tiles * number(costs.tile(map_)) <
                       at_.oh * at_.ow * number(costs.pixel());
    const Value fewest = declare(strips, "fewest", (tiles + number(strip_ - 1)) / number(strip_));
    const Value count = declare(strips, "strips",
                                fewest + select(fewest > number(1), fewest % number(2), number(0)));
    const Value size = declare(strips, "size", tiles / count),
                more = declare(strips, "more", tiles % count);
    for (int64_t rows = 1; rows <= strip_; rows++) heights_.insert(rows);
    strips.push_back(strips_of(count, strip_, size, more, [&](const Strip& t) {
      std::vector<Stmt> in;
      const Value here = declare(in, "count", size + select(t.strip < more, number(1), number(0)));
      in.push_back(strip_steps(t, here, [&](const Value& panels, const Value& block) {
        return products_of_any_count(t.inputs, panels, t.sums, here, block);
      }));
      return make_seq(std::move(in));
    }));
    body.push_back(make_stmt<If>({}, wins.expr(), make_seq(std::move(strips)), otherwise));
    return make_seq(std::move(body));
  }
  Stmt products_of_any_count(const Value& inputs, const Value& weights, const Value& sums,
                             const Value& count, const Value& block) const {
    return loop("product", index(map_.products()), LoopKind::serial, [&](const Value& k) {
      std::vector<Stmt> body;
      const Value a = declare(body, "a", inputs + k * (count * number(distance_))),
                  b = declare(body, "b", weights + k * number(product_size_)),
                  to = declare(body, "to", sums + k * (count * number(shape_.columns())));
      body.push_back(choose_columns(w_.n, shape_, block, [&](int64_t columns) {
        return choose_rows({heights_.rbegin(), heights_.rend()}, count, [&](int64_t rows) {
          return call(tile_name(rows, columns), {a, b, to});
        });
      }));
      return make_seq(std::move(body));
    });
  }

  /// One strip of tiles: its image (number and pointer), its number, its first tile, and scratch memory.
  struct Strip {
    Value image, source, strip, first, weights, inputs, sums;
  };
  /// All weights transformed, then `one` for each strip; the first `more` of them have size + 1 tiles, `most` at most.
  Stmt strips_of(const Value& strips, int64_t most, const Value& size, const Value& more,
                 const std::function<Stmt(const Strip&)>& one) const {
    std::vector<Stmt> body;
    const Value x = declare(body, "x", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    Strip t;
    t.weights = declare(body, "weights",
                        scratch_floats(kWeights, number(blocks_ * shape_.panels * panel_size_)));
    const Value images = declare(body, "images", image_count());
    body.push_back(loop("panel", index(panels_), LoopKind::parallel, [&](const Value& p) {
      return call("weight",
                  {b + p * number(9 * w_.c * kPanelColumns), t.weights + p * number(panel_size_)});
    }));
    body.push_back(
        loop("task", (images * strips).expr(), LoopKind::parallel, [&](const Value& task) {
          std::vector<Stmt> in;
          t.image = declare(in, "image", task / strips);
          t.strip = declare(in, "strip", task % strips);
          t.first = declare(in, "first", t.strip * size + least(t.strip, more));
          t.source = declare(in, "source", x + t.image * image_size());
          t.inputs = declare(in, "inputs",
                             scratch_floats(kInputs, number(map_.products() * most * distance_)));
          t.sums = declare(in, "sums",
                           scratch_floats(kSums, number(map_.products() * most * shape_.columns() +
                                                        result_size())));
          in.push_back(one(t));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }
  Value image_size() const { return at_.height * at_.width * number(w_.c); }

  using Multiply = std::function<Stmt(const Value& panels, const Value& block)>;
  Stmt strip_steps(const Strip& t, const Value& count, const Multiply& multiply) const {
    const Value results = t.sums + count * number(map_.products() * shape_.columns());
    return make_seq({loop("t", count.expr(), LoopKind::serial,
                          [&](const Value& i) {
                            return transform(t.source, t.first + i,
                                             t.inputs + i * number(distance_),
                                             count * number(distance_));
                          }),
                     loop("block", index(blocks_), LoopKind::serial, [&](const Value& block) {
                       const Value panels = t.weights + block * number(shape_.panels * panel_size_);
                       return make_seq({multiply(panels, block),
                                        outputs(t.sums, results, t.image, t.first, count, block)});
                     })});
  }

  /// Few tiles, many channels: the inputs of some images are transformed, then each task takes a column block, whose weights it
  /// transforms in its L2 cache.
  Stmt column_tasks() {
    std::vector<Stmt> body;
    const Value x = declare(body, "x", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1])),
                images = declare(body, "images", image_count());
    const int64_t image_inputs = map_.products() * tiles_ * distance_;
    const Value inputs =
        declare(body, "inputs",
                scratch_floats(kInputs, least(images, number(kImages)) * number(image_inputs)));
    body.push_back(loop_from("first", index(0), images.expr(), kImages, [&](const Value& first) {
      std::vector<Stmt> in;
      const Value count = declare(in, "count", least(images - first, number(kImages)));
      in.push_back(
          loop("t", (count * number(tiles_)).expr(), LoopKind::parallel, [&](const Value& t) {
            const Value image = t / number(tiles_), tile = t % number(tiles_);
            return transform(x + (first + image) * (at_.height * at_.width * number(w_.c)), tile,
                             inputs + (image * number(image_inputs) + tile * number(distance_)),
                             number(tiles_ * distance_));
          }));
      in.push_back(loop("block", index(blocks_), LoopKind::parallel, [&](const Value& block) {
        return column_block(b, inputs, first, count, block);
      }));
      return make_seq(std::move(in));
    }));
    return make_seq(std::move(body));
  }
  Stmt column_block(const Value& b, const Value& inputs, const Value& first, const Value& count,
                    const Value& block) {
    std::vector<Stmt> in;
    const int64_t image_inputs = map_.products() * tiles_ * distance_,
                  image_sums = map_.products() * tiles_ * shape_.columns();
    const Value weights = declare(in, "weights",
                                  scratch_floats(kWeights, number(shape_.panels * panel_size_))),
                sums = declare(
                    in, "sums",
                    scratch_floats(kSums, count * number(image_sums) + number(result_size())));
    if (depth_ < w_.c)
      in.push_back(loop_from(
          "zero", index(0), (count * number(image_sums)).expr(), shape_.columns(),
          [&](const Value& i) { return zero_values(sums + i, shape_.columns(), shape_.lanes); }));
    const auto each_image = [&](const std::function<Stmt(const Value&)>& one) {
      return loop("image", count.expr(), LoopKind::serial, one);
    };
    in.push_back(loop_from("depth", index(0), index(w_.c), depth_, [&](const Value& depth) {
      std::vector<Stmt> part;
      const Value panel = declare(part, "panel", block * number(shape_.panels));
      part.push_back(loop("p", least(number(shape_.panels), number(panels_) - panel).expr(),
                          LoopKind::serial, [&](const Value& p) {
                            return call("weight", {b + ((panel + p) * number(9 * w_.c) + depth) *
                                                           number(kPanelColumns),
                                                   weights + p * number(panel_size_)});
                          }));
      // The next channels of this block, or the first of the next block.
      const Value more = depth + number(depth_) < number(w_.c);
      const Value next =
          declare(part, "next",
                  b + ((panel + select(more, number(0), number(shape_.panels))) * number(9 * w_.c) +
                       select(more, depth + number(depth_), number(0))) *
                          number(kPanelColumns));
      part.push_back(each_image([&](const Value& image) {
        return products(inputs + (image * number(image_inputs) + depth), weights,
                        sums + image * number(image_sums), tiles_, block, next);
      }));
      return make_seq(std::move(part));
    }));
    in.push_back(each_image([&](const Value& image) {
      return outputs(sums + image * number(image_sums), sums + count * number(image_sums),
                     first + image, number(0), number(tiles_), block);
    }));
    return make_seq(std::move(in));
  }

  const FusedTask& fused_;
  const CpuTargetInfo& target_;
  ConvWindow w_;
  TileShape shape_;
  WinogradTransform map_;
  Sizes at_;                         ///< as the launch function sees them
  Value across_;                     ///< tiles of a row
  bool fixed_ = true;                ///< sizes of the image are known
  int64_t tiles_ = 0;                ///< of an image, where known
  int64_t strip_ = 0;                ///< most tiles of a strip
  int64_t blocks_ = 0, panels_ = 0;  ///< column blocks, panels of the weight
  bool by_columns_ = false;
  int64_t depth_ = 0;     ///< input channels whose weights are transformed at once
  int64_t distance_ = 0;  ///< elements from a tile's inputs to the next tile's
  int64_t product_size_ = 0, panel_size_ = 0;  ///< elements of transformed weights
  std::set<int64_t> heights_;
};

}  // namespace

namespace {
bool window_fits(const Task& t) {
  const auto& at = t.attrs;
  for (const char* d : {"_h", "_w"})
    if (at.at(std::string("kernel") + d) != 3 || at.at(std::string("stride") + d) != 1 ||
        at.at(std::string("dilation") + d) != 1)
      return false;
  return constant_shape(t.inputs[0], 3);
}
}  // namespace

int64_t winograd_outputs(const FusedTask& fused, const CpuTargetInfo& target) {
  if (!target.fewer_products || !window_fits(fused.anchor)) return 0;
  const int64_t m = fused.chosen("winograd", 0);
  return m == 0 ? winograd_outputs(fused.anchor) : m == 1 ? 0 : m;
}

int64_t winograd_outputs(const Task& t) {
  if (!window_fits(t)) return 0;
  const VarRef &x = t.inputs[0], &y = t.outputs[0];
  const Costs costs(extent_of(x, 3), t.attrs.at("n"));
  // Sizes at run time: where large images win.
  if (!constant_shape(x, 1) || !constant_shape(y, 1))
    return costs.tile({4}) < 16 * costs.pixel() ? 4 : 0;
  const int64_t oh = extent_of(y, 1), ow = extent_of(y, 2);
  int64_t best = oh * ow * costs.pixel(), out = 0;
  for (int64_t m : {4, 2}) {
    const int64_t tiles = (oh + m - 1) / m * ((ow + m - 1) / m);
    const int64_t cycles = tiles * costs.tile({m}) + costs.weights({m});
    if (cycles < best) best = cycles, out = m;
  }
  return out;
}

Module winograd(const FusedTask& fused, const CpuTargetInfo& target, int64_t m) {
  return Winograd(fused, target, m).run();
}

}  // namespace hidet::graph
