// guard.cpp - LLVM's crash recovery, also for a stack that ran over: handlers run on a stack of their own.
// Threading: any number of threads at once.
#include "guard.h"

#include <signal.h>

#include <memory>
#include <mutex>

#include <llvm/Support/CrashRecoveryContext.h>

namespace hidet_clang {
namespace {

/// Installs LLVM's crash handlers for the first of the guarded works in flight, removes them after the last.
class HandlersInstalled {
 public:
  HandlersInstalled() {
    std::lock_guard lock(mutex());
    if (count()++ > 0) return;
    llvm::CrashRecoveryContext::Enable();
    for (const int number : {SIGSEGV, SIGBUS}) {
      struct sigaction action;
      sigaction(number, nullptr, &action);
      action.sa_flags |= SA_ONSTACK;
      sigaction(number, &action, nullptr);
    }
  }
  ~HandlersInstalled() {
    std::lock_guard lock(mutex());
    if (--count() == 0) llvm::CrashRecoveryContext::Disable();
  }

 private:
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static int& count() {
    static int n = 0;
    return n;
  }
};

/// This thread's stack for signal handlers, for as long as it lives.
class HandlerStack {
 public:
  HandlerStack() : memory_(new char[kBytes]) {
    const stack_t mine = {.ss_sp = memory_.get(), .ss_flags = 0, .ss_size = kBytes};
    sigaltstack(&mine, &before_);
  }
  ~HandlerStack() { sigaltstack(&before_, nullptr); }

 private:
  static constexpr size_t kBytes = 65536;
  std::unique_ptr<char[]> memory_;
  stack_t before_ = {};
};

}  // namespace

bool run_guarded(const std::function<void()>& work) {
  HandlersInstalled handlers;
  HandlerStack stack;
  llvm::CrashRecoveryContext context;
  return context.RunSafely(work);
}

}  // namespace hidet_clang
