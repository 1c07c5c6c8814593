// rebuild.h - making a new graph from an old one, node by node. Private to graph/passes.
#pragma once
#include <hidet/graph/flow_graph.h>

#include <functional>
#include <unordered_map>

namespace hidet::graph {

using TensorMap = std::unordered_map<const void*, Tensor>;

/// What a rewrite sees of one node: its new inputs. Returns the new outputs; empty: keep the node as it is.
using NodeRewrite =
    std::function<std::vector<Tensor>(const FlowGraph::Node&, const std::vector<Tensor>& inputs)>;

/// The graph with each node rewritten in topological order; operators on weights are recorded. Inputs, outputs and
/// their names stay, and so do the weights' names.
FlowGraph rebuild(const FlowGraph& g, const NodeRewrite& rewrite);

/// The node again on new inputs.
std::vector<Tensor> same_node(const FlowGraph::Node& n, const std::vector<Tensor>& inputs);

/// How often operators and outputs of `g` read `t`.
int uses_of(const FlowGraph& g, const Tensor& t);

FlowGraph fold_batch_norm(
    const FlowGraph& g);  ///< conv + batch_norm becomes conv + bias, computed by the init program
FlowGraph clean_moves(
    const FlowGraph& g);  ///< transposes of transposes, reshapes of reshapes, moves that do nothing
FlowGraph fuse_attention(
    const FlowGraph& g);  ///< CPU: products around a softmax become one operator
FlowGraph pack_weights(
    const FlowGraph&
        g);  ///< CPU: convolutions in NHWC, products and convolutions with packed weights

}  // namespace hidet::graph
