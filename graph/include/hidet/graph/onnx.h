// onnx.h - what an ONNX file holds, without importing it; parts of one as files. from_onnx itself is in flow_graph.h.
// Threading: thread-safe.
#pragma once
#include <hidet/graph/flow_graph.h>

#include <map>
#include <string>
#include <vector>

namespace hidet {

/// A node of an ONNX file, by the names of its values ("": an optional value that is left out).
struct OnnxNode {
  std::string name, type;
  std::vector<std::string> inputs, outputs;
};
/// Operators and versions of an ONNX file.
struct OnnxInfo {
  int64_t ir_version = 0;
  int64_t opset = 0;
  std::string producer;
  std::vector<std::string> inputs, outputs;  ///< names; without inputs that have an initializer
  std::map<std::string, int64_t> operators;  ///< type -> how many
  std::map<std::string, std::vector<std::string>> unsupported;  ///< type -> its nodes
  std::vector<OnnxNode> nodes;
  std::vector<std::string> initializers;  ///< names
};
/// Reads the file without its weights. Throws Error(bad_file) for what cannot be read.
OnnxInfo inspect_onnx(const std::string& path);

/// The tensor in a serialized TensorProto, as ONNX test data has them (input_0.pb).
Tensor load_onnx_tensor(const std::string& path);
/// Writes such a file.
void save_onnx_tensor(const std::string& path, const std::string& name, const Tensor& tensor);

/// A part of an ONNX model: the nodes that `outputs` need, as far back as `inputs` and `constants`.
struct OnnxCut {
  std::vector<std::string> inputs, outputs;
  /// Values that become initializers.
  std::map<std::string, Tensor> constants = {};
  /// Values of inputs and outputs, for their types; needed for an input that is none of the whole model.
  std::map<std::string, Tensor> values = {};
};
/// The part as the bytes of an ONNX file; external data comes inside. Throws Error(usage) where a name is not in the file
/// or the part needs an input of the model that is not given.
std::string cut_onnx(const std::string& path, const OnnxCut& cut);

}  // namespace hidet
