// interpret.cpp - the reference evaluator: interprets compute definitions on concrete CPU tensors, strip
// by strip on the process's threads, and evaluates operators of a graph with it.
// Threading: thread-safe.
#include <hidet/ir/dim.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/thread_pool.h>

#include <algorithm>
#include <cstring>

#include "core/evaluate.h"
#include "core/lanes.h"

namespace hidet::graph {
namespace {

void store_lanes(DType t, const LaneMachine& m, char* to, int n) {
  auto put = [&](auto* out, auto value) {
    for (int i = 0; i < n; i++) out[i] = value(i);
  };
  const double* x = m.numbers();
  const int64_t* k = m.integers();
  switch (t.code()) {
    case DTypeCode::tf32:
    case DTypeCode::f32:
      return put(reinterpret_cast<float*>(to), [&](int i) { return static_cast<float>(x[i]); });
    case DTypeCode::f64: return put(reinterpret_cast<double*>(to), [&](int i) { return x[i]; });
    case DTypeCode::f16:
      return put(reinterpret_cast<uint16_t*>(to), [&](int i) { return f64_to_f16(x[i]); });
    case DTypeCode::bf16:
      return put(reinterpret_cast<uint16_t*>(to), [&](int i) { return f64_to_bf16(x[i]); });
    default: break;
  }
  switch (t.bytes()) {
    case 1:
      return put(reinterpret_cast<uint8_t*>(to), [&](int i) { return static_cast<uint8_t>(k[i]); });
    case 2:
      return put(reinterpret_cast<uint16_t*>(to),
                 [&](int i) { return static_cast<uint16_t>(k[i]); });
    case 4:
      return put(reinterpret_cast<uint32_t*>(to),
                 [&](int i) { return static_cast<uint32_t>(k[i]); });
    default: return put(reinterpret_cast<int64_t*>(to), [&](int i) { return k[i]; });
  }
}

/// Steps that one output element costs, roughly.
int64_t cost_of(const LaneProgram& p) {
  int64_t cost = static_cast<int64_t>(p.steps.size());
  for (const LaneStep& s : p.steps)
    if (s.reduction) cost += product(s.reduction->extents) * cost_of(s.reduction->body);
  return cost;
}

/// Elements [begin, end) of one compute.
void run_elements(const LaneProgram& program, const Tensor& out, int64_t begin, int64_t end) {
  const Shape& shape = out.shape();
  const size_t rank = shape.size(), size = out.dtype().bytes();
  LaneMachine machine(program);
  std::vector<std::vector<int64_t>> axes(rank, std::vector<int64_t>(program.lanes));
  std::vector<const int64_t*> pointers;
  for (const auto& a : axes) pointers.push_back(a.data());
  Shape at(rank);
  int64_t rest = begin;
  for (size_t d = rank; d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
  for (int64_t first = begin; first < end; first += program.lanes) {
    const int lanes = static_cast<int>(std::min<int64_t>(program.lanes, end - first));
    for (int i = 0; i < lanes; i++) {
      for (size_t d = 0; d < rank; d++) axes[d][i] = at[d];
      for (size_t d = rank; d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
    }
    machine.run(lanes, pointers);
    const auto& marks = machine.marks();
    HIDET_REQUIRE(std::find(marks.begin(), marks.end(), 1) == marks.end(), ErrorCode::internal, "",
                  program.where, ": ", machine.fault());
    store_lanes(out.dtype(), machine,
                static_cast<char*>(out.data()) + first * static_cast<int64_t>(size), lanes);
  }
}

Tensor run_compute(const ir::Task& task, const ir::Compute& compute, const LaneTensors& tensors,
                   const SymbolMap& symbols) {
  Shape shape;
  for (const ir::Expr& e : ir::shape_of(compute.tensor))
    shape.push_back(ir::to_dim(e).eval(symbols));
  Tensor out = empty(shape, ir::dtype_of(compute.tensor));
  const int64_t count = out.num_elements();
  if (count == 0) return out;
  const LaneProgram program =
      compile_lanes(task.name, compute.value, compute.axes, tensors, symbols);
  constexpr int64_t kWork = 1 << 16;  // below it threads do not pay
  const int64_t grain = std::max<int64_t>(1, kWork / std::max<int64_t>(1, cost_of(program)));
  runtime::parallel_for(
      count, grain, [&](int64_t begin, int64_t end) { run_elements(program, out, begin, end); });
  return out;
}

void bind_inputs(const ir::Task& task, const std::vector<Tensor>& inputs, SymbolMap& symbols) {
  HIDET_CHECK(inputs.size() == task.inputs.size(), task.name, ": ", inputs.size(), " tensors for ",
              task.inputs.size(), " inputs");
  for (size_t i = 0; i < inputs.size(); i++) {
    const std::vector<DimExpr> shape = ir::to_dims(ir::shape_of(task.inputs[i]));
    HIDET_REQUIRE(inputs[i].dtype() == ir::dtype_of(task.inputs[i]) &&
                      bind_symbols(shape, inputs[i].shape(), symbols),
                  ErrorCode::usage, "", task.name, ": input ", i, " is ", inputs[i].describe(),
                  ", expected ", ir::dtype_of(task.inputs[i]), shape_text(shape));
  }
}

Attrs with_values(const Attrs& attrs, const SymbolMap& symbols) {
  Attrs out = attrs;
  for (const auto& [name, value] : attrs.values())
    if (const auto* dims = std::get_if<std::vector<DimExpr>>(&value)) {
      std::vector<DimExpr> sizes;
      for (const DimExpr& d : *dims) sizes.push_back(d.eval(symbols));
      out.set(name, std::move(sizes));
    }
  return out;
}
}  // namespace

bool bind_symbols(const std::vector<DimExpr>& shape, const Shape& actual, SymbolMap& symbols) {
  if (shape.size() != actual.size()) return false;
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i].is_const() && shape[i].value() != actual[i]) return false;
    if (shape[i].is_symbol() &&
        symbols.emplace(shape[i].name(), actual[i]).first->second != actual[i])
      return false;
  }
  return true;
}

