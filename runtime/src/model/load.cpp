// load.cpp - the entries of a .hidet file to ModelData; load_model, can_load, read_model.
// Order: directory and sizes, format, requires, abi, manifest, then the rest; code last.
// Threading: thread-safe.
#include <cstring>

#include "hidet/runtime/error.h"
#include "src/container/json.h"
#include "src/container/npz.h"
#include "src/model/file.h"

namespace hidet {
namespace runtime {
namespace {

SymbolicShape read_dims(const JsonView& v) {
  SymbolicShape shape;
  for (const JsonView& d : v.list())
    shape.push_back(d.is_text() ? DimExpr::parse(d.text()) : DimExpr(d.integer()));
  return shape;
}
Shape read_shape(const JsonView& v) {
  Shape shape;
  for (const JsonView& d : v.list()) shape.push_back(d.integer());
  (void)product(shape);  // throws for negative and too large ones
  return shape;
}
std::vector<TensorSignature> read_signatures(const JsonView& v) {
  std::vector<TensorSignature> list;
  for (const JsonView& s : v.list())
    list.push_back(
        {s.at("name").text(), DType::parse(s.at("dtype").text()), read_dims(s.at("shape")), {}});
  return list;
}
std::map<int, int> read_share(const JsonView& v) {
  std::map<int, int> map;
  for (const auto& [key, value] : v.members()) {
    if (key.empty() || key.size() > 6 || key.find_first_not_of("0123456789") != std::string::npos)
      value.fail("'" + key + "' is not a number");
    map[std::stoi(key)] = value.index();
  }
  return map;
}
std::vector<std::string> read_texts(const JsonView& v) {
  std::vector<std::string> list;
  for (const JsonView& s : v.list()) list.push_back(s.text());
  return list;
}

class Loader {
 public:
  Loader(const Archive& archive, const LoadOptions& options) : a_(archive), options_(options) {}

  ModelData read() {
    const Json meta = json("meta.json");
    const JsonView v(meta, a_.where(), "meta.json");
    check_format(v);
    if (options_.trust != Trust::all) {
      a_.use_manifest();
      (void)a_.get("meta.json");
    }
    read_meta(v);
    for (ProgramData& p : m_.programs) read_program(p);
    if (a_.has("graph_string.txt")) m_.graph_string = a_.get("graph_string.txt").text();
    for (const auto& [name, bytes] : a_.entries())
      if (name.starts_with("source/")) m_.source_texts[name.substr(7)] = a_.get(name).text();
    read_weights();
    check_model_data(m_, a_.where());
    return std::move(m_);
  }

 private:
  Json json(const std::string& entry) const {
    return parse_json(a_.get(entry).text(), a_.where(), entry);
  }

