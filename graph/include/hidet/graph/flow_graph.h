// flow_graph.h - the graph: tracing, running with the reference evaluator, optimizing, building.
// Threading: a FlowGraph is immutable; thread-safe.
#pragma once
#include <hidet/graph/op.h>
#include <hidet/runtime/compiled_model.h>

#include <functional>
#include <memory>

namespace hidet {

/// A symbolic input. Integers are fixed sizes, names are symbols: symbol({"batch", 3, 224, 224}).
Tensor symbol(const std::vector<DimExpr>& shape, DType dtype = f32, Device device = {},
              const std::string& name = "");

/// How FlowGraph::build builds.
struct BuildModelOptions {
  std::vector<std::string> targets =
      {};  ///< "x86-64-v3", "native", "sm_90a", "ptx" ...; empty: this machine's
  int space =
      0;  ///< candidates of a kernel, for CompiledModel::tune: 0, one good default; 1, a few; 2, all
  std::string name = "model";
  bool fast_math = false;
  bool allow_tf32 = false;
  /// Winograd's convolutions and Strassen's products on CPUs, where they are predicted to be faster; their rounding error is larger
  /// (docs/cpu_kernels.md, 3b and 5a). And products of parts on tile registers, whose error is not larger (3c).
  bool fewer_products = true;
  std::string cuda_compiler = "";  ///< "nvrtc" or "nvcc"; empty: NVRTC where it is
  int threads = 0;                 ///< of the compiler; 0: all cores
  /// Called with (phase, done, total); may throw to cancel.
  std::function<void(const std::string&, int, int)> progress = nullptr;
};

struct OptimizeOptions {
  int level =
      3;  ///< 0: nothing; 1: folding and clean-up; 2: rewrites (conv + bn ...); 3: layout too
};

class FlowGraph {
 public:
  /// One operator use, in topological order.
  struct Node {
    std::shared_ptr<const graph::Operator> op;
    std::vector<Tensor> outputs;  ///< the symbolic tensors that stand for its results in this graph
  };
  FlowGraph() = default;
  FlowGraph(std::vector<Tensor> inputs, std::vector<Tensor> outputs, std::string name = "model");

  std::vector<TensorSignature> inputs() const;
  std::vector<TensorSignature> outputs() const;
  std::vector<std::string> symbols() const;  ///< names, sorted
  const std::vector<Tensor>& input_tensors() const;
  const std::vector<Tensor>& output_tensors() const;
  const std::vector<Node>& nodes() const;
  /// Concrete tensors that the graph reaches, in first-use order, and the names given to them.
  const std::vector<Tensor>& weights() const;
  const std::vector<std::string>& weight_names() const;
  const std::string& name() const;
  /// Names inputs, outputs and weights (importers); sizes must match.
  FlowGraph with_names(std::vector<std::string> inputs, std::vector<std::string> outputs,
                       std::map<const void*, std::string> weights = {}) const;
  /// This graph, made of `original` by rewriting it, as its users know it: inputs, outputs and weights have the names of
  /// `original`, and its weights come first, in their order, those too that this graph does not reach any more.
  FlowGraph with_names_of(const FlowGraph& original) const;

  /// Runs operator by operator with the reference evaluator; checks inputs as CompiledModel::run does.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  /// As run, for a graph of one output.
  template <class... T>
  Tensor operator()(const T&... inputs) const {
    return run_one({inputs...});
  }
  /// As run; calls `hook` after each operator.
  std::vector<Tensor> run(
      const std::vector<Tensor>& inputs,
      const std::function<void(const Node&, const std::vector<Tensor>&)>& hook) const;

  CompiledModel build(const BuildModelOptions& options = {}) const;
  /// The graph in text form, deterministic.
  std::string text() const;

 private:
  Tensor run_one(const std::vector<Tensor>& inputs) const;
  struct Data;
  std::shared_ptr<const Data> data_;
};

/// The graph that computes `outputs` from `inputs`. Without an input list: every symbolic input reached, in
/// first-use order; with two or more symbolic inputs that is an error which names them. Unnamed inputs are x0, x1 ...
FlowGraph trace_from(const Tensor& output, const std::vector<Tensor>& inputs = {});
FlowGraph trace_from(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs = {});

/// Constant folding, rewrites, layout, dead code (passes in graph/passes).
FlowGraph optimize(const FlowGraph& graph, const OptimizeOptions& options = {});

/// How from_onnx imports.
struct OnnxOptions {
  Device device = {};
  /// Sizes for some inputs: name -> shape (numbers or symbols).
  std::map<std::string, std::vector<DimExpr>> shapes = {};
  /// Fixed values for some inputs, which then are no inputs any more: a target shape, axes, a mode. Lets a model
  /// be imported whose shapes depend on such an input.
  std::map<std::string, Tensor> values = {};
};
/// Imports an ONNX file (opset 13 to 20). Throws Error(bad_file) for what cannot be read, and Error(unsupported)
/// that lists every unsupported operator with its nodes.
FlowGraph from_onnx(const std::string& path, const OnnxOptions& options = {});

}  // namespace hidet
