// flow_graph.cpp - FlowGraph: tracing from outputs, signatures, running with the reference evaluator, text.
// Threading: graphs are immutable; thread-safe.
#include <hidet/graph/flow_graph.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/evaluate.h"

namespace hidet {
using graph::Operator;

Tensor symbol(const std::vector<DimExpr>& shape, DType dtype, Device device,
              const std::string& name) {
  for (const DimExpr& d : shape)
    HIDET_REQUIRE(!d.is_const() || d.value() >= 0, ErrorCode::usage, "", "symbol: the size ", d,
                  " in ", shape_text(shape));
  return Tensor::make_symbolic(dtype, shape, device, nullptr, 0, name);
}

namespace {
/// A value of a graph: one output of one operator, or a tensor that no operator made.
struct ValueKey {
  const void* maker;
  int index;
  friend bool operator==(const ValueKey&, const ValueKey&) = default;
};
struct ValueHash {
  size_t operator()(const ValueKey& k) const {
    return std::hash<const void*>()(k.maker) * 31 + static_cast<size_t>(k.index);
  }
};
ValueKey key_of(const Tensor& t) {
  if (t.is_symbolic() && t.producer()) return {t.producer().get(), t.output_index()};
  return {t.id(), -1};
}

/// Walks from the outputs back to what no operator makes, producers first, without recursion.
class Tracer {
 public:
  Tracer(const std::vector<Tensor>& stop_at, const std::vector<Tensor>& outputs) {
    for (const Tensor& t : stop_at) stops_.insert(key_of(t));
    for (const Tensor& t : outputs) {
      remember(t);
      visit(t);
    }
  }

  std::vector<FlowGraph::Node> nodes;
  std::vector<Tensor> leaves;   ///< symbolic, first use first
  std::vector<Tensor> weights;  ///< concrete, first use first

  void name_outputs() {
    for (FlowGraph::Node& n : nodes)
      for (size_t i = 0; i < n.op->outputs.size(); i++) {
        auto it = handles_.find({n.op.get(), static_cast<int>(i)});
        n.outputs.push_back(it != handles_.end() ? it->second : unread_output(n, i));
      }
  }

 private:
  Tensor unread_output(const FlowGraph::Node& n, size_t i) const {
    Device device;
    for (const auto& [key, t] : handles_)
      if (key.maker == n.op.get()) device = t.device();
    return Tensor::make_symbolic(n.op->outputs[i].dtype, n.op->outputs[i].shape, device,
                                 std::const_pointer_cast<Operator>(n.op), static_cast<int>(i));
  }

  void remember(const Tensor& t) { handles_.emplace(key_of(t), t); }

  void leaf(const Tensor& t) {
    if (!seen_leaves_.insert(t.id()).second) return;
    (t.is_symbolic() ? leaves : weights).push_back(t);
  }

  void visit(const Tensor& root) {
    if (!is_made(root)) return leaf(root);
    std::vector<std::pair<std::shared_ptr<const Operator>, size_t>> stack;
    const auto enter = [&](const Tensor& t) {
      auto op = graph::producer_of(t);
      if (done_.insert(op.get()).second) stack.emplace_back(std::move(op), 0);
    };
    enter(root);
    while (!stack.empty()) {
      auto& [op, next] = stack.back();
      if (next == op->inputs.size()) {
        // Leaves in the order in which operators run, not in which the walk met them.
        for (const Tensor& t : op->inputs)
          if (!is_made(t)) leaf(t);
        nodes.push_back({op, {}});
        stack.pop_back();
        continue;
      }
      const Tensor input = op->inputs[next++];
      remember(input);
      if (is_made(input)) enter(input);
    }
  }

  bool is_made(const Tensor& t) const {
    return t.is_symbolic() && t.producer() && !stops_.count(key_of(t));
  }

