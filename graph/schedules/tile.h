// tile.h - the micro kernel that matmul and convolution share: a block of rows times panels of 16 columns, all
// accumulators in vector registers (docs/cpu_kernels.md, 2). Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

/// Columns of a weight panel, at every CPU level.
constexpr int64_t kPanelColumns = 16;

/// The register tile of a CPU level.
struct TileShape {
  int lanes;   ///< of a vector
  int rows;    ///< most rows
  int panels;  ///< panels of a full column block
  int k_step;  ///< copies of the innermost body
  int64_t columns() const { return panels * kPanelColumns; }
};
TileShape tile_shape(const CpuTargetInfo& target);
/// With another number of panels, and as many rows as the registers have room for; 0: as above.
TileShape tile_shape(const CpuTargetInfo& target, int64_t panels);

/// `n` split into ceil(n / most) parts that differ by at most one, larger ones first.
std::vector<int64_t> split_evenly(int64_t n, int64_t most);
/// one(start, size) for such parts.
ir::Stmt even_runs(const std::vector<int64_t>& parts,
                   const std::function<ir::Stmt(const ir::Value& at, int64_t n)>& one);
/// The different ones of some tile heights, the largest first.
std::vector<int64_t> distinct_heights(std::vector<int64_t> heights);
/// The widths of the blocks of `n` columns: whole ones, and what is left.
std::vector<int64_t> block_widths(int64_t n, const TileShape& shape);
/// The length of equal blocks of `n`, at most `most`; n where it has no such divisor of use.
int64_t equal_blocks(int64_t n, int64_t most);

/// One instance of the micro kernel.
struct TileKernel {
  TileShape shape;
  int64_t columns = 0;              ///< valid columns, at most shape.columns()
  std::vector<int64_t> row_offset;  ///< elements from `a` to each row
  ir::Value a, b;  ///< pointers: first row, of f32; first panel, of any dtype that load_f32 takes
  int64_t panel_stride = 0;        ///< elements of `b` from a panel to the next
  int64_t b_step = kPanelColumns;  ///< elements of `b` from one k to the next
  /// Loops around the contiguous run of K: extent, and elements of `a` from one step to the next.
  std::vector<std::pair<int64_t, ir::Value>> taps;
  int64_t run = 0;  ///< length of a run, or the most of it where `total` is given
  ir::Value
      total;  ///< all of K at run time, in runs of `run` that are `run_step` elements of `a` apart; no taps
  int64_t run_step = 0;
  bool whole_steps = false;  ///< `total` is a multiple of shape.k_step
  /// What the next tiles will read of `b`: a line of each panel is prefetched every k, `ahead_step` elements after the last.
  ir::Value ahead, ahead_step;
  int64_t ahead_panels = 0;
  /// Where given, b + sign * other takes the place of b, panels at the same distances; it is stored from `kept` on. Whole panels alone.
  ir::Value other, sign, kept;
  /// The sums begin with these values, not with 0; where `begin_if` is given, only if it holds.
  std::function<ir::Value(int64_t i, const ir::Value& c)> begin_with;
  ir::Value begin_if;
  /// The statement that stores `value` at row `i`, column `c` of the tile (c is scalar, may hold a lane index).
  std::function<ir::Stmt(int64_t i, const ir::Value& c, const ir::Value& value)> store;
};
ir::Stmt tile_kernel(const TileKernel& t);

/// How a tile function takes its operands.
enum class Begin { zero, sums, either };  ///< what the sums begin with
struct RawTile {
  bool runtime_k = false;    ///< all of K is an argument (TileKernel::total)
  bool prefetches = false;   ///< TileKernel::ahead and ahead_step are arguments
  bool adds_panels = false;  ///< TileKernel::other, sign and kept are arguments
  Begin begin =
      Begin::zero;  ///< sums: what `to` holds; either: that where the argument `adds` is not 0
  int64_t to_distance = 0;  ///< elements from a row of results to the next; 0: shape.columns()
  DType panels = f32;       ///< dtype of `b`
};
/// name(a, b, [other, sign, kept,] [k,] to, [adds,] [ahead, ahead_step]): `t`, whose operands are set here, for `rows` rows `row_distance` elements apart; the
/// results go to to[row][shape.columns()].
ir::Function raw_tile(const std::string& name, TileKernel t, int64_t rows, int64_t row_distance,
                      const RawTile& how);

