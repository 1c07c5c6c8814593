// square.h - squares of as many vectors as a vector has lanes. Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

/// The columns of a square whose rows are these vectors, by shuffles of two vectors in `body`. Lanes: 4, 8 or 16.
std::vector<ir::Expr> turned_square(std::vector<ir::Expr> rows, std::vector<ir::Stmt>& body);

}  // namespace hidet::graph
