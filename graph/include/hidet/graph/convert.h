// convert.h - the same graph in another floating-point type.
// Threading: pure; thread-safe.
#pragma once
#include <hidet/graph/flow_graph.h>

namespace hidet::graph {

/// The graph with f32 arithmetic done in f16 or bf16. Inputs and outputs keep their dtypes; weights are converted by the
/// init program, those beyond the range of f16 to its largest values. Operators whose results f16 cannot hold or whose error
/// grows (powers, exponentials, sums over an axis, normalizations, recurrences) stay in f32, and so do custom operators.
/// Throws Error(usage) for another dtype.
FlowGraph convert_floats(const FlowGraph& g, DType to);

}  // namespace hidet::graph
