// depthwise.cpp - the inner loops of depthwise convolutions (docs/cpu_kernels.md, 6).
#include "schedules/depthwise.h"

#include <hidet/ir/primitives.h>

namespace hidet::graph {
using namespace ir;

namespace {

/// acc[p] += x * w for the columns of one kernel row.
Stmt kernel_row(const DepthwiseGroup& g, const std::vector<VarRef>& acc, const Value& r) {
  const ConvWindow& w = g.window;
  std::vector<Stmt> out;
  const Value line = declare(out, "line", g.line(r));
  std::vector<Value> weights;
  for (int64_t s = 0; s < w.s; s++) {
    const Value at = (r * number(w.s) + number(s)) * number(w.c);
    weights.push_back(declare(out, "w", Value(load_f32(g.weights, at, g.width))));
  }
  const int64_t reach = (g.pixels - 1) * w.sw + (w.s - 1) * w.dw + 1;
  for (int64_t k = 0; k < reach; k++) {
    if (g.reads && !g.reads(k)) continue;
    const VarRef x = make_var("x", Type::vector(f32, g.width));
    std::vector<Stmt> uses{make_stmt<DeclVar>({}, x, load_f32(line, number(k * w.pixel), g.width))};
    for (int64_t p = 0; p < g.pixels; p++) {
      const int64_t tap = k - p * w.sw;
      if (tap < 0 || tap % w.dw || tap / w.dw >= w.s) continue;
      const VarRef& a = acc[static_cast<size_t>(p)];
      uses.push_back(make_stmt<Assign>(
          {}, a, call_math("fma", {x, weights[static_cast<size_t>(tap / w.dw)].expr(), a})));
    }
    if (uses.size() == 1) continue;
    if (g.column_inside)
      out.push_back(
          make_stmt<If>({}, g.column_inside(k).expr(), make_seq(std::move(uses)), Stmt()));
    else out.insert(out.end(), uses.begin(), uses.end());
  }
  return make_seq(std::move(out));
}

}  // namespace

Stmt depthwise_group(const DepthwiseGroup& g) {
  const Type vector = Type::vector(f32, g.width);
  std::vector<Stmt> out;
  std::vector<VarRef> acc;
  for (int64_t p = 0; p < g.pixels; p++) {
    acc.push_back(make_var("acc" + std::to_string(p), vector, true));
    out.push_back(make_stmt<DeclVar>({}, acc.back(), make_cast(make_const(0, f32), vector)));
  }
  out.push_back(loop("r", index(g.window.r), LoopKind::serial, [&](const Value& r) {
    const Stmt taps = kernel_row(g, acc, r);
    if (!g.row_inside) return taps;
    return Stmt(make_stmt<If>({}, g.row_inside(r).expr(), taps, Stmt()));
  }));
  for (int64_t p = 0; p < g.pixels; p++)
    for (Stmt& s : store_lanes(
             acc[static_cast<size_t>(p)], g.width,
             [&](const Value& lane, const Value& value) { return g.store(p, lane, value); }))
      out.push_back(std::move(s));
  return make_seq(std::move(out));
}

Stmt in_channel_vectors(int64_t count, int lanes,
                        const std::function<Stmt(const Value& c, int width)>& body) {
  std::vector<Stmt> out;
  int64_t done = count / lanes * lanes;
  if (done)
    out.push_back(loop_from("c", index(0), index(done), lanes,
                            [&](const Value& c) { return body(c, lanes); }));
  for (int width = lanes / 2; width >= 1; width /= 2)
    if (count - done >= width) {
      out.push_back(body(number(done), width));
      done += width;
    }
  return make_seq(std::move(out));
}

}  // namespace hidet::graph
