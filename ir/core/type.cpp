// type.cpp - types, layouts and task mappings as values: construction, equality, text.
#include <hidet/ir/mapping.h>
#include <hidet/ir/passes.h>
#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::ir {

const char* scope_name(Scope scope) {
  static const char* const names[] = {"global", "shared", "dynamic_shared", "registers"};
  return names[static_cast<int>(scope)];
}

Type Type::vector(DType dtype, int lanes) {
  HIDET_CHECK(lanes >= 1, "a vector of ", lanes, " lanes");
  Type t(dtype);
  if (lanes > 1) {
    t.tag_ = Tag::vector;
    t.lanes_ = lanes;
  }
  return t;
}
Type Type::pointer(const Type& pointee) {
  Type t;
  t.tag_ = Tag::pointer;
  t.dtype_ = pointee.dtype_;
  t.pointee_ = std::make_shared<const Type>(pointee);
  return t;
}
Type Type::tensor(TensorInfo info) {
  Type t(info.dtype);
  t.tag_ = Tag::tensor;
  t.tensor_ = std::make_shared<const TensorInfo>(std::move(info));
  return t;
}
Type Type::string() {
  Type t;
  t.tag_ = Tag::string;
  return t;
}

DType Type::dtype() const { return dtype_; }
const Type& Type::pointee() const {
  HIDET_CHECK(is_pointer(), "pointee of ", text());
  return *pointee_;
}
const TensorInfo& Type::tensor_info() const {
  HIDET_CHECK(is_tensor(), "tensor_info of ", text());
  return *tensor_;
}
Type Type::with_lanes(int lanes) const { return vector(dtype_, lanes); }
Type Type::with_dtype(DType dtype) const { return vector(dtype, lanes_); }

std::string Type::text() const {
  switch (tag_) {
    case Tag::none: return "void";
    case Tag::scalar: return dtype_.name();
    case Tag::vector: return std::string(dtype_.name()) + "x" + std::to_string(lanes_);
    case Tag::pointer: return "ptr(" + pointee_->text() + ")";
    case Tag::string: return "string";
    case Tag::tensor: break;
  }
  return print(*this);
}

// --- task mappings

std::vector<int64_t> TaskMapping::task_shape() const {
  std::vector<int64_t> shape(rank(), 1);
  for (const Item& item : items)
    for (size_t d = 0; d < shape.size(); d++) shape[d] *= item.shape[d];
  return shape;
}
int64_t TaskMapping::num_workers() const {
  int64_t n = 1;
  for (const Item& item : items)
    if (item.is_spatial)
      for (int64_t e : item.shape) n *= e;
  return n;
}
std::string TaskMapping::text() const {
  std::string out;
  const auto list = [](const auto& values) {
    std::string text;
    for (size_t i = 0; i < values.size(); i++) text += (i ? ", " : "") + std::to_string(values[i]);
    return text;
  };
  for (const Item& item : items) {
    out += out.empty() ? "" : ".";
    out += (item.is_spatial ? "spatial(" : "repeat(") + list(item.shape);
    if (!item.order.empty()) out += "; order " + list(item.order);
    out += ")";
  }
  return out;
}

const char* name(LoopKind kind) {
  static const char* const names[] = {"serial", "parallel", "unroll", "vectorize"};
  return names[static_cast<int>(kind)];
}
const char* name(FuncKind kind) {
  static const char* const names[] = {"public", "cuda_kernel", "cuda_internal", "cpu_kernel",
                                      "cpu_internal"};
  return names[static_cast<int>(kind)];
}
const char* name(ReduceOp op) {
  static const char* const names[] = {"sum", "prod", "max", "min", "all", "any"};
  return names[static_cast<int>(op)];
}
const char* name(UnaryOp op) {
  static const char* const names[] = {"neg", "logical_not", "bit_not"};
  return names[static_cast<int>(op)];
}

}  // namespace hidet::ir
