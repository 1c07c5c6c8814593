// inverted_block.cpp - a depthwise convolution in one kernel with the 1 x 1 convolution before it, the one behind it, or both: the
// wide tensors between them never leave the caches (docs/cpu_kernels.md, 6). A task is an image and a band of output rows, and a
// column block of channels where nothing comes behind. The last lines of what the depthwise convolution reads are in a ring of
// lines in scratch, with zeros around, a ring for each column block; new lines are computed (or copied) just before the output
// row that reads them first.
#include "schedules/inverted_block.h"

#include <algorithm>

#include "schedules/depthwise.h"

namespace hidet::graph {
using namespace ir;

namespace {

/// At most this part of the lines before the depthwise convolution is computed twice, at the borders of bands.
constexpr int64_t kTwice = 6;
/// Bytes of a wide tensor from which it pays to keep it out of memory.
constexpr int64_t kWorthBefore = 256 * 1024, kWorthBehind = 200 * 1024;

class Block {
 public:
  Block(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused),
        projects_(fused.anchor.name == "conv2d_nhwc"),
        middle_(projects_ ? *fused.before : fused),
        expand_(middle_.before.get()),
        w_(middle_),
        shape_(tile_shape(target)),
        narrow_(projects_ ? shape_in_place(target, w_.c) : shape_) {
    const VarRef &wide = middle_.anchor.inputs[0], &y = middle_.anchor.outputs[0];
    height_ = extent_of(wide, 1), width_ = extent_of(wide, 2);
    k_ = extent_of(source(), 3);
    oh_ = extent_of(y, 1), ow_ = extent_of(y, 2);
    n_ = extent_of(fused.anchor.outputs[0], 3);
    reach_ = (w_.r - 1) * w_.dh + 1;
    pixels_ = std::max(w_.left + width_, (ow_ - 1) * w_.sw + (w_.s - 1) * w_.dw + 1);
    w_.pixel = shape_.columns();
    for (lines_ = 1; lines_ < reach_; lines_ *= 2) {
    }
    blocks_ = (w_.c + shape_.columns() - 1) / shape_.columns();
    const int64_t twice = expand_ ? std::max<int64_t>(reach_ - w_.sh, 0) : 0;  // at a border
    most_bands_ = twice ? std::min(oh_, 1 + height_ / (kTwice * twice)) : oh_;
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    Function launch = fused_.launch(tasks());
    for (int64_t columns : block_widths(w_.c, shape_)) {
      if (expand_)
        for (int64_t pixels : heights(width_, shape_))
          m.functions.push_back(expanding_tile(pixels, columns));
      m.functions.push_back(row(columns));
    }
    if (projects_)
      for (int64_t columns : block_widths(n_, narrow_))
        for (int64_t pixels : heights(ow_, narrow_))
          m.functions.push_back(projecting_tile(pixels, columns));
    m.functions.push_back(std::move(launch));
    return m;
  }

 private:
  const VarRef& source() const { return (expand_ ? *expand_ : middle_).anchor.inputs[0]; }
  static std::vector<int64_t> heights(int64_t n, const TileShape& shape) {
    return distinct_heights(split_evenly(n, shape.rows));
  }
  static std::string named(const char* what, int64_t pixels, int64_t columns) {
    return what + std::to_string(pixels) + "x" + std::to_string(columns);
  }
  int64_t line_elements() const { return pixels_ * w_.pixel; }
  int64_t ring_elements() const { return lines_ * line_elements(); }

  /// A module function that takes the kernel's parameters, then pointers, then numbers.
  struct Signature {
    Function f;
    std::vector<Value> values;
  };
  Signature signature(const std::string& name,
                      const std::vector<std::pair<const char*, DType>>& pointers,
                      const std::vector<const char*>& numbers) const {
    Signature s;
    s.f.name = name;
    s.f.kind = FuncKind::cpu_internal;
    s.f.params = fused_.parameters();
    const size_t own = s.f.params.size();
    for (const auto& [p, dtype] : pointers)
      s.f.params.push_back(make_var(p, Type::pointer(Type(dtype))));
    for (const char* n : numbers) s.f.params.push_back(make_var(n, Type(i64)));
    for (size_t i = own; i < s.f.params.size(); i++) s.values.emplace_back(Expr(s.f.params[i]));
    return s;
  }
  /// to[offset] = the value of `task` at `indices`, through its epilogue.
  static Stmt keep(const FusedTask& task, const std::vector<Value>& indices, const Value& value,
                   const Value& to, const Value& offset) {
    std::vector<Stmt> body;
    const FusedTask::Stored stored = task.finish(indices, value, &body);
    body.push_back(
        make_stmt<Store>({}, to.expr(), offset.expr(), make_cast(stored.value.expr(), Type(f32))));
    return make_seq(std::move(body));
  }
  static TileKernel tile_of(const TileShape& shape, int64_t pixels, int64_t columns, int64_t k,
                            const Value& a, const Value& b) {
    TileKernel t;
    t.shape = shape;
    t.columns = columns;
    t.a = a, t.b = b;
    for (int64_t i = 0; i < pixels; i++) t.row_offset.push_back(i * k);
    t.panel_stride = k * kPanelColumns;
    t.run = k;
    return t;
  }

