// verify.cpp - the verifier: names, scopes of variables, jumps, results, primitives; calls (call_rules.cpp), types (verify_types.cpp),
// memory and launches (verify_memory.cpp), barriers (verify_barriers.cpp).
// Needs: any module that was recorded, parsed or made by passes. Threading: pure.
#include "core/verify_parts.h"

#include <hidet/ir/call_rules.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <set>
#include <unordered_set>

namespace hidet::ir {
namespace {

/// True where control cannot reach the end of `s`.
bool always_returns(const Stmt& s) {
  if (!s) return false;
  if (const Seq* seq = as<Seq>(s)) return !seq->body.empty() && always_returns(seq->body.back());
  if (const If* branch = as<If>(s))
    return always_returns(branch->then) && always_returns(branch->otherwise);
  return s->kind == Kind::Return;
}

class FunctionVerifier {
 public:
  FunctionVerifier(const Module& m, const Function& f, bool lowered)
      : module_(m), f_(f), lowered_(lowered) {
    for (const GlobalVar& g : m.globals) visible_.insert(g.var.get());
    for (const VarRef& p : f.params) visible_.insert(p.get());
  }
  void run() {
    for (const VarRef& p : f_.params) use_shape(p->type);
    if (f_.kind == FuncKind::cuda_kernel) launch_bounds();
    check_memory(f_);
    if (f_.body) stmt(f_.body);
    HIDET_REQUIRE(f_.returns.is_void() || !f_.body || always_returns(f_.body), ErrorCode::usage,
                  f_.loc.text(), "the function '", f_.name, "' returns ", f_.returns.text(),
                  " on some paths only");
  }

 private:
  void launch_bounds() {
    const LaunchInfo& l = f_.launch;
    for (const auto* list : {&l.grid, &l.block, &l.cluster})
      for (const Expr& e : *list) use(e);
    use(l.shared_bytes);
    check_launch_bounds(f_);
  }
  void use_shape(const Type& t) {
    if (!t.is_tensor()) return;
    for (const Expr& e : t.tensor_info().shape) use(e);
    for (const Expr& e : t.tensor_info().layout.strides) use(e);
  }

  /// Constant indices of constant extents, in code that may run. Passes may meet them behind conditions that they have not folded yet.
  void inside(const Node& n) const {
    if (lowered_ || dead_) return;
    const Element* read = as<Element>(&n);
    const ElementStore* write = as<ElementStore>(&n);
    const AddressOf* address = as<AddressOf>(&n);
    if ((!read || read->guarded) && (!write || write->guarded) && !address) return;
    const Expr& tensor = read ? read->tensor : write ? write->tensor : address->tensor;
    const auto& indices = read ? read->indices : write ? write->indices : address->indices;
    const int lanes = read ? read->type.lanes() : write ? write->value->type.lanes() : 1;
    const std::vector<Expr>& shape = tensor->type.tensor_info().shape;
    for (size_t d = 0; d < indices.size(); d++) {
      int64_t i = 0, extent = 0;
      if (!is_const_int(indices[d], &i) || !is_const_int(shape[d], &extent)) continue;
      const int64_t count = d + 1 == indices.size() ? lanes : 1;
      const int64_t most =
          address ? extent : extent - count;  // behind the end lies an address, too
      const Var* v = as<Var>(tensor);
      HIDET_REQUIRE(i >= 0 && i <= most, ErrorCode::usage, place(n), count, " from index ", i,
                    " in dimension ", d, " of '", v ? v->name : "",
                    "' reaches outside; the extent is ", extent, " (in '", f_.name, "')");
    }
  }

  std::string place(const Node& n) const { return n.loc.line ? n.loc.text() : f_.loc.text(); }

  void use(const Expr& e) {
    if (!e) return;
    visit_all(e, [&](const Node& n) {
      const Var* v = as<Var>(&n);
      if (v && !visible_.count(v) && !bound_.count(v))
        throw Error(ErrorCode::usage,
                    "the variable '" + v->name + "' of '" + f_.name + "' is used outside its scope",
                    place(*v));
      if (const Reduce* r = as<Reduce>(&n))
        for (const VarRef& a : r->axes) bound_.insert(a.get());
      if (const ArgReduce* r = as<ArgReduce>(&n)) bound_.insert(r->axis.get());
      HIDET_CHECK(!lowered_ || (n.kind != Kind::Reduce && n.kind != Kind::ArgReduce),
                  "a task-level node in '", f_.name, "'");
      if (const Prim* p = as<Prim>(&n)) prim(*p);
      check_types(n, f_, module_);
      inside(n);
    });
  }
  void prim(const Prim& p) {
    const Primitive* row = find_primitive(p.name);
    if (!row) return;
    const bool cuda = is_cuda(f_.kind);
    HIDET_REQUIRE(row->target == PrimTarget::any || (row->target == PrimTarget::cuda) == cuda,
                  ErrorCode::usage, place(p), "the primitive '", p.name, "' is used in the ",
                  name(f_.kind), " function '", f_.name, "'; it is ",
                  row->target == PrimTarget::cuda ? "for CUDA" : "for the CPU", " only");
  }
  /// A body in a scope of its own.
  void nested(const Stmt& s, bool never_runs = false) {
    if (!s) return;
    const size_t outside = defined_.size();
    const bool outer = std::exchange(dead_, dead_ || never_runs);
    stmt(s);
    dead_ = outer;
    leave(outside);
  }
  void define(const VarRef& v) {
    HIDET_REQUIRE(visible_.insert(v.get()).second, ErrorCode::usage, place(*v), "the variable '",
                  v->name, "' of '", f_.name, "' is declared twice");
    defined_.push_back(v.get());
  }
  /// Forgets all but the first `outside` variables.
  void leave(size_t outside) {
    for (; defined_.size() > outside; defined_.pop_back()) visible_.erase(defined_.back());
  }

