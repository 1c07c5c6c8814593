// loops.cpp - unrolling: each loop marked `unroll` becomes copies of its body.
// Needs: constant bounds (after folding).  Leaves: no loop marked unroll.
#include "transforms/util.h"

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
  constexpr int64_t kMost = 1 << 16;
  HIDET_REQUIRE((end - begin) / step <= kMost, ErrorCode::usage, n.loc.text(),
                "cannot unroll the loop over '", n.var->name, "': ", (end - begin) / step,
                " copies are more than ", kMost);
  std::vector<Stmt> copies;
  for (int64_t i = begin; i < end; i += step)
    copies.push_back(substitute(refresh(n.body), {{n.var.get(), make_int(i, n.var->type)}}));
  return make_seq(std::move(copies));
}

}  // namespace

Pass unroll_loops() {
  Pass pass = stmt_pass("unroll-loops", [](const Stmt& body) { return rewrite(body, unroll); });
  pass.gone = [](const Node& n) { return is_loop(n, LoopKind::unroll); };
  return pass;
}

}  // namespace hidet::ir
