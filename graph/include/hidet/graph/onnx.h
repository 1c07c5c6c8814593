// onnx.h - what an ONNX file holds, without importing it. from_onnx itself is in flow_graph.h.
// Threading: thread-safe.
#pragma once
#include <hidet/graph/flow_graph.h>

#include <map>
#include <string>
#include <vector>

namespace hidet {

/// Operators and versions of an ONNX file.
struct OnnxInfo {
  int64_t ir_version = 0;
  int64_t opset = 0;
  std::string producer;
  std::vector<std::string> inputs, outputs;  ///< names; without inputs that have an initializer
  std::map<std::string, int64_t> operators;  ///< type -> how many
  std::map<std::string, std::vector<std::string>> unsupported;  ///< type -> its nodes
};
/// Reads the file without its weights. Throws Error(bad_file) for what cannot be read.
OnnxInfo inspect_onnx(const std::string& path);

/// The tensor in a serialized TensorProto, as ONNX test data has them (input_0.pb).
Tensor load_onnx_tensor(const std::string& path);

}  // namespace hidet
