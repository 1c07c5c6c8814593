// verify_parts.h - the parts of the verifier, each a file of its own. Private to ir/core.
// Each throws Error(usage) at the line of the node, or of its function where that has none.
// Threading: pure functions; thread-safe.
#pragma once
#include <hidet/ir/stmt.h>

namespace hidet::ir {

/// The operands and the type of one node are what the node takes.
void check_types(const Node& node, const Function& function, const Module& module);
/// Layouts, scopes and sizes of the tensors that a function declares or takes.
void check_memory(const Function& function);
/// Types and initial values of the module's variables.
void check_globals(const Module& module);
/// Launch dimensions of a cuda_kernel, as far as they are constants.
void check_launch_bounds(const Function& kernel);
/// The same of one launch.
void check_launch(const Launch& launch, const Function& function);
/// No barrier of a block where it is known that some threads do not come.
void check_barriers(const Module& module);

}  // namespace hidet::ir