  /// A body that break and continue may leave.
  void loop_body(const Stmt& s, const Node& at, const std::vector<VarRef>& vars) {
    const Node* const outer = std::exchange(loop_, &at);
    const size_t outside = defined_.size();
    for (const VarRef& v : vars) define(v);
    nested(s);
    leave(outside);
    loop_ = outer;
  }
  void jump(const Stmt& s) const {
    const bool is_break = s->kind == Kind::Break;
    const For* loop = as<For>(loop_);
    const bool parallel = loop && loop->how == LoopKind::parallel;
    const bool mapped = loop_ && loop_->kind == Kind::MappingFor;
    HIDET_REQUIRE(loop_ && !mapped && !(is_break && parallel), ErrorCode::usage, place(*s), "a ",
                  is_break ? "break" : "continue",
                  parallel ? " in a parallel loop"
                  : mapped ? " in a task mapping"
                           : " outside a loop",
                  " in '", f_.name, "'");
  }

  void stmt(const Stmt& s) {
    check_types(*s, f_, module_);
    inside(*s);
    switch (s->kind) {
      case Kind::Seq:
        for (const Stmt& child : as<Seq>(s)->body) stmt(child);
        return;
      case Kind::DeclVar: use(as<DeclVar>(s)->init); return define(as<DeclVar>(s)->var);
      case Kind::DeclTensor:
        use(as<DeclTensor>(s)->data);
        use_shape(as<DeclTensor>(s)->var->type);
        return define(as<DeclTensor>(s)->var);
      case Kind::Assign: {
        const Assign& a = *as<Assign>(s);
        const Var* v = as<Var>(a.var);
        HIDET_REQUIRE(v && v->is_mutable, ErrorCode::usage, place(a), "'", v ? v->name : "?",
                      "' of '", f_.name, "' is not a variable that can be assigned");
        use(a.var);
        use(a.value);
        return;
      }
      case Kind::For: {
        const For& f = *as<For>(s);
        use(f.begin), use(f.end), use(f.step);
        return loop_body(f.body, f, {f.var});
      }
      case Kind::MappingFor: {
        const MappingFor& m = *as<MappingFor>(s);
        use(m.worker);
        return loop_body(m.body, m, m.vars);
      }
      case Kind::While: use(as<While>(s)->cond); return loop_body(as<While>(s)->body, *s, {});
      case Kind::Break:
      case Kind::Continue: return jump(s);
      case Kind::If: {
        const If& i = *as<If>(s);
        use(i.cond);
        int64_t holds = 0;
        const bool known = is_const_int(i.cond, &holds);
        nested(i.then, known && !holds);
        return nested(i.otherwise, known && holds);
      }
      case Kind::Launch: check_launch(*as<Launch>(s), f_); [[fallthrough]];
      default: for_each_child(*s, [&](const Expr& e) { use(e); }, [&](const Stmt& c) { stmt(c); });
    }
  }

  const Module& module_;
  const Function& f_;
  bool lowered_;
  bool dead_ = false;           ///< under a condition that never holds
  const Node* loop_ = nullptr;  ///< the innermost around
  std::unordered_set<const Node*> visible_, bound_;
  std::vector<const Node*> defined_;  ///< inside the function, innermost last
};

}  // namespace

void verify(const Module& module, bool lowered) {
  check_calls(module);
  check_globals(module);
  std::set<std::string> names;
  for (const ExternFunc& e : module.externs) names.insert(e.name);
  for (const Function& f : module.functions) {
    HIDET_REQUIRE(names.insert(f.name).second, ErrorCode::usage, f.loc.text(),
                  "the module has two functions '", f.name, "'");
    FunctionVerifier(module, f, lowered).run();
  }
  check_barriers(module);
}

}  // namespace hidet::ir
