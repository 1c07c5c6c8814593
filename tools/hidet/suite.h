// suite.h - many cases, each in a process of its own, so that none can take the others down.
// Threading: one thread; the calling process must not have started threads.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace hidet::tools {

/// What became of one case.
struct CaseResult {
  std::string name;
  std::string status;  ///< pass, mismatch, unsupported, error, crash, timeout
  std::string message;
  double ms = 0;
};

/// Runs `run` (a folder -> the result; it may throw) on each folder in a child process of at most `timeout_s` seconds. `each` sees
/// every result as it comes: (result, done, total). Throws Error(cancelled) after Ctrl-C; no child stays.
std::vector<CaseResult> run_cases(const std::vector<std::string>& folders, double timeout_s,
                                  const std::function<CaseResult(const std::string&)>& run,
                                  const std::function<void(const CaseResult&, int, int)>& each);

}  // namespace hidet::tools
