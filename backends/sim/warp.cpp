// warp.cpp - operations of a whole warp, and named barriers.
// Needs: all lanes of the warp that have not ended wait at the operation.
#include <algorithm>

#include "sim/worker.h"

namespace hidet::backends::sim {
namespace {

/// The source lane of a shuffle.
int source_lane(int how, int lane, int64_t operand) {
  const int64_t from = how == 0   ? (operand & 31)
                       : how == 1 ? lane - operand
                       : how == 2 ? lane + operand
                                  : lane ^ operand;
  return from < 0 || from > 31 ? lane : static_cast<int>(from);
}

}  // namespace

/// True where all lanes that have not ended wait at one operation.
bool Worker::complete(const Warp& w) const {
  const uint32_t mask = w.lanes(State::warp);
  if (!mask || mask != w.live()) return false;
  const int32_t pc = w.pc[std::countr_zero(mask)];
  for (uint32_t m = mask; m; m &= m - 1)
    if (w.pc[std::countr_zero(m)] != pc) return false;
  return true;
}

void Worker::warp_operation(Block& block, Warp& w) {
  const uint32_t present = w.lanes(State::warp);
  const int32_t at = w.pc[std::countr_zero(present)] - 1;
  const Inst& in = block.program->code[static_cast<size_t>(at)];
  const bool matrix = in.op == Op::load_matrix || in.op == Op::store_matrix ||
                      in.op == Op::move_matrix || in.op == Op::mma;
  if (matrix && present != ~0u)
    fail(block, w, std::countr_zero(present), at,
         detail::concat("a matrix instruction needs all 32 lanes of the warp, not ",
                        std::popcount(present)));
  switch (in.op) {
    case Op::load_matrix: matrix_load(block, w, in, at); break;
    case Op::store_matrix: matrix_store(block, w, in, at); break;
    case Op::move_matrix: transpose_matrix(w, in); break;
    case Op::mma: mma(w, in); break;
    case Op::reduce_warp: reduce_warp(w, in, present); break;
    case Op::exchange: exchange(block, w, in, at, present); break;
    case Op::vote: vote(w, in, present); break;
    default: break;  // syncwarp
  }
  w.set(present, State::ready);
  order_warp(block, w);
}

void Worker::exchange(Block& block, Warp& w, const Inst& in, int32_t at, uint32_t present) {
  for (int k = 0; k < in.lanes; k++) {
    Cell old[kWarp];
    std::copy_n(w.row(in.a + k), kWarp, old);
    bits(present, [&](int i) {
      const int from = source_lane(in.sub, i, w.row(in.b)[i].i);
      if (!(present >> from & 1))
        fail(block, w, i, at,
             detail::concat("shuffle from lane ", from, " of the warp, which ",
                            w.exist >> from & 1 ? "has ended" : "the block does not have"));
      w.row(in.dst + k)[i] = old[from];
    });
  }
}

void Worker::vote(Warp& w, const Inst& in, uint32_t present) {
  Cell old[kWarp];
  std::copy_n(w.row(in.a), kWarp, old);
  uint32_t ballot = 0;
  bits(present, [&](int i) { ballot |= static_cast<uint32_t>(old[i].i != 0) << i; });
  bits(present, [&](int i) {
    int64_t& out = w.row(in.dst)[i].i;
    if (in.sub == 4) {  // one of them
      out = i == std::countr_zero(present);
      return;
    }
    out = in.sub == 0 ? int64_t{ballot} : in.sub == 1 ? ballot != 0 : ballot == present;
    if (in.sub != 3 && in.sub != 5) return;
    out = 0;
    bits(present, [&](int j) { out |= int64_t{old[i].i == old[j].i} << j; });
    if (in.sub == 5 && out != present) out = 0;
  });
}

void Worker::reduce_warp(Warp& w, const Inst& in, uint32_t present) {
  const int first = std::countr_zero(present);
  Cell all = w.row(in.a)[first];
  bits(present, [&](int i) {
    if (i != first)
      all = combined(static_cast<ir::Combine>(in.sub), all, w.row(in.a)[i], DType(in.type));
  });
  bits(present, [&](int i) { w.row(in.dst)[i] = all; });
}

/// The lanes arrive; they wait unless they only arrive, or are the last that the barrier waited for.
void Worker::named_barrier(Block& block, Warp& w, uint32_t mask, const Inst& in, int32_t at) {
  const int first = std::countr_zero(mask);
  const int64_t id = w.row(in.a)[first].i, count = w.row(in.b)[first].i;
  bits(mask, [&](int i) {
    if (w.row(in.a)[i].i != id || w.row(in.b)[i].i != count)
      fail(block, w, i, at, "named barriers of different numbers or counts within a warp");
  });
  if (id < 0 || id > 15)
    fail(block, w, first, at, detail::concat("named barrier ", id, "; there are 16, from 0 to 15"));
  if (count <= 0 || count % kWarp)
    fail(
        block, w, first, at,
        detail::concat("named barrier ", id, " for ", count, " threads, which are no whole warps"));
  NamedBarrier& b = block.named[id];
  if (b.count && b.count != count)
    fail(block, w, first, at,
         detail::concat("named barrier ", id, " for ", count, " threads, where others wait for ",
                        b.count));
  b.count = count;
  b.arrived += std::popcount(mask);
  if (b.arrived > count)
    fail(block, w, first, at,
         detail::concat("named barrier ", id, " for ", count, " threads, and ", b.arrived,
                        " arrive"));
  publish(block, w, mask, b.clock);
  w.clock++;
  if (!in.sub) {
    w.set(mask, State::named);
    bits(mask, [&](int i) {
      block.threads[static_cast<size_t>(w.index * kWarp + i)].barrier = static_cast<int32_t>(id);
    });
  }
  if (b.arrived < count) return;
  for (Warp& other : block.warps) {
    uint32_t waiting = 0;
    bits(other.lanes(State::named), [&](int i) {
      const Thread& t = block.threads[static_cast<size_t>(other.index * kWarp + i)];
      waiting |= static_cast<uint32_t>(t.barrier == id) << i;
    });
    if (!waiting) continue;
    absorb(block, other, waiting, b.clock);
    other.set(waiting, State::ready);
  }
  b = {};
}

}  // namespace hidet::backends::sim
