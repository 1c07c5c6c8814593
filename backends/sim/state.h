// state.h - the state of a simulation: shadow memory, threads, warps, blocks, launches.
// Threading: a block and its warps belong to one Worker; objects are shared.
#pragma once
#include <hidet/runtime/error.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>

#include "sim/clock.h"
#include "sim/hopper.h"
#include "sim/lanes.h"

namespace hidet::backends::sim {

/// An access in shadow memory: who, and at what clock of its warp. run: number of the block's run, counted over all
/// launches (0: none).
struct Stamp {
  uint32_t run = 0, clock = 0;
  int32_t at = 0;  ///< the instruction
  uint16_t thread = 0;
  uint8_t flags = 0;
  bool same(const Stamp& s) const {
    return run == s.run && clock == s.clock && thread == s.thread && flags == s.flags;
  }
};
/// Flags: by an atomic; the target of a copy that was not waited for; of a cell's write: the worker has a list of atomics there.
constexpr uint8_t kAtomic = 1, kPending = 2, kAtomics = 4;

/// The last write, and two reads by different threads, of a granule of memory.
struct ShadowCell {
  Stamp write, read, other_read;
};
/// Who touched a granule of global memory, while blocks run at the same time.
struct Owners {
  std::atomic<uint32_t> writer{0}, reader{0};
};

/// x86's tile registers.
struct TileRegisters {
  static constexpr int kCount = 8, kRows = 16, kWords = 16;
  bool usable = false;  ///< between amx_config and amx_release
  uint32_t words[kCount][kRows * kWords] = {};
};

/// Memory from outside, or a module variable.
struct Object {
  std::string name;
  DType dtype;
  uint8_t* data = nullptr;
  int64_t bytes = 0;
  int64_t granule = -1;  ///< number of the first granule in shadow memory; -1: not tracked
  int shift = 0;         ///< granules of 2^shift bytes
  std::vector<uint8_t> written = {};  ///< one a byte, where nothing was written at first
};
/// First number of objects that programs declare, and how many a program may have.
constexpr int64_t kFirstLocal = 1 << 16, kLocalsPerProgram = 1 << 12;

enum class State : uint8_t { ready, barrier, named, warp, exited, mbarrier, group, cluster };
constexpr int kStates = 8;

struct Copy {
  int64_t to;
  int32_t bytes, group, at;
  uint8_t data[16];
};
/// What a thread learned through atomics: `learned` counts at its next fence, `released` is what its atomics publish, by scope.
struct Exchange {
  Clock known, learned;
  std::shared_ptr<const Clock> released[kScopes];
};
struct Thread {
  int32_t number = 0, idx[3] = {0, 0, 0};
  int32_t group = 0, barrier = 0;  ///< barrier: number of the named barrier it waits at
  std::vector<Copy> copies;
  std::unique_ptr<Exchange> exchange;
  // sm_90
  std::string waits_for = {};         ///< what report_waiting says of it
  uint32_t cluster_arrived = 0;       ///< number of the cluster's phase that it arrived in
  uint32_t products = 0, stores = 0;  ///< groups closed
  std::vector<Pending> sums = {};
};

struct Warp {
  int32_t index = 0;
  uint32_t exist = 0;         ///< lanes that are threads
  uint32_t in[kStates] = {};  ///< lanes by State
  uint32_t tried = 0;         ///< ready lanes that had their turn
  int32_t slice = 0, pc[kWarp] = {};
  Cell* regs = nullptr;        ///< rows of kWarp cells
  uint8_t* memory = nullptr;   ///< register tensors, lane after lane
  uint8_t* written = nullptr;  ///< one a byte of memory
  uint32_t clock = 1;
  uint32_t* known = nullptr;  ///< of each warp of the block: accesses up to this clock come before
  Clock more;                 ///< known besides: single threads, other blocks
  int32_t registers = 0;      ///< that setmaxnreg gave a thread, or that it began with

