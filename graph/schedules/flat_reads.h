// flat_reads.h - reads of a tensor under another shape, without the arithmetic of the indices. Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

/// `c` with its reads that are in memory order along the last axis, but whose indices hide it behind quotients and
/// remainders (a reshape), made reads of flat views; the views are declared in `views`.
ir::Compute with_flat_reads(ir::Compute c, std::vector<ir::Stmt>& views);

}  // namespace hidet::graph