  std::unordered_set<ValueKey, ValueHash> stops_;
  std::unordered_map<ValueKey, Tensor, ValueHash> handles_;
  std::unordered_set<const void*> done_, seen_leaves_;
};

std::string quoted_list(const std::vector<Tensor>& tensors) {
  std::string out;
  for (size_t i = 0; i < tensors.size(); i++) {
    const std::string& name = tensors[i].name();
    out += (i == 0 ? "" : ", ") + (name.empty() ? "x" + std::to_string(i) : name) + " (" +
           tensors[i].describe() + ")";
  }
  return out;
}

TensorSignature signature(const Tensor& t, const std::string& name) {
  return {name, t.dtype(), t.shape_expr(), t.device()};
}

/// `name`, or with a number where another tensor has it already.
std::string unique_name(std::string name, std::set<std::string>& taken) {
  const std::string base = name;
  for (int i = 1; !taken.insert(name).second; i++) name = base + "_" + std::to_string(i);
  return name;
}
}  // namespace

struct FlowGraph::Data {
  std::string name;
  std::vector<Tensor> inputs, outputs, weights;
  std::vector<std::string> input_names, output_names, weight_names;
  std::vector<Node> nodes;

  Data() = default;
  Data(const Data&) = default;
  /// Last operators first, so that a long chain is not destroyed by recursion.
  ~Data() {
    outputs.clear();
    while (!nodes.empty()) nodes.pop_back();
  }
};

FlowGraph::FlowGraph(std::vector<Tensor> inputs, std::vector<Tensor> outputs, std::string name) {
  auto data = std::make_shared<Data>();
  HIDET_REQUIRE(!outputs.empty(), ErrorCode::usage, "", "a graph without outputs");
  for (const Tensor& t : inputs)
    HIDET_REQUIRE(t.defined() && t.is_symbolic(), ErrorCode::usage, "", "a graph's input is ",
                  t.defined() ? t.describe() + " with values" : "an empty tensor",
                  "; make it with hidet::symbol");
  for (const Tensor& t : outputs)
    HIDET_REQUIRE(t.defined(), ErrorCode::usage, "", "a graph's output is an empty tensor");
  Tracer trace(inputs, outputs);
  trace.name_outputs();
  std::set<const void*> known;
  for (const Tensor& t : inputs)
    HIDET_REQUIRE(known.insert(t.id()).second, ErrorCode::usage, "", "the input ", t.describe(),
                  " is listed twice");
  for (const Tensor& t : trace.leaves) {
    const bool listed = std::any_of(inputs.begin(), inputs.end(),
                                    [&](const Tensor& i) { return key_of(i) == key_of(t); });
    HIDET_REQUIRE(listed, ErrorCode::usage, "", "the outputs depend on ",
                  t.name().empty() ? "an input" : "'" + t.name() + "'", " (", t.describe(),
                  ") that is not in the list of inputs");
  }
  std::set<std::string> taken;
  for (size_t i = 0; i < inputs.size(); i++)
    data->input_names.push_back(
        unique_name(inputs[i].name().empty() ? "x" + std::to_string(i) : inputs[i].name(), taken));
  taken.clear();
  for (size_t i = 0; i < outputs.size(); i++)
    data->output_names.push_back(unique_name(
        outputs[i].name().empty() ? "y" + std::to_string(i) : outputs[i].name(), taken));
  for (size_t i = 0; i < trace.weights.size(); i++)
    data->weight_names.push_back("w" + std::to_string(i));
  data->name = std::move(name);
  data->inputs = std::move(inputs);
  data->outputs = std::move(outputs);
  data->weights = std::move(trace.weights);
  data->nodes = std::move(trace.nodes);
  data_ = std::move(data);
}

#define HIDET_GRAPH_DATA() HIDET_REQUIRE(data_, ErrorCode::usage, "", "an empty FlowGraph")

std::vector<TensorSignature> FlowGraph::inputs() const {
  HIDET_GRAPH_DATA();
  std::vector<TensorSignature> out;
  for (size_t i = 0; i < data_->inputs.size(); i++)
    out.push_back(signature(data_->inputs[i], data_->input_names[i]));
  return out;
}
std::vector<TensorSignature> FlowGraph::outputs() const {
  HIDET_GRAPH_DATA();
  std::vector<TensorSignature> out;
  for (size_t i = 0; i < data_->outputs.size(); i++)
    out.push_back(signature(data_->outputs[i], data_->output_names[i]));
  return out;
}
std::vector<std::string> FlowGraph::symbols() const {
  HIDET_GRAPH_DATA();
  std::set<std::string> names;
  for (const Tensor& t : data_->inputs)
    for (const DimExpr& d : t.shape_expr())
      for (const std::string& s : d.symbol_names()) names.insert(s);
  return {names.begin(), names.end()};
}
const std::vector<Tensor>& FlowGraph::input_tensors() const {
  HIDET_GRAPH_DATA();
  return data_->inputs;
}
const std::vector<Tensor>& FlowGraph::output_tensors() const {
  HIDET_GRAPH_DATA();
  return data_->outputs;
}
const std::vector<FlowGraph::Node>& FlowGraph::nodes() const {
  HIDET_GRAPH_DATA();
  return data_->nodes;
}
const std::vector<Tensor>& FlowGraph::weights() const {
  HIDET_GRAPH_DATA();
  return data_->weights;
}
const std::vector<std::string>& FlowGraph::weight_names() const {
  HIDET_GRAPH_DATA();
  return data_->weight_names;
}
const std::string& FlowGraph::name() const {
  HIDET_GRAPH_DATA();
  return data_->name;
}

FlowGraph FlowGraph::with_names(std::vector<std::string> inputs, std::vector<std::string> outputs,
                                std::map<const void*, std::string> weights) const {
  HIDET_GRAPH_DATA();
  HIDET_CHECK(inputs.size() == data_->inputs.size() && outputs.size() == data_->outputs.size(),
              inputs.size(), " and ", outputs.size(), " names for ", data_->inputs.size(),
              " inputs and ", data_->outputs.size(), " outputs");
  auto data = std::make_shared<Data>(*data_);
  data->input_names = std::move(inputs);
  data->output_names = std::move(outputs);
  std::set<std::string> taken;
  for (size_t i = 0; i < data->weights.size(); i++) {
    auto it = weights.find(data->weights[i].id());
    data->weight_names[i] =
        unique_name(it != weights.end() ? it->second : data->weight_names[i], taken);
  }
  FlowGraph out;
  out.data_ = std::move(data);
  return out;
}

FlowGraph FlowGraph::with_names_of(const FlowGraph& original) const {
  HIDET_GRAPH_DATA();
  const Data& old = *original.data_;
  HIDET_CHECK(
      data_->inputs.size() == old.inputs.size() && data_->outputs.size() == old.outputs.size(),
      "graphs of different signatures");
  auto data = std::make_shared<Data>(*data_);
  data->input_names = old.input_names;
  data->output_names = old.output_names;
  data->weights = old.weights;
  data->weight_names = old.weight_names;
  std::set<const void*> known;
  for (const Tensor& w : old.weights) known.insert(w.id());
  std::set<std::string> taken(old.weight_names.begin(), old.weight_names.end());
  for (size_t i = 0; i < data_->weights.size(); i++) {
    if (!known.insert(data_->weights[i].id()).second) continue;
    data->weights.push_back(data_->weights[i]);
    data->weight_names.push_back(unique_name(data_->weight_names[i], taken));
  }
  FlowGraph out;
  out.data_ = std::move(data);
  return out;
}

namespace {
/// Checks one input and binds its symbols; `bound` says which input gave a symbol its value.
void check_input(const TensorSignature& expected, const Tensor& got, SymbolMap& symbols,
                 std::map<std::string, std::string>& bound) {
  HIDET_REQUIRE(got.defined(), ErrorCode::usage, "", "input '", expected.name,
                "' is an empty tensor");
  HIDET_REQUIRE(!got.is_symbolic(), ErrorCode::usage, "", "input '", expected.name,
                "' has no values: ", got.describe());
  const auto mismatch = [&] {
    return detail::concat("input '", expected.name, "' expects ", expected.dtype,
                          shape_text(expected.shape), " on ", expected.device, ", got ",
                          got.dtype(), shape_text(got.shape()), " on ", got.device());
  };
  HIDET_REQUIRE(got.dtype() == expected.dtype && got.device() == expected.device &&
                    got.shape().size() == expected.shape.size(),
                ErrorCode::usage, "", mismatch());
  for (size_t d = 0; d < expected.shape.size(); d++) {
    const DimExpr& dim = expected.shape[d];
    const int64_t size = got.shape()[d];
    HIDET_REQUIRE(!dim.is_const() || dim.value() == size, ErrorCode::usage, "", mismatch());
    if (!dim.is_symbol()) continue;
    auto [it, fresh] = symbols.emplace(dim.name(), size);
    if (fresh) bound[dim.name()] = expected.name;
    HIDET_REQUIRE(it->second == size, ErrorCode::usage, "", "the symbol '", dim.name(), "' is ",
                  it->second, " in input '", bound[dim.name()], "' and ", size, " in input '",
                  expected.name, "'");
  }
}

/// The formulas in the inputs' shapes, once all symbols have values.
void check_formulas(const std::vector<TensorSignature>& expected, const std::vector<Tensor>& got,
                    const SymbolMap& symbols) {
  for (size_t i = 0; i < got.size(); i++)
    for (size_t d = 0; d < expected[i].shape.size(); d++) {
      const DimExpr& dim = expected[i].shape[d];
      HIDET_REQUIRE(dim.is_const() || dim.eval(symbols) == got[i].shape()[d], ErrorCode::usage, "",
                    "input '", expected[i].name, "' expects ", dim, " = ", dim.eval(symbols),
                    " in axis ", d, ", got ", shape_text(got[i].shape()));
    }
}
}  // namespace

std::vector<Tensor> FlowGraph::run(const std::vector<Tensor>& inputs) const {
  return run(inputs, nullptr);
}

std::vector<Tensor> FlowGraph::run(
    const std::vector<Tensor>& inputs,
    const std::function<void(const Node&, const std::vector<Tensor>&)>& hook) const {
  HIDET_GRAPH_DATA();
  const std::vector<TensorSignature> expected = this->inputs();
  HIDET_REQUIRE(inputs.size() == expected.size(), ErrorCode::usage, "", "the graph '", name(),
                "' takes ", expected.size(), " inputs, got ", inputs.size());
  SymbolMap symbols;
  std::map<std::string, std::string> bound;
  for (size_t i = 0; i < inputs.size(); i++) check_input(expected[i], inputs[i], symbols, bound);
  check_formulas(expected, inputs, symbols);

  std::unordered_map<ValueKey, Tensor, ValueHash> values;
  std::unordered_map<ValueKey, int, ValueHash> uses;
  for (const Node& n : nodes())
    for (const Tensor& t : n.op->inputs) uses[key_of(t)]++;
  for (const Tensor& t : data_->outputs) uses[key_of(t)]++;
  std::set<const void*> users;  // storage that is the caller's
  for (size_t i = 0; i < inputs.size(); i++) {
    values[key_of(data_->inputs[i])] = inputs[i].cpu();
    users.insert(inputs[i].cpu().data());
  }
  for (const Tensor& w : data_->weights) values[key_of(w)] = w.cpu();
  for (const Node& n : nodes()) {
    std::vector<Tensor> args;
    std::vector<bool> in_place;
    for (const Tensor& t : n.op->inputs) {
      args.push_back(values.at(key_of(t)));
      in_place.push_back(users.count(args.back().data()) != 0);
    }
    const std::vector<Tensor> results = graph::evaluate_with(*n.op, args, symbols, in_place);
    if (hook) hook(n, results);
    for (size_t i = 0; i < results.size(); i++) values[key_of(n.outputs[i])] = results[i];
    for (const Tensor& t : n.op->inputs)
      if (--uses[key_of(t)] == 0) values.erase(key_of(t));
  }

  // Outputs own their storage, but for what an operator works on in place by its declaration.
  std::vector<Tensor> out;
  std::set<const void*> given;
  for (const Tensor& w : data_->weights) given.insert(w.cpu().data());
  for (const Tensor& t : data_->outputs) {
    const auto it = values.find(key_of(t));
    Tensor value = it != values.end() ? it->second : t.cpu();
    const bool is_input = std::any_of(data_->inputs.begin(), data_->inputs.end(),
                                      [&](const Tensor& i) { return key_of(i) == key_of(t); });
    const bool shared = !given.insert(value.data()).second && value.data();
    if (is_input || shared) value = value.clone();
    out.push_back(value.to(t.is_symbolic()         ? t.device()
                           : data_->inputs.empty() ? t.device()
                                                   : data_->inputs[0].device()));
  }
  return out;
}

Tensor FlowGraph::run_one(const std::vector<Tensor>& inputs) const {
  HIDET_GRAPH_DATA();
  HIDET_REQUIRE(data_->outputs.size() == 1, ErrorCode::usage, "", "the graph '", name(), "' has ",
                data_->outputs.size(), " outputs; call run");
  return run(inputs)[0];
}

std::string FlowGraph::text() const {
  HIDET_GRAPH_DATA();
  std::unordered_map<ValueKey, std::string, ValueHash> names;
  std::string out = "graph " + name() + " {\n";
  for (size_t i = 0; i < data_->inputs.size(); i++) {
    names[key_of(data_->inputs[i])] = "%" + data_->input_names[i];
    out += "  input %" + signature(data_->inputs[i], data_->input_names[i]).text() + "\n";
  }
  for (size_t i = 0; i < data_->weights.size(); i++) {
    names[key_of(data_->weights[i])] = "@" + data_->weight_names[i];
    out += "  weight @" + signature(data_->weights[i], data_->weight_names[i]).text() + "\n";
  }
  int next = 0;
  for (const Node& n : nodes()) {
    std::string results, args, types;
    for (const Tensor& t : n.outputs) {
      const std::string value = "%" + std::to_string(next++);
      names[key_of(t)] = value;
      results += (results.empty() ? "" : ", ") + value;
      types +=
          (types.empty() ? "" : ", ") + std::string(t.dtype().name()) + shape_text(t.shape_expr());
    }
    for (const Tensor& t : n.op->inputs) args += (args.empty() ? "" : ", ") + names.at(key_of(t));
    const std::string attrs = n.op->attrs.to_string();
    out += "  " + results + " = " + n.op->def->name + "(" + args +
           (attrs.empty() || args.empty() ? "" : ", ") + attrs + "): " + types +
           (n.op->name.empty() ? "" : "  // " + n.op->name) + "\n";
  }
  for (size_t i = 0; i < data_->outputs.size(); i++)
    out +=
        "  output " + data_->output_names[i] + " = " + names.at(key_of(data_->outputs[i])) + "\n";
  return out + "}\n";
}

FlowGraph trace_from(const Tensor& output, const std::vector<Tensor>& inputs) {
  return trace_from(std::vector<Tensor>{output}, inputs);
}

FlowGraph trace_from(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs) {
  if (!inputs.empty()) return FlowGraph(inputs, outputs);
  for (const Tensor& t : outputs)
    HIDET_REQUIRE(t.defined(), ErrorCode::usage, "", "trace_from: an output is an empty tensor");
  const Tracer trace({}, outputs);
  HIDET_REQUIRE(trace.leaves.size() <= 1, ErrorCode::usage, "",
                "trace_from: the outputs depend on ", trace.leaves.size(), " inputs, ",
                quoted_list(trace.leaves), "; give the list of inputs");
  return FlowGraph(trace.leaves, outputs);
}

}  // namespace hidet
