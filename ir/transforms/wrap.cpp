// wrap.cpp - signed arithmetic that may pass its type, as unsigned arithmetic: integers wrap in the IR, while signed overflow has no
// meaning in CUDA C++, where no flag gives it one. (The CPU's compilers are told: -fwrapv.)
// One rule: a sum, difference, product or negation of i32 or i64 scalars whose result may not fit, as far as bounds tell, is done in the
// unsigned type of the same size, between casts that keep all bits. What surely fits stays as it is: compilers widen such indices
// and move them along with loops. Narrower integers are computed in wider ones by the emitter.
// Needs: nothing; behind the other passes, which know signed arithmetic better.  Leaves: values as they were.
#include "transforms/bounds.h"
#include "transforms/util.h"

namespace hidet::ir {
namespace {

bool concerned(const Type& t) { return t == Type(i32) || t == Type(i64); }
Type unsigned_of(const Type& t) { return Type(t.dtype() == i32 ? u32 : u64); }

/// The bits of `e` without a sign; a cast to its signed type was one that this pass made, or may be left out as well.
Expr bits_of(const Expr& e) {
  const Type to = unsigned_of(e->type);
  const Cast* c = as<Cast>(e);
  return c && c->how == CastKind::value && c->a->type == to ? c->a : make_cast(e, to, e->loc);
}

class Wrapper {
 public:
  explicit Wrapper(const Function& f) : bounds_(f) {
    rewriter_.on([this](Rewriter& self, const Binary& b) -> Expr {
      const Expr changed = self.children(b);
      if (b.op > BinaryOp::mul || !concerned(b.type) || !may_pass(ref(b))) return changed;
      const Binary& n = *as<Binary>(changed);
      return make_cast(make_binary(n.op, bits_of(n.a), bits_of(n.b), n.loc), n.type, n.loc);
    });
    rewriter_.on([this](Rewriter& self, const Unary& u) -> Expr {
      const Expr changed = self.children(u);
      const bool passes = u.op == UnaryOp::neg && concerned(u.type) &&
                          bounds_.of(u.a).low == whole_range(u.type.dtype()).low;
      if (!passes) return changed;
      const Unary& n = *as<Unary>(changed);
      return make_cast(make_unary(UnaryOp::neg, bits_of(n.a), n.loc), n.type, n.loc);
    });
  }
  Stmt operator()(const Stmt& body) { return rewriter_(body); }

 private:
  /// Bounds of what may wrap are the whole type.
  bool may_pass(const Expr& e) {
    const Interval found = bounds_.of(e), all = whole_range(e->type.dtype());
    return found.low == all.low && found.high == all.high;
  }
  Bounds bounds_;
  Rewriter rewriter_;
};

}  // namespace

Pass wrap_integers() {
  return function_pass("wrap-integers", [](const Function& f, const Module&) {
    Function out = f;
    if (f.body && is_cuda(f.kind)) out.body = Wrapper(f)(f.body);
    return out;
  });
}

}  // namespace hidet::ir
