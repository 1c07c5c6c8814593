// launch.cpp - launches of kernels: their limits, and the blocks on one thread in order or on several at once.
#include <hidet/ir/limits.h>
#include <hidet/runtime/thread_pool.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/worker.h"

namespace hidet::backends::sim {
using ir::kMostBlock, ir::kMostClusterBlocks, ir::kMostDynamicShared, ir::kMostGrid,
    ir::kMostThreads;

void Machine::check_launch(const ir::Launch& l, const Program& p, const Launch& launch) const {
  const std::string where = l.loc.text();
  const int64_t *grid = launch.grid, *block = launch.dim, dynamic = launch.dynamic;
  for (int d = 0; d < 3; d++) {
    HIDET_REQUIRE(grid[d] >= 0 && grid[d] <= kMostGrid[d], ErrorCode::usage, where, "kernel '",
                  l.callee, "' is launched with grid ", triple(grid), "; sizes are from 0 to (",
                  kMostGrid[0], ", ", kMostGrid[1], ", ", kMostGrid[2], ")");
    HIDET_REQUIRE(block[d] >= 1 && block[d] <= kMostBlock[d], ErrorCode::usage, where, "kernel '",
                  l.callee, "' is launched with block ", triple(block), "; sizes are from 1 to ",
                  triple(kMostBlock));
  }
  HIDET_REQUIRE(block[0] * block[1] * block[2] <= kMostThreads, ErrorCode::usage, where, "kernel '",
                l.callee, "' is launched with block ", triple(block), ", which is ",
                block[0] * block[1] * block[2], " threads; the limit is ", kMostThreads);
  for (int d = 0; d < 3; d++)
    HIDET_REQUIRE(launch.cluster[d] >= 1 && grid[d] % launch.cluster[d] == 0, ErrorCode::usage,
                  where, "kernel '", l.callee, "' is launched with clusters of ",
                  triple(launch.cluster), " blocks, which must divide the grid ", triple(grid));
  HIDET_REQUIRE(launch.cluster_size() <= kMostClusterBlocks, ErrorCode::usage, where, "kernel '",
                l.callee, "' is launched with clusters of ", launch.cluster_size(),
                " blocks; the limit is ", kMostClusterBlocks);
  HIDET_REQUIRE(dynamic >= 0 && p.shared_bytes + dynamic <= kMostDynamicShared, ErrorCode::usage,
                where, "kernel '", l.callee, "' is launched with ", p.shared_bytes,
                " bytes of static and ", dynamic, " of dynamic shared memory; the limit is ",
                kMostDynamicShared);
  for (const Local& local : p.locals)
    HIDET_REQUIRE(local.scope != ir::Scope::dynamic_shared || local.offset + local.bytes <= dynamic,
                  ErrorCode::usage, where, "kernel '", l.callee, "' is launched with ", dynamic,
                  " bytes of dynamic shared memory; '", local.name, "' ends at ",
                  local.offset + local.bytes);
}

void Machine::launch(const Warp& host, const LaunchTable& table) {
  const ir::Launch& l = *table.stmt;
  const ir::Function* kernel = module_.find(l.callee);
  HIDET_REQUIRE(kernel && kernel->params.size() == l.args.size(), ErrorCode::usage, l.loc.text(),
                "a launch of '", l.callee, "' with ", l.args.size(), " arguments");
  Launch launch;
  launch.program = &program(*kernel, &launch.first_local);
  for (size_t d = 0; d < 3; d++)
    launch.grid[d] = host.row(table.grid[d])->i, launch.dim[d] = host.row(table.block[d])->i,
    launch.cluster[d] = host.row(table.cluster[d])->i;
  launch.dynamic = host.row(table.shared_bytes)->i;
  check_launch(l, *launch.program, launch);
  for (size_t a = 0; a < l.args.size(); a++)
    for (int k = 0; k < l.args[a]->type.lanes(); k++)
      launch.args.emplace_back(launch.program->params[a] + k, *host.row(table.args[a] + k));
  const int64_t blocks = launch.blocks();
  HIDET_REQUIRE(blocks < kMostRuns - run_, ErrorCode::usage, l.loc.text(), "kernel '", l.callee,
                "' is launched with ", blocks, " blocks; the simulator runs fewer than ", kMostRuns,
                " in all");
  launch.first_run = ++run_;
  run_ += static_cast<uint32_t>(blocks);
  if (blocks > 1 && num_threads() > 1 && !launch.program->in_order) run_together(launch);
  else workers_.front()->run_in_order(launch);
}

/// Blocks on several threads. Where anything is found, all starts again in order: the report is that of the first block.
void Machine::run_together(Launch& launch) {
  std::vector<std::vector<uint8_t>> before, written;
  for (const auto& [data, bytes] : extents_) before.emplace_back(data, data + bytes);
  for (const Object& o : objects_) written.push_back(o.written);
  if (options_.checks && !owners_)
    owners_ = std::make_unique<Owners[]>(static_cast<size_t>(granules_) + 1);
  const int64_t count = std::min<int64_t>(num_threads(), launch.blocks());
  while (static_cast<int64_t>(workers_.size()) < count)
    workers_.push_back(std::make_unique<Worker>(*this));
  launch.parallel = true;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  runtime::parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) try {
        workers_[static_cast<size_t>(i)]->run_from(launch, next);
      } catch (...) {
        failed = true;
        next = launch.blocks();
      }
  });
  if (!failed) return;
  // Weights may lie in memory that cannot be written.
  for (size_t i = 0; i < extents_.size(); i++)
    if (std::memcmp(extents_[i].first, before[i].data(), before[i].size()) != 0)
      std::memcpy(extents_[i].first, before[i].data(), before[i].size());
  for (size_t i = 0; i < objects_.size(); i++) objects_[i].written = written[i];
  launch.parallel = false;
  launch.steps = 0;
  launch.first_run = ++run_;
  run_ += static_cast<uint32_t>(launch.blocks());
  workers_.front()->run_in_order(launch);
}

}  // namespace hidet::backends::sim
