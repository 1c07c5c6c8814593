// order.h - checks the names of a graph and puts its nodes in an order in which they can run.
// Threading: thread-safe.
#pragma once
#include <string>
#include <vector>

#include "onnx/proto.h"

namespace hidet::graph::onnx {

/// "node 3 'conv1' (Conv)": how messages name a node.
std::string describe(const NodeProto& node, size_t index);

/// The indices of `graph.nodes`, producers first; the file's order is kept where it is one.
/// `outer` are the names visible from outside (subgraphs). Throws Error(bad_file, file): a name
/// that nothing makes, a name made twice, nodes that form a cycle (all named).
std::vector<size_t> execution_order(const GraphProto& graph, const std::string& file,
                                    const std::vector<std::string>& outer = {});

/// The names that the subgraphs of `node` take from outside of themselves.
std::vector<std::string> captured_names(const NodeProto& node);

}  // namespace hidet::graph::onnx