std::vector<Tensor> interpret(const ir::Task& task, const std::vector<Tensor>& inputs,
                              const SymbolMap& given) {
  SymbolMap symbols = given;
  bind_inputs(task, inputs, symbols);
  if (task.opaque) return run_script(task, inputs, symbols, {});
  LaneTensors tensors;
  std::vector<Tensor> keep;
  auto add = [&](const ir::VarRef& var, const std::string& name, const Tensor& t) {
    tensors[var.get()] = {name, t.dtype(), t.shape(), t.data()};
  };
  for (size_t i = 0; i < inputs.size(); i++)
    add(task.inputs[i], "input " + std::to_string(i) + " ", inputs[i]);
  std::vector<Tensor> outputs(task.outputs.size());
  for (const ir::Compute& c : task.computes) {
    const Tensor t = run_compute(task, c, tensors, symbols);
    add(c.tensor, c.tensor->name, t);
    keep.push_back(t);
    for (size_t i = 0; i < outputs.size(); i++)
      if (same(task.outputs[i], c.tensor)) outputs[i] = t;
  }
  for (size_t i = 0; i < outputs.size(); i++)
    HIDET_CHECK(outputs[i].defined(), task.name, ": output ", i, " is not computed");
  return outputs;
}

std::vector<Tensor> evaluate_with(const Operator& op, const std::vector<Tensor>& inputs,
                                  SymbolMap symbols, const std::vector<bool>& in_place) {
  for (size_t i = 0; i < op.inputs.size(); i++)
    bind_symbols(op.inputs[i].shape_expr(), inputs[i].shape(), symbols);
  if (op.custom) {
    const ir::Task task = op.def->compute(op.call());
    if (!task.opaque) return interpret(task, inputs, symbols);
    bind_inputs(task, inputs, symbols);
    return run_script(task, inputs, symbols, in_place);
  }
  OpCall call;
  for (const Tensor& t : inputs) call.inputs.push_back({t.dtype(), t.shape_expr()});
  call.attrs = with_values(op.attrs, symbols);
  if (op.def->reference) return op.def->reference(call, inputs);
  (void)op.def->infer(call);  // what is only known with sizes: do they broadcast
  return interpret(op.def->compute(call), inputs, symbols);
}

std::vector<Tensor> evaluate(const Operator& op, const std::vector<Tensor>& inputs) {
  std::vector<bool> in_place(inputs.size(), true);
  return evaluate_with(op, inputs, {}, in_place);
}

}  // namespace hidet::graph