/// What the tiles of such functions prefetch together: the panels of the next block, of `run` rows each.
class AheadOfTiles {
 public:
  AheadOfTiles(const TileShape& shape, int64_t panel_stride, int64_t run)
      : panels_(shape.panels), stride_(panel_stride), run_(run) {}
  /// Elements from one k to the next, where there are `tiles` tiles.
  ir::Value step(const ir::Value& tiles) const;
  /// Where tile `i` begins: each has a part of one panel.
  ir::Value begin(const ir::Value& next, const ir::Value& i, const ir::Value& step) const;

 private:
  int64_t panels_, stride_, run_;
};

/// One row of such results through the epilogue: store(c, value) for its `columns` first values.
std::vector<ir::Stmt> store_raw_row(
    const ir::Value& from, int64_t columns, int lanes,
    const std::function<ir::Stmt(const ir::Value& c, const ir::Value& value)>& store);

/// store(j + lane) for j from `begin` on, `count` values of the vector `v` from its first lane on, in vectors.
std::vector<ir::Stmt> store_lanes(
    const ir::Expr& v, int64_t count,
    const std::function<ir::Stmt(const ir::Value& lane, const ir::Value& value)>& store);

/// Column blocks [block][k][shape.columns()] of the `width` columns of `from`, whose `k` rows are `distance` elements apart;
/// zero behind the last column.
ir::Stmt pack_columns(const ir::Value& panels, const ir::Value& from, const ir::Value& width,
                      const ir::Value& distance, const ir::Value& k, const TileShape& shape);
/// one(H) for the least H in `sizes`, which go down, that has `height` rows.
ir::Stmt choose_rows(const std::vector<int64_t>& sizes, const ir::Value& height,
                     const std::function<ir::Stmt(int64_t)>& one);
/// one(columns) for column block `block` of `n` columns: whole, or the last.
ir::Stmt choose_columns(int64_t n, const TileShape& shape, const ir::Value& block,
                        const std::function<ir::Stmt(int64_t)>& one);

/// body(at, width) for [0, count), count known: whole vectors in a loop, then shorter ones.
ir::Stmt in_chunks(int64_t count, int lanes,
                   const std::function<ir::Stmt(const ir::Value& at, int width)>& body);
/// to[0, count) = from[0, count), count known: whole vectors, then single values; as load_f32 reads them.
ir::Stmt copy_values(const ir::Value& to, const ir::Value& from, int64_t count, int lanes);
/// to[0, count) = 0.
ir::Stmt zero_values(const ir::Value& to, int64_t count, int lanes);

// --- small pieces
/// Dtypes that the f32 templates take: what is stored in 16 bits is widened as it is loaded, and rounded once as it is stored.
bool is_f32_or_half(DType t);
/// from[at] as f32, `lanes` of them.
ir::Expr load_f32(const ir::Value& from, const ir::Value& at, int lanes = 1);
/// Pointer to element `offset` behind a tensor's first element.
ir::Value pointer_to(const ir::VarRef& tensor);
/// The least of two.
ir::Value least(const ir::Value& a, const ir::Value& b);
/// The sum of a vector's lanes, in pairs.
ir::Value sum_of_lanes(std::vector<ir::Stmt>& body, const ir::VarRef& vector);
/// This thread's scratch memory as an f32 pointer.
ir::Value scratch_floats(int slot, const ir::Value& count);
/// A call of a module function as a statement.
ir::Stmt call(const std::string& function, const std::vector<ir::Value>& args);
/// The kernel parameters of `fused`, as call arguments.
std::vector<ir::Value> parameter_values(const FusedTask& fused);
/// The batch dims of a matrix operand are those of the output, or 1.
bool batch_fits(const ir::VarRef& operand, const ir::VarRef& output);
/// All extents of a tensor from dimension `from` on are constants.
bool constant_shape(const ir::VarRef& tensor, size_t from);
/// A constant extent.
int64_t extent_of(const ir::VarRef& tensor, size_t d);

}  // namespace hidet::graph
