// strassen.h - products of packed weights with seven products of half the size where the definition has eight (docs/cpu_kernels.md,
// 3b). Private to graph/schedules.
#pragma once
#include "schedules/tile.h"

namespace hidet::graph {

/// The halves of blocks of rows, of K and of pairs of column blocks, and the functions that multiply them.
class Strassen {
 public:
  /// `k` rows of weights in column blocks of `shape`, whose halves go in equal runs of about `run`. Rows of operands lie `distance` elements
  /// apart, and tile(height, a, b, k, to, adds, ahead, ahead_step) is the micro kernel for any height up to the shape's rows.
  Strassen(const TileShape& shape, int64_t k, int64_t distance, int64_t run, std::string tile);
  /// K has halves of whole steps.
  static bool fits(int64_t k, const TileShape& shape) { return k % (2 * shape.k_step) == 0; }

  /// Blocks of `rows` rows will be multiplied.
  void add_heights(int64_t rows);
  /// Heights of the tiles that such blocks need.
  const std::vector<int64_t>& heights() const { return heights_; }
  std::vector<ir::Function> functions() const;

  /// Elements of the operands of a block whose first half has `half` rows; the second may have one less.
  ir::Value operands_size(const ir::Value& half) const;
  /// Writes row `i` of all operands of a block: from row `top` and, where there is one, its partner `bottom` of the second half.
  ir::Stmt operands_of_row(const ir::Value& to, const ir::Value& half, const ir::Value& i,
                           const ir::Value& top, const ir::Value& bottom,
                           const ir::Value& has_bottom) const;

  /// Elements of the sums of one pair of column blocks, and of the sums of panels.
  ir::Value sums_size(const ir::Value& half) const;
  int64_t panels_size() const;
  /// The sums of the seven products of all of K, for the pairs of column blocks from `begin` to `end`; `b`: the first panel of all.
  ir::Stmt products(const ir::Value& operands, const ir::Value& half, const ir::Value& b,
                    const ir::Value& begin, const ir::Value& end, const ir::Value& sums,
                    const ir::Value& panels) const;
  /// `rows` rows of the four quarters of the results of one pair from its sums, whose first of these rows is at `sums`: the quarters
  /// `distance` apart, rows of a column block each; whether a result is not finite.
  ir::Value results(std::vector<ir::Stmt>& body, const ir::Value& half, const ir::Value& sums,
                    const ir::Value& rows, const ir::Value& to, int64_t distance) const;

 private:
  ir::Function operand_row(bool has_bottom) const;
  ir::Function first_tile() const;
  ir::Function product() const;
  ir::Value quarter_size(const ir::Value& half) const;
  ir::Value operand(const ir::Value& operands, const ir::Value& half, int product) const;
  ir::Stmt pair(const ir::Value& operands, const ir::Value& half, const ir::Value& panel,
                const ir::Value& next, const ir::Value& sums, const ir::Value& panels,
                const ir::Value& adds) const;
  int64_t block_size() const { return shape_.columns() * k_; }

  TileShape shape_;
  int64_t k_, distance_, run_;
  std::string tile_;
  int64_t first_;  ///< rows of the tile that adds panels
  std::vector<int64_t> heights_;
};

}  // namespace hidet::graph
