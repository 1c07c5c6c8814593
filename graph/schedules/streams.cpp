// streams.cpp - a vectorized loop that ends in a store to a large tensor fills a vector instead, which one statement then stores.
#include "schedules/streams.h"

#include <hidet/ir/rewriter.h>

namespace hidet::graph {
using namespace ir;

namespace {

/// What no cache is expected to keep until the next kernel reads it.
constexpr int64_t kLarge = 32 << 20;

bool is_large(const Expr& tensor) {
  const Var* v = as<Var>(tensor);
  int64_t count = 0;
  return v && v->type.is_tensor() && v->type.tensor_info().scope == Scope::global &&
         dtype_of(VarRef(v)) == f32 && is_const_int(size_of(shape_of(VarRef(v))), &count) &&
         count * 4 >= kLarge;
}

bool runs_along(const ElementStore& s, const Var& lane) {
  for (size_t d = 0; d + 1 < s.indices.size(); d++)
    if (stride_in(s.indices[d], lane) != 0) return false;
  return !s.indices.empty() && stride_in(s.indices.back(), lane) == 1;
}

/// The statements of a body, and the store that it ends in, if that is to a large tensor along `lane`.
struct Ending {
  std::vector<Stmt> before;
  const ElementStore* store = nullptr;
};
Ending ending(const Stmt& body, const Var& lane) {
  Ending e;
  Stmt last = body;
  if (const Seq* seq = as<Seq>(body)) {
    if (seq->body.empty()) return e;
    e.before.assign(seq->body.begin(), seq->body.end() - 1);
    last = seq->body.back();
  }
  const ElementStore* s = as<ElementStore>(last);
  if (s && !s->guarded && is_large(s->tensor) && runs_along(*s, lane)) e.store = s;
  return e;
}

}  // namespace

Stmt past_caches(const Stmt& nest, int64_t lanes) {
  return rewrite(nest, [&](Rewriter& self, const For& f) -> Stmt {
    int64_t n = 0;
    if (f.how != LoopKind::vectorize || !is_const_int(f.end, &n) || n != lanes)
      return self.children(f);
    Ending e = ending(f.body, *f.var);
    if (!e.store) return self.children(f);
    const VarRef line = make_var("line", Type::tensor({f32, {index(lanes)}, {}, Scope::registers}));
    e.before.push_back(
        make_stmt<ElementStore>({}, line, std::vector<Expr>{f.var}, e.store->value, false));
    std::vector<Expr> first;
    for (const Expr& i : e.store->indices)
      first.push_back(substitute(i, {{f.var.get(), make_cast(index(0), f.var->type)}}));
    const Expr vector =
        make_load(make_address(line, {index(0)}), index(0), static_cast<int>(lanes));
    return make_seq(
        {make_stmt<DeclTensor>({}, line, Expr()),
         make_stmt<For>({}, f.var, f.begin, f.end, f.step, f.how, f.grain,
                        make_seq(std::move(e.before))),
         make_stmt<Evaluate>(
             {}, make_prim("store_cs", {make_address(e.store->tensor, first), vector}, Type()))});
  });
}

}  // namespace hidet::graph
