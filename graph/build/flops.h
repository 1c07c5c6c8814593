// flops.h - the floating-point work of a fused task, for profiles.
// Needs: a FusedTask.  Threading: pure; thread-safe.  Private to graph/.
#pragma once
#include <hidet/graph/schedule.h>

namespace hidet::graph {

/// Floating-point operations that the definition asks for: an arithmetic operator or a function counts one, a step of a
/// sum one; what a schedule computes twice counts once. A formula of the task's symbols; 0 for script operators.
DimExpr flops_of(const FusedTask& fused);

}  // namespace hidet::graph
