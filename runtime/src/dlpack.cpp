// dlpack.cpp - DLPack in and out.
#include "hidet/runtime/dlpack.h"

#include <memory>

#include "hidet/runtime/error.h"

namespace hidet {
namespace {

using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;
using dlpack::TensorView;

struct TypeRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr TypeRow kTypes[] = {
    {boolean, dlpack::kBool, 8},      {i8, dlpack::kInt, 8},
    {i16, dlpack::kInt, 16},          {i32, dlpack::kInt, 32},
    {i64, dlpack::kInt, 64},          {u8, dlpack::kUInt, 8},
    {u16, dlpack::kUInt, 16},         {u32, dlpack::kUInt, 32},
    {u64, dlpack::kUInt, 64},         {f16, dlpack::kFloat, 16},
    {f32, dlpack::kFloat, 32},        {f64, dlpack::kFloat, 64},
    {bf16, dlpack::kBfloat, 16},      {f8e4m3, dlpack::kFloat8E4M3FN, 8},
    {f8e5m2, dlpack::kFloat8E5M2, 8},
};

DType dtype_from(dlpack::DataType type) {
  for (const TypeRow& row : kTypes)
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  throw Error(ErrorCode::usage,
              detail::concat("this DLPack tensor's type (code ", int{type.code}, ", ",
                             int{type.bits}, " bits, ", type.lanes, " lanes) has no dtype here"));
}

Device device_from(dlpack::Device device) {
  switch (device.device_type) {
    case dlpack::kCPU:
    case dlpack::kCUDAHost: return Device();
    case dlpack::kCUDA:
    case dlpack::kCUDAManaged: return Device(DeviceKind::cuda, device.device_id);
    default: break;
  }
  throw Error(ErrorCode::usage,
              detail::concat("this DLPack tensor is on a device of type ", device.device_type,
                             ": only CPU and CUDA memory can be used"));
}

std::vector<int64_t> row_major(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return strides;
}

// Strides of axes with at most one element are never used, and none are where there are no elements.
void check_strides(const TensorView& view, const Shape& shape) {
  if (!view.strides || product(shape) == 0) return;
  const std::vector<int64_t> expected = row_major(shape);
  for (size_t i = 0; i < shape.size(); i++)
    HIDET_REQUIRE(shape[i] <= 1 || view.strides[i] == expected[i], ErrorCode::usage, "",
                  "this DLPack tensor of shape ", shape_text(shape),
                  " is strided: a row-major one has the strides ", shape_text(expected),
                  ", and it has ", shape_text(Shape(view.strides, view.strides + view.ndim)),
                  "; make it contiguous first");
}

// `release` lets go of the producer's memory.
Tensor wrap(const TensorView& view, std::function<void(void*)> release) {
  HIDET_REQUIRE(view.ndim >= 0 && (view.ndim == 0 || view.shape), ErrorCode::usage, "",
                "this DLPack tensor has no shape");
  const Shape shape(view.shape, view.shape + view.ndim);
  const DType dtype = dtype_from(view.dtype);
  product(shape);
  check_strides(view, shape);
  auto* data = view.data ? static_cast<char*>(view.data) + view.byte_offset : nullptr;
  return Tensor::from_blob(data, shape, dtype, device_from(view.device), std::move(release));
}

template <class Managed>
Tensor take(Managed* managed) {
  // Owned from here on, whatever happens.
  const std::shared_ptr<Managed> owner(managed, [](Managed* m) {
    if (m && m->deleter) m->deleter(m);
  });
  HIDET_REQUIRE(managed, ErrorCode::usage, "", "this DLPack tensor is null");
  if constexpr (std::is_same_v<Managed, ManagedTensorVersioned>) {
    HIDET_REQUIRE(managed->version.major == 1, ErrorCode::unsupported, "",
                  "this DLPack tensor has version ", managed->version.major, ".",
                  managed->version.minor, ", and only 1.x is known");
    HIDET_REQUIRE(!(managed->flags & dlpack::kReadOnly), ErrorCode::usage, "",
                  "this DLPack tensor is read-only: pass a copy");
  }
  return wrap(managed->dl_tensor, [owner](void*) {});
}

// What a managed tensor of ours points to.
template <class Managed>
struct Given {
  Managed managed{};
  Tensor tensor;
  Shape shape, strides;
};

template <class Managed>
Managed* give(const Tensor& tensor) {
  auto given = std::make_unique<Given<Managed>>();
  given->tensor = tensor;
  given->shape = tensor.shape();
  given->strides = row_major(given->shape);
  TensorView& view = given->managed.dl_tensor;
  view.data = tensor.data();
  view.device = {tensor.device().is_cpu() ? dlpack::kCPU : dlpack::kCUDA, tensor.device().index()};
  view.ndim = tensor.rank();
  view.shape = given->shape.data();
  view.strides = given->strides.data();
  bool known = false;
  for (const TypeRow& row : kTypes) {
    if (row.dtype == tensor.dtype()) {
      view.dtype = {row.code, row.bits, 1};
      known = true;
    }
  }
  HIDET_REQUIRE(known, ErrorCode::unsupported, "", "DLPack has no type for ", tensor.dtype());
  given->managed.manager_ctx = given.get();
  given->managed.deleter = [](Managed* m) { delete static_cast<Given<Managed>*>(m->manager_ctx); };
  return &given.release()->managed;
}

}  // namespace

Tensor from_dlpack(ManagedTensor* managed) { return take(managed); }
Tensor from_dlpack(ManagedTensorVersioned* managed) { return take(managed); }

ManagedTensor* to_dlpack(const Tensor& tensor) { return give<ManagedTensor>(tensor); }

ManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor) {
  auto* managed = give<ManagedTensorVersioned>(tensor);
  managed->version = {1, 0};
  return managed;
}

}  // namespace hidet
