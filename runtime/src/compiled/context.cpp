// context.cpp - errors, workspaces and pools of contexts.
// Threading: see context.h.
#include "src/compiled/context.h"

#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"

namespace hidet::runtime {

void* Workspace::get(Device device, int64_t bytes) {
  if (bytes <= static_cast<int64_t>(bytes_) && device == device_) return memory_;
  release();
  memory_ = allocate(device, static_cast<size_t>(bytes));
  device_ = device;
  bytes_ = static_cast<size_t>(bytes);
  return memory_;
}

void Workspace::release() noexcept {
  if (memory_) free_memory(device_, memory_, bytes_);
  memory_ = nullptr;
  bytes_ = 0;
}

ContextPool::~ContextPool() {
  delete hot_.load();
  for (hidet_ctx* ctx : idle_) delete ctx;
}

hidet_ctx* ContextPool::take() {
  if (hidet_ctx* ctx = hot_.exchange(nullptr, std::memory_order_acquire)) return ctx;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      hidet_ctx* ctx = idle_.back();
      idle_.pop_back();
      return ctx;
    }
    idle_.reserve(idle_.size() + 64);  // so that give, which must not throw, need not grow it soon
  }
  return new hidet_ctx(code_);
}

void ContextPool::give(hidet_ctx* ctx) noexcept {
  hidet_ctx* none = nullptr;
  if (hot_.compare_exchange_strong(none, ctx, std::memory_order_release, std::memory_order_relaxed))
    return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < idle_.capacity()) idle_.push_back(ctx);
  else delete ctx;
}

std::string& last_error_text() {
  thread_local std::string text;
  return text;
}

}  // namespace hidet::runtime

int32_t hidet_ctx::raise(int32_t code_number, const char* text) noexcept {
  const int32_t status =
      code_number == 0 ? static_cast<int32_t>(hidet::ErrorCode::internal) : code_number;
  const std::lock_guard lock(mutex);
  if (failed.load(std::memory_order_relaxed)) return status;  // the first one counts
  try {
    message = text ? text : "";
    if (is_default) hidet::runtime::last_error_text() = message;
  } catch (const std::bad_alloc&) {
    message.clear();
  }
  failed.store(true, std::memory_order_relaxed);
  return status;
}

void hidet_ctx::fail(int32_t status, const char* what) {
  const std::lock_guard lock(mutex);
  std::string text = failed.load() && !message.empty()
                         ? message
                         : hidet::detail::concat("generated code failed with status ", status);
  throw hidet::Error(static_cast<hidet::ErrorCode>(status),
                     hidet::detail::concat(text, " (while running ", what, ")"));
}
