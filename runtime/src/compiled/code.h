// code.h - LoadedCode: a code object in memory, checked and initialised, with its GPU part.
// Threading: thread-safe once made; the GPU part is loaded at its first use.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hidet/runtime/compiled_module.h"
#include "hidet/runtime/cpu_level.h"
#include "src/compiled/candidates.h"
#include "src/compiled/context.h"
#include "src/cuda/cuda_module.h"

namespace hidet::runtime {

using Thunk = int32_t (*)(hidet_ctx*, hidet_value*);

/// A shared object opened from memory; no two loads share anything, equal bytes or not.
class SharedObject {
 public:
  SharedObject(std::span<const std::byte> bytes, const std::string& name);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  void* find(const std::string& symbol) const;
  /// Throws Error(bad_file) where it is missing.
  void* need(const std::string& symbol) const;

 private:
  std::string name_;
  void* handle_ = nullptr;
};

/// One public function, ready to be called.
struct LoadedFunction {
  FunctionInfo info;
  Thunk thunk = nullptr;
};

struct LoadedCode {
  /// `alone`: one of another's candidates.
  explicit LoadedCode(ModuleData data, bool alone = false);
  ~LoadedCode();
  /// The GPU part; loads it at the first call. Throws Error(device).
  CudaModule& cuda() const;
  bool cuda_loaded() const { return cuda_done.load(std::memory_order_acquire); }
  /// Throws Error(usage) with the message of an assertion that failed in a kernel and was not told before.
  void check_kernels() const;
  hidet_ctx* default_context() const;

  const ModuleData data;
  SharedObject object;
  std::vector<LoadedFunction> functions;
  int main_function = -1;  // what operator() calls; -1: none
  hidet_abi table;
  std::unique_ptr<Candidates> space;  // null: no parameter space
  const uint64_t id;                  // never used twice in a process
  mutable ContextPool pool;

 private:
  mutable std::mutex mutex;
  mutable std::shared_ptr<CudaModule> cuda_module;
  mutable std::atomic<bool> cuda_done{false};
  mutable std::vector<std::unique_ptr<hidet_ctx>> defaults;
};

/// host_cpu_target(), under the cap of HIDET_CPU_LEVEL ("x86-64-v2"), which tests set.
CpuTarget effective_cpu_target();

}  // namespace hidet::runtime
