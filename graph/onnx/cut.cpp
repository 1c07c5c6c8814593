// cut.cpp - writes protobuf: a part of an ONNX file as a model of its own, and single tensors.
// Nodes are copied as they are stored; initializers are written anew, so that external data comes inside.
// Threading: thread-safe.
#include <hidet/graph/onnx.h>
#include <hidet/runtime/file.h>

#include <set>
#include <unordered_map>

#include "onnx/order.h"
#include "onnx/tensor_values.h"
#include "onnx/wire.h"

namespace hidet {
namespace graph::onnx {
namespace {

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(uint32_t field, int64_t value) {
  return varint(field << 3) + varint(static_cast<uint64_t>(value));
}
std::string bytes(uint32_t field, std::string_view value) {
  std::string out = varint(field << 3 | 2) + varint(value.size());
  return out.append(value);
}

/// A TensorProto with its values as raw data.
std::string tensor_message(const std::string& name, DType dtype, const std::vector<int64_t>& dims,
                           const void* data, size_t size) {
  std::string out;
  for (int64_t d : dims) out += number(1, d);
  return out + number(2, onnx_type_of(dtype)) + bytes(8, name) +
         bytes(9, {static_cast<const char*>(data), size});
}
std::string tensor_message(const std::string& name, const Tensor& tensor) {
  const Tensor here = tensor.cpu();
  return tensor_message(name, here.dtype(), here.shape(), here.data(),
                        static_cast<size_t>(here.bytes()));
}

/// A ValueInfoProto.
std::string value_message(const std::string& name, const Tensor& value) {
  std::string shape;
  for (int64_t d : value.shape()) shape += bytes(1, number(1, d));
  return bytes(1, name) +
         bytes(2, bytes(1, number(1, onnx_type_of(value.dtype())) + bytes(2, shape)));
}
std::string value_message(const ValueInfoProto& value) {
  std::string shape;
  for (const DimProto& d : value.shape)
    shape += bytes(1, d.has_value ? number(1, d.value) : bytes(2, d.symbol));
  return bytes(1, value.name) +
         bytes(2, bytes(1, number(1, value.elem_type) +
                               (value.has_shape ? bytes(2, shape) : std::string())));
}

class Cutter {
 public:
  Cutter(const std::string& path, const OnnxCut& cut)
      : file_(path), model_(decode_model(file_.bytes(), file_.name())), cut_(cut) {}

  std::string run() {
    std::string graph;
    find_needed();
    for (const size_t i : execution_order(model_.graph, file_.name()))
      if (needed_[i]) graph += bytes(1, model_.graph.nodes[i].bytes);
    graph += bytes(2, model_.graph.name + "_part");
    for (const auto& [name, tensor] : cut_.constants)
      if (used_.count(name)) graph += bytes(5, tensor_message(name, tensor));
    for (const TensorProto& t : model_.graph.initializers)
      if (used_.count(t.name)) {
        const TensorValues v = load_values(t, file_, "initializer " + quote_name(t.name));
        graph += bytes(5, tensor_message(t.name, v.dtype, v.dims, v.data,
                                         static_cast<size_t>(v.dtype.bytes_of(v.count))));
      }
    for (const std::string& name : cut_.inputs) graph += bytes(11, input_message(name));
    for (const std::string& name : cut_.outputs) {
      const auto it = cut_.values.find(name);
      graph +=
          bytes(12, it == cut_.values.end() ? bytes(1, name) : value_message(name, it->second));
    }
    std::string out = number(1, model_.ir_version) + bytes(7, graph);
    for (const OpsetId& id : model_.opsets)
      out += bytes(8, bytes(1, id.domain) + number(2, id.version));
    return out;
  }

 private:
  /// Marks the nodes and initializers that the outputs need.
  void find_needed() {
    std::unordered_map<std::string, size_t> maker;
    const std::vector<NodeProto>& nodes = model_.graph.nodes;
    for (size_t i = 0; i < nodes.size(); i++)
      for (const std::string& name : nodes[i].outputs) maker.emplace(name, i);
    std::set<std::string> given(cut_.inputs.begin(), cut_.inputs.end()), known;
    for (const TensorProto& t : model_.graph.initializers) known.insert(t.name);
    needed_.assign(nodes.size(), false);
    std::vector<std::string> open(cut_.outputs);
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (name.empty() || !used_.insert(name).second || given.count(name) ||
          cut_.constants.count(name) || known.count(name))
        continue;
      const auto at = maker.find(name);
      HIDET_REQUIRE(at != maker.end(), ErrorCode::usage, file_.name(), "the value ",
                    quote_name(name), " is not made in this part and is no input of it");
      if (needed_[at->second]) continue;
      needed_[at->second] = true;
      const NodeProto& node = nodes[at->second];
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      for (std::string& inner : captured_names(node)) open.push_back(std::move(inner));
    }
  }
  std::string input_message(const std::string& name) const {
    if (const auto it = cut_.values.find(name); it != cut_.values.end())
      return value_message(name, it->second);
    for (const ValueInfoProto& input : model_.graph.inputs)
      if (input.name == name) return value_message(input);
    throw Error(ErrorCode::usage, "the type of the input " + quote_name(name) + " is not known",
                file_.name());
  }

  ModelFile file_;
  const ModelProto model_;
  const OnnxCut& cut_;
  std::vector<bool> needed_;
  std::set<std::string> used_;
};

}  // namespace
}  // namespace graph::onnx

std::string cut_onnx(const std::string& path, const OnnxCut& cut) {
  return graph::onnx::Cutter(path, cut).run();
}

void save_onnx_tensor(const std::string& path, const std::string& name, const Tensor& tensor) {
  runtime::write_file(path, graph::onnx::tensor_message(name, tensor));
}

}  // namespace hidet
