// cpu_conv2d.cpp - convolution in NHWC with a packed weight (docs/cpu_kernels.md, 5), for images of known size: an implicit
// product whose rows are output pixels. A task is an image, a block of pixels and a group of column blocks. Unless the
// image can be read in place (1 x 1, stride 1, f32), the rows that the block needs are copied to scratch with zeros around, so that
// the micro kernel has no borders and constant distances.
#include "schedules/winograd.h"

#include <hidet/runtime/error.h>

#include <algorithm>

#include "schedules/inverted_block.h"
#include "schedules/split_product.h"

namespace hidet::graph {
using namespace ir;

namespace {

/// Tasks that an image should have, at least, where pixels are copied (each task copies its own).
constexpr int64_t kTasksCopied = 8;

/// Products of pixels on tile registers: least pixels, input and output channels; least results of an image, since splitting the pixels and the
/// first panels takes its time; most pixels of a block.
constexpr int64_t kLeastTilePixels = 40, kLeastTileInputs = 96, kLeastTileOutputs = 128,
                  kLeastTileResults = 12000, kMostTilePixels = 14 * kTileRows;
/// Scratch memory by number; copies of pixels have the first.
enum Slot { kPixelSlot, kPartSlot, kWorkSlot };

/// Bytes that the L2 cache of a core holds beside panels.
constexpr int64_t kNear = 1 << 20;

/// Some consecutive output pixels: rows x columns from (row, column) of the block, or flat ones.
struct PixelTile {
  int64_t rows, columns;
  int64_t count() const { return rows * columns; }
  std::string name() const { return std::to_string(rows) + "x" + std::to_string(columns); }
};

class Conv {
 public:
  Conv(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), window_(fused), shape_(tile_shape(target)) {
    const VarRef &x = fused.anchor.inputs[0], &y = fused.anchor.outputs[0];
    const ConvWindow& w = window_;
    height_ = extent_of(x, 1), width_ = extent_of(x, 2), oh_ = extent_of(y, 1),
    ow_ = extent_of(y, 2);
    c_ = w.c, n_ = w.n, sh_ = w.sh, sw_ = w.sw;
    // The end pads matter only through the output's size.
    point_ = w.is_point() && w.top == 0 && w.left == 0 && (oh_ - 1) * sh_ < height_ &&
             (ow_ - 1) * sw_ < width_;
    copied_ = !point_ || sh_ > 1 || sw_ > 1 || w.dtype != f32;
    if (copied_) window_.set_copied();
    else shape_ = shape_in_place(target, c_, n_);
    if (const int64_t panels = fused.chosen("panels", 0)) shape_ = tile_shape(target, panels);
    if (has_parts(target)) {
      shape_ = tile_shape(target);
      parts_.emplace(depth());
    }
    pixel_ = window_.pixel;
    if (!point_) row_ = row_elements();
    blocks_ = (n_ + shape_.columns() - 1) / shape_.columns();
    tiles_outside_ = w.weight_bytes(shape_.columns()) <= kSmallWeight;
    if (parts_) plan(kMostTilePixels);
    else
      plan(fused.chosen("pixels",
                        tiles_outside_ || blocks_ < kTasksCopied ? kPixels : kPixelsLarge));
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    Function launch = fused_.launch(tasks());  // first: it tells which tiles are used
    for (const PixelTile& t : used_)
      for (int64_t columns : block_widths(n_, shape_)) m.functions.push_back(tile(t, columns));
    if (parts_) {
      for (Function& f : parts_->functions()) m.functions.push_back(std::move(f));
      for (int64_t columns : block_widths(n_, shape_)) m.functions.push_back(finish(columns));
    }
    m.functions.push_back(std::move(launch));
    return m;
  }

