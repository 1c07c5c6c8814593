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

  struct Mask {
    ir::Value rows;  ///< of it: 1 where all rows share one
    std::function<ir::Value(const ir::Value& i, const ir::Value& j)> at;
  };
  /// Whether the values of a mask for `n` keys lie so far apart that a key may count nothing.
  ir::Value parts(std::vector<ir::Stmt>& body, const ir::Value& n, const Mask& mask) const;
  /// The largest length of the `keys` keys packed in k, or NaN where k or one of the `size` values of v, whole blocks both, is not finite.
  ir::Value key_size(std::vector<ir::Stmt>& body, const ir::Value& k, const ir::Value& keys,
                     const ir::Value& v, const ir::Value& size) const;

  struct Rows {  ///< of q in scratch
    ir::Value values;
    int64_t distance;
    ir::Value height;
  };
  /// Sets the first and the end of the keys, of `n`, that some of the rows need. Scratch memory 3.
  ir::Stmt range(const ir::VarRef& begin, const ir::VarRef& end, const Rows& rows,
                 const ir::Value& key_size, const ir::Value& n, const Mask& mask) const;

 private:
  ir::Value row_size(std::vector<ir::Stmt>& body, const Rows& rows) const;
  ir::Value lowest_top(std::vector<ir::Stmt>& body, const ir::Value& tops, const ir::Value& filled,
                       const ir::Value& n, const Mask& mask) const;

  RowLanes row_;
  int64_t lanes_, d_;
};

}  // namespace hidet::graph
