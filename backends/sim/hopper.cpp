// hopper.cpp - operations of sm_90: mbarriers, proxy fences, clusters. What they order travels in clocks, as for barriers.
#include "sim/hopper.h"

#include <algorithm>

#include "sim/worker.h"

namespace hidet::backends::sim {

bool Worker::hopper(Block& block, Warp& w, uint32_t mask, const Inst& in, int32_t at) {
  const HopperCall& call = block.program->hopper_calls[static_cast<size_t>(in.c)];
  const auto arg = [&](size_t a, int lane) { return w.row(call.args[a])[lane].i; };
  const auto thread = [&](int lane) -> Thread& {
    return block.threads[static_cast<size_t>(w.index * kWarp + lane)];
  };
  const auto all = [&](auto&& f) { bits(mask, f); };
  const auto all_get = [&](auto&& f) { bits(mask, [&](int i) { w.row(in.dst)[i].i = f(i); }); };
  const auto op = static_cast<Hopper>(in.sub);
  switch (op) {
    case Hopper::tensor_map: make_map(block, w, call, at).write(w.row(in.dst)); break;
    case Hopper::init: all([&](int i) { init(block, w, i, arg(0, i), arg(1, i), at); }); break;
    case Hopper::invalidate:
      all([&](int i) {
        Block* there;
        (void)mbarrier(block, w, i, arg(0, i), at, call.name, &there);
        block.mbarriers.erase(shared_place(block, w, i, arg(0, i), 8, 8, at, call.name).data -
                              block.shared.get());
      });
      break;
    case Hopper::arrive: all([&](int i) { arrive(block, w, i, arg(0, i), 0, at); }); break;
    case Hopper::arrive_remote:
      all([&](int i) {
        arrive(block, w, i, in_rank(block, w, i, arg(0, i), arg(1, i), at), 0, at);
      });
      break;
    case Hopper::arrive_expect:
      all([&](int i) { arrive(block, w, i, arg(0, i), arg(1, i), at); });
      break;
    case Hopper::arrive_expect_remote:
      all([&](int i) {
        arrive(block, w, i, in_rank(block, w, i, arg(0, i), arg(2, i), at), arg(1, i), at);
      });
      break;
    case Hopper::arrive_state:
    case Hopper::arrive_no_complete:
      all_get([&](int i) {
        return arrive_counted(block, w, i, arg(0, i), arg(1, i), op == Hopper::arrive_state, at);
      });
      break;
    case Hopper::arrive_drop: all([&](int i) { arrive_drop(block, w, i, arg(0, i), at); }); break;
    case Hopper::arrive_copies:
      all([&](int i) { arrive_copies(block, w, i, arg(0, i), call.attrs.at(0) != 0, at); });
      break;
    case Hopper::complete:
      all([&](int i) {
        Block* there;
        Mbarrier& b = mbarrier(block, w, i, arg(0, i), at, call.name, &there);
        count_bytes(*there, b, arg(1, i));
      });
      break;
    case Hopper::pending: all_get([&](int i) { return arg(0, i) & kStatePending; }); break;
    case Hopper::test_parity:
    case Hopper::test_state: test_mbarrier(block, w, mask, call, op, w.row(in.dst), at); break;
    case Hopper::expect:
      all([&](int i) {
        Block* there;
        mbarrier(block, w, i, arg(0, i), at, call.name, &there).bytes += arg(1, i);
      });
      break;
    case Hopper::wait: return wait_mbarrier(block, w, mask, call, at);
    case Hopper::fence_init:
      for (auto& [place, b] : block.mbarriers)
        all([&, &b = b](int i) { b.fenced = b.fenced || b.init_thread == w.index * kWarp + i; });
      break;
    case Hopper::fence_proxy: fence_proxy(block, w, mask, kFencedShared | kFencedGlobal); break;
    case Hopper::fence_proxy_shared: fence_proxy(block, w, mask, kFencedShared); break;
    case Hopper::fence_proxy_global: fence_proxy(block, w, mask, kFencedGlobal); break;
    case Hopper::tma_load: all([&](int i) { tma_load(block, w, i, call, at); }); break;
    case Hopper::tma_store:
    case Hopper::tma_reduce:
      all([&](int i) { tma_store(block, w, i, call, op == Hopper::tma_reduce, at); });
      break;
    case Hopper::tma_prefetch: all([&](int i) { tma_prefetch(block, w, i, call, at); }); break;
    case Hopper::bulk_load: all([&](int i) { bulk_load(block, w, i, call, at); }); break;
    case Hopper::bulk_store:
    case Hopper::bulk_reduce:
      all([&](int i) { bulk_store(block, w, i, call, op == Hopper::bulk_reduce, at); });
      break;
    case Hopper::bulk_prefetch: all([&](int i) { bulk_prefetch(block, w, i, call, at); }); break;
    case Hopper::bulk_send:
    case Hopper::bulk_send_reduce:
      all([&](int i) { bulk_send(block, w, i, call, op == Hopper::bulk_send_reduce, at); });
      break;
    case Hopper::async_store:
    case Hopper::async_reduce:
      all([&](int i) { async_store(block, w, i, call, op == Hopper::async_reduce, at); });
      break;
    case Hopper::policy: all_get([&](int i) { return make_policy(block, w, i, call, at); }); break;
    case Hopper::bulk_commit: all([&](int i) { thread(i).stores++; }); break;
    case Hopper::bulk_wait:
    case Hopper::bulk_wait_read:
      all([&](int i) {
        const int64_t known = int64_t{thread(i).stores} - call.attrs.at(0);
        if (known <= 0) return;
        const auto number = static_cast<uint16_t>(w.index * kWarp + i);
        for (uint16_t slot : {kStoreReads, kStoreWrites})
          if (slot == kStoreReads || op == Hopper::bulk_wait)
            learn(block, w, 1u << i, static_cast<uint16_t>(slot + number),
                  static_cast<uint32_t>(known));
      });
      break;
    case Hopper::cluster_rank: all_get([&](int) { return int64_t{block.rank}; }); break;
    case Hopper::cluster_size: all_get([&](int) { return block.launch->cluster_size(); }); break;
    case Hopper::cluster_arrive: arrive_cluster(block, w, mask, at); break;
    case Hopper::cluster_wait: return wait_cluster(block, w, mask, at);
    case Hopper::map_rank:
      all_get([&](int i) {
        (void)shared_place(block, w, i, arg(0, i), 0, 1, at, call.name);
        return in_rank(block, w, i, arg(0, i), arg(1, i), at);
      });
      break;
    case Hopper::descriptor:
      all_get([&](int i) {
        const Place p = shared_place(block, w, i, arg(0, i), 16, 16, at, "matrix");
        const int64_t address = p.data - block.shared.get();
        return call.attrs.at(1) << 32 | call.attrs.at(0) | (address & 0x3ffff) >> 4;
      });
      break;
    case Hopper::product_fence: fence_products(block, w, mask); break;
    case Hopper::product_commit: all([&](int i) { thread(i).products++; }); break;
    case Hopper::product_wait: wait_products(block, w, mask, call.attrs.at(0)); break;
    case Hopper::more_registers:
    case Hopper::fewer_registers:
      return set_registers(block, w, mask, call, op == Hopper::more_registers, at);
    case Hopper::product: return product(block, w, mask, call, at);
    case Hopper::nothing: break;
  }
  return false;
}

// --- places

Block& Worker::owner(Block& block, int64_t pointer) const {
  const int64_t rank = (pointer::object(pointer) - block.first_local) / kLocalsPerBlock - 1;
  if (pointer::object(pointer) < block.first_local || rank < 0) return block;
  return *block.cluster->blocks.at(static_cast<size_t>(rank));
}

/// The pointer to the same place in block `rank` of the cluster.
int64_t Worker::in_rank(const Block& block, const Warp& w, int lane, int64_t pointer, int64_t rank,
                        int32_t at) const {
  if (rank < 0 || rank >= block.launch->cluster_size())
    fail(block, w, lane, at,
         detail::concat("block ", rank, " of a cluster of ", block.launch->cluster_size()));
  return pointer::make(pointer::object(pointer) + (rank + 1) * kLocalsPerBlock,
                       pointer::offset(pointer));
}

Place Worker::shared_place(Block& block, const Warp& w, int lane, int64_t pointer, int64_t bytes,
                           int64_t align, int32_t at, const char* what) const {
  Place p = resolve(block, w, lane, pointer, bytes, 1, at, what);
  if (!p.space.shared)
    fail(block, w, lane, at,
         std::string(what) + " of '" + *p.space.name + "', which is not shared memory");
  const int64_t address = p.data - owner(block, pointer).shared.get();
  if (address % align)
    fail(block, w, lane, at,
         detail::concat("misaligned ", what, " of '", *p.space.name, "': byte ", p.offset,
                        " is not at a multiple of ", align, " of shared memory"));
  return p;
}

// --- mbarriers

void Worker::init(Block& block, Warp& w, int lane, int64_t pointer, int64_t count, int32_t at) {
  const Place p = shared_place(block, w, lane, pointer, 8, 8, at, "mbarrier");
  if (count < 1 || count >= 1 << 20)
    fail(block, w, lane, at,
         detail::concat("an mbarrier of ", count, " arrivals; from 1 to 1048575"));
  if (p.space.tracked()) note_write(block, w, lane, p, at);
  auto [it, fresh] = block.mbarriers.try_emplace(p.data - block.shared.get());
  Mbarrier& b = it->second;
  if (!fresh)
    fail(block, w, lane, at,
         "mbarrier_init of '" + b.name + "', which is one already: mbarrier_invalidate it first");
  b.name = detail::concat(*p.space.name, "[", p.offset / 8, "]");
  b.count = b.missing = count;
  b.slot = static_cast<uint16_t>(kCopies + block.mbarriers_made++);
  b.init_clock = w.clock, b.init_at = at;
  b.init_thread = static_cast<uint16_t>(w.index * kWarp + lane);
}

/// The mbarrier that a thread uses, whose init must come before.
Mbarrier& Worker::mbarrier(Block& block, const Warp& w, int lane, int64_t pointer, int32_t at,
                           const char* what, Block** in) const {
  const Place p = shared_place(block, w, lane, pointer, 8, 8, at, what);
  Block& there = owner(block, pointer);
  *in = &there;
  const auto it = there.mbarriers.find(p.data - there.shared.get());
  if (it == there.mbarriers.end())
    fail(block, w, lane, at,
         detail::concat(what, " of '", *p.space.name, "[", p.offset / 8,
                        "]', which mbarrier_init has not made an mbarrier"));
  Mbarrier& b = it->second;
  const Stamp made{there.run, b.init_clock, b.init_at, b.init_thread, 0};
  if (options_.checks && !ordered(block, w, lane, made))
    fail(block, w, lane, at,
         detail::concat(what, " of '", b.name, "' and its mbarrier_init at ",
                        block.program->locs[static_cast<size_t>(b.init_at)].text(),
                        " are not ordered by a barrier"));
  if (options_.checks && &there != &block && !b.fenced)
    fail(block, w, lane, at,
         detail::concat(what, " of '", b.name, "' of block ", there.rank,
                        " of the cluster without fence_mbarrier_init after its mbarrier_init"));
  return b;
}

void Worker::arrive(Block& block, Warp& w, int lane, int64_t pointer, int64_t bytes, int32_t at) {
  Block* there;
  Mbarrier& b = mbarrier(block, w, lane, pointer, at, "arrival", &there);
  publish(block, w, 1u << lane, b.arriving);
  w.clock++;
  b.bytes += bytes;
  count_arrivals(block, w, lane, *there, b, 1, at);
}

void Worker::count_arrivals(const Block& block, const Warp& w, int lane, Block& there, Mbarrier& b,
                            int64_t count, int32_t at) {
  if (count > b.missing)
    fail(block, w, lane, at,
         detail::concat("more arrivals at '", b.name, "' than the ", b.count, " of a phase"));
  b.missing -= count;
  if (!b.missing && !b.bytes) end_phase(there, b);
}

/// Arrives `count` times; gives the state before.
int64_t Worker::arrive_counted(Block& block, Warp& w, int lane, int64_t pointer, int64_t count,
                               bool may_end, int32_t at) {
  Block* there;
  Mbarrier& b = mbarrier(block, w, lane, pointer, at, "arrival", &there);
  if (count < 1)
    fail(block, w, lane, at, detail::concat(count, " arrivals at '", b.name, "'; at least 1"));
  if (there != &block)
    fail(block, w, lane, at, "a state of '" + b.name + "' of another block of the cluster");
  if (!may_end && count >= b.missing)
    fail(block, w, lane, at,
         detail::concat("mbarrier_arrive_no_complete at '", b.name, "' of ", count,
                        " arrivals, and the phase misses ", b.missing));
  const int64_t state = int64_t{b.phase} << 32 | b.missing;
  publish(block, w, 1u << lane, b.arriving);
  w.clock++;
  count_arrivals(block, w, lane, *there, b, count, at);
  return state;
}

void Worker::arrive_drop(Block& block, Warp& w, int lane, int64_t pointer, int32_t at) {
  Block* there;
  Mbarrier& b = mbarrier(block, w, lane, pointer, at, "arrival", &there);
  if (b.count <= 1)
    fail(block, w, lane, at, "mbarrier_arrive_drop of the last arrival of '" + b.name + "'");
  publish(block, w, 1u << lane, b.arriving);
  w.clock++;
  b.count--;
  count_arrivals(block, w, lane, *there, b, 1, at);
}

/// The thread's copies so far belong to the barrier's phase: they are there when it ends, for those who wait for it.
void Worker::arrive_copies(Block& block, Warp& w, int lane, int64_t pointer, bool counted,
                           int32_t at) {
  Block* there;
  Mbarrier& b = mbarrier(block, w, lane, pointer, at, "arrival", &there);
  end_copies(block, w, lane, {there->run, b.phase + 1, at, b.slot, 0});
  if (counted) count_arrivals(block, w, lane, *there, b, 1, at);
}

/// Bytes of a copy have come.
void Worker::count_bytes(Block& there, Mbarrier& b, int64_t bytes) {
  b.bytes -= bytes;
  if (!b.missing && !b.bytes) end_phase(there, b);
}

void Worker::end_phase(Block& there, Mbarrier& b) {
  b.phase++;
  b.missing = b.count;
  Known copies;
  copies.add(b.slot, b.phase);
  b.arriving.join(there.run, copies);
  b.done = b.arriving;
  for (Warp& w : there.warps) w.set(w.lanes(State::mbarrier), State::ready);
}

/// Tells lanes whether a phase has ended; those to whom it says so know what came before.
void Worker::test_mbarrier(Block& block, Warp& w, uint32_t mask, const HopperCall& call, Hopper op,
                           Cell* out, int32_t at) {
  bits(mask, [&](int i) {
    Block* there;
    const int64_t which = w.row(call.args[1])[i].i;
    const Mbarrier& b = mbarrier(block, w, i, w.row(call.args[0])[i].i, at, call.name, &there);
    if (there != &block)
      fail(block, w, i, at,
           std::string(call.name) + " at '" + b.name + "' of another block of the cluster");
    bool ended = false;
    if (op == Hopper::test_parity) {
      if (which != 0 && which != 1)
        fail(block, w, i, at, detail::concat(call.name, " for the parity ", which));
      ended = static_cast<int64_t>(b.phase & 1) != which;
    } else {
      const auto phase = static_cast<uint32_t>(which >> 32);
      if (b.phase - phase > 1)
        fail(block, w, i, at,
             detail::concat(call.name, " at '", b.name, "' for a state of phase ", phase,
                            ", where phase ", b.phase, " is the current one"));
      ended = b.phase != phase;
    }
    out[i].i = ended;
    if (ended) absorb(block, w, 1u << i, b.done);
  });
}

/// True where lanes must wait: they come back to the instruction when a phase has ended.
bool Worker::wait_mbarrier(Block& block, Warp& w, uint32_t mask, const HopperCall& call,
                           int32_t at) {
  uint32_t waiting = 0;
  bits(mask, [&](int i) {
    Block* there;
    const int64_t parity = w.row(call.args[1])[i].i;
    if (parity != 0 && parity != 1)
      fail(block, w, i, at, detail::concat("mbarrier_wait for the parity ", parity));
    const Mbarrier& b = mbarrier(block, w, i, w.row(call.args[0])[i].i, at, call.name, &there);
    if (there != &block)
      fail(block, w, i, at, "mbarrier_wait at '" + b.name + "' of another block of the cluster");
    if (static_cast<int64_t>(b.phase & 1) == parity) {
      waiting |= 1u << i;
      return;
    }
  });
  // Lanes that wait at one barrier learn together.
  uint32_t free = mask & ~waiting;
  while (free) {
    const int64_t p = w.row(call.args[0])[std::countr_zero(free)].i;
    uint32_t same = 0;
    bits(free, [&](int i) { same |= static_cast<uint32_t>(w.row(call.args[0])[i].i == p) << i; });
    Block* there;
    absorb(block, w, same,
           mbarrier(block, w, std::countr_zero(free), p, at, call.name, &there).done);
    free &= ~same;
  }
  if (!waiting) return false;
  bits(waiting, [&](int i) {
    Block* there;
    const Mbarrier& b = mbarrier(block, w, i, w.row(call.args[0])[i].i, at, call.name, &there);
    Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + i)];
    t.waits_for =
        detail::concat("waits for phase ", b.phase, " of the mbarrier '", b.name, "' (", b.missing,
                       " of ", b.count, " arrivals are missing, ", b.bytes < 0 ? -b.bytes : b.bytes,
                       " bytes ", b.bytes < 0 ? "came unexpected" : "are missing", ") at ");
    w.pc[i] = at;
  });
  w.set(waiting, State::mbarrier);
  return true;
}

