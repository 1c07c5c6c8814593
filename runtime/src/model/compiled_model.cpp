// compiled_model.cpp - the public class over ModelState.
// Threading: thread-safe.
#include "hidet/runtime/compiled_model.h"

#include <algorithm>

#include "hidet/runtime/error.h"
#include "src/model/file.h"
#include "src/model/state.h"

namespace hidet {
namespace {

void check_weight(const SourceWeight& w, const Tensor& t) {
  HIDET_REQUIRE(t.defined() && !t.is_symbolic() && t.dtype() == w.dtype && t.shape() == w.shape,
                ErrorCode::usage, "", "weight '", w.name, "': expected ", w.dtype.name(),
                shape_text(w.shape), ", got ", runtime::got_text(t));
}

template <class State>
auto& live(const std::shared_ptr<State>& state) {
  HIDET_REQUIRE(state, ErrorCode::usage, "", "this CompiledModel is empty");
  return *state;
}

}  // namespace

CompiledModel CompiledModel::from_data(ModelData data, const LoadOptions& options) {
  runtime::check_model_data(data, "");
  const runtime::Choice choice = runtime::choose_program(data, options);
  std::vector<Tensor> sources;
  for (const SourceWeight& w : data.sources) {
    if (w.data.defined()) check_weight(w, w.data);
    sources.push_back(w.data);
  }
  CompiledModel model;
  model.state_ = std::make_shared<State>(std::move(data), choice);
  model.state_->weights.store(runtime::make_weights(*model.state_, std::move(sources), true));
  return model;
}

std::vector<Tensor> CompiledModel::run(const std::vector<Tensor>& inputs,
                                       const RunOptions& options) const {
  if (options.interpret || options.hook) [[unlikely]]
    return runtime::run_interpreted(live(state_), inputs, {.hook = options.hook});
  return runtime::run_code(live(state_), inputs, nullptr);
}

std::vector<Tensor> CompiledModel::run_async(const std::vector<Tensor>& inputs,
                                             CUstream_st* stream) const {
  return runtime::run_code(live(state_), inputs, device().is_cuda() ? stream : nullptr);
}

std::vector<Tensor> CompiledModel::cuda_graph(const std::vector<Tensor>& inputs) const {
  return runtime::run_replay(live(state_), inputs);
}

Tensor CompiledModel::run_one(const std::vector<Tensor>& inputs) const {
  const auto& s = live(state_);
  HIDET_REQUIRE(s.outputs.size() == 1, ErrorCode::usage, "", "model '", s.data.name, "' has ",
                s.outputs.size(), " outputs, not one: use run");
  return std::move(runtime::run_code(s, inputs, nullptr)[0]);
}

const std::string& CompiledModel::name() const { return live(state_).data.name; }
const std::string& CompiledModel::target() const { return live(state_).program().target; }
Device CompiledModel::device() const { return live(state_).device; }
const std::vector<TensorSignature>& CompiledModel::inputs() const {
  return live(state_).input_signatures;
}
const std::vector<TensorSignature>& CompiledModel::outputs() const {
  return live(state_).output_signatures;
}
const std::vector<SymbolRange>& CompiledModel::symbols() const { return live(state_).data.symbols; }
const Execution& CompiledModel::execution() const { return live(state_).program().execution; }
const std::string& CompiledModel::graph_string() const { return live(state_).data.graph_string; }
const ModelData& CompiledModel::data() const { return live(state_).data; }

std::vector<TaskInfo> CompiledModel::tasks() const {
  std::vector<TaskInfo> list;
  for (const KernelData& k : live(state_).program().kernels) {
    TaskInfo info{k.name, k.inputs, k.outputs, {}};
    for (const KernelCandidate& c : k.candidates) info.candidates.push_back(c.name);
    list.push_back(std::move(info));
  }
  return list;
}

std::vector<Tensor> CompiledModel::weights() const {
  const auto& s = live(state_);
  const auto weights = s.weights.load();
  for (size_t i = 0; i < weights->sources.size(); ++i)
    HIDET_REQUIRE(weights->sources[i].defined(), ErrorCode::usage, "", "model '", s.data.name,
                  "' has no source weight '", s.data.sources[i].name,
                  "': save it with weights \"both\" or \"source\", or call set_weights");
  return weights->sources;
}

std::vector<std::string> CompiledModel::weight_names() const {
  std::vector<std::string> names;
  for (const SourceWeight& w : live(state_).data.sources) names.push_back(w.name);
  return names;
}

void CompiledModel::set_weights(const std::vector<Tensor>& weights) {
  auto& s = live(state_);
  HIDET_REQUIRE(weights.size() == s.data.sources.size(), ErrorCode::usage, "", "model '",
                s.data.name, "' has ", s.data.sources.size(), " weights, got ", weights.size());
  for (size_t i = 0; i < weights.size(); ++i) check_weight(s.data.sources[i], weights[i]);
  s.weights.store(runtime::make_weights(s, weights, false));
}

void CompiledModel::set_weights(const std::map<std::string, Tensor>& weights) {
  std::vector<Tensor> list;
  const std::vector<std::string> names = weight_names();
  for (const std::string& name : names) {
    const auto it = weights.find(name);
    HIDET_REQUIRE(it != weights.end(), ErrorCode::usage, "", "set_weights: weight '", name,
                  "' is missing");
    list.push_back(it->second);
  }
  for (const auto& [name, tensor] : weights)
    HIDET_REQUIRE(std::find(names.begin(), names.end(), name) != names.end(), ErrorCode::usage, "",
                  "set_weights: there is no weight '", name, "'");
  set_weights(list);
}

MemoryNeed CompiledModel::memory(const SymbolMap& dims) const {
  for (const auto& [name, value] : dims)
    HIDET_REQUIRE(value >= 0, ErrorCode::usage, "", "the size ", value, " of the symbol '", name,
                  "' is negative");
  return runtime::memory_need(live(state_), dims);
}

void CompiledModel::set_memory_limit(Device device, int64_t bytes) {
  HIDET_REQUIRE(bytes >= 0, ErrorCode::usage, "", "a memory limit cannot be ", bytes);
  (device.is_cpu() ? live(state_).limit_cpu : live(state_).limit_cuda).store(bytes);
}

Profile CompiledModel::profile(const std::vector<Tensor>& inputs) const {
  Profile profile;
  (void)runtime::run_interpreted(live(state_), inputs, {});  // caches and lazy loads are warm
  (void)runtime::run_interpreted(live(state_), inputs, {.profile = &profile});
  return profile;
}

std::string CompiledModel::to_string() const {
  const auto& s = live(state_);
  std::string text =
      detail::concat("CompiledModel ", s.data.name, " (", target(), ", ", s.device.name(), ")\n");
  for (const auto& t : s.input_signatures) text += "  input   " + t.text() + "\n";
  for (const auto& t : s.output_signatures) text += "  output  " + t.text() + "\n";
  int64_t bytes = 0, count = 0;
  for (const int i : s.program().stored)
    bytes += s.data.stored[i].dtype.bytes_of(product(s.data.stored[i].shape));
  for (const SourceWeight& w : s.data.sources) count += product(w.shape);
  text += detail::concat("  weights ", bytes, " bytes in ", s.program().stored.size(), " tensors, ",
                         count, " parameters\n");
  text += detail::concat("  kernels ", s.program().execution.instructions.size(), " a run, ",
                         s.program().kernels.size(), " distinct\n");
  text += "  targets";
  for (const ProgramData& p : s.data.programs) text += " " + p.target;
  return text + "\n";
}

void CompiledModel::save(const std::string& path, const SaveOptions& options) const {
  runtime::save_model(live(state_), path, options);
}
std::vector<uint8_t> CompiledModel::serialize(const SaveOptions& options) const {
  return runtime::serialize_model(live(state_), options);
}

}  // namespace hidet
