// verify_types.h - the verifier's rules about the type of one node. Private to ir/core.
// Threading: pure functions; thread-safe.
#pragma once
#include <hidet/ir/stmt.h>

namespace hidet::ir {

/// Throws Error(usage) at the node's line where its operands or its type are not what the node takes.
void check_types(const Node& node, const Function& function, const Module& module);

}  // namespace hidet::ir
