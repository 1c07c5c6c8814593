// weights.cpp - init programs, placing weights on the device, set_weights.
// Threading: thread-safe; results are published as a whole.
#include <optional>

#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"
#include "src/model/state.h"

namespace hidet::runtime {
namespace {

/// Runs the init program of `p` on the CPU; fills `results` (by stored weight of the model) where source is -1.
void run_init(const ModelData& data, const ProgramData& p, const LoadedCode& code,
              const std::vector<Tensor>& sources, std::vector<Tensor>& results) {
  const auto init = reinterpret_cast<GraphInit>(code.object.need("hidet_graph_init"));
  const auto bytes = reinterpret_cast<GraphWorkspace>(code.object.need("hidet_graph_workspace"));
  std::vector<Tensor> on_cpu;
  std::vector<void*> in, out;
  for (const Tensor& t : sources) {
    on_cpu.push_back(t.defined() ? t.cpu() : t);
    in.push_back(t.defined() ? on_cpu.back().data() : nullptr);
  }
  for (const int index : p.stored) {
    const StoredWeight& w = data.stored[index];
    if (w.source < 0) results[index] = empty(w.shape, w.dtype);
    out.push_back(w.source < 0 ? results[index].data() : nullptr);
  }
  const std::vector<int64_t> symbols(data.symbols.size(),
                                     1);  // init has none; its formula takes the list
  const ContextPool::Use context(code.pool);
  const Tensor workspace = empty({bytes(symbols.data(), 1)}, u8);
  const ScratchScope scope;
  context->check(init(context.get(), in.data(), out.data(), workspace.data()), "the init program");
}

bool needs_init(const ModelData& data, const ProgramData& p, const std::vector<Tensor>& have) {
  for (const int index : p.stored)
    if (data.stored[index].source < 0 && !have[index].defined()) return true;
  return false;
}

bool sources_complete(const ModelData& data, const std::vector<Tensor>& sources) {
  for (size_t i = 0; i < sources.size(); ++i)
    if (!sources[i].defined() && product(data.sources[i].shape) > 0) return false;
  return true;
}

}  // namespace

std::shared_ptr<const Weights> make_weights(const ModelState& state, std::vector<Tensor> sources,
                                            bool use_stored_data) {
  const ModelData& data = state.data;
  const ProgramData& p = state.program();
  std::vector<Tensor> results(data.stored.size());
  for (size_t i = 0; use_stored_data && i < results.size(); ++i) results[i] = data.stored[i].data;
  auto weights = std::make_shared<Weights>();
  weights->sources = std::move(sources);
  weights->as_stored = use_stored_data;
  if (!state.code) return weights;
  if (needs_init(data, p, results)) {
    if (!sources_complete(data, weights->sources)) return weights;  // set_weights must come first
    run_init(data, p, *state.code, weights->sources, results);
  }
  for (const int index : p.stored) {
    const StoredWeight& w = data.stored[index];
    const Tensor& from = w.source >= 0 ? weights->sources[w.source] : results[index];
    if (!from.defined()) return weights;
    weights->placed.push_back(from.to(state.device));
    if (state.device.is_cuda() && !is_cuda_aligned(weights->placed.back()))
      weights->placed.back() = weights->placed.back().cpu().to(state.device);
    weights->pointers.push_back(weights->placed.back().data());
  }
  weights->ready = true;
  return weights;
}

std::vector<Tensor> all_stored(const ModelState& state) {
  const ModelData& data = state.data;
  const std::shared_ptr<const Weights> weights =
      state.code ? ready_weights(state) : state.weights.load();
  std::vector<Tensor> results(data.stored.size());
  for (size_t i = 0; weights->as_stored && i < results.size(); ++i)
    results[i] = data.stored[i].data;
  for (size_t i = 0; state.code && i < state.program().stored.size(); ++i) {
    const int index = state.program().stored[i];
    if (data.stored[index].source < 0) results[index] = weights->placed[i].cpu();
  }
  // Results that only other programs use: their init programs are host code, which may run here.
  for (const ProgramData& p : data.programs) {
    if (!needs_init(data, p, results)) continue;
    ModuleData m;
    m.name = data.name;
    m.code = p.code;
    m.target = CpuTarget::is_cpu_target(p.target) ? p.target : "x86-64";
    HIDET_REQUIRE(sources_complete(data, weights->sources), ErrorCode::usage, "",
                  "the weights that program ", p.target,
                  " uses cannot be made: this model has no source weights");
    HIDET_REQUIRE(CpuTarget::parse(m.target).runs_on(effective_cpu_target()), ErrorCode::device, "",
                  "the weights that program ", p.target,
                  " uses cannot be made on this CPU: save with weights \"source\"");
    run_init(data, p, LoadedCode(std::move(m)), weights->sources, results);
  }
  return results;
}

MemoryNeed memory_need(const ModelState& state, const SymbolMap& dims) {
  MemoryNeed need;
  const bool cuda = state.device.is_cuda();
  DeviceBytes& main = cuda ? need.cuda : need.cpu;
  const ProgramData& p = state.program();
  need.cpu.workspace = p.workspace_cpu.eval(dims);
  if (cuda) need.cuda.workspace = p.workspace_cuda.eval(dims);
  for (const int index : p.stored)
    main.weights +=
        state.data.stored[index].dtype.bytes_of(product(state.data.stored[index].shape));
  const auto bytes = [&](const TensorSignature& s) {
    int64_t count = 1;
    for (const DimExpr& d : s.shape) count *= d.eval(dims);
    return s.dtype.bytes_of(count);
  };
  for (const TensorSignature& s : state.input_signatures) main.inputs += bytes(s);
  for (size_t i = 0; i < state.outputs.size(); ++i)
    if (state.outputs[i].from != OutputPlan::From::shared)
      main.outputs += bytes(state.output_signatures[i]);
  return need;
}

}  // namespace hidet::runtime
