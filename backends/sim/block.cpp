// block.cpp - blocks: their memory, the turns of warps and of blocks that wait for each other, and the report of threads that
// wait for others in vain.
#include <algorithm>

#include "sim/worker.h"

namespace hidet::backends::sim {
namespace {

/// Turns that a block has before the next one runs beside it, and how many run side by side.
constexpr int kPatience = 16;
constexpr size_t kResident = 64;

}  // namespace

std::unique_ptr<Block> Worker::make_block(Launch& launch) const {
  auto out = std::make_unique<Block>();
  Block& b = *out;
  const Program& p = *launch.program;
  b.launch = &launch, b.program = &p, b.first_local = launch.first_local;
  std::copy(launch.grid, launch.grid + 3, b.grid);
  std::copy(launch.dim, launch.dim + 3, b.dim);
  const int64_t threads = b.dim[0] * b.dim[1] * b.dim[2], warps = (threads + kWarp - 1) / kWarp,
                cells = static_cast<int64_t>(p.cells.size()) * kWarp;
  b.registers = zeroed<Cell>(warps * cells);
  b.memory = zeroed<uint8_t>(warps * kWarp * p.register_bytes);
  b.written = zeroed<uint8_t>(warps * kWarp * p.register_bytes);
  b.shared = zeroed<uint8_t>(p.shared_bytes + launch.dynamic + 128);
  if (options_.checks) b.shared_shadow = zeroed<ShadowCell>(p.shared_bytes + launch.dynamic + 128);
  b.dynamic_at = p.shared_bytes;
  b.threads.resize(static_cast<size_t>(threads));
  for (int64_t i = 0; i < threads; i++) {
    Thread& t = b.threads[static_cast<size_t>(i)];
    t.number = static_cast<int32_t>(i);
    t.idx[0] = static_cast<int32_t>(i % b.dim[0]);
    t.idx[1] = static_cast<int32_t>(i / b.dim[0] % b.dim[1]);
    t.idx[2] = static_cast<int32_t>(i / (b.dim[0] * b.dim[1]));
  }
  b.known.resize(static_cast<size_t>(warps * warps));
  b.warps.resize(static_cast<size_t>(warps));
  for (int64_t i = 0; i < warps; i++) {
    Warp& w = b.warps[static_cast<size_t>(i)];
    const int64_t lanes = std::min<int64_t>(threads - i * kWarp, kWarp);
    w.index = static_cast<int32_t>(i);
    w.exist = static_cast<uint32_t>((uint64_t{1} << lanes) - 1);
    w.regs = b.registers.get() + i * cells;
    w.memory = b.memory.get() + i * kWarp * p.register_bytes;
    w.written = b.written.get() + i * kWarp * p.register_bytes;
    w.known = b.known.data() + i * warps;
    for (size_t c = 0; c < p.cells.size(); c++)
      std::fill_n(w.row(static_cast<int32_t>(c)), kWarp, p.cells[c]);
  }
  return out;
}

std::unique_ptr<Cluster> Worker::make_cluster(Launch& launch) const {
  auto out = std::make_unique<Cluster>();
  for (int64_t r = 0; r < launch.cluster_size(); r++) {
    out->blocks.push_back(make_block(launch));
    out->blocks.back()->cluster = out.get();
    out->blocks.back()->rank = static_cast<int>(r);
  }
  return out;
}

void Launch::place(int64_t c, int64_t r, int64_t* idx) const {
  const int64_t across = grid[0] / cluster[0], down = grid[1] / cluster[1];
  idx[0] = c % across * cluster[0] + r % cluster[0];
  idx[1] = c / across % down * cluster[1] + r / cluster[0] % cluster[1];
  idx[2] = c / (across * down) * cluster[2] + r / (cluster[0] * cluster[1]);
}

void Worker::start(Cluster& cluster, int64_t number) {
  cluster.arrived = 0, cluster.phase = 0, cluster.arriving = {}, cluster.done = {};
  for (auto& b : cluster.blocks) start(*b, number);
}

void Worker::start(Block& block, int64_t cluster) {
  const Launch& launch = *block.launch;
  launch.place(cluster, block.rank, block.idx);
  block.first_run = launch.first_run + 1 + static_cast<uint32_t>(cluster * launch.cluster_size());
  block.run = block.first_run + static_cast<uint32_t>(block.rank);
  std::fill(block.known.begin(), block.known.end(), 0);
  for (Warp& w : block.warps) {
    for (const auto& [row, value] : block.launch->args) std::fill_n(w.row(row), kWarp, value);
    std::fill(std::begin(w.pc), std::end(w.pc), 0);
    w.set(w.exist, State::ready);
    w.tried = 0, w.clock = 1, w.more = {};
    w.registers = static_cast<int32_t>(block.program->registers);
  }
  for (Thread& t : block.threads) {
    t.group = 0, t.copies.clear(), t.exchange = nullptr;
    t.cluster_arrived = 0, t.products = 0, t.stores = 0, t.sums.clear();
  }
  block.mbarriers.clear();
  block.mbarriers_made = 0;
  block.registers_left = 0;
  std::fill(std::begin(block.named), std::end(block.named), NamedBarrier{});
  block.published.clear();
  block.exchanged = false;
}

/// Each warp runs until it waits or its slice is used up.
Turn Worker::turn(Block& block) {
  for (;;) {
    for (Warp& w : block.warps) run_warp(block, w);
    uint32_t ready = 0, waiting = 0, elsewhere = 0;
    for (const Warp& w : block.warps) {
      ready |= w.lanes(State::ready);
      waiting |= w.lanes(State::barrier);
      elsewhere |= w.live() & ~(w.lanes(State::ready) | w.lanes(State::barrier));
    }
    if (ready) return Turn::spent;
    if (block.unwritten) std::rethrow_exception(block.unwritten);
    if (!waiting && !elsewhere) return Turn::done;
    // Threads that ended count as arrived; the others are at one barrier.
    if (elsewhere) return Turn::stuck;
    int32_t pc = -1;
    for (const Warp& w : block.warps)
      for (uint32_t m = w.lanes(State::barrier); m; m &= m - 1) {
        const int32_t at = w.pc[std::countr_zero(m)];
        if (pc >= 0 && at != pc) return Turn::stuck;
        pc = at;
      }
    release(block);
  }
}

/// Lets the threads that wait at the block's barrier go on, with what it tells them.
void Worker::release(Block& block) {
  int64_t holds = 0, present = 0;
  const Inst* in = nullptr;
  for (const Warp& w : block.warps)
    bits(w.lanes(State::barrier), [&](int i) {
      in = &block.program->code[static_cast<size_t>(w.pc[i] - 1)];
      present++;
      if (in->sub && w.row(in->a)[i].i) holds++;
    });
  for (Warp& w : block.warps) {
    const uint32_t mask = w.lanes(State::barrier);
    if (in->sub)
      bits(mask, [&](int i) {
        w.row(in->dst)[i].i = in->sub == 1 ? holds == present : in->sub == 2 ? holds > 0 : holds;
      });
    w.set(mask, State::ready);
  }
  order_block(block);
}

/// A turn of each block. They are stuck where all that are left are, and nothing that one did lets another go on.
Turn Worker::turn(Cluster& cluster) {
  if (cluster.blocks.size() == 1 && !cluster.blocks[0]->program->hopper)
    return turn(*cluster.blocks[0]);
  bool done = true, moved = false;
  for (auto& b : cluster.blocks) {
    const Turn t = turn(*b);
    done = done && t == Turn::done;
    moved = moved || t == Turn::spent;
  }
  if (done) return Turn::done;
  for (const auto& b : cluster.blocks)
    for (const Warp& w : b->warps) moved = moved || w.lanes(State::ready);
  return moved || end_cluster_phase(cluster) ? Turn::spent : Turn::stuck;
}

void Worker::run_alone(Cluster& cluster) {
  Turn t = Turn::spent;
  while (t == Turn::spent) t = turn(cluster);
  if (t == Turn::stuck) report_waiting(cluster);
}

void Worker::run_host(Launch& call) {
  const std::unique_ptr<Cluster> one = make_cluster(call);
  start(*one, 0);
  run_alone(*one);
}

void Worker::run_from(Launch& launch, std::atomic<int64_t>& next) {
  more_reads_.clear();
  atomics_.clear();
  const std::unique_ptr<Cluster> cluster = make_cluster(launch);
  for (int64_t c; (c = next++) < launch.blocks() / launch.cluster_size();) {
    start(*cluster, c);
    run_alone(*cluster);
  }
}

void Worker::run_in_order(Launch& launch) {
  published_.clear();
  more_reads_.clear();
  atomics_.clear();
  if (!launch.program->in_order) {
    std::atomic<int64_t> next{0};
    return run_from(launch, next);
  }
  std::vector<std::unique_ptr<Cluster>> active, spare;
  const int64_t clusters = launch.blocks() / launch.cluster_size();
  int64_t next = 0;
  int turns = 0;
  while (next < clusters || !active.empty()) {
    if (next < clusters && (active.empty() || (turns >= kPatience && active.size() < kResident))) {
      if (spare.empty()) spare.push_back(make_cluster(launch));
      active.push_back(std::move(spare.back()));
      spare.pop_back();
      start(*active.back(), next++);
      turns = 0;
    }
    turns++;
    for (auto& b : active) {
      const Turn t = turn(*b);
      if (t == Turn::stuck) report_waiting(*b);
      if (t == Turn::done) spare.push_back(std::move(b)), turns = 0;
    }
    std::erase(active, nullptr);
  }
}

void Worker::report_waiting(const Cluster& cluster) const {
  for (const auto& b : cluster.blocks)
    for (const Warp& w : b->warps)
      if (w.live()) report_waiting(*b);
  HIDET_CHECK(false, "a cluster that is done is said to wait");
}

void Worker::report_waiting(const Block& block) const {
  const Program& p = *block.program;
  std::string list;
  std::vector<std::pair<int32_t, State>> listed;
  int32_t first = -1, first_at = 0;
  bool running = false;
  for (const Thread& t : block.threads) {
    const Warp& w = block.warps[static_cast<size_t>(t.number / kWarp)];
    const int lane = t.number % kWarp;
    State state = State::ready;
    for (State s : {State::barrier, State::named, State::warp, State::exited, State::mbarrier,
                    State::group, State::cluster})
      if (w.lanes(s) >> lane & 1) state = s;
    if (state == State::exited) continue;
    if (state == State::ready) running = true;
    const std::pair place{w.pc[lane], state};
    if (std::find(listed.begin(), listed.end(), place) != listed.end() || listed.size() == 4)
      continue;
    listed.push_back(place);
    // Instructions that will run, or run once more.
    const bool again = state == State::mbarrier || state == State::cluster;
    const int32_t at = std::max(w.pc[lane] - (again || state == State::ready ? 0 : 1), 0);
    if (first < 0) first = t.number, first_at = at;
    const int64_t idx[3] = {t.idx[0], t.idx[1], t.idx[2]};
    const NamedBarrier& named = block.named[t.barrier];
    const std::string doing =
        state == State::ready     ? "is at "
        : state == State::barrier ? "waits at the barrier at "
        : state == State::named
            ? detail::concat("waits at named barrier ", t.barrier, " (", named.arrived, " of ",
                             named.count, " threads are there) at ")
        : again                 ? t.waits_for
        : state == State::group ? "waits for its warp group at "
                                : "waits for its warp at ";
    list += (list.empty() ? "" : "; ") + ("thread " + triple(idx)) + " " + doing +
            p.locs[static_cast<size_t>(at)].text();
  }
  if (running)
    fail(block, first, first_at,
         detail::concat("stopped after ", options_.max_steps, " loop iterations: ", list));
  const bool barriers = std::any_of(block.warps.begin(), block.warps.end(), [](const Warp& w) {
    return w.lanes(State::mbarrier) || w.lanes(State::cluster);
  });
  fail(block, first, first_at,
       (barriers ? "deadlock: nothing that these threads wait for will happen: "
                 : "divergent barrier or warp operation, which some threads never reach: ") +
           list);
}

}  // namespace hidet::backends::sim
