// rewriter.cpp - the default walk of the rewriter, compiled once; substitution; the large stack.
// Needs: nothing.  Threading: one thread at a time per Rewriter.
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <pthread.h>

#include <algorithm>
#include <exception>

namespace hidet::ir {

namespace {
bool is_leaf(Kind k) {
  return k == Kind::Var || k == Kind::IntImm || k == Kind::FloatImm || k == Kind::DimSymbol ||
         k == Kind::StringImm;
}
}  // namespace

Expr Rewriter::operator()(const Expr& e) {
  if (!e || !enter_exprs_) return e;
  const Handler* handler = handler_of(e->kind);
  if (!handler && is_leaf(e->kind)) return e;
  // What one handle alone holds cannot be met again.
  const bool remember = memo_on_ && e->is_shared();
  if (remember)
    if (const auto* known = done_.find(e.get())) return known->second;
  Expr result;
  if (handler) {
    const Ref<Node> node = (*handler)(*this, *e);
    result = Expr(static_cast<const ExprNode*>(node.get()));
  } else {
    result = expr_children(*e);
  }
  if (remember) done_.insert(e.get(), {e, result});
  return result;
}

Stmt Rewriter::operator()(const Stmt& s) {
  if (!s) return s;
  const Handler* handler = handler_of(s->kind);
  if (!handler) return stmt_children(*s);
  const Ref<Node> node = (*handler)(*this, *s);
  return Stmt(static_cast<const StmtNode*>(node.get()));
}

std::vector<Expr> Rewriter::operator()(const std::vector<Expr>& list) {
  std::vector<Expr> out;
  out.reserve(list.size());
  for (const Expr& e : list) out.push_back((*this)(e));
  return out;
}

Expr Rewriter::expr_children(const ExprNode& node) {
  const Ref<Node> mapped = map_children(node, {[this](const Expr& e) { return (*this)(e); },
                                               [this](const Stmt& s) { return (*this)(s); }});
  return Expr(static_cast<const ExprNode*>(mapped.get()));
}

Stmt Rewriter::stmt_children(const StmtNode& node) {
  const Ref<Node> mapped = map_children(node, {[this](const Expr& e) { return (*this)(e); },
                                               [this](const Stmt& s) { return (*this)(s); }});
  if (const Seq* seq = as<Seq>(mapped)) {
    // Keep sequences flat and drop what handlers removed (null).
    bool flat = true;
    for (const Stmt& s : seq->body) flat = flat && s && s->kind != Kind::Seq;
    if (!flat) return make_seq(seq->body);
  }
  return Stmt(static_cast<const StmtNode*>(mapped.get()));
}

namespace {
Rewriter substituting(const Substitution& map) {
  Rewriter r;
  r.on([&map](Rewriter&, const Var& v) -> Expr {
    auto it = map.find(&v);
    return it == map.end() ? Expr(&v) : it->second;
  });
  return r;
}

template <class Handle>
void visit_shared(const Handle& root, const std::function<void(const Node&)>& visit) {
  if (!root) return;
  NodeSet seen;
  std::vector<const Node*> stack{root.get()};
  const std::function<void(const Expr&)> push_expr = [&](const Expr& e) {
    stack.push_back(e.get());
  };
  const std::function<void(const Stmt&)> push_stmt = [&](const Stmt& s) {
    stack.push_back(s.get());
  };
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node->is_shared() && !seen.insert(node)) continue;
    visit(*node);
    const size_t first = stack.size();
    for_each_child(*node, push_expr, push_stmt);
    std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
  }
}
}  // namespace

Expr substitute(const Expr& e, const Substitution& map) {
  if (map.empty()) return e;
  Rewriter r = substituting(map);
  return r(e);
}
Stmt substitute(const Stmt& s, const Substitution& map) {
  if (map.empty()) return s;
  Rewriter r = substituting(map);
  return r(s);
}

void visit_all(const Expr& root, const std::function<void(const Node&)>& visit) {
  visit_shared(root, visit);
}
void visit_all(const Stmt& root, const std::function<void(const Node&)>& visit) {
  visit_shared(root, visit);
}

Stmt make_seq(std::vector<Stmt> body) {
  std::vector<Stmt> flat;
  for (Stmt& s : body) {
    if (!s) continue;
    if (const Seq* seq = as<Seq>(s)) flat.insert(flat.end(), seq->body.begin(), seq->body.end());
    else flat.push_back(std::move(s));
  }
  if (flat.size() == 1) return flat[0];
  return make_stmt<Seq>({}, std::move(flat));
}

namespace {
thread_local bool on_large_stack = false;
struct StackJob {
  const std::function<void()>* work;
  std::exception_ptr error;
};
void* run_stack_job(void* arg) {
  auto* job = static_cast<StackJob*>(arg);
  on_large_stack = true;
  try {
    (*job->work)();
  } catch (...) {
    job->error = std::current_exception();
  }
  return nullptr;
}
}  // namespace

void with_large_stack(const std::function<void()>& work) {
  if (on_large_stack) return work();
  constexpr size_t kStackBytes = size_t{1} << 30;  // reserved, touched only as deep as it is used
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, kStackBytes);
  StackJob job{&work, nullptr};
  pthread_t thread;
  const int status = pthread_create(&thread, &attr, run_stack_job, &job);
  pthread_attr_destroy(&attr);
  HIDET_REQUIRE(status == 0, ErrorCode::memory, "",
                "no thread with a stack of 1 GiB could be started for the compiler's passes");
  pthread_join(thread, nullptr);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace hidet::ir
