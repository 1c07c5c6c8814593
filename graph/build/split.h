// split.h - which operators depend on weights alone.
// Threading: pure.  Private to graph/.
#pragma once
#include <hidet/graph/flow_graph.h>

namespace hidet::graph {

/// Nodes that depend on weights alone, and the rest, in topological order.
struct Parts {
  std::vector<const FlowGraph::Node*> init, run;
};
Parts split(const FlowGraph& g);
/// Weights and init results that the run nodes or the outputs read, in first-use order.
std::vector<Tensor> stored_values(const FlowGraph& g, const Parts& parts);

}  // namespace hidet::graph
