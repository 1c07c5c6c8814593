// rewriter.h - one type-erased rewriter: handlers are lambdas by node type, the default walk is derived.
//   rewrite(body, [](Rewriter& self, const For& loop) -> Stmt { ...; return self.children(loop); })
// A handler for an expression node returns Expr, for a statement node Stmt; it returns
// self.children(node) to go on below, or the replacement (which is not visited again).
// Expressions are memoised by identity: a handler must not depend on where it meets an expression,
// unless built with Rewriter::no_memo.
// Threading: one thread at a time.
#pragma once
#include <hidet/ir/node_map.h>
#include <hidet/ir/stmt.h>

#include <array>
#include <unordered_map>

namespace hidet::ir {

class Rewriter {
 public:
  enum Memo { memo, no_memo };
  explicit Rewriter(Memo m = memo) : memo_on_(m == memo) {}

  template <class F>
  void on(F handler) {
    add(std::move(handler), &F::operator());
  }
  template <class R, class T>
  void on(R (*handler)(Rewriter&, const T&)) {
    on([handler](Rewriter& self, const T& node) -> R { return handler(self, node); });
  }

  Expr operator()(const Expr& e);
  Stmt operator()(const Stmt& s);
  std::vector<Expr> operator()(const std::vector<Expr>& list);

  /// The node with its children rewritten.
  template <class T>
    requires std::is_base_of_v<ExprNode, T>
  Expr children(const T& node) {
    return expr_children(node);
  }
  template <class T>
    requires std::is_base_of_v<StmtNode, T>
  Stmt children(const T& node) {
    return stmt_children(node);
  }

 private:
  using Handler = std::function<Ref<Node>(Rewriter&, const Node&)>;
  template <class F, class R, class T>
  void add(F handler, R (F::*)(Rewriter&, const T&) const) {
    set(T::kKind, [h = std::move(handler)](Rewriter& self, const Node& n) {
      return Ref<Node>(h(self, static_cast<const T&>(n)));
    });
    enter_exprs_ |= std::is_base_of_v<ExprNode, T>;
  }
  template <class F, class R, class T>
  void add(F handler, R (F::*)(Rewriter&, const T&)) {
    set(T::kKind, [h = std::move(handler)](Rewriter& self, const Node& n) mutable {
      return Ref<Node>(h(self, static_cast<const T&>(n)));
    });
    enter_exprs_ |= std::is_base_of_v<ExprNode, T>;
  }
  void set(Kind kind, Handler handler) {
    handlers_.push_back(std::move(handler));
    which_[static_cast<size_t>(kind)] = static_cast<uint8_t>(handlers_.size());
  }
  const Handler* handler_of(Kind kind) const {
    const uint8_t at = which_[static_cast<size_t>(kind)];
    return at ? &handlers_[at - 1] : nullptr;
  }
  Expr expr_children(const ExprNode& node);
  Stmt stmt_children(const StmtNode& node);

  std::vector<Handler> handlers_;
  std::array<uint8_t, 64> which_{};      ///< by kind: 1 + the handler's place, 0: none
  NodeMap<std::pair<Expr, Expr>> done_;  ///< keeps the key alive, too
  bool memo_on_;
  bool enter_exprs_ = false;  ///< some handler is for expressions
};

template <class... Handlers>
Stmt rewrite(const Stmt& s, Handlers... handlers) {
  Rewriter r;
  (r.on(std::move(handlers)), ...);
  return r(s);
}
template <class... Handlers>
Expr rewrite(const Expr& e, Handlers... handlers) {
  Rewriter r;
  (r.on(std::move(handlers)), ...);
  return r(e);
}

/// Replaces variables (by identity) by expressions.
using Substitution = std::unordered_map<const Node*, Expr>;
Expr substitute(const Expr& e, const Substitution& map);
Stmt substitute(const Stmt& s, const Substitution& map);

/// Calls `visit` for every node below and including `root`, parents first; shared nodes once.
void visit_all(const Expr& root, const std::function<void(const Node&)>& visit);
void visit_all(const Stmt& root, const std::function<void(const Node&)>& visit);

/// Runs `work` on a thread with a large reserved stack (passes, printing and emission of deep
/// expressions); exceptions pass through. Nested calls run in place.
void with_large_stack(const std::function<void()>& work);

}  // namespace hidet::ir
