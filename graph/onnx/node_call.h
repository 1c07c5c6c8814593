// node_call.h - one node of the file while it is converted: its inputs as tensors or known
// integers, its attributes with defaults, and the errors that name it.
// Threading: one thread at a time.
#pragma once
#include <hidet/runtime/tensor.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onnx/known.h"
#include "onnx/model_file.h"
#include "onnx/proto.h"
#include "onnx/tensor_values.h"

namespace hidet::graph::onnx {

/// A value of the graph: a tensor, or known integers that become one where an operator needs it.
struct Value {
  std::optional<Tensor> tensor;
  std::optional<Known> known;
};

/// What the converters share: the file, the device, and the versions.
struct ImportContext {
  ModelFile& file;
  Device device;
  int64_t opset = 0;
};

class NodeCall {
 public:
  NodeCall(ImportContext& context, const NodeProto& node, size_t index, std::vector<Value*> inputs)
      : context_(context), node_(node), index_(index), inputs_(std::move(inputs)) {}

  const NodeProto& node() const { return node_; }
  ImportContext& context() const { return context_; }
  int64_t opset() const { return context_.opset; }

  // Inputs. An input is absent where the list ends before it or its name is "".
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  /// Input i as a tensor; error where it is absent. Known integers become a tensor here, once.
  const Tensor& input(size_t i) const;
  std::vector<Tensor> inputs() const;
  /// Input i as it is; it must be there.
  const Value& value(size_t i) const { return *inputs_[i]; }
  const std::vector<Value*>& values() const { return inputs_; }
  /// The known integers of input i, or null.
  const Known* known(size_t i) const;
  DType dtype(size_t i) const;
  std::vector<DimExpr> shape(size_t i) const;
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  /// Input i as formulas; unsupported where it is computed from data.
  std::vector<DimExpr> dims_input(size_t i, const char* what) const;
  /// Input i as numbers; unsupported where it is not constant.
  std::vector<int64_t> ints_input(size_t i, const char* what) const;
  /// The value of a constant scalar input; unsupported where it is not constant.
  double scalar_input(size_t i, const char* what) const;
  /// The same, nothing where it is computed at run time.
  std::optional<double> scalar_if_constant(size_t i) const;

  // Attributes; one of another type than asked for is an error.
  bool has_attr(const char* name) const { return find(name) != nullptr; }
  int64_t attr_int(const char* name, int64_t fallback) const;
  double attr_float(const char* name, double fallback) const;
  std::string attr_string(const char* name, const std::string& fallback) const;
  std::vector<int64_t> attr_ints(const char* name, std::vector<int64_t> fallback = {}) const;
  std::vector<float> attr_floats(const char* name) const;
  std::vector<std::string> attr_strings(const char* name) const;
  const TensorProto* attr_tensor(const char* name) const;
  /// The axes that are an attribute in old opsets and input i in new ones; empty where absent.
  std::vector<int64_t> ints_attr_or_input(const char* name, size_t i) const;

  /// `axis` in 0 .. rank - 1 (or rank where `allow_end`).
  int64_t axis(int64_t axis, int64_t rank, bool allow_end = false) const;

  std::string describe() const;
  /// Throws Error(bad_file): the node breaks the operator's rules.
  template <class... Args>
  [[noreturn]] void fail(const Args&... args) const {
    raise(ErrorCode::bad_file, detail::concat(args...));
  }
  /// Throws Error(unsupported).
  template <class... Args>
  [[noreturn]] void unsupported(const Args&... args) const {
    raise(ErrorCode::unsupported, detail::concat(args...));
  }

 private:
  const AttributeProto* find(const char* name) const;
  const AttributeProto* find(const char* name, AttributeType type) const;
  [[noreturn]] void raise(ErrorCode code, const std::string& message) const;

  ImportContext& context_;
  const NodeProto& node_;
  size_t index_;
  std::vector<Value*> inputs_;
};

/// A concrete CPU tensor with the values; weights stay in the mapped file.
Tensor to_tensor(const TensorValues& values);
/// Known integers as a tensor: a constant, or computed from the symbols at run time.
Tensor to_tensor(const Known& known, Device device);
/// Small integers and booleans are known too.
Value to_value(const TensorValues& values);

/// One operator: from opset `since` (of its domain) on, up to `until`.
struct Converter {
  const char* op_type;
  int64_t since;
  int64_t until;
  std::function<std::vector<Tensor>(const NodeCall&)> convert;
};
inline constexpr int64_t kAnyOpset = 1000;

// The tables, one for each ops_*.cpp.
std::span<const Converter> elementwise_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> reduce_converters();
std::span<const Converter> nn_converters();
std::span<const Converter> composed_converters();
std::span<const Converter> resize_converters();
std::span<const Converter> recurrent_converters();

/// The row for an operator, or null.
const Converter* find_converter(const std::string& op_type, int64_t opset);

}  // namespace hidet::graph::onnx
