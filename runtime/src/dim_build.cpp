// dim_build.cpp - the operators of DimExpr: each leaves its result in canonical form.
// Divisions by a number are reduced with x = c*q + r; min, max and broadcast are flat, sorted, without
// repetitions.
#include <algorithm>
#include <numeric>
#include <optional>

#include "hidet/runtime/error.h"
#include "src/dim_node.h"

namespace hidet {
namespace {

using detail::apply;
using detail::DimNode;
using detail::exact_mul;
using detail::Factors;
using detail::Polynomial;

// A product of sums is expanded up to this many terms; beyond, the sums stay factors.
constexpr size_t kMostTerms = 64;
// Operands of a min or max that are compared with one another.
constexpr size_t kMostCompared = 64;

DimExpr node(DimKind kind, DimExpr a, DimExpr b) {
  return DimNode::make(kind, {std::move(a), std::move(b)});
}

void add_product(Polynomial& out, const Factors& a, const Factors& b, int64_t coefficient) {
  Factors factors(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), factors.begin(), detail::DimLess());
  out.add(factors, coefficient);
}

// What remains of `factors` without those of `divisor`; nothing where one is not there.
std::optional<Factors> without(const Factors& factors, const Factors& divisor) {
  Factors rest;
  size_t at = 0;
  for (const DimExpr& f : factors) {
    if (at < divisor.size() && f == divisor[at]) at++;
    else rest.push_back(f);
  }
  return at == divisor.size() ? std::optional(rest) : std::nullopt;
}

// p / d where d is one product and divides every term, number and symbols; else nothing.
std::optional<Polynomial> exact_quotient(const Polynomial& p, const Polynomial& d) {
  if (d.terms.size() != 1) return std::nullopt;
  const auto& [divisor, number] = *d.terms.begin();
  Polynomial quotient;
  for (const auto& [factors, coefficient] : p.terms) {
    const auto rest = without(factors, divisor);
    if (!rest || apply(DimKind::mod, coefficient, number) != 0) return std::nullopt;
    quotient.add(*rest, apply(DimKind::floordiv, coefficient, number));
  }
  return quotient;
}

// Takes what every term of a and the one term of b have in common out of both: n*6 and n*4*m give 3
// and m*2. The sign of b is left alone.
void cancel_common(Polynomial& a, Polynomial& b) {
  if (b.terms.size() != 1 || a.terms.empty()) return;
  Factors common = b.terms.begin()->first;
  const int64_t number = b.terms.begin()->second;
  if (number < 0) return;
  int64_t gcd = number;
  for (const auto& [factors, coefficient] : a.terms) {
    gcd = std::gcd(gcd, coefficient);
    Factors both;
    std::set_intersection(common.begin(), common.end(), factors.begin(), factors.end(),
                          std::back_inserter(both), detail::DimLess());
    common = std::move(both);
  }
  if (gcd <= 1 && common.empty()) return;
  Polynomial divisor;
  divisor.add(common, gcd);
  const auto x = exact_quotient(a, divisor), y = exact_quotient(b, divisor);
  HIDET_CHECK(x && y);
  a = *x;
  b = *y;
}

// Splits p = c*whole + rest for a number c > 0. The constant and the terms that c divides go to `whole`.
void split(const Polynomial& p, int64_t c, Polynomial* whole, Polynomial* rest) {
  for (const auto& [factors, coefficient] : p.terms) {
    const int64_t r = apply(DimKind::mod, coefficient, c);
    if (factors.empty() || r == 0) {
      whole->add(factors, apply(DimKind::floordiv, coefficient, c));
      rest->add(factors, r);
    } else {
      rest->add(factors, coefficient);
    }
  }
}

// floordiv(p, c) for a number c > 0.
DimExpr divide_by_number(const Polynomial& p, int64_t c) {
  Polynomial whole, rest;
  split(p, c, &whole, &rest);
  const int64_t constant = rest.constant();
  int64_t gcd = c;
  for (const auto& [factors, coefficient] : rest.terms)
    if (!factors.empty()) gcd = std::gcd(gcd, coefficient);
  if (gcd > 1) {  // floordiv(g*x + k, g*c) is floordiv(x + floordiv(k, g), c)
    Polynomial reduced;
    for (const auto& [factors, coefficient] : rest.terms)
      reduced.add(factors, factors.empty() ? constant / gcd : coefficient / gcd);
    rest = std::move(reduced);
    c /= gcd;
  }
  if (rest.is_const()) return whole.expr() + rest.constant() / c;
  const DimExpr inner = rest.expr();
  if (inner.kind() == DimKind::floordiv) {
    const DimExpr& divisor = inner.operands()[1];
    int64_t both = 0;
    if (divisor.is_const() && !__builtin_mul_overflow(divisor.value(), c, &both))
      return whole.expr() + floordiv(inner.operands()[0], both);
  }
  if (inner.kind() == DimKind::mod && inner.operands()[1].is_const() &&
      inner.operands()[1].value() > 0 && inner.operands()[1].value() <= c)
    return whole.expr();
  return whole.expr() + node(DimKind::floordiv, inner, c);
}

// mod(p, c) for a number c > 0.
DimExpr remainder_by_number(const Polynomial& p, int64_t c) {
  Polynomial rest;
  for (const auto& [factors, coefficient] : p.terms)
    rest.add(factors, apply(DimKind::mod, coefficient, c));
  if (rest.is_const()) return rest.constant();
  int64_t gcd = c;
  for (const auto& [factors, coefficient] : rest.terms) gcd = std::gcd(gcd, coefficient);
  Polynomial reduced;
  for (const auto& [factors, coefficient] : rest.terms) reduced.add(factors, coefficient / gcd);
  const DimExpr inner = reduced.expr();
  c /= gcd;
  const bool smaller = inner.kind() == DimKind::mod && inner.operands()[1].is_const() &&
                       inner.operands()[1].value() > 0 && inner.operands()[1].value() <= c;
  return (smaller ? inner : node(DimKind::mod, inner, c)) * gcd;
}

// Flat operands of a min, max or broadcast, without repetitions, sorted.
std::vector<DimExpr> flat(DimKind kind, const DimExpr& a, const DimExpr& b) {
  std::vector<DimExpr> all;
  for (const DimExpr& e : {a, b}) {
    if (e.kind() == kind) all.insert(all.end(), e.operands().begin(), e.operands().end());
    else all.push_back(e);
  }
  std::sort(all.begin(), all.end(), detail::DimLess());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

DimExpr join(DimKind kind, std::vector<DimExpr> all) {
  return all.size() == 1 ? all[0] : DimNode::make(kind, std::move(all));
}

// Differences beyond 64 bits say nothing about the order.
bool at_least(const DimExpr& a, const DimExpr& b) {
  try {
    return (a - b).never_negative();
  } catch (const Error&) {
    return false;
  }
}

// min (max): an operand goes where another one is proved to be never more (never less).
DimExpr extreme(DimKind kind, const DimExpr& a, const DimExpr& b) {
  std::vector<DimExpr> all = flat(kind, a, b);
  if (all.size() > kMostCompared) return join(kind, std::move(all));
  for (size_t i = 0; i < all.size();) {
    bool dominated = false;
    for (size_t k = 0; k < all.size() && !dominated; k++)
      dominated =
          k != i && (kind == DimKind::min ? at_least(all[i], all[k]) : at_least(all[k], all[i]));
    if (dominated) all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    else i++;
  }
  return join(kind, std::move(all));
}

}  // namespace

DimExpr operator+(const DimExpr& a, const DimExpr& b) {
  if (a.is_const() && b.is_const()) return detail::exact_add(a.value(), b.value());
  if (a.is_const(0)) return b;
  if (b.is_const(0)) return a;
  Polynomial sum = Polynomial::of(a);
  for (const auto& [factors, coefficient] : Polynomial::of(b).terms) sum.add(factors, coefficient);
  return sum.expr();
}

DimExpr operator-(const DimExpr& a) { return a * -1; }
DimExpr operator-(const DimExpr& a, const DimExpr& b) {
  if (a.is_const() && b.is_const()) {
    int64_t difference;
    HIDET_REQUIRE(!__builtin_sub_overflow(a.value(), b.value(), &difference), ErrorCode::usage, "",
                  "the size ", a.value(), " - ", b.value(), " does not fit in 64 bits");
    return difference;
  }
  return a + b * -1;
}

DimExpr operator*(const DimExpr& a, const DimExpr& b) {
  if (a.is_const() && b.is_const()) return exact_mul(a.value(), b.value());
  if (a.is_const(1)) return b;
  if (b.is_const(1)) return a;
  Polynomial x = Polynomial::of(a), y = Polynomial::of(b);
  if (x.terms.size() > 1 && y.terms.size() > 1 && x.terms.size() * y.terms.size() > kMostTerms) {
    Polynomial whole;
    whole.add({x.expr()}, 1);
    x = whole;
    whole.terms.clear();
    whole.add({y.expr()}, 1);
    y = whole;
  }
  Polynomial product;
  for (const auto& [f, c] : x.terms)
    for (const auto& [g, d] : y.terms) add_product(product, f, g, exact_mul(c, d));
  return product.expr();
}

DimExpr floordiv(const DimExpr& a, const DimExpr& b) {
  if (a.is_const() && b.is_const()) return apply(DimKind::floordiv, a.value(), b.value());
  if (b.is_const(0) || a.is_const(0)) return 0;
  if (b.is_const(1)) return a;
  if (a == b) return 1;
  if (b.is_const() && b.value() < 0) return floordiv(-a, -b);
  Polynomial x = Polynomial::of(a), y = Polynomial::of(b);
  if (y.is_const()) return divide_by_number(x, y.constant());
  if (const auto quotient = exact_quotient(x, y)) return quotient->expr();
  cancel_common(x, y);
  const DimExpr divisor = y.expr();
  if (divisor.is_const()) return floordiv(x.expr(), divisor);
  return node(DimKind::floordiv, x.expr(), divisor);
}

DimExpr ceildiv(const DimExpr& a, const DimExpr& b) {
  if (b.is_const() && b.value() < 0) return ceildiv(-a, -b);
  // Both forms give 0 for b = 0. The first one reads better, needs b >= 0, and could overflow for numbers.
  if (!(a.is_const() && b.is_const()) && b.never_negative()) return floordiv(a + (b - 1), b);
  return -floordiv(-a, b);
}

DimExpr mod(const DimExpr& a, const DimExpr& b) {
  if (a.is_const() && b.is_const()) return apply(DimKind::mod, a.value(), b.value());
  if (b.is_const(0) || b.is_const(1) || a.is_const(0) || a == b) return 0;
  if (b.is_const() && b.value() < 0) return -mod(-a, -b);
  const Polynomial x = Polynomial::of(a), y = Polynomial::of(b);
  if (y.is_const()) return remainder_by_number(x, y.constant());
  if (exact_quotient(x, y)) return 0;
  return node(DimKind::mod, a, b);
}

DimExpr operator/(const DimExpr& a, const DimExpr& b) { return floordiv(a, b); }
DimExpr operator%(const DimExpr& a, const DimExpr& b) { return mod(a, b); }

DimExpr min(const DimExpr& a, const DimExpr& b) { return extreme(DimKind::min, a, b); }
DimExpr max(const DimExpr& a, const DimExpr& b) { return extreme(DimKind::max, a, b); }

DimExpr broadcast(const DimExpr& a, const DimExpr& b) {
  if (a.is_const() && b.is_const()) return apply(DimKind::broadcast, a.value(), b.value());
  if (a.is_const(1)) return b;
  if (b.is_const(1)) return a;
  std::vector<DimExpr> all = flat(DimKind::broadcast, a, b);
  // Constants sort first: two of them, none of which is 1, are unequal here.
  if (all.size() > 1 && all[1].is_const())
    apply(DimKind::broadcast, all[0].value(), all[1].value());
  return join(DimKind::broadcast, std::move(all));
}

}  // namespace hidet
