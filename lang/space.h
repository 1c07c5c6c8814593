// space.h - the candidates of a module with a parameter space.
// Threading: recording: one thread at a time; compile_candidates uses several.
#pragma once
#include <hidet/lang/build.h>

#include "recorder.h"

namespace hidet::lang::detail {

struct Candidate {
  std::string name;  ///< Params::text()
  ir::Module module;
};

/// What was left out, and why: noted at once, and kept for the error where none is left.
class LeftOut {
 public:
  LeftOut(const ModuleState& state, const Space& space) : state_(state), space_(space) {}
  void note(const std::string& candidate, const std::string& reason);
  /// Throws Error(usage) with all reasons where there is no candidate.
  void require(bool some) const;

 private:
  const ModuleState& state_;
  const Space& space_;
  std::string reasons_;
};

/// The module of `state`, checked, with the functions of `joined`.
ir::Module assemble(const ModuleState& state, const ModuleState* joined = nullptr);
/// The candidates that can be recorded, at most `most`. Error(usage) where there is none.
std::vector<Candidate> record_candidates(const ModuleState& state, const Space& space,
                                         LeftOut& left_out, size_t most = SIZE_MAX);
/// Compiles them, several at a time: the first with the others behind it. Error(usage) where none compiles.
ModuleData compile_candidates(std::vector<Candidate> candidates, const BuildOptions& options,
                              LeftOut& left_out);

}  // namespace hidet::lang::detail
