// verify_barriers.cpp - no barrier of a block where it is known that some threads do not come: under a condition, or after a way out,
// that depends on the thread, also through calls. Knows what is computed from the thread's index, an atomic or another such value,
// in variables and registers; what passes through shared or global memory is the simulator's.
// Needs: calls of functions that exist. Threading: pure.
#include "core/verify_parts.h"

#include <hidet/ir/rewriter.h>
#include <hidet/ir/value.h>
#include <hidet/runtime/error.h>

#include <set>
#include <unordered_set>

namespace hidet::ir {
namespace {

bool starts(const std::string& s, const char* with) { return s.rfind(with, 0) == 0; }
/// All threads of a block wait there, and get the same result.
bool is_barrier(const Prim& p) { return starts(p.name, "syncthreads"); }
/// Another value for each thread.
bool is_of_thread(const Node& n) {
  if (const Prim* p = as<Prim>(&n))
    return starts(p->name, "thread_idx") || starts(p->name, "atomic_");
  const Asm* a = as<Asm>(&n);
  return a && (a->text.find("%tid") != std::string::npos ||
               a->text.find("%laneid") != std::string::npos);
}

/// What calls of a function need to know.
struct Facts {
  bool waits = false;      ///< at a barrier, or calls a function that does
  bool of_thread = false;  ///< reads the thread's index, or calls a function that does
  std::set<std::string> callees;
  std::vector<bool> params;  ///< may differ between the threads of a block
};
using AllFacts = std::map<std::string, Facts>;

AllFacts facts_of(const Module& module) {
  AllFacts all;
  for (const Function& f : module.functions) {
    if (!is_cuda(f.kind) || !f.body) continue;
    Facts& facts = all[f.name];
    facts.params.resize(f.params.size());
    visit_all(f.body, [&](const Node& n) {
      const Prim* p = as<Prim>(&n);
      facts.waits = facts.waits || (p && is_barrier(*p));
      facts.of_thread = facts.of_thread || is_of_thread(n);
      if (const Call* c = as<Call>(&n)) facts.callees.insert(c->callee);
    });
  }
  for (bool grew = true; grew;) {
    grew = false;
    for (auto& [name, facts] : all)
      for (const std::string& callee : facts.callees) {
        const Facts& other = all[callee];
        grew |= (other.waits && !facts.waits) || (other.of_thread && !facts.of_thread);
        facts.waits |= other.waits;
        facts.of_thread |= other.of_thread;
      }
  }
  return all;
}

class BarrierWalk {
 public:
  BarrierWalk(const Function& f, AllFacts& all) : f_(f), all_(all) {
    const Facts& own = all_.at(f.name);
    for (size_t i = 0; i < f.params.size(); i++)
      if (own.params[i]) differing_.insert(f.params[i].get());
  }
  /// Walks until nothing more is found to differ, and judges on the way: what differs, differs still when more
  /// is known. True where more is known about a callee's parameters.
  bool run() {
    for (bool grew = true; grew;) {
      grew = false;
      grew_ = &grew;
      walk();
    }
    return callee_grew_;
  }

 private:
  /// Where threads part: a condition, or a jump under one.
  struct Reason {
    const Node* at = nullptr;
    bool left = false;
  };
  void walk() {
    reason_ = {};
    loops_.clear();
    stmt(f_.body);
  }
  std::string place(const Node& n) const { return n.loc.line ? n.loc.text() : f_.loc.text(); }

  /// Differs the value between threads? Judges the barriers and calls in it on the way.
  bool use(const Expr& e) {
    std::unordered_set<const Node*> seen;
    return e && use(e, seen);
  }
  bool use(const Expr& e, std::unordered_set<const Node*>& seen) {
    if (e->kind == Kind::Var) return differing_.count(e.get()) > 0;
    if (e->kind == Kind::IntImm || e->kind == Kind::FloatImm) return false;
    if (e->is_shared() && !seen.insert(e.get()).second) return false;
    bool found = false;
    for_each_child(
        *e, [&](const Expr& child) { found = (child && use(child, seen)) || found; },
        [](const Stmt&) {});
    const Prim* p = as<Prim>(e);
    const Call* c = as<Call>(e);
    if (!p && !c) return found;
    const bool waits = p ? is_barrier(*p) : facts(c->callee).waits;
    if (waits && reason_.at) refuse(*e);
    if (c) pass_arguments(*c);
    if (p) return !waits && (found || is_of_thread(*e));
    return found || facts(c->callee).of_thread;
  }
  [[noreturn]] void refuse(const Node& n) const {
    const Prim* p = as<Prim>(&n);
    const std::string what =
        p ? "the barrier '" + p->name + "' in '"
          : "the barrier in '" + as<Call>(&n)->callee + "' that is called in '";
    const std::string why =
        reason_.left ? "' comes after a way out that not all threads of a block take ("
                     : "' is under a condition that differs between the threads of a block (";
    throw Error(ErrorCode::usage, what + f_.name + why + place(*reason_.at) + ")", place(n));
  }
  const Facts& facts(const std::string& function) const {
    static const Facts none;
    const auto it = all_.find(function);
    return it == all_.end() ? none : it->second;
  }
  /// A declaration comes before all uses.
  void declare(const Node* v) { differing_.insert(v); }
  /// A use further up in a loop meets it in the next turn.
  void assign(const Node* v) {
    if (differing_.insert(v).second && !loops_.empty()) *grew_ = true;
  }

