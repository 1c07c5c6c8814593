// node.cpp - the operations derived from the fields that each node declares: one table row a kind.
#include <hidet/ir/node.h>
#include <hidet/ir/rewriter.h>
#include <hidet/ir/stmt.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace hidet::ir {
namespace {

/// Corresponding variables of two sides that are compared.
struct Pairing {
  std::unordered_map<const Node*, const Node*> left, right;
};

bool equal_nodes(const Node* a, const Node* b, Pairing& vars);

bool equal_vars(const Var* a, const Var* b, Pairing& vars) {
  if (a == b && !vars.left.count(a) && !vars.right.count(b)) return true;
  auto l = vars.left.find(a);
  auto r = vars.right.find(b);
  if (l != vars.left.end() || r != vars.right.end())
    return l != vars.left.end() && r != vars.right.end() && l->second == b && r->second == a;
  return false;
}

bool equal_exprs(const std::vector<Expr>& a, const std::vector<Expr>& b, Pairing& vars) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Expr& x, const Expr& y) {
    return equal_nodes(x.get(), y.get(), vars);
  });
}

bool equal_layouts(const Layout& a, const Layout& b, Pairing& vars) {
  const auto targets = [&](const auto& x, const auto& y) {
    return x == y || (x && y && equal_layouts(*x, *y, vars));
  };
  return a.tag == b.tag && a.base == b.base && a.bits == b.bits && a.shift == b.shift &&
         a.tile == b.tile && equal_exprs(a.strides, b.strides, vars) && targets(a.inner, b.inner) &&
         targets(a.outer, b.outer);
}

bool equal_types(const Type& a, const Type& b, Pairing& vars) {
  if (a.tag() != b.tag() || a.lanes() != b.lanes()) return false;
  switch (a.tag()) {
    case Type::Tag::none:
    case Type::Tag::string: return true;
    case Type::Tag::pointer: return equal_types(a.pointee(), b.pointee(), vars);
    case Type::Tag::tensor: {
      const TensorInfo &x = a.tensor_info(), &y = b.tensor_info();
      return x.dtype == y.dtype && x.scope == y.scope && equal_layouts(x.layout, y.layout, vars) &&
             equal_exprs(x.shape, y.shape, vars);
    }
    default: return a.dtype() == b.dtype();
  }
}

/// A variable that a node defines: pairs the two sides.
bool pair_vars(const VarRef& a, const VarRef& b, Pairing& vars) {
  if (!a || !b) return !a && !b;
  if (!equal_types(a->type, b->type, vars) || a->is_mutable != b->is_mutable) return false;
  vars.left[a.get()] = b.get();
  vars.right[b.get()] = a.get();
  return true;
}

// --- equality of fields, by the field's type
template <class T>
bool equal_field(const T& a, const T& b, Pairing&) {
  return a == b;
}
bool equal_field(const double& a, const double& b, Pairing&) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
bool equal_field(const Expr& a, const Expr& b, Pairing& v) {
  return equal_nodes(a.get(), b.get(), v);
}
bool equal_field(const Stmt& a, const Stmt& b, Pairing& v) {
  return equal_nodes(a.get(), b.get(), v);
}
bool equal_field(const VarRef& a, const VarRef& b, Pairing& v) { return pair_vars(a, b, v); }
template <class T>
  requires requires(const T& x) { x.get(); }
bool equal_list(const std::vector<T>& a, const std::vector<T>& b, Pairing& v) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (!equal_field(a[i], b[i], v)) return false;
  return true;
}
bool equal_field(const std::vector<Expr>& a, const std::vector<Expr>& b, Pairing& v) {
  return equal_list(a, b, v);
}
bool equal_field(const std::vector<Stmt>& a, const std::vector<Stmt>& b, Pairing& v) {
  return equal_list(a, b, v);
}
bool equal_field(const std::vector<VarRef>& a, const std::vector<VarRef>& b, Pairing& v) {
  return equal_list(a, b, v);
}

// --- children of fields
using ExprVisit = std::function<void(const Expr&)>;
using StmtVisit = std::function<void(const Stmt&)>;
template <class T>
void visit_field(const T&, const ExprVisit&, const StmtVisit&) {}
void visit_field(const Expr& e, const ExprVisit& expr, const StmtVisit&) {
  if (e) expr(e);
}
void visit_field(const Stmt& s, const ExprVisit&, const StmtVisit& stmt) {
  if (s) stmt(s);
}
void visit_field(const VarRef& v, const ExprVisit& expr, const StmtVisit&) {
  if (v) expr(v);
}
void visit_field(const std::vector<Expr>& l, const ExprVisit& expr, const StmtVisit& s) {
  for (auto& e : l) visit_field(e, expr, s);
}
void visit_field(const std::vector<Stmt>& l, const ExprVisit& e, const StmtVisit& stmt) {
  for (auto& s : l) visit_field(s, e, stmt);
}
void visit_field(const std::vector<VarRef>& l, const ExprVisit& expr, const StmtVisit& s) {
  for (auto& v : l) visit_field(v, expr, s);
}

