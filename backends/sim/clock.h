// clock.h - what orders accesses: the clock of each warp of a block, and what threads know of other threads' clocks.
// An access is stamped with its thread and the clock of its warp, which goes on at each point that others can wait for.
// Threading: one thread at a time.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace hidet::backends::sim {

/// What is known of one block: all accesses of warp w up to clock warps[w], and of single threads up to theirs.
struct Known {
  std::vector<uint32_t> warps;
  std::vector<std::pair<uint16_t, uint32_t>> threads;  ///< by thread
  bool covers(uint16_t thread, uint32_t clock) const;
  void join(const Known& other);
  void add(uint16_t thread, uint32_t clock);
};

/// What is known of several blocks, each named by its run.
struct Clock {
  std::map<uint32_t, std::shared_ptr<const Known>> runs;
  bool empty() const { return runs.empty(); }
  bool covers(uint32_t run, uint16_t thread, uint32_t clock) const;
  void join(const Clock& other);
  void join(uint32_t run, const Known& known);
};

}  // namespace hidet::backends::sim
