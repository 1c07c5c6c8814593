// op.cpp - attributes, the registry, applying operators, and the helpers that compute definitions use.
// Needs: register_operators, made by CMake from the files in graph/ops.
// Threading: thread-safe; a RecordScope and a NameScope count for their thread.
#include <hidet/graph/op.h>
#include <hidet/ir/dim.h>
#include <hidet/runtime/error.h>

#include <optional>
#include <set>

#include "core/evaluate.h"

namespace hidet::graph {

void register_operators(OpRegistry& ops);

namespace {
thread_local int record_depth = 0;
thread_local std::string scope_name;

template <class T>
const T& get_attr(const std::map<std::string, AttrValue>& values, const std::string& name,
                  const char* type) {
  auto it = values.find(name);
  HIDET_CHECK(it != values.end(), "there is no attribute '", name, "'");
  const T* value = std::get_if<T>(&it->second);
  HIDET_CHECK(value, "the attribute '", name, "' is no ", type);
  return *value;
}

struct AttrText {
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const {
    std::ostringstream out;
    out.precision(17);
    out << v;
    return out.str();
  }
  std::string operator()(const std::string& v) const { return "\"" + v + "\""; }
  std::string operator()(const std::vector<int64_t>& v) const { return shape_text(v); }
  std::string operator()(const std::vector<DimExpr>& v) const { return shape_text(v); }
  std::string operator()(DType v) const { return v.name(); }
};

bool is_concrete_call(const std::vector<Tensor>& inputs, const Attrs& attrs) {
  for (const Tensor& t : inputs)
    if (t.is_symbolic()) return false;
  for (const auto& [name, value] : attrs.values())
    if (const auto* dims = std::get_if<std::vector<DimExpr>>(&value); dims && !is_concrete(*dims))
      return false;
  return true;
}

/// Where the results are: with the symbolic inputs (on a GPU if one of them is), else with a concrete input on
/// a GPU, else where the attribute `device` says.
Device device_of(const std::vector<Tensor>& inputs, const Attrs& attrs) {
  std::optional<Device> symbolic;
  for (const Tensor& t : inputs)
    if (t.is_symbolic() && (!symbolic || symbolic->is_cpu())) symbolic = t.device();
  if (symbolic) return *symbolic;
  for (const Tensor& t : inputs)
    if (t.device().is_cuda()) return t.device();
  return attrs.has("device") ? Device(attrs.text("device")) : Device();
}

/// Symbolic inputs of one operator are on one device; what is made of weights alone may be on the CPU.
void check_devices(const OpDef& def, const std::vector<Tensor>& inputs) {
  const Tensor* first = nullptr;
  for (const Tensor& t : inputs) {
    if (!t.is_symbolic()) continue;
    if (!first) {
      first = &t;
      continue;
    }
    if (t.device() == first->device()) continue;
    if (t.device().is_cpu() && is_weight(t)) continue;
    const bool weights = first->device().is_cpu() && is_weight(*first);
    HIDET_REQUIRE(weights, ErrorCode::usage, "", def.name, ": its inputs are on ", first->device(),
                  " and on ", t.device(), "; put them on one device");
    first = &t;
  }
}

std::vector<Tensor> apply_def(std::shared_ptr<Operator> op) {
  const OpDef& def = *op->def;
  for (size_t i = 0; i < op->inputs.size(); i++)
    HIDET_REQUIRE(op->inputs[i].defined(), ErrorCode::usage, "", def.name, ": input ", i,
                  " is an empty tensor");
  check_devices(def, op->inputs);
  op->outputs = def.infer(op->call());
  const Device device = device_of(op->inputs, op->attrs);
  std::vector<Tensor> results;
  if (record_depth == 0 && is_concrete_call(op->inputs, op->attrs)) {
    std::vector<Tensor> inputs;
    for (const Tensor& t : op->inputs) inputs.push_back(t.cpu());
    for (const Tensor& t : evaluate(*op, inputs)) results.push_back(t.to(device));
    return results;
  }
  for (size_t i = 0; i < op->outputs.size(); i++)
    results.push_back(Tensor::make_symbolic(op->outputs[i].dtype, op->outputs[i].shape, device, op,
                                            static_cast<int>(i)));
  return results;
}
}  // namespace

int64_t Attrs::integer(const std::string& name) const {
  return get_attr<int64_t>(values_, name, "integer");
}
double Attrs::number(const std::string& name) const {
  return get_attr<double>(values_, name, "number");
}
const std::string& Attrs::text(const std::string& name) const {
  return get_attr<std::string>(values_, name, "text");
}
const std::vector<int64_t>& Attrs::integers(const std::string& name) const {
  return get_attr<std::vector<int64_t>>(values_, name, "list of integers");
}
const std::vector<DimExpr>& Attrs::dims(const std::string& name) const {
  return get_attr<std::vector<DimExpr>>(values_, name, "list of sizes");
}
DType Attrs::dtype(const std::string& name) const {
  return get_attr<DType>(values_, name, "dtype");
}

std::string Attrs::to_string() const {
  std::string out;
  for (const auto& [name, value] : values_)
    out += (out.empty() ? "" : ", ") + name + "=" + std::visit(AttrText{}, value);
  return out;
}

void OpRegistry::add(OpDef def) {
  const std::string name = def.name;
  HIDET_CHECK(defs_.emplace(name, std::move(def)).second, "the operator '", name,
              "' is defined twice");
}
const OpDef* OpRegistry::find(const std::string& name) const {
  auto it = defs_.find(name);
  return it == defs_.end() ? nullptr : &it->second;
}
std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> out;
  for (const auto& [name, def] : defs_) out.push_back(&def);
  return out;
}