/// The lanes know of the end of a phase or group.
void Worker::learn(Block& block, Warp& w, uint32_t mask, uint16_t slot, uint32_t clock) {
  Known known;
  known.add(slot, clock);
  Clock c;
  c.join(block.run, known);
  absorb(block, w, mask, c);
}

/// What the lanes know of threads' writes holds for copies and products, too.
void Worker::fence_proxy(Block& block, Warp& w, uint32_t mask, uint32_t memory) {
  Clock seen, fenced;
  publish(block, w, mask, seen);
  for (const auto& [run, known] : seen.runs)
    for (uint32_t kind : {kFencedShared, kFencedGlobal})
      if ((memory & kind) && !(run & (kFencedShared | kFencedGlobal)))
        fenced.join(run | kind, *known);
  absorb(block, w, mask, fenced);
  w.clock++;
  if (!(memory & kFencedShared)) return;
  for (auto& [place, b] : block.mbarriers)
    bits(mask, [&, &b = b](int i) { b.fenced = b.fenced || b.init_thread == w.index * kWarp + i; });
}

// --- the barrier of the cluster

void Worker::arrive_cluster(Block& block, Warp& w, uint32_t mask, int32_t at) {
  Cluster& c = *block.cluster;
  bits(mask, [&](int i) {
    Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + i)];
    if (t.cluster_arrived > c.phase)
      fail(block, w, i, at, "a second cluster_arrive without a cluster_wait between");
    t.cluster_arrived = c.phase + 1;
    c.arrived++;
  });
  publish(block, w, mask, c.arriving);
  w.clock++;
  (void)end_cluster_phase(c);
}

