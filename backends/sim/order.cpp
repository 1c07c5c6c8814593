// order.cpp - what orders accesses of different threads: warps in step, barriers, and atomics between fences.
#include <algorithm>

#include "sim/machine.h"

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

void Worker::fence(Block& block, Warp& w, int lane, bool in_block) {
  auto& x = block.threads[static_cast<size_t>(w.index * kWarp + lane)].exchange;
  if (!x) x = std::make_unique<Exchange>();
  block.exchanged = true;
  if (in_block) {
    const auto it = x->learned.runs.find(block.run);
    if (it != x->learned.runs.end()) x->known.join(it->first, *it->second);
  } else {
    x->known.join(x->learned);
    x->learned = {};
  }
  auto released = std::make_shared<Clock>();
  publish(block, w, 1u << lane, *released);
  x->released_in_block = released;
  if (!in_block) x->released = std::move(released);
  w.clock++;
}

/// An atomic reads what others published at the address, and publishes what came before the thread's last fence.
void Worker::exchange_clocks(Block& block, Warp& w, int lane, const uint8_t* address, bool shared) {
  Published& there = (shared ? block.published : published_)[address];
  auto& x = block.threads[static_cast<size_t>(w.index * kWarp + lane)].exchange;
  if (!x) x = std::make_unique<Exchange>();
  x->learned.join(there.all);
  if (there.run != block.run) there.in_block = {}, there.run = block.run;
  x->learned.join(there.in_block);
  if (x->released) there.all.join(*x->released);
  if (x->released_in_block) there.in_block.join(*x->released_in_block);
}

}  // namespace hidet::backends::sim
