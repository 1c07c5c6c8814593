// split_vectors.cpp - a vector of elements along a tensor's last index, where a layout keeps them apart (column major, strided) or
// may (tiles and swizzles, unless the first index is known to be a multiple), becomes its elements one by one.
// Needs: nothing.  Leaves: vectors of elements that lie one behind the other.
#include "core/layout_parts.h"
#include "transforms/util.h"

#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

#include <numeric>

namespace hidet::ir {
namespace {

constexpr int64_t kCap = 1 << 12;  ///< of powers of two that are asked for

class Splitter {
 public:
  explicit Splitter(const Stmt& body) {
    visit_all(body, [&](const Node& n) {
      const DeclVar* d = as<DeclVar>(&n);
      if (d && !d->var->is_mutable && d->init) values_.emplace(d->var.get(), d->init);
      if (const For* f = as<For>(&n)) loops_.emplace(f->var.get(), std::pair{f->begin, f->step});
      const Element* e = as<Element>(&n);
      const ElementStore* s = as<ElementStore>(&n);
      any_ = any_ || (e && e->type.is_vector()) || (s && s->value->type.is_vector());
    });
    rewriter_.on([this](Rewriter& self, const Element& e) -> Expr {
      const std::vector<Expr> indices = self(e.indices);
      if (together(e.tensor, indices, e.type.lanes())) return self.children(e);
      std::vector<Expr> lanes;
      for (const Expr& index : indices) check_pure(index, e.loc);
      for (int i = 0; i < e.type.lanes(); i++)
        lanes.push_back(make_element(e.tensor, moved(indices, i), false, 1, e.loc));
      return make_vector(std::move(lanes), e.loc);
    });
    rewriter_.on([this](Rewriter& self, const ElementStore& e) -> Stmt {
      const std::vector<Expr> indices = self(e.indices);
      if (together(e.tensor, indices, e.value->type.lanes())) return self.children(e);
      return store(e, indices, self(e.value));
    });
  }
  Stmt operator()(const Stmt& body) { return any_ ? rewriter_(body) : body; }

 private:
  bool together(const Expr& tensor, const std::vector<Expr>& indices, int lanes) {
    if (lanes == 1 || indices.empty()) return true;
    const TensorInfo& t = tensor->type.tensor_info();
    std::vector<Expr> wide;
    for (const Expr& i : indices) wide.push_back(as_index(i));
    return consecutive(t.layout, t.shape, wide, lanes,
                       [this](const Expr& e) { return divisor(e); });
  }
  /// A power of two that divides `e`, also where arithmetic wraps.
  int64_t divisor(const Expr& e) const {
    int64_t n = 0;
    if (is_const_int(e, &n)) return n == 0 || n == INT64_MIN ? kCap : std::min(n & -n, kCap);
    if (const auto it = values_.find(e.get()); it != values_.end()) return divisor(it->second);
    if (const auto it = loops_.find(e.get()); it != loops_.end())
      return std::gcd(divisor(it->second.first), divisor(it->second.second));
    if (const Cast* c = as<Cast>(e)) {
      const bool ints = c->how == CastKind::value && c->a->type.is_scalar() &&
                        c->a->type.dtype().is_integer() && c->type.dtype().is_integer();
      return ints ? divisor(c->a) : 1;
    }
    const Binary* b = as<Binary>(e);
    if (!b) return 1;
    if (b->op == BinaryOp::mul) return std::min(divisor(b->a) * divisor(b->b), kCap);
    const bool sum = b->op == BinaryOp::add || b->op == BinaryOp::sub || b->op == BinaryOp::mod;
    return sum ? std::gcd(divisor(b->a), divisor(b->b)) : 1;
  }
  static void check_pure(const Expr& e, SourceLoc loc) {
    visit_all(e, [&](const Node& n) {
      const Prim* p = as<Prim>(&n);
      HIDET_REQUIRE(n.kind != Kind::Call && (!p || find_primitive(p->name)->pure), ErrorCode::usage,
                    loc.text(), "the index of a vector, whose elements lie apart, calls '",
                    p              ? p->name
                    : as<Call>(&n) ? as<Call>(&n)->callee
                                   : "",
                    "'; bind it with let");
    });
  }
  static std::vector<Expr> moved(std::vector<Expr> indices, int by) {
    indices.back() = make_binary(BinaryOp::add, as_index(indices.back()), make_int(by, Type(i32)));
    return indices;
  }
  /// The value and the indices are taken before the first store.
  static Stmt store(const ElementStore& e, const std::vector<Expr>& indices, const Expr& value) {
    std::vector<Stmt> out;
    const auto bind = [&](const char* name, const Expr& v) -> Expr {
      const VarRef var = make_var(name, v->type);
      out.push_back(make_stmt<DeclVar>(e.loc, var, v));
      return var;
    };
    const Expr vector = bind("lanes", value);
    std::vector<Expr> bound;
    for (const Expr& i : indices) bound.push_back(is_const_int(i) ? i : bind("at", i));
    for (int i = 0; i < value->type.lanes(); i++)
      out.push_back(make_stmt<ElementStore>(e.loc, e.tensor, moved(bound, i),
                                            make_lane(vector, make_int(i, Type(i32))), false));
    return make_seq(std::move(out));
  }

  bool any_ = false;  ///< vectors of elements
  Rewriter rewriter_;
  std::unordered_map<const Node*, Expr> values_;                  ///< of immutable variables
  std::unordered_map<const Node*, std::pair<Expr, Expr>> loops_;  ///< begin and step
};

}  // namespace

Pass split_vectors() {
  return stmt_pass("split-vectors", [](const Stmt& body) { return Splitter(body)(body); });
}

}  // namespace hidet::ir
