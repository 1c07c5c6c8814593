// node.h - counted immutable nodes, and what is derived from their declared fields: child traversal,
// copy with new children, structural equality and hash. The kinds are listed once, in nodes.inc.
// Threading: nodes are immutable; counts are atomic; thread-safe.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace hidet::ir {

/// A place in the user's C++ program; display only, never part of equality, hash or emitted text's key.
struct SourceLoc {
  const char* file = nullptr;  ///< as __FILE__ gave it (static storage), or null
  uint32_t line = 0;
  SourceLoc() = default;
  SourceLoc(const std::source_location& at) : file(at.file_name()), line(at.line()) {}
  /// "gemm.cpp:41" (the file's name without its folders), or "" where unknown.
  std::string text() const;
};

enum class Kind : uint8_t {
#define HIDET_NODE(name) name,
#include <hidet/ir/nodes.inc>
#undef HIDET_NODE
};
const char* kind_name(Kind kind);

/// Base of every node. Only Ref counts it.
class Node {
 public:
  const Kind kind;
  SourceLoc loc;

  /// True where more than one handle holds the node: a walk may meet it again.
  bool is_shared() const { return count_.load(std::memory_order_relaxed) > 1; }

 protected:
  explicit Node(Kind k) : kind(k) {}
  Node(const Node& other) : kind(other.kind), loc(other.loc) {}

 private:
  template <class T>
  friend class Ref;
  mutable std::atomic<int32_t> count_{0};
};

namespace detail {
/// Deletes a node whose count reached zero; iterative, so that deep chains cannot overflow the stack.
void destroy(const Node* node);
}  // namespace detail

/// A counted handle to an immutable node. No operator==: use same() or equal().
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(const T* node) : node_(node) { retain(); }
  Ref(const Ref& other) : node_(other.node_) { retain(); }
  Ref(Ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<const U*, const T*>
  Ref(const Ref<U>& other) : node_(other.get()) {
    retain();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Ref() {
    if (node_ && base()->count_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      detail::destroy(base());
  }
  const T* get() const { return node_; }
  const T* operator->() const { return node_; }
  const T& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  const Node* base() const { return static_cast<const Node*>(node_); }
  void retain() const {
    if (node_) base()->count_.fetch_add(1, std::memory_order_relaxed);
  }
  const T* node_ = nullptr;
};

template <class T, class U>
bool same(const Ref<T>& a, const Ref<U>& b) {
  return static_cast<const void*>(a.get()) == static_cast<const void*>(b.get());
}

struct ExprNode;
struct StmtNode;
using Expr = Ref<ExprNode>;
using Stmt = Ref<StmtNode>;

/// Structural equality; variables defined inside both sides correspond by place, free ones by identity.
bool equal(const Expr& a, const Expr& b);
bool equal(const Stmt& a, const Stmt& b);
/// A hash that agrees with equal() (variables hash by their type alone).
size_t structural_hash(const Expr& e);

/// Calls `expr` or `stmt` for each direct child, in field order; null children are skipped.
void for_each_child(const Node& node, const std::function<void(const Expr&)>& expr,
                    const std::function<void(const Stmt&)>& stmt);

/// `node` with every direct child mapped; the node itself where no child changed (by identity).
/// Variables that the node defines go through `var` (a Ref<Var> field), by default unchanged.
struct ChildMap {
  std::function<Expr(const Expr&)> expr;
  std::function<Stmt(const Stmt&)> stmt;
};
Ref<Node> map_children(const Node& node, const ChildMap& map);

/// `node` as T where its kind is T's, else null.
template <class T>
const T* as(const Node* node) {
  return node && node->kind == T::kKind ? static_cast<const T*>(node) : nullptr;
}
template <class T, class U>
const T* as(const Ref<U>& ref) {
  return as<T>(static_cast<const Node*>(ref.get()));
}
/// The handle of a node in hand.
template <class T>
Ref<T> ref(const T& node) {
  return Ref<T>(&node);
}

}  // namespace hidet::ir
