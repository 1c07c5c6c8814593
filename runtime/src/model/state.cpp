// state.cpp - a program made ready: code loaded, formulas compiled, outputs planned.
// Threading: made by one thread.
#include "src/model/state.h"

#include <algorithm>

#include "hidet/runtime/cuda.h"
#include "hidet/runtime/error.h"

namespace hidet::runtime {
namespace {

ModuleData module_of(const ModelData& data, const ProgramData& p, Device device) {
  ModuleData m;
  m.name = data.name;
  m.code = p.code;
  m.target = device.is_cpu() ? p.target : "x86-64";
  m.functions = p.functions;
  if (device.is_cuda() && !p.cuda_image.empty()) m.images.push_back({p.target, p.cuda_image});
  m.cuda_kernels = p.cuda_kernels;
  m.device = device;
  return m;
}

int root_of(const Execution& e, int id) {
  while (e.tensors[id].alias >= 0) id = e.tensors[id].alias;
  return id;
}

InputCheck input_check(const TensorSignature& signature, const std::vector<std::string>& symbols,
                       std::vector<bool>& bound) {
  InputCheck check{signature, {}};
  for (const DimExpr& d : signature.shape) {
    DimCheck c{DimCheck::Kind::constant};
    if (d.is_const()) {
      c.value = d.value();
    } else if (d.is_symbol()) {
      c.symbol =
          static_cast<int>(std::find(symbols.begin(), symbols.end(), d.name()) - symbols.begin());
      c.kind = bound[c.symbol] ? DimCheck::Kind::same : DimCheck::Kind::bind;
      bound[c.symbol] = true;
    } else {
      c.kind = DimCheck::Kind::formula;
      c.program = d.compile(symbols);
    }
    check.dims.push_back(std::move(c));
  }
  return check;
}

/// Outputs that are no result of the code: shared, passed through, weights, repeats.
OutputPlan output_plan(const ModelData& data, const Execution& e, size_t i) {
  using From = OutputPlan::From;
  OutputPlan plan;
  const int root = root_of(e, e.outputs_index[i]);
  if (const auto shared = data.share_map.find(static_cast<int>(i));
      shared != data.share_map.end()) {
    plan.from = From::shared;
    plan.index = shared->second;
    return plan;
  }
  const auto find = [&](const std::vector<int>& ids, size_t count, From from) {
    for (size_t k = 0; k < count && plan.from == From::code; ++k)
      if (ids[k] >= 0 && root_of(e, ids[k]) == root)
        plan.from = from, plan.index = static_cast<int>(k);
  };
  find(e.inputs_index, e.inputs_index.size(), From::input);
  find(e.weights_index, e.weights_index.size(), From::weight);
  find(e.outputs_index, i, From::output);
  return plan;
}

}  // namespace

ModelState::ModelState(ModelData model, const Choice& choice)
    : data(std::move(model)),
      chosen(std::max(choice.program, 0)),
      why_not(choice.program < 0 ? choice.verdict.reason : "") {
  const ProgramData& p = program();
  device = CpuTarget::is_cpu_target(p.target) ? Device() : choice.device;
  if (choice.program >= 0) {
    code = std::make_unique<LoadedCode>(module_of(data, p, device));
    launch = reinterpret_cast<GraphLaunch>(code->object.need("hidet_graph_launch"));
    launch_chosen =
        reinterpret_cast<GraphLaunchChosen>(code->object.find("hidet_graph_launch_chosen"));
    workspace_bytes = reinterpret_cast<GraphWorkspace>(code->object.need("hidet_graph_workspace"));
  }
  for (const SymbolRange& s : data.symbols) symbol_names.push_back(s.name);
  std::vector<bool> bound(symbol_names.size());
  const Execution& e = p.execution;
  const auto on_device = [&](TensorSignature s) {
    s.device = device;
    return s;
  };
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    input_signatures.push_back(on_device(data.inputs[i]));
    inputs.push_back(input_check(input_signatures.back(), symbol_names, bound));
  }
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    OutputPlan plan = output_plan(data, e, i);
    plan.signature = on_device(data.outputs[i]);
    for (const DimExpr& d : plan.signature.shape) plan.dims.push_back(d.compile(symbol_names));
    output_signatures.push_back(plan.signature);
    outputs.push_back(std::move(plan));
  }
  auto table = std::make_shared<DispatchTable>(DispatchTable::parse(data, p, p.dispatch_table, ""));
  if (code)
    table->device = device.is_cpu() ? host_cpu_name() : cuda_device_info(device.index()).name;
  dispatch.store(std::move(table));
  if (!code) return;
  for (const KernelData& k : p.kernels) {
    auto& list = thunks.emplace_back();
    for (const KernelCandidate& c : k.candidates)
      list.push_back(reinterpret_cast<Thunk>(code->object.need("hidet_call_" + c.function)));
  }
}

}  // namespace hidet::runtime
