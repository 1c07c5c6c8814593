// layout_parts.h - what passes ask of layouts. Private to ir.
#pragma once
#include <hidet/ir/layout.h>

#include <functional>

namespace hidet::ir {

/// True where `lanes` elements of a tensor along the last index, from `indices` on, surely lie one behind the other; `divisor` gives
/// a number that divides an expression.
bool consecutive(const Layout& layout, const std::vector<Expr>& shape,
                 const std::vector<Expr>& indices, int64_t lanes,
                 const std::function<int64_t(const Expr&)>& divisor);

}  // namespace hidet::ir
