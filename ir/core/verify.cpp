// verify.cpp - the verifier: call rules, types (verify_types.cpp), scopes of variables, launch bounds, jumps,
// barriers under conditions that differ within a block.
// Needs: any module that was recorded, parsed or made by passes. Threading: pure.
#include "core/verify_types.h"

#include <hidet/ir/call_rules.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <set>
#include <unordered_set>

namespace hidet::ir {
namespace {

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
    if (f_.body) stmt(f_.body);
  }

 private:
  void launch_bounds() {
    const LaunchInfo& l = f_.launch;
    HIDET_REQUIRE(!l.grid.empty() && !l.block.empty(), ErrorCode::usage, f_.loc.text(),
                  "the kernel '", f_.name,
                  "' has no launch dimensions: call grid_dim and block_dim");
    int64_t threads = 1, n;
    for (const auto* list : {&l.grid, &l.block, &l.cluster})
      for (const Expr& e : *list) {
        use(e);
        if (list == &l.block && is_const_int(e, &n)) threads *= n;
      }
    if (l.shared_bytes) use(l.shared_bytes);
    HIDET_REQUIRE(threads >= 1 && threads <= 1024, ErrorCode::usage, f_.loc.text(), "the kernel '",
                  f_.name, "' has blocks of ", threads, " threads; 1 to 1024 are possible");
  }
  void use_shape(const Type& t) {
    if (!t.is_tensor()) return;
    for (const Expr& e : t.tensor_info().shape) use(e);
    for (const Expr& e : t.tensor_info().layout.strides) use(e);
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
      HIDET_CHECK(!lowered_ || (n.kind != Kind::Reduce && n.kind != Kind::ArgReduce),
                  "a task-level node in '", f_.name, "'");
      if (const Prim* p = as<Prim>(&n)) prim(*p);
      check_types(n, f_, module_);
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
    const bool block_wide = p.name.rfind("syncthreads", 0) == 0;
    HIDET_REQUIRE(!block_wide || !divergent_, ErrorCode::usage, place(p), "the barrier '", p.name,
                  "' in '", f_.name,
                  "' is under a condition that differs between the threads of a block (", reason_,
                  ")");
  }
  /// Differs the value between threads of a block?
  bool differs(const Expr& e) const {
    bool found = false;
    visit_all(e, [&](const Node& n) {
      const Prim* p = as<Prim>(&n);
      found = found || (p && p->name.rfind("thread_idx", 0) == 0) || differing_.count(&n);
    });
    return found;
  }
  void nested(const Stmt& s, const Expr& cond, const Node& at) {
    if (!s) return;
    const auto saved_visible = visible_;
    const bool saved = divergent_;
    const std::string saved_reason = reason_;
    if (cond && is_cuda(f_.kind) && differs(cond) && !divergent_) {
      divergent_ = true;
      reason_ = place(at);
    }
    stmt(s);
    visible_ = saved_visible;
    divergent_ = saved;
    reason_ = saved_reason;
  }
  void define(const VarRef& v, const Expr& value) {
    visible_.insert(v.get());
    if (value && differs(value)) differing_.insert(v.get());
  }

  /// A body that break and continue may leave.
  void loop_body(const Stmt& s, const Expr& cond, const Node& at, const std::vector<VarRef>& vars) {
    const Node* const outer = std::exchange(loop_, &at);
    for (const VarRef& v : vars) visible_.insert(v.get());
    nested(s, cond, at);
    for (const VarRef& v : vars) visible_.erase(v.get());
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
    switch (s->kind) {
      case Kind::Seq:
        for (const Stmt& child : as<Seq>(s)->body) stmt(child);
        return;
      case Kind::DeclVar:
        use(as<DeclVar>(s)->init);
        return define(as<DeclVar>(s)->var, as<DeclVar>(s)->init);
      case Kind::DeclTensor:
        use(as<DeclTensor>(s)->data);
        use_shape(as<DeclTensor>(s)->var->type);
        return define(as<DeclTensor>(s)->var, nullptr);
      case Kind::Assign: {
        const Assign& a = *as<Assign>(s);
        const Var* v = as<Var>(a.var);
        HIDET_REQUIRE(v && v->is_mutable, ErrorCode::usage, place(a), "'", v ? v->name : "?",
                      "' of '", f_.name, "' is not a variable that can be assigned");
        use(a.var);
        use(a.value);
        if (differs(a.value) || divergent_) differing_.insert(v);
        return;
      }
      case Kind::For: {
        const For& f = *as<For>(s);
        use(f.begin), use(f.end), use(f.step);
        if (differs(f.begin) || differs(f.end)) differing_.insert(f.var.get());
        loop_body(
            f.body,
            make_binary(BinaryOp::add, make_cast(f.begin, Type(i64)), make_cast(f.end, Type(i64))),
            f, {f.var});
        return;
      }
      case Kind::MappingFor: {
        const MappingFor& m = *as<MappingFor>(s);
        use(m.worker);
        for (const VarRef& v : m.vars) define(v, m.worker);
        return loop_body(m.body, nullptr, m, m.vars);
      }
      case Kind::While:
        use(as<While>(s)->cond);
        return loop_body(as<While>(s)->body, as<While>(s)->cond, *s, {});
      case Kind::Break:
      case Kind::Continue: return jump(s);
      case Kind::If: {
        const If& i = *as<If>(s);
        use(i.cond);
        nested(i.then, i.cond, i);
        return nested(i.otherwise, i.cond, i);
      }
      default: for_each_child(*s, [&](const Expr& e) { use(e); }, [&](const Stmt& c) { stmt(c); });
    }
  }

  const Module& module_;
  const Function& f_;
  bool lowered_, divergent_ = false;
  const Node* loop_ = nullptr;  ///< the innermost around
  std::string reason_;
  std::unordered_set<const Node*> visible_, bound_, differing_;
};

}  // namespace

void verify(const Module& module, bool lowered) {
  check_calls(module);
  std::set<std::string> names;
  for (const Function& f : module.functions) {
    HIDET_REQUIRE(names.insert(f.name).second, ErrorCode::usage, f.loc.text(),
                  "the module has two functions '", f.name, "'");
    FunctionVerifier(module, f, lowered).run();
  }
}

}  // namespace hidet::ir
