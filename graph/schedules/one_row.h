// one_row.h - products of one row with a packed weight: nothing is used twice, so all there is to do is to read the weight fast.
// Private to graph/schedules.
#pragma once
#include "schedules/tile.h"

namespace hidet::graph {

class OneRow {
 public:
  /// `fused`: of a matmul_packed; it and the target outlive this.
  OneRow(const FusedTask& fused, const CpuTargetInfo& target);

  /// The functions that `run` calls.
  std::vector<ir::Function> functions() const;
  /// The product of row 0.
  ir::Stmt run() const;

 private:
  ir::Function block(int64_t columns) const;
  /// The row is not f32: it is widened first.
  bool widens() const { return dtype_ != f32; }

  const FusedTask& fused_;
  TileShape shape_;
  DType dtype_;
  int64_t k_, n_;
};

}  // namespace hidet::graph
