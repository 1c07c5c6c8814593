// planted_fault.h - a wrong kernel on purpose, for tests of what must notice it (`hidet verify`). The debug switch
// HIDET_TEST_BREAK_KERNEL=<operator, or name of a node> makes CPU kernels of such operators write a wrong first element.
// Threading: pure, but for the environment.  Private to graph/.
#pragma once
#include <hidet/ir/module.h>

#include "build/groups.h"

namespace hidet::graph {

/// True where the switch names the group: its kernel is not shared with others.
bool has_planted_fault(const Group& group);
/// `m`, whose function "launch" takes the group's inputs and then its outputs, broken where the switch names the group.
ir::Module with_planted_fault(ir::Module m, const Group& group);

}  // namespace hidet::graph
