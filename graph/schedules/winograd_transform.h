// winograd_transform.h - the linear maps of the minimal algorithms F(m x m, 3 x 3), m = 2 or 4, as statements on vectors: along one
// axis, and along both axes of a square. Private to graph/schedules.
#pragma once
#include "schedules/tile.h"

namespace hidet::graph {

struct WinogradTransform {
  int64_t m;  ///< outputs along an axis
  /// Inputs along an axis; products of a tile are extent() squared.
  int64_t extent() const { return m + 2; }
  int64_t products() const { return extent() * extent(); }

  /// A map along one axis: declares its results in `body`.
  using Values = std::vector<ir::Value>;
  Values input(std::vector<ir::Stmt>& body, const Values& d) const;   ///< extent() -> extent()
  Values weight(std::vector<ir::Stmt>& body, const Values& g) const;  ///< 3 -> extent()
  Values output(std::vector<ir::Stmt>& body, const Values& p) const;  ///< extent() -> m

  /// A map along the columns, then along the rows of the square `values` (row major), of any side.
  using Map = Values (WinogradTransform::*)(std::vector<ir::Stmt>&, const Values&) const;
  Values both(std::vector<ir::Stmt>& body, Map map, const Values& values) const;
};

}  // namespace hidet::graph
