// type.h - types of expressions: scalars, vectors, pointers, tensors with shape, layout and scope.
// Threading: immutable values; thread-safe.
#pragma once
#include <hidet/ir/node.h>
#include <hidet/runtime/dtype.h>

#include <memory>

namespace hidet::ir {

/// Where a tensor's memory is. `global`: behind a pointer (host or device memory).
enum class Scope : uint8_t { global, shared, dynamic_shared, registers };
const char* scope_name(Scope scope);

struct TensorInfo;

/// The type of an expression. A value type; == compares structure (tensor shapes with equal()).
class Type {
 public:
  enum class Tag : uint8_t { none, scalar, vector, pointer, tensor, string };

  Type() = default;  ///< void
  Type(DType dtype) : tag_(Tag::scalar), dtype_(dtype) {}
  static Type vector(DType dtype, int lanes);  ///< lanes >= 1; 1 gives the scalar
  static Type pointer(const Type& pointee);    ///< to a scalar, vector, pointer, or void (opaque)
  static Type tensor(TensorInfo info);
  static Type string();

  Tag tag() const { return tag_; }
  bool is_void() const { return tag_ == Tag::none; }
  bool is_scalar() const { return tag_ == Tag::scalar; }
  bool is_vector() const { return tag_ == Tag::vector; }
  bool is_pointer() const { return tag_ == Tag::pointer; }
  bool is_tensor() const { return tag_ == Tag::tensor; }
  bool is_arithmetic() const { return is_scalar() || is_vector(); }

  /// Element type of a scalar, vector or tensor, and of a pointer to one of the first two.
  DType dtype() const;
  int lanes() const { return lanes_; }    ///< 1 unless a vector
  const Type& pointee() const;            ///< of a pointer
  const TensorInfo& tensor_info() const;  ///< of a tensor
  Type with_lanes(int lanes) const;       ///< same dtype, other lane count
  Type with_dtype(DType dtype) const;     ///< same lanes, other dtype
  /// Text form: "f32", "f32x16", "ptr(f32)", "tensor(f32, [m, 64], shared)".
  std::string text() const;
  friend bool operator==(const Type& a, const Type& b);

 private:
  Tag tag_ = Tag::none;
  DType dtype_;
  int lanes_ = 1;
  std::shared_ptr<const Type> pointee_;
  std::shared_ptr<const TensorInfo> tensor_;
};

}  // namespace hidet::ir
