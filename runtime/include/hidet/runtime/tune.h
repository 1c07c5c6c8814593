// tune.h - what measuring the candidates of a parameter space is given and gives.
// Threading: plain values.
#pragma once
#include <hidet/runtime/dim_expr.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hidet {

/// After each measurement.
struct TuneProgress {
  int done = 0, total = 0;       ///< measurements; the total falls when candidates drop out
  double seconds = 0, eta = 0;   ///< so far; until the end
  const std::string& candidate;  ///< measured last
  double milliseconds = 0;       ///< its time
};

struct CandidateTime {
  std::string name;
  double milliseconds = 0;  ///< least of its measurements; of no meaning without one
  int measured = 0;
  std::string note = {};  ///< why it was not measured, or not to the end
};

/// What the measurements of a candidate of a model's kernel are kept under.
struct TuneKey {
  std::string kernel, candidate;  ///< names, for people
  std::string digest;             ///< of the candidate's text and compiler (KernelCandidate)
  std::string dims;               ///< the kernel's symbols: "n=8,s=128"
  std::string device;             ///< name of the GPU or CPU
  int threads = 0;                ///< of a CPU
};
/// The note of a candidate from when it first runs until that has ended.
inline constexpr const char* kTuneStarted =
    "the process ended while this candidate ran for the first time: it crashed, or did not end";
/// Where measurements are kept beyond one call. One with a note and no measurement is not tried again: before a candidate
/// runs for the first time it is kept with kTuneStarted, for the case that the process does not survive that.
struct TuneMemory {
  std::function<std::optional<CandidateTime>(const TuneKey&)> find;
  std::function<void(const TuneKey&, const CandidateTime&)> keep;
};

struct TuneOptions {
  double budget = 10;  ///< seconds; what was measured until then decides
  /// Measurements of each candidate, in turns; those far behind the best drop out. A model's default and best get three times as many.
  int rounds = 10;
  std::function<void(const TuneProgress&)> progress = {};  ///< may throw to stop
  TuneMemory memory = {};                                  ///< of CompiledModel::tune; empty: none
};

struct TuneReport {
  std::string function;
  std::vector<int64_t> dims;
  std::vector<CandidateTime> candidates;  ///< in the order of the space
  std::string best;
  double seconds = 0;
};

/// What CompiledModel::tune found at some sizes.
struct ModelTuneReport {
  SymbolMap dims;
  std::vector<TuneReport>
      kernels;            ///< those with several candidates; a dim for each of the kernel's symbols
  bool complete = false;  ///< every candidate was measured as often as was asked for
  double seconds = 0;
};

}  // namespace hidet
