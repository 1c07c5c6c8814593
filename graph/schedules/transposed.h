// transposed.h - elementwise kernels whose reads run along another axis than their stores. Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

/// A parallel nest for compute `c` of `fused`, which has no reduction, where all its large reads run along one axis that is
/// not the last: squares of lanes x lanes values go through the cache, so that reads and stores are both vectors.
/// Nullopt where the reads are not so.
std::optional<ir::Stmt> transposed_nest(const FusedTask& fused, const ir::Compute& c, int lanes);

}  // namespace hidet::graph
