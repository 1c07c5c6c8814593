// row_lanes.h - rows of f32 values in scratch memory, taken in blocks of whole vectors; largest value and sum of a row.
// Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

class RowLanes {
 public:
  /// `block`: values of a block, whole vectors.
  explicit RowLanes(int64_t block) : block_(block) {}
  int64_t block() const { return block_; }

  using Pair = std::function<ir::Value(const ir::Value&, const ir::Value&)>;
  /// The larger of two. NaN loses here, and reaches every value of a softmax through the sum.
  static ir::Value larger_of(const ir::Value& a, const ir::Value& b);
  static ir::Value sum_of(const ir::Value& a, const ir::Value& b);

  static ir::Value get(const ir::Value& values, const ir::Value& j);
  static ir::Stmt put(const ir::Value& values, const ir::Value& j, const ir::Expr& value);

  /// body(lane, j) for whole blocks of [begin, end).
  ir::Stmt blocks(
      const ir::Value& begin, const ir::Value& end,
      const std::function<ir::Stmt(const ir::Value& lane, const ir::Value& j)>& body) const;
  /// one(j) for j in [0, n): whole vectors, then one by one.
  static void each(std::vector<ir::Stmt>& body, const ir::Value& n, int64_t lanes,
                   const std::function<ir::Stmt(const ir::Value& j)>& one);
  /// values[j] for j in [n, filled) becomes -inf, which adds nothing to a sum of exp.
  static ir::Stmt fill(const ir::Value& values, const ir::Value& n, const ir::Value& filled);

  /// One value for each lane of a block, beginning with `begin`.
  ir::VarRef accumulators(std::vector<ir::Stmt>& body, const char* name, double begin) const;
  /// v[lane] = both(v[lane], value).
  static ir::Stmt combine(const ir::VarRef& v, const ir::Value& lane, const ir::Value& value,
                          const Pair& both);
  /// All lanes as one value: halves are combined until one is left.
  ir::Value combined(std::vector<ir::Stmt>& body, const ir::VarRef& v, const Pair& both) const;

  static ir::Value lane_of(const ir::VarRef& v, const ir::Value& lane);
  /// values[j] = exp(values[j] - shift) in [0, filled), whole blocks; their sums, lane by lane.
  ir::VarRef exps(std::vector<ir::Stmt>& body, const ir::Value& values, const ir::Value& filled,
                  const ir::Value& shift) const;
  /// The same, and the sum of all.
  ir::Value exp_and_sum(std::vector<ir::Stmt>& body, const ir::Value& values,
                        const ir::Value& filled, const ir::Value& shift) const;

 private:
  int64_t block_;
};

}  // namespace hidet::graph
