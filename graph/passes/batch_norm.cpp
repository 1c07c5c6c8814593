// batch_norm.cpp - conv2d followed by batch_norm becomes conv2d with scaled weights and a bias. The scaling is recorded on
// the weights, so that the init program does it, and again after set_weights.
#include <hidet/graph/ops.h>

#include "passes/rebuild.h"

namespace hidet::graph {
FlowGraph fold_batch_norm(const FlowGraph& g) {
  return rebuild(
      g, [&](const FlowGraph::Node& n, const std::vector<Tensor>& in) -> std::vector<Tensor> {
        if (n.op->def->name != "batch_norm") return {};
        const auto conv = producer_of(in[0]);
        if (!conv || conv->def->name != "conv2d" || uses_of(g, n.op->inputs[0]) != 1 ||
            !is_weight(conv->inputs[1]))
          return {};
        for (size_t i = 1; i < in.size(); i++)
          if (!is_weight(in[i])) return {};
        const Tensor &scale = in[1], &bias = in[2], &mean = in[3], &variance = in[4];
        const Tensor factor = ops::mul(
            scale, ops::rsqrt(ops::add(variance,
                                       ops::scalar_like(variance, n.op->attrs.number("epsilon")))));
        const std::vector<DimExpr> channel{-1, 1, 1, 1}, along{1, -1, 1, 1};
        const Tensor weight = ops::mul(conv->inputs[1], ops::reshape(factor, channel));
        const Tensor shift = ops::sub(bias, ops::mul(mean, factor));
        const Tensor y = apply("conv2d", {conv->inputs[0], weight}, conv->attrs, conv->name)[0];
        return {ops::add(y, ops::reshape(shift, along))};
      });
}

}  // namespace hidet::graph
