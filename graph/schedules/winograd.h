// winograd.h - convolutions 3 x 3 with stride 1 by the minimal algorithms of Winograd (docs/cpu_kernels.md, 5a). Private to graph/schedules.
#pragma once
#include "schedules/conv_window.h"

namespace hidet::graph {

/// Outputs along an axis of the algorithm that is predicted to win clearly over the direct kernel: 4, 2, or 0 for none. For an image whose
/// size is known at run time: 4 where that wins on large ones.
int64_t winograd_outputs(const ir::Task& convolution, bool on_tiles = false);

/// The same for a candidate, which may ask for another (parameter "winograd": 1 for the direct kernel, 2, 4), where the target allows it
/// and the window is such.
int64_t winograd_outputs(const FusedTask& fused, const CpuTargetInfo& target);

/// The convolution by F(m x m, 3 x 3); at sizes known at run time, with the direct kernel beside it, and the choice at each run.
ir::Module winograd(const FusedTask& fused, const CpuTargetInfo& target, int64_t m);

}  // namespace hidet::graph
