// model_data.h - ModelData: everything a compiled model is, as plain data. The compiler fills it, save writes it, load
// reads it, CompiledModel::from_data runs it: one representation.
// Threading: plain values.
#pragma once
#include <hidet/runtime/bytes.h>
#include <hidet/runtime/compiled_module.h>
#include <hidet/runtime/tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hidet {

/// A symbol and the values it may take; symbols are passed to the code in the order of ModelData::symbols.
struct SymbolRange {
  std::string name;
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

/// A weight of the user's graph. Without data (a file saved without weights) only its signature is known.
struct SourceWeight {
  std::string name;
  DType dtype;
  Shape shape;
  Tensor data = {};  ///< on any device; empty: not there
};

/// A weight as the programs use it: a source weight as it is, or a result of an init program.
struct StoredWeight {
  std::string
      key;  ///< sources and init expression as text, unique in the model: programs with an equal key share it
  DType dtype;
  Shape shape;
  int source =
      -1;  ///< >= 0: it is this source weight itself (same dtype and shape); -1: init computes it
  Tensor data =
      {};  ///< contents of an init result, on the CPU; empty: from_data runs init. Not used where source >= 0
};

/// What can run one kernel: a public function of the code object, called through its thunk.
struct KernelCandidate {
  std::string name;         ///< "tile_64x32"
  std::string parameters;   ///< for people
  std::string function;     ///< public function f of the code (thunk hidet_call_<f>)
  std::string digest = {};  ///< of its text and its compiler: what measurements are kept under
};

/// A compiled task. A candidate's function takes a pointer for each input, one for each output, then, where
/// `workspace` is not 0, a pointer to that many bytes (64-byte aligned), then one i64 for each name in `symbols`.
struct KernelData {
  std::string name;                              ///< of the operator group, for people
  std::vector<std::string> symbols;              ///< names of the i64 parameters
  std::vector<TensorSignature> inputs, outputs;  ///< in terms of the kernel's own symbols
  std::map<int, int> share_map = {};             ///< output -> input whose storage it uses
  DimExpr workspace = 0;                         ///< bytes, of the kernel's symbols
  std::vector<KernelCandidate> candidates;       ///< at least one; the first is the default
  DimExpr flops =
      0;  ///< floating-point operations of one call, of the kernel's symbols; 0: not known
};

/// One step of a run program. Kinds: "launch" (all that this version runs; "if", "loop" and "host_shape" are reserved).
struct Instruction {
  std::string kind = "launch";
  int task = 0;                  ///< index into ProgramData::kernels
  std::vector<int> inputs = {};  ///< tensor ids
  std::vector<int> outputs = {};
  std::vector<DimExpr> symbols =
      {};  ///< values of the kernel's symbols, as formulas of the model's symbols
  std::vector<int> free =
      {};  ///< ids whose last use this is (outputs, inputs and weights are never in it)
  std::string name = {};  ///< what people call the operator; empty: the kernel's name
};

/// A tensor of a program, by id.
struct ProgramTensor {
  DType dtype;
  SymbolicShape shape;  ///< of the model's symbols
  Device device = {};
  int alias = -1;  ///< >= 0: it lives in the storage of this id (a kernel's share map or a reshape)
};

/// The run program as data: what `interpret` walks, and what people look at.
struct Execution {
  std::vector<ProgramTensor> tensors;  ///< by id
  std::vector<int> inputs_index;       ///< ids of the model's inputs
  std::vector<int> weights_index;      ///< ids of ProgramData::stored, in that order
  std::vector<Instruction> instructions;
  std::vector<int>
      outputs_index;  ///< ids of the model's outputs; may repeat, may be inputs or weights
};

/// The model compiled for one target.
struct ProgramData {
  std::string target;  ///< "x86-64-v3", "x86-64-v4+vnni", "sm_80", "sm_90a", "ptx"
  /// Host code: the shared object that exports hidet_graph_init, hidet_graph_launch, hidet_graph_workspace,
  /// hidet_graph_output_shapes and the thunks (abi.h). Where kernels have several candidates hidet_graph_launch_chosen,
  /// too, which takes the candidate of each. In it:
  ///  - hidet_graph_launch gets a pointer for each of `stored` (on the program's device) and for each model output.
  ///    Outputs that are inputs, weights, repeats of an earlier output or in share_map may be null for it and are filled
  ///    by the runtime: it must not write them.
  ///  - hidet_graph_init always runs on the CPU with CPU pointers, for CUDA programs too: sources in the order of
  ///    ModelData::sources, results in the order of `stored` (those with source >= 0 are null). Needed only where some
  ///    stored weight has source == -1.
  ///  - hidet_graph_workspace and init's workspace are on the program's device and on the CPU, respectively.
  Bytes code;
  Bytes cuda_image = {};                       ///< kernels.cubin or kernels.ptx; CUDA targets only
  std::vector<std::string> cuda_kernels = {};  ///< names in the order of hidet_cuda_launch::index
  std::vector<FunctionInfo> functions = {};    ///< public functions of the code, for people
  std::vector<int> stored = {};  ///< stored weights it uses: indices into ModelData::stored
  Execution execution = {};
  std::vector<KernelData> kernels = {};
  DimExpr workspace_cpu = 0,
          workspace_cuda = 0;       ///< bytes of workspace (formula of the model's symbols)
  std::string dispatch_table = {};  ///< text of dispatch_table.txt; empty: none
};

/// A compiled model. All programs have the same inputs, outputs, symbols and sources.
struct ModelData {
  std::string name = "model";
  std::vector<TensorSignature> inputs,
      outputs;  ///< the device is the program's, taken from Execution::tensors at load
  std::vector<SymbolRange> symbols = {};  ///< every symbol must be a whole dim of some input
  std::map<int, int> share_map = {};      ///< output -> input in whose storage it is
  std::string graph_hash = {};
  std::vector<std::string> required_features = {};  ///< `requires`: what a loader must know
  std::vector<SourceWeight> sources = {};
  std::vector<StoredWeight> stored = {};
  std::vector<ProgramData> programs;  ///< in order of preference
  std::string graph_string = {};
  std::map<std::string, std::string> source_texts =
      {};  ///< "cpu/matmul.c" -> text; saved with save_source
};

}  // namespace hidet
