// cpu_pool.cpp - largest value or mean of windows over f32 images in NCHW. A task is some output rows of one image channel. The rows of a
// window are combined first, in vectors of neighbouring columns, into a row of scratch memory with the pads around; then each
// vector of outputs combines its columns of that row. Kernel rows outside the image are read from a row of values that change
// nothing. Sizes may be known at run time only.
#include <hidet/ir/primitives.h>

#include <algorithm>

#include "schedules/tile.h"

namespace hidet::graph {
using namespace ir;

namespace {

/// Largest window that is unrolled, and inputs that one piece of the parallel loop should have at least.
constexpr int64_t kMostTaps = 16, kGrain = 16384;
/// Output rows whose inputs are combined before their columns: a vector that is read back at once, from another place, waits.
constexpr int64_t kRows = 8;

class Pool {
 public:
  Pool(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), lanes_(target.lanes(f32)), average_(fused.anchor.name == "avg_pool2d") {
    const auto& at = fused.anchor.attrs;
    const char* ends[2] = {"_h", "_w"};
    for (int d = 0; d < 2; d++) {
      kernel_[d] = at.at(std::string("kernel") + ends[d]);
      stride_[d] = at.at(std::string("stride") + ends[d]);
      dilation_[d] = at.at(std::string("dilation") + ends[d]);
    }
    before_[0] = at.at("pad_t"), before_[1] = at.at("pad_l");
    behind_[0] = at.at("pad_b"), behind_[1] = at.at("pad_r");
    counts_pads_ = average_ && at.at("count_pads");
    const auto size = [](const VarRef& v, size_t d) {
      return Value(make_cast(shape_of(v).at(d), Type(i64)));
    };
    const VarRef &x = fused.anchor.inputs[0], &y = fused.anchor.outputs[0];
    for (size_t d = 0; d < 2; d++) in_[d] = size(x, 2 + d), out_[d] = size(y, 2 + d);
    images_ = size(x, 0), channels_ = size(x, 1);
  }

  Module run() {
    Module m;
    m.name = fused_.name;
    std::vector<Stmt> body;
    for (Value* v : {&in_[0], &in_[1], &out_[0], &out_[1], &channels_})
      if (!is_const_int(v->expr())) *v = declare(body, "size", *v);
    const Value x = declare(body, "x", pointer_to(fused_.anchor.inputs[0])),
                parts = declare(body, "parts", part_count());
    int64_t height = 0, width = 0;
    if (is_const_int(in_[0].expr(), &height) && is_const_int(in_[1].expr(), &width))
      planes_ = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, height * width));
    const Value groups = (images_ * channels_ + number(planes_ - 1)) / number(planes_);
    body.push_back(loop("task", (groups * parts).expr(), LoopKind::parallel,
                        [&](const Value& task) { return planes(x, parts, task); }));
    m.functions.push_back(fused_.launch(make_seq(std::move(body))));
    return m;
  }

 private:
  static Value largest(const Value& a, const Value& b) {
    return Value(make_binary(BinaryOp::max, a.expr(), b.expr()));
  }
  Value part_count() const {
    return largest(number(1), least(out_[0], in_[0] * in_[1] / number(2 * kGrain)));
  }

  /// a combined with b; `nothing` changes no value.
  Value both(const Value& a, const Value& b) const { return average_ ? a + b : largest(a, b); }
  Expr nothing(int width) const {
    const Expr e = average_ ? make_const(0, f32) : reduce_identity(ReduceOp::max, f32);
    return width == 1 ? e : make_cast(e, Type::vector(f32, width));
  }
  static Value at(const Value& from, const Value& offset, int width) {
    return Value(make_load(from.expr(), offset.expr(), width));
  }
  static Stmt put(const Value& to, const Value& offset, const Value& value) {
    return make_stmt<Store>({}, to.expr(), offset.expr(), value.expr());
  }

