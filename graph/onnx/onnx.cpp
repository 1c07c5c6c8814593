// onnx.cpp - the public face of the importer: from_onnx, inspect_onnx, load_onnx_tensor.
#include <hidet/graph/onnx.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "onnx/fold.h"
#include "onnx/import.h"
#include "onnx/order.h"
#include "onnx/wire.h"

namespace hidet {
namespace graph::onnx {
namespace {

const std::vector<std::span<const Converter>>& tables() {
  static const std::vector<std::span<const Converter>> all{
      elementwise_converters(), shape_converters(),  reduce_converters(),   nn_converters(),
      composed_converters(),    resize_converters(), recurrent_converters()};
  return all;
}

// Operators that are always folded have no converter.
bool folds_always(const std::string& op) {
  return op == "Constant" || op == "Shape" || op == "Size";
}

std::string joined(const std::vector<std::string>& list) {
  constexpr size_t kMost = 100;
  std::string out;
  for (size_t i = 0; i < list.size() && i < kMost; i++) out += (i ? ", " : "") + list[i];
  if (list.size() > kMost) out += " and " + std::to_string(list.size() - kMost) + " more";
  return out;
}

}  // namespace

const Converter* find_converter(const std::string& op_type, int64_t opset) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_multimap<std::string, const Converter*>;
    for (const auto& table : tables())
      for (const Converter& row : table) map->emplace(row.op_type, &row);
    return map;
  }();
  const auto [begin, end] = by_name->equal_range(op_type);
  for (auto at = begin; at != end; ++at)
    if (opset >= at->second->since && opset <= at->second->until) return at->second;
  return nullptr;
}

bool is_supported(const NodeProto& node, int64_t opset) {
  if (!node.domain.empty()) return false;
  return folds_always(node.op_type) || find_converter(node.op_type, opset) != nullptr;
}

std::string Problems::text() const {
  std::string out;
  for (const auto& [op, nodes] : operators)
    out += detail::concat(out.empty() ? "unsupported operators: " : "; ", op, " (", nodes.size(),
                          nodes.size() == 1 ? " node: " : " nodes: ", joined(nodes), ")");
  if (!uses.empty()) {
    if (!out.empty()) out += "; ";
    out += "unsupported uses: " + joined(uses);
  }
  return out;
}

int64_t checked_opset(const ModelProto& model, const std::string& file) {
  const int64_t opset = model.opset("");
  HIDET_REQUIRE(opset >= kMinOpset && opset <= kMaxOpset, ErrorCode::unsupported, file,
                "the model uses ONNX opset ", opset, "; ", kMinOpset, " to ", kMaxOpset,
                " are supported");
  return opset;
}

}  // namespace graph::onnx

using namespace graph::onnx;

FlowGraph from_onnx(const std::string& path, const OnnxOptions& options) {
  ModelFile file(path);
  const ModelProto model = decode_model(file.bytes(), file.name());
  Importer importer(model, file, options.device, options.shapes, options.values);
  importer.run();
  const std::string& name = file.name();
  const std::string stem = name.substr(0, std::min(name.rfind('.'), name.size()));
  return FlowGraph(importer.inputs(), importer.outputs(), stem.empty() ? "model" : stem)
      .with_names(importer.input_names(), importer.output_names(), importer.weight_names());
}

OnnxInfo inspect_onnx(const std::string& path) {
  ModelFile file(path);
  const ModelProto model = decode_model(file.bytes(), file.name());
  OnnxInfo out;
  out.ir_version = model.ir_version;
  out.opset = model.opset("");
  out.producer = model.producer;
  std::unordered_set<std::string> fixed;
  for (const TensorProto& tensor : model.graph.initializers) {
    fixed.insert(tensor.name);
    out.initializers.push_back(tensor.name);
  }
  for (const ValueInfoProto& input : model.graph.inputs)
    if (!fixed.count(input.name)) out.inputs.push_back(input.name);
  for (const ValueInfoProto& output : model.graph.outputs) out.outputs.push_back(output.name);
  for (size_t i = 0; i < model.graph.nodes.size(); i++) {
    const NodeProto& node = model.graph.nodes[i];
    const std::string op = (node.domain.empty() ? "" : node.domain + ".") + node.op_type;
    out.operators[op]++;
    out.nodes.push_back({node.name, op, node.inputs, node.outputs});
    if (!is_supported(node, out.opset)) out.unsupported[op].push_back(describe(node, i));
  }
  return out;
}

Tensor load_onnx_tensor(const std::string& path) {
  ModelFile file(path);
  const TensorProto tensor = decode_tensor(file.bytes(), file.name());
  return to_tensor(load_values(tensor, file, "tensor " + quote_name(tensor.name))).clone();
}

}  // namespace hidet
