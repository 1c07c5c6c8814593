// import.cpp - walks the nodes of an ONNX graph in order; see import.h. A node's known integers are
// folded (fold.h); other nodes are converted by the tables of ops_*.cpp. A node that cannot be
// converted leaves empty values, and what needs those is passed over, so that one run finds all
// problems.
#include "onnx/import.h"

#include <hidet/graph/flow_graph.h>
#include <hidet/graph/ops.h>

#include <algorithm>

#include "onnx/fold.h"
#include "onnx/order.h"
#include "onnx/wire.h"

namespace hidet::graph::onnx {
namespace {

bool is_empty(const Value& value) { return !value.tensor && !value.known; }

// Value-by-value operators on constants of one value are computed at once; operators on weights are
// recorded, and so are those whose output can be larger than their inputs.
bool is_elementwise(const Converter* row) {
  const auto rows = elementwise_converters();
  return row >= rows.data() && row < rows.data() + rows.size();
}
bool only_scalars(const std::vector<Value*>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const Value* value) {
    if (!value) return true;
    if (value->known) return value->known->is_constant() && value->known->elems.size() <= 1;
    return !value->tensor->is_symbolic() && value->tensor->num_elements() <= 1;
  });
}

}  // namespace

Importer::Importer(const ModelProto& model, ModelFile& file, Device device,
                   std::map<std::string, std::vector<DimExpr>> shapes,
                   const std::map<std::string, Tensor>& values)
    : model_(model),
      graph_(model.graph),
      file_(file),
      context_{file, device, checked_opset(model, file.name())},
      shapes_(std::move(shapes)),
      given_(values) {}

void Importer::run() {
  const std::vector<size_t> order = execution_order(graph_, file_.name());
  add_initializers();
  fix_inputs(given_);
  add_inputs();
  const std::vector<bool> needed = needed_nodes();
  for (size_t i : order)
    if (needed[i]) convert(graph_.nodes[i], i);
  HIDET_REQUIRE(!problems_.any(), ErrorCode::unsupported, file_.name(), problems_.text());
  add_outputs();
}

void Importer::add_initializers() {
  for (const TensorProto& tensor : graph_.initializers) {
    const std::string what = "initializer " + quote_name(tensor.name);
    Value value = to_value(load_values(tensor, file_, what));
    weight_names_.emplace(value.tensor->id(), tensor.name);
    values_[tensor.name] = std::move(value);
  }
}

// A fixed input is a constant like an initializer.
void Importer::fix_inputs(const std::map<std::string, Tensor>& values) {
  for (const auto& [name, tensor] : values) {
    const auto same = [&, n = name](const ValueInfoProto& input) { return input.name == n; };
    const auto input = std::find_if(graph_.inputs.begin(), graph_.inputs.end(), same);
    HIDET_REQUIRE(input != graph_.inputs.end(), ErrorCode::usage, file_.name(),
                  "a value is given for ", quote_name(name), ", which is no input of the model");
    const std::string what = "input " + quote_name(name);
    const DType dtype = dtype_of_onnx(input->elem_type, file_.name(), what);
    HIDET_REQUIRE(tensor.dtype() == dtype, ErrorCode::usage, file_.name(), "the value given for ",
                  what, " is ", tensor.describe(), ", expected ", dtype.name());
    const Tensor own = tensor.to(Device()).clone();
    weight_names_.emplace(own.id(), name);
    values_[name] = to_value(
        {own.dtype(), own.shape(), own.num_elements(), own.data(), std::make_shared<Tensor>(own)});
  }
}

// An input with an initializer is a weight: its value is the initializer's.
void Importer::add_inputs() {
  for (const auto& [name, shape] : shapes_)
    HIDET_REQUIRE(std::any_of(graph_.inputs.begin(), graph_.inputs.end(),
                              [&, n = name](const ValueInfoProto& v) {
                                return v.name == n && !values_.count(n);
                              }),
                  ErrorCode::usage, file_.name(), "a shape is given for ", quote_name(name),
                  ", which is no input of the model");
  bind_symbols();
  for (const ValueInfoProto& input : graph_.inputs) {
    if (values_.count(input.name)) continue;
    inputs_.push_back(make_input(input));
    input_names_.push_back(input.name);
    values_[input.name] = Value{inputs_.back(), std::nullopt};
  }
}

