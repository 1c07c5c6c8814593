// block.cpp - launches: blocks one after the other, the threads of a block in turns between barriers; exchange
// within a warp; reports of threads that wait for others in vain.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <exception>
#include <utility>

#include "sim/machine.h"

namespace hidet::backends::sim {
namespace {

constexpr int64_t kSharedLimit = 227 * 1024, kMaxThreads = 1024;
constexpr int64_t kGridLimit[3] = {INT32_MAX, 65535, 65535}, kBlockLimit[3] = {1024, 1024, 64};

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
std::unique_ptr<T[], Free> zeroed(int64_t count) {
  void* p = std::calloc(static_cast<size_t>(std::max<int64_t>(count, 1)), sizeof(T));
  HIDET_REQUIRE(p, ErrorCode::memory, "", "the simulator needs ",
                count * static_cast<int64_t>(sizeof(T)), " bytes, and there are not so many");
  return std::unique_ptr<T[], Free>(static_cast<T*>(p));
}

/// The source lane of a shuffle.
int source_lane(int how, int lane, int64_t operand) {
  const int64_t from = how == 0   ? (operand & 31)
                       : how == 1 ? lane - operand
                       : how == 2 ? lane + operand
                                  : lane ^ operand;
  return from < 0 || from > 31 ? lane : static_cast<int>(from);
}

}  // namespace

void Machine::check_launch(const ir::Launch& l, const Program& p, const int64_t* grid,
                           const int64_t* block, int64_t dynamic) const {
  const std::string where = l.loc.text();
  for (int d = 0; d < 3; d++) {
    HIDET_REQUIRE(grid[d] >= 0 && grid[d] <= kGridLimit[d], ErrorCode::usage, where, "kernel '",
                  l.callee, "' is launched with grid ", triple(grid), "; sizes are from 0 to (",
                  kGridLimit[0], ", ", kGridLimit[1], ", ", kGridLimit[2], ")");
    HIDET_REQUIRE(block[d] >= 1 && block[d] <= kBlockLimit[d], ErrorCode::usage, where, "kernel '",
                  l.callee, "' is launched with block ", triple(block), "; sizes are from 1 to ",
                  triple(kBlockLimit));
  }
  HIDET_REQUIRE(block[0] * block[1] * block[2] <= kMaxThreads, ErrorCode::usage, where, "kernel '",
                l.callee, "' is launched with block ", triple(block), ", which is ",
                block[0] * block[1] * block[2], " threads; the limit is ", kMaxThreads);
  HIDET_REQUIRE(dynamic >= 0 && p.shared_bytes + dynamic <= kSharedLimit, ErrorCode::usage, where,
                "kernel '", l.callee, "' is launched with ", p.shared_bytes,
                " bytes of static and ", dynamic, " of dynamic shared memory; the limit is ",
                kSharedLimit);
  for (const Local& local : p.locals)
    HIDET_REQUIRE(local.scope != ir::Scope::dynamic_shared || local.offset + local.bytes <= dynamic,
                  ErrorCode::usage, where, "kernel '", l.callee, "' is launched with ", dynamic,
                  " bytes of dynamic shared memory; '", local.name, "' ends at ",
                  local.offset + local.bytes);
}

void Machine::launch(const Block& host, const Cell* regs, const LaunchTable& table) {
  (void)host;
  const ir::Launch& l = *table.stmt;
  const ir::Function* kernel = module_.find(l.callee);
  HIDET_REQUIRE(kernel && kernel->params.size() == l.args.size(), ErrorCode::usage, l.loc.text(),
                "a launch of '", l.callee, "' with ", l.args.size(), " arguments");
  Block block;
  block.program = &program(*kernel, &block.first_local);
  const Program& p = *block.program;
  for (int d = 0; d < 3; d++)
    block.grid[d] = regs[table.grid[d]].i, block.dim[d] = regs[table.block[d]].i;
  const int64_t dynamic = regs[table.shared_bytes].i;
  check_launch(l, p, block.grid, block.dim, dynamic);
  const int64_t threads = block.dim[0] * block.dim[1] * block.dim[2],
                cells = static_cast<int64_t>(p.cells.size());
  const auto shared = zeroed<uint8_t>(p.shared_bytes + dynamic + 128);
  const auto shadow = zeroed<ShadowCell>(options_.checks ? p.shared_bytes + dynamic + 128 : 0);
  const auto registers = zeroed<Cell>(threads * cells);
  const auto memory = zeroed<uint8_t>(threads * p.register_bytes),
             written = zeroed<uint8_t>(threads * p.register_bytes);
  block.dynamic_at = p.shared_bytes;
  block.shared = shared.get();
  block.shared_shadow = options_.checks ? shadow.get() : nullptr;
  block.threads.resize(static_cast<size_t>(threads));
  block.launch_epoch = ++epoch_;
  const int64_t steps_of_host = std::exchange(steps_, 0);
  for (int64_t b = 0; b < block.grid[0] * block.grid[1] * block.grid[2]; b++) {
    block.idx[0] = b % block.grid[0], block.idx[1] = b / block.grid[0] % block.grid[1],
    block.idx[2] = b / (block.grid[0] * block.grid[1]);
    for (int64_t i = 0; i < threads; i++) {
      Thread& t = block.threads[static_cast<size_t>(i)];
      t.regs = registers.get() + i * cells;
      t.memory = memory.get() + i * p.register_bytes,
      t.written = written.get() + i * p.register_bytes;
      std::copy(p.cells.begin(), p.cells.end(), t.regs);
      for (size_t a = 0; a < l.args.size(); a++) t.regs[p.params[a]] = regs[table.args[a]];
      t.pc = 0, t.number = static_cast<int32_t>(i), t.state = State::ready, t.group = 0;
      t.idx[0] = static_cast<int32_t>(i % block.dim[0]),
      t.idx[1] = static_cast<int32_t>(i / block.dim[0] % block.dim[1]);
      t.idx[2] = static_cast<int32_t>(i / (block.dim[0] * block.dim[1]));
      t.copies.clear();
    }
    std::fill(std::begin(block.named), std::end(block.named), NamedBarrier{});
    block.first_epoch = block.epoch = ++epoch_;
    block.warp_epochs.assign(static_cast<size_t>((threads + 31) / 32), 1);
    run_block(block);
  }
  steps_ = steps_of_host;
}

void Machine::run_block(Block& block) {
  std::vector<Thread>& threads = block.threads;
  for (;;) {
    for (size_t w = 0; w < block.warp_epochs.size(); w++)
      while (run_warp(block, w)) {
      }
    const auto is = [](State s) { return [s](const Thread& t) { return t.state == s; }; };
    if (std::any_of(threads.begin(), threads.end(), is(State::ready))) continue;
    if (unwritten_) std::rethrow_exception(unwritten_);
    const auto first = std::find_if(threads.begin(), threads.end(),
                                    [](const Thread& t) { return t.state != State::exited; });
    if (first == threads.end()) return;
    // Threads that ended count as arrived.
    for (const Thread& t : threads)
      if (t.state != State::exited && (t.state != State::barrier || t.pc != first->pc))
        report_waiting(block);
    release(block);
  }
}

/// Lets the threads that wait at the block's barrier go on, with what it tells them.
void Machine::release(Block& block) {
  const Program& p = *block.program;
  int64_t holds = 0, present = 0;
  for (const Thread& t : block.threads)
    if (t.state == State::barrier) {
      const Inst& in = p.code[t.pc - 1];
      present++;
      if (in.sub && t.regs[in.a].i) holds++;
    }
  for (Thread& t : block.threads) {
    if (t.state != State::barrier) continue;
    const Inst& in = p.code[t.pc - 1];
    t.state = State::ready;
    if (in.sub) t.regs[in.dst].i = in.sub == 1 ? holds == present : in.sub == 2 ? holds > 0 : holds;
  }
  block.epoch = ++epoch_;
}

/// True where the thread must wait.
bool Machine::named_barrier(Block& block, Thread& t, const Inst& in, int32_t at) {
  const int64_t id = t.regs[in.a].i, count = t.regs[in.b].i;
  if (id < 0 || id > 15)
    fail(block, t, at, detail::concat("named barrier ", id, "; there are 16, from 0 to 15"));
  if (count <= 0 || count % 32)
    fail(
        block, t, at,
        detail::concat("named barrier ", id, " for ", count, " threads, which are no whole warps"));
  NamedBarrier& b = block.named[id];
  if (b.count && b.count != count)
    fail(block, t, at,
         detail::concat("named barrier ", id, " for ", count, " threads, where others wait for ",
                        b.count));
  b.count = count;
  if (++b.arrived < count) {
    if (in.sub) return false;
    t.state = State::named, t.barrier = static_cast<int32_t>(id);
    return true;
  }
  b = {};
  for (Thread& other : block.threads)
    if (other.state == State::named && other.barrier == id) other.state = State::ready;
  block.epoch = ++epoch_;
  return false;
}

/// Runs the ready threads of a warp; true where a warp operation let them go on.
bool Machine::run_warp(Block& block, size_t warp) {
  const size_t begin = warp * 32, end = std::min(begin + 32, block.threads.size());
  bool waiting = false, complete = true;
  int32_t pc = -1;
  for (size_t i = begin; i < end; i++) {
    Thread& t = block.threads[i];
    if (t.state == State::ready) run(block, t);
    if (t.state == State::exited) continue;
    if (t.state != State::warp) complete = false;
    else waiting = true;
    if (pc >= 0 && t.pc != pc) complete = false;
    pc = t.pc;
  }
  if (!waiting || !complete) return false;
  warp_operation(block, begin, end);
  return true;
}

void Machine::warp_operation(Block& block, size_t begin, size_t end) {
  std::vector<Cell> old[32];
  const Program& p = *block.program;
  int32_t at = 0;
  uint32_t ballot = 0, present = 0;
  for (size_t i = begin; i < end; i++) {
    const Thread& t = block.threads[i];
    if (t.state != State::warp) continue;
    at = t.pc - 1;
    const Inst& in = p.code[at];
    if (in.op == Op::exchange || in.op == Op::vote)
      old[i - begin].assign(t.regs + in.a, t.regs + in.a + in.lanes);
    present |= 1u << (i - begin);
    if (in.op == Op::vote && t.regs[in.a].i) ballot |= 1u << (i - begin);
  }
  const Inst& in = p.code[at];
  if (in.op == Op::load_matrix || in.op == Op::store_matrix || in.op == Op::mma) {
    if (present != ~0u)
      fail(block, block.threads[begin], at,
           detail::concat("a matrix instruction needs all 32 lanes of the warp, not ",
                          std::popcount(present)));
    if (in.op == Op::load_matrix) matrix_load(block, begin, in, at);
    if (in.op == Op::store_matrix) matrix_store(block, begin, in, at);
    if (in.op == Op::mma) mma(block, begin, in);
  }
  for (size_t i = begin; i < end; i++) {
    Thread& t = block.threads[i];
    if (t.state != State::warp) continue;
    t.state = State::ready;
    if (in.op == Op::vote && in.sub == 3) {
      t.regs[in.dst].i = 0;
      for (size_t j = 0; j < end - begin; j++)
        if ((present >> j & 1) && old[j][0].i == old[i - begin][0].i)
          t.regs[in.dst].i |= int64_t{1} << j;
    } else if (in.op == Op::vote)
      t.regs[in.dst].i = in.sub == 0   ? static_cast<int64_t>(ballot)
                         : in.sub == 1 ? ballot != 0
                                       : ballot == present;
    if (in.op != Op::exchange) continue;
    const int from = source_lane(in.sub, static_cast<int>(i - begin), t.regs[in.b].i);
    if (!(present >> from & 1))
      fail(block, t, at,
           detail::concat(
               "shuffle from lane ", from, " of the warp, which ",
               begin + static_cast<size_t>(from) < end ? "has ended" : "the block does not have"));
    std::copy(old[from].begin(), old[from].end(), t.regs + in.dst);
  }
  block.warp_epochs[begin / 32]++;
}

void Machine::report_waiting(const Block& block) const {
  const Program& p = *block.program;
  std::string list;
  int32_t listed[4];
  int places = 0, running = 0;
  const Thread* first = nullptr;
  for (const Thread& t : block.threads) {
    if (t.state == State::exited) continue;
    if (t.state == State::ready) running++;
    const bool seen = std::any_of(listed, listed + places, [&](int32_t pc) { return pc == t.pc; });
    if (seen || places == 4) continue;
    listed[places++] = t.pc;
    first = first ? first : &t;
    int64_t idx[3] = {t.idx[0], t.idx[1], t.idx[2]};
    const int32_t at = std::max(t.pc - 1, 0);
    const char* doing = t.state == State::ready     ? "is at "
                        : t.state == State::barrier ? "waits at the barrier at "
                        : t.state == State::named   ? "waits at a named barrier at "
                                                    : "waits for its warp at ";
    list +=
        (list.empty() ? "" : "; ") + ("thread " + triple(idx)) + " " + doing + p.locs[at].text();
  }
  const int32_t at = first ? std::max(first->pc - 1, 0) : 0;
  if (running)
    fail(block, *first, at,
         detail::concat("stopped after ", options_.max_steps, " loop iterations: ", list));
  fail(block, *first, at,
       "divergent barrier or warp operation, which some threads never reach: " + list);
}

}  // namespace hidet::backends::sim
