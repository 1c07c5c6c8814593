// tensors.cpp - guarded accesses become conditions; tensors become pointers and flat arrays.
// lower-guards needs: nothing.  Leaves: no guarded Element or ElementStore.
// lower-tensors needs: lower-guards.  Leaves: no Element, ElementStore; AddressOf and DeclTensor of flat arrays alone.
#include "transforms/util.h"

#include <hidet/runtime/error.h>

namespace hidet::ir {
namespace {

Expr inside(const Expr& tensor, const std::vector<Expr>& indices) {
  const std::vector<Expr>& shape = tensor->type.tensor_info().shape;
  std::vector<Expr> conditions;
  for (size_t d = 0; d < indices.size(); d++) {
    const Expr i = as_index(indices[d]);
    conditions.push_back(make_binary(BinaryOp::le, make_int(0, i->type), i));
    conditions.push_back(make_binary(BinaryOp::lt, i, as_index(shape[d])));
  }
  return all_of(conditions);
}

/// A tensor's storage after lowering: the pointer or flat array, and how indices become offsets.
struct Storage {
  Expr base;
  TensorInfo info;
};
using Storages = std::unordered_map<const Node*, Storage>;

/// Every offset is known to fit 32 bits.
bool fits_i32(const TensorInfo& t) {
  std::vector<Expr> shape;
  for (const Expr& e : t.shape) {
    if (!is_const_int(e)) return false;
    shape.push_back(make_cast(e, Type(i64)));
  }
  int64_t span = 0;
  return is_const_int(t.layout.span(shape), &span) && span < (int64_t{1} << 31);
}

Expr offset_of(const Storage& s, std::vector<Expr> indices) {
  const bool wide = s.info.scope == Scope::global && !fits_i32(s.info);
  std::vector<Expr> shape = s.info.shape;
  for (Expr& i : indices)
    i = make_cast(i, Type(wide || i->type.dtype().bits() == 64 ? i64 : i32), i->loc);
  if (wide)
    for (Expr& n : shape) n = make_cast(n, Type(i64), n->loc);
  return s.info.layout.offset(shape, indices);
}

const Storage& storage_of(const Storages& storages, const Expr& tensor) {
  auto it = storages.find(tensor.get());
  const Var* v = as<Var>(tensor);
  HIDET_CHECK(it != storages.end(), "tensor '", v ? v->name : "?", "' is used outside its scope");
  return it->second;
}

void declare_param(Function& f, size_t i, Storages& storages) {
  const VarRef old = f.params[i];
  if (!old->type.is_tensor()) return;
  f.params[i] = make_var(old->name, Type::pointer(Type(old->type.dtype())), false, old->loc);
  storages[old.get()] = {f.params[i], old->type.tensor_info()};
}

Stmt declare(const DeclTensor& d, const Expr& data, Storages& storages) {
  const TensorInfo& info = d.var->type.tensor_info();
  if (data) {
    const VarRef p = make_var(d.var->name, Type::pointer(Type(info.dtype)), false, d.loc);
    storages[d.var.get()] = {p, info};
    return make_stmt<DeclVar>(d.loc, p, make_pointer_cast(data, p->type, d.loc));
  }
  TensorInfo flat{info.dtype, {info.layout.span(info.shape)}, {}, info.scope};
  const VarRef v = make_var(d.var->name, Type::tensor(flat), false, d.loc);
  storages[d.var.get()] = {make_address(v, {make_int(0, Type(i32))}), info};
  return make_stmt<DeclTensor>(d.loc, v, Expr());
}

/// Global tensors become flat arrays.
Storages lower_globals(Module& module) {
  Storages storages;
  for (GlobalVar& g : module.globals) {
    if (!g.var->type.is_tensor()) continue;
    const TensorInfo& info = g.var->type.tensor_info();
    const VarRef flat = make_var(
        g.var->name, Type::tensor({info.dtype, {info.layout.span(info.shape)}, {}, info.scope}),
        false, g.var->loc);
    storages[g.var.get()] = {make_address(flat, {make_int(0, Type(i32))}), info};
    g.var = flat;
  }
  return storages;
}

Function lower_function(const Function& f, Storages storages) {
  Function out = f;
  for (size_t i = 0; i < out.params.size(); i++) declare_param(out, i, storages);
  Rewriter r;
  r.on([&](Rewriter& self, const DeclTensor& d) -> Stmt {
    return declare(d, self(d.data), storages);
  });
  r.on([&](Rewriter& self, const Element& e) -> Expr {
    const Storage& s = storage_of(storages, e.tensor);
    return make_load(s.base, offset_of(s, self(e.indices)), e.type.lanes(), e.loc);
  });
  r.on([&](Rewriter& self, const ElementStore& e) -> Stmt {
    const Storage& s = storage_of(storages, e.tensor);
    return make_stmt<Store>(e.loc, s.base, offset_of(s, self(e.indices)), self(e.value));
  });
  r.on([&](Rewriter& self, const AddressOf& a) -> Expr {
    const Storage& s = storage_of(storages, a.tensor);
    return make_binary(BinaryOp::add, s.base, offset_of(s, self(a.indices)), a.loc);
  });
  // A tensor that is passed on or used as a pointer.
  r.on([&](Rewriter&, const Var& v) -> Expr {
    auto it = storages.find(&v);
    return it == storages.end() ? Expr(&v) : it->second.base;
  });
  out.body = r(f.body);
  return out;
}

}  // namespace

Expr as_index(const Expr& e) {
  const DType t = e->type.dtype();
  if (is_const_int(e) || (t.is_signed() && t.bits() >= 32)) return e;
  return make_cast(e, Type(t.bits() < 32 ? i32 : i64), e->loc);
}

Expr all_of(const std::vector<Expr>& conditions) {
  Expr all = make_bool(true);
  for (const Expr& c : conditions) all = make_binary(BinaryOp::logical_and, all, c);
  return all;
}

Pass lower_guards() {
  Pass pass = stmt_pass("lower-guards", [](const Stmt& body) {
    return rewrite(
        body,
        [](Rewriter& self, const Element& e) -> Expr {
          if (!e.guarded) return self.children(e);
          const std::vector<Expr> indices = self(e.indices);
          const Expr read = make_element(e.tensor, indices, false, e.type.lanes(), e.loc);
          return make_select(inside(e.tensor, indices), read,
                             make_cast(make_const(0, e.type.dtype()), e.type), e.loc);
        },
        [](Rewriter& self, const ElementStore& e) -> Stmt {
          const std::vector<Expr> indices = self(e.indices);
          const Stmt store =
              make_stmt<ElementStore>(e.loc, e.tensor, indices, self(e.value), false);
          return e.guarded ? Stmt(make_stmt<If>(e.loc, inside(e.tensor, indices), store, Stmt()))
                           : store;
        });
  });
  pass.gone = [](const Node& n) {
    const Element* read = as<Element>(&n);
    const ElementStore* write = as<ElementStore>(&n);
    return (read && read->guarded) || (write && write->guarded);
  };
  return pass;
}

Pass lower_tensors() {
  return {"lower-tensors",
          [](const Module& module) {
            Module out = module;
            const Storages globals = lower_globals(out);
            for (Function& f : out.functions) f = lower_function(f, globals);
            return out;
          },
          [](const Node& n) { return n.kind == Kind::Element || n.kind == Kind::ElementStore; }};
}

}  // namespace hidet::ir
