// machine.h - the state of a simulation: memory objects with their shadows, threads, blocks; and the interpreter.
// A thread runs until it must wait; the block's loop (block.cpp) decides who goes on. One OS thread.
#pragma once
#include <hidet/backends/sim.h>
#include <hidet/runtime/error.h>

#include <deque>
#include <exception>
#include <memory>

#include "sim/values.h"

namespace hidet::backends::sim {

/// An access in shadow memory. epoch: the number of the barrier interval, counted over all blocks and
/// launches (0: none); so one number tells same interval, same block, same launch.
struct Shadow {
  uint32_t epoch = 0, warp_epoch = 0;
  const ir::SourceLoc* loc = nullptr;
  uint16_t thread = 0;
  uint8_t atomic = 0, pending = 0;  ///< pending: the target of a copy that was not waited for
};
/// The last write, and two reads by different threads, of a granule of memory.
struct ShadowCell {
  Shadow write, read, other_read;
};

/// Memory from outside, or a module variable.
struct Object {
  std::string name;
  DType dtype;
  uint8_t* data = nullptr;
  int64_t bytes = 0;
  ShadowCell* shadow = nullptr;
  int shift = 0;  ///< granules of 2^shift bytes
};
/// First number of objects that programs declare, and how many a program may have.
constexpr int64_t kFirstLocal = 1 << 16, kLocalsPerProgram = 1 << 12;

enum class State : uint8_t { ready, barrier, named, warp, exited };

struct Copy {
  int64_t to;
  int32_t bytes, group;
  uint8_t data[16];
  const ir::SourceLoc* loc;
};
struct Thread {
  Cell* regs = nullptr;
  uint8_t* memory = nullptr;   ///< register tensors
  uint8_t* written = nullptr;  ///< one a byte of memory
  int32_t pc = 0, number = 0, idx[3] = {0, 0, 0};
  State state = State::ready;
  int32_t group = 0, barrier = 0;  ///< barrier: number of the named barrier it waits at
  std::vector<Copy> copies;
};

/// A named barrier: how many threads it waits for and has; 0: at rest.
struct NamedBarrier {
  int64_t count = 0, arrived = 0;
};

/// A block of threads of a kernel, or the one thread of a host function.
struct Block {
  const Program* program = nullptr;
  int64_t first_local = 0;
  int64_t grid[3] = {1, 1, 1}, dim[3] = {1, 1, 1}, idx[3] = {0, 0, 0};
  std::vector<Thread> threads;
  std::vector<uint32_t> warp_epochs;
  NamedBarrier named[16];
  uint8_t* shared = nullptr;  ///< static, then dynamic
  int64_t dynamic_at = 0;
  ShadowCell* shared_shadow = nullptr;
  uint32_t first_epoch = 0, launch_epoch = 0, epoch = 0;
};

/// Bytes of one access, resolved.
struct Place {
  uint8_t* data;
  ShadowCell* shadow;  ///< of the first granule; null: not tracked
  int granules;
  uint8_t* written;  ///< register tensors
  bool shared;
  const std::string* name;
};

class Machine {
 public:
  Machine(const ir::Module& module, const SimOptions& options);
  ~Machine();
  void call(const ir::Function& f, std::span<const SimArg> args);

 private:
  void add_globals();
  Cell argument(const ir::Function& f, size_t i, const SimArg& arg);
  int64_t add_object(const std::string& name, DType dtype, void* data, int64_t bytes);
  void add_shadows();
  const Program& program(const ir::Function& f, int64_t* first_local);
  void launch(const Block& host, const Cell* regs, const LaunchTable& table);
  void check_launch(const ir::Launch& l, const Program& p, const int64_t* grid,
                    const int64_t* block, int64_t dynamic) const;
  void run_block(Block& block);
  bool run_warp(Block& block, size_t warp);
  void release(Block& block);
  void warp_operation(Block& block, size_t first, size_t last);
  void matrix_load(Block& block, size_t first, const Inst& in, int32_t at);
  void matrix_store(Block& block, size_t first, const Inst& in, int32_t at);
  void mma(Block& block, size_t first, const Inst& in) const;
  Place matrix_row(const Block& block, const Thread& t, const Inst& in, int32_t at);
  [[noreturn]] void report_waiting(const Block& block) const;

  // interpreter
  void run(Block& block, Thread& thread);
  Place resolve(const Block& block, const Thread& t, int64_t pointer, int64_t bytes, int64_t align,
                int32_t at, const char* what, int32_t access) const;
  void note_read(const Block& block, const Thread& t, const Place& place, int32_t at, bool atomic);
  void note_write(const Block& block, const Thread& t, const Place& place, int32_t at, bool atomic,
                  bool pending = false);
  void check_index(const Block& block, const Thread& t, const Inst& in, int32_t at, bool* outside,
                   int64_t* offset) const;
  void memory(Block& block, Thread& t, const Inst& in, int32_t at);
  void atomic(Block& block, Thread& t, const Inst& in, int32_t at);
  void copy(Block& block, Thread& t, const Inst& in, int32_t at);
  void wait(Block& block, Thread& t, int32_t pending);
  bool named_barrier(Block& block, Thread& t, const Inst& in, int32_t at);
  void print(const Thread& t, const Program& p, const Inst& in) const;
  void step(const Block& block);
  [[noreturn]] void fail(const Block& block, const Thread& t, int32_t at,
                         const std::string& what) const;
  [[noreturn]] void race(const Block& block, const Thread& t, const Place& place, int32_t at,
                         bool write, const Shadow& other, bool other_write) const;
  Shadow now(const Block& block, const Thread& t, int32_t at) const;
  bool unordered(const Block& block, const Thread& t, const Shadow& other) const;

  ir::Module module_;
  SimOptions options_;
  bool bytewise_ = false, has_kernel_ = false;
  std::deque<Object> objects_;
  std::unordered_map<const ir::Node*, int64_t> globals_;
  std::deque<std::vector<double>> global_storage_;
  std::vector<void*> shadows_;
  std::unordered_map<const ir::Function*, std::pair<std::unique_ptr<Program>, int64_t>> programs_;
  std::unordered_map<int64_t, std::vector<double>> scratch_;
  std::unordered_map<int64_t, int64_t> scratch_objects_;
  uint32_t epoch_ = 1;
  std::exception_ptr unwritten_;  ///< the block's first read of unwritten shared memory
  int64_t steps_ = 0;
};

/// "(1, 0, 0)"
std::string triple(const int64_t* v);

}  // namespace hidet::backends::sim
