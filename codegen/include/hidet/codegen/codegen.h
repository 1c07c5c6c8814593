// codegen.h - lowered IR to text: C17 with GNU vectors for the CPU and for the host side, CUDA C++ for
// the device side. Deterministic: equal modules give equal text.
// Threading: pure functions; thread-safe.
#pragma once
#include <hidet/ir/stmt.h>

#include <string>
#include <vector>

namespace hidet::codegen {

struct EmitOptions {
  /// Adds `// file.cpp:line` comments; for reading only, never compiled or hashed.
  bool lines = false;
  /// The text is one kernel of a program: its public functions are visible to the program's other units, and the
  /// ABI table is defined by the main unit (table_definition).
  bool kernel_unit = false;
};

/// The text of a module's host code (kinds public, cpu_kernel, cpu_internal), as abi.h says: static
/// bodies, a thunk hidet_call_<f> and a plain entry hidet_<f> for each public function. The module is
/// lowered for Target::cpu. The text includes nothing and declares what it needs.
std::string emit_c(const ir::Module& module, const EmitOptions& options = {});

/// The text of a module's device code (cuda_kernel, cuda_internal), kernels extern "C". Includes at most
/// cuda_fp16.h and cuda_bf16.h. Empty where the module has no CUDA function.
std::string emit_cuda(const ir::Module& module, const EmitOptions& options = {});

/// What the asserts of the module's device code say, "file.cpp:line: error: message"; a kernel reports a place here
/// plus 1. The module is lowered for Target::cuda.
std::vector<std::string> assert_messages(const ir::Module& module);

/// The name that a function has in the text (reserved words and collisions resolved).
std::string emitted_name(const ir::Module& module, const std::string& function);

/// Names of the module's CUDA kernels in the order of hidet_cuda_launch::index.
std::vector<std::string> kernel_names(const ir::Module& module);

/// The C declarations that every emitted host text starts with (the ABI table of abi.h).
const std::string& abi_declarations();
/// The definition of the table's address, hidet_module_init and hidet_abi_size.
const std::string& table_definition();

}  // namespace hidet::codegen
