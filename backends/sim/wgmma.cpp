// wgmma.cpp - products of a warp group: matrices through their descriptors, fragments and sums as PTX lays them out.
// Needs: the 128 threads of the group at the instruction. The product happens when it is issued; its sums and its reads of shared
// memory are marked until the wait of its group.
#include <hidet/ir/fold.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/hopper.h"
#include "sim/worker.h"

namespace hidet::backends::sim {
namespace {

constexpr int kRows = 64, kGroupWarps = 4;

size_t first_of_group(const Warp& w) {
  return static_cast<size_t>(w.index / kGroupWarps * kGroupWarps);
}

/// A descriptor, taken apart.
struct Matrix {
  int64_t start, leading, stride;
  int swizzle;
  explicit Matrix(uint64_t d)
      : start(static_cast<int64_t>(d & 0x3fff) << 4),
        leading(static_cast<int64_t>(d >> 16 & 0x3fff) << 4),
        stride(static_cast<int64_t>(d >> 32 & 0x3fff) << 4) {
    const int mode = static_cast<int>(d >> 62);
    swizzle = mode == 1 ? 128 : mode == 2 ? 64 : mode == 3 ? 32 : 0;
  }
  /// 16 bytes of row r along k: part 0 or 1 of the 32 bytes.
  int64_t along_k(int r, int part) const {
    const int64_t row = swizzle ? swizzle : 16;
    return swizzled(start + r / 8 * stride + r % 8 * row + part * (swizzle ? 16 : leading),
                    swizzle);
  }
  /// 8 numbers of 16 bits along m or n from number 8 * chunk on, at step k.
  int64_t along_mn(int chunk, int k) const {
    if (!swizzle) return start + chunk * stride + k / 8 * leading + k % 8 * 16;
    const int wide = swizzle / 16;
    return swizzled(
        start + chunk / wide * leading + chunk % wide * 16 + k / 8 * stride + k % 8 * swizzle,
        swizzle);
  }
};

}  // namespace

/// The lanes wait for the rest of their warp group; true where all four warps are at the instruction.
bool Worker::group_is_there(Block& block, Warp& w, uint32_t mask, int32_t at,
                            const char* what) const {
  w.set(mask, State::group);
  const size_t first = first_of_group(w);
  if (first + kGroupWarps > block.warps.size())
    fail(block, w, std::countr_zero(mask), at,
         std::string(what) + " needs four whole warps, from a multiple of four on");
  for (size_t i = first; i < first + kGroupWarps; i++) {
    const Warp& x = block.warps[i];
    if (x.lanes(State::group) != ~0u) return false;
    for (int lane = 0; lane < kWarp; lane++)
      if (x.pc[lane] != at + 1) return false;
  }
  return true;
}

/// Multiplies when all are there: lanes wait for the rest of their warp group.
bool Worker::product(Block& block, Warp& w, uint32_t mask, const HopperCall& call, int32_t at) {
  if (!group_is_there(block, w, mask, at, "wgmma")) return true;
  const size_t first = first_of_group(w);
  multiply(block, first, call, at);
  for (size_t i = first; i < first + kGroupWarps; i++) {
    Warp& x = block.warps[i];
    x.set(~0u, State::ready);
    order_warp(block, x);
  }
  return true;
}

/// setmaxnreg: gives registers back, or takes those that others gave back, and waits until there are enough.
bool Worker::set_registers(Block& block, Warp& w, uint32_t mask, const HopperCall& call, bool more,
                           int32_t at) {
  if (!block.program->registers)
    fail(block, w, std::countr_zero(mask), at,
         std::string(call.name) +
             ", which the assembler ignores: the kernel needs a constant block_dim and min_blocks");
  if (!group_is_there(block, w, mask, at, call.name)) return true;
  const size_t first = first_of_group(w);
  const int64_t wanted = call.attrs.at(0), held = block.warps[first].registers;
  if (more ? wanted < held : wanted > held)
    fail(block, w, std::countr_zero(mask), at,
         detail::concat(call.name, " to ", wanted, " registers, where threads have ", held));
  const int64_t needed = (wanted - held) * kGroupWarps * kWarp;
  const bool waits = needed > block.registers_left;
  if (!waits) block.registers_left -= needed;
  for (size_t i = first; i < first + kGroupWarps; i++) {
    Warp& x = block.warps[i];
    x.set(~0u, waits ? State::mbarrier : State::ready);
    if (!waits) x.registers = static_cast<int32_t>(wanted);
    for (int lane = 0; waits && lane < kWarp; lane++) {
      x.pc[lane] = at;
      block.threads[i * kWarp + static_cast<size_t>(lane)].waits_for = detail::concat(
          "waits for ", needed, " registers (", block.registers_left, " are given back) at ");
    }
  }
  if (!more)
    for (Warp& x : block.warps) x.set(x.lanes(State::mbarrier), State::ready);
  return true;
}

void Worker::read_matrix(Block& block, size_t first_warp, uint64_t descriptor, DType type, int rows,
                         bool mn_major, double* out, int32_t at) {
  const Matrix m(descriptor);
  const Warp& w = block.warps[first_warp];
  const int depth = 256 / type.bits(), bytes = static_cast<int>(type.bytes());
  if (m.swizzle && (m.start & (8 * m.swizzle - 1)) >= m.swizzle && !mn_major)
    fail(block, w, 0, at,
         detail::concat("a matrix of wgmma begins ", m.start % (8 * m.swizzle),
                        " bytes behind a multiple of ", 8 * m.swizzle,
                        " of shared memory, within the rows that its swizzle permutes"));
  const Thread& t = block.threads[first_warp * kWarp];
  const Stamp stamp{block.run, t.products + 1, at,
                    static_cast<uint16_t>(kProducts + first_warp / kGroupWarps), 0};
  const auto chunk = [&](int64_t address) {
    const Place p = shared_bytes(block, w, 0, address, 16, at, "wgmma");
    if (p.space.tracked())
      for (size_t i = 0; i < kGroupWarps; i++)
        note_async(block, block.warps[first_warp + i], 0, p, stamp, Use::read,
                   i + 1 == kGroupWarps);
    return p.data;
  };
  if (!mn_major) {
    for (int r = 0; r < rows; r++)
      for (int part = 0; part < 2; part++) {
        const uint8_t* p = chunk(m.along_k(r, part));
        for (int e = 0; e < 16 / bytes; e++)
          out[r * depth + part * (16 / bytes) + e] = matrix_number(p + e * bytes, type);
      }
    return;
  }
  for (int k = 0; k < depth; k++)
    for (int c = 0; c < rows / 8; c++) {
      const uint8_t* p = chunk(m.along_mn(c, k));
      for (int e = 0; e < 8; e++) out[(c * 8 + e) * depth + k] = matrix_number(p + e * bytes, type);
    }
}

void Worker::multiply(Block& block, size_t first_warp, const HopperCall& call, int32_t at) {
  const int n = static_cast<int>(call.attrs.at(0));
  const auto dtype = [&](size_t i) { return DType(static_cast<DTypeCode>(call.attrs.at(i))); };
  const DType in = dtype(1), sum_type = dtype(3);
  const bool in_registers = call.attrs.at(4) != 0;
  const int64_t more = call.attrs.at(7);
  const int depth = 256 / in.bits();
  Warp& w = block.warps[first_warp];
  const auto arg = [&](size_t a) { return w.row(call.args[a])[0].i; };
  for (size_t i = first_warp; i < first_warp + kGroupWarps; i++)
    for (size_t a = in_registers ? 2 : 1; a < 4; a++)
      for (int lane = 0; lane < kWarp; lane++)
        if (block.warps[i].row(call.args[a])[lane].i != arg(a))
          fail(block, block.warps[i], lane, at,
               a < 3 ? "the threads of a warp group give wgmma different matrices"
                     : "the threads of a warp group do not agree whether wgmma accumulates");
  std::vector<double> a(static_cast<size_t>(kRows * depth)), b(static_cast<size_t>(n * depth));
  read_matrix(block, first_warp, static_cast<uint64_t>(arg(2)), dtype(2), n, call.attrs[6] != 0,
              b.data(), at);
  if (!in_registers)
    read_matrix(block, first_warp, static_cast<uint64_t>(arg(1)), in, kRows, call.attrs[5] != 0,
                a.data(), at);
  const double sign =
      static_cast<bool>(more & ir::kNegateA) == static_cast<bool>(more & ir::kNegateB) ? 1 : -1;
  const int each = 32 / in.bits();
  const bool accumulate = arg(3) != 0, pairs = sum_type == f16;
  const int64_t count = pairs ? n / 4 : n / 2;
  for (size_t i = 0; i < kGroupWarps; i++) {
    Warp& x = block.warps[first_warp + i];
    if (in_registers)
      for (int lane = 0; lane < kWarp; lane++)
        for (int part = 0; part < 4; part++) {
          const auto word = static_cast<uint32_t>(x.row(call.args[1] + part)[lane].i);
          uint8_t bytes[4];
          std::memcpy(bytes, &word, 4);
          const int row = static_cast<int>(i) * 16 + lane / 4 + part % 2 * 8;
          for (int e = 0; e < each; e++)
            a[static_cast<size_t>(row * depth + part / 2 * depth / 2 + lane % 4 * each + e)] =
                matrix_number(bytes + e * static_cast<int>(in.bytes()), in);
        }
    for (int lane = 0; lane < kWarp; lane++) {
      const Place d =
          resolve(block, x, lane, x.row(call.args[0])[lane].i, count * 4, 4, at, "wgmma");
      Thread& t = block.threads[static_cast<size_t>(x.index * kWarp + lane)];
      if (d.space.written) {
        uint8_t* written = d.space.written + d.space.stride * lane + d.offset;
        for (int64_t k = 0; k < count * 4; k++) {
          if (accumulate && !written[k])
            fail(block, x, lane, at,
                 "wgmma adds to '" + *d.space.name + "', which was never written");
          if (written[k] == kFresh)
            fail(
                block, x, lane, at,
                "wgmma uses '" + *d.space.name + "', which was written after the last wgmma_fence");
          written[k] = 1;
        }
        t.sums.push_back({d.space.data - x.memory + d.offset, count * 4, t.products + 1, at});
      }
      for (int e = 0; e < n / 2; e++) {
        const int row = static_cast<int>(i) * 16 + lane / 4 + e / 2 % 2 * 8,
                  column = e / 4 * 8 + lane % 4 * 2 + e % 2;
        uint8_t* place = d.data + (pairs ? e * 2 : e * 4);
        double sum = accumulate ? matrix_number(place, sum_type) : 0;
        for (int k = 0; k < depth; k++)
          sum += sign * a[static_cast<size_t>(row * depth + k)] *
                 b[static_cast<size_t>(column * depth + k)];
        if (more & ir::kSaturate) sum = std::clamp<double>(sum, INT32_MIN, INT32_MAX);
        const Cell c = sum_type.is_float()
                           ? from_double(sum, sum_type)
                           : Cell{.i = ir::wrap_int(static_cast<int64_t>(sum), sum_type)};
        write_cell(place, sum_type.code(), c);
      }
    }
  }
}

void Worker::fence_products(Block& block, Warp& w, uint32_t mask) const {
  const int64_t bytes = block.program->register_bytes;
  bits(mask, [&](int i) {
    uint8_t* written = w.written + bytes * i;
    for (int64_t k = 0; k < bytes; k++)
      if (written[k] == kFresh) written[k] = 1;
  });
}

void Worker::wait_products(Block& block, Warp& w, uint32_t mask, int64_t pending) {
  bits(mask, [&](int i) {
    Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + i)];
    std::erase_if(t.sums, [&](const Pending& p) { return p.group + pending <= t.products; });
  });
  const Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + std::countr_zero(mask))];
  if (t.products > pending)
    learn(block, w, mask, static_cast<uint16_t>(kProducts + w.index / kGroupWarps),
          static_cast<uint32_t>(t.products - pending));
}

void Worker::touch_sums(const Block& block, const Warp& w, int lane, int64_t offset, int64_t bytes,
                        int32_t at) const {
  const Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + lane)];
  for (const Pending& p : t.sums)
    if (offset < p.offset + p.bytes && p.offset < offset + bytes)
      fail(block, w, lane, at,
           "sums are touched before wgmma_wait for the wgmma at " +
               block.program->locs[static_cast<size_t>(p.at)].text());
}

}  // namespace hidet::backends::sim
