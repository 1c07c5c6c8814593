// dim_node.h - inside of DimExpr: its node, exact 64-bit arithmetic, and sums as polynomials.
// Threading: nodes are immutable; thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hidet/runtime/dim_expr.h"

namespace hidet::detail {

struct DimNode {
  DimKind kind;
  std::string name;               // of a symbol
  std::vector<DimExpr> operands;  // of all others
  size_t hash;

  /// A node as it is; the callers see to it that it is canonical.
  static DimExpr make(DimKind kind, std::vector<DimExpr> operands, std::string name = "");
  static const DimNode* of(const DimExpr& e) { return e.node_.get(); }
  static bool same(const DimExpr& a, const DimExpr& b) { return a.node_ == b.node_; }
};

/// A total order by content, the same in every process: constants, symbols by name, then the rest.
int compare(const DimExpr& a, const DimExpr& b);
struct DimLess {
  bool operator()(const DimExpr& a, const DimExpr& b) const { return compare(a, b) < 0; }
};

// Exact arithmetic; throws Error(usage) where 64 bits do not hold the result.
int64_t exact_add(int64_t a, int64_t b);
int64_t exact_mul(int64_t a, int64_t b);
/// What `kind` means for two numbers.
int64_t apply(DimKind kind, int64_t a, int64_t b);

/// Factors of a product that are no sums (but where expanding them would grow too far), sorted.
using Factors = std::vector<DimExpr>;
/// Orders products of more factors first, so that the constant term is last.
struct FactorsLess {
  bool operator()(const Factors& a, const Factors& b) const;
};

/// A sum of products with number coefficients, none of them 0. The empty product is the constant.
struct Polynomial {
  std::map<Factors, int64_t, FactorsLess> terms;

  static Polynomial of(const DimExpr& e);
  void add(const Factors& factors, int64_t coefficient);
  bool is_const() const { return terms.empty() || (terms.size() == 1 && constant() != 0); }
  int64_t constant() const;
  DimExpr expr() const;
};

}  // namespace hidet::detail
