// module.h - functions and modules; stmt.h includes it.
// Threading: plain values.
#pragma once
#include <hidet/ir/stmt.h>

namespace hidet::ir {

enum class FuncKind : uint8_t { public_, cuda_kernel, cuda_internal, cpu_kernel, cpu_internal };
const char* name(FuncKind kind);  ///< "public", "cuda_kernel" ...
inline bool is_cuda(FuncKind k) {
  return k == FuncKind::cuda_kernel || k == FuncKind::cuda_internal;
}

/// Launch bounds of a cuda_kernel: expressions of its parameters.
struct LaunchInfo {
  std::vector<Expr> grid, block, cluster;  ///< up to three extents each, x first
  Expr shared_bytes;                       ///< dynamic shared memory or null
  int64_t min_blocks = 0;                  ///< least blocks a multiprocessor, 0: unsaid
};

/// A function. Parameters are immutable variables (scalars, pointers, tensors behind pointers).
struct Function {
  std::string name;
  FuncKind kind = FuncKind::cpu_internal;
  std::vector<VarRef> params;
  Type returns;
  Stmt body;
  LaunchInfo launch;
  bool no_alias = false;  ///< compiler-made: pointer parameters do not overlap
  SourceLoc loc;
};

/// A module-level variable: constant (with init values) on the CPU, mutable only on CUDA.
struct GlobalVar {
  VarRef var;                ///< scalar or tensor
  std::vector<double> init;  ///< one a element, or empty: zeros
  bool on_cuda = false;
};

/// A function that the host program supplies by address.
struct ExternFunc {
  std::string name;
  std::vector<Type> params;
  Type returns;
  void* address = nullptr;
};

struct Module {
  std::string name;
  std::vector<Function> functions;  ///< callees before callers is not required
  std::vector<GlobalVar> globals;
  std::vector<ExternFunc> externs;
  const Function* find(const std::string& function) const;
};

/// Structural equality: names of functions, kinds, types, bodies; variables correspond by place. Places in
/// the user's program and addresses of extern functions do not count.
bool equal(const Module& a, const Module& b);

}  // namespace hidet::ir
