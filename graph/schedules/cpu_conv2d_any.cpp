// cpu_conv2d_any.cpp - convolution in NHWC with a packed weight where sizes of the image are known at run time only: the tasks of
// cpu_conv2d.cpp with blocks and tiles counted at run time. Also where the stores run along pixels (NCHW). A tile is up to 14 pixels of one output row (1 x 1: flat
// pixels), an instance a height, chosen by a switch; its sums go to scratch and from there through the epilogue, which so is
// written once.
#include "schedules/winograd.h"

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

Value most(const Value& a, int64_t b) {
  return Value(make_binary(BinaryOp::max, a.expr(), index(b)));
}
Value parts_of(const Value& n, const Value& size) { return (n + size - number(1)) / size; }

class AnyConv {
 public:
  AnyConv(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), w_(fused), shape_(tile_shape(target)) {
    point_ = w_.is_point() && w_.top == 0 && w_.left == 0 && w_.bottom == 0 && w_.right == 0;
    copied_ = !point_ || w_.sh > 1 || w_.sw > 1 || w_.dtype != f32;
    if (!copied_) shape_ = shape_in_place(target, w_.c);
    if (const int64_t panels = fused.chosen("panels", 0)) shape_ = tile_shape(target, panels);
    blocks_ = (w_.n + shape_.columns() - 1) / shape_.columns();
    along_pixels_ = stores_along_pixels(fused);
    tiles_outside_ = w_.weight_bytes(shape_.columns()) <= kSmallWeight;
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    std::vector<Stmt> body;
    for (auto [value, name] :
         {std::pair{&w_.height, "height"}, {&w_.width, "width"}, {&w_.oh, "oh"}, {&w_.ow, "ow"}})
      if (!is_const_int(value->expr())) *value = declare(body, name, *value);
    if (copied_) w_.set_copied();
    step_ = point_ ? w_.pixel : w_.sw * w_.pixel;
    body.push_back(tasks());
    Function launch = fused_.launch(make_seq(std::move(body)));
    for (int64_t width : {shape_.columns(), w_.n % shape_.columns()}) {
      if (width == 0 || width > w_.n) continue;
      for (int64_t r = shape_.rows; r >= 1; r--) m.functions.push_back(tile(r, width));
      m.functions.push_back(finish(width));
    }
    m.functions.push_back(std::move(launch));
    return m;
  }

 private:
  static std::string tile_name(int64_t rows, int64_t columns) {
    return "tile_" + std::to_string(rows) + "x" + std::to_string(columns);
  }
  static std::string finish_name(int64_t columns) { return "finish_" + std::to_string(columns); }

  /// tile_RxC(pixels, panels, elements of a row of pixels, results)
  Function tile(int64_t rows, int64_t columns) const {
    Function f;
    f.name = tile_name(rows, columns);
    f.kind = FuncKind::cpu_internal;
    const Type pointer = Type::pointer(Type(f32));
    f.params = {make_var("a", pointer), make_var("b", Type::pointer(Type(w_.dtype))),
                make_var("line", Type(i64)), make_var("to", pointer)};
    ConvWindow window = w_;
    window.row = Value(Expr(f.params[2]));
    TileKernel t;
    t.shape = shape_;
    t.columns = columns;
    t.a = Value(Expr(f.params[0]));
    t.b = Value(Expr(f.params[1]));
    for (int64_t i = 0; i < rows; i++) t.row_offset.push_back(i * step_);
    window.set_taps(t);
    t.store = [&](int64_t i, const Value& c, const Value& value) -> Stmt {
      return make_stmt<Store>({}, f.params[3], (c + number(i * shape_.columns())).expr(),
                              value.expr());
    };
    f.body = tile_kernel(t);
    return f;
  }

  /// finish_C(parameters..., results, number of pixels, width, image, row and column of the first pixel, column block)
  Function finish(int64_t columns) const {
    Function f;
    f.name = finish_name(columns);
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    const VarRef from = make_var("from", Type::pointer(Type(f32))),
                 pixels = make_var("pixels", Type(i64)), width = make_var("width", Type(i64)),
                 image = make_var("image", Type(i64)), first = make_var("first", Type(i64)),
                 begin = make_var("begin", Type(i64)), block = make_var("block", Type(u32));
    for (const VarRef& p : {from, pixels, width, image, first, begin, block}) f.params.push_back(p);
    const Value column(begin), size(pixels), line(width);
    const Value at = Value(make_cast(block, Type(i64))) * number(shape_.columns());
    // Flat pixels may go on in the next rows: a row of the image at a time.
    f.body = loop("y", parts_of(column + size, line).expr(), LoopKind::serial, [&](const Value& y) {
      std::vector<Stmt> body;
      const Value row = declare(body, "row", Value(first) + y),
                  skipped = declare(body, "skipped", y * line - column),
                  from_pixel = declare(body, "from_pixel", most(skipped, 0)),
                  to_pixel = declare(body, "to_pixel", least(size, skipped + line));
      const auto store = [&](const Value& i, const Value& c, const Value& value) {
        return fused_.store({Value(image), row, i - skipped, at + c}, value);
      };
      body.push_back(along_pixels_
                         ? channel_by_channel(Value(from), columns, from_pixel, to_pixel, store)
                         : pixel_by_pixel(Value(from), columns, from_pixel, to_pixel, store));
      return make_seq(std::move(body));
    });
    return f;
  }

