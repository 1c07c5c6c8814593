// fold.h - operators on known integers: one table of operator types and functions.
// Threading: thread-safe.
#pragma once
#include <optional>
#include <vector>

#include "onnx/known.h"
#include "onnx/node_call.h"

namespace hidet::graph::onnx {

/// The output of `call` where its inputs are known and the operator is one of shape arithmetic;
/// nothing where it has to be computed at run time. Malformed input is Error(bad_file).
std::optional<Known> fold(const NodeCall& call);

}  // namespace hidet::graph::onnx
