// tune.h - what measuring the candidates of a parameter space is given and gives.
// Threading: plain values.
#pragma once
#include <cstdint>
#include <functional>
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

struct TuneOptions {
  double budget = 10;  ///< seconds; what was measured until then decides
  int rounds =
      10;  ///< measurements of each candidate, in turns; those far behind the best drop out
  std::function<void(const TuneProgress&)> progress = {};
};

struct CandidateTime {
  std::string name;
  double milliseconds = 0;  ///< least of its measurements; of no meaning without one
  int measured = 0;
  std::string note = {};  ///< why it was not measured, or not to the end
};

struct TuneReport {
  std::string function;
  std::vector<int64_t> dims;
  std::vector<CandidateTime> candidates;  ///< in the order of the space
  std::string best;
  double seconds = 0;
};

}  // namespace hidet
