// build.h - from a graph to the data of a compiled model, for tools that want to save without running.
// Threading: pure functions; thread-safe.
#pragma once
#include <hidet/graph/flow_graph.h>
#include <hidet/runtime/model_data.h>
#include <hidet/runtime/tune.h>

namespace hidet::graph {

/// What a build did.
struct BuildReport {
  int kernels = 0;         ///< kernel launches of one run
  int kernels_unique = 0;  ///< distinct kernels, init's included, over all targets
  int cache_hits = 0;      ///< objects that came from the build cache
  /// By id of the last program's Execution::tensors: the graph's tensor whose value it holds.
  std::vector<Tensor> values;
};

/// Builds every target of `options` (none: this machine's CPU). Weights are referenced, not copied.
ModelData build_model_data(const FlowGraph& g, const BuildModelOptions& options,
                           BuildReport* report = nullptr);

/// The same for graphs of one model on different devices: each builds the targets of its device (GPU architectures where
/// its inputs are on a GPU), and all programs are in one ModelData over the same source weights, those of equal tensors.
/// The order of the programs is that of the targets. Throws Error(usage) where the graphs are not of one model.
ModelData build_model_data(const std::vector<FlowGraph>& graphs, const BuildModelOptions& options,
                           BuildReport* report = nullptr);

/// What build_tuned did with one target.
struct TargetTuning {
  std::string target;
  std::string note = {};  ///< why nothing was measured
  std::vector<ModelTuneReport> reports = {};
};

/// Builds with the candidates of options.space, measures them at `dims` on this machine, and builds again with the default and the
/// fastest of each kernel, which the dispatch tables in the data say. A target that does not run here keeps all its candidates.
ModelData build_tuned(const std::vector<FlowGraph>& graphs, const BuildModelOptions& options,
                      const std::vector<SymbolMap>& dims, const TuneOptions& tune,
                      std::vector<TargetTuning>* done = nullptr, BuildReport* report = nullptr);

/// The graph with its inputs on `device`; weights are shared with `g`.
FlowGraph on_device(const FlowGraph& g, Device device);

}  // namespace hidet::graph
