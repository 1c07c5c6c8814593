// util.h - what several passes share. Private to ir/transforms.
#pragma once
#include <hidet/ir/passes.h>
#include <hidet/ir/rewriter.h>

namespace hidet::ir {

/// `s` with every variable that it defines replaced by a fresh one of the same name and type: a copy that
/// may stand beside or inside the original.
Stmt refresh(const Stmt& s);

inline bool is_loop(const Node& n, LoopKind how) {
  return n.kind == Kind::For && static_cast<const For&>(n).how == how;
}

/// How often `for (i = begin; i < end; i += step)` runs where all are constants of `t` (u64: bit patterns) and step is positive.
uint64_t turns_of(int64_t begin, int64_t end, int64_t step, DType t);

/// An index or extent in a type in which arithmetic with others does not wrap below what memory can hold: i32, or i64 where it is
/// wider or has no sign. Constants stay: they take the other operand's type.
Expr as_index(const Expr& e);

/// Left-to-right conjunction; true for an empty list.
Expr all_of(const std::vector<Expr>& conditions);

}  // namespace hidet::ir
