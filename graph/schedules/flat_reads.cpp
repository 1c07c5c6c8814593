// flat_reads.cpp - flat positions of reads: (e / n) * n + e % n is e, wherever a reshape took an index apart.
#include "schedules/flat_reads.h"

#include <hidet/ir/rewriter.h>

#include <unordered_map>

namespace hidet::graph {
using namespace ir;

namespace {

struct Term {
  Expr base, factor;
};

const Binary* binary(const Expr& e, BinaryOp op) {
  const Binary* b = as<Binary>(e);
  return b && b->op == op ? b : nullptr;
}

/// Adds `i`, the index in a dimension of `extent`; joins a remainder with the quotient that belongs to it.
void append(std::vector<Term>& terms, Expr i, const Expr& extent) {
  for (Term& t : terms) t.factor = make_binary(BinaryOp::mul, t.factor, extent);
  if (const Binary* rest = binary(i, BinaryOp::mod))
    for (size_t k = 0; k < terms.size(); k++) {
      const Binary* q = binary(terms[k].base, BinaryOp::div);
      if (!q || !equal(q->a, rest->a) || !equal(q->b, rest->b) || !equal(terms[k].factor, q->b))
        continue;
      i = rest->a;
      terms.erase(terms.begin() + static_cast<int64_t>(k));
      break;
    }
  terms.push_back({i, index(1)});
}

/// The flat position that `e` reads.
Expr flat_position(const Element& e) {
  std::vector<Term> terms;
  const std::vector<Expr>& shape = e.tensor->type.tensor_info().shape;
  for (size_t d = 0; d < e.indices.size(); d++)
    append(terms, make_cast(e.indices[d], Type(i64)), make_cast(shape[d], Type(i64)));
  Expr sum = index(0);
  for (const Term& t : terms)
    sum = make_binary(BinaryOp::add, sum, make_binary(BinaryOp::mul, t.base, t.factor));
  return sum;
}

/// True where a vector of `e` along `axis` is seen to be contiguous already, or the axis does not matter.
bool plain(const Element& e, const Var& axis) {
  for (const Expr& i : e.indices)
    if (!stride_in(i, axis)) return false;
  return true;
}

}  // namespace

Compute with_flat_reads(Compute c, std::vector<Stmt>& views) {
  std::unordered_map<const Node*, VarRef> view_of;
  const Var& last = *c.axes.back();
  c.value = rewrite(c.value, [&](Rewriter& self, const Element& e) -> Expr {
    if (e.indices.size() < 2 || !e.type.is_scalar() || plain(e, last)) return self.children(e);
    const Expr at = flat_position(e);
    if (stride_in(at, last) != 1) return self.children(e);
    VarRef& view = view_of[e.tensor.get()];
    if (!view) {
      const auto& info = e.tensor->type.tensor_info();
      view = make_var("flat", Type::tensor({info.dtype, {size_of(info.shape)}, {}, Scope::global}));
      views.push_back(make_stmt<DeclTensor>(
          {}, view, make_address(e.tensor, std::vector<Expr>(info.shape.size(), index(0)))));
    }
    return make_element(view, {at});
  });
  return c;
}

}  // namespace hidet::graph
