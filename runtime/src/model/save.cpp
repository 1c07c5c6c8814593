// save.cpp - ModelData to the entries of a .hidet file.
// Threading: thread-safe.
#include <deque>

#include "hidet/runtime/error.h"
#include "hidet/runtime/file.h"
#include "src/container/digest.h"
#include "src/container/json.h"
#include "src/container/npz.h"
#include "src/container/zip_writer.h"
#include "src/model/file.h"

namespace hidet::runtime {
namespace {

Json shape_json(const SymbolicShape& shape) {
  Json list = Json::array();
  for (const DimExpr& d : shape)
    if (d.is_const()) list.push_back(d.value());
    else list.push_back(d.text());
  return list;
}
Json signature_json(const TensorSignature& s) {
  return {{"name", s.name}, {"dtype", s.dtype.name()}, {"shape", shape_json(s.shape)}};
}
Json signatures_json(const std::vector<TensorSignature>& list) {
  Json out = Json::array();
  for (const TensorSignature& s : list) out.push_back(signature_json(s));
  return out;
}
Json share_json(const std::map<int, int>& map) {
  Json out = Json::object();
  for (const auto& [from, to] : map) out[std::to_string(from)] = to;
  return out;
}
Json dims_json(const std::vector<DimExpr>& dims) { return shape_json(dims); }

Json meta_json(const ModelData& m) {
  Json symbols = Json::array(), targets = Json::array(), memory = Json::object();
  for (const SymbolRange& s : m.symbols) {
    Json j = {{"name", s.name}};
    if (s.min != 0) j["min"] = s.min;
    if (s.max != INT64_MAX) j["max"] = s.max;
    symbols.push_back(std::move(j));
  }
  for (const ProgramData& p : m.programs) {
    targets.push_back(p.target);
    memory[p.target] = {{"cpu", p.workspace_cpu.text()}, {"cuda", p.workspace_cuda.text()}};
  }
  return {{"format", "hidet/1"},
          {"hidet_version", "0.1.0"},
          {"name", m.name},
          {"inputs", signatures_json(m.inputs)},
          {"outputs", signatures_json(m.outputs)},
          {"symbols", symbols},
          {"share_map", share_json(m.share_map)},
          {"graph_hash", m.graph_hash},
          {"targets", targets},
          {"requires", m.required_features},
          {"abi", HIDET_ABI_VERSION},
          {"memory", memory}};
}

Json execution_json(const ProgramData& p) {
  const Execution& e = p.execution;
  Json tensors = Json::array(), devices = Json::array(), instructions = Json::array();
  for (const ProgramTensor& t : e.tensors) {
    Json j = {{"dtype", t.dtype.name()}, {"shape", shape_json(t.shape)}};
    if (t.alias >= 0) j["alias"] = t.alias;
    tensors.push_back(std::move(j));
    devices.push_back(t.device.is_cpu() ? "cpu" : "cuda");
  }
  for (const Instruction& i : e.instructions)
    instructions.push_back({{"kind", i.kind},
                            {"task_idx", i.task},
                            {"inputs", i.inputs},
                            {"outputs", i.outputs},
                            {"symbols", dims_json(i.symbols)},
                            {"free", i.free},
                            {"name", i.name}});
  return {{"weights_index", e.weights_index},
          {"inputs_index", e.inputs_index},
          {"outputs_index", e.outputs_index},
          {"instructions", instructions},
          {"tensors", tensors},
          {"tensor_device", devices},
          {"subprograms", Json::array()},
          {"binds", Json::array()},
          {"stored", p.stored},
          {"kernels", p.kernels.size()},
          {"cuda_kernels", p.cuda_kernels}};
}

Json kernel_json(const KernelData& k) {
  Json candidates = Json::array();
  for (const KernelCandidate& c : k.candidates) {
    candidates.push_back(
        {{"name", c.name}, {"parameters", c.parameters}, {"functions", {c.function}}});
    if (!c.digest.empty()) candidates.back()["digest"] = c.digest;
  }
  return {{"name", k.name},
          {"symbols", k.symbols},
          {"inputs", signatures_json(k.inputs)},
          {"outputs", signatures_json(k.outputs)},
          {"share_map", share_json(k.share_map)},
          {"workspace", k.workspace.text()},
          {"candidates", candidates},
          {"flops", k.flops.text()}};
}

Json functions_json(const std::vector<FunctionInfo>& functions) {
  Json list = Json::array();
  for (const FunctionInfo& f : functions) {
    Json params = Json::array();
    for (const ParamInfo& p : f.params)
      params.push_back({{"name", p.name},
                        {"dtype", p.dtype.name()},
                        {"pointer", p.is_pointer},
                        {"any", p.any_pointer},
                        {"cuda", p.device.is_cuda()}});
    Json j = {{"name", f.name}, {"params", params}};
    if (f.returns) j["returns"] = f.return_dtype.name();
    list.push_back(std::move(j));
  }
  return list;
}

/// All entries of one file; owns what is not the model's.
class Builder {
 public:
  Builder(const ModelState& state, const SaveOptions& options)
      : state_(state), m_(state.data), options_(options) {
    if (!options.save_weights) options_.weights = SaveWeights::none;
    add_json("meta.json", meta_json(m_));
    if (!m_.graph_string.empty()) add_text("graph_string.txt", m_.graph_string);
    for (const ProgramData& p : m_.programs) add_program(p);
    if (options.save_source)
      for (const auto& [name, text] : m_.source_texts) add_text("source/" + name, text);
    add_weights();
    add_json("manifest.json", {{"digest", "xxh3-128"}, {"entries", manifest_}});
    layout_.finish();
  }
  const ZipLayout& layout() const { return layout_; }