  uint32_t live() const { return exist & ~in[static_cast<int>(State::exited)]; }
  uint32_t& lanes(State s) { return in[static_cast<int>(s)]; }
  uint32_t lanes(State s) const { return in[static_cast<int>(s)]; }
  Cell* row(int32_t cell) const { return regs + int64_t{cell} * kWarp; }
  void set(uint32_t mask, State s) {
    for (uint32_t& m : in) m &= ~mask;
    lanes(s) |= mask;
  }
};

/// A named barrier: how many threads it waits for and has, and what those knew; 0: at rest.
struct NamedBarrier {
  int64_t count = 0, arrived = 0;
  Clock clock = {};
};
/// What atomics on an address published, by scope: to all, to one cluster, to one block.
struct Published {
  Clock clock[kScopes];
  uint32_t run[kScopes] = {};  ///< of the cluster's first block, of the block
};

/// Blocks that a simulation may run: the bits above are kFencedShared and kFencedGlobal.
constexpr int64_t kMostRuns = (int64_t{1} << 30) - 1;
/// A launch of a kernel; or the call of a host function.
struct Launch {
  const Program* program = nullptr;
  int64_t first_local = 0;
  int64_t grid[3] = {1, 1, 1}, dim[3] = {1, 1, 1}, cluster[3] = {1, 1, 1}, dynamic = 0;
  std::vector<std::pair<int32_t, Cell>> args;  ///< rows and their values
  uint32_t first_run = 0;  ///< block r of cluster c has run first_run + 1 + c * cluster_size() + r
  bool parallel = false;   ///< blocks run at the same time
  std::atomic<int64_t> steps{0};
  int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  int64_t cluster_size() const { return cluster[0] * cluster[1] * cluster[2]; }
  /// Where block r of cluster c is in the grid.
  void place(int64_t c, int64_t r, int64_t* idx) const;
};

/// Memory that is zero at first.
struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using Zeroed = std::unique_ptr<T[], Free>;
template <class T>
Zeroed<T> zeroed(int64_t count) {
  void* p = std::calloc(static_cast<size_t>(std::max<int64_t>(count, 1)), sizeof(T));
  HIDET_REQUIRE(p, ErrorCode::memory, "", "the simulator needs ",
                count * static_cast<int64_t>(sizeof(T)), " bytes, and there are not so many");
  return Zeroed<T>(static_cast<T*>(p));
}

/// A block of threads of a kernel, or the one thread of a host function.
struct Block {
  Launch* launch = nullptr;
  const Program* program = nullptr;
  int64_t first_local = 0;
  int64_t grid[3] = {1, 1, 1}, dim[3] = {1, 1, 1}, idx[3] = {0, 0, 0};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  NamedBarrier named[16];
  int64_t dynamic_at = 0;
  Cluster* cluster = nullptr;
  int rank = 0;
  uint32_t
      run = 0,
      first_run =
          0;  ///< its number, and its cluster's least: lower stamps of shared memory are of earlier blocks
  std::map<int64_t, Mbarrier> mbarriers;  ///< by place in shared memory
  uint16_t mbarriers_made = 0;
  int64_t registers_left = 0;  ///< that setmaxnreg took from threads
  bool exchanged = false;      ///< threads may know more than their warps
  std::unordered_map<const uint8_t*, Published> published;  ///< on shared memory
  std::exception_ptr unwritten;  ///< the first read of unwritten shared memory
  std::vector<uint32_t> known;
  Zeroed<Cell> registers;
  Zeroed<uint8_t> shared;  ///< static, then dynamic
  Zeroed<uint8_t> memory, written;
  Zeroed<ShadowCell> shared_shadow;
};

/// An object as a warp sees it.
struct Space {
  uint8_t* data = nullptr;
  uint8_t* written = nullptr;    ///< one a byte; null: not asked
  int64_t size = 0, stride = 0;  ///< stride: from lane to lane, of register tensors
  const std::string* name = nullptr;
  DType dtype;
  ShadowCell* cells = nullptr;  ///< of shared memory
  int64_t granule = -1;         ///< of global memory
  int shift = 0;
  bool shared = false;
  bool tracked() const { return cells || granule >= 0; }
};
/// Bytes of one access.
struct Place {
  Space space;
  int64_t offset = 0, bytes = 0;
  uint8_t* data = nullptr;
};

}  // namespace hidet::backends::sim
