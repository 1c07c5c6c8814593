// cpu_depthwise.cpp - depthwise convolution in NHWC (docs/cpu_kernels.md, 6). A task is one output row; pixels go in
// groups whose accumulators share the loaded input columns, channels innermost, so that memory is read in order.
// Groups at the border are instances without the columns outside; rows outside shorten the loop over kernel rows. Where the
// width is known at run time only, pixels at the border go one by one and check their columns.
#include "schedules/depthwise.h"

#include <algorithm>

#include "schedules/inverted_block.h"

namespace hidet::graph {
using namespace ir;

namespace {

/// Pixels of a row that is not known, for the size of tasks.
constexpr int64_t kRow = 32;

class Depthwise {
 public:
  Depthwise(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), lanes_(tile_shape(target).lanes), w_(fused) {
    const bool known = is_const_int(w_.width.expr(), &width_) && is_const_int(w_.ow.expr(), &ow_);
    if (!known) width_ = ow_ = -1;
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    std::vector<Stmt> body;
    for (Value* size : {&w_.height, &w_.width, &w_.oh, &w_.ow})
      if (!is_const_int(size->expr())) *size = declare(body, "size", *size);
    body.push_back(rows());
    m.functions.push_back(fused_.launch(make_seq(std::move(body))));
    return m;
  }

 private:
  Stmt rows() const {
    std::vector<Stmt> body;
    const Value images(shape_of(fused_.anchor.inputs[0])[0]);
    const Value x = declare(body, "x", pointer_to(fused_.anchor.inputs[0])),
                w = declare(body, "w", pointer_to(fused_.anchor.inputs[1]));
    const int64_t row = std::max<int64_t>(1, (ow_ < 0 ? kRow : ow_) * w_.c);
    body.push_back(loop(
        "task", (images * w_.oh).expr(), LoopKind::parallel,
        [&](const Value& task) {
          std::vector<Stmt> in;
          const Value image = declare(in, "image", task / w_.oh),
                      row = declare(in, "row", task % w_.oh);
          const Value h = declare(in, "h", row * number(w_.sh) - number(w_.top));
          const Value source =
              declare(in, "source", x + (image * w_.height + h) * (w_.width * number(w_.c)));
          const Place at{source, w, image, row, h};
          for (Stmt& s : ow_ < 0 ? groups_at_run_time(at) : groups(at)) in.push_back(std::move(s));
          return make_seq(std::move(in));
        },
        std::max<int64_t>(1, 8192 / row)));
    return make_seq(std::move(body));
  }

  /// One output row: its first input row, which may lie outside, the weights, and where it is.
  struct Place {
    Value source, w, image, row, h;
  };
  /// Which columns of a group are inside: those of a group at a constant position, all, or to be checked.
  struct Columns {
    std::optional<int64_t> like;
    std::optional<Value> checked;
  };

  bool inside(int64_t column) const { return column >= 0 && column < width_; }
  /// True where all columns that a group reads are inside the image.
  bool interior(int64_t at, int64_t pixels) const {
    return inside(at * w_.sw - w_.left) &&
           inside((at + pixels - 1) * w_.sw - w_.left + (w_.s - 1) * w_.dw);
  }

  std::vector<Stmt> groups(const Place& place) const {
    std::vector<Stmt> out;
    const std::vector<int64_t> parts = split_evenly(ow_, kDepthwiseGroup);
    int64_t at = 0;
    for (size_t i = 0; i < parts.size();) {
      const int64_t pixels = parts[i];
      if (!interior(at, pixels)) {
        out.push_back(channels(number(at), {at, {}}, pixels, place));
        at += pixels, i++;
        continue;
      }
      int64_t end = at;
      while (i < parts.size() && parts[i] == pixels && interior(end, pixels)) end += pixels, i++;
      out.push_back(loop_from("at", index(at), index(end), pixels,
                              [&](const Value& v) { return channels(v, {}, pixels, place); }));
      at = end;
    }
    return out;
  }

