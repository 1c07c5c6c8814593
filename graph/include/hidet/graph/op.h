// op.h - operators: what one is (OpDef), one use of it in a graph (Operator), and how to make one.
// A file in graph/ops/ defines `void register_<stem>(OpRegistry&)`; CMake calls all of them.
// Threading: definitions are immutable after start-up; making operators is thread-safe.
#pragma once
#include <hidet/ir/task.h>
#include <hidet/ir/value.h>
#include <hidet/runtime/tensor.h>

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace hidet::graph {

/// An attribute's value.
using AttrValue =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<DimExpr>, DType>;

/// Attributes by name. The getters throw Error(internal) where a name or type is wrong.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> list) : values_(list) {}
  void set(const std::string& name, AttrValue value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::vector<int64_t>& integers(const std::string& name) const;
  const std::vector<DimExpr>& dims(const std::string& name) const;
  DType dtype(const std::string& name) const;
  const std::map<std::string, AttrValue>& values() const { return values_; }
  std::string to_string() const;  ///< "axis=1, keep=0"

 private:
  std::map<std::string, AttrValue> values_;
};

/// dtype and shape of a value.
struct TensorSpec {
  DType dtype;
  std::vector<DimExpr> shape;
};

/// What inference and compute definitions see: specs of the inputs, and the attributes.
struct OpCall {
  std::vector<TensorSpec> inputs;
  Attrs attrs;
};

/// One case for the generic operator tests: input specs (may use symbol "n"), attributes, and an integer
/// range for the values of integer inputs.
struct OpSample {
  std::vector<TensorSpec> inputs;
  Attrs attrs;
  int64_t low = -5, high = 6;
};

struct OpDef {
  std::string name;  ///< an identifier
  std::string doc;
  /// Output specs; throws Error(usage) that names the operator, the input and what would be right.
  std::function<std::vector<TensorSpec>(const OpCall&)> infer;
  /// The compute definition: inputs x0, x1 ... and computes; shapes from the specs.
  std::function<ir::Task(const OpCall&)> compute;
  /// A faster or independent reference evaluation (Eigen); null: the interpreter of `compute`.
  std::function<std::vector<Tensor>(const OpCall&, const std::vector<Tensor>&)> reference = nullptr;
  std::vector<OpSample> samples = {};
};

class OpRegistry {
 public:
  void add(OpDef def);
  const OpDef* find(const std::string& name) const;  ///< null where there is none
  std::vector<const OpDef*> all() const;             ///< sorted by name

 private:
  std::map<std::string, OpDef> defs_;
};
/// All built-in operators.
const OpRegistry& operators();

/// One use of an operator. A symbolic Tensor's producer() is a shared_ptr to this (null: a graph input).
struct Operator {
  std::shared_ptr<const OpDef> custom;  ///< keeps a user's definition alive
  const OpDef* def = nullptr;
  std::vector<Tensor> inputs;
  Attrs attrs;
  std::vector<TensorSpec> outputs;
  std::string name;  ///< the user's or the model's name, may be empty
  OpCall call() const;
};
/// The operator that made a symbolic tensor, or null (a graph input or a concrete tensor).
std::shared_ptr<const Operator> producer_of(const Tensor& tensor);
/// True where a value depends on weights alone (no input of a graph reaches it).
bool is_weight(const Tensor& t);

/// Applies an operator: infers; where all inputs are concrete (and no RecordScope is open) evaluates at
/// once with the reference evaluator, else returns symbolic tensors.
std::vector<Tensor> apply(const std::string& op, const std::vector<Tensor>& inputs,
                          Attrs attrs = {}, const std::string& name = "");
std::vector<Tensor> apply(std::shared_ptr<const OpDef> def, const std::vector<Tensor>& inputs,
                          Attrs attrs = {}, const std::string& name = "");

/// While one is open on this thread, operators on concrete tensors are recorded too (importers).
class RecordScope {
 public:
  RecordScope();
  ~RecordScope();
  RecordScope(const RecordScope&) = delete;
};

/// While one is open on this thread, operators that are given no name get this one (importers: the node's; passes: that
/// of the operator that is rewritten). An empty name changes nothing.
class NameScope {
 public:
  explicit NameScope(std::string name);
  ~NameScope();
  NameScope(const NameScope&) = delete;

 private:
  std::string outer_;
};

/// Evaluates one operator on concrete CPU tensors with the reference evaluator.
std::vector<Tensor> evaluate(const Operator& op, const std::vector<Tensor>& inputs);
/// Interprets a task's compute definition on concrete CPU tensors; `symbols` are bound from the inputs' shapes
/// (task inputs' shapes) and from `given`.
std::vector<Tensor> interpret(const ir::Task& task, const std::vector<Tensor>& inputs,
                              const SymbolMap& given = {});

// --- Helpers for writing compute definitions
/// Task input number `index` of an operator.
ir::VarRef task_input(int index, const TensorSpec& spec);
/// computes += (tensor `name` of `spec`, value(axes)).
using ComputeBody = std::function<ir::Value(const std::vector<ir::Value>& axes)>;
ir::VarRef add_compute(ir::Task& task, const std::string& name, const TensorSpec& spec,
                       const ComputeBody& value);
/// tensor[indices] as a Value.
ir::Value element(const ir::VarRef& tensor, const std::vector<ir::Value>& indices);
/// op over axes of `extents` of value(axes).
ir::Value reduce(ir::ReduceOp op, const std::vector<DimExpr>& extents, const ComputeBody& value);

}  // namespace hidet::graph
