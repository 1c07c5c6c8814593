// call_rules.h - who may call whom among the five kinds of functions, and where `parallel` is legal.
// Used by the script recorder and by verify. Threading: pure functions; thread-safe.
#pragma once
#include <hidet/ir/stmt.h>

namespace hidet::ir {

/// True where a function of kind `caller` may call (or launch) one of kind `callee`.
bool may_call(FuncKind caller, FuncKind callee);
/// The kinds that may call `callee`, for messages: "public, cpu_kernel".
std::string callers_of(FuncKind callee);
/// True where a parallel loop is legal.
bool may_be_parallel(FuncKind kind);

/// Checks every call and parallel loop of the module; throws Error(usage) at the script line with both
/// names and both kinds.
void check_calls(const Module& module);

}  // namespace hidet::ir
