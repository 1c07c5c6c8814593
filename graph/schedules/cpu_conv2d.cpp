// cpu_conv2d.cpp - convolution in NHWC with a packed weight (docs/cpu_kernels.md, 5): an implicit product whose rows are
// output pixels. A task is an image, a block of pixels and a group of column blocks. Unless the image can be read in
// place (1 x 1, stride 1), the rows that the block needs are copied to scratch with zeros around, so that the
// micro kernel has no borders and constant distances.
#include "schedules/tile.h"

#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Weights up to this size stay in the L2 cache while pixels pass.
constexpr int64_t kSmallWeight = 400 * 1024;
/// Pixels of a block with small and with large weights; fewest tasks of an image, and where each task copies its pixels.
constexpr int64_t kPixels = 112, kPixelsLarge = 196, kTasks = 16, kTasksCopied = 8;

/// Some consecutive output pixels: rows x columns from (row, column) of the block, or flat ones.
struct PixelTile {
  int64_t rows, columns;
  int64_t count() const { return rows * columns; }
  std::string name() const { return std::to_string(rows) + "x" + std::to_string(columns); }
};

class Conv {
 public:
  Conv(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), shape_(tile_shape(target)) {
    const VarRef &x = fused.anchor.inputs[0], &y = fused.anchor.outputs[0];
    const auto& at = fused.anchor.attrs;
    height_ = extent_of(x, 1), width_ = extent_of(x, 2), c_ = extent_of(x, 3);
    oh_ = extent_of(y, 1), ow_ = extent_of(y, 2), n_ = at.at("n");
    r_ = at.at("kernel_h"), s_ = at.at("kernel_w"), sh_ = at.at("stride_h"),
    sw_ = at.at("stride_w");
    dh_ = at.at("dilation_h"), dw_ = at.at("dilation_w"), top_ = at.at("pad_t"),
    left_ = at.at("pad_l");
    // The end pads matter only through the output's size.
    point_ = r_ == 1 && s_ == 1 && top_ == 0 && left_ == 0 && (oh_ - 1) * sh_ < height_ &&
             (ow_ - 1) * sw_ < width_;
    copied_ = !point_ || sh_ > 1 || sw_ > 1 || c_ * 4 % 4096 == 0;
    const int64_t step = point_ ? 1 : sw_;
    pixel_ = copied_ && c_ * step >= 128 ? c_ + 16 : c_;
    blocks_ = (n_ + shape_.columns() - 1) / shape_.columns();
    const int64_t weight = r_ * s_ * c_ * blocks_ * shape_.columns() * 4;
    tiles_outside_ = weight <= kSmallWeight;
    plan(tiles_outside_ ? kPixels : kPixelsLarge);
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    Function launch = fused_.launch(tasks());  // first: it tells which tiles are used
    for (const PixelTile& t : used_) {
      if (n_ >= shape_.columns()) m.functions.push_back(tile(t, shape_.columns()));
      if (n_ % shape_.columns()) m.functions.push_back(tile(t, n_ % shape_.columns()));
    }
    m.functions.push_back(std::move(launch));
    return m;
  }

 private:
  /// Blocks and groups: flat pixels for 1 x 1, else whole output rows.
  void plan(int64_t pixels) {
    if (point_) {
      const std::vector<int64_t> parts = split_evenly(oh_ * ow_, pixels);
      block_ = parts[0];
      image_blocks_ = (oh_ * ow_ + block_ - 1) / block_;
    } else {
      tile_rows_ = ow_ <= shape_.rows ? std::min(oh_, shape_.rows / ow_) : 1;
      block_ = std::max<int64_t>(1, pixels / ow_);
      block_ = std::min(oh_, std::max(tile_rows_, block_ / tile_rows_ * tile_rows_));
      image_blocks_ = (oh_ + block_ - 1) / block_;
      row_ = ((ow_ - 1) * sw_ + (s_ - 1) * dw_ + 1) * pixel_;
    }
    group_ = blocks_;
    const int64_t wanted = copied_ ? kTasksCopied : kTasks;
    while (group_ > 1 && image_blocks_ * ((blocks_ + group_ - 1) / group_) < wanted)
      group_ = (group_ + 1) / 2;
  }

  std::string name(const PixelTile& t, int64_t columns) const {
    return "tile_" + t.name() + "x" + std::to_string(columns);
  }

