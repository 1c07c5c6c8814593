// context.h - hidet_ctx: what one call of generated code needs; pools of them; the ABI table.
// Threading: a context belongs to one call at a time (its parallel regions share it: raise is locked). Pools and
// tables are thread-safe.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hidet/runtime/abi.h"
#include "hidet/runtime/device.h"

struct CUstream_st;
namespace hidet::runtime {
struct LoadedCode;
class LaunchTimes;

/// Memory of one device that grows and never shrinks while its context lives.
class Workspace {
 public:
  Workspace() = default;
  ~Workspace() { release(); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  /// At least `bytes`, 64-byte aligned; throws Error(memory).
  void* get(Device device, int64_t bytes);

 private:
  void release() noexcept;
  Device device_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};
}  // namespace hidet::runtime

struct hidet_ctx {
  explicit hidet_ctx(const hidet::runtime::LoadedCode& c) : code(c) {}
  const hidet::runtime::LoadedCode& code;
  CUstream_st* stream = nullptr;
  hidet::runtime::LaunchTimes* times = nullptr;  // a profiled call's
  bool is_default = false;                       // raise also sets hidet_last_error of the thread
  hidet::runtime::Workspace workspace;
  std::vector<void*> pointers;  // arguments of a graph's launch, kept for their capacity

  void begin() {
    if (failed.load(std::memory_order_relaxed)) {
      failed.store(false, std::memory_order_relaxed);
      message.clear();
    }
  }
  /// Throws what generated code raised; `status` is what it returned, `what` names the work.
  void check(int32_t status, const char* what) {
    if (status != 0) [[unlikely]]
      fail(status, what);
  }
  [[noreturn]] void fail(int32_t status, const char* what);
  int32_t raise(int32_t code, const char* text) noexcept;

 private:
  std::mutex mutex;
  std::atomic<bool> failed{false};
  std::string message;
};

namespace hidet::runtime {

/// Contexts of one module or model that nobody uses now.
class ContextPool {
 public:
  explicit ContextPool(const LoadedCode& code) : code_(code) {}
  ~ContextPool();
  /// A context for one call; gives itself back.
  class Use {
   public:
    explicit Use(ContextPool& pool) : pool_(pool), ctx_(pool.take()) { ctx_->begin(); }
    ~Use() { pool_.give(ctx_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    hidet_ctx* operator->() const { return ctx_; }
    hidet_ctx* get() const { return ctx_; }

   private:
    ContextPool& pool_;
    hidet_ctx* ctx_;
  };

 private:
  hidet_ctx* take();
  void give(hidet_ctx* ctx) noexcept;
  const LoadedCode& code_;
  std::atomic<hidet_ctx*> hot_{nullptr};  // the usual case: one at a time, no lock
  std::mutex mutex_;
  std::vector<hidet_ctx*> idle_;
};

/// One level of nesting of scratch memory: of a call or of a body of a parallel region.
class ScratchScope {
 public:
  ScratchScope() noexcept;
  ~ScratchScope();
};

/// The table of functions for one module.
hidet_abi make_abi_table(const LoadedCode& code);

/// The message of hidet_last_error, per thread.
std::string& last_error_text();

}  // namespace hidet::runtime