  void pass_arguments(const Call& c) {
    const auto it = all_.find(c.callee);
    if (it == all_.end()) return;
    std::vector<bool>& params = it->second.params;
    for (size_t i = 0; i < params.size() && i < c.args.size(); i++)
      if (!params[i] && use(c.args[i])) params[i] = callee_grew_ = true;
  }
  /// A store to registers makes the tensor differ.
  void stored(const Expr& base, bool differing) {
    const Node* place = place_of(base);
    const Var* v = as<Var>(place);
    if (!v || !v->type.is_tensor() || v->type.tensor_info().scope != Scope::registers) return;
    if (differing || reason_.at) assign(v);
  }

  void under(bool differing, const Node& at, const Stmt& body) {
    if (!body) return;
    const Reason saved = reason_;
    if (!reason_.at && differing) reason_ = {&at, false};
    stmt(body);
    // Who left stays away for what follows; else all meet again.
    if (!reason_.left) reason_ = saved;
  }
  void loop(const Node& at, const Stmt& body, bool differing) {
    const Reason saved = reason_;
    if (!reason_.at && differing) reason_ = {&at, false};
    if (const auto it = leaves_.find(&at); !reason_.at && it != leaves_.end()) reason_ = it->second;
    loops_.push_back(&at);
    const bool before = std::exchange(returned_, false);
    stmt(body);
    loops_.pop_back();
    if (!returned_) reason_ = saved;
    returned_ = returned_ || before;
  }
  /// Under a condition that differs, a jump takes some threads away: for break and continue until the loop ends.
  void jump(const Stmt& s) {
    if (!reason_.at) return;
    const Reason left{s.get(), true};
    if (s->kind == Kind::Return) returned_ = true;
    if (s->kind != Kind::Continue)
      for (size_t i = loops_.size(); i-- > 0;) {
        if (leaves_.emplace(loops_[i], left).second) *grew_ = true;
        if (s->kind == Kind::Break) break;
      }
    reason_ = left;
  }

  void stmt(const Stmt& s) {
    if (!s) return;
    switch (s->kind) {
      case Kind::Seq:
        for (const Stmt& child : as<Seq>(s)->body) stmt(child);
        return;
      case Kind::DeclVar:
        if (use(as<DeclVar>(s)->init)) declare(as<DeclVar>(s)->var.get());
        return;
      case Kind::Assign:
        if (use(as<Assign>(s)->value) || reason_.at) assign(as<Assign>(s)->var.get());
        return;
      case Kind::Store: {
        const Store& t = *as<Store>(s);
        const bool index = use(t.index), value = use(t.value);
        use(t.base);
        return stored(t.base, value || index);
      }
      case Kind::ElementStore: {
        const ElementStore& t = *as<ElementStore>(s);
        bool differing = use(t.value);
        for (const Expr& i : t.indices) differing = use(i) || differing;
        return stored(t.tensor, differing);
      }
      case Kind::For: {
        const For& f = *as<For>(s);
        const bool begin = use(f.begin), end = use(f.end), step = use(f.step);
        const bool differing = begin || end || step;
        if (differing) declare(f.var.get());
        return loop(f, f.body, differing);
      }
      case Kind::MappingFor: {
        const MappingFor& m = *as<MappingFor>(s);
        if (use(m.worker))
          for (const VarRef& v : m.vars) declare(v.get());
        return stmt(m.body);
      }
      case Kind::While: return loop(*s, as<While>(s)->body, use(as<While>(s)->cond));
      case Kind::If: return branches(*as<If>(s));
      case Kind::Break:
      case Kind::Continue:
      case Kind::Return: return jump(s);
      case Kind::Asm: {
        bool differing = is_of_thread(*s) || reason_.at;
        for (const Expr& e : as<Asm>(s)->inputs) differing = use(e) || differing;
        for (const Expr& e : as<Asm>(s)->outputs)
          if (differing) assign(e.get());
        return;
      }
      default: for_each_child(*s, [&](const Expr& e) { (void)use(e); }, [](const Stmt&) {});
    }
  }
  /// Both sides start from where the branch is; who left on either side stays away after it.
  void branches(const If& i) {
    const bool differing = use(i.cond);
    const Reason before = reason_;
    under(differing, i, i.then);
    const Reason after = reason_;
    reason_ = before;
    under(differing, i, i.otherwise);
    if (!reason_.at) reason_ = after;
  }

  const Function& f_;
  AllFacts& all_;
  std::unordered_set<const Node*> differing_;
  std::unordered_map<const Node*, Reason> leaves_;  ///< loops that some threads leave early
  std::vector<const Node*> loops_;                  ///< around, innermost last
  Reason reason_;
  bool* grew_ = nullptr;
  bool returned_ = false;  ///< some threads left the function in the loop around
  bool callee_grew_ = false;
};

}  // namespace

void check_barriers(const Module& module) {
  AllFacts all = facts_of(module);
  for (bool grew = true; grew;) {
    grew = false;
    for (const Function& f : module.functions)
      if (const auto it = all.find(f.name); it != all.end() && it->second.waits)
        grew |= BarrierWalk(f, all).run();
  }
}

}  // namespace hidet::ir