  using PixelStore = std::function<Stmt(const Value& i, const Value& c, const Value& value)>;
  Stmt pixel_by_pixel(const Value& from, int64_t columns, const Value& begin, const Value& end,
                      const PixelStore& store) const {
    return loop_from("i", begin.expr(), end.expr(), 1, [&](const Value& i) {
      std::vector<Stmt> body;
      const Value results = declare(body, "results", from + i * number(shape_.columns()));
      for (Stmt& s :
           store_raw_row(results, columns, shape_.lanes,
                         [&](const Value& c, const Value& value) { return store(i, c, value); }))
        body.push_back(std::move(s));
      return make_seq(std::move(body));
    });
  }
  /// For outputs in NCHW: what is stored together lies together.
  Stmt channel_by_channel(const Value& from, int64_t columns, const Value& begin, const Value& end,
                          const PixelStore& store) const {
    return loop("c", index(columns), LoopKind::serial, [&](const Value& c) {
      return loop_from("i", begin.expr(), end.expr(), 1, [&](const Value& i) {
        std::vector<Stmt> body;
        const Value value =
            declare(body, "value",
                    Value(make_load(from.expr(), (i * number(shape_.columns()) + c).expr(), 1)));
        body.push_back(store(i, c, value));
        return make_seq(std::move(body));
      });
    });
  }