  /// expand_PxC(parameters..., pixels, panels, to, image, row, column, channel): some pixels of a line, into the ring.
  Function expanding_tile(int64_t pixels, int64_t columns) const {
    Signature s =
        signature(named("expand_", pixels, columns), {{"a", f32}, {"b", w_.dtype}, {"to", f32}},
                  {"image", "row", "column", "channel"});
    const std::vector<Value>& v = s.values;
    TileKernel t = tile_of(shape_, pixels, columns, k_, v[0], v[1]);
    t.store = [&](int64_t i, const Value& c, const Value& value) {
      return keep(*expand_, {v[3], v[4], v[5] + number(i), v[6] + c}, value, v[2],
                  c + number(i * w_.pixel));
    };
    s.f.body = tile_kernel(t);
    return s.f;
  }

  /// row_C(parameters..., ring, weights, to, image, output row, first line, channel): an output row in C channels, into the output
  /// or, for what comes behind, into the pixels `to`.
  Function row(int64_t columns) const {
    Signature s =
        signature("row_" + std::to_string(columns), {{"ring", f32}, {"w", w_.dtype}, {"to", f32}},
                  {"image", "row", "begin", "channel"});
    const std::vector<Value>& v = s.values;
    s.f.body = even_runs(split_evenly(ow_, kDepthwiseGroup), [&](const Value& at, int64_t pixels) {
      return in_channel_vectors(columns, shape_.lanes, [&](const Value& c, int width) {
        DepthwiseGroup g{w_, pixels, width, v[1] + c, {}, {}, {}, {}, {}};
        g.line = [&](const Value& r) {
          const Value line = (v[5] + r * number(w_.dh)) % number(lines_);
          return v[0] + (line * number(line_elements()) + at * number(w_.sw * w_.pixel) + c);
        };
        g.store = [&](int64_t p, const Value& lane, const Value& value) {
          const Value pixel = at + number(p), channel = v[6] + (c + lane);
          if (!projects_) return fused_.store({v[3], v[4], pixel, channel}, value);
          return keep(middle_, {v[3], v[4], pixel, channel}, value, v[2],
                      pixel * number(w_.c) + channel);
        };
        return depthwise_group(g);
      });
    });
    return s.f;
  }

  /// project_PxC(parameters..., pixels, panels, image, row, column, channel): some pixels of an output row.
  Function projecting_tile(int64_t pixels, int64_t columns) const {
    Signature s = signature(named("project_", pixels, columns), {{"a", f32}, {"b", w_.dtype}},
                            {"image", "row", "column", "channel"});
    const std::vector<Value>& v = s.values;
    TileKernel t = tile_of(narrow_, pixels, columns, w_.c, v[0], v[1]);
    std::vector<Stmt> body;
    for (int64_t i = 0; i < pixels; i++)
      for (int64_t c = 0; c < columns; c += kPanelColumns)
        for (Stmt& fetch :
             prefetch_residuals(fused_, {v[2], v[3], v[4] + number(i), v[5] + number(c)}))
          body.push_back(std::move(fetch));
    t.store = [&](int64_t i, const Value& c, const Value& value) {
      return fused_.store({v[2], v[3], v[4] + number(i), v[5] + c}, value);
    };
    body.push_back(tile_kernel(t));
    s.f.body = make_seq(std::move(body));
    return s.f;
  }

  struct Task {
    Value ring, pixels;        ///< scratch
    Value x, image;            ///< the image's first input
    Value expand, w, project;  ///< weights, of all channels
    Value first, count;        ///< output rows
    Value block;               ///< where it is one
  };

