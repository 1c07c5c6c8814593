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

/// The module of `state`, checked, with the functions of `joined`.
ir::Module assemble(const ModuleState& state, const ModuleState* joined = nullptr);
/// The candidates that can be recorded, at most `most`; the others are noted. Error(usage) where there is none.
std::vector<Candidate> record_candidates(const ModuleState& state, const Space& space,
                                         size_t most = SIZE_MAX);
/// Compiles them, several at a time: the first with the others behind it. Those that do not compile are noted.
ModuleData compile_candidates(const ModuleState& state, const Space& space,
                              std::vector<Candidate> candidates, const BuildOptions& options);

}  // namespace hidet::lang::detail
