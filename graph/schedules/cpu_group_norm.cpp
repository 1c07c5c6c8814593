// cpu_group_norm.cpp - group and instance norms in NHWC (docs/cpu_kernels.md, 7). An image is cut into strips of pixels that fit the L1
// cache. Each strip sums its channels, and the squares about its own mean, in vectors along the channels; the sums of a group are those
// of its strips and channels, squares moved to the group's mean. Then each strip is normalised and goes through the epilogue. Strips
// depend on the number of channels alone, so the bits do not depend on the number of threads, and a thread meets the same strips twice.
#include "schedules/depthwise.h"

#include <hidet/ir/primitives.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Values of a strip, about.
constexpr int64_t kStripValues = 8192;
/// Sums of a vector of channels that are taken side by side.
constexpr int64_t kSums = 4;
/// Scratch memory: sums and squares of each strip; one row of channels.
constexpr int kParts = 0, kRow = 1;

class GroupNorm {
 public:
  GroupNorm(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused),
        lanes_(tile_shape(target).lanes),
        x_(fused.anchor.inputs[0]),
        c_(extent_of(x_, 3)),
        groups_(fused.anchor.attrs.at("groups")),
        strip_(std::max<int64_t>(1, kStripValues / c_)) {}

  Module run() {
    std::vector<Stmt> body;
    images_ = declare(body, "images", extent(0));
    width_ = declare(body, "width", extent(2));
    pixels_ = declare(body, "pixels", extent(1) * width_);
    strips_ = declare(body, "strips", (pixels_ + number(strip_ - 1)) / number(strip_));
    const Value from = declare(body, "x", pointer_to(x_)),
                parts = declare(body, "parts",
                                scratch_floats(kParts, images_ * strips_ * number(2 * c_)));
    body.push_back(each_strip([&](const Strip& s, std::vector<Stmt>& in) {
      const Value first = declare(in, "from", from + (s.image * pixels_ + s.first) * number(c_));
      in.push_back(moments(first, s.count, parts + s.task * number(2 * c_)));
    }));
    body.push_back(loop("image", images_.expr(), LoopKind::serial, [&](const Value& image) {
      return of_image(image, parts + image * strips_ * number(2 * c_));
    }));
    body.push_back(
        each_strip([&](const Strip& s, std::vector<Stmt>& in) { in.push_back(normalised(s)); }));
    Module m;
    m.name = fused_.name;
    m.functions.push_back(fused_.launch(make_seq(std::move(body))));
    return m;
  }

 private:
  Value extent(size_t d) const { return Value(make_cast(shape_of(x_)[d], Type(i64))); }
  const Compute& compute(const char* name) const {
    for (const Compute& c : fused_.anchor.computes)
      if (c.tensor->name == name) return c;
    return fused_.anchor.computes.back();
  }

  /// Its number among all, its image, its first pixel there and how many it has.
  struct Strip {
    Value task, image, first, count;
  };
  Stmt each_strip(const std::function<void(const Strip&, std::vector<Stmt>&)>& one) const {
    return loop("task", (images_ * strips_).expr(), LoopKind::parallel, [&](const Value& task) {
      std::vector<Stmt> in;
      Strip s;
      s.task = task;
      s.image = declare(in, "image", task / strips_);
      s.first = declare(in, "first", task % strips_ * number(strip_));
      s.count = declare(in, "count", least(number(strip_), pixels_ - s.first));
      one(s, in);
      return make_seq(std::move(in));
    });
  }

  /// to[0, c) = sums of the channels of `count` pixels, to[c, 2 c) = their squares about the mean of these pixels.
  Stmt moments(const Value& from, const Value& count, const Value& to) const {
    return in_channel_vectors(c_, lanes_, [&](const Value& c, int width) {
      std::vector<Stmt> out;
      const Value at = declare(out, "at", from + c);
      const Value sum = over_pixels(
          out, at, count, width,
          [](std::vector<Stmt>&, const Value& v, const Value& so_far) { return so_far + v; });
      const Value pixels(make_broadcast(make_cast(count.expr(), Type(f32)), width));
      const Value mean = declare(out, "mean", sum / pixels);
      const Value squares = over_pixels(
          out, at, count, width, [&](std::vector<Stmt>& in, const Value& v, const Value& so_far) {
            const Value d = declare(in, "d", v - mean);
            return Value(call_math("fma", {d.expr(), d.expr(), so_far.expr()}));
          });
      out.push_back(make_stmt<Store>({}, to.expr(), c.expr(), sum.expr()));
      out.push_back(make_stmt<Store>({}, to.expr(), (c + number(c_)).expr(), squares.expr()));
      return make_seq(std::move(out));
    });
  }
  using Step = std::function<Value(std::vector<Stmt>&, const Value& v, const Value& so_far)>;
  /// step over the `count` pixels from `at` on, `width` channels, from 0.
  Value over_pixels(std::vector<Stmt>& body, const Value& at, const Value& count, int width,
                    const Step& step) const {
    const Type vector = Type::vector(f32, width);
    std::vector<VarRef> sums;
    for (int64_t i = 0; i < kSums; i++) {
      sums.push_back(make_var("sum" + std::to_string(i), vector, true));
      body.push_back(make_stmt<DeclVar>({}, sums.back(), make_cast(make_const(0, f32), vector)));
    }
    const auto add = [&](std::vector<Stmt>& in, const Value& pixel, int64_t i) {
      const VarRef& sum = sums[static_cast<size_t>(i)];
      const Value v = declare(in, "v", Value(load_f32(at, pixel * number(c_), width)));
      in.push_back(make_stmt<Assign>({}, sum, step(in, v, Value(Expr(sum))).expr()));
    };
    const Value whole = declare(body, "whole", count / number(kSums) * number(kSums));
    body.push_back(loop_from("p", index(0), whole.expr(), kSums, [&](const Value& p) {
      std::vector<Stmt> in;
      for (int64_t i = 0; i < kSums; i++) add(in, i ? p + number(i) : p, i);
      return make_seq(std::move(in));
    }));
    body.push_back(loop_from("p", whole.expr(), count.expr(), 1, [&](const Value& p) {
      std::vector<Stmt> in;
      add(in, p, 0);
      return make_seq(std::move(in));
    }));
    const auto both = [&](size_t a, size_t b) {
      return Value(Expr(sums[a])) + Value(Expr(sums[b]));
    };
    return declare(body, "total", both(0, 1) + both(2, 3));
  }

