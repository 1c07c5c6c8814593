// inverted_block.h - depthwise convolutions in one kernel with the 1 x 1 convolutions around them (inverted_block.cpp).
// Private to graph/schedules.
#pragma once
#include <hidet/graph/schedule.h>

namespace hidet::graph {

/// True where a depthwise convolution may compute its input from the 1 x 1 convolution `before`.
bool takes_expansion(const ir::Task& depthwise, const FusedTask& before);
/// True where a 1 x 1 convolution may compute its input from the depthwise convolution `before`.
bool takes_depthwise(const ir::Task& projection, const FusedTask& before);
/// All of them in one kernel.
ir::Module inverted_block(const FusedTask& fused, const CpuTargetInfo& target);

}  // namespace hidet::graph