 private:
  /// Numbers of K: all taps.
  int64_t depth() const { return window_.r * window_.s * c_; }
  bool has_parts(const CpuTargetInfo& target) const {
    return SplitProduct::can(target) && window_.dtype == f32 && oh_ * ow_ >= kLeastTilePixels &&
           c_ >= kLeastTileInputs && n_ >= kLeastTileOutputs &&
           oh_ * ow_ * n_ >= kLeastTileResults && !fused_.chosen("panels", 0) &&
           fused_.chosen("tiles", 1);
  }

  /// Blocks and groups: flat pixels for 1 x 1, else whole output rows.
  void plan(int64_t pixels) {
    if (point_) {
      const int64_t all = oh_ * ow_;
      int64_t parts = (all + pixels - 1) / pixels;
      // Even numbers, for two threads.
      if (parts > 1) parts += parts % 2;
      else if (blocks_ % 2 && blocks_ < kTasks && all >= 2 * shape_.rows) parts = 2;
      block_ = (all + parts - 1) / parts;
      image_blocks_ = (all + block_ - 1) / block_;
    } else {
      tile_rows_ = ow_ <= shape_.rows ? std::min(oh_, shape_.rows / ow_) : 1;
      if (parts_) tile_rows_ = 1;
      // Of the rows that a block copies, a third at most are copied for the next one, too.
      const int64_t reach = (window_.r - 1) * window_.dh + 1;
      block_ = std::max(pixels / ow_, 2 * (reach - sh_) / sh_);
      block_ = std::clamp(block_ / tile_rows_ * tile_rows_, tile_rows_, oh_);
      block_ = parts_ ? split_evenly(oh_, block_).front() : even_blocks(block_);
      image_blocks_ = (oh_ + block_ - 1) / block_;
    }
    group_ = blocks_;
    const int64_t wanted = fused_.chosen("tasks", copied_ ? kTasksCopied : kTasks);
    while (group_ > 1 && image_blocks_ * ((blocks_ + group_ - 1) / group_) < wanted)
      group_ = (group_ + 1) / 2;
    few_groups_ = parts_ || (copied_ && !tiles_outside_);
    columns_outside_ = window_.weight_bytes(shape_.columns()) > 4 * image_bytes();
  }

  /// About `rows` rows a block, in an even number of equal blocks for two threads where there is one.
  int64_t even_blocks(int64_t rows) const {
    const auto fits = [&](int64_t b) { return b % tile_rows_ == 0 && oh_ % (2 * b) == 0; };
    for (int64_t b = rows; b <= 2 * rows; b++)
      if (fits(b)) return b;
    for (int64_t b = rows; b >= (rows + 1) / 2; b--)
      if (fits(b)) return b;
    return rows;
  }

  int64_t row_elements() const {
    int64_t n = 0;
    HIDET_CHECK(is_const_int(window_.row.expr(), &n), "row of '", fused_.name, "' is not constant");
    return n;
  }

  std::string name(const PixelTile& t, int64_t columns) const {
    return "tile_" + t.name() + "x" + std::to_string(columns);
  }

  /// Weights that come from memory: tiles fetch the next column block's panels while they compute.
  bool fetches() const { return point_ && !tiles_outside_; }
  /// Images that the L2 cache does not hold beside the result: tiles fetch the next tile's pixels, each column block a share.
  bool fetches_pixels() const {
    return tiles_outside_ && !copied_ && image_bytes() + oh_ * ow_ * n_ * 4 > kNear;
  }
  int64_t image_bytes() const { return height_ * width_ * c_ * 4; }
  /// Values of it that are fetched every k.
  int64_t pixel_step() const { return (shape_.rows + group_ - 1) / group_; }
  /// Tiles of a whole block; values of a panel that one of them fetches every k.
  int64_t block_tiles() const { return (block_ + shape_.rows - 1) / shape_.rows; }
  int64_t fetch_step() const { return (kPanelColumns + block_tiles() - 1) / block_tiles(); }

