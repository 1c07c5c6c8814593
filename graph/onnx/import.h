// import.h - turns the nodes of one ONNX graph into graph operators.
// Threading: one thread at a time.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {

/// What stands in the way: operators that are not supported by name, and nodes that use a supported
/// one in an unsupported way.
struct Problems {
  std::map<std::string, std::vector<std::string>> operators;  ///< "CumSum" -> its nodes
  std::vector<std::string> uses;
  bool any() const { return !operators.empty() || !uses.empty(); }
  std::string text() const;
};

/// True where the importer has a converter for the node's operator.
bool is_supported(const NodeProto& node, int64_t opset);

/// The opsets whose operators are known.
inline constexpr int64_t kMinOpset = 1, kMaxOpset = 26;
/// Throws Error(unsupported) for an opset that is not.
int64_t checked_opset(const ModelProto& model, const std::string& file);

class Importer {
 public:
  Importer(const ModelProto& model, ModelFile& file, Device device,
           std::map<std::string, std::vector<DimExpr>> shapes,
           const std::map<std::string, Tensor>& values);
  /// Converts all nodes that the outputs need. Throws Error(unsupported) with every problem.
  void run();

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  /// Names of the concrete tensors, by Tensor::id().
  const std::map<const void*, std::string>& weight_names() const { return weight_names_; }

 private:
  void add_initializers();
  void add_inputs();
  void fix_inputs(const std::map<std::string, Tensor>& values);
  Tensor make_input(const ValueInfoProto& input);
  std::vector<DimExpr> input_shape(const ValueInfoProto& input) const;
  void bind_symbols();
  std::vector<bool> needed_nodes() const;
  void convert(const NodeProto& node, size_t index);
  std::vector<Value> results(const NodeCall& call) const;
  Value constant(const NodeCall& call) const;
  void add_outputs();

  const ModelProto& model_;
  const GraphProto& graph_;
  ModelFile& file_;
  ImportContext context_;
  std::map<std::string, std::vector<DimExpr>> shapes_;
  std::map<std::string, Tensor> given_;
  std::map<std::string, DimExpr, std::less<>> symbols_;  ///< sizes given for the file's symbols
  std::unordered_map<std::string, Value> values_;        ///< empty: behind an unsupported operator
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::string> input_names_;
  std::map<const void*, std::string> weight_names_;
  Problems problems_;
};

}  // namespace hidet::graph::onnx
