// spaces.h - models with candidates, for the tests of candidates and of tuning.
#pragma once
#include "model/nets.h"

namespace hidet::test {

/// relu(x[n, k] * w + b), with a weight of k x columns.
inline FlowGraph product(const DimExpr& n, int64_t k, int64_t columns) {
  const Tensor x = symbol({n, k}, f32, {}, "x");
  return trace_from(
      ops::relu(ops::matmul(x, randn({k, columns}, f32, {}, 1)) + randn({columns}, f32, {}, 2)),
      {x});
}

inline CompiledModel build_space(const FlowGraph& g, int space,
                                 const std::string& target = "native") {
  return optimize(g).build({.targets = {target}, .space = space});
}

/// The kernel with the most candidates: its index and their number.
inline std::pair<size_t, size_t> richest(const CompiledModel& m) {
  std::pair<size_t, size_t> best{0, 0};
  const std::vector<TaskInfo> tasks = m.tasks();
  for (size_t i = 0; i < tasks.size(); i++)
    if (tasks[i].candidates.size() > best.second) best = {i, tasks[i].candidates.size()};
  return best;
}

/// A dispatch table of one row for any sizes: candidate `c` of kernel `k`.
inline std::string one_row(const CompiledModel& m, size_t k, size_t c) {
  std::string header = "device", row = "any";
  for (const SymbolRange& s : m.symbols()) header += "\t" + s.name, row += "\t1";
  const std::vector<TaskInfo> tasks = m.tasks();
  for (size_t i = 0; i < tasks.size(); i++) {
    header += "\t" + tasks[i].name;
    row += "\t" + std::to_string(i == k ? c : 0);
  }
  return header + "\n" + row + "\n";
}

}  // namespace hidet::test