  /// tile_...(parameters..., pixels, panels, image, first output row and column or flat pixel and 0, first channel)
  Function tile(const PixelTile& p, int64_t columns) const {
    Function f;
    f.name = name(p, columns);
    f.kind = FuncKind::cpu_internal;
    f.params = fused_.parameters();
    const Type pointer = Type::pointer(Type(f32));
    std::vector<VarRef> more{make_var("a", pointer), make_var("b", pointer)};
    for (const char* n : {"image", "row", "column", "channel"})
      more.push_back(make_var(n, Type(i64)));
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
    t.panel_stride = r_ * s_ * c_ * kPanelColumns;
    t.run = c_;
    if (r_ > 1) t.taps.push_back({r_, dh_ * row_});
    if (s_ > 1 && pixel_ == c_ && dw_ == 1) t.run = s_ * c_;
    else if (s_ > 1) t.taps.push_back({s_, dw_ * pixel_});
    t.store = [&](int64_t i, const Value& c, const Value& value) {
      std::vector<Value> indices = at[static_cast<size_t>(i)];
      indices.push_back(channel + c);
      return fused_.store(indices, value);
    };
    body.push_back(tile_kernel(t));
    f.body = make_seq(std::move(body));
    return f;
  }

  Stmt tasks() {
    std::vector<Stmt> body;
    const int64_t groups = (blocks_ + group_ - 1) / group_;
    const Value images(shape_of(fused_.anchor.inputs[0])[0]);
    const Value x = declare(body, "x", pointer_to(fused_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(fused_.anchor.inputs[1]));
    body.push_back(loop(
        "task", (images * number(image_blocks_ * groups)).expr(), LoopKind::parallel,
        [&](const Value& task) {
          std::vector<Stmt> in;
          const Value group = declare(in, "group", task % number(groups)),
                      rest = declare(in, "rest", task / number(groups));
          const Value block = declare(in, "block", rest % number(image_blocks_)),
                      image = declare(in, "image", rest / number(image_blocks_));
          const Value first = declare(in, "first", block * number(block_));
          const int64_t total = point_ ? oh_ * ow_ : oh_;
          const Value count = declare(
              in, "count",
              total % block_ ? least(number(block_), number(total) - first) : number(block_));
          const Value source = declare(in, "source", x + image * number(height_ * width_ * c_));
          const Value pixels = !copied_ ? declare(in, "pixels", source + first * number(c_))
                               : point_ ? gather(in, source, first, count)
                                        : strip(in, source, first, count);
          const Value begin = group * number(group_),
                      end = declare(in, "end", least(begin + number(group_), number(blocks_)));
          const auto columns = [&](const std::function<Stmt(const Value& column_block)>& one) {
            return loop_from("columns", begin.expr(), end.expr(), 1, one);
          };
          if (tiles_outside_)
            in.push_back(all_tiles(count, [&](const PixelTile& t, const Value& i, const Value& j) {
              return columns(
                  [&](const Value& c) { return run_tile(t, pixels, b, image, first, i, j, c); });
            }));
          else
            in.push_back(columns([&](const Value& c) {
              return all_tiles(count, [&](const PixelTile& t, const Value& i, const Value& j) {
                return run_tile(t, pixels, b, image, first, i, j, c);
              });
            }));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  // --- copies

  /// 1 x 1: the block's pixels one behind the other.
  Value gather(std::vector<Stmt>& in, const Value& source, const Value& first,
               const Value& count) const {
    const Value copy = declare(in, "pixels", scratch_floats(0, number(block_ * pixel_)));
    in.push_back(loop("i", count.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> one;
      const Value flat = declare(one, "pixel", first + i);
      const Value at =
          declare(one, "at",
                  (flat / number(ow_) * number(sh_ * width_) + flat % number(ow_) * number(sw_)) *
                      number(c_));
      const Value to = declare(one, "to", copy + i * number(pixel_)),
                  from = declare(one, "from", source + at);
      one.push_back(copy_values(to, from, c_, shape_.lanes));
      return make_seq(std::move(one));
    }));
    return copy;
  }

  /// The input rows that `count` output rows need, zeros where the kernel leaves the image.
  Value strip(std::vector<Stmt>& in, const Value& source, const Value& first,
              const Value& count) const {
    const int64_t reach = (r_ - 1) * dh_ + 1, pixels = row_ / pixel_,
                  inside = std::max<int64_t>(0, std::min(width_, pixels - left_)),
                  right = pixels - left_ - inside;
    const Value copy =
        declare(in, "pixels", scratch_floats(0, number(((block_ - 1) * sh_ + reach) * row_)));
    in.push_back(
        loop("i", ((count - number(1)) * number(sh_) + number(reach)).expr(), LoopKind::serial,
             [&](const Value& i) {
               std::vector<Stmt> one;
               const Value h = declare(one, "h", first * number(sh_) - number(top_) + i),
                           to = declare(one, "to", copy + i * number(row_));
               const Value valid = number(0) <= h && h < number(height_);
               std::vector<Stmt> row;
               if (left_)
                 row.push_back(zero_values(to, std::min(left_, pixels) * pixel_, shape_.lanes));
               const Value begin = declare(row, "begin", to + number(left_ * pixel_)),
                           from = declare(row, "from", source + h * number(width_ * c_));
               if (pixel_ == c_) row.push_back(copy_values(begin, from, inside * c_, shape_.lanes));
               else
                 row.push_back(loop("w", index(inside), LoopKind::serial, [&](const Value& w) {
                   std::vector<Stmt> p;
                   const Value tp = declare(p, "tp", begin + w * number(pixel_)),
                               fp = declare(p, "fp", from + w * number(c_));
                   p.push_back(copy_values(tp, fp, c_, shape_.lanes));
                   return make_seq(std::move(p));
                 }));
               if (right > 0) {
                 const Value behind = declare(row, "behind", begin + number(inside * pixel_));
                 row.push_back(zero_values(behind, right * pixel_, shape_.lanes));
               }
               one.push_back(make_stmt<If>({}, valid.expr(), make_seq(std::move(row)),
                                           zero_values(to, row_, shape_.lanes)));
               return make_seq(std::move(one));
             }));
    return copy;
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
    return runs(split_evenly(pixels, shape_.rows),
                [&](int64_t n, const Value& at) { return body(used({1, n}), at, number(0)); });
  }
  Stmt row_tiles(int64_t rows, const Value& row, const TileBody& body) {
    return runs(split_evenly(ow_, shape_.rows),
                [&](int64_t n, const Value& at) { return body(used({rows, n}), row, at); });
  }
  /// one(size, start) for parts of at most two sizes, larger ones first.
  static Stmt runs(const std::vector<int64_t>& parts,
                   const std::function<Stmt(int64_t, const Value&)>& one) {
    std::vector<Stmt> out;
    int64_t at = 0;
    for (size_t i = 0; i < parts.size();) {
      size_t j = i;
      while (j < parts.size() && parts[j] == parts[i]) j++;
      const int64_t size = parts[i], end = at + static_cast<int64_t>(j - i) * size;
      if (j - i == 1) out.push_back(one(size, number(at)));
      else
        out.push_back(loop_from("at", index(at), index(end), size,
                                [&](const Value& v) { return one(size, v); }));
      at = end;
      i = j;
    }
    return make_seq(std::move(out));
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
    const std::vector<Value> more{pixels + offset,
                                  b + c * number(shape_.columns() * r_ * s_ * c_),
                                  image,
                                  first + i,
                                  j,
                                  c * number(shape_.columns())};
    args.insert(args.end(), more.begin(), more.end());
    const int64_t full = n_ / shape_.columns(), rest = n_ % shape_.columns();
    if (!rest) return call(name(t, shape_.columns()), args);
    if (!full) return call(name(t, rest), args);
    return make_stmt<If>({}, (c < number(full)).expr(), call(name(t, shape_.columns()), args),
                         call(name(t, rest), args));
  }

  const FusedTask& fused_;
  TileShape shape_;
  int64_t height_, width_, c_, oh_, ow_, n_, r_, s_, sh_, sw_, dh_, dw_, top_, left_;
  bool point_, copied_, tiles_outside_;
  int64_t pixel_ = 0, row_ = 0;     ///< elements from a pixel to the next, from a row to the next
  int64_t blocks_ = 0, group_ = 0;  ///< column blocks, and of one task
  int64_t block_ = 0, image_blocks_ = 0, tile_rows_ = 1;
  std::vector<PixelTile> used_;
};

bool accepts(const Task& t) {
  if (t.name != "conv2d_nhwc") return false;
  const VarRef &x = t.inputs[0], &y = t.outputs[0];
  if (dtype_of(x) != f32 || !constant_shape(x, 1) || !constant_shape(y, 1)) return false;
  for (size_t d = 1; d < 4; d++)
    if (extent_of(x, d) < 1 || extent_of(y, d) < 1) return false;
  return t.attrs.at("kernel_h") * t.attrs.at("kernel_w") > 0;
}

}  // namespace

CpuSchedule cpu_conv2d_schedule() {
  return {"packed convolution",
          accepts,
          false,
          true,
          false,
          [](const FusedTask& f, const CpuTargetInfo& t) { return Conv(f, t).run(); }};
}

}  // namespace hidet::graph