  /// tile_...(parameters..., pixels, panels, image, first output row and column or flat pixel and 0, first channel, what to fetch)
  Function tile(const PixelTile& p, int64_t columns) const {
    Function f;
    f.name = name(p, columns);
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    const Type panels = Type::pointer(Type(window_.dtype));
    std::vector<VarRef> more{make_var("a", Type::pointer(Type(f32))), make_var("b", panels)};
    for (const char* n : {"image", "row", "column", "channel"})
      more.push_back(make_var(n, Type(i64)));
    if (fetches() || fetches_pixels()) more.push_back(make_var("ahead", panels));
    f.params.insert(f.params.end(), more.begin(), more.end());
    const Value image{Expr(more[2])}, row{Expr(more[3])}, column{Expr(more[4])},
        channel{Expr(more[5])};
    TileKernel t;
    t.shape = shape_;
    t.columns = columns;
    std::vector<std::vector<Value>> at;
    std::vector<Stmt> body;
    for (int64_t i = 0; i < p.count(); i++) {
      if (point_) {
        t.row_offset.push_back(i * pixel_);
        const Value flat = declare(body, "pixel", row + number(i));
        at.push_back({image, flat / number(ow_), flat % number(ow_)});
      } else {
        t.row_offset.push_back(i / p.columns * sh_ * row_ + i % p.columns * sw_ * pixel_);
        at.push_back({image, row + number(i / p.columns), column + number(i % p.columns)});
      }
    }
    t.a = Value(Expr(more[0]));
    t.b = Value(Expr(more[1]));
    window_.set_taps(t);
    if (fetches()) {
      t.ahead = Value(Expr(more[6]));
      t.ahead_step = number(fetch_step());
      t.ahead_panels = (columns + kPanelColumns - 1) / kPanelColumns;
    }
    if (fetches_pixels()) {
      t.ahead = Value(Expr(more[6]));
      t.ahead_step = number(pixel_step());
      t.ahead_panels = 1;
    }
    for (const std::vector<Value>& pixel : at)
      for (int64_t c = 0; c < columns; c += kPanelColumns) {
        std::vector<Value> indices = pixel;
        indices.push_back(channel + number(c));
        for (Stmt& s : prefetch_residuals(fused_, indices)) body.push_back(std::move(s));
      }
    t.store = [&](int64_t i, const Value& c, const Value& value) {
      std::vector<Value> indices = at[static_cast<size_t>(i)];
      indices.push_back(channel + c);
      return fused_.store(indices, value);
    };
    body.push_back(tile_kernel(t));
    f.body = make_seq(std::move(body));
    return f;
  }

  /// Groups of column blocks, each a task's. Where weights are large and pixels are copied there are no more than the threads need: each
  /// task makes a copy of its own.
  Value groups(std::vector<Stmt>& body, const Value& images) const {
    if (!few_groups_) return number((blocks_ + group_ - 1) / group_);
    const Value threads =
        declare(body, "threads", Value(make_prim("parallel_threads", {}, Type(i64))));
    return declare(body, "groups",
                   select(images * number(image_blocks_) % threads == number(0), number(1),
                          least(threads, number(blocks_))));
  }
  /// The first column block of group g.
  Value first_column(const Value& g, const Value& groups) const {
    return few_groups_ ? g * number(blocks_) / groups : g * number(group_);
  }

