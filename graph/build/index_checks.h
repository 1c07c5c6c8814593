// index_checks.h - operators that read at index tensors (gather and its kin): kernels for the CPU look at the indices
// once before their work, so that an index outside its axis is an error of the run. The compute definitions clamp, so
// that memory is safe without the check too: on CUDA, where nothing is checked, such an index reads an element at the
// edge of the axis.
// Threading: pure.  Private to graph/.
#pragma once
#include <hidet/ir/module.h>

#include "build/groups.h"

namespace hidet::graph {

/// True where input k of an operator called `op` holds indices. Such an input is never folded into a kernel: the check
/// reads it.
bool holds_indices(const std::string& op, size_t k);

/// The checks of a group's indices; none: an empty statement.
ir::Stmt index_checks(const Group& group);
/// `m`, whose function "launch" takes the group's inputs first, with the checks before its work.
ir::Module with_index_checks(ir::Module m, const Group& group);

}  // namespace hidet::graph
