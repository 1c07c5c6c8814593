// node_call.cpp - inputs, attributes and errors of one node; see node_call.h.
#include "onnx/node_call.h"

#include <hidet/graph/ops.h>

#include <cstring>

#include "onnx/order.h"
#include "onnx/wire.h"

namespace hidet::graph::onnx {

const Tensor& NodeCall::input(size_t i) const {
  if (!has_input(i)) fail("input ", i, " is missing");
  Value& value = *inputs_[i];
  if (!value.tensor) value.tensor = to_tensor(*value.known, context_.device);
  return *value.tensor;
}

std::vector<Tensor> NodeCall::inputs() const {
  std::vector<Tensor> out;
  for (size_t i = 0; i < inputs_.size(); i++) out.push_back(input(i));
  if (out.empty()) fail("it has no inputs");
  return out;
}

const Known* NodeCall::known(size_t i) const {
  return has_input(i) && inputs_[i]->known ? &*inputs_[i]->known : nullptr;
}

DType NodeCall::dtype(size_t i) const {
  const Known* value = known(i);
  return value ? value->dtype : input(i).dtype();
}

std::vector<DimExpr> NodeCall::shape(size_t i) const {
  const Known* value = known(i);
  return value ? std::vector<DimExpr>(value->dims.begin(), value->dims.end())
               : input(i).shape_expr();
}

std::vector<DimExpr> NodeCall::dims_input(size_t i, const char* what) const {
  if (!has_input(i)) fail("input ", i, " (", what, ") is missing");
  const Known* value = known(i);
  if (!value)
    unsupported(what, " (", quote_name(node_.inputs[i]),
                ") is computed from data at run time; only constants and shapes can be used");
  if (value->dims.size() > 1)
    fail(what, " has ", value->dims.size(), " dimensions, at most 1 fits");
  return value->elems;
}

std::vector<int64_t> NodeCall::ints_input(size_t i, const char* what) const {
  const std::vector<DimExpr> dims = dims_input(i, what);
  for (const DimExpr& d : dims)
    if (!d.is_const())
      unsupported(what, " depends on the symbol formula ", d, "; it must be constant");
  return ints_of(dims);
}

std::optional<double> NodeCall::scalar_if_constant(size_t i) const {
  if (const Known* value = known(i)) {
    if (value->elems.size() != 1) fail("input ", i, " has ", value->elems.size(), " values, not 1");
    return value->is_constant() ? std::optional<double>(value->ints()[0]) : std::nullopt;
  }
  const Tensor& tensor = input(i);
  if (tensor.is_symbolic()) return std::nullopt;
  if (tensor.num_elements() != 1)
    fail("input ", i, " has ", tensor.num_elements(), " values, not 1");
  return tensor.to_doubles()[0];
}

double NodeCall::scalar_input(size_t i, const char* what) const {
  const auto value = scalar_if_constant(i);
  if (!value) unsupported(what, " is computed from data at run time; it must be constant");
  return *value;
}

const AttributeProto* NodeCall::find(const char* name) const {
  for (const AttributeProto& attribute : node_.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

const AttributeProto* NodeCall::find(const char* name, AttributeType type) const {
  const AttributeProto* out = find(name);
  if (out && out->type != type)
    fail("attribute '", name, "' has the type ", static_cast<int>(out->type), ", expected ",
         static_cast<int>(type));
  return out;
}

int64_t NodeCall::attr_int(const char* name, int64_t fallback) const {
  const auto* attribute = find(name, AttributeType::i);
  return attribute ? attribute->i : fallback;
}
double NodeCall::attr_float(const char* name, double fallback) const {
  const auto* attribute = find(name, AttributeType::f);
  return attribute ? static_cast<double>(attribute->f) : fallback;
}
std::string NodeCall::attr_string(const char* name, const std::string& fallback) const {
  const auto* attribute = find(name, AttributeType::s);
  return attribute ? attribute->s : fallback;
}
std::vector<int64_t> NodeCall::attr_ints(const char* name, std::vector<int64_t> fallback) const {
  const auto* attribute = find(name, AttributeType::ints);
  return attribute ? attribute->ints : fallback;
}
std::vector<float> NodeCall::attr_floats(const char* name) const {
  const auto* attribute = find(name, AttributeType::floats);
  return attribute ? attribute->floats : std::vector<float>();
}
std::vector<std::string> NodeCall::attr_strings(const char* name) const {
  const auto* attribute = find(name, AttributeType::strings);
  return attribute ? attribute->strings : std::vector<std::string>();
}
const TensorProto* NodeCall::attr_tensor(const char* name) const {
  const auto* attribute = find(name, AttributeType::tensor);
  return attribute ? attribute->tensor.get() : nullptr;
}

std::vector<int64_t> NodeCall::ints_attr_or_input(const char* name, size_t i) const {
  if (has_attr(name)) return attr_ints(name);
  return has_input(i) ? ints_input(i, name) : std::vector<int64_t>();
}

int64_t NodeCall::axis(int64_t axis, int64_t rank, bool allow_end) const {
  if (axis < -rank || axis >= rank + (allow_end ? 1 : 0))
    fail("axis ", axis, " is outside of a tensor with ", rank, " dimensions");
  return axis < 0 ? axis + rank : axis;
}

std::string NodeCall::describe() const { return onnx::describe(node_, index_); }

void NodeCall::raise(ErrorCode code, const std::string& message) const {
  throw Error(code, describe() + ": " + message, context_.file.name());
}

namespace {

template <class T>
Tensor narrowed(const std::vector<int64_t>& values, const Shape& dims) {
  return from_vector<T>(std::vector<T>(values.begin(), values.end()), dims);
}

// Known values are in the range of their dtype already.
Tensor constant_tensor(const std::vector<int64_t>& values, const Shape& dims, DType dtype) {
  switch (dtype.code()) {
    case DTypeCode::boolean: return narrowed<bool>(values, dims);
    case DTypeCode::i8: return narrowed<int8_t>(values, dims);
    case DTypeCode::i16: return narrowed<int16_t>(values, dims);
    case DTypeCode::i32: return narrowed<int32_t>(values, dims);
    case DTypeCode::i64: return narrowed<int64_t>(values, dims);
    case DTypeCode::u8: return narrowed<uint8_t>(values, dims);
    case DTypeCode::u16: return narrowed<uint16_t>(values, dims);
    case DTypeCode::u32: return narrowed<uint32_t>(values, dims);
    case DTypeCode::u64: return narrowed<uint64_t>(values, dims);
    default: break;
  }
  HIDET_CHECK(false, "known values of ", dtype.name());
}

}  // namespace

Tensor to_tensor(const TensorValues& values) {
  if (values.count == 0) return empty(values.dims, values.dtype);
  // The mapping is read only; a weight is never written to.
  return Tensor::from_blob(const_cast<void*>(values.data), values.dims, values.dtype, Device(),
                           [owner = values.owner](void*) {});
}

Tensor to_tensor(const Known& known, Device device) {
  if (known.is_constant()) return constant_tensor(known.ints(), known.dims, known.dtype);
  Tensor out = ops::dims(known.elems, known.dims.empty(), device);
  if (known.dims.size() > 1) out = ops::reshape(out, {known.dims.begin(), known.dims.end()});
  return known.dtype == i64 ? out : ops::cast(out, known.dtype);
}

Value to_value(const TensorValues& values) {
  Value out{to_tensor(values), std::nullopt};
  const bool integral = values.dtype.is_integer() || values.dtype.is_boolean();
  if (!integral || values.dtype.bits() < 8 || values.count > Known::kMaxCount) return out;
  const std::vector<int64_t> ints = to_int64s(values);
  out.known = Known{values.dtype, values.dims, {ints.begin(), ints.end()}};
  return out;
}

}  // namespace hidet::graph::onnx
