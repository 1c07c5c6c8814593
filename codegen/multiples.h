// multiples.h - what indices and addresses of a function are known to be multiples of, from its constants, declarations
// and promises (assume_aligned). Vector accesses at such addresses need no check at run time.
// Needs: a lowered function.  Threading: one thread at a time.  Private to codegen.
#pragma once
#include <hidet/ir/stmt.h>

#include <unordered_map>

namespace hidet::codegen {

class Multiples {
 public:
  Multiples() = default;
  explicit Multiples(const ir::Function& f);
  /// The largest known power of two, at most 2^20, that divides an integer expression.
  int64_t of(const ir::Expr& e);
  /// The same of an address, in bytes; shared arrays begin at multiples of 128.
  int64_t of_address(const ir::Expr& pointer);

 private:
  std::unordered_map<const ir::Node*, ir::Expr> values_;  ///< of immutable variables
  std::unordered_map<const ir::Node*, std::pair<ir::Expr, ir::Expr>> loops_;  ///< begin, step
  std::unordered_map<const ir::Node*, int64_t> promised_;
  std::unordered_map<const ir::Node*, int64_t> known_;
};

}  // namespace hidet::codegen
