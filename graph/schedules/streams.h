// streams.h - stores of kernels whose results are larger than the caches. Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

/// `nest` with the vectors of `lanes` f32 values that it stores to tensors larger than the caches stored past these: a line is not read
/// before it is written, and what others need stays. For sizes known at build.
ir::Stmt past_caches(const ir::Stmt& nest, int64_t lanes);

}  // namespace hidet::graph