  /// Pixels whose columns are inside in groups, the others one by one.
  std::vector<Stmt> groups_at_run_time(const Place& place) const {
    std::vector<Stmt> out;
    const int64_t reach = (w_.s - 1) * w_.dw + 1;
    const Value inside_end = largest(w_.width + number(w_.left - reach + w_.sw), 0) / number(w_.sw);
    const Value begin = declare(out, "begin", least(number((w_.left + w_.sw - 1) / w_.sw), w_.ow));
    const Value end =
        declare(out, "end",
                least(w_.ow, Value(make_binary(BinaryOp::max, begin.expr(), inside_end.expr()))));
    const auto edge = [&](const Value& at) { return channels(at, {{}, at}, 1, place); };
    out.push_back(loop_from("at", index(0), begin.expr(), 1, edge));
    Value from = begin;
    for (int64_t pixels : {kDepthwiseGroup, kDepthwiseGroup / 2}) {
      const Value to = declare(out, "to", from + (end - from) / number(pixels) * number(pixels));
      out.push_back(loop_from("at", from.expr(), to.expr(), pixels,
                              [&](const Value& at) { return channels(at, {}, pixels, place); }));
      from = to;
    }
    out.push_back(loop_from("at", from.expr(), w_.ow.expr(), 1, edge));
    return out;
  }
  static Value largest(const Value& a, int64_t b) {
    return Value(make_binary(BinaryOp::max, a.expr(), index(b)));
  }

  /// All channels of one group.
  Stmt channels(const Value& at, const Columns& columns, int64_t pixels, const Place& place) const {
    return in_channel_vectors(w_.c, lanes_, [&](const Value& c, int width) {
      std::vector<Stmt> out;
      const Value first = declare(
          out, "first", place.source + ((at * number(w_.sw) - number(w_.left)) * number(w_.c) + c));
      DepthwiseGroup g{w_, pixels, width, place.w + c, {}, {}, {}, {}, {}};
      g.line = [&](const Value& r) { return first + r * (number(w_.dh * w_.c) * w_.width); };
      if (!rows_inside())
        g.row_inside = [&](const Value& r) {
          const Value line = place.h + r * number(w_.dh);
          return number(0) <= line && line < w_.height;
        };
      if (columns.like)
        g.reads = [&](int64_t k) { return inside(*columns.like * w_.sw - w_.left + k); };
      if (columns.checked)
        g.column_inside = [&](int64_t k) {
          const Value column = *columns.checked * number(w_.sw) + number(k - w_.left);
          return number(0) <= column && column < w_.width;
        };
      g.store = [&](int64_t p, const Value& lane, const Value& value) {
        return fused_.store({place.image, place.row, at + number(p), c + lane}, value);
      };
      out.push_back(depthwise_group(g));
      return make_seq(std::move(out));
    });
  }

  bool rows_inside() const {
    int64_t height = 0, oh = 0;
    return w_.top == 0 && is_const_int(w_.height.expr(), &height) &&
           is_const_int(w_.oh.expr(), &oh) && (oh - 1) * w_.sh + (w_.r - 1) * w_.dh < height;
  }

  const FusedTask& fused_;
  int lanes_;
  ConvWindow w_;
  int64_t width_ = -1, ow_ = -1;  ///< -1 where they are known at run time only
};

bool accepts(const Task& t) {
  if (t.name != "depthwise_nhwc") return false;
  const VarRef& x = t.inputs[0];
  if (!is_f32_or_half(dtype_of(x)) || !constant_shape(x, 3) || extent_of(x, 3) < 1) return false;
  for (const VarRef& tensor : {x, t.outputs[0]})
    for (size_t d = 1; d < 3; d++)
      if (constant_shape(tensor, d) && extent_of(tensor, d) < 1) return false;
  return t.attrs.at("kernel_w") <= 7;
}

}  // namespace

CpuSchedule cpu_depthwise_schedule() {
  const auto make = [](const FusedTask& f, const CpuTargetInfo& t) {
    return f.before ? inverted_block(f, t) : Depthwise(f, t).run();
  };
  return {{"depthwise convolution", accepts, false, true, false}, make, {}, takes_expansion};
}

}  // namespace hidet::graph
