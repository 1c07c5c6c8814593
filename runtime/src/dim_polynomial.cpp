// dim_polynomial.cpp - nodes of DimExpr, their order, exact arithmetic, and sums as polynomials.
#include <algorithm>

#include "hidet/runtime/error.h"
#include "src/dim_node.h"

namespace hidet::detail {
namespace {

size_t mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9E3779B97F4A7C15ull + (seed >> 29);
}

[[noreturn]] void overflow(const char* sign, int64_t a, int64_t b) {
  throw Error(ErrorCode::usage,
              concat("the size ", a, " ", sign, " ", b, " does not fit in 64 bits"));
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return exact_mul(a, -1);
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t floor_remainder(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t broadcast_size(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  throw Error(ErrorCode::usage, concat("the sizes ", a, " and ", b,
                                       " do not broadcast: they must be equal, or one of them 1"));
}

}  // namespace

DimExpr DimNode::make(DimKind kind, std::vector<DimExpr> operands, std::string name) {
  size_t hash = mix(static_cast<size_t>(kind) + 17, std::hash<std::string>()(name));
  for (const DimExpr& e : operands) hash = mix(hash, e.hash());
  return DimExpr(
      std::make_shared<const DimNode>(DimNode{kind, std::move(name), std::move(operands), hash}));
}

int64_t exact_add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) overflow("+", a, b);
  return sum;
}

int64_t exact_mul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) overflow("*", a, b);
  return product;
}

int64_t apply(DimKind kind, int64_t a, int64_t b) {
  switch (kind) {
    case DimKind::add: return exact_add(a, b);
    case DimKind::mul: return exact_mul(a, b);
    case DimKind::floordiv: return floor_quotient(a, b);
    case DimKind::mod: return floor_remainder(a, b);
    case DimKind::min: return std::min(a, b);
    case DimKind::max: return std::max(a, b);
    case DimKind::broadcast: return broadcast_size(a, b);
    case DimKind::constant:
    case DimKind::symbol: break;
  }
  HIDET_CHECK(false, dim_kind_name(kind), " has no operands");
}

int compare(const DimExpr& a, const DimExpr& b) {
  if (DimNode::same(a, b) && !a.is_const()) return 0;
  if (a.kind() != b.kind()) return a.kind() < b.kind() ? -1 : 1;
  if (a.is_const()) return a.value() < b.value() ? -1 : a.value() > b.value();
  if (a.is_symbol()) return a.name().compare(b.name());
  const auto &x = a.operands(), &y = b.operands();
  for (size_t i = 0; i < x.size() && i < y.size(); i++)
    if (const int c = compare(x[i], y[i])) return c;
  return x.size() < y.size() ? -1 : x.size() > y.size();
}

bool FactorsLess::operator()(const Factors& a, const Factors& b) const {
  if (a.size() != b.size()) return a.size() > b.size();
  for (size_t i = 0; i < a.size(); i++)
    if (const int c = compare(a[i], b[i])) return c < 0;
  return false;
}

void Polynomial::add(const Factors& factors, int64_t coefficient) {
  if (coefficient == 0) return;
  const auto [at, is_new] = terms.try_emplace(factors, coefficient);
  if (is_new) return;
  at->second = exact_add(at->second, coefficient);
  if (at->second == 0) terms.erase(at);
}

int64_t Polynomial::constant() const {
  return terms.empty() || !terms.rbegin()->first.empty() ? 0 : terms.rbegin()->second;
}

Polynomial Polynomial::of(const DimExpr& e) {
  Polynomial p;
  if (e.is_const()) {
    p.add({}, e.value());
  } else if (e.kind() == DimKind::add) {
    for (const DimExpr& term : e.operands())
      for (const auto& [factors, coefficient] : of(term).terms) p.add(factors, coefficient);
  } else if (e.kind() == DimKind::mul) {
    Factors factors = e.operands();
    int64_t coefficient = 1;
    if (factors.back().is_const()) {
      coefficient = factors.back().value();
      factors.pop_back();
    }
    p.add(factors, coefficient);
  } else {
    p.add({e}, 1);
  }
  return p;
}

DimExpr Polynomial::expr() const {
  std::vector<DimExpr> sum;
  for (const auto& [factors, coefficient] : terms) {
    if (factors.empty()) {
      sum.emplace_back(coefficient);
      continue;
    }
    Factors product = factors;
    if (coefficient != 1) product.emplace_back(coefficient);
    sum.push_back(product.size() == 1 ? product[0]
                                      : DimNode::make(DimKind::mul, std::move(product)));
  }
  if (sum.empty()) return 0;
  return sum.size() == 1 ? sum[0] : DimNode::make(DimKind::add, std::move(sum));
}

}  // namespace hidet::detail