// A size given for one input holds for its symbol everywhere.
void Importer::bind_symbols() {
  for (const ValueInfoProto& input : graph_.inputs) {
    const auto given = shapes_.find(input.name);
    if (given == shapes_.end() || !input.has_shape) continue;
    HIDET_REQUIRE(given->second.size() == input.shape.size(), ErrorCode::usage, file_.name(),
                  "the shape given for input ", quote_name(input.name), " has ",
                  given->second.size(), " dimensions, the model's has ", input.shape.size());
    for (size_t i = 0; i < input.shape.size(); i++) {
      const DimProto& dim = input.shape[i];
      const DimExpr& size = given->second[i];
      if (dim.has_value && dim.value >= 0)
        HIDET_REQUIRE(size.is_const(dim.value), ErrorCode::usage, file_.name(), "dimension ", i,
                      " of input ", quote_name(input.name), " is ", dim.value, " in the model and ",
                      size, " in the given shape");
      if (dim.symbol.empty() || dim.has_value) continue;
      const auto [bound, fresh] = symbols_.emplace(dim.symbol, size);
      HIDET_REQUIRE(fresh || bound->second == size, ErrorCode::usage, file_.name(), "the symbol ",
                    quote_name(dim.symbol), " is given the sizes ", bound->second, " and ", size);
    }
  }
}

std::vector<DimExpr> Importer::input_shape(const ValueInfoProto& input) const {
  const auto given = shapes_.find(input.name);
  if (given != shapes_.end()) return given->second;
  HIDET_REQUIRE(input.has_shape, ErrorCode::unsupported, file_.name(), "input ",
                quote_name(input.name), " has no shape; give one when importing");
  std::vector<DimExpr> out;
  for (size_t i = 0; i < input.shape.size(); i++) {
    const DimProto& dim = input.shape[i];
    if (dim.has_value && dim.value >= 0) {
      out.emplace_back(dim.value);
    } else if (!dim.has_value && !dim.symbol.empty()) {
      const auto bound = symbols_.find(dim.symbol);
      out.push_back(bound == symbols_.end() ? DimExpr(dim.symbol) : bound->second);
    } else {
      out.emplace_back(input.name + "_dim_" + std::to_string(i));
    }
  }
  return out;
}

Tensor Importer::make_input(const ValueInfoProto& input) {
  const std::string what = "input " + quote_name(input.name);
  HIDET_REQUIRE(input.kind != "untyped", ErrorCode::bad_file, file_.name(), what,
                " has no element type");
  HIDET_REQUIRE(input.kind == "tensor", ErrorCode::unsupported, file_.name(), what, " is a ",
                input.kind, ", only tensors are supported");
  const DType dtype = dtype_of_onnx(input.elem_type, file_.name(), what);
  return symbol(input_shape(input), dtype, context_.device, input.name);
}

// Nodes that no output needs are passed over: exporters leave some.
std::vector<bool> Importer::needed_nodes() const {
  std::unordered_map<std::string, size_t> maker;
  for (size_t i = 0; i < graph_.nodes.size(); i++)
    for (const std::string& name : graph_.nodes[i].outputs) maker.emplace(name, i);
  std::vector<bool> needed(graph_.nodes.size(), false);
  std::vector<std::string> open;
  for (const ValueInfoProto& output : graph_.outputs) open.push_back(output.name);
  while (!open.empty()) {
    const auto at = maker.find(open.back());
    open.pop_back();
    if (at == maker.end() || needed[at->second]) continue;
    needed[at->second] = true;
    const NodeProto& node = graph_.nodes[at->second];
    for (const std::string& name : node.inputs)
      if (!name.empty()) open.push_back(name);
    for (std::string& name : captured_names(node)) open.push_back(std::move(name));
  }
  return needed;
}

