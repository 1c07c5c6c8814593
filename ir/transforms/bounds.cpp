// bounds.cpp - see bounds.h. Arithmetic on ends is done in 128 bits and checked against the type.
#include "transforms/bounds.h"

#include <hidet/ir/limits.h>
#include <hidet/ir/rewriter.h>

#include <algorithm>

namespace hidet::ir {
namespace {

using Wide = __int128;

/// The interval of a result, or the whole type where it may wrap.
Interval checked(Wide low, Wide high, DType t) {
  const Interval all = whole_range(t);
  if (low < all.low || high > all.high) return all;
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}
/// Of the four ends.
template <class F>
Interval of_ends(const Interval& x, const Interval& y, DType t, const F& op) {
  const Wide ends[] = {op(x.low, y.low), op(x.low, y.high), op(x.high, y.low), op(x.high, y.high)};
  return checked(*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4), t);
}

/// Truncating and flooring division; x / 0 is 0.
Interval quotient(BinaryOp op, const Interval& x, const Interval& y, DType t) {
  const bool floors = op == BinaryOp::floordiv;
  const auto divide = [&](Wide a, Wide b) {
    const Wide q = a / b;
    return floors && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
  };
  Interval out{0, 0};
  bool any = y.low <= 0 && y.high >= 0;  // a divisor of 0 gives 0
  const auto with = [&](const Interval& d) {
    if (d.low > d.high) return;
    const Interval part = of_ends(x, d, t, divide);
    out = any ? Interval{std::min(out.low, part.low), std::max(out.high, part.high)} : part;
    any = true;
  };
  with({std::max<int64_t>(y.low, 1), y.high});
  with({y.low, std::min<int64_t>(y.high, -1)});
  return out;
}
/// The remainder is smaller than the divisor and no larger than a dividend of its sign; x % 0 is 0.
Interval remainder(BinaryOp op, const Interval& x, const Interval& y, DType t) {
  const Wide size = std::max<Wide>(y.high < 0 ? -Wide{y.high} : Wide{y.high},
                                   y.low < 0 ? -Wide{y.low} : Wide{y.low});
  const Wide most = std::max<Wide>(size - 1, 0);
  if (x.low >= 0 && (op == BinaryOp::mod || y.low >= 0))
    return checked(0, std::min<Wide>(most, x.high), t);
  if (op == BinaryOp::floormod) return checked(y.low < 0 ? -most : 0, y.high > 0 ? most : 0, t);
  return checked(std::max<Wide>(-most, std::min<Wide>(x.low, 0)),
                 std::min<Wide>(most, std::max<Wide>(x.high, 0)), t);
}

}  // namespace

Interval whole_range(DType t) {
  if (t.is_boolean()) return {0, 1};
  return {t.min_int(), t.bits() == 64 ? INT64_MAX : static_cast<int64_t>(t.max_int())};
}

Bounds::Bounds(const Function& f) : f_(f) {
  if (!f.body) return;
  visit_all(f.body, [&](const Node& n) {
    const DeclVar* d = as<DeclVar>(&n);
    if (d && !d->var->is_mutable && d->init) values_.emplace(d->var.get(), d->init);
    if (const For* loop = as<For>(&n))
      loops_.emplace(loop->var.get(), Loop{loop->begin, loop->end, loop->step});
  });
}

bool Bounds::known(const Expr& e) {
  return e->type.is_scalar() && !e->type.dtype().is_float() && e->type.dtype() != u64;
}

Interval Bounds::of(const Expr& e) {
  int64_t n;
  if (is_const_int(e, &n)) return {n, n};
  if (const auto it = done_.find(e.get()); it != done_.end()) return it->second;
  const DType t = e->type.dtype();
  const Interval all = whole_range(t);
  done_.emplace(e.get(), all);  // what leads back to itself is not known
  const Interval found = known(e) ? derive(e) : all;
  return done_[e.get()] = found.within(all) && found.low <= found.high ? found : all;
}

