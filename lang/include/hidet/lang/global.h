// global.h - variables of a module, as a script holds them.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/lang/handle.h>

namespace hidet::lang {

/// A variable of a module. A scalar reads as a value where it is used and is assigned like a `var`; a tensor has what tensor
/// handles have. Copies name the same variable. CUDA functions may write; CPU functions only read.
class Global : public ir::Recordable {
 public:
  Global(ir::VarRef tensor, Type type) : tensor_(Value(ir::Expr(tensor))), type_(std::move(type)) {}
  Global(const Global&) = default;

  /// As declared: a scalar is kept as a tensor of one element.
  const Type& type() const { return type_; }
  operator Value() const;
  Value value() const { return *this; }

  // Scalars
  void operator=(const Located& v) const;
  void operator=(const Global& v) const;
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

  /// A pointer to the scalar, to the tensor's first element or to another one.
  Value ptr(Here at = Here::current()) const { return tensor_.ptr(at); }
  template <class... Rest>
  Value ptr(const Located& first, const Rest&... rest) const {
    return tensor().ptr(first, rest...);
  }

  // Tensors; see Handle
  /// The tensor as functions take it; Error(usage) for a scalar.
  const Handle& tensor() const;
  ElementProxy operator[](const Located& index) const { return tensor()[index]; }
  template <class... Rest>
  ElementProxy operator()(const Located& first, const Rest&... rest) const {
    return tensor()(first, rest...);
  }
  ElementProxy operator()(const Indices& indices) const { return tensor()(indices); }
  Value read(const Indices& indices) const { return tensor().read(indices); }
  void write(const Indices& indices, const Located& v) const { tensor().write(indices, v); }
  Value load(const Indices& indices, int width) const { return tensor().load(indices, width); }
  void store(const Indices& indices, const Located& v) const { tensor().store(indices, v); }
  Handle slice(const Indices& begin, const Indices& shape) const {
    return tensor().slice(begin, shape);
  }
  std::vector<Value> shape() const { return tensor().shape(); }
  int rank() const { return tensor().rank(); }

 private:
  void assign(const Value& v, SourceLoc at) const;
  void update(ir::BinaryOp op, const Located& v) const;
  Handle tensor_;
  Type type_;
};

}  // namespace hidet::lang