  Stmt tasks() const {
    std::vector<Stmt> body;
    Task t;
    const Value images(shape_of(source())[0]);
    const Value x = declare(body, "x", pointer_to(source()));
    if (expand_) t.expand = declare(body, "b", pointer_to(expand_->anchor.inputs[1]));
    t.w = declare(body, "w", pointer_to(middle_.anchor.inputs[1]));
    if (projects_) t.project = declare(body, "p", pointer_to(fused_.anchor.inputs[1]));
    const int64_t parts = projects_ ? 1 : blocks_, rings = projects_ ? blocks_ : 1;
    // A band a thread: rows that it reads are those that it wrote in the kernel before, where that goes by rows, too.
    const Value threads =
        declare(body, "threads", Value(make_prim("parallel_threads", {}, Type(i64))));
    const Value most = declare(
        body, "most",
        select(images % threads == number(0), number(1), least(threads, number(most_bands_))));
    const Value band = declare(body, "band", (most + number(oh_ - 1)) / most),
                bands = declare(body, "bands", (band + number(oh_ - 1)) / band);
    body.push_back(
        loop("task", (images * bands * number(parts)).expr(), LoopKind::parallel,
             [&](const Value& task) {
               std::vector<Stmt> in;
               t.block = declare(in, "block", task % number(parts));
               const Value rest = declare(in, "rest", task / number(parts));
               t.image = declare(in, "image", rest / bands);
               t.first = declare(in, "first", rest % bands * band);
               t.count = declare(in, "count", least(band, number(oh_) - t.first));
               t.x = declare(in, "source", x + t.image * number(height_ * width_ * k_));
               t.ring = declare(in, "ring", scratch_floats(0, number(rings * ring_elements())));
               t.pixels = projects_ ? declare(in, "pixels", scratch_floats(1, number(ow_ * w_.c)))
                                    : t.ring;
               in.push_back(rows(t));
               return make_seq(std::move(in));
             }));
    return make_seq(std::move(body));
  }

  /// Output rows one by one.
  Stmt rows(const Task& t) const {
    return loop("i", t.count.expr(), LoopKind::serial, [&](const Value& i) {
      if (!projects_) return in_block(t, i, t.block, t.ring);
      std::vector<Stmt> body;
      body.push_back(loop("block", index(blocks_), LoopKind::serial, [&](const Value& block) {
        return in_block(t, i, block, t.ring + block * number(ring_elements()));
      }));
      body.push_back(loop("c", index((n_ + narrow_.columns() - 1) / narrow_.columns()),
                          LoopKind::serial, [&](const Value& c) {
                            return choose_columns(n_, narrow_, c, [&](int64_t columns) {
                              return project_row(t, i, c * number(narrow_.columns()), columns);
                            });
                          }));
      return make_seq(std::move(body));
    });
  }

  Stmt project_row(const Task& t, const Value& i, const Value& channel, int64_t columns) const {
    return even_runs(split_evenly(ow_, narrow_.rows), [&](const Value& at, int64_t n) {
      return with_parameters(named("project_", n, columns),
                             {t.pixels + at * number(w_.c), t.project + channel * number(w_.c),
                              t.image, t.first + i, at, channel});
    });
  }
  Stmt with_parameters(const std::string& function, const std::vector<Value>& more) const {
    std::vector<Value> args = parameter_values(fused_);
    args.insert(args.end(), more.begin(), more.end());
    return call(function, args);
  }

  /// Output row i in a column block: the lines that it is the first to read, then the depthwise convolution.
  Stmt in_block(const Task& t, const Value& i, const Value& block, const Value& ring) const {
    return choose_columns(w_.c, shape_, block, [&](int64_t columns) {
      std::vector<Stmt> body;
      const Value channel = declare(body, "channel", block * number(shape_.columns())),
                  own = declare(body, "own", ring),
                  begin = declare(body, "begin", i * number(w_.sh)),
                  ready =
                      declare(body, "ready",
                              select(i == number(0), number(0), begin + number(reach_ - w_.sh)));
      body.push_back(
          loop_from("line", ready.expr(), (begin + number(reach_)).expr(), 1,
                    [&](const Value& line) { return new_line(t, line, own, channel, columns); }));
      body.push_back(
          with_parameters("row_" + std::to_string(columns),
                          {own, t.w + channel, t.pixels, t.image, t.first + i, begin, channel}));
      return make_seq(std::move(body));
    });
  }

  /// A line of the source: for a 1 x 1 convolution in f32, what is stored shorter in scratch.
  Value widened_line(std::vector<Stmt>& body, const Value& line) const {
    const Value from = declare(body, "from", line);
    if (!expand_ || w_.dtype == f32) return from;
    const Value wide = declare(body, "wide", scratch_floats(2, number(width_ * k_)));
    body.push_back(copy_values(wide, from, width_ * k_, shape_.lanes));
    return wide;
  }

