// groups.h - fusion: which operators share a kernel, and the fused task of each group.
// Needs: an optimized graph.  Threading: pure.  Private to graph/.
#pragma once
#include <hidet/graph/flow_graph.h>
#include <hidet/graph/schedule.h>

namespace hidet::graph {

/// A value of the graph: identity of its Tensor.
using ValueId = const void*;

/// One kernel of the program.
struct Group {
  std::vector<const FlowGraph::Node*> members;  ///< topological order
  const FlowGraph::Node* anchor = nullptr;
  FusedTask fused;
  std::vector<Tensor> inputs;   ///< values of fused.inputs
  std::vector<Tensor> outputs;  ///< values of fused.outputs
  bool is_view = false;  ///< only changes the shape: no kernel, the output is the input's memory
};

/// Groups in an order in which they can run. `outputs`: values that must exist after the run.
/// `cuda`: kernels for a GPU, whose templates accept other anchors.
std::vector<Group> fuse(const std::vector<const FlowGraph::Node*>& nodes,
                        const std::vector<Tensor>& outputs, bool cuda = false);

}  // namespace hidet::graph
