// order.cpp - what orders accesses of different threads: warps in step, barriers, and atomics between fences.
#include <algorithm>

#include "sim/worker.h"

namespace hidet::backends::sim {

void Worker::publish(const Block& block, const Warp& w, uint32_t mask, Clock& to) const {
  Known mine;
  mine.warps.assign(w.known, w.known + block.warps.size());
  if (mask == w.live()) mine.warps[static_cast<size_t>(w.index)] = w.clock;
  bits(mask, [&](int i) {
    const auto thread = static_cast<uint16_t>(w.index * kWarp + i);
    if (mask != w.live()) mine.add(thread, w.clock);
    if (const auto& x = block.threads[thread].exchange) to.join(x->known);
  });
  to.join(block.run, mine);
  to.join(w.more);
}

void Worker::absorb(Block& block, Warp& w, uint32_t mask, const Clock& from) {
  if (mask != w.live()) {
    block.exchanged = true;
    bits(mask, [&](int i) {
      auto& x = block.threads[static_cast<size_t>(w.index * kWarp + i)].exchange;
      if (!x) x = std::make_unique<Exchange>();
      x->known.join(from);
    });
    return;
  }
  for (const auto& [run, known] : from.runs) {
    if (run != block.run) continue;
    for (size_t i = 0; i < known->warps.size(); i++)
      w.known[i] = std::max(w.known[i], known->warps[i]);
  }
  w.more.join(from);
}

/// After a point that all lanes of the warp reached.
void Worker::order_warp(Block& block, Warp& w) {
  w.known[w.index] = w.clock++;
  if (!block.exchanged) return;
  bits(w.live(), [&](int i) {
    auto& x = block.threads[static_cast<size_t>(w.index * kWarp + i)].exchange;
    if (x) absorb(block, w, w.live(), x->known), x->known = {};
  });
}

/// After a point that all threads of the block reached.
void Worker::order_block(Block& block) {
  Clock all;
  const bool more = block.exchanged || block.program->partial;
  if (more)
    for (Warp& w : block.warps) {
      order_warp(block, w);
      for (const auto& [run, known] : w.more.runs)
        if (run != block.run || block.program->hopper) all.join(run, *known);
    }
  for (Warp& w : block.warps) {
    for (size_t i = 0; i < block.warps.size(); i++) w.known[i] = block.warps[i].clock;
    if (more) w.more = all;
  }
  for (Warp& w : block.warps) w.clock++;
  block.exchanged = false;
}

/// What the thread's atomics met counts from here on, and they publish what came before; within the fence's scope.
void Worker::fence(Block& block, Warp& w, int lane, uint8_t scope) {
  auto& x = block.threads[static_cast<size_t>(w.index * kWarp + lane)].exchange;
  if (!x) x = std::make_unique<Exchange>();
  block.exchanged = true;
  const uint32_t first = scope == kBlock ? block.run : block.first_run,
                 count = scope == kBlock ? 1 : static_cast<uint32_t>(block.launch->cluster_size());
  for (const auto& [run, known] : x->learned.runs)
    if (scope == kDevice || (run >= first && run < first + count)) x->known.join(run, *known);
  if (scope == kDevice) x->learned = {};
  auto released = std::make_shared<Clock>();
  publish(block, w, 1u << lane, *released);
  for (size_t s = scope; s < kScopes; s++) x->released[s] = released;
  w.clock++;
}

/// An atomic reads what others published at the address, and publishes what came before the thread's last fence.
void Worker::exchange_clocks(Block& block, Warp& w, int lane, const uint8_t* address,
                             std::unordered_map<const uint8_t*, Published>& published) {
  Published& there = published[address];
  auto& x = block.threads[static_cast<size_t>(w.index * kWarp + lane)].exchange;
  if (!x) x = std::make_unique<Exchange>();
  const uint32_t runs[kScopes] = {0, block.first_run, block.run};
  for (size_t s = 0; s < kScopes; s++) {
    if (there.run[s] != runs[s]) there.clock[s] = {}, there.run[s] = runs[s];
    x->learned.join(there.clock[s]);
    if (x->released[s]) there.clock[s].join(*x->released[s]);
  }
}

}  // namespace hidet::backends::sim
