// matrix.cpp - matrix instructions of a warp: ldmatrix, stmatrix and mma, with PTX's layouts of fragments.
// Needs: all 32 lanes at the instruction.
#include <hidet/ir/fold.h>

#include "sim/machine.h"

namespace hidet::backends::sim {

const MmaRow kMma[6] = {
    {"mma_m16n8k16_f16_f32", 16, DTypeCode::f16, DTypeCode::f32},
    {"mma_m16n8k16_bf16_f32", 16, DTypeCode::bf16, DTypeCode::f32},
    {"mma_m16n8k16_f16_f16", 16, DTypeCode::f16, DTypeCode::f16},
    {"mma_m16n8k8_tf32_f32", 8, DTypeCode::tf32, DTypeCode::f32},
    {"mma_m16n8k32_i8_i32", 32, DTypeCode::i8, DTypeCode::i32},
    {"mma_m16n8k32_u8_i32", 32, DTypeCode::u8, DTypeCode::i32},
};

namespace {

/// Element `e` of the registers from `r` on, where a register holds 32 bits of numbers of type t.
double element(const Cell* r, int e, DType t) {
  const int bytes = static_cast<int>(t.bytes()), each = 4 / bytes;
  auto word = static_cast<uint32_t>(r[e / each].i);
  if (t == tf32) word &= ~0x1fffu;  // the hardware ignores these bits
  uint8_t raw[8] = {};
  std::memcpy(raw, &word, sizeof word);
  const Cell c = read_cell(raw + e % each * bytes, t.code());
  return t.is_float() ? to_double(c, t) : static_cast<double>(c.i);
}

}  // namespace

Place Machine::matrix_row(const Block& block, const Thread& t, const Inst& in, int32_t at) {
  const char* what = in.op == Op::load_matrix ? "ldmatrix read" : "stmatrix write";
  const Place row = resolve(block, t, t.regs[in.a].i, 16, 16, at, what, -1);
  if (!row.shared)
    fail(block, t, at, std::string(what) + " of '" + *row.name + "', which is not shared memory");
  return row;
}

void Machine::matrix_load(Block& block, size_t first, const Inst& in, int32_t at) {
  for (int m = 0; m < in.lanes; m++) {
    uint16_t values[8][8];
    for (int i = 0; i < 8; i++) {
      const Thread& t = block.threads[first + static_cast<size_t>(m * 8 + i)];
      const Place row = matrix_row(block, t, in, at);
      if (row.shadow) note_read(block, t, row, at, false);
      std::memcpy(values[i], row.data, sizeof values[i]);
    }
    for (int lane = 0; lane < 32; lane++) {
      const int i = lane / 4, j = lane % 4 * 2;
      const uint32_t low = in.sub ? values[j][i] : values[i][j],
                     high = in.sub ? values[j + 1][i] : values[i][j + 1];
      block.threads[first + static_cast<size_t>(lane)].regs[in.dst + m].i = low | high << 16;
    }
  }
}

void Machine::matrix_store(Block& block, size_t first, const Inst& in, int32_t at) {
  for (int m = 0; m < in.lanes; m++) {
    uint16_t values[8][8];
    for (int lane = 0; lane < 32; lane++) {
      const int i = lane / 4, j = lane % 4 * 2;
      const auto word =
          static_cast<uint32_t>(block.threads[first + static_cast<size_t>(lane)].regs[in.b + m].i);
      (in.sub ? values[j][i] : values[i][j]) = static_cast<uint16_t>(word);
      (in.sub ? values[j + 1][i] : values[i][j + 1]) = static_cast<uint16_t>(word >> 16);
    }
    for (int i = 0; i < 8; i++) {
      const Thread& t = block.threads[first + static_cast<size_t>(m * 8 + i)];
      const Place row = matrix_row(block, t, in, at);
      if (row.shadow) note_write(block, t, row, at, false);
      std::memcpy(row.data, values[i], sizeof values[i]);
    }
  }
}

/// Products are exact and their sum is rounded once; integers wrap.
void Machine::mma(Block& block, size_t first, const Inst& in) const {
  const MmaRow& row = kMma[in.sub];
  const DType in_type(row.in), sum_type(row.sum);
  const int each = 4 / static_cast<int>(in_type.bytes()), half = row.k / 2;
  double a[16][32], b[32][8];
  for (int lane = 0; lane < 32; lane++) {
    const Cell* r = block.threads[first + static_cast<size_t>(lane)].regs;
    const int group = lane / 4, at = lane % 4 * each;
    for (int e = 0; e < each; e++) {
      for (int part = 0; part < 4; part++)
        a[group + part % 2 * 8][part / 2 * half + at + e] =
            element(r + in.a, part * each + e, in_type);
      for (int part = 0; part < 2; part++)
        b[part * half + at + e][group] = element(r + in.b, part * each + e, in_type);
    }
  }
  for (int lane = 0; lane < 32; lane++) {
    Cell* r = block.threads[first + static_cast<size_t>(lane)].regs;
    const bool pairs = row.sum == DTypeCode::f16;
    uint32_t packed[2] = {};
    for (int e = 0; e < 4; e++) {
      const int i = lane / 4 + e / 2 * 8, j = lane % 4 * 2 + e % 2;
      double sum = pairs                 ? element(r + in.c, e, sum_type)
                   : sum_type.is_float() ? to_double(r[in.c + e], sum_type)
                                         : static_cast<double>(r[in.c + e].i);
      for (int k = 0; k < row.k; k++) sum += a[i][k] * b[k][j];
      if (pairs)
        packed[e / 2] |= static_cast<uint32_t>(f32_to_f16(static_cast<float>(sum))) << e % 2 * 16;
      else if (sum_type.is_float()) r[in.dst + e] = from_double(sum, sum_type);
      else r[in.dst + e].i = ir::wrap_int(static_cast<int64_t>(sum), sum_type);
    }
    if (pairs) r[in.dst].i = packed[0], r[in.dst + 1].i = packed[1];
  }
}

}  // namespace hidet::backends::sim
