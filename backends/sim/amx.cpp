// amx.cpp - x86's tile registers: eight of 16 rows of 64 bytes, loads, stores, and products of bf16 in the hardware's order.
// Needs: CPU code, which one thread interprets; the registers are the machine's.
#include <cmath>
#include <cstring>

#include "sim/worker.h"

namespace hidet::backends::sim {
namespace {

constexpr int kRows = TileRegisters::kRows, kWords = TileRegisters::kWords;
constexpr int64_t kRowBytes = 64;

/// Half `half` of a word as f32; subnormal numbers count as zero.
float bf16_half(uint32_t word, int half) {
  const uint32_t bits = half ? word & 0xffff0000u : word << 16;
  float v;
  std::memcpy(&v, &bits, sizeof v);
  return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.f, v) : v;
}
/// A result that is subnormal becomes zero.
float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.f, v) : v; }

/// Sums of the even and of the odd elements, then both onto what was there.
void dot_bf16(uint32_t* to, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kRows; i++)
    for (int j = 0; j < kWords; j++) {
      float sums[2] = {0, 0};
      for (int k = 0; k < kWords; k++)
        for (int half = 0; half < 2; half++)
          sums[half] = flushed(std::fma(bf16_half(a[i * kWords + k], half),
                                        bf16_half(b[k * kWords + j], half), sums[half]));
      float old;
      std::memcpy(&old, &to[i * kWords + j], sizeof old);
      const float sum = flushed(old + flushed(sums[0] + sums[1]));
      std::memcpy(&to[i * kWords + j], &sum, sizeof sum);
    }
}

}  // namespace

void Worker::amx(Block& block, Warp& w, const Inst& in, int32_t at) {
  const auto op = static_cast<Amx>(in.sub);
  TileRegisters& t = m_.tiles_;
  if (op == Amx::config || op == Amx::release) {
    t = {};
    t.usable = op == Amx::config;
    return;
  }
  if (!t.usable) fail(block, w, 0, at, "tile registers are used before amx_config");
  uint32_t* words = t.words[in.dst];
  if (op == Amx::zero) return (void)std::memset(words, 0, sizeof t.words[0]);
  if (op == Amx::dot_bf16) return dot_bf16(words, t.words[in.a], t.words[in.b]);
  const bool store = op == Amx::store;
  const char* what = store ? "amx_store's write" : "amx_load's read";
  for (int i = 0; i < kRows; i++) {
    const int64_t row = w.row(in.a)->i + i * w.row(in.b)->i;
    const Place p = resolve(block, w, 0, row, kRowBytes, 1, at, what);
    if (p.space.written) {
      if (store) std::memset(p.space.written + p.offset, 1, kRowBytes);
      else check_written(block, w, 0, p.space, p.offset, kRowBytes, at);
    }
    store ? std::memcpy(p.data, words + i * kWords, kRowBytes)
          : std::memcpy(words + i * kWords, p.data, kRowBytes);
  }
}

}  // namespace hidet::backends::sim
