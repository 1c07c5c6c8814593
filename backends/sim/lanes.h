// lanes.h - loops over the lanes of a warp. Threading: thread-safe.
#pragma once
#include <bit>

#include "sim/program.h"

namespace hidet::backends::sim {

/// The rows of a warp's registers do not overlap, or are the same.
#if defined(__clang__)
#define HIDET_SIM_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define HIDET_SIM_LANES _Pragma("GCC ivdep")
#endif

template <class F>
void bits(uint32_t mask, F&& f) {
  for (; mask; mask &= mask - 1) f(std::countr_zero(mask));
}

/// For what may be computed on lanes that are not there, too.
template <class F>
void each(Lanes lanes, F&& f) {
  if (lanes.full) {
    HIDET_SIM_LANES
    for (int i = 0; i < kWarp; i++) f(i);
  } else {
    bits(lanes.mask, f);
  }
}

/// The lanes among `lanes` for which the condition in `c` holds.
inline uint32_t holding(const Cell* c, Lanes lanes) {
  uint32_t out = 0;
  if (lanes.full) {
    int64_t any = 0, all = 1;
    for (int i = 0; i < kWarp; i++) any |= c[i].i, all &= c[i].i;
    if (!any) return 0;
    if (all) return lanes.mask;
  }
  bits(lanes.mask, [&](int i) { out |= static_cast<uint32_t>(c[i].i != 0) << i; });
  return out;
}

}  // namespace hidet::backends::sim