  /// one(j, width) for all j of `extent`: vectors, then shorter ones, or single values where it is not known.
  Stmt along(const Value& extent, const std::function<Stmt(const Value& j, int width)>& one) const {
    int64_t known = 0;
    std::vector<Stmt> out;
    const bool is_known = is_const_int(extent.expr(), &known);
    const Value whole = is_known ? number(known / lanes_ * lanes_)
                                 : declare(out, "whole", extent / number(lanes_) * number(lanes_));
    if (!is_known || known >= lanes_)
      out.push_back(loop_from("j", index(0), whole.expr(), lanes_,
                              [&](const Value& j) { return one(j, lanes_); }));
    if (!is_known)
      out.push_back(loop_from("j", whole.expr(), extent.expr(), 1,
                              [&](const Value& j) { return one(j, 1); }));
    for (int64_t done = known / lanes_ * lanes_, width = lanes_ / 2; is_known && width; width /= 2)
      if (known - done >= width) {
        out.push_back(one(number(done), static_cast<int>(width)));
        done += width;
      }
    return make_seq(std::move(out));
  }

  struct Task {
    Value image, channel, plane;  ///< its first value
    Value combined, length;       ///< scratch: rows of values, and their length
    Value empty, counts;          ///< scratch: values that change nothing, columns of each window
  };

  /// Part of the rows of some planes, with the same scratch.
  Stmt planes(const Value& x, const Value& parts, const Value& task) const {
    std::vector<Stmt> in;
    Task t;
    const Value part = declare(in, "part", task % parts),
                first = declare(in, "first", task / parts * number(planes_));
    // As long as the last window reaches, in whole vectors.
    const Value reach = (out_[1] + number(lanes_)) * number(stride_[1]) +
                        number(kernel_[1] * dilation_[1] + 2 * lanes_);
    t.length = declare(in, "length", largest(reach, in_[1] + number(before_[1] + 2 * lanes_)));
    t.combined = declare(in, "combined", scratch_floats(0, t.length * number(kRows + 2)));
    t.empty = declare(in, "empty", t.combined + t.length * number(kRows));
    t.counts = declare(in, "counts", t.empty + t.length);
    in.push_back(loop("j", (t.length * number(kRows + 1)).expr(), LoopKind::serial,
                      [&](const Value& j) { return put(t.combined, j, Value(nothing(1))); }));
    if (average_)
      in.push_back(loop("j", out_[1].expr(), LoopKind::serial, [&](const Value& j) {
        return put(t.counts, j, Value(make_cast(positions(1, j).expr(), Type(f32))));
      }));
    const Value begin = declare(in, "begin", part * out_[0] / parts),
                end = declare(in, "end", (part + number(1)) * out_[0] / parts),
                behind = least(first + number(planes_), images_ * channels_);
    in.push_back(loop_from("p", first.expr(), behind.expr(), 1, [&](const Value& p) {
      std::vector<Stmt> one;
      t.image = declare(one, "image", p / channels_);
      t.channel = declare(one, "channel", p % channels_);
      t.plane = declare(one, "plane", x + p * (in_[0] * in_[1]));
      one.push_back(loop_from("block", begin.expr(), end.expr(), kRows, [&](const Value& block) {
        const Value count = least(number(kRows), end - block);
        const auto row = [&](const Value& i) { return t.combined + i * t.length; };
        return make_seq({loop("i", count.expr(), LoopKind::serial,
                              [&](const Value& i) { return combine_rows(t, block + i, row(i)); }),
                         loop("i", count.expr(), LoopKind::serial, [&](const Value& i) {
                           return combine_columns(t, block + i, row(i));
                         })});
      }));
      return make_seq(std::move(one));
    }));
    return make_seq(std::move(in));
  }

  /// Positions of window `o` along d that count.
  Value positions(int d, const Value& o) const {
    const Value start = o * number(stride_[d]) - number(before_[d]);
    const Value low = number(counts_pads_ ? -before_[d] : 0),
                high = counts_pads_ ? in_[d] + number(behind_[d]) : in_[d];
    return least(start + number(kernel_[d]), high) - largest(start, low);
  }

