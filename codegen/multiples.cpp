// multiples.cpp - powers of two that divide indices and addresses.
#include "multiples.h"

#include <hidet/ir/rewriter.h>

#include <algorithm>

namespace hidet::codegen {
using namespace ir;

namespace {
constexpr int64_t kMost = int64_t{1} << 20;
constexpr int64_t kSharedAlignment = 128;

int64_t power_of_two(int64_t v) { return v == 0 ? kMost : std::min(kMost, v & -v); }
bool is_integer(const Type& t) { return t.is_scalar() && t.dtype().is_integer(); }
}  // namespace

Multiples::Multiples(const Function& f) {
  if (!f.body) return;
  visit_all(f.body, [&](const Node& n) {
    if (const DeclVar* d = as<DeclVar>(&n))
      if (!d->var->is_mutable && d->init) values_.emplace(d->var.get(), d->init);
    if (const For* l = as<For>(&n)) loops_.emplace(l->var.get(), std::pair(l->begin, l->step));
    const Prim* p = as<Prim>(&n);
    if (p && p->name == "assume_aligned" && p->args[0]->kind == Kind::Var)
      promised_[p->args[0].get()] = p->attrs.at(0);
  });
}

int64_t Multiples::of(const Expr& e) {
  int64_t constant;
  if (is_const_int(e, &constant)) return power_of_two(constant);
  if (auto it = known_.find(e.get()); it != known_.end()) return it->second;
  int64_t result = 1;
  if (const Binary* b = as<Binary>(e)) {
    const int64_t x = of(b->a), y = of(b->b);
    switch (b->op) {
      case BinaryOp::mul: result = std::min(kMost, x * y); break;
      case BinaryOp::add:
      case BinaryOp::sub:
      case BinaryOp::min:
      case BinaryOp::max:
      case BinaryOp::mod:  // a - a / b * b
      case BinaryOp::floormod: result = std::min(x, y); break;
      default: break;
    }
  } else if (const Select* s = as<Select>(e)) {
    result = std::min(of(s->a), of(s->b));
  } else if (const Cast* c = as<Cast>(e)) {
    const bool wraps_well =
        c->how == CastKind::value && is_integer(c->type) && is_integer(c->a->type);
    if (wraps_well)
      result = std::min(of(c->a), int64_t{1} << std::min(20, c->type.dtype().bits() - 1));
  } else if (auto value = values_.find(e.get()); value != values_.end()) {
    result = of(value->second);
  } else if (auto loop = loops_.find(e.get()); loop != loops_.end()) {
    result = std::min(of(loop->second.first), of(loop->second.second));
  }
  return known_[e.get()] = result;
}

int64_t Multiples::of_address(const Expr& pointer) {
  if (auto it = promised_.find(pointer.get()); it != promised_.end()) return it->second;
  if (auto value = values_.find(pointer.get()); value != values_.end())
    return of_address(value->second);
  if (const Cast* c = as<Cast>(pointer)) return c->how == CastKind::pointer ? of_address(c->a) : 1;
  const auto offset = [&](const Expr& base, const Expr& index, DType t) {
    return std::min(of_address(base), of(index) * power_of_two(static_cast<int64_t>(t.bytes())));
  };
  if (const Binary* b = as<Binary>(pointer))
    if (b->op == BinaryOp::add && b->type.is_pointer() && b->type.pointee().is_arithmetic())
      return offset(b->a, b->b, b->type.pointee().dtype());
  if (const AddressOf* a = as<AddressOf>(pointer)) {
    const TensorInfo& info = a->tensor->type.tensor_info();
    const bool shared = info.scope == Scope::shared || info.scope == Scope::dynamic_shared;
    if (shared && a->indices.size() == 1)
      return std::min(kSharedAlignment,
                      of(a->indices[0]) * power_of_two(static_cast<int64_t>(info.dtype.bytes())));
  }
  return 1;
}

}  // namespace hidet::codegen
