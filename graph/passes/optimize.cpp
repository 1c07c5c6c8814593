// optimize.cpp - the order of graph passes.
#include "passes/rebuild.h"

namespace hidet {

FlowGraph optimize(const FlowGraph& graph, const OptimizeOptions& options) {
  FlowGraph g = graph;
  if (options.level >= 1) g = graph::clean_moves(g);
  if (options.level >= 2)
    g = graph::fold_batch_norm(g);  // before packing, which hides the convolution's weight
  bool cpu = true;
  for (const Tensor& t : g.input_tensors()) cpu = cpu && t.device().is_cpu();
  if (options.level >= 3 && cpu)
    g = graph::clean_moves(graph::pack_weights(graph::fuse_attention(g)));
  return g;
}

}  // namespace hidet
