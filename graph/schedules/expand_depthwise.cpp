// expand_depthwise.cpp - a 1 x 1 convolution and the depthwise convolution that alone reads it, as one kernel: the tensor between
// them, the widest of such networks, stays in the L1 cache (docs/cpu_kernels.md, 6). A task is an image, a band of output rows and
// a column block of channels. It keeps the last rows of the expansion, with zeros around, in a ring of lines in scratch: new
// lines are computed just before the output row that reads them first.
#include "schedules/depthwise.h"

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Tasks that an image should have, at least; fewer than all channels make them by bands, whose borders are computed twice.
constexpr int64_t kTasks = 6;
/// Bytes between the two from which one kernel pays.
constexpr int64_t kWorth = 256 * 1024;

class ExpandedDepthwise {
 public:
  ExpandedDepthwise(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), before_(*fused.before), w_(fused), shape_(tile_shape(target)) {
    const VarRef &x = before_.anchor.inputs[0], &y = fused.anchor.outputs[0];
    height_ = extent_of(x, 1), width_ = extent_of(x, 2), k_ = extent_of(x, 3);
    oh_ = extent_of(y, 1), ow_ = extent_of(y, 2);
    reach_ = (w_.r - 1) * w_.dh + 1;
    pixels_ = std::max(w_.left + width_, (ow_ - 1) * w_.sw + (w_.s - 1) * w_.dw + 1);
    w_.pixel = shape_.columns();
    for (lines_ = 1; lines_ < reach_; lines_ *= 2) {}
    blocks_ = (w_.c + shape_.columns() - 1) / shape_.columns();
    while (blocks_ * bands_ < kTasks && bands_ * 2 <= oh_) bands_ *= 2;
    band_ = (oh_ + bands_ - 1) / bands_;
    bands_ = (oh_ + band_ - 1) / band_;
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    Function launch = fused_.launch(tasks());
    for (int64_t columns : {shape_.columns(), w_.c % shape_.columns()}) {
      if (columns == 0 || columns > w_.c) continue;
      int64_t made = 0;
      for (int64_t pixels : split_evenly(width_, shape_.rows))
        if (std::exchange(made, pixels) != pixels) m.functions.push_back(tile(pixels, columns));
      m.functions.push_back(row(columns));
    }
    m.functions.push_back(std::move(launch));
    return m;
  }

 private:
  static std::string tile_name(int64_t pixels, int64_t columns) {
    return "tile_" + std::to_string(pixels) + "x" + std::to_string(columns);
  }
  static std::string row_name(int64_t columns) { return "row_" + std::to_string(columns); }
  int64_t line_elements() const { return pixels_ * w_.pixel; }

  /// A module function that takes the kernel's parameters, then pointers, then numbers.
  struct Signature {
    Function f;
    std::vector<Value> values;
  };
  Signature signature(const std::string& name, const std::vector<const char*>& pointers,
                      const std::vector<const char*>& numbers) const {
    Signature s;
    s.f.name = name;
    s.f.kind = FuncKind::cpu_internal;
    s.f.params = fused_.parameters();
    for (const char* p : pointers) s.f.params.push_back(make_var(p, Type::pointer(Type(f32))));
    for (const char* n : numbers) s.f.params.push_back(make_var(n, Type(i64)));
    for (size_t i = fused_.parameters().size(); i < s.f.params.size(); i++)
      s.values.emplace_back(Expr(s.f.params[i]));
    return s;
  }

  /// tile_PxC(parameters..., pixels, panels, to, image, row, column, channel): some pixels of a row of the expansion, through its
  /// epilogue, into the ring.
  Function tile(int64_t pixels, int64_t columns) const {
    Signature s = signature(tile_name(pixels, columns), {"a", "b", "to"},
                            {"image", "row", "column", "channel"});
    TileKernel t;
    t.shape = shape_;
    t.columns = columns;
    t.a = s.values[0], t.b = s.values[1];
    for (int64_t i = 0; i < pixels; i++) t.row_offset.push_back(i * k_);
    t.panel_stride = k_ * kPanelColumns;
    t.run = k_;
    t.store = [&](int64_t i, const Value& c, const Value& value) {
      std::vector<Stmt> body;
      const FusedTask::Stored stored = before_.finish(
          {s.values[3], s.values[4], s.values[5] + number(i), s.values[6] + c}, value, &body);
      body.push_back(make_stmt<Store>({}, s.values[2].expr(), (c + number(i * w_.pixel)).expr(),
                                      make_cast(stored.value.expr(), Type(f32))));
      return make_seq(std::move(body));
    };
    s.f.body = tile_kernel(t);
    return s.f;
  }

  /// row_C(parameters..., ring, depthwise weights, image, output row, first line, channel): an output row in C channels.
  Function row(int64_t columns) const {
    Signature s =
        signature(row_name(columns), {"ring", "w"}, {"image", "row", "begin", "channel"});
    const Value &ring = s.values[0], &w = s.values[1], &begin = s.values[4];
    const auto group = [&](const Value& at, int64_t pixels) {
      return in_channel_vectors(columns, shape_.lanes, [&](const Value& c, int width) {
        DepthwiseGroup g{w_, pixels, width, w + c, {}, {}, {}, {}, {}};
        g.line = [&](const Value& r) {
          const Value line = (begin + r * number(w_.dh)) % number(lines_);
          return ring + (line * number(line_elements()) + at * number(w_.sw * w_.pixel) + c);
        };
        g.store = [&](int64_t p, const Value& lane, const Value& value) {
          return fused_.store(
              {s.values[2], s.values[3], at + number(p), s.values[5] + (c + lane)}, value);
        };
        return depthwise_group(g);
      });
    };
    s.f.body = even_runs(split_evenly(ow_, kDepthwiseGroup), group);
    return s.f;
  }

