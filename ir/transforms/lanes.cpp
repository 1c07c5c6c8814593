// lanes.cpp - see lanes.h. Accesses to one memory are compared by pairs: their indices as sums of products, whose difference must be
// known, and every pair of turns.
// Needs: lower-tensors (accesses are Load and Store). Threading: pure.
#include "transforms/lanes.h"

#include <hidet/ir/rewriter.h>
#include <hidet/ir/value.h>

#include <algorithm>

namespace hidet::ir {
namespace {

/// constant + sum of factor * term.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>> terms;

  void add(const Expr& term, int64_t factor) {
    for (auto& [known, f] : terms)
      if (equal(known, term)) {
        f += factor;
        return;
      }
    terms.emplace_back(term, factor);
  }
  /// Adds factor * e; widenings of an index change nothing.
  void collect(const Expr& e, int64_t factor) {
    int64_t n = 0;
    if (is_const_int(e, &n)) {
      constant += factor * n;
      return;
    }
    const Cast* c = as<Cast>(e);
    if (c && c->how == CastKind::value && c->a->type.is_scalar() &&
        c->a->type.dtype().is_integer() && c->type.dtype().bits() >= c->a->type.dtype().bits())
      return collect(c->a, factor);
    const Binary* b = as<Binary>(e);
    if (b && (b->op == BinaryOp::add || b->op == BinaryOp::sub)) {
      collect(b->a, factor);
      return collect(b->b, b->op == BinaryOp::add ? factor : -factor);
    }
    if (b && b->op == BinaryOp::mul && is_const_int(b->b, &n)) return collect(b->a, factor * n);
    if (b && b->op == BinaryOp::mul && is_const_int(b->a, &n)) return collect(b->b, factor * n);
    add(e, factor);
  }
};

struct Access {
  const Node* root;
  Expr base, index;  ///< index null: anywhere
  bool stores;
};

class Turns {
 public:
  Turns(const For& loop, int lanes, const Memory& memory,
        const std::function<std::optional<int64_t>(const Expr&)>& stride)
      : lanes_(lanes), memory_(memory), stride_(stride) {
    visit_all(loop.body, [&](const Node& n) { note(n); });
  }
  bool meet() const {
    for (const Access& s : accesses_)
      if (s.stores)
        for (const Access& other : accesses_)
          if (other.root == s.root && (&other != &s || !inner_.empty()) && may_meet(s, other))
            return true;
    return false;
  }

 private:
  const Node* root(const Expr& base) const {
    const Node* place = place_of(base);
    const auto& roots = memory_.roots;
    for (auto it = roots.find(place); it != roots.end(); it = roots.find(place)) place = it->second;
    return place;
  }
  void note(const Node& n) {
    if (const Load* l = as<Load>(&n)) add(l->base, l->type.is_scalar() ? l->index : Expr(), false);
    if (const Store* s = as<Store>(&n))
      add(s->base, s->value->type.is_scalar() ? s->index : Expr(), true);
    if (const For* f = as<For>(&n)) inner_.emplace(f->var.get(), f);
    const Prim* p = as<Prim>(&n);
    const Call* c = as<Call>(&n);
    for (const Expr& a : p ? p->args : c ? c->args : std::vector<Expr>())
      if (a->type.is_pointer() || a->type.is_tensor()) add(a, Expr(), false);
  }
  void add(const Expr& base, const Expr& index, bool stores) {
    accesses_.push_back({root(base), base, index, stores});
  }

  /// May two different turns touch one element?
  bool may_meet(const Access& a, const Access& b) const {
    if (!equal(a.base, b.base)) return !memory_.distinct;
    if (!a.index || !b.index) return true;
    const auto by_a = stride_(a.index), by_b = stride_(b.index);
    if (!by_a || !by_b) return true;
    Linear apart;
    apart.collect(b.index, 1);
    apart.collect(a.index, -1);
    // Inner loops: the two may be at different turns of them.
    Linear within;
    within.collect(b.index, 1);
    const bool moves = std::any_of(within.terms.begin(), within.terms.end(),
                                   [&](const auto& t) { return reads_inner(t.first); });
    for (const auto& [term, factor] : apart.terms)
      if (factor != 0) return true;
    if (moves) return *by_a != *by_b || !inner_keeps_apart(within, *by_a, apart.constant);
    for (int i = 0; i < lanes_; i++)
      for (int j = 0; j < lanes_; j++)
        if (i != j && *by_a * i == apart.constant + *by_b * j) return true;
    return false;
  }
  bool reads_inner(const Expr& e) const {
    bool found = false;
    visit_all(e, [&](const Node& n) { found = found || inner_.count(&n); });
    return found;
  }
  /// All that inner loops add lies between two lanes, or is a multiple of all lanes.
  bool inner_keeps_apart(const Linear& index, int64_t by, int64_t apart) const {
    const int64_t size = by < 0 ? -by : by, all = size * lanes_;
    int64_t most = apart < 0 ? -apart : apart;
    bool multiples = size > 0 && apart % all == 0;
    for (const auto& [term, factor] : index.terms) {
      if (!reads_inner(term)) continue;
      const auto loop = inner_.find(term.get());
      if (loop == inner_.end()) return false;
      int64_t begin = 0, end = 0, step = 0;
      const For& f = *loop->second;
      const bool known = is_const_int(f.begin, &begin) && is_const_int(f.end, &end);
      multiples = multiples && is_const_int(f.step, &step) && factor * step % all == 0;
      const int64_t span = known && end > begin ? end - begin - 1 : known ? 0 : size;
      if (__builtin_add_overflow(most, (factor < 0 ? -factor : factor) * span, &most)) return false;
    }
    return multiples || most < size;
  }

  int lanes_;
  const Memory& memory_;
  const std::function<std::optional<int64_t>(const Expr&)>& stride_;
  std::vector<Access> accesses_;
  std::unordered_map<const Node*, const For*> inner_;  ///< loops in the body
};

}  // namespace

Memory memory_of(const Function& f) {
  Memory memory;
  memory.distinct = f.no_alias;
  if (f.body && !f.no_alias)
    visit_all(f.body, [&](const Node& n) {
      const DeclVar* d = as<DeclVar>(&n);
      if (!d || !d->var->type.is_pointer() || d->var->is_mutable || !d->init) return;
      const Node* place = place_of(d->init);
      if (place && place != d->var.get()) memory.roots.emplace(d->var.get(), place);
    });
  return memory;
}

bool turns_meet(const For& loop, int lanes, const Memory& memory,
                const std::function<std::optional<int64_t>(const Expr&)>& stride) {
  return Turns(loop, lanes, memory, stride).meet();
}

}  // namespace hidet::ir
