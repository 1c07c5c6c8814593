// handle.h - what a script holds in its hands: immutable handles (arguments, let, loop variables,
// tensors), mutable variables, results of calls.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/ir/stmt.h>
#include <hidet/ir/value.h>

#include <array>
#include <initializer_list>

namespace hidet::lang {

using ir::cast;
using ir::ElementProxy;
using ir::floordiv;
using ir::floormod;
using ir::Layout;
using ir::Located;
using ir::max;
using ir::min;
using ir::select;
using ir::SourceLoc;
using ir::Type;
using ir::Value;
using Here = std::source_location;

class Handle;
/// Indices of a tensor: {i, j}, or a vector of them for functions written once for any rank.
struct Indices {
  std::vector<Located> list;
  Indices(std::initializer_list<Located> indices) : list(indices) {}
  Indices(const std::vector<Handle>& indices, Here at = Here::current());
  Indices(const std::vector<Value>& indices, Here at = Here::current());
};

/// An immutable named value: an argument, a `let`, a loop variable, a tensor. Copies name the same thing;
/// assignment does not compile, because it would rebind the C++ name and record nothing.
class Handle : public Value {
 public:
  explicit Handle(Value v) : Value(std::move(v)) {}
  Handle(const Handle&) = default;
  Handle& operator=(const Handle&) = delete;

  using Value::operator();
  /// Tensors of any rank: the element; as many indices as dimensions.
  ElementProxy operator()(const Indices& indices) const;
  /// Tensors: the element, or 0 where an index is outside the shape.
  Value read(const Indices& indices) const;
  /// Tensors: stores, or nothing where an index is outside the shape.
  void write(const Indices& indices, const Located& v) const;
  /// Tensors: `width` elements along the last index as a vector; the inverse is store().
  Value load(const Indices& indices, int width) const;
  void store(const Indices& indices, const Located& v) const;
  /// Tensors: pointer to an element; without indices to the first.
  template <class... Rest>
  Value ptr(const Located& first, const Rest&... rest) const {
    return pointer({first, Located(rest)...}, first.loc);
  }
  Value ptr(Here at = Here::current()) const { return pointer({}, at); }
  Value ptr(const std::vector<Handle>& indices, Here at = Here::current()) const;
  /// Tensors (row major, column major, strided; not registers): the part of `shape` that begins at `begin`.
  Handle slice(const Indices& begin, const Indices& shape) const;
  /// Tensors: the extents.
  std::vector<Value> shape() const;
  int rank() const;

 private:
  Value pointer(std::vector<Located> indices, SourceLoc at) const;
};

/// A mutable variable of the recorded function. Assignments record; not copyable, so that no second C++
/// name can look like a second variable.
class Var : public ir::Recordable {
 public:
  explicit Var(ir::VarRef node) : node_(std::move(node)) {}
  Var(const Var&) = delete;
  operator Value() const;
  Value value() const { return *this; }
  const Type& type() const { return node_->type; }
  const ir::VarRef& node() const { return node_; }
  void operator=(const Located& v) const;
  void operator=(const Var& v) const;
  void operator+=(const Located& v) const { update(ir::BinaryOp::add, v); }
  void operator-=(const Located& v) const { update(ir::BinaryOp::sub, v); }
  void operator*=(const Located& v) const { update(ir::BinaryOp::mul, v); }
  void operator/=(const Located& v) const { update(ir::BinaryOp::div, v); }
  void operator%=(const Located& v) const { update(ir::BinaryOp::mod, v); }
  void operator&=(const Located& v) const { update(ir::BinaryOp::bit_and, v); }
  void operator|=(const Located& v) const { update(ir::BinaryOp::bit_or, v); }
  void operator^=(const Located& v) const { update(ir::BinaryOp::bit_xor, v); }
  void operator<<=(const Located& v) const { update(ir::BinaryOp::shl, v); }
  void operator>>=(const Located& v) const { update(ir::BinaryOp::shr, v); }
  /// The element behind a pointer variable.
  ElementProxy operator[](const Located& index) const { return value()[index]; }

 private:
  void update(ir::BinaryOp op, const Located& v) const;
  ir::VarRef node_;
};

/// The result of a call or of an effectful primitive: a Value, or, where nothing uses it, a statement.
class CallResult : public ir::Recordable {
 public:
  CallResult(Value call, bool effects, SourceLoc at);
  CallResult(const CallResult&) = delete;
  CallResult& operator=(const CallResult&) = delete;
  ~CallResult();
  operator Value() const;
  Value value() const { return *this; }

 private:
  Value call_;  ///< null for a function that returns nothing: recorded already
  bool effects_;
  mutable bool used_ = false;
  int exceptions_;
  ir::Recorder* recorder_;
  SourceLoc at_;
};

}  // namespace hidet::lang
