// square.h - squares of as many vectors as a vector has lanes, and vectors that are interleaved. Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

/// The columns of a square whose rows are these vectors, by shuffles of two vectors in `body`. Lanes: 4, 8 or 16.
std::vector<ir::Expr> turned_square(std::vector<ir::Expr> rows, std::vector<ir::Stmt>& body);

/// The k-th of the n vectors that hold lane 0 of all n of `v`, then lane 1 ...; n - 1 shuffles in `body`.
ir::Expr interleaved(const std::vector<ir::Expr>& v, int k, std::vector<ir::Stmt>& body);

}  // namespace hidet::graph
