// split_product.h - products of f32 on tile registers of bf16 (AMX): each number is the sum of three bf16, and six of the nine products of
// parts are added up in f32 (docs/cpu_kernels.md, 3c). Private to graph/schedules.
#pragma once
#include "schedules/tile.h"

namespace hidet::graph {

/// Rows of a tile register.
constexpr int64_t kTileRows = 16;

/// What one thread multiplies: rows of `k` numbers with column blocks of two panels of 16 columns each.
struct SplitTask {
  ir::Value rows;  ///< how many
  /// Pointer to row i, after statements that make it.
  std::function<ir::Value(std::vector<ir::Stmt>& body, const ir::Value& i)> row;
  ir::Value begin, end;  ///< column blocks
  /// Pointer to the first panel of a column block, and elements to its second one (0 where it has none).
  std::function<std::pair<ir::Value, ir::Value>(const ir::Value& block)> panels;
  /// What becomes of the results of a block, [rows][32].
  std::function<ir::Stmt(const ir::Value& block, const ir::Value& results)> finish;
  /// The same by other means, for numbers that the parts cannot hold.
  std::function<ir::Stmt(const ir::Value& begin, const ir::Value& end)> plain;
  int rows_slot, work_slot;  ///< scratch memory
};

/// Column block `block` of packed weights of `n` columns, as SplitTask::panels wants it; `b` is the first panel.
std::pair<ir::Value, ir::Value> panels_of_block(const ir::Value& b, const ir::Value& block,
                                                int64_t n, int64_t k);

class SplitProduct {
 public:
  explicit SplitProduct(int64_t k);
  /// True where the target has the registers and products may be split.
  static bool can(const CpuTargetInfo& target) { return target.has_tiles && target.fewer_products; }

  std::vector<ir::Function> functions() const;
  ir::Stmt run(const SplitTask& task) const;

 private:
  /// A chunk is a run of K of a column block. What it is made from: its first element in the first panel, elements to the second panel, numbers
  /// of K from there on, and the largest values of its columns so far.
  struct Chunk {
    ir::Value from, panel_stride, left, maxima;
  };
  /// Memory of a task, and what is known of it.
  struct Work {
    ir::Value rows, pairs, tiles, run_distance, zeros, chunks, maxima, results;
  };
  ir::Function row_function() const;
  ir::Function chunk_function() const;
  ir::Function tiles_function(int rows) const;
  ir::Stmt unit(const Chunk& chunk, const ir::Value& i, const ir::Value& to, const ir::Value& zeros,
                const std::vector<ir::VarRef>& largest) const;
  Work split_rows(std::vector<ir::Stmt>& body, const SplitTask& t, const ir::VarRef& far) const;
  ir::Stmt blocks(const SplitTask& t, Work w) const;
  ir::Stmt group(const SplitTask& t, const Work& w, const ir::Value& begin, const ir::Value& end,
                 const ir::VarRef& turn) const;
  ir::Stmt products(const Work& w, const ir::Value& run, const Chunk& next, const ir::Value& units,
                    const ir::Value& chunk, const ir::Value& next_chunk, const ir::Value& to) const;
  Chunk chunk_of(std::vector<ir::Stmt>& body, const SplitTask& t, const Work& w,
                 const ir::Value& block, const ir::Value& run) const;
  ir::Stmt finish(const SplitTask& t, const Work& w, const ir::Value& block,
                  const ir::Value& results) const;
  ir::Value steps_of(const ir::Value& run) const;
  int64_t panel_size() const;
  int64_t chunk_size() const;
  int64_t pair_size() const;

  int64_t k_, steps_, runs_, run_steps_;
};

}  // namespace hidet::graph