// --- mapping of fields: the new value goes to `out` where something changed
template <class T>
bool map_field(const T&, const ChildMap&, T&) {
  return false;
}
template <class T, class F>
bool map_one(const T& field, const F& f, T& out) {
  if (!field || !f) return false;
  T mapped = f(field);
  if (same(mapped, field)) return false;
  out = std::move(mapped);
  return true;
}
bool map_field(const Expr& e, const ChildMap& m, Expr& out) { return map_one(e, m.expr, out); }
bool map_field(const Stmt& s, const ChildMap& m, Stmt& out) { return map_one(s, m.stmt, out); }
bool map_field(const VarRef& v, const ChildMap& m, VarRef& out) {
  if (!v || !m.expr) return false;
  Expr mapped = m.expr(v);
  if (same(mapped, v)) return false;
  const Var* var = as<Var>(mapped);
  if (!var) return false;  // a definition stays where its uses are replaced by a value
  out = ref(*var);
  return true;
}
template <class T>
bool map_list(const std::vector<T>& list, const ChildMap& m, std::vector<T>& out) {
  bool changed = false;
  for (size_t i = 0; i < list.size(); i++) {
    T mapped;
    if (!map_field(list[i], m, mapped)) continue;
    if (!changed) out = list;
    changed = true;
    out[i] = std::move(mapped);
  }
  return changed;
}
bool map_field(const std::vector<Expr>& l, const ChildMap& m, std::vector<Expr>& out) {
  return map_list(l, m, out);
}
bool map_field(const std::vector<Stmt>& l, const ChildMap& m, std::vector<Stmt>& out) {
  return map_list(l, m, out);
}
bool map_field(const std::vector<VarRef>& l, const ChildMap& m, std::vector<VarRef>& out) {
  return map_list(l, m, out);
}
/// Maps one field; `copy` of the node is made where the first field changes.
template <class T, class Field>
void map_into(const T& node, T*& copy, Field field, const ChildMap& m) {
  std::remove_cvref_t<decltype(node.*field)> mapped{};
  if (!map_field(node.*field, m, mapped)) return;
  if (!copy) copy = new T(node);
  copy->*field = std::move(mapped);
}

// --- hash of fields
void mix(size_t& h, size_t v) { h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2); }
size_t hash_node(const Node* n);
template <class T>
void hash_field(size_t& h, const T& f) {
  if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) mix(h, static_cast<size_t>(f));
}
void hash_field(size_t& h, const std::string& s) { mix(h, std::hash<std::string>()(s)); }
void hash_field(size_t& h, const double& d) { mix(h, std::bit_cast<uint64_t>(d)); }
void hash_field(size_t& h, const Expr& e) { mix(h, hash_node(e.get())); }
void hash_field(size_t& h, const Stmt& s) { mix(h, hash_node(s.get())); }
void hash_field(size_t& h, const std::vector<Expr>& l) {
  for (auto& e : l) hash_field(h, e);
}
void hash_field(size_t& h, const std::vector<Stmt>& l) {
  for (auto& s : l) hash_field(h, s);
}

/// What one kind can do.
struct NodeOps {
  const char* name;
  void (*visit)(const Node&, const ExprVisit&, const StmtVisit&);
  Node* (*copy_mapped)(const Node&, const ChildMap&);  ///< null where nothing changed
  bool (*equal)(const Node&, const Node&, Pairing&);
  size_t (*hash)(const Node&);
  void (*destroy)(const Node&);
};

template <class T>
constexpr NodeOps ops_of(const char* name) {
  return {
      name,
      [](const Node& n, const ExprVisit& e, const StmtVisit& s) {
        const T& node = static_cast<const T&>(n);
        std::apply([&](auto... f) { (visit_field(node.*f, e, s), ...); }, T::fields());
      },
      [](const Node& n, const ChildMap& m) -> Node* {
        const T& node = static_cast<const T&>(n);
        T* copy = nullptr;
        std::apply([&](auto... f) { (map_into(node, copy, f, m), ...); }, T::fields());
        return copy;
      },
      [](const Node& a, const Node& b, Pairing& v) {
        const T &x = static_cast<const T&>(a), &y = static_cast<const T&>(b);
        return std::apply([&](auto... f) { return (equal_field(x.*f, y.*f, v) && ...); },
                          T::fields());
      },
      [](const Node& n) {
        const T& node = static_cast<const T&>(n);
        size_t h = static_cast<size_t>(T::kKind);
        std::apply([&](auto... f) { (hash_field(h, node.*f), ...); }, T::fields());
        return h;
      },
      [](const Node& n) { delete &static_cast<const T&>(n); },
  };
}