void Importer::convert(const NodeProto& node, size_t index) {
  for (const std::string& name : node.outputs) values_[name];  // empty until they are made
  if (!is_supported(node, context_.opset)) {
    const std::string op = (node.domain.empty() ? "" : node.domain + ".") + node.op_type;
    problems_.operators[op].push_back(describe(node, index));
    return;
  }
  std::vector<Value*> inputs;
  for (const std::string& name : node.inputs) {
    inputs.push_back(name.empty() ? nullptr : &values_[name]);
    if (inputs.back() && is_empty(*inputs.back())) return;
  }
  const NodeCall call(context_, node, index, inputs);
  try {
    std::vector<Value> made = results(call);
    for (size_t i = 0; i < node.outputs.size(); i++) {
      if (node.outputs[i].empty()) continue;
      if (i >= made.size()) call.unsupported("output ", i, " is not supported");
      values_[node.outputs[i]] = std::move(made[i]);
    }
  } catch (const Error& e) {
    const std::string prefix = call.describe();
    std::string message = e.what();
    if (message.find(prefix) == std::string::npos) message = prefix + ": " + message;
    const std::string place = file_.name() + ": error: ";
    if (message.rfind(place, 0) == 0) message.erase(0, place.size());
    if (e.code() == ErrorCode::unsupported) problems_.uses.push_back(message);
    else
      throw Error(e.code() == ErrorCode::usage ? ErrorCode::bad_file : e.code(), message,
                  file_.name());
  }
}

std::vector<Value> Importer::results(const NodeCall& call) const {
  const std::string& op = call.node().op_type;
  if (op == "Constant") {
    Value value = constant(call);
    return {std::move(value)};
  }
  if (op == "Identity" && call.has_input(0)) return {call.value(0)};
  if (auto known = fold(call)) return {Value{std::nullopt, std::move(known)}};
  const Converter* row = find_converter(op, context_.opset);
  if (!row) call.unsupported("its input is no tensor whose shape is known");
  const NameScope name(call.node().name);
  std::optional<RecordScope> record;
  if (!is_elementwise(row) || !only_scalars(call.values())) record.emplace();
  std::vector<Value> out;
  for (Tensor& tensor : row->convert(call)) out.push_back({std::move(tensor), std::nullopt});
  return out;
}

Value Importer::constant(const NodeCall& call) const {
  if (const TensorProto* tensor = call.attr_tensor("value"))
    return to_value(load_values(*tensor, file_, call.describe()));
  const auto known = [](std::vector<int64_t> dims, const std::vector<int64_t>& values) {
    return Value{from_vector<int64_t>(values, dims),
                 Known{i64, dims, {values.begin(), values.end()}}};
  };
  if (call.has_attr("value_int")) return known({}, {call.attr_int("value_int", 0)});
  if (call.has_attr("value_ints")) {
    const std::vector<int64_t> values = call.attr_ints("value_ints");
    return known({static_cast<int64_t>(values.size())}, values);
  }
  if (call.has_attr("value_float"))
    return {from_doubles({call.attr_float("value_float", 0)}, {}, f32), std::nullopt};
  if (call.has_attr("value_floats")) {
    const std::vector<float> values = call.attr_floats("value_floats");
    return {from_vector<float>(values, {static_cast<int64_t>(values.size())}), std::nullopt};
  }
  call.unsupported("a constant of strings or of a sparse tensor");
}

void Importer::add_outputs() {
  for (const ValueInfoProto& output : graph_.outputs) {
    Value& value = values_[output.name];
    if (!value.tensor) value.tensor = to_tensor(*value.known, context_.device);
    outputs_.push_back(*value.tensor);
  }
  HIDET_REQUIRE(!outputs_.empty(), ErrorCode::bad_file, file_.name(), "the model has no outputs");
}

std::vector<std::string> Importer::input_names() const { return input_names_; }

std::vector<std::string> Importer::output_names() const {
  std::vector<std::string> out;
  for (const ValueInfoProto& output : graph_.outputs) out.push_back(output.name);
  return out;
}

}  // namespace hidet::graph::onnx
