// winograd.h - convolutions 3 x 3 with stride 1 by the minimal algorithms of Winograd (docs/cpu_kernels.md, 5a). Private to graph/schedules.
#pragma once
#include "schedules/conv_window.h"

namespace hidet::graph {

/// Outputs along an axis of the algorithm that is predicted to win clearly over the direct kernel: 4, 2, or 0 for none.
int64_t winograd_outputs(const ir::Task& convolution);

/// The convolution by F(m x m, 3 x 3); its image has a known size.
ir::Module winograd(const FusedTask& fused, const CpuTargetInfo& target, int64_t m);

}  // namespace hidet::graph
