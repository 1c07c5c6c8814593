// build.h - from an IR module to loaded code.
// Threading: thread-safe.
#pragma once
#include <hidet/ir/stmt.h>
#include <hidet/runtime/compiled_module.h>

#include <concepts>
#include <string>
#include <variant>
#include <vector>

namespace hidet::lang {

/// How a module is compiled.
struct BuildOptions {
  /// The GPU target of CUDA functions ("sm_90a", "ptx"); empty: this machine's GPU, or the usual targets where
  /// there is none.
  std::string cuda_arch = {};
  std::string cuda_compiler = {};  ///< "nvrtc", "nvcc"; empty: NVRTC where it is, else nvcc
  std::string cpu_target =
      "native";            ///< of CPU functions; the host side of a CUDA module is plain x86-64
  bool fast_math = false;  ///< allow re-association, contraction, approximate functions
  bool use_cache = true;   ///< look in and fill the build cache
  int jobs = 0;            ///< compiler threads; 0: one per CPU
  /// Takes the assembler's words on the CUDA functions: registers, shared memory, spills, and what it could not do as
  /// written ("wgmma.mma_async instructions are serialized"). Code that comes from the cache adds nothing.
  std::string* report = nullptr;
};

/// Verifies, lowers, emits, compiles and loads `module`; its public functions become the functions of the result.
CompiledModule build_module(const ir::Module& module, const BuildOptions& options = {});

/// What build_module loads: code, signatures and texts.
ModuleData compile_module(const ir::Module& module, const BuildOptions& options = {});

/// The public functions of a lowered module, as callers see them. A pointer that reaches a cuda_kernel is device memory.
std::vector<FunctionInfo> public_functions(const ir::Module& module);

/// An argument of a simulation. Tensors are on the CPU; their extents are what bounds are checked against.
using SimArg = std::variant<bool, int64_t, uint64_t, double, Tensor>;
inline SimArg sim_arg(bool v) { return v; }
inline SimArg sim_arg(const Tensor& v) { return v; }
template <std::integral T>
SimArg sim_arg(T v) {
  if constexpr (std::is_unsigned_v<T>) return static_cast<uint64_t>(v);
  else return static_cast<int64_t>(v);
}
template <std::floating_point T>
SimArg sim_arg(T v) {
  return static_cast<double>(v);
}

/// Runs `function` of `module` in the simulator, checked for bounds, unwritten memory, races and barriers.
void simulate_module(const ir::Module& module, const std::string& function,
                     const std::vector<SimArg>& args);

}  // namespace hidet::lang
