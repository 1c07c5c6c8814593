// loops.cpp - unrolling: each loop marked `unroll` becomes copies of its body.
// Needs: constant bounds (after folding).  Leaves: no loop marked unroll.
#include "transforms/util.h"

#include <hidet/ir/fold.h>
#include <hidet/runtime/error.h>

namespace hidet::ir {

Stmt refresh(const Stmt& s) {
  Substitution fresh;
  const auto add = [&](const VarRef& v) {
    if (v) fresh.emplace(v.get(), make_var(v->name, v->type, v->is_mutable, v->loc));
  };
  visit_all(s, [&](const Node& n) {
    if (const DeclVar* d = as<DeclVar>(&n)) add(d->var);
    if (const DeclTensor* d = as<DeclTensor>(&n)) add(d->var);
    if (const For* f = as<For>(&n)) add(f->var);
    if (const MappingFor* m = as<MappingFor>(&n))
      for (const VarRef& v : m->vars) add(v);
  });
  return substitute(s, fresh);
}

uint64_t turns_of(int64_t begin, int64_t end, int64_t step, DType t) {
  if (eval_int(BinaryOp::ge, begin, end, t)) return 0;
  return (static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) - 1) /
             static_cast<uint64_t>(step) +
         1;
}

namespace {

/// True where the loop's own body leaves or skips iterations.
bool has_jump(const Stmt& s) {
  bool jump = false;
  const std::function<void(const Stmt&)> walk = [&](const Stmt& at) {
    if (at->kind == Kind::Break || at->kind == Kind::Continue) jump = true;
    if (at->kind == Kind::For || at->kind == Kind::While || at->kind == Kind::MappingFor) return;
    for_each_child(*at, [](const Expr&) {}, walk);
  };
  walk(s);
  return jump;
}

Stmt unroll(Rewriter& self, const For& loop) {
  const Stmt changed = self.children(loop);
  const For& n = *as<For>(changed);
  if (n.how != LoopKind::unroll) return changed;
  int64_t begin = 0, end = 0, step = 0;
  HIDET_REQUIRE(is_const_int(n.begin, &begin) && is_const_int(n.end, &end) &&
                    is_const_int(n.step, &step) && step > 0,
                ErrorCode::usage, n.loc.text(), "cannot unroll the loop over '", n.var->name,
                "': its bounds are not constants");
  HIDET_REQUIRE(!has_jump(n.body), ErrorCode::usage, n.loc.text(), "cannot unroll the loop over '",
                n.var->name, "': it has a break or continue");
  constexpr uint64_t kMost = 1 << 16;
  const uint64_t turns = turns_of(begin, end, step, n.var->type.dtype());
  HIDET_REQUIRE(turns <= kMost, ErrorCode::usage, n.loc.text(), "cannot unroll the loop over '",
                n.var->name, "': ", turns, " copies are more than ", kMost);
  std::vector<Stmt> copies;
  for (uint64_t k = 0; k < turns; k++) {
    const Expr i = make_int(begin + static_cast<int64_t>(k) * step, n.var->type);
    copies.push_back(substitute(refresh(n.body), {{n.var.get(), i}}));
  }
  return make_seq(std::move(copies));
}

}  // namespace

Pass unroll_loops() {
  Pass pass = stmt_pass("unroll-loops", [](const Stmt& body) { return rewrite(body, unroll); });
  pass.gone = [](const Node& n) { return is_loop(n, LoopKind::unroll); };
  return pass;
}

}  // namespace hidet::ir
