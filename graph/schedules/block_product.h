// block_product.h - the f32 product that matmul and convolution share on the GPU: a block computes a tile of the result
// from tiles of both sides in shared memory, a thread a part of it in registers; the next tiles are read while this
// one is multiplied. Private to graph/schedules.
#pragma once
#include "schedules/threads.h"

namespace hidet::graph {

/// c[z][i, j] = sum over k of a[z][i, k] * b[z][k, j]
struct BlockProduct {
  /// An element as a function of k (and of the row or column, where that was left as a variable).
  using Fetch = std::function<ir::Expr(const ir::Value& k)>;

  std::vector<ir::Expr> batch;  ///< extents of z
  ir::Value rows, columns, depth;
  /// Row `i` of a, column `j` of b. What does not depend on k can be declared in `body`.
  std::function<Fetch(std::vector<ir::Stmt>& body, const std::vector<ir::Value>& z,
                      const ir::Value& i)>
      a;
  std::function<Fetch(std::vector<ir::Stmt>& body, const std::vector<ir::Value>& z,
                      const ir::Value& j)>
      b;
  bool a_vectors = false;      ///< a may be read in vectors along k
  bool b_vectors = false;      ///< b may be read in vectors along j
  bool store_vectors = false;  ///< columns are whole vectors: several are stored at once
  /// Stores values at row i and columns base + lane.
  std::function<void(std::vector<ir::Stmt>& body, const std::vector<ir::Value>& z,
                     const ir::Value& i, const ir::Value& base,
                     const std::vector<ir::Expr>& values)>
      store;
};

/// One module with a kernel of the tile that suits the sizes; where they are not known, kernels of two tiles and the
/// choice at the launch.
ir::Module block_product(const FusedTask& fused, const BlockProduct& product);
/// The parameters that it reads: one tile for all sizes, its depth, and how many blocks a larger tile must make.
std::vector<ScheduleParameter> block_product_space();

}  // namespace hidet::graph