  void check_format(const JsonView& v) const {
    const std::string format = v.at("format").text();
    HIDET_REQUIRE(format == "hidet/1", ErrorCode::bad_file, a_.where(), "format '", format,
                  "' is not known; this version reads hidet/1");
    for (const std::string& feature : read_texts(v.at("requires")))
      throw Error(
          ErrorCode::unsupported,
          detail::concat("the model needs '", feature, "', which this version does not have"),
          a_.where());
    const int64_t abi = v.at("abi").integer();
    HIDET_REQUIRE(abi >= 1 && abi <= HIDET_ABI_VERSION, ErrorCode::unsupported, a_.where(),
                  "the model needs version ", abi,
                  " of the interface of generated code; this version has ", HIDET_ABI_VERSION);
  }
  void read_meta(const JsonView& v) {
    m_.name = v.at("name").text();
    m_.inputs = read_signatures(v.at("inputs"));
    m_.outputs = read_signatures(v.at("outputs"));
    for (const JsonView& s : v.at("symbols").list())
      m_.symbols.push_back({s.at("name").text(), s.has("min") ? s.at("min").integer() : 0,
                            s.has("max") ? s.at("max").integer() : INT64_MAX});
    m_.share_map = read_share(v.at("share_map"));
    m_.graph_hash = v.at("graph_hash").text();
    for (const std::string& target : read_texts(v.at("targets"))) {
      if (!CpuTarget::is_cpu_target(target) && !CudaTarget::is_cuda(target))
        v.fail("unknown target '" + target + "'");
      ProgramData p;
      p.target = target;
      const JsonView memory = v.at("memory").at(target.c_str());
      p.workspace_cpu = DimExpr::parse(memory.at("cpu").text());
      p.workspace_cuda = DimExpr::parse(memory.at("cuda").text());
      m_.programs.push_back(std::move(p));
    }
  }
  void read_program(ProgramData& p) const {
    const std::string folder = "programs/" + p.target + "/",
                      entry = folder + "graph_execution.json";
    const Json j = json(entry);
    const JsonView v(j, a_.where(), entry);
    Execution& e = p.execution;
    e.weights_index = v.at("weights_index").indices();
    e.inputs_index = v.at("inputs_index").indices();
    e.outputs_index = v.at("outputs_index").indices();
    const std::vector<std::string> devices = read_texts(v.at("tensor_device"));
    for (const JsonView& t : v.at("tensors").list()) {
      const size_t i = e.tensors.size();
      if (i >= devices.size() || (devices[i] != "cpu" && devices[i] != "cuda"))
        v.fail("tensor_device does not fit tensors");
      e.tensors.push_back({DType::parse(t.at("dtype").text()), read_dims(t.at("shape")),
                           Device(devices[i]), t.has("alias") ? t.at("alias").index() : -1});
    }
    for (const JsonView& i : v.at("instructions").list())
      e.instructions.push_back({i.at("kind").text(), i.at("task_idx").index(),
                                i.at("inputs").indices(), i.at("outputs").indices(),
                                read_dims(i.at("symbols")), i.at("free").indices(),
                                i.at("name").text()});
    p.stored = v.at("stored").indices();
    p.cuda_kernels = read_texts(v.at("cuda_kernels"));
    const int64_t kernels = v.at("kernels").integer();
    for (int64_t i = 0; i < kernels; ++i)
      p.kernels.push_back(read_kernel(folder + "kernels/" + std::to_string(i) + "/meta.json"));
    read_functions(p, folder + "graph_module/functions.json");
    if (a_.has(folder + "dispatch_table.txt"))
      p.dispatch_table = a_.get(folder + "dispatch_table.txt").text();
    p.code = a_.get(folder + "code.so");
    for (const char* name : {"kernels.cubin", "kernels.ptx"})
      if (a_.has(folder + name)) p.cuda_image = a_.get(folder + name);
  }
  KernelData read_kernel(const std::string& entry) const {
    const Json j = json(entry);
    const JsonView v(j, a_.where(), entry);
    KernelData k{v.at("name").text(),
                 read_texts(v.at("symbols")),
                 read_signatures(v.at("inputs")),
                 read_signatures(v.at("outputs")),
                 read_share(v.at("share_map")),
                 DimExpr::parse(v.at("workspace").text()),
                 {},
                 v.has("flops") ? DimExpr::parse(v.at("flops").text()) : DimExpr(0)};
    for (const JsonView& c : v.at("candidates").list()) {
      const std::vector<std::string> functions = read_texts(c.at("functions"));
      if (functions.size() != 1) c.fail("a candidate has one function");
      k.candidates.push_back({c.at("name").text(), c.at("parameters").text(), functions[0],
                              c.has("digest") ? c.at("digest").text() : ""});
    }
    return k;
  }
  void read_functions(ProgramData& p, const std::string& entry) const {
    const Json j = json(entry);
    for (const JsonView& f : JsonView(j, a_.where(), entry).list()) {
      FunctionInfo info{f.at("name").text(),
                        {},
                        f.has("returns"),
                        f.has("returns") ? DType::parse(f.at("returns").text()) : DType()};
      for (const JsonView& q : f.at("params").list())
        info.params.push_back({q.at("name").text(),
                               DType::parse(q.at("dtype").text()),
                               q.at("pointer").boolean(),
                               q.at("any").boolean(),
                               q.at("cuda").boolean() ? Device(DeviceKind::cuda) : Device(),
                               {}});
      p.functions.push_back(std::move(info));
    }
  }

