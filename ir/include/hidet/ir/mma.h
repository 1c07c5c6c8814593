// mma.h - the matrix products that a warp has (mma.sync): one list, from which the rows of the table of primitives, their text
// and the simulator's meaning follow. Threading: a constant table; thread-safe.
#pragma once
#include <hidet/runtime/dtype.h>

#include <string>
#include <vector>

namespace hidet::ir {

/// sums (m x 8) + a (m x k) b (k x 8). A lane holds parts of them in registers: 32 bits of numbers, or one f64.
struct MmaShape {
  std::string name;  ///< of the row: "mma_m16n8k16_f16_f32"
  int m, k;
  DType a, b, sum;
  bool saturate;  ///< sums stay at the limits of i32; else they wrap
  int least_arch;

  /// Numbers in a register, of a and of b.
  int each() const { return a == f64 ? 1 : 32 / a.bits(); }
  /// Columns of a that the lanes' registers hold at once.
  int width() const { return 4 * each(); }
  int registers_a() const { return m / 8 * (k / width()); }
  int registers_b() const { return k / width(); }
  /// Of f16 there are two in a register.
  int registers_sum() const { return m / 8 * (sum == f16 ? 1 : 2); }
};
const std::vector<MmaShape>& mma_shapes();

}  // namespace hidet::ir
