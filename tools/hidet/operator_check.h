// operator_check.h - finds the first kernel whose result differs from the reference.
// Threading: one thread.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "compare.h"

namespace hidet::tools {

/// A kernel's output is compared with the tensor of the graph that the build says it holds, and a weight that the init
/// program made with the operator that makes it.
class OperatorByOperator {
 public:
  /// `values`: by tensor id of the program, the graph's tensor (graph::BuildReport::values).
  OperatorByOperator(const Tolerance& tolerance, const CompiledModel& model,
                     const std::vector<Tensor>& values)
      : tolerance_(tolerance), model_(model), values_(values) {}

  /// A sentence on the first wrong kernel; empty: all are right.
  std::string first_wrong(const FlowGraph& graph, const std::vector<Tensor>& inputs);
  /// The name of its operator, for an imported model that of the ONNX node.
  const std::string& wrong_node() const { return wrong_node_; }
  int compared() const { return compared_; }

 private:
  struct Expected {
    std::string name, op;
    Tensor value;
  };
  void check(const InstructionEvent& e);
  void check(int id, const Tensor& got, const std::string& step, const std::string& kernel);

  const Tolerance& tolerance_;
  const CompiledModel& model_;
  const std::vector<Tensor>& values_;
  std::unordered_map<const void*, Expected> reference_;
  std::string wrong_, wrong_node_;
  int compared_ = 0;
};

}  // namespace hidet::tools