const OpRegistry& operators() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    register_operators(*ops);
    return ops;
  }();
  return *registry;
}

OpCall Operator::call() const {
  OpCall out;
  for (const Tensor& t : inputs) out.inputs.push_back({t.dtype(), t.shape_expr()});
  out.attrs = attrs;
  return out;
}

bool is_weight(const Tensor& t) {
  std::set<const void*> seen;
  std::vector<Tensor> stack{t};
  while (!stack.empty()) {
    const Tensor at = stack.back();
    stack.pop_back();
    if (!at.is_symbolic() || !seen.insert(at.id()).second) continue;
    const auto op = producer_of(at);
    if (!op) return false;
    stack.insert(stack.end(), op->inputs.begin(), op->inputs.end());
  }
  return true;
}

std::shared_ptr<const Operator> producer_of(const Tensor& tensor) {
  return std::static_pointer_cast<const Operator>(tensor.producer());
}

std::vector<Tensor> apply(const std::string& op, const std::vector<Tensor>& inputs, Attrs attrs,
                          const std::string& name) {
  const OpDef* def = operators().find(op);
  HIDET_REQUIRE(def, ErrorCode::unsupported, "", "there is no operator '", op, "'");
  auto use = std::make_shared<Operator>();
  use->def = def;
  use->inputs = inputs;
  use->attrs = std::move(attrs);
  use->name = name.empty() ? scope_name : name;
  return apply_def(std::move(use));
}

std::vector<Tensor> apply(std::shared_ptr<const OpDef> def, const std::vector<Tensor>& inputs,
                          Attrs attrs, const std::string& name) {
  auto use = std::make_shared<Operator>();
  use->def = def.get();
  use->custom = std::move(def);
  use->inputs = inputs;
  use->attrs = std::move(attrs);
  use->name = name.empty() ? scope_name : name;
  return apply_def(std::move(use));
}

RecordScope::RecordScope() { record_depth++; }
RecordScope::~RecordScope() { record_depth--; }

NameScope::NameScope(std::string name) : outer_(scope_name) {
  if (!name.empty()) scope_name = std::move(name);
}
NameScope::~NameScope() { scope_name = std::move(outer_); }

ir::VarRef task_input(int index, const TensorSpec& spec) {
  return ir::tensor_var("x" + std::to_string(index), spec.dtype, ir::to_exprs(spec.shape));
}

ir::VarRef add_compute(ir::Task& task, const std::string& name, const TensorSpec& spec,
                       const ComputeBody& value) {
  ir::Compute compute;
  compute.tensor = ir::tensor_var(name, spec.dtype, ir::to_exprs(spec.shape));
  std::vector<ir::Value> axes;
  for (size_t i = 0; i < spec.shape.size(); i++) {
    compute.axes.push_back(ir::make_var("i" + std::to_string(i), ir::Type(i64)));
    axes.emplace_back(ir::Expr(compute.axes.back()));
  }
  compute.value = ir::coerce(value(axes), ir::Type(spec.dtype), task.name + ": '" + name + "'", {});
  task.computes.push_back(compute);
  return compute.tensor;
}

ir::Value element(const ir::VarRef& tensor, const std::vector<ir::Value>& indices) {
  std::vector<ir::Expr> exprs;
  for (const ir::Value& v : indices) exprs.push_back(v.expr());
  return ir::Value(ir::make_element(tensor, std::move(exprs)));
}

ir::Value reduce(ir::ReduceOp op, const std::vector<DimExpr>& extents, const ComputeBody& value) {
  std::vector<ir::VarRef> axes;
  std::vector<ir::Value> values;
  for (size_t i = 0; i < extents.size(); i++) {
    axes.push_back(ir::make_var("k" + std::to_string(i), ir::Type(i64)));
    values.emplace_back(ir::Expr(axes.back()));
  }
  ir::Expr body = value(values).expr();
  return ir::Value(ir::make_reduce(op, std::move(axes), ir::to_exprs(extents), std::move(body)));
}

}  // namespace hidet::graph
