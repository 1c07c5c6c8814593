// proto.h - the messages of an ONNX file as plain structs, and the decoder that fills them.
// Large tensors stay views into the buffer, which must outlive the structs. What this importer
// never uses (documentation, metadata, value_info, quantization annotations) is skipped;
// model-local functions, sparse tensors and training information are refused by name.
// Threading: values; decode_model is thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hidet::graph::onnx {

struct GraphProto;

/// A tensor's values: in `raw`, in one of the typed lists, or in another file.
struct TensorProto {
  std::string name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  bool has_raw = false;
  std::string_view raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int32_t> int32s;
  std::vector<int64_t> int64s;
  std::vector<uint64_t> uint64s;
  bool has_strings = false;
  bool external = false;
  std::vector<std::pair<std::string, std::string>> external_data;
};

/// One dimension: a size, a named symbol, or unknown (neither).
struct DimProto {
  bool has_value = false;
  int64_t value = 0;
  std::string symbol;
};

/// A graph input or output. `kind` says what a value that is no tensor is ("sequence").
struct ValueInfoProto {
  std::string name;
  std::string kind = "untyped";
  int32_t elem_type = 0;
  bool has_shape = false;
  std::vector<DimProto> shape;
};

/// The kinds of attribute that the importer reads; the numbers are ONNX's.
enum class AttributeType : int32_t {
  undefined = 0,
  f = 1,
  i = 2,
  s = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse = 11,
  sparses = 12,
  type = 13,
  types = 14,
};

struct AttributeProto {
  std::string name;
  AttributeType type = AttributeType::undefined;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::shared_ptr<TensorProto> tensor;
  std::shared_ptr<GraphProto> graph;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
};

struct NodeProto {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  ///< "" is an optional value that is left out
  std::vector<AttributeProto> attributes;
  std::string_view bytes;  ///< the message as stored
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfoProto> inputs, outputs;
};

struct OpsetId {
  std::string domain;  ///< "" and "ai.onnx" are the same; stored as ""
  int64_t version = 0;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string producer;
  std::vector<OpsetId> opsets;
  GraphProto graph;
  /// The version imported for `domain`; 0 where it is not imported.
  int64_t opset(std::string_view domain) const;
};

/// Decodes the whole of `bytes`; `file` names it in messages.
ModelProto decode_model(std::string_view bytes, const std::string& file);
/// Decodes one serialized TensorProto (the input_K.pb files of ONNX test data).
TensorProto decode_tensor(std::string_view bytes, const std::string& file);

}  // namespace hidet::graph::onnx
