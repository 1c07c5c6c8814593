// matrix.cpp - matrix instructions of a warp: ldmatrix, stmatrix, movmatrix and mma, with PTX's layouts of fragments.
// Needs: all 32 lanes at the instruction.
#include <hidet/ir/fold.h>
#include <hidet/ir/mma.h>

#include <cmath>

#include "sim/worker.h"

namespace hidet::backends::sim {

double matrix_number(const uint8_t* p, DType t) {
  if (t == f8e5m2) return f16_to_f32(static_cast<uint16_t>(*p << 8));
  if (t == f8e4m3) {
    const int exponent = *p >> 3 & 15, fraction = *p & 7;
    double v = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
    if (exponent == 15 && fraction == 7) v = NAN;
    return *p & 128 ? -v : v;
  }
  if (t == tf32) {
    // The hardware ignores the low bits.
    const uint32_t word = raw<uint32_t>(p) & ~0x1fffu;
    float f;
    std::memcpy(&f, &word, sizeof f);
    return f;
  }
  const Cell c = read_cell(p, t.code());
  return t.is_float() ? to_double(c, t) : static_cast<double>(c.i);
}

namespace {

/// Element `e` of the registers from `r` on (of one lane, a row apart), where a register holds 32 bits of numbers of type t, or
/// one f64.
double element(const Cell* r, int e, DType t) {
  if (t == f64) return r[e * kWarp].d;
  const int bytes = static_cast<int>(t.bytes()), each = 4 / bytes;
  const auto word = static_cast<uint32_t>(r[e / each * kWarp].i);
  uint8_t raw[8] = {};
  std::memcpy(raw, &word, sizeof word);
  return matrix_number(raw + e % each * bytes, t);
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

/// Lane i gets what a matrix of 8 x 8 16-bit values, transposed, has in its place.
void Worker::transpose_matrix(const Warp& w, const Inst& in) const {
  uint16_t values[8][8];
  for (int lane = 0; lane < kWarp; lane++) {
    const auto word = static_cast<uint32_t>(w.row(in.a)[lane].i);
    values[lane / 4][lane % 4 * 2] = static_cast<uint16_t>(word);
    values[lane / 4][lane % 4 * 2 + 1] = static_cast<uint16_t>(word >> 16);
  }
  for (int lane = 0; lane < kWarp; lane++) {
    const int i = lane / 4, j = lane % 4 * 2;
    w.row(in.dst)[lane].i = uint32_t{values[j][i]} | uint32_t{values[j + 1][i]} << 16;
  }
}

/// Products are exact and their sum is rounded once, in f64 after each product; integers wrap or stay at the limits.
void Worker::mma(const Warp& w, const Inst& in) const {
  const ir::MmaShape& s = ir::mma_shapes()[in.sub];
  const int each = s.each(), tall = s.m / 8;
  double a[16][32], b[32][8];
  for (int lane = 0; lane < kWarp; lane++) {
    const int group = lane / 4, at = lane % 4 * each;
    for (int e = 0; e < each; e++) {
      for (int part = 0; part < s.registers_a(); part++)
        a[group + part % tall * 8][part / tall * s.width() + at + e] =
            element(w.row(in.a) + lane, part * each + e, s.a);
      for (int part = 0; part < s.registers_b(); part++)
        b[part * s.width() + at + e][group] = element(w.row(in.b) + lane, part * each + e, s.b);
    }
  }
  for (int lane = 0; lane < kWarp; lane++) {
    const bool pairs = s.sum == f16;
    uint32_t packed[2] = {};
    for (int e = 0; e < tall * 2; e++) {
      const int i = lane / 4 + e / 2 * 8, j = lane % 4 * 2 + e % 2;
      double sum = pairs              ? element(w.row(in.c) + lane, e, f16)
                   : s.sum.is_float() ? to_double(w.row(in.c + e)[lane], s.sum)
                                      : static_cast<double>(w.row(in.c + e)[lane].i);
      for (int k = 0; k < s.k; k++) sum = std::fma(a[i][k], b[k][j], sum);
      if (pairs)
        packed[e / 2] |= static_cast<uint32_t>(f32_to_f16(static_cast<float>(sum))) << e % 2 * 16;
      else if (s.sum.is_float()) w.row(in.dst + e)[lane] = from_double(sum, s.sum);
      else if (s.saturate) w.row(in.dst + e)[lane].i = ir::saturate(sum, s.sum);
      else w.row(in.dst + e)[lane].i = ir::wrap_int(static_cast<int64_t>(sum), s.sum);
    }
    for (int e = 0; pairs && e < tall; e++) w.row(in.dst + e)[lane].i = packed[e];
  }
}

}  // namespace hidet::backends::sim
