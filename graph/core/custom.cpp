// custom.cpp - operators of the user's own (see custom.h). The definition runs once, when the operator is made, so
// that what its lambdas refer to need not live longer.
#include <hidet/graph/custom.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace hidet::ops {
namespace {

void check_name(const char* what, const std::string& name) {
  const bool fine = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                    std::all_of(name.begin(), name.end(),
                                [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  HIDET_REQUIRE(fine, ErrorCode::usage, "", what, ": the name '", name, "' is no identifier");
}

std::vector<TensorSpec> specs_of(const std::vector<Tensor>& inputs) {
  std::vector<TensorSpec> out;
  for (const Tensor& t : inputs) out.push_back({t.dtype(), t.shape_expr()});
  return out;
}

/// The operator with a task made already.
std::shared_ptr<graph::OpDef> fixed_def(const std::string& name, const std::string& doc,
                                        const std::vector<TensorSpec>& inputs,
                                        const std::vector<TensorSpec>& outputs, ir::Task task) {
  auto def = std::make_shared<graph::OpDef>();
  def->name = name;
  def->doc = doc;
  const auto same = [name, inputs](const graph::OpCall& call) {
    bool fine = call.inputs.size() == inputs.size();
    for (size_t i = 0; fine && i < inputs.size(); i++)
      fine = call.inputs[i].dtype == inputs[i].dtype && call.inputs[i].shape == inputs[i].shape;
    HIDET_CHECK(fine, name, ": applied to other inputs than it was defined for");
  };
  def->infer = [same, outputs](const graph::OpCall& call) {
    same(call);
    return outputs;
  };
  def->compute = [same, task = std::move(task)](const graph::OpCall& call) {
    same(call);
    return task;
  };
  return def;
}
}  // namespace

void detail::refuse_rank(size_t rank) {
  throw Error(ErrorCode::usage, "a compute definition of rank " + std::to_string(rank) +
                                    " takes a function of that many axes");
}

DimExpr DefineTensor::shape(int axis) const {
  const int at = axis < 0 ? axis + rank() : axis;
  HIDET_REQUIRE(at >= 0 && at < rank(), ErrorCode::usage, "", "define: axis ", axis,
                " of a tensor of rank ", rank());
  return spec_.shape[static_cast<size_t>(at)];
}

DefineTensor Define::input(int index) const {
  HIDET_REQUIRE(index >= 0 && index < static_cast<int>(inputs_.size()), ErrorCode::usage, "",
                task_.name, ": there is no input ", index);
  return {task_.inputs[static_cast<size_t>(index)], inputs_[static_cast<size_t>(index)]};
}

DefineTensor Define::add(const std::string& name, const DType* dtype,
                         const std::vector<DimExpr>& shape, const graph::ComputeBody& body,
                         bool is_output) {
  TensorSpec spec{dtype ? *dtype : f32, shape};
  if (!dtype) {  // the value's own dtype
    std::vector<ir::Value> axes;
    for (size_t i = 0; i < shape.size(); i++)
      axes.emplace_back(ir::Expr(ir::make_var("i", ir::Type(i64))));
    spec.dtype = body(axes).dtype();
  }
  const ir::VarRef tensor = graph::add_compute(task_, name, spec, body);
  if (is_output) {
    task_.outputs.push_back(tensor);
    outputs_.push_back(spec);
  }
  return {tensor, spec};
}

std::vector<Tensor> define_all(const std::string& name, const std::vector<Tensor>& inputs,
                               const std::function<void(Define&)>& definition) {
  check_name("define", name);
  for (const Tensor& t : inputs)
    HIDET_REQUIRE(t.defined(), ErrorCode::usage, "", name, ": an input is an empty tensor");
  Define d;
  d.inputs_ = specs_of(inputs);
  d.task_.name = name;
  for (size_t i = 0; i < inputs.size(); i++)
    d.task_.inputs.push_back(graph::task_input(static_cast<int>(i), d.inputs_[i]));
  definition(d);
  HIDET_REQUIRE(!d.outputs_.empty(), ErrorCode::usage, "", name, ": the definition has no output");
  return graph::apply(fixed_def(name, "defined by the user", d.inputs_, d.outputs_, d.task_),
                      inputs);
}

Tensor define(const std::string& name, const std::vector<Tensor>& inputs,
              const std::function<void(Define&)>& definition) {
  std::vector<Tensor> out = define_all(name, inputs, definition);
  HIDET_REQUIRE(out.size() == 1, ErrorCode::usage, "", name, ": the definition has ", out.size(),
                " outputs; use define_all");
  return out[0];
}

namespace {
/// A size of an output must follow from the inputs.
void check_symbols(const std::string& name, const CustomTypes& types) {
  std::set<std::string> known;
  for (const graph::TensorSpec& input : types.inputs)
    for (const DimExpr& d : input.shape)
      for (const std::string& s : d.symbol_names()) known.insert(s);
  for (size_t i = 0; i < types.outputs.size(); i++)
    for (const DimExpr& d : types.outputs[i].shape)
      for (const std::string& s : d.symbol_names())
        HIDET_REQUIRE(known.count(s), ErrorCode::usage, "", name, ": the symbol '", s,
                      "' of output ", i, " is in no input");
}
}  // namespace

std::vector<Tensor> custom(const CustomOp& op, const std::vector<Tensor>& inputs) {
  check_name("custom", op.name);
  for (const Tensor& t : inputs)
    HIDET_REQUIRE(t.defined(), ErrorCode::usage, "", op.name, ": an input is an empty tensor");
  const bool on_cuda = !inputs.empty() && inputs[0].device().is_cuda();
  const CustomOp::Script& script = on_cuda && op.cuda ? op.cuda : op.cpu;
  HIDET_REQUIRE(script, ErrorCode::usage, "", op.name, ": there is no script for ",
                on_cuda ? "cuda" : "cpu");
  HIDET_REQUIRE(!op.outputs.empty(), ErrorCode::usage, "", op.name, ": no outputs");
  const CustomTypes types{specs_of(inputs), op.outputs};
  check_symbols(op.name, types);
  for (const auto& [output, input] : op.share_map) {
    const bool fine = output >= 0 && output < static_cast<int>(types.outputs.size()) &&
                      input >= 0 && input < static_cast<int>(types.inputs.size());
    HIDET_REQUIRE(fine && types.outputs[output].dtype == types.inputs[input].dtype &&
                      types.outputs[output].shape == types.inputs[input].shape,
                  ErrorCode::usage, "", op.name, ": output ", output,
                  " cannot share the storage of input ", input,
                  "; both must be there and have one dtype and shape");
  }
  ir::Task task;
  task.name = op.name;
  task.share_map = op.share_map;
  for (size_t i = 0; i < inputs.size(); i++)
    task.inputs.push_back(graph::task_input(static_cast<int>(i), types.inputs[i]));
  for (size_t i = 0; i < types.outputs.size(); i++)
    task.outputs.push_back(
        graph::task_input(static_cast<int>(inputs.size() + i), types.outputs[i]));
  lang::ScriptModule module(op.name);
  script(module, types);
  task.opaque = std::make_shared<const ir::Module>(module.module());
  return graph::apply(
      fixed_def(op.name, "script of the user", types.inputs, types.outputs, std::move(task)),
      inputs);
}

}  // namespace hidet::ops
