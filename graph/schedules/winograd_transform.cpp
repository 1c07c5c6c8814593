// winograd_transform.cpp - the maps of F(2 x 2, 3 x 3), points 0, 1, -1, and of F(4 x 4, 3 x 3), points 0, +-sqrt(1/2), +-sqrt(2): their
// squares have the product 1, which keeps all factors near 1 and the error a quarter of that of the points 0, +-1, +-2.
#include "schedules/winograd_transform.h"

#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

#include <cmath>

namespace hidet::graph {
using namespace ir;

namespace {

const double kA = std::sqrt(0.5), kB = std::sqrt(2.0);

Value keep(std::vector<Stmt>& body, const Value& v) { return declare(body, "t", v); }

Value factor(double f, const Value& like) {
  return Value(make_broadcast(make_const(f, f32), like.type().lanes()));
}
/// f * x + y
Value scaled(std::vector<Stmt>& body, double f, const Value& x, const Value& y) {
  return keep(body, Value(call_math("fma", {factor(f, x).expr(), x.expr(), y.expr()})));
}
Value times(std::vector<Stmt>& body, double f, const Value& x) {
  return keep(body, factor(f, x) * x);
}

}  // namespace

WinogradTransform::Values WinogradTransform::input(std::vector<Stmt>& body, const Values& d) const {
  const auto sum = [&](const Value& a, const Value& b) { return keep(body, a + b); };
  const auto difference = [&](const Value& a, const Value& b) { return keep(body, a - b); };
  if (m == 2)
    return {difference(d[0], d[2]), sum(d[1], d[2]), difference(d[2], d[1]),
            difference(d[3], d[1])};
  const Value even_a = scaled(body, -2, d[2], d[4]), odd_a = scaled(body, -2, d[1], d[3]),
              even_b = scaled(body, -0.5, d[2], d[4]), odd_b = scaled(body, -0.5, d[1], d[3]);
  return {sum(d[0], scaled(body, -2.5, d[2], d[4])), scaled(body, kA, odd_a, even_a),
          scaled(body, -kA, odd_a, even_a),          scaled(body, kB, odd_b, even_b),
          scaled(body, -kB, odd_b, even_b),          sum(d[1], scaled(body, -2.5, d[3], d[5]))};
}

WinogradTransform::Values WinogradTransform::weight(std::vector<Stmt>& body,
                                                    const Values& g) const {
  if (m == 2) {
    const Value even = times(body, 0.5, keep(body, g[0] + g[2]));
    return {g[0], scaled(body, 0.5, g[1], even), scaled(body, -0.5, g[1], even), g[2]};
  }
  const Value even_a = times(body, -2.0 / 3, scaled(body, 0.5, g[2], g[0])),
              even_b = times(body, 1.0 / 6, scaled(body, 2, g[2], g[0]));
  return {g[0],
          scaled(body, -2.0 / 3 * kA, g[1], even_a),
          scaled(body, 2.0 / 3 * kA, g[1], even_a),
          scaled(body, kB / 6, g[1], even_b),
          scaled(body, -kB / 6, g[1], even_b),
          g[2]};
}

WinogradTransform::Values WinogradTransform::output(std::vector<Stmt>& body,
                                                    const Values& p) const {
  const Value sum_a = keep(body, p[1] + p[2]), difference_a = keep(body, p[1] - p[2]);
  if (m == 2) return {keep(body, p[0] + sum_a), keep(body, difference_a + p[3])};
  const Value sum_b = keep(body, p[3] + p[4]), difference_b = keep(body, p[3] - p[4]);
  return {keep(body, p[0] + sum_a + sum_b),
          scaled(body, kB, difference_b, times(body, kA, difference_a)),
          scaled(body, 2, sum_b, times(body, 0.5, sum_a)),
          scaled(body, 2 * kB, difference_b, scaled(body, kA / 2, difference_a, p[5]))};
}

WinogradTransform::Values WinogradTransform::both(std::vector<Stmt>& body, Map map,
                                                  const Values& values) const {
  const auto side = static_cast<size_t>(std::lround(std::sqrt(values.size())));
  HIDET_CHECK(side * side == values.size(), values.size(), " values are no square");
  std::vector<Values> columns;
  for (size_t j = 0; j < side; j++) {
    Values column;
    for (size_t i = 0; i < side; i++) column.push_back(values[i * side + j]);
    columns.push_back((this->*map)(body, column));
  }
  Values out;
  for (size_t i = 0; i < columns[0].size(); i++) {
    Values row;
    for (const Values& column : columns) row.push_back(column[i]);
    for (const Value& v : (this->*map)(body, row)) out.push_back(v);
  }
  return out;
}

}  // namespace hidet::graph
