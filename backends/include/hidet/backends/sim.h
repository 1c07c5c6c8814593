// sim.h - runs functions of an IR module in an interpreter: CUDA kernels block by block and thread by
// thread, with checks for bounds, unwritten memory, races and barriers; host functions around them.
// Needs: recorded modules (it lowers them itself). Results and reports are deterministic.
// Threading: thread-safe, as long as the tensors of two calls are not the same.
#pragma once
#include <hidet/ir/stmt.h>
#include <hidet/runtime/tensor.h>

#include <map>
#include <span>
#include <variant>

namespace hidet::backends {

/// One argument: a boolean, an integer, a floating-point number, or a CPU tensor (passed as a pointer that
/// knows its extent; an address without a tensor cannot be checked and is not taken).
using SimArg = std::variant<bool, int64_t, uint64_t, double, Tensor>;

struct SimOptions {
  bool checks = true;  ///< races, unwritten memory; bounds are always checked
  /// Bound on the loop iterations of one launch or host function, all threads together, after which the
  /// simulation is stopped with a report of who is where.
  int64_t max_steps = int64_t{1} << 34;
  std::map<std::string, int64_t> symbols = {};  ///< values of dim symbols
  /// Reports integer divisions by zero and shifts out of range in kernels. The language gives them a value (0, or what
  /// shifting bit by bit gives), so that correct programs may have them.
  bool arithmetic = false;
  /// Numbers of arguments whose tensors hold nothing at first: outputs and workspaces. What reads them before it is
  /// written is reported.
  std::vector<int> undefined = {};
};

/// Calls `function` (public, a cpu function or a kernel) with `args`. Kernels that it launches run before
/// the next statement. Error(usage) at the script line, with kernel, block, thread, tensor and index.
void simulate(const ir::Module& module, const std::string& function, std::span<const SimArg> args,
              const SimOptions& options = {});

}  // namespace hidet::backends