  Stmt tasks() const {
    std::vector<Stmt> body;
    const Value images(shape_of(before_.anchor.inputs[0])[0]);
    const Value x = declare(body, "x", pointer_to(before_.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(before_.anchor.inputs[1])),
                w = declare(body, "w", pointer_to(fused_.anchor.inputs[1]));
    body.push_back(loop(
        "task", (images * number(bands_ * blocks_)).expr(), LoopKind::parallel,
        [&](const Value& task) {
          std::vector<Stmt> in;
          const Value block = declare(in, "block", task % number(blocks_)),
                      rest = declare(in, "rest", task / number(blocks_));
          const Value band = declare(in, "band", rest % number(bands_)),
                      image = declare(in, "image", rest / number(bands_));
          const Value first = declare(in, "first", band * number(band_)),
                      channel = declare(in, "channel", block * number(shape_.columns()));
          const Value count =
              declare(in, "count", least(number(band_), number(oh_) - first));
          const Value ring =
              declare(in, "ring", scratch_floats(0, number(lines_ * line_elements())));
          const Task t{ring,  x + image * number(height_ * width_ * k_), b + channel * number(k_),
                       w + channel, image, first * number(w_.sh) - number(w_.top), channel};
          in.push_back(choose_columns(w_.c, shape_, block, [&](int64_t columns) {
            return rows(t, first, count, columns);
          }));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }

  struct Task {
    Value ring, x, b, w, image;
    Value top;  ///< image row of line 0
    Value channel;
  };

  /// Output rows one by one, each after the lines that it is the first to read.
  Stmt rows(const Task& t, const Value& first, const Value& count, int64_t columns) const {
    return loop("i", count.expr(), LoopKind::serial, [&](const Value& i) {
      std::vector<Stmt> body;
      const Value begin = declare(body, "begin", i * number(w_.sh)),
                  ready = declare(body, "ready",
                                  select(i == number(0), number(0),
                                         begin + number(reach_ - w_.sh)));
      body.push_back(loop_from("line", ready.expr(), (begin + number(reach_)).expr(), 1,
                               [&](const Value& line) { return new_line(t, line, columns); }));
      std::vector<Value> args = parameter_values(fused_);
      for (const Value& v : {t.ring, t.w, t.image, first + i, begin, t.channel}) args.push_back(v);
      body.push_back(call(row_name(columns), args));
      return make_seq(std::move(body));
    });
  }

  Stmt new_line(const Task& t, const Value& line, int64_t columns) const {
    std::vector<Stmt> body, inside;
    const Value to = declare(body, "to", t.ring + line % number(lines_) * number(line_elements())),
                h = declare(body, "h", t.top + line);
    inside.push_back(zero_values(to, w_.left * w_.pixel, shape_.lanes));
    inside.push_back(even_runs(split_evenly(width_, shape_.rows), [&](const Value& at, int64_t n) {
      std::vector<Value> args = parameter_values(fused_);
      for (const Value& v :
           {t.x + (h * number(width_) + at) * number(k_), t.b,
            to + (at + number(w_.left)) * number(w_.pixel), t.image, h, at, t.channel})
        args.push_back(v);
      return call(tile_name(n, columns), args);
    }));
    const int64_t used = w_.left + width_;
    inside.push_back(zero_values(to + number(used * w_.pixel), (pixels_ - used) * w_.pixel,
                                 shape_.lanes));
    body.push_back(make_stmt<If>({}, (number(0) <= h && h < number(height_)).expr(),
                                 make_seq(std::move(inside)),
                                 zero_values(to, line_elements(), shape_.lanes)));
    return make_seq(std::move(body));
  }

  const FusedTask& fused_;
  const FusedTask& before_;
  ConvWindow w_;
  TileShape shape_;
  int64_t height_, width_, k_, oh_, ow_;
  int64_t reach_;      ///< lines that an output row reads
  int64_t lines_ = 1;  ///< of the ring
  int64_t pixels_;     ///< of a line
  int64_t blocks_, bands_ = 1, band_ = 1;
};

}  // namespace

bool takes_expansion(const Task& depthwise, const FusedTask& before) {
  if (before.anchor.name != "conv2d_nhwc" || before.before || before.prologues[0]) return false;
  const VarRef &x = before.anchor.inputs[0], &y = depthwise.outputs[0];
  if (dtype_of(x) != f32 || !constant_shape(x, 1) || !constant_shape(y, 1)) return false;
  const auto& at = before.anchor.attrs;
  for (const char* one : {"kernel_h", "kernel_w", "stride_h", "stride_w"})
    if (at.at(one) != 1) return false;
  for (const char* none : {"pad_t", "pad_l", "pad_b", "pad_r"})
    if (at.at(none) != 0) return false;
  for (size_t d = 1; d < 4; d++)
    if (extent_of(x, d) < 1 || extent_of(y, d) < 1) return false;
  const auto& own = depthwise.attrs;
  // Lines that no output row reads would be computed, too.
  if (own.at("stride_h") > (own.at("kernel_h") - 1) * own.at("dilation_h") + 1) return false;
  return extent_of(x, 1) * extent_of(x, 2) * extent_of(y, 3) * 4 >= kWorth;
}

Module expanded_depthwise(const FusedTask& fused, const CpuTargetInfo& target) {
  return ExpandedDepthwise(fused, target).run();
}

}  // namespace hidet::graph