 private:
  void add(const std::string& name, std::vector<ZipPart> parts) {
    std::vector<std::span<const std::byte>> spans;
    uint64_t bytes = 0;
    for (const ZipPart& p : parts) spans.push_back(p.bytes), bytes += p.bytes.size();
    manifest_[name] = {{"bytes", bytes}, {"xxh3", xxh3_hex(spans)}};
    layout_.add(name, std::move(parts));
  }
  void add_text(const std::string& name, std::string text) {
    texts_.push_back(std::move(text));
    add(name, {zip_part(std::string_view(texts_.back()))});
  }
  void add_json(const std::string& name, const Json& json) { add_text(name, json.dump(1) + "\n"); }
  void add_program(const ProgramData& p) {
    const std::string folder = "programs/" + p.target + "/";
    add_json(folder + "graph_execution.json", execution_json(p));
    add_json(folder + "graph_module/functions.json", functions_json(p.functions));
    for (size_t i = 0; i < p.kernels.size(); ++i)
      add_json(folder + "kernels/" + std::to_string(i) + "/meta.json", kernel_json(p.kernels[i]));
    if (options_.save_dispatch_table)
      if (const std::string table = dispatch_text(state_, p); !table.empty())
        add_text(folder + "dispatch_table.txt", table);
    add(folder + "code.so", {zip_part(p.code.span())});
    if (!p.cuda_image.empty())
      add(folder + (CudaTarget::parse(p.target).is_ptx ? "kernels.ptx" : "kernels.cubin"),
          {zip_part(p.cuda_image.span())});
  }

  /// An array of weights.npz; true when there are contents.
  bool add_array(const std::string& name, const Tensor& t, DType dtype, const Shape& shape) {
    if (!t.defined()) return false;
    tensors_.push_back(t.cpu());
    texts_.push_back(npy_header(dtype, shape));
    const auto* data = static_cast<const std::byte*>(tensors_.back().data());
    arrays_.add(name + ".npy", {zip_part(std::string_view(texts_.back())),
                                zip_part({data, static_cast<size_t>(tensors_.back().bytes())})});
    return true;
  }
  void add_weights() {
    const SaveWeights what = options_.weights;
    const auto now = state_.weights.load();
    const bool with_sources = what == SaveWeights::source || what == SaveWeights::both;
    const bool with_results = what == SaveWeights::ready || what == SaveWeights::both;
    std::vector<bool> used(m_.sources.size(), with_sources);
    for (const StoredWeight& w : m_.stored)
      if (with_results && w.source >= 0) used[w.source] = true;
    Json sources = Json::array(), stored = Json::array();
    for (size_t i = 0; i < m_.sources.size(); ++i) {
      const SourceWeight& w = m_.sources[i];
      HIDET_REQUIRE(!used[i] || now->sources[i].defined(), ErrorCode::usage, "", "weight '", w.name,
                    "' cannot be saved: this model does not have it; save_weights = false leaves "
                    "the weights out");
      const bool data =
          used[i] && add_array("source_" + std::to_string(i), now->sources[i], w.dtype, w.shape);
      sources.push_back(
          {{"name", w.name}, {"dtype", w.dtype.name()}, {"shape", w.shape}, {"data", data}});
    }
    const std::vector<Tensor> results =
        with_results ? all_stored(state_) : std::vector<Tensor>(m_.stored.size());
    for (size_t i = 0; i < m_.stored.size(); ++i) {
      const StoredWeight& w = m_.stored[i];
      const bool data =
          w.source < 0 && add_array("stored_" + std::to_string(i), results[i], w.dtype, w.shape);
      stored.push_back({{"key", w.key},
                        {"dtype", w.dtype.name()},
                        {"shape", w.shape},
                        {"source", w.source},
                        {"data", data}});
    }
    add_json("weights.json", {{"sources", sources}, {"stored", stored}});
    arrays_.finish();
    add("weights.npz", arrays_.parts());
  }

  const ModelState& state_;
  const ModelData& m_;
  SaveOptions options_;
  std::deque<std::string> texts_;
  std::deque<Tensor> tensors_;
  ZipLayout layout_, arrays_;
  Json manifest_ = Json::object();
};

}  // namespace

void save_model(const ModelState& state, const std::string& path, const SaveOptions& options) {
  const Builder builder(state, options);
  std::vector<std::span<const std::byte>> parts;
  for (const ZipPart& part : builder.layout().parts()) parts.push_back(part.bytes);
  write_file(path, parts, {.durable = true, .regular = true, .check = [](const std::string& file) {
                             Archive::open(file).use_manifest();
                           }});
}

std::vector<uint8_t> serialize_model(const ModelState& state, const SaveOptions& options) {
  const Builder builder(state, options);
  std::vector<uint8_t> out;
  out.reserve(builder.layout().size());
  for (const ZipPart& part : builder.layout().parts()) {
    const auto* p = reinterpret_cast<const uint8_t*>(part.bytes.data());
    out.insert(out.end(), p, p + part.bytes.size());
  }
  return out;
}

}  // namespace hidet::runtime