constexpr NodeOps kOps[] = {
#define HIDET_NODE(name) ops_of<name>(#name),
#include <hidet/ir/nodes.inc>
#undef HIDET_NODE
};
const NodeOps& ops(Kind k) { return kOps[static_cast<size_t>(k)]; }
bool is_expr(const Node& n) { return n.kind < Kind::Seq; }

bool equal_nodes(const Node* a, const Node* b, Pairing& vars) {
  if (!a || !b) return a == b;
  // One node on both sides: equal, where no variable inside could stand for another.
  if (a == b && vars.left.empty()) return true;
  if (a->kind != b->kind) return false;
  if (a->kind == Kind::Var)
    return equal_vars(static_cast<const Var*>(a), static_cast<const Var*>(b), vars);
  if (is_expr(*a) && !equal_types(static_cast<const ExprNode*>(a)->type,
                                  static_cast<const ExprNode*>(b)->type, vars))
    return false;
  return ops(a->kind).equal(*a, *b, vars);
}

size_t hash_node(const Node* n) {
  if (!n) return 0;
  if (n->kind == Kind::Var) return 7;
  return ops(n->kind).hash(*n);
}

}  // namespace

const char* kind_name(Kind kind) { return ops(kind).name; }

std::string SourceLoc::text() const {
  if (!file) return "";
  const char* slash = std::strrchr(file, '/');
  return std::string(slash ? slash + 1 : file) + ":" + std::to_string(line);
}

namespace detail {
void destroy(const Node* node) {
  // Children whose count falls to zero while a node is deleted are queued, not deleted in place.
  static thread_local std::vector<const Node*>* queue = nullptr;
  if (queue) {
    queue->push_back(node);
    return;
  }
  std::vector<const Node*> pending{node};
  queue = &pending;
  while (!pending.empty()) {
    const Node* next = pending.back();
    pending.pop_back();
    ops(next->kind).destroy(*next);
  }
  queue = nullptr;
}
}  // namespace detail

bool equal(const Expr& a, const Expr& b) {
  Pairing vars;
  return equal_nodes(a.get(), b.get(), vars);
}
bool equal(const Stmt& a, const Stmt& b) {
  Pairing vars;
  return equal_nodes(a.get(), b.get(), vars);
}
bool operator==(const Type& a, const Type& b) {
  Pairing vars;
  return equal_types(a, b, vars);
}
bool operator==(const Layout& a, const Layout& b) {
  Pairing vars;
  return equal_layouts(a, b, vars);
}

namespace {
bool equal_functions(const Function& a, const Function& b, Pairing& vars) {
  const auto nodes = [&](const auto& x, const auto& y) {
    return equal_nodes(x.get(), y.get(), vars);
  };
  return a.name == b.name && a.kind == b.kind && equal_list(a.params, b.params, vars) &&
         equal_types(a.returns, b.returns, vars) &&
         equal_exprs(a.launch.grid, b.launch.grid, vars) &&
         equal_exprs(a.launch.block, b.launch.block, vars) &&
         equal_exprs(a.launch.cluster, b.launch.cluster, vars) &&
         nodes(a.launch.shared_bytes, b.launch.shared_bytes) &&
         a.launch.min_blocks == b.launch.min_blocks && a.no_alias == b.no_alias &&
         nodes(a.body, b.body);
}

template <class T, class F>
bool equal_all(const std::vector<T>& a, const std::vector<T>& b, const F& one) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), one);
}

bool equal_modules(const Module& a, const Module& b) {
  Pairing vars;
  const auto same_bits = [&](const double& x, const double& y) { return equal_field(x, y, vars); };
  return a.name == b.name &&
         equal_all(a.globals, b.globals,
                   [&](const GlobalVar& x, const GlobalVar& y) {
                     return x.on_cuda == y.on_cuda && equal_all(x.init, y.init, same_bits) &&
                            pair_vars(x.var, y.var, vars);
                   }) &&
         equal_all(a.externs, b.externs,
                   [&](const ExternFunc& x, const ExternFunc& y) {
                     return x.name == y.name && x.params == y.params && x.returns == y.returns;
                   }) &&
         equal_all(a.functions, b.functions, [&](const Function& x, const Function& y) {
           return equal_functions(x, y, vars);
         });
}
}  // namespace

bool equal(const Module& a, const Module& b) {
  bool result = false;
  with_large_stack([&] { result = equal_modules(a, b); });
  return result;
}

size_t structural_hash(const Expr& e) { return hash_node(e.get()); }

void for_each_child(const Node& node, const ExprVisit& expr, const StmtVisit& stmt) {
  ops(node.kind).visit(node, expr, stmt);
}

Ref<Node> map_children(const Node& node, const ChildMap& map) {
  const Node* copy = ops(node.kind).copy_mapped(node, map);
  return Ref<Node>(copy ? copy : &node);
}

}  // namespace hidet::ir