  /// The sums of an image's groups from those of its strips, and what the last step reads of them.
  Stmt of_image(const Value& image, const Value& from) const {
    std::vector<Stmt> out;
    const Value parts = declare(out, "of", from),
                row = declare(out, "row", scratch_floats(kRow, number(c_)));
    out.push_back(over_strips(
        parts, row,
        [&](const Value& sum, const Value&, const Value&, const Value&) { return sum; }));
    out.push_back(of_groups(compute("total"), image, row));
    out.push_back(of_channels(compute("mean"), image));
    out.push_back(over_strips(
        parts, row,
        [&](const Value& sum, const Value& squares, const Value& count, const Value& c) {
          const Value d = sum / count - element(compute("mean").tensor, {image, c});
          return squares + count * d * d;
        }));
    out.push_back(of_groups(compute("squares"), image, row));
    out.push_back(of_channels(compute("inverse"), image));
    return make_seq(std::move(out));
  }
  using OfStrip = std::function<Value(const Value& sum, const Value& squares, const Value& count,
                                      const Value& c)>;
  /// row[c] = the sum of `term` over the strips.
  Stmt over_strips(const Value& parts, const Value& row, const OfStrip& term) const {
    const auto at = [](const Value& p, const Value& i) {
      return Value(make_load(p.expr(), i.expr()));
    };
    const auto in_vectors = [&](const std::function<Stmt(const Value&)>& one) {
      return vector_row(index(c_), lanes_, one);
    };
    return make_seq({in_vectors([&](const Value& c) {
                       return make_stmt<Store>({}, row.expr(), c.expr(), make_const(0, f32));
                     }),
                     loop("strip", strips_.expr(), LoopKind::serial, [&](const Value& strip) {
                       std::vector<Stmt> in;
                       const Value part = declare(in, "part", parts + strip * number(2 * c_));
                       const Value pixels = least(number(strip_), pixels_ - strip * number(strip_));
                       const Value count = declare(in, "count", cast(pixels, Type(f32)));
                       in.push_back(in_vectors([&](const Value& c) {
                         const Value v = term(at(part, c), at(part, c + number(c_)), count, c);
                         return make_stmt<Store>({}, row.expr(), c.expr(), (at(row, c) + v).expr());
                       }));
                       return make_seq(std::move(in));
                     })});
  }
  /// A compute by group: the sum of the row's channels.
  Stmt of_groups(const Compute& c, const Value& image, const Value& row) const {
    const int64_t size = c_ / groups_;
    return loop("group", index(groups_), LoopKind::serial, [&](const Value& g) {
      std::vector<Stmt> in;
      const VarRef sum = make_var("sum", Type(f32), true);
      in.push_back(make_stmt<DeclVar>({}, sum, make_const(0, f32)));
      in.push_back(loop("k", index(size), LoopKind::serial, [&](const Value& k) {
        const Expr v = make_load(row.expr(), (g * number(size) + k).expr());
        return make_stmt<Assign>({}, sum, make_binary(BinaryOp::add, sum, v));
      }));
      in.push_back(fused_.store_of(c, {image, g}, Value(Expr(sum))));
      return make_seq(std::move(in));
    });
  }
  Stmt of_channels(const Compute& c, const Value& image) const {
    return loop("channel", index(c_), LoopKind::serial, [&](const Value& channel) {
      return fused_.store_of(c, {image, channel}, value_at(c, {image, channel}));
    });
  }

  Stmt normalised(const Strip& s) const {
    const Compute& y = fused_.anchor.computes.back();
    return loop("p", s.count.expr(), LoopKind::serial, [&](const Value& p) {
      std::vector<Stmt> in;
      const Value pixel = declare(in, "pixel", s.first + p);
      const Value row = declare(in, "row", pixel / width_),
                  column = declare(in, "column", pixel % width_);
      in.push_back(vector_row(index(c_), lanes_, [&](const Value& c) {
        const std::vector<Value> at{s.image, row, column, c};
        return fused_.store(at, value_at(y, at));
      }));
      return make_seq(std::move(in));
    });
  }

  const FusedTask& fused_;
  int lanes_;
  VarRef x_;
  int64_t c_, groups_, strip_;
  Value images_, width_, pixels_, strips_;
};

bool accepts(const Task& t) {
  return t.name == "group_norm_nhwc" && is_f32_or_half(dtype_of(t.inputs[0])) &&
         constant_shape(t.inputs[0], 3) && extent_of(t.inputs[0], 3) >= 1;
}

}  // namespace

CpuSchedule cpu_group_norm_schedule() {
  return {{"group norm", accepts, false, true, true},
          [](const FusedTask& f, const CpuTargetInfo& t) { return GroupNorm(f, t).run(); },
          {}};
}

}  // namespace hidet::graph
