// bounds.h - between which numbers the integers of a function lie: from constants, loop bounds, launch dimensions, immutable
// variables and the arithmetic between them. Sound for wrapping arithmetic: what may overflow is the whole range of its type.
// Needs: a function whose loop variables are not assigned (the verifier's rule).  Threading: one thread at a time.  Private to
// ir/transforms.
#pragma once
#include <hidet/ir/stmt.h>

#include <unordered_map>

namespace hidet::ir {

/// low <= value <= high.
struct Interval {
  int64_t low, high;
  bool within(const Interval& outer) const { return low >= outer.low && high <= outer.high; }
};

/// The values of an integer or boolean type; u64 as far as int64_t goes, so use it for other types only.
Interval whole_range(DType t);

class Bounds {
 public:
  explicit Bounds(const Function& f);
  /// Of a scalar expression of the function; what known() is false of is anything.
  Interval of(const Expr& e);
  /// True where `e` is an integer whose range this class describes.
  static bool known(const Expr& e);

 private:
  Interval derive(const Expr& e);
  Interval binary(const Binary& b);
  Interval prim(const Prim& p);

  struct Loop {
    Expr begin, end, step;
  };
  const Function& f_;
  std::unordered_map<const Node*, Expr> values_;  ///< of immutable variables
  std::unordered_map<const Node*, Loop> loops_;
  std::unordered_map<const Node*, Interval> done_;
};

}  // namespace hidet::ir
