// cpu_depthwise.cpp - depthwise convolution in NHWC (docs/cpu_kernels.md, 6). A task is one output row; pixels go in
// groups whose accumulators share the loaded input columns, channels innermost, so that memory is read in order.
// Groups at the border are instances without the columns outside; rows outside shorten the loop over kernel rows.
#include "schedules/tile.h"

#include <hidet/ir/primitives.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Most pixels of a group.
constexpr int64_t kGroup = 7;

class Depthwise {
 public:
  Depthwise(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), lanes_(tile_shape(target).lanes) {
    const VarRef &x = fused.anchor.inputs[0], &y = fused.anchor.outputs[0];
    const auto& at = fused.anchor.attrs;
    height_ = extent_of(x, 1), width_ = extent_of(x, 2), c_ = extent_of(x, 3);
    oh_ = extent_of(y, 1), ow_ = extent_of(y, 2);
    r_ = at.at("kernel_h"), s_ = at.at("kernel_w"), sh_ = at.at("stride_h"),
    sw_ = at.at("stride_w");
    dh_ = at.at("dilation_h"), dw_ = at.at("dilation_w"), top_ = at.at("pad_t"),
    left_ = at.at("pad_l");
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    m.functions.push_back(fused_.launch(rows()));
    return m;
  }

 private:
  Stmt rows() const {
    std::vector<Stmt> body;
    const Value images(shape_of(fused_.anchor.inputs[0])[0]);
    const Value x = declare(body, "x", pointer_to(fused_.anchor.inputs[0])),
                w = declare(body, "w", pointer_to(fused_.anchor.inputs[1]));
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, ow_ * c_));
    body.push_back(loop(
        "task", (images * number(oh_)).expr(), LoopKind::parallel,
        [&](const Value& task) {
          std::vector<Stmt> in;
          const Value image = declare(in, "image", task / number(oh_)),
                      row = declare(in, "row", task % number(oh_));
          const Value h = declare(in, "h", row * number(sh_) - number(top_));
          const Value source =
              declare(in, "source", x + (image * number(height_) + h) * number(width_ * c_));
          for (Stmt& s : groups(source, w, image, row, h)) in.push_back(std::move(s));
          return make_seq(std::move(in));
        },
        grain));
    return make_seq(std::move(body));
  }

  bool inside(int64_t column) const { return column >= 0 && column < width_; }
  /// True where all columns that a group reads are inside the image.
  bool interior(int64_t at, int64_t pixels) const {
    return inside(at * sw_ - left_) && inside((at + pixels - 1) * sw_ - left_ + (s_ - 1) * dw_);
  }

  std::vector<Stmt> groups(const Value& source, const Value& w, const Value& image,
                           const Value& row, const Value& h) const {
    std::vector<Stmt> out;
    const std::vector<int64_t> parts = split_evenly(ow_, kGroup);
    int64_t at = 0;
    for (size_t i = 0; i < parts.size();) {
      const int64_t pixels = parts[i];
      if (!interior(at, pixels)) {
        out.push_back(channels(number(at), at, pixels, source, w, image, row, h));
        at += pixels, i++;
        continue;
      }
      int64_t end = at;
      while (i < parts.size() && parts[i] == pixels && interior(end, pixels)) end += pixels, i++;
      out.push_back(loop_from("at", index(at), index(end), pixels, [&](const Value& v) {
        return channels(v, at, pixels, source, w, image, row, h);
      }));
      at = end;
    }
    return out;
  }

  /// All channels of one group. `like`: a constant position with the same columns outside.
  Stmt channels(const Value& at, int64_t like, int64_t pixels, const Value& source, const Value& w,
                const Value& image, const Value& row, const Value& h) const {
    std::vector<Stmt> out;
    const auto body = [&](const Value& c, int width) {
      return group(at, like, pixels, source, w, image, row, h, c, width);
    };
    const int64_t whole = c_ / lanes_ * lanes_;
    if (whole)
      out.push_back(loop_from("c", index(0), index(whole), lanes_,
                              [&](const Value& c) { return body(c, lanes_); }));
    int64_t done = whole;
    for (int width = lanes_ / 2; width >= 1; width /= 2)
      if (c_ - done >= width) {
        out.push_back(body(number(done), width));
        done += width;
      }
    return make_seq(std::move(out));
  }

  Stmt group(const Value& at, int64_t like, int64_t pixels, const Value& source, const Value& w,
             const Value& image, const Value& row, const Value& h, const Value& c,
             int width) const {
    const Type vector = Type::vector(f32, width);
    std::vector<Stmt> out;
    std::vector<VarRef> acc;
    for (int64_t p = 0; p < pixels; p++) {
      acc.push_back(make_var("acc" + std::to_string(p), vector, true));
      out.push_back(make_stmt<DeclVar>({}, acc.back(), make_cast(make_const(0, f32), vector)));
    }
    const Value first =
        declare(out, "first", source + ((at * number(sw_) - number(left_)) * number(c_) + c));
    out.push_back(loop("r", index(r_), LoopKind::serial, [&](const Value& r) {
      const Value line = h + r * number(dh_);
      const Stmt taps = kernel_row(acc, like, first, w, r, c, width);
      if (top_ == 0 && (oh_ - 1) * sh_ + (r_ - 1) * dh_ < height_) return taps;
      return Stmt(
          make_stmt<If>({}, (number(0) <= line && line < number(height_)).expr(), taps, Stmt()));
    }));
    for (int64_t p = 0; p < pixels; p++)
      for (Stmt& s : store_lanes(
               acc[static_cast<size_t>(p)], width, [&](const Value& lane, const Value& value) {
                 return fused_.store({image, row, at + number(p), c + lane}, value);
               }))
        out.push_back(std::move(s));
    return make_seq(std::move(out));
  }

  /// acc[p] += x * w for the columns of one kernel row; a column is loaded once.
  Stmt kernel_row(const std::vector<VarRef>& acc, int64_t like, const Value& first, const Value& w,
                  const Value& r, const Value& c, int width) const {
    std::vector<Stmt> out;
    const Value line = declare(out, "line", first + r * number(dh_ * width_ * c_));
    std::vector<Value> weights;
    for (int64_t s = 0; s < s_; s++) {
      const Value at = (r * number(s_) + number(s)) * number(c_) + c;
      weights.push_back(declare(out, "w", Value(make_load(w.expr(), at.expr(), width))));
    }
    const int64_t pixels = static_cast<int64_t>(acc.size()),
                  columns = (pixels - 1) * sw_ + (s_ - 1) * dw_ + 1;
    for (int64_t k = 0; k < columns; k++) {
      if (!inside(like * sw_ - left_ + k)) continue;
      std::vector<Stmt> uses;
      const VarRef x = make_var("x", Type::vector(f32, width));
      for (int64_t p = 0; p < pixels; p++) {
        const int64_t tap = k - p * sw_;
        if (tap < 0 || tap % dw_ || tap / dw_ >= s_) continue;
        const VarRef& a = acc[static_cast<size_t>(p)];
        uses.push_back(make_stmt<Assign>(
            {}, a, call_math("fma", {x, weights[static_cast<size_t>(tap / dw_)].expr(), a})));
      }
      if (uses.empty()) continue;
      out.push_back(make_stmt<DeclVar>({}, x, make_load(line.expr(), index(k * c_), width)));
      out.insert(out.end(), uses.begin(), uses.end());
    }
    return make_seq(std::move(out));
  }

  const FusedTask& fused_;
  int lanes_;
  int64_t height_, width_, c_, oh_, ow_, r_, s_, sh_, sw_, dh_, dw_, top_, left_;
};

bool accepts(const Task& t) {
  if (t.name != "depthwise_nhwc") return false;
  const VarRef &x = t.inputs[0], &y = t.outputs[0];
  if (dtype_of(x) != f32 || !constant_shape(x, 1) || !constant_shape(y, 1)) return false;
  for (size_t d = 1; d < 4; d++)
    if (extent_of(x, d) < 1 || extent_of(y, d) < 1) return false;
  return t.attrs.at("kernel_w") <= 7;
}

}  // namespace

CpuSchedule cpu_depthwise_schedule() {
  return {"depthwise convolution",
          accepts,
          false,
          true,
          false,
          [](const FusedTask& f, const CpuTargetInfo& t) { return Depthwise(f, t).run(); }};
}

}  // namespace hidet::graph
