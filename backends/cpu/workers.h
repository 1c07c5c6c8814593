// workers.h - a few threads with large stacks for compiling.
// Threading: each call has its own threads, all joined before it returns.
#pragma once
#include <functional>

namespace hidet::backends::cpu {

/// Runs body(0) ... body(count - 1) on at most `jobs` threads. `progress(done)` runs on the calling thread
/// after each; when it returns false, what has not begun is left out and Error(cancelled) thrown. A body's
/// exception stops the rest likewise; of several the one with the least index is thrown.
void run_on_workers(int count, int jobs, const std::function<void(int)>& body,
                    const std::function<bool(int done)>& progress);

}  // namespace hidet::backends::cpu
