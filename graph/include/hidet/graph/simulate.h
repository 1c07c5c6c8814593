// simulate.h - a GPU model on a machine without a GPU: its kernels run in the simulator, with all of its checks.
// Threading: thread-safe.
#pragma once
#include <hidet/graph/flow_graph.h>

#include <functional>
#include <string>
#include <vector>

namespace hidet::graph {

/// How simulate runs.
struct SimulateOptions {
  bool checks = true;      ///< races and unwritten memory; bounds are always checked
  SymbolMap symbols = {};  ///< values of symbols that the inputs' shapes do not give
  /// Called after each kernel: what people call the operator, the kernel's name, the graph's tensors that it wrote and
  /// their values; may throw.
  std::function<void(const std::string& name, const std::string& kernel,
                     const std::vector<Tensor>& tensors, const std::vector<Tensor>& values)>
      hook = {};
  std::function<void(int done, int total)> progress =
      {};  ///< after each kernel; may throw to cancel
};

/// The outputs of a graph with GPU inputs (graph::on_device, then optimize), computed by the kernels that a build would make.
/// `inputs` and the result are on the CPU. What depends on weights alone comes from the reference evaluator, as a build's
/// init program runs on the CPU. Throws Error(usage) with script line, kernel, block, thread, tensor and index
/// where the simulator finds a fault.
std::vector<Tensor> simulate(const FlowGraph& g, const std::vector<Tensor>& inputs,
                             const SimulateOptions& options = {});

}  // namespace hidet::graph
