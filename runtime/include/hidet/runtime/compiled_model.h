// compiled_model.h - CompiledModel: a compiled graph that is run, saved and loaded; load_model, can_load.
// Needs: a .hidet file or a ModelData. No compiler.
// Threading: CompiledModel is thread-safe: every run has a context of its own, set_weights publishes a new state at
// once and runs in flight keep theirs.
#pragma once
#include <hidet/runtime/compiled_module.h>
#include <hidet/runtime/tensor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct CUstream_st;

namespace hidet {

struct ModelData;
struct Execution;
struct SymbolRange;

/// What is kept of the weights in a file: init results, the user's own, both, nothing.
enum class SaveWeights { ready, source, both, none };

struct SaveOptions {
  SaveWeights weights = SaveWeights::ready;
  bool save_weights = true;  ///< false: as SaveWeights::none
  bool save_dispatch_table = false;
  bool save_source = false;
};

/// Which parts of a file are believed.
enum class Trust {
  none,  ///< no native code is loaded: signatures and weights only
  hash,  ///< metadata and code are checked against the manifest before use
  all,   ///< nothing is checked against the manifest
};
enum class Verify { code, full };  ///< full: weights against the manifest too

struct LoadOptions {
  std::optional<Device> device = {};  ///< without: that of the first target that can be loaded
  std::string target = {};            ///< one of the file's targets; empty: the best for the device
  Trust trust = Trust::hash;
  bool allow_jit = true;  ///< PTX may be compiled by the driver
  Verify verify = Verify::code;
};

/// Whether a file can be run here, found without loading code.
struct LoadVerdict {
  enum class Answer { no, jit, yes };
  Answer answer = Answer::no;
  std::string target;  ///< the one that load_model takes
  std::string reason;  ///< one sentence
  bool ok() const { return answer != Answer::no; }
  const char* text() const {
    return answer == Answer::yes ? "yes" : answer == Answer::jit ? "jit" : "no";
  }
};

/// What an instruction hook sees: after each kernel of an interpreted run.
struct InstructionEvent {
  int index;                ///< in the program
  const std::string& name;  ///< operator
  const std::string& kernel;
  const std::string& candidate;
  const std::vector<Tensor>& inputs;
  const std::vector<Tensor>& outputs;
  double milliseconds;
};
using InstructionHook = std::function<void(const InstructionEvent&)>;

struct RunOptions {
  bool interpret = false;          ///< walk graph_execution.json kernel by kernel
  InstructionHook hook = nullptr;  ///< called after each kernel; implies interpret
};

/// Bytes of one device that a run needs.
struct DeviceBytes {
  int64_t weights = 0, workspace = 0, inputs = 0, outputs = 0;
  int64_t total() const { return weights + workspace + inputs + outputs; }
};
struct MemoryNeed {
  DeviceBytes cpu, cuda;
};

/// A task of the model, for people.
struct TaskInfo {
  std::string name;
  std::vector<TensorSignature> inputs, outputs;
  std::vector<std::string> candidates;
};

class CompiledModel {
 public:
  CompiledModel() = default;
  /// Chooses a program as load_model does; runs init where stored weights have no contents. Where no program runs here
  /// (made for another machine) the model can be looked at and saved, and a run throws Error(device) with the reason.
  static CompiledModel from_data(ModelData data, const LoadOptions& options = {});
  bool defined() const { return state_ != nullptr; }

  /// Runs a model that has exactly one output.
  template <class... T>
  Tensor operator()(const T&... inputs) const {
    return run_one({Tensor(inputs)...});
  }
  /// Checks count, dtype, device and shapes; outputs are tensors of their own that outlive the model.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const RunOptions& options = {}) const;
  /// Queues the run on `stream` (CUDA) and returns at once; on the CPU it is a plain run.
  std::vector<Tensor> run_async(const std::vector<Tensor>& inputs, CUstream_st* stream) const;

  /// run on a GPU as a CUDA graph, which queues the whole run with one call: recorded at the first call at these sizes
  /// and weights, replayed by later ones. The eight sizes used last are kept, each with memory of its own. Throws
  /// Error(usage) that names the input where it is on the CPU. While it records, no other thread may wait for the
  /// whole GPU (cuda_synchronize, profile).
  std::vector<Tensor> cuda_graph(const std::vector<Tensor>& inputs) const;

  const std::string& name() const;
  const std::string& target() const;  ///< of the program in use
  Device device() const;
  const std::vector<TensorSignature>& inputs() const;
  const std::vector<TensorSignature>& outputs() const;
  const std::vector<SymbolRange>& symbols() const;
  std::vector<TaskInfo> tasks() const;
  const Execution& execution() const;
  const std::string& graph_string() const;
  std::string to_string() const;

  /// Source weights, in the order of set_weights; throws Error(usage) where the file has none.
  std::vector<Tensor> weights() const;
  std::vector<std::string> weight_names() const;
  /// New source weights, by order or by name (all of them); init runs, and later runs use the results.
  void set_weights(const std::vector<Tensor>& weights);
  void set_weights(const std::map<std::string, Tensor>& weights);

  /// Peak bytes at these symbol values, from the formulas of the file.
  MemoryNeed memory(const SymbolMap& dims = {}) const;
  /// run throws Error(memory) before it starts when memory(dims) passes this; 0: no limit.
  void set_memory_limit(Device device, int64_t bytes);

  Profile profile(const std::vector<Tensor>& inputs) const;

  /// Measures the candidates of the kernels at each of these sizes, in whole runs on generated inputs, and keeps the fastest of
  /// each kernel for later runs at these and nearby sizes; options.budget is for all of them. The default stays unless
  /// another is clearly faster. A candidate whose results differ from the default's, or that fails, never wins and has a note.
  std::vector<ModelTuneReport> tune(const std::vector<SymbolMap>& dims,
                                    const TuneOptions& options = {});
  /// The choices made so far as text, and choices from such a text (dispatch_table.txt of the program in use).
  std::string dispatch_table() const;
  void use_dispatch_table(const std::string& text);

  /// Atomic: the old file stays on any failure. Two saves of one model give the same bytes.
  void save(const std::string& path, const SaveOptions& options = {}) const;
  std::vector<uint8_t> serialize(const SaveOptions& options = {}) const;
  const ModelData& data() const;

 private:
  Tensor run_one(const std::vector<Tensor>& inputs) const;
  struct State;
  std::shared_ptr<State> state_;
};

/// A file, or a folder with the same entries. Throws Error(bad_file) that names the entry.
CompiledModel load_model(const std::string& path, const LoadOptions& options = {});
/// The same from memory, which must stay until the model and its tensors are gone.
CompiledModel load_model(std::span<const std::byte> bytes, const LoadOptions& options = {});
CompiledModel load_model(const std::vector<uint8_t>& bytes, const LoadOptions& options = {});

/// The verdict, without loading code; a damaged file is a "no" with the reason.
LoadVerdict can_load(const std::string& path, const LoadOptions& options = {});
/// What is inside, without weights' contents being read and without loading code. Throws Error(bad_file).
ModelData read_model(const std::string& path, const LoadOptions& options = {});

}  // namespace hidet
