// tensor.cpp - Tensor's handle, access to elements, copies; TensorSignature.
#include "hidet/runtime/tensor.h"

#include <algorithm>
#include <cstring>

#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"
#include "src/tensor_data.h"

namespace hidet {
namespace detail {

Storage::~Storage() {
  if (owned) runtime::free_memory(device, ptr, static_cast<size_t>(bytes));
  else if (deleter) deleter(ptr);
}

// A producer holds the tensors that it was made from, those hold their producers, and so on: released one
// by one from a list, a chain of any length needs no stack.
TensorData::~TensorData() {
  if (!producer) return;
  thread_local std::vector<std::shared_ptr<void>>* pending = nullptr;
  if (pending) {
    pending->push_back(std::move(producer));
    return;
  }
  std::vector<std::shared_ptr<void>> list;
  pending = &list;
  list.push_back(std::move(producer));
  while (!list.empty()) {
    const std::shared_ptr<void> last = std::move(list.back());
    list.pop_back();
  }
  pending = nullptr;
}

}  // namespace detail

namespace {

using detail::Storage;
using detail::TensorData;

int64_t bytes_of(const Shape& shape, DType dtype) {
  const int64_t count = product(shape);
  HIDET_REQUIRE(count <= (INT64_MAX - 7) / dtype.bits(), ErrorCode::usage, "", dtype,
                shape_text(shape), " has more bytes than fit in 63 bits");
  return dtype.bytes_of(count);
}

std::shared_ptr<TensorData> make_data(DType dtype, const Shape& shape,
                                      std::shared_ptr<Storage> storage, int64_t offset) {
  auto data = std::make_shared<TensorData>();
  data->dtype = dtype;
  data->device = storage->device;
  data->shape = shape;
  data->storage = std::move(storage);
  data->offset = offset;
  return data;
}

// `shape` with a -1 replaced by what is left of `count`.
Shape resolve(const Shape& shape, int64_t count, const std::string& what) {
  Shape result = shape;
  const auto hole = std::find(result.begin(), result.end(), -1);
  if (hole != result.end()) {
    *hole = 1;
    const int64_t known = product(result);
    HIDET_REQUIRE(known != 0 && count % known == 0, ErrorCode::usage, "", what,
                  " cannot be reshaped to ", shape_text(shape));
    *hole = count / known;
  }
  HIDET_REQUIRE(product(result) == count, ErrorCode::usage, "", what, " cannot be reshaped to ",
                shape_text(shape), ": it has ", count, " elements");
  return result;
}

bool reads_as_float(DType dtype) {
  return dtype == f32 || dtype == f16 || dtype == bf16 || dtype == tf32 || dtype == f8e4m3 ||
         dtype == f8e5m2;
}

}  // namespace

const TensorData& Tensor::get() const {
  HIDET_REQUIRE(data_, ErrorCode::usage, "", "this Tensor is empty: nothing was assigned to it");
  return *data_;
}

const TensorData& Tensor::concrete(const char* what) const {
  HIDET_REQUIRE(!get().symbolic, ErrorCode::usage, "", what, " needs elements, and the tensor ",
                data_->name.empty() ? "" : "'" + data_->name + "' ", describe(),
                " is symbolic: it has none");
  return *data_;
}

DType Tensor::dtype() const { return get().dtype; }
Device Tensor::device() const { return get().device; }
int Tensor::rank() const {
  return static_cast<int>(get().symbolic ? data_->sizes.size() : data_->shape.size());
}

const Shape& Tensor::shape() const {
  HIDET_REQUIRE(get().numbers, ErrorCode::usage, "", "the shape of ", describe(),
                " is not made of numbers: shape_expr() gives its formulas");
  return data_->shape;
}

int64_t Tensor::shape(int axis) const {
  const int r = rank();
  HIDET_REQUIRE(axis >= -r && axis < r, ErrorCode::usage, "", "axis ", axis, " of ", describe(),
                " is not there");
  const auto at = static_cast<size_t>(axis < 0 ? axis + r : axis);
  return get().symbolic ? data_->sizes[at].value() : data_->shape[at];
}

std::vector<DimExpr> Tensor::shape_expr() const {
  return get().symbolic ? data_->sizes : to_symbolic(data_->shape);
}
int64_t Tensor::num_elements() const { return product(shape()); }
int64_t Tensor::bytes() const { return bytes_of(shape(), dtype()); }
bool Tensor::is_symbolic() const { return get().symbolic; }

std::string Tensor::describe() const {
  return detail::concat(dtype(), shape_text(shape_expr()), " ", device());
}

void* Tensor::data() const {
  const TensorData& d = concrete("data()");
  return d.storage->ptr ? static_cast<char*>(d.storage->ptr) + d.offset : nullptr;
}

void Tensor::check_pointer_type(DType type) const {
  const bool bits = type == u16 && (dtype() == f16 || dtype() == bf16);
  const bool bytes = type == u8 || type == i8;
  HIDET_REQUIRE(bits || bytes || type == dtype() || (type == f32 && dtype() == tf32),
                ErrorCode::usage, "", "the elements of ", describe(), " are not ", type);
}

void Tensor::check_one_element() const {
  HIDET_REQUIRE(num_elements() == 1, ErrorCode::usage, "", "item() needs one element, and ",
                describe(), " has ", num_elements());
}

size_t Tensor::checked_count(DType type) const {
  const bool ok = type == dtype() || (type == f32 && reads_as_float(dtype())) ||
                  (type == u8 && dtype().is_boolean()) ||
                  (type == u16 && (dtype() == f16 || dtype() == bf16));
  HIDET_REQUIRE(ok, ErrorCode::usage, "", "the elements of ", describe(), " do not convert to ",
                type, ": to_doubles() converts any");
  return static_cast<size_t>(num_elements());
}

void Tensor::read_elements(DType type, void* out) const {
  const Tensor here = cpu();
  if (type == here.dtype() || !(type == f32)) {
    if (here.bytes()) std::memcpy(out, here.data(), static_cast<size_t>(here.bytes()));
    return;
  }
  const std::vector<double> values = here.to_doubles();
  std::transform(values.begin(), values.end(), static_cast<float*>(out),
                 [](double v) { return static_cast<float>(v); });
}

std::vector<double> Tensor::to_doubles() const {
  const Tensor here = cpu();
  std::vector<double> values(static_cast<size_t>(here.num_elements()));
  const auto* from = static_cast<const uint8_t*>(here.data());
  const int bits = here.dtype().bits();
  detail::over_elements(here.num_elements(), [&](int64_t begin, int64_t end) {
    detail::to_doubles(here.dtype(), from + begin * bits / 8, end - begin, values.data() + begin);
  });
  return values;
}

Tensor Tensor::to(Device target) const {
  const TensorData& d = concrete("to()");
  if (d.device == target) return *this;
  Tensor copy = empty(d.shape, d.dtype, target);
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::clone() const {
  const TensorData& d = concrete("clone()");
  Tensor copy = empty(d.shape, d.dtype, d.device);
  copy.copy_from(*this);
  return copy;
}

void Tensor::copy_from(const Tensor& from) const {
  HIDET_REQUIRE(from.dtype() == dtype() && from.shape() == shape(), ErrorCode::usage, "",
                "the elements of ", from.describe(), " cannot be copied into ", describe());
  runtime::copy_bytes(data(), device(), from.data(), from.device(), static_cast<size_t>(bytes()));
}

Tensor Tensor::reshape(const Shape& shape) const {
  HIDET_REQUIRE(!get().symbolic, ErrorCode::usage, "", "reshape() needs elements, and ", describe(),
                " is symbolic: use ops::reshape");
  return Tensor(make_data(data_->dtype, resolve(shape, num_elements(), describe()), data_->storage,
                          data_->offset));
}

Tensor Tensor::view_at(int64_t byte_offset, const Shape& shape, DType dtype) const {
  const TensorData& d = concrete("view_at()");
  const int64_t length = bytes_of(shape, dtype);
  HIDET_REQUIRE(byte_offset >= 0 && byte_offset <= bytes() && length <= bytes() - byte_offset,
                ErrorCode::usage, "", dtype, shape_text(shape), " at byte ", byte_offset,
                " is not inside the ", bytes(), " bytes of ", describe());
  HIDET_REQUIRE(
      (reinterpret_cast<uintptr_t>(data()) + static_cast<uint64_t>(byte_offset)) % dtype.bytes() ==
          0,
      ErrorCode::usage, "", "byte ", byte_offset, " of ", describe(), " is not aligned for ",
      dtype);
  return Tensor(make_data(dtype, shape, d.storage, d.offset + byte_offset));
}

Tensor Tensor::from_blob(void* ptr, const Shape& shape, DType dtype, Device device,
                         std::function<void(void*)> deleter) {
  const int64_t length = bytes_of(shape, dtype);
  HIDET_REQUIRE(ptr || length == 0, ErrorCode::usage, "", "from_blob of ", dtype, shape_text(shape),
                " needs memory, and the pointer is null");
  HIDET_REQUIRE(reinterpret_cast<uintptr_t>(ptr) % dtype.bytes() == 0, ErrorCode::usage, "",
                "from_blob of ", dtype, shape_text(shape),
                " needs an address that is a multiple of ", dtype.bytes());
  return Tensor(make_data(dtype, shape,
                          std::make_shared<Storage>(ptr, length, device, std::move(deleter)), 0));
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  const int64_t length = bytes_of(shape, dtype);
  auto storage = std::make_shared<Storage>(nullptr, length, device, nullptr);
  storage->ptr = runtime::allocate(device, static_cast<size_t>(length));
  storage->owned = true;
  return Tensor(make_data(dtype, shape, std::move(storage), 0));
}

Tensor Tensor::make_symbolic(DType dtype, std::vector<DimExpr> shape, Device device,
                             std::shared_ptr<void> producer, int output_index, std::string name) {
  auto data = std::make_shared<TensorData>();
  data->symbolic = true;
  data->dtype = dtype;
  data->device = device;
  data->numbers = is_concrete(shape);
  if (data->numbers) {
    data->shape = to_concrete(shape);
    bytes_of(data->shape, dtype);  // refuses what no tensor can have
  }
  data->sizes = std::move(shape);
  data->producer = std::move(producer);
  data->output_index = output_index;
  data->name = std::move(name);
  return Tensor(std::move(data));
}

const std::shared_ptr<void>& Tensor::producer() const { return get().producer; }
int Tensor::output_index() const { return get().output_index; }
const std::string& Tensor::name() const { return get().name; }

Shape TensorSignature::concrete_shape(const ConcreteShapeOptions& options) const {
  SymbolMap symbols;
  for (const DimExpr& d : shape)
    for (const std::string& symbol : d.symbol_names()) symbols[symbol] = options.unknown;
  Shape sizes;
  for (const DimExpr& d : shape) sizes.push_back(d.eval(symbols));
  return sizes;
}

std::string TensorSignature::text() const {
  return detail::concat(name, name.empty() ? "" : ": ", dtype, shape_text(shape), " ", device);
}

}  // namespace hidet
