// state.h - what a CompiledModel holds: the data, the chosen program's code, compiled formulas, weights.
// Threading: made once, then read only, but for the weights (published as a whole), the limits (atomic) and the
// replays (locked).
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hidet/runtime/compiled_model.h"
#include "hidet/runtime/model_data.h"
#include "src/compiled/code.h"
#include "src/model/dispatch.h"
#include "src/model/replay.h"

namespace hidet::runtime {

/// The weights of one model at one time; runs hold on to it.
struct Weights {
  std::vector<Tensor> sources;  // of the user; empty tensors where a file has none
  std::vector<Tensor> placed;   // in the order of ProgramData::stored, on the program's device
  std::vector<void*> pointers;  // their addresses
  bool ready = false;           // false: set_weights must come first
  bool as_stored = false;  // made with ModelData::stored, which holds the results of all programs
};

/// How one dim of an input is checked.
struct DimCheck {
  enum class Kind : uint8_t { constant, bind, same, formula } kind;
  int symbol = -1;          // bind, same
  int64_t value = 0;        // constant
  DimProgram program = {};  // formula: when all symbols are known
};
struct InputCheck {
  TensorSignature signature;
  std::vector<DimCheck> dims;
};

/// Where an output comes from.
struct OutputPlan {
  enum class From : uint8_t { code, input, weight, output, shared } from = From::code;
  int index = 0;  // of the input, weight or output
  TensorSignature signature;
  std::vector<DimProgram> dims;
};

/// The tensor that a run gives out for an output; its contents are not set.
Tensor make_output(const OutputPlan& plan, const std::vector<Tensor>& inputs,
                   const int64_t* symbols);
/// Throws Error(bad_file) where the sizes differ.
void copy_into(const Tensor& to, const Tensor& from);

using GraphLaunch = int32_t (*)(hidet_ctx*, const int64_t*, void* const*, void* const*,
                                void* const*, void*);
using GraphLaunchChosen = int32_t (*)(hidet_ctx*, const int64_t*, void* const*, void* const*,
                                      void* const*, void*, const int32_t*);
using GraphInit = int32_t (*)(hidet_ctx*, void* const*, void* const*, void*);
using GraphWorkspace = int64_t (*)(const int64_t*, int32_t);

/// Throws Error(bad_file) at `where` unless every id, index and count of the data fits.
void check_model_data(const ModelData& data, const std::string& where);

/// Which program runs here, from targets alone.
struct Choice {
  int program = -1;
  Device device = {DeviceKind::cuda, 0};  // the GPU, for GPU programs
  LoadVerdict verdict;
};
Choice choose_program(const ModelData& data, const LoadOptions& options);

/// What runs share and a call replaces as a whole: weights, the dispatch table. A lock, since libstdc++ 12's atomic shared_ptr
/// orders too little.
template <class T>
class Published {
 public:
  std::shared_ptr<const T> load() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void store(
      std::shared_ptr<const T> next) {  // `next` takes the old one, and frees it after the lock
    const std::lock_guard lock(mutex_);
    value_.swap(next);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

/// What the kernels of a GPU program may take for granted of every tensor they are given.
constexpr uintptr_t kCudaAlignment = 16;
inline bool is_cuda_aligned(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.data()) % kCudaAlignment == 0;
}

/// Loaded program and everything derived from it.
struct ModelState {
  ModelState(ModelData model, const Choice& choice);
  const ProgramData& program() const { return data.programs[chosen]; }

  const ModelData data;
  const int chosen;
  const std::string why_not;  // why no program runs here; such a model can be looked at and saved
  Device device;
  std::unique_ptr<LoadedCode> code;  // null where why_not says so
  GraphLaunch launch = nullptr;
  GraphLaunchChosen launch_chosen = nullptr;  // null: every kernel has one candidate
  GraphWorkspace workspace_bytes = nullptr;
  std::vector<std::string> symbol_names;
  std::vector<InputCheck> inputs;
  std::vector<TensorSignature> input_signatures, output_signatures;
  std::vector<OutputPlan> outputs;
  Published<DispatchTable> dispatch;       // never null
  std::vector<std::vector<Thunk>> thunks;  // by kernel and candidate
  Published<Weights> weights;
  std::atomic<int64_t> limit_cpu{0}, limit_cuda{0};
  Replays replays;  // after the code, which their graphs use
};

/// Throws Error(device) where no program of the model runs here.
void require_code(const ModelState& state);
/// Symbols solved and inputs checked; throws Error(usage) that names the input.
void solve_inputs(const ModelState& state, const std::vector<Tensor>& inputs, int64_t* symbols);
/// Shape of output i.
Shape output_shape(const OutputPlan& plan, const int64_t* symbols);
/// Throws Error(memory) where a limit would be passed.
void check_limits(const ModelState& state, const int64_t* symbols);
/// What was given instead, for messages.
std::string got_text(const Tensor& t);
MemoryNeed memory_need(const ModelState& state, const SymbolMap& dims);
/// Weights that runs may use; throws Error(usage) that says set_weights.
std::shared_ptr<const Weights> ready_weights(const ModelState& state);
/// Runs init where it is needed and places the results; `sources` may hold empty tensors.
std::shared_ptr<const Weights> make_weights(const ModelState& state, std::vector<Tensor> sources,
                                            bool use_stored_data);
/// Contents of every stored weight of the model, on the CPU, as far as programs that run here make them.
std::vector<Tensor> all_stored(const ModelState& state);

std::vector<Tensor> run_code(const ModelState& state, const std::vector<Tensor>& inputs,
                             CUstream_st* stream);
/// Throws Error(device) for an assertion that failed in a kernel of an earlier run and was not told before.
void check_earlier_kernels(const ModelState& state);
/// run_code through a CUDA graph.
std::vector<Tensor> run_replay(ModelState& state, const std::vector<Tensor>& inputs);
/// The program's launch function, with the candidates that the dispatch table has for these symbols.
int32_t launch_program(const ModelState& state, hidet_ctx* context, const int64_t* symbols,
                       void* const* inputs, void* const* outputs, void* const* weights,
                       void* workspace);
/// What dispatch_table.txt of this program is.
std::string dispatch_text(const ModelState& state, const ProgramData& p);

/// An instruction that a walk has just run.
struct WalkStep {
  const Instruction& instruction;
  const std::vector<Tensor>&in, &out;
  double milliseconds;
  /// Runs a candidate of its kernel again, into other tensors; its time.
  const std::function<double(int candidate, const std::vector<Tensor>& out)>& again;
};
/// How a program is walked.
struct WalkOptions {
  InstructionHook hook = nullptr;
  Profile* profile = nullptr;
  const std::vector<int>* candidates = nullptr;  // by kernel; null: as the dispatch table says
  std::function<void(const WalkStep&)> step = nullptr;
};
std::vector<Tensor> run_interpreted(const ModelState& state, const std::vector<Tensor>& inputs,
                                    const WalkOptions& options);

}  // namespace hidet::runtime

namespace hidet {
struct CompiledModel::State : runtime::ModelState {
  using ModelState::ModelState;
};
}  // namespace hidet
