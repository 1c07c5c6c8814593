// matrix.cpp - matrix instructions of a warp: ldmatrix, stmatrix and mma, with PTX's layouts of fragments.
// Needs: all 32 lanes at the instruction.
#include <hidet/ir/fold.h>

#include "sim/worker.h"

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

/// Element `e` of the registers from `r` on (of one lane, a row apart), where a register holds 32 bits of numbers of type t.
double element(const Cell* r, int e, DType t) {
  const int bytes = static_cast<int>(t.bytes()), each = 4 / bytes;
  auto word = static_cast<uint32_t>(r[e / each * kWarp].i);
  if (t == tf32) word &= ~0x1fffu;  // the hardware ignores these bits
  uint8_t raw[8] = {};
  std::memcpy(raw, &word, sizeof word);
  const Cell c = read_cell(raw + e % each * bytes, t.code());
  return t.is_float() ? to_double(c, t) : static_cast<double>(c.i);
}

}  // namespace

Place Worker::matrix_row(const Block& block, const Warp& w, int lane, const Inst& in, int32_t at) {
  const char* what = in.op == Op::load_matrix ? "ldmatrix read" : "stmatrix write";
  const Place row = resolve(block, w, lane, w.row(in.a)[lane].i, 16, 16, at, what);
  if (!row.space.shared)
    fail(block, w, lane, at,
         std::string(what) + " of '" + *row.space.name + "', which is not shared memory");
  return row;
}

void Worker::matrix_load(Block& block, Warp& w, const Inst& in, int32_t at) {
  for (int m = 0; m < in.lanes; m++) {
    uint16_t values[8][8];
    for (int i = 0; i < 8; i++) {
      const Place row = matrix_row(block, w, m * 8 + i, in, at);
      if (row.space.tracked()) note_read(block, w, m * 8 + i, row, at);
      std::memcpy(values[i], row.data, sizeof values[i]);
    }
    for (int lane = 0; lane < 32; lane++) {
      const int i = lane / 4, j = lane % 4 * 2;
      const uint32_t low = in.sub ? values[j][i] : values[i][j],
                     high = in.sub ? values[j + 1][i] : values[i][j + 1];
      w.row(in.dst + m)[lane].i = low | high << 16;
    }
  }
}

void Worker::matrix_store(Block& block, Warp& w, const Inst& in, int32_t at) {
  for (int m = 0; m < in.lanes; m++) {
    uint16_t values[8][8];
    for (int lane = 0; lane < 32; lane++) {
      const int i = lane / 4, j = lane % 4 * 2;
      const auto word = static_cast<uint32_t>(w.row(in.b + m)[lane].i);
      (in.sub ? values[j][i] : values[i][j]) = static_cast<uint16_t>(word);
      (in.sub ? values[j + 1][i] : values[i][j + 1]) = static_cast<uint16_t>(word >> 16);
    }
    for (int i = 0; i < 8; i++) {
      const Place row = matrix_row(block, w, m * 8 + i, in, at);
      if (row.space.tracked()) note_write(block, w, m * 8 + i, row, at);
      std::memcpy(row.data, values[i], sizeof values[i]);
    }
  }
}

/// Products are exact and their sum is rounded once; integers wrap.
void Worker::mma(const Warp& w, const Inst& in) const {
  const MmaRow& row = kMma[in.sub];
  const DType in_type(row.in), sum_type(row.sum);
  const int each = 4 / static_cast<int>(in_type.bytes()), half = row.k / 2;
  double a[16][32], b[32][8];
  for (int lane = 0; lane < 32; lane++) {
    const int group = lane / 4, at = lane % 4 * each;
    for (int e = 0; e < each; e++) {
      for (int part = 0; part < 4; part++)
        a[group + part % 2 * 8][part / 2 * half + at + e] =
            element(w.row(in.a) + lane, part * each + e, in_type);
      for (int part = 0; part < 2; part++)
        b[part * half + at + e][group] = element(w.row(in.b) + lane, part * each + e, in_type);
    }
  }
  for (int lane = 0; lane < 32; lane++) {
    const bool pairs = row.sum == DTypeCode::f16;
    uint32_t packed[2] = {};
    for (int e = 0; e < 4; e++) {
      const int i = lane / 4 + e / 2 * 8, j = lane % 4 * 2 + e % 2;
      double sum = pairs                 ? element(w.row(in.c) + lane, e, sum_type)
                   : sum_type.is_float() ? to_double(w.row(in.c + e)[lane], sum_type)
                                         : static_cast<double>(w.row(in.c + e)[lane].i);
      for (int k = 0; k < row.k; k++) sum += a[i][k] * b[k][j];
      if (pairs)
        packed[e / 2] |= static_cast<uint32_t>(f32_to_f16(static_cast<float>(sum))) << e % 2 * 16;
      else if (sum_type.is_float()) w.row(in.dst + e)[lane] = from_double(sum, sum_type);
      else w.row(in.dst + e)[lane].i = ir::wrap_int(static_cast<int64_t>(sum), sum_type);
    }
    if (pairs) w.row(in.dst)[lane].i = packed[0], w.row(in.dst + 1)[lane].i = packed[1];
  }
}

}  // namespace hidet::backends::sim
