// dim.h - between the runtime's DimExpr (formulas of shapes) and IR expressions.
#pragma once
#include <hidet/ir/expr.h>
#include <hidet/runtime/dim_expr.h>

namespace hidet::ir {

/// The formula as an i64 expression of DimSymbols.
Expr to_expr(const DimExpr& dim);
std::vector<Expr> to_exprs(const std::vector<DimExpr>& shape);
/// Back again; throws Error(internal) where `e` is no formula of integers and DimSymbols.
DimExpr to_dim(const Expr& e);
std::vector<DimExpr> to_dims(const std::vector<Expr>& shape);

}  // namespace hidet::ir
