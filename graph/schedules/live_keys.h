// live_keys.h - the keys of attention that a mask leaves to a tile of rows. Private to graph/schedules.
#pragma once
#include "schedules/row_lanes.h"

namespace hidet::graph {

/// A score is at most |q| |k| away from 0. So a key counts nothing in a row whose mask there is below the row's largest by more than twice that
/// and what makes exp 0: its share is 0 whatever the score. Such keys at either end of all are left out; what is not finite keeps them in.
class LiveKeys {
 public:
  /// `rows`: blocks of keys, as k is packed; `d`: length of q and k.
  LiveKeys(const RowLanes& rows, int64_t lanes, int64_t d) : row_(rows), lanes_(lanes), d_(d) {}

  /// The largest length of the `keys` keys packed in k, or NaN where k or one of the `size` values of v, whole blocks both, is not finite.
  ir::Value key_size(std::vector<ir::Stmt>& body, const ir::Value& k, const ir::Value& keys,
                     const ir::Value& v, const ir::Value& size) const;

  struct Rows {  ///< of q in scratch
    ir::Value values;
    int64_t distance;
    ir::Value height;
  };
  using Mask = std::function<ir::Value(const ir::Value& i, const ir::Value& j)>;
  /// The first and the end of the keys, of `n`, that some of the rows need; mask(i, j): of row i of the tile. Scratch memory 3.
  std::pair<ir::Value, ir::Value> range(std::vector<ir::Stmt>& body, const Rows& rows,
                                        const ir::Value& key_size, const ir::Value& n,
                                        const Mask& mask) const;

 private:
  ir::Value row_size(std::vector<ir::Stmt>& body, const Rows& rows) const;
  ir::Value lowest_top(std::vector<ir::Stmt>& body, const Rows& rows, const ir::Value& tops,
                       const ir::Value& filled, const ir::Value& n, const Mask& mask) const;

  RowLanes row_;
  int64_t lanes_, d_;
};

}  // namespace hidet::graph