  Stmt new_line(const Task& t, const Value& line, const Value& ring, const Value& channel,
                int64_t columns) const {
    std::vector<Stmt> body, inside;
    const Value to = declare(body, "to", ring + line % number(lines_) * number(line_elements())),
                h = declare(body, "h", t.first * number(w_.sh) - number(w_.top) + line);
    const auto place = [&](const Value& at) {
      return to + (at + number(w_.left)) * number(w_.pixel);
    };
    const Value from = widened_line(inside, t.x + h * number(width_ * k_));
    inside.push_back(zero_values(to, w_.left * w_.pixel, shape_.lanes));
    if (expand_)
      inside.push_back(
          even_runs(split_evenly(width_, shape_.rows), [&](const Value& at, int64_t n) {
            return with_parameters(named("expand_", n, columns),
                                   {from + at * number(k_), t.expand + channel * number(k_),
                                    place(at), t.image, h, at, channel});
          }));
    else
      inside.push_back(loop("at", index(width_), LoopKind::serial, [&](const Value& at) {
        return copy_values(place(at), from + (at * number(k_) + channel), columns, shape_.lanes);
      }));
    const int64_t used = w_.left + width_;
    inside.push_back(
        zero_values(to + number(used * w_.pixel), (pixels_ - used) * w_.pixel, shape_.lanes));
    body.push_back(make_stmt<If>({}, (number(0) <= h && h < number(height_)).expr(),
                                 make_seq(std::move(inside)),
                                 zero_values(to, line_elements(), shape_.lanes)));
    return make_seq(std::move(body));
  }

  const FusedTask& fused_;
  bool projects_;            ///< a 1 x 1 convolution comes behind: the anchor
  const FusedTask& middle_;  ///< the depthwise convolution
  const FusedTask* expand_;  ///< the 1 x 1 convolution before it, or null
  ConvWindow w_;
  TileShape shape_, narrow_;  ///< tiles before and behind
  int64_t height_, width_;    ///< of what the depthwise convolution reads
  int64_t k_;                 ///< channels of the source
  int64_t oh_, ow_, n_;
  int64_t reach_;      ///< lines that an output row reads
  int64_t lines_ = 1;  ///< of a ring
  int64_t pixels_;     ///< of a line
  int64_t blocks_, most_bands_ = 1;
};

bool known(const VarRef& image) {
  if (!is_f32_or_half(dtype_of(image)) || !constant_shape(image, 1)) return false;
  for (size_t d = 1; d < 4; d++)
    if (extent_of(image, d) < 1) return false;
  return true;
}
int64_t image_bytes(const VarRef& image) {
  return extent_of(image, 1) * extent_of(image, 2) * extent_of(image, 3) * 4;
}
/// A 1 x 1 convolution that reads every pixel once.
bool is_point(const Task& t) {
  if (t.name != "conv2d_nhwc") return false;
  for (const char* one : {"kernel_h", "kernel_w", "stride_h", "stride_w"})
    if (t.attrs.at(one) != 1) return false;
  for (const char* none : {"pad_t", "pad_l", "pad_b", "pad_r"})
    if (t.attrs.at(none) != 0) return false;
  return known(t.inputs[0]);
}

}  // namespace

bool takes_expansion(const Task& depthwise, const FusedTask& before) {
  if (!is_point(before.anchor) || before.before || before.prologues[0]) return false;
  if (dtype_of(before.anchor.inputs[0]) != dtype_of(depthwise.inputs[0])) return false;
  if (!known(depthwise.inputs[0]) || !known(depthwise.outputs[0])) return false;
  // Lines that no output row reads would be computed, too.
  const auto& at = depthwise.attrs;
  if (at.at("stride_h") > (at.at("kernel_h") - 1) * at.at("dilation_h") + 1) return false;
  return image_bytes(depthwise.inputs[0]) >= kWorthBefore;
}

bool takes_depthwise(const Task& projection, const FusedTask& before) {
  const Task& middle = before.anchor;
  if (!is_point(projection) || middle.name != "depthwise_nhwc" || before.prologues[0]) return false;
  if (dtype_of(middle.inputs[0]) != dtype_of(projection.inputs[0])) return false;
  if (!known(middle.inputs[0]) || !known(middle.outputs[0])) return false;
  return image_bytes(middle.outputs[0]) >= kWorthBehind && known(projection.outputs[0]);
}

Module inverted_block(const FusedTask& fused, const CpuTargetInfo& target) {
  return Block(fused, target).run();
}

}  // namespace hidet::graph