  /// A weight as a view of the file.
  Tensor array(const Bytes& npz, const ZipDirectory& directory, const std::string& name,
               DType dtype, const Shape& shape) const {
    const auto it = directory.entries.find(name + ".npy");
    if (it == directory.entries.end()) a_.fail("weights.npz", "lacks the array '" + name + "'");
    const std::string header = npy_header(dtype, shape);
    const uint64_t bytes = static_cast<uint64_t>(dtype.bytes_of(product(shape)));
    if (it->second.size < header.size() || it->second.size - header.size() != bytes ||
        std::memcmp(npz.data() + it->second.offset, header.data(), header.size()) != 0)
      a_.fail("weights.npz",
              "array '" + name + "' has another type, shape or size than weights.json says");
    if (bytes == 0) return empty(shape, dtype);
    std::byte* data = const_cast<std::byte*>(npz.data()) + it->second.offset + header.size();
    if (reinterpret_cast<uintptr_t>(data) % 64 != 0)
      return Tensor::from_blob(data, shape, dtype).clone();
    return Tensor::from_blob(data, shape, dtype, {}, [owner = npz.owner()](void*) { (void)owner; });
  }
  void read_weights() {
    const Json j = json("weights.json");
    const JsonView v(j, a_.where(), "weights.json");
    const Bytes npz = a_.get("weights.npz", options_.verify == Verify::full);
    const ZipDirectory directory = read_zip(npz.span(), a_.where() + ": weights.npz");
    for (const JsonView& w : v.at("sources").list()) {
      SourceWeight s{w.at("name").text(), DType::parse(w.at("dtype").text()),
                     read_shape(w.at("shape"))};
      if (w.at("data").boolean())
        s.data =
            array(npz, directory, "source_" + std::to_string(m_.sources.size()), s.dtype, s.shape);
      m_.sources.push_back(std::move(s));
    }
    for (const JsonView& w : v.at("stored").list()) {
      StoredWeight s{w.at("key").text(), DType::parse(w.at("dtype").text()),
                     read_shape(w.at("shape")), w.at("source").index()};
      if (w.at("data").boolean())
        s.data =
            array(npz, directory, "stored_" + std::to_string(m_.stored.size()), s.dtype, s.shape);
      m_.stored.push_back(std::move(s));
    }
  }

  Archive a_;
  const LoadOptions& options_;
  ModelData m_;
};

CompiledModel load(const Archive& archive, const LoadOptions& options) {
  HIDET_REQUIRE(
      options.trust != Trust::none, ErrorCode::usage, archive.where(),
      "trust is none, so native code is not loaded; use trust hash, or read_model to look inside");
  ModelData data = read_model_data(archive, options);
  const Choice choice = choose_program(data, options);
  HIDET_REQUIRE(choice.program >= 0, ErrorCode::device, archive.where(),
                "cannot run here: ", choice.verdict.reason);
  return CompiledModel::from_data(std::move(data), options);
}

}  // namespace

ModelData read_model_data(const Archive& archive, const LoadOptions& options) {
  try {
    return Loader(archive, options).read();
  } catch (const Error& e) {
    // Texts of the file that are no dtype, device or formula: the user did nothing wrong.
    if (e.code() != ErrorCode::usage) throw;
    throw Error(ErrorCode::bad_file, e.what(), archive.where());
  }
}

}  // namespace runtime

CompiledModel load_model(const std::string& path, const LoadOptions& options) {
  return runtime::load(runtime::Archive::open(path), options);
}

CompiledModel load_model(std::span<const std::byte> bytes, const LoadOptions& options) {
  constexpr size_t kLeast = alignof(std::max_align_t);
  HIDET_REQUIRE(reinterpret_cast<uintptr_t>(bytes.data()) % kLeast == 0, ErrorCode::usage, "",
                "a model in memory begins at a multiple of ", kLeast,
                " bytes, as its weights are used in place");
  return runtime::load(runtime::Archive::of(Bytes(nullptr, bytes), "model in memory"), options);
}

CompiledModel load_model(const std::vector<uint8_t>& bytes, const LoadOptions& options) {
  return load_model(std::as_bytes(std::span(bytes)), options);
}

ModelData read_model(const std::string& path, const LoadOptions& options) {
  return runtime::read_model_data(runtime::Archive::open(path), options);
}

LoadVerdict can_load(const std::string& path, const LoadOptions& options) {
  try {
    return runtime::choose_program(read_model(path, options), options).verdict;
  } catch (const Error& e) {
    return {LoadVerdict::Answer::no, "", e.what()};
  }
}

}  // namespace hidet