  Stmt tasks() {
    std::vector<Stmt> body;
    const Value images(shape_of(fused_.anchor.inputs[0])[0]);
    const Value all_groups = groups(body, images);
    const Value x = declare(body, "x", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    body.push_back(loop(
        "task", (images * (number(image_blocks_) * all_groups)).expr(), LoopKind::parallel,
        [&](const Value& task) {
          std::vector<Stmt> in;
          const Value inner = columns_outside_ ? number(image_blocks_) : all_groups,
                      outer = columns_outside_ ? all_groups : number(image_blocks_);
          const Value fast = declare(in, "inner", task % inner),
                      rest = declare(in, "rest", task / inner);
          const Value slow = declare(in, "outer", rest % outer),
                      image = declare(in, "image", rest / outer);
          const Value &group = columns_outside_ ? slow : fast,
                      &block = columns_outside_ ? fast : slow;
          const Value first = declare(in, "first", block * number(block_));
          const int64_t total = point_ ? oh_ * ow_ : oh_;
          const Value count = declare(
              in, "count",
              total % block_ ? least(number(block_), number(total) - first) : number(block_));
          const Value source = declare(in, "source", x + image * number(height_ * width_ * c_));
          if (parts_) {
            in.push_back(parts_->run(
                split_task(b, source, image, first, count,
                           declare(in, "begin", first_column(group, all_groups)),
                           declare(in, "end", first_column(group + number(1), all_groups)))));
            return make_seq(std::move(in));
          }
          const Value pixels = pixels_of_block(in, source, first, count);
          const Value begin = few_groups_ ? declare(in, "begin", first_column(group, all_groups))
                                          : group * number(group_),
                      end = declare(in, "end",
                                    few_groups_ ? first_column(group + number(1), all_groups)
                                                : least(begin + number(group_), number(blocks_)));
          in.push_back(column_blocks(pixels, b, image, first, count, begin, end));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  Stmt column_blocks(const Value& pixels, const Value& b, const Value& image, const Value& first,
                     const Value& count, const Value& begin, const Value& end) {
    const auto columns = [&](const std::function<Stmt(const Value& column_block)>& one) {
      return loop_from("columns", begin.expr(), end.expr(), 1, one);
    };
    if (tiles_outside_)
      return all_tiles(count, [&](const PixelTile& t, const Value& i, const Value& j) {
        return columns(
            [&](const Value& c) { return run_tile(t, pixels, b, image, first, i, j, c); });
      });
    return columns([&](const Value& c) {
      return all_tiles(count, [&](const PixelTile& t, const Value& i, const Value& j) {
        return run_tile(t, pixels, b, image, first, i, j, c);
      });
    });
  }

  /// Pixels (of a window: rows of them) from `first` on of an image on tile registers.
  SplitTask split_task(const Value& b, const Value& source, const Value& image, const Value& first,
                       const Value& count, const Value& begin, const Value& end) {
    const Value row_pixels = number(point_ ? 1 : ow_);
    const Value first_pixel = first * row_pixels, pixels = count * row_pixels;
    SplitTask t;
    t.rows = pixels, t.begin = begin, t.end = end;
    t.rows_slot = kPartSlot, t.work_slot = kWorkSlot;
    t.row = [=, this](std::vector<Stmt>& body, const Value& i) {
      return numbers_of_pixel(body, source, first_pixel + i);
    };
    t.panels = [=, this](const Value& block) { return panels_of_block(b, block, n_, depth()); };
    t.finish = [=, this](const Value& block, const Value& results) {
      std::vector<Value> args = parameter_values(fused_);
      args.insert(args.end(),
                  {results, pixels, image, first_pixel, block * number(shape_.columns())});
      return choose_columns(n_, shape_, block,
                            [&](int64_t columns) { return call(finish_name(columns), args); });
    };
    t.plain = [=, this](const Value& from, const Value& to) {
      std::vector<Stmt> in;
      const Value copy = pixels_of_block(in, source, first, count);
      in.push_back(column_blocks(copy, b, image, first, count, from, to));
      return make_seq(std::move(in));
    };
    return t;
  }

  /// What output pixel `flat` reads, one number of K after the other: where it is, or a copy of all taps with zeros around the image.
  Value numbers_of_pixel(std::vector<Stmt>& body, const Value& source, const Value& flat) const {
    if (!copied_) return source + flat * number(c_);
    const Value y = declare(body, "y", flat / number(ow_)),
                x = declare(body, "x", flat % number(ow_));
    if (point_) return source + (y * number(sh_ * width_) + x * number(sw_)) * number(c_);
    const Value row = declare(body, "row", scratch_floats(kPixelSlot, number(depth())));
    body.push_back(loop("r", index(window_.r), LoopKind::serial, [&](const Value& r) {
      std::vector<Stmt> lines;
      const Value h =
          declare(lines, "h", y * number(sh_) - number(window_.top) + r * number(window_.dh));
      lines.push_back(loop("s", index(window_.s), LoopKind::serial, [&](const Value& s) {
        std::vector<Stmt> one;
        const Value w =
            declare(one, "w", x * number(sw_) - number(window_.left) + s * number(window_.dw));
        const Value to = declare(one, "to", row + (r * number(window_.s) + s) * number(c_));
        const Value inside =
            number(0) <= h && h < number(height_) && number(0) <= w && w < number(width_);
        const Value from = source + (h * number(width_) + w) * number(c_);
        one.push_back(make_stmt<If>({}, inside.expr(), copy_values(to, from, c_, shape_.lanes),
                                    zero_values(to, c_, shape_.lanes)));
        return make_seq(std::move(one));
      }));
      return make_seq(std::move(lines));
    }));
    return row;
  }

  /// The pixels that a block of outputs reads, in place or copied.
  Value pixels_of_block(std::vector<Stmt>& in, const Value& source, const Value& first,
                        const Value& count) const {
    if (!copied_) return declare(in, "pixels", source + first * number(c_));
    return point_ ? window_.gather(in, source, first, count, number(block_), shape_.lanes)
                  : window_.strip(in, source, first, count, number(block_), shape_.lanes);
  }

  static std::string finish_name(int64_t columns) { return "finish_" + std::to_string(columns); }

  /// finish_C(parameters..., results, pixels, image, first pixel, first channel)
  Function finish(int64_t columns) const {
    Function f;
    f.name = finish_name(columns);
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    const VarRef from = make_var("from", Type::pointer(Type(f32))),
                 pixels = make_var("pixels", Type(i64)), image = make_var("image", Type(i64)),
                 first = make_var("first", Type(i64)), channel = make_var("channel", Type(i64));
    for (const VarRef& p : {from, pixels, image, first, channel}) f.params.push_back(p);
    f.body = loop("i", pixels, LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> body;
      const Value flat = declare(body, "pixel", Value(Expr(first)) + i);
      const std::vector<Value> at = {Value(Expr(image)), flat / number(ow_), flat % number(ow_)};
      const Value results =
          declare(body, "results", Value(Expr(from)) + i * number(shape_.columns()));
      for (Stmt& s :
           store_raw_row(results, columns, shape_.lanes, [&](const Value& c, const Value& value) {
             std::vector<Value> indices = at;
             indices.push_back(Value(Expr(channel)) + c);
             return fused_.store(indices, value);
           }))
        body.push_back(std::move(s));
      return make_seq(std::move(body));
    });
    return f;
  }

  // --- tiles

  /// body(tile, row or flat pixel in the block, column) for all tiles of a block.
  using TileBody = std::function<Stmt(const PixelTile&, const Value&, const Value&)>;
  Stmt all_tiles(const Value& count, const TileBody& body) {
    if (point_) {
      const int64_t last = (oh_ * ow_ - 1) % block_ + 1;
      if (last == block_) return flat_tiles(block_, body);
      return make_stmt<If>({}, (count == number(block_)).expr(), flat_tiles(block_, body),
                           flat_tiles(last, body));
    }
    const int64_t rest = ((oh_ - 1) % block_ + 1) % tile_rows_;
    std::vector<Stmt> out{
        loop_from("row", index(0), (count / number(tile_rows_) * number(tile_rows_)).expr(),
                  tile_rows_, [&](const Value& row) { return row_tiles(tile_rows_, row, body); })};
    if (rest) {
      const Stmt tail = row_tiles(rest, count - number(rest), body);
      out.push_back(
          make_stmt<If>({}, (count % number(tile_rows_) != number(0)).expr(), tail, Stmt()));
    }
    return make_seq(std::move(out));
  }

  Stmt flat_tiles(int64_t pixels, const TileBody& body) {
    return even_runs(split_evenly(pixels, shape_.rows),
                     [&](const Value& at, int64_t n) { return body(used({1, n}), at, number(0)); });
  }
  Stmt row_tiles(int64_t rows, const Value& row, const TileBody& body) {
    return even_runs(split_evenly(ow_, shape_.rows),
                     [&](const Value& at, int64_t n) { return body(used({rows, n}), row, at); });
  }
  PixelTile used(const PixelTile& t) {
    const auto equal = [&](const PixelTile& u) {
      return u.rows == t.rows && u.columns == t.columns;
    };
    if (std::none_of(used_.begin(), used_.end(), equal)) used_.push_back(t);
    return t;
  }

  Stmt run_tile(const PixelTile& t, const Value& pixels, const Value& b, const Value& image,
                const Value& first, const Value& i, const Value& j, const Value& c) const {
    const Value offset =
        point_ ? i * number(pixel_) : i * number(sh_ * row_) + j * number(sw_ * pixel_);
    std::vector<Value> args = parameter_values(fused_);
    const int64_t panels = shape_.columns() * window_.r * window_.s * c_;
    for (const Value& v : {pixels + offset, b + c * number(panels), image, first + i, j,
                           c * number(shape_.columns())})
      args.push_back(v);
    if (fetches_pixels())
      args.push_back(pixels + ((i + number(t.count())) * number(pixel_) +
                               c % number(group_) * number(pixel_step() * c_)));
    if (fetches()) {
      const Value next = b + least(c + number(1), number(blocks_ - 1)) * number(panels);
      args.push_back(next + i * number(block_tiles()) / number(block_) * number(fetch_step() * c_));
    }
    const int64_t full = n_ / shape_.columns(), rest = n_ % shape_.columns();
    if (!rest) return call(name(t, shape_.columns()), args);
    if (!full) return call(name(t, rest), args);
    return make_stmt<If>({}, (c < number(full)).expr(), call(name(t, shape_.columns()), args),
                         call(name(t, rest), args));
  }

  const FusedTask& fused_;
  ConvWindow window_;
  TileShape shape_;
  int64_t height_, width_, c_, oh_, ow_, n_, sh_, sw_;
  bool point_, copied_, tiles_outside_;
  bool few_groups_ = false;       ///< no more groups of column blocks than the threads need
  bool columns_outside_ = false;  ///< tasks go through the pixels of a group of column blocks first
  int64_t pixel_ = 0, row_ = 0;   ///< elements from a pixel to the next, from a row to the next
  int64_t blocks_ = 0, group_ = 0;  ///< column blocks, and of one task
  int64_t block_ = 0, image_blocks_ = 0, tile_rows_ = 1;
  std::vector<PixelTile> used_;
  std::optional<SplitProduct> parts_;
};

bool accepts(const Task& t) {
  if (t.name != "conv2d_nhwc") return false;
  const VarRef &x = t.inputs[0], &y = t.outputs[0];
  if (!is_f32_or_half(dtype_of(x)) || !constant_shape(x, 1) || !constant_shape(y, 1)) return false;
  for (size_t d = 1; d < 4; d++)
    if (extent_of(x, d) < 1 || extent_of(y, d) < 1) return false;
  return t.attrs.at("kernel_h") * t.attrs.at("kernel_w") > 0;
}

}  // namespace

CpuSchedule cpu_conv2d_schedule() {
  const auto make = [](const FusedTask& f, const CpuTargetInfo& t) {
    if (f.before) return inverted_block(f, t);
    const int64_t m = winograd_outputs(f, t);
    if (m) return winograd(f, t, m);
    return stores_along_pixels(f) ? conv_of_any_size(f, t) : Conv(f, t).run();
  };
  return {{"packed convolution", accepts, false, true, false},
          make,
          {{"winograd", {1, 2, 4}},
           {"panels", {1, 2, 3, 4}},
           {"pixels", {56, 112, 196, 392}},
           {"tasks", {4, 8, 32}}},
          takes_depthwise};
}

}  // namespace hidet::graph
