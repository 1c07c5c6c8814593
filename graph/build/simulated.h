// simulated.h - the GPU kernels of a graph, and the simulator running them one by one.
// Threading: pure once built.  Private to graph/.
#pragma once
#include <hidet/graph/simulate.h>

#include <unordered_map>

#include "build/plan.h"

namespace hidet::graph {

/// The kernels of the run part of a graph, as a build for a GPU would make them.
class Simulated {
 public:
  explicit Simulated(const FlowGraph& graph, int space = 0);
  /// Which candidate the next runs take, of kernels that have so many; others take the default.
  void use_candidate(size_t candidate) { candidate_ = candidate; }
  const std::vector<PlanKernel>& kernels() const { return store_.kernels(); }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs,
                          const SimulateOptions& options = {}) const;

 private:
  using Values = std::unordered_map<ValueId, Tensor>;
  void run(const Group& g, int kernel, const SymbolMap& symbols, const SimulateOptions& options,
           Values& values) const;

  const FlowGraph graph_;
  KernelStore store_;
  size_t candidate_ = 0;
  std::vector<Group> groups_;
  std::vector<int> kernel_of_;  ///< -1: only a view
  std::vector<Tensor> stored_;  ///< values of init nodes that the groups read
};

}  // namespace hidet::graph
