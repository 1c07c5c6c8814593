// conv_window.cpp - the window of a convolution over an NHWC image, and the copies of its input pixels.
#include "schedules/conv_window.h"

#include <hidet/ir/rewriter.h>

namespace hidet::graph {
using namespace ir;

namespace {

/// Elements from a pixel to the next in a copy: rows of a tile must not fall into one set of the L1 cache.
int64_t spread(int64_t c, int64_t stride) { return c * stride >= 128 ? c + 16 : c; }

Value extent(const VarRef& tensor, size_t d) {
  return Value(make_cast(shape_of(tensor).at(d), Type(i64)));
}
Value largest(const Value& a, const Value& b) {
  return Value(make_binary(BinaryOp::max, a.expr(), b.expr()));
}

/// `v`, under a name where it is not a number.
Value named(std::vector<Stmt>& body, const std::string& name, const Value& v) {
  return is_const_int(v.expr()) ? v : declare(body, name, v);
}

/// one(at, width) for vectors, then single values, of `count`.
Stmt in_vectors(const Value& count, int lanes,
                const std::function<Stmt(const Value& at, int width)>& one) {
  std::vector<Stmt> out;
  const Value whole = declare(out, "whole", count / number(lanes) * number(lanes));
  out.push_back(
      loop_from("j", index(0), whole.expr(), lanes, [&](const Value& j) { return one(j, lanes); }));
  out.push_back(
      loop_from("j", whole.expr(), count.expr(), 1, [&](const Value& j) { return one(j, 1); }));
  return make_seq(std::move(out));
}

Stmt copy_run(const Value& to, const Value& from, const Value& count, int lanes) {
  int64_t known = 0;
  if (is_const_int(count.expr(), &known)) return copy_values(to, from, known, lanes);
  return in_vectors(count, lanes, [&](const Value& at, int width) -> Stmt {
    return make_stmt<Store>({}, to.expr(), at.expr(), load_f32(from, at, width));
  });
}
Stmt zero_run(const Value& to, const Value& count, int lanes) {
  int64_t known = 0;
  if (is_const_int(count.expr(), &known)) return zero_values(to, known, lanes);
  return in_vectors(count, lanes, [&](const Value& at, int width) -> Stmt {
    const Expr zero = make_const(0, f32);
    return make_stmt<Store>({}, to.expr(), at.expr(),
                            width == 1 ? zero : make_cast(zero, Type::vector(f32, width)));
  });
}

}  // namespace

TileShape shape_in_place(const CpuTargetInfo& target, int64_t c, int64_t flat_n) {
  const TileShape t = tile_shape(target), wide = tile_shape(target, 3);
  const bool better = c * 4 % 4096 == 0 || (flat_n && flat_n % wide.columns() == 0);
  return better && wide.rows > 8 ? wide : t;
}

ConvWindow::ConvWindow(const FusedTask& fused) {
  const VarRef &x = fused.anchor.inputs[0], &y = fused.anchor.outputs[0];
  const auto& at = fused.anchor.attrs;
  const auto channels = at.find("n");
  height = extent(x, 1), width = extent(x, 2), oh = extent(y, 1), ow = extent(y, 2);
  dtype = dtype_of(x);
  c = extent_of(x, 3), n = channels == at.end() ? c : channels->second;
  r = at.at("kernel_h"), s = at.at("kernel_w"), sh = at.at("stride_h"), sw = at.at("stride_w");
  dh = at.at("dilation_h"), dw = at.at("dilation_w");
  top = at.at("pad_t"), left = at.at("pad_l"), bottom = at.at("pad_b"), right = at.at("pad_r");
  pixel = c;
  row = width * number(c);
}

void ConvWindow::set_copied() {
  const bool flat = is_point() && top == 0 && left == 0;  // gathered: only the pixels that are read
  pixel = spread(c, flat ? 1 : sw);
  row = ((ow - number(1)) * number(sw) + number((s - 1) * dw + 1)) * number(pixel);
}

int64_t ConvWindow::weight_bytes(int64_t columns) const {
  return r * s * c * ((n + columns - 1) / columns * columns) * static_cast<int64_t>(dtype.bytes());
}

void ConvWindow::set_taps(TileKernel& t) const {
  t.panel_stride = r * s * c * kPanelColumns;
  t.run = c;
  if (r > 1) t.taps.push_back({r, number(dh) * row});
  if (s > 1 && pixel == c && dw == 1) t.run = s * c;
  else if (s > 1) t.taps.push_back({s, number(dw * pixel)});
}

Value ConvWindow::gather(std::vector<Stmt>& in, const Value& source, const Value& first,
                         const Value& count, const Value& most, int lanes) const {
  const Value copy = declare(in, "pixels", scratch_floats(0, most * number(pixel)));
  in.push_back(loop("i", count.expr(), LoopKind::serial, [&](const Value& i) {
    std::vector<Stmt> one;
    const Value flat = declare(one, "pixel", first + i);
    const Value at =
        declare(one, "at", (flat / ow * (number(sh) * width) + flat % ow * number(sw)) * number(c));
    const Value to = declare(one, "to", copy + i * number(pixel)),
                from = declare(one, "from", source + at);
    one.push_back(copy_values(to, from, c, lanes));
    return make_seq(std::move(one));
  }));
  return copy;
}

Value ConvWindow::strip(std::vector<Stmt>& in, const Value& source, const Value& first,
                        const Value& count, const Value& most, int lanes) const {
  const Value reach = number((r - 1) * dh + 1),
              pixels = (ow - number(1)) * number(sw) + number((s - 1) * dw + 1);
  const Value before = named(in, "before", least(number(left), pixels)),
              inside = named(in, "inside", largest(number(0), least(width, pixels - number(left)))),
              behind = named(in, "behind", pixels - before - inside), line = named(in, "line", row);
  const Value copy =
      declare(in, "pixels", scratch_floats(0, ((most - number(1)) * number(sh) + reach) * line));
  in.push_back(loop("i", ((count - number(1)) * number(sh) + reach).expr(), LoopKind::serial,
                    [&](const Value& i) {
                      std::vector<Stmt> one, copied;
                      const Value h = declare(one, "h", first * number(sh) - number(top) + i),
                                  to = declare(one, "to", copy + i * line);
                      copied.push_back(zero_run(to, before * number(pixel), lanes));
                      const Value begin = declare(copied, "begin", to + before * number(pixel)),
                                  from = declare(copied, "from", source + h * (width * number(c)));
                      if (pixel == c)
                        copied.push_back(copy_run(begin, from, inside * number(c), lanes));
                      else
                        copied.push_back(
                            loop("w", inside.expr(), LoopKind::serial, [&](const Value& w) {
                              std::vector<Stmt> p;
                              const Value tp = declare(p, "tp", begin + w * number(pixel)),
                                          fp = declare(p, "fp", from + w * number(c));
                              p.push_back(copy_values(tp, fp, c, lanes));
                              return make_seq(std::move(p));
                            }));
                      const Value rest = declare(copied, "rest", begin + inside * number(pixel));
                      copied.push_back(zero_run(rest, behind * number(pixel), lanes));
                      const Value valid = number(0) <= h && h < height;
                      one.push_back(make_stmt<If>({}, valid.expr(), make_seq(std::move(copied)),
                                                  zero_run(to, line, lanes)));
                      return make_seq(std::move(one));
                    }));
  return copy;
}

std::vector<Stmt> prefetch_residuals(const FusedTask& fused, const std::vector<Value>& indices) {
  const FusedTask::Stored s = fused.finish(indices, Value(make_const(0, f32)));
  return prefetch_reads(s.value.expr(), size_of(shape_of(fused.output)));
}

}  // namespace hidet::graph