  /// The inputs of output row i, kernel rows combined, into `row` behind the pads.
  Stmt combine_rows(const Task& t, const Value& i, const Value& row) const {
    std::vector<Stmt> body;
    std::vector<Value> lines;
    const Value to = declare(body, "to", row + number(before_[1]));
    const Value first = declare(body, "first", i * number(stride_[0]) - number(before_[0]));
    for (int64_t r = 0; r < kernel_[0]; r++) {
      const Value h = declare(body, "h", first + number(r * dilation_[0]));
      lines.push_back(declare(body, "line",
                              select(number(0) <= h && h < in_[0], t.plane + h * in_[1], t.empty)));
    }
    body.push_back(along(in_[1], [&](const Value& j, int width) {
      Value v = at(lines[0], j, width);
      for (size_t r = 1; r < lines.size(); r++) v = both(v, at(lines[r], j, width));
      return put(to, j, v);
    }));
    return make_seq(std::move(body));
  }

  /// Output row i of such a row.
  Stmt combine_columns(const Task& t, const Value& i, const Value& row) const {
    std::vector<Stmt> body;
    const Value from = declare(body, "from", row);
    Value height;
    if (average_)
      height = declare(body, "height", Value(make_cast(positions(0, i).expr(), Type(f32))));
    body.push_back(along(out_[1], [&](const Value& j, int width) {
      std::vector<Stmt> one;
      Value v = declare(one, "v", column(one, from, j, 0, width));
      for (int64_t s = 1; s < kernel_[1]; s++)
        v = declare(one, "v", both(v, column(one, from, j, s, width)));
      if (average_) {
        const Value h = width == 1 ? height : Value(make_broadcast(height.expr(), width));
        v = declare(one, "mean", v / (h * at(t.counts, j, width)));
      }
      const auto store = [&](const Value& lane, const Value& value) {
        return fused_.store({t.image, t.channel, i, j + lane}, value);
      };
      if (width == 1) one.push_back(store(number(0), v));
      else
        for (Stmt& s : store_lanes(v.expr(), width, store)) one.push_back(std::move(s));
      return make_seq(std::move(one));
    }));
    return make_seq(std::move(body));
  }

  /// Column s of the windows of `width` outputs from j on.
  Value column(std::vector<Stmt>& body, const Value& from, const Value& j, int64_t s,
               int width) const {
    const Value first = j * number(stride_[1]) + number(s * dilation_[1]);
    if (stride_[1] == 1 || width == 1) return at(from, first, width);
    std::vector<Value> vectors;
    if (stride_[1] == 2)
      for (int k = 0; k < 2; k++)
        vectors.push_back(declare(body, "pair", at(from, first + number(k * width), width)));
    std::vector<Expr> lanes;
    for (int l = 0; l < width; l++)
      lanes.push_back(vectors.empty()
                          ? at(from, first + number(l * stride_[1]), 1).expr()
                          : make_lane(vectors[static_cast<size_t>(2 * l / width)].expr(),
                                      make_int(2 * l % width, Type(i32))));
    return Value(make_vector(std::move(lanes)));
  }

  const FusedTask& fused_;
  int lanes_;
  bool average_, counts_pads_ = false;
  int64_t kernel_[2], stride_[2], dilation_[2], before_[2], behind_[2];
  Value in_[2], out_[2], images_, channels_;
  int64_t planes_ = 1;  ///< image channels of a task
};

bool accepts(const ir::Task& t) {
  return (t.name == "max_pool2d" || t.name == "avg_pool2d") && dtype_of(t.inputs[0]) == f32 &&
         t.attrs.at("kernel_h") <= kMostTaps && t.attrs.at("kernel_w") <= kMostTaps;
}

}  // namespace

CpuSchedule cpu_pool_schedule() {
  return {{"pool of rows", accepts, false, true, false},
          [](const FusedTask& f, const CpuTargetInfo& t) { return Pool(f, t).run(); }};
}

}  // namespace hidet::graph