/// Where all threads that have not ended have arrived: true.
bool Worker::end_cluster_phase(Cluster& c) const {
  int64_t live = 0;
  for (const auto& b : c.blocks)
    for (const Warp& w : b->warps) live += std::popcount(w.live());
  if (!c.arrived || c.arrived < live) return false;
  c.arrived = 0;
  c.phase++;
  c.done = c.arriving;
  for (auto& b : c.blocks)
    for (Warp& w : b->warps) w.set(w.lanes(State::cluster), State::ready);
  return true;
}

bool Worker::wait_cluster(Block& block, Warp& w, uint32_t mask, int32_t at) {
  const Cluster& c = *block.cluster;
  uint32_t waiting = 0;
  bits(mask, [&](int i) {
    Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + i)];
    if (!t.cluster_arrived) fail(block, w, i, at, "cluster_wait without cluster_arrive before");
    if (c.phase >= t.cluster_arrived) {
      t.cluster_arrived = 0;
      return;
    }
    waiting |= 1u << i;
    w.pc[i] = at;
    t.waits_for = "waits at the barrier of the cluster at ";
  });
  if (mask & ~waiting) absorb(block, w, mask & ~waiting, c.done);
  if (waiting) w.set(waiting, State::cluster);
  return waiting != 0;
}

}  // namespace hidet::backends::sim