  Stmt tasks() const {
    std::vector<Stmt> body;
    // Flat pixels for 1 x 1, else output rows; an image without columns has no rows.
    const Value total = declare(
        body, "total", point_ ? w_.oh * w_.ow : select(w_.ow > number(0), w_.oh, number(0)));
    const int64_t pixels =
        fused_.chosen("pixels", tiles_outside_ || blocks_ < kTasks / 2 ? kPixels : kPixelsLarge);
    const Value size =
        declare(body, "size",
                point_ ? most(parts_of(total, most(parts_of(total, number(pixels)), 1)), 1)
                       : least(most(total, 1), most(number(pixels) / most(w_.ow, 1), 1)));
    const Value image_blocks = declare(body, "image_blocks", parts_of(total, size));
    const int64_t tasks = fused_.chosen("tasks", copied_ ? kTasks / 2 : kTasks);
    const Value wanted = declare(body, "wanted", parts_of(number(tasks), most(image_blocks, 1)));
    const Value group = declare(body, "group_size", most(number(blocks_) / wanted, 1));
    const Value groups = declare(body, "groups", parts_of(number(blocks_), group));
    const Value images(make_cast(shape_of(fused_.anchor.inputs[0])[0], Type(i64)));
    const Value x = declare(body, "x", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    body.push_back(loop(
        "task", (images * image_blocks * groups).expr(), LoopKind::parallel,
        [&](const Value& task) {
          std::vector<Stmt> in;
          const Value rest = declare(in, "rest", task / groups),
                      image = declare(in, "image", rest / image_blocks),
                      first = declare(in, "first", rest % image_blocks * size),
                      count = declare(in, "count", least(size, total - first)),
                      begin = declare(in, "begin", task % groups * group),
                      end = declare(in, "end", least(begin + group, number(blocks_)));
          const Value source =
              declare(in, "source", x + image * (w_.height * w_.width * number(w_.c)));
          const Value a = !copied_ ? declare(in, "pixels", source + first * number(w_.c))
                          : point_ ? w_.gather(in, source, first, count, size, shape_.lanes)
                                   : w_.strip(in, source, first, count, size, shape_.lanes);
          const Value results =
              declare(in, "results", scratch_floats(1, number(shape_.rows * shape_.columns())));
          const Task t{a, b, results, image, first};
          const auto columns = [&](const std::function<Stmt(const Value&)>& one) {
            return loop_from("columns", begin.expr(), end.expr(), 1, one);
          };
          if (tiles_outside_)
            in.push_back(tiles(count, [&](const Value& r, const Value& i, const Value& j) {
              return columns([&](const Value& c) { return run_tile(t, r, i, j, c); });
            }));
          else
            in.push_back(columns([&](const Value& c) {
              return tiles(count, [&](const Value& r, const Value& i, const Value& j) {
                return run_tile(t, r, i, j, c);
              });
            }));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  struct Task {
    Value a, b, results, image, first;
  };
  /// one(pixels, row in the block or flat pixel, column)
  using TileBody = std::function<Stmt(const Value&, const Value&, const Value&)>;

  Stmt tiles(const Value& count, const TileBody& one) const {
    if (point_)
      return even_parts(count,
                        [&](const Value& r, const Value& at) { return one(r, at, number(0)); });
    return loop("row", count.expr(), LoopKind::serial, [&](const Value& row) {
      return even_parts(w_.ow, [&](const Value& r, const Value& at) { return one(r, row, at); });
    });
  }

  /// one(size, start) for ceil(count / rows of a tile) parts that differ by at most one.
  Stmt even_parts(const Value& count,
                  const std::function<Stmt(const Value&, const Value&)>& one) const {
    std::vector<Stmt> body;
    const Value parts = declare(body, "parts", parts_of(count, number(shape_.rows))),
                height = declare(body, "height", count / parts),
                more = declare(body, "more", count % parts);
    body.push_back(loop("part", parts.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> in;
      const Value at = declare(in, "at", i * height + least(i, more));
      const Value r = declare(in, "r", height + select(i < more, number(1), number(0)));
      in.push_back(one(r, at));
      return make_seq(std::move(in));
    }));
    return make_seq(std::move(body));
  }

  Stmt run_tile(const Task& t, const Value& r, const Value& i, const Value& j,
                const Value& c) const {
    const Value offset =
        point_ ? i * number(w_.pixel) : i * (number(w_.sh) * w_.row) + j * number(step_);
    std::vector<Stmt> body;
    const Value a = declare(body, "a", t.a + offset),
                b = declare(body, "panels",
                            t.b + c * number(shape_.columns() * w_.r * w_.s * w_.c));
    const Value flat = t.first + i;
    std::vector<Value> last = parameter_values(fused_);
    for (const Value& v : {t.results, r, w_.ow, t.image, point_ ? flat / w_.ow : flat,
                           point_ ? flat % w_.ow : j, Value(make_cast(c.expr(), Type(u32)))})
      last.push_back(v);
    std::vector<int64_t> heights;
    for (int64_t rows = shape_.rows; rows >= 1; rows--) heights.push_back(rows);
    const auto run = [&](int64_t columns) {
      const Stmt choice = choose_rows(heights, r, [&](int64_t rows) {
        return call(tile_name(rows, columns), {a, b, w_.row, t.results});
      });
      return make_seq({choice, call(finish_name(columns), last)});
    };
    body.push_back(choose_columns(w_.n, shape_, c, run));
    return make_seq(std::move(body));
  }

  const FusedTask& fused_;
  ConvWindow w_;
  TileShape shape_;
  bool point_ = false, copied_ = false, tiles_outside_ = false, along_pixels_ = false;
  int64_t blocks_ = 0;  ///< column blocks
  int64_t step_ = 0;    ///< elements from an output pixel to the next
};

bool accepts(const Task& t) {
  if (t.name != "conv2d_nhwc") return false;
  const VarRef &x = t.inputs[0], &y = t.outputs[0];
  if (!is_f32_or_half(dtype_of(x)) || (constant_shape(x, 1) && constant_shape(y, 1))) return false;
  if (!constant_shape(x, 3) || extent_of(x, 3) < 1 || t.attrs.at("n") < 1) return false;
  return t.attrs.at("kernel_h") * t.attrs.at("kernel_w") > 0;
}

}  // namespace

bool stores_along_pixels(const FusedTask& fused) {
  std::vector<Value> at;
  for (const char* name : {"image", "row", "column", "channel"})
    at.emplace_back(Expr(make_var(name, Type(i64))));
  const std::vector<Value> to = fused.finish(at, Value(make_const(0, f32))).indices;
  const auto stride = [&](size_t d) { return stride_in(to.back().expr(), *as<Var>(at[d].expr())); };
  return stride(3) == 0 && stride(2) == 1;
}

Module conv_of_any_size(const FusedTask& fused, const CpuTargetInfo& target) {
  return AnyConv(fused, target).run();
}

CpuSchedule cpu_conv2d_any_schedule() {
  return {"packed convolution, sizes at run time",
          accepts,
          false,
          true,
          false,
          [](const FusedTask& f, const CpuTargetInfo& t) {
            const int64_t m = winograd_outputs(f, t);
            return m ? winograd(f, t, m) : conv_of_any_size(f, t);
          },
          {{"winograd", {1, 2, 4}},
           {"panels", {2, 3, 4}},
           {"pixels", {56, 112, 196, 392}},
           {"tasks", {4, 8, 32}}}};
}

}  // namespace hidet::graph
