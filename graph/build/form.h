// form.h - what a fused task computes, as one statement: two tasks with equal forms are one kernel.
// Needs: a FusedTask.  Threading: pure; thread-safe.  Private to graph/.
#pragma once
#include <hidet/graph/schedule.h>

namespace hidet::graph {

/// Parameters in order, attributes, and every compute, prologue and epilogue step. Says all that a schedule may look
/// at but the names; compare with ir::equal, print for a text to hash.
ir::Stmt form_of(const FusedTask& fused);

}  // namespace hidet::graph
