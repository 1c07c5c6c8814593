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

/// Left-to-right conjunction; true for an empty list.
Expr all_of(const std::vector<Expr>& conditions);

}  // namespace hidet::ir
