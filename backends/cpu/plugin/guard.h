// guard.h - runs a piece of work so that a crash in LLVM becomes a return value.
// LLVM's crash handlers are installed only while work runs, so that the host program keeps its own.
// Threading: any number of threads at once.
#pragma once
#include <functional>

namespace hidet_clang {

/// False when `work` crashed (signal, abort or LLVM's fatal error); LLVM is in an unknown state then.
bool run_guarded(const std::function<void()>& work);

}  // namespace hidet_clang