Interval Bounds::derive(const Expr& e) {
  const Interval all = whole_range(e->type.dtype());
  switch (e->kind) {
    case Kind::Var: {
      if (const auto it = values_.find(e.get()); it != values_.end()) return of(it->second);
      const auto loop = loops_.find(e.get());
      if (loop == loops_.end() || !known(loop->second.end)) return all;
      const Interval begin = of(loop->second.begin), end = of(loop->second.end);
      // A step that passes the end of the type would start again below.
      if (end.low == INT64_MIN || Wide{end.high} - 1 + of(loop->second.step).high > all.high)
        return all;
      return {begin.low, std::max(end.high - 1, begin.low)};
    }
    case Kind::DimSymbol: return {0, all.high};
    case Kind::Binary: return binary(*as<Binary>(e));
    case Kind::Prim: return prim(*as<Prim>(e));
    case Kind::Cast: {
      const Cast& c = *as<Cast>(e);
      if (c.how != CastKind::value || !known(c.a)) return all;
      const Interval inner = of(c.a);
      return inner.within(all) ? inner : all;
    }
    case Kind::Select: {
      const Interval x = of(as<Select>(e)->a), y = of(as<Select>(e)->b);
      return {std::min(x.low, y.low), std::max(x.high, y.high)};
    }
    default: return all;
  }
}

Interval Bounds::binary(const Binary& b) {
  const DType t = b.type.dtype();
  const Interval all = whole_range(t);
  if (!known(b.a) || !known(b.b) || t.is_boolean()) return all;
  const Interval x = of(b.a), y = of(b.b);
  switch (b.op) {
    case BinaryOp::add: return checked(Wide{x.low} + y.low, Wide{x.high} + y.high, t);
    case BinaryOp::sub: return checked(Wide{x.low} - y.high, Wide{x.high} - y.low, t);
    case BinaryOp::mul: return of_ends(x, y, t, [](Wide a, Wide c) { return a * c; });
    case BinaryOp::div:
    case BinaryOp::floordiv: return quotient(b.op, x, y, t);
    case BinaryOp::mod:
    case BinaryOp::floormod: return remainder(b.op, x, y, t);
    case BinaryOp::min: return {std::min(x.low, y.low), std::min(x.high, y.high)};
    case BinaryOp::max: return {std::max(x.low, y.low), std::max(x.high, y.high)};
    case BinaryOp::bit_and:  // with a number that is not negative: not above it
      if (y.low >= 0) return {0, x.low >= 0 ? std::min(x.high, y.high) : y.high};
      return x.low >= 0 ? Interval{0, x.high} : all;
    case BinaryOp::shr:
      return y.low >= 0 && y.high < t.bits() && x.low >= 0
                 ? Interval{x.low >> y.high, x.high >> y.low}
                 : all;
    case BinaryOp::shl:
      return y.low >= 0 && y.high < t.bits() - 1
                 ? of_ends(
                       x, y, t, [](Wide a, Wide n) { return a * (Wide{1} << static_cast<int>(n)); })
                 : all;
    default: return all;
  }
}

/// Indices of threads and blocks, from the launch: its extents are expressions of the arguments.
Interval Bounds::prim(const Prim& p) {
  const Interval all = whole_range(p.type.dtype());
  const auto is = [&](const char* with) { return p.name.rfind(with, 0) == 0; };
  const bool block = is("thread_idx_") || is("block_dim_");
  if (!block && !is("block_idx_") && !is("grid_dim_")) return all;
  const size_t axis = static_cast<size_t>(p.name.back() - 'x');
  if (axis > 2) return all;
  int64_t most = block ? kMostBlock[axis] : kMostGrid[axis];
  const std::vector<Expr>& extents = block ? f_.launch.block : f_.launch.grid;
  if (f_.kind == FuncKind::cuda_kernel && axis < extents.size() && known(extents[axis]))
    most = std::clamp<int64_t>(of(extents[axis]).high, 1, most);
  return is("thread_idx_") || is("block_idx_") ? Interval{0, most - 1} : Interval{1, most};
}

}  // namespace hidet::ir
