// dlpack.h - tensors to and from other libraries through DLPack, without a copy.
// The structs are the stable C ABI of DLPack: the versioned one (1.0) and the one before it (legacy).
// Threading: thread-safe; a managed tensor belongs to one thread at a time.
#pragma once
#include <hidet/runtime/tensor.h>

#include <cstdint>

namespace hidet {
namespace dlpack {

enum DeviceType : int32_t { kCPU = 1, kCUDA = 2, kCUDAHost = 3, kCUDAManaged = 13 };
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E5M2 = 12
};
enum Flags : uint64_t { kReadOnly = 1, kIsCopied = 2 };

struct Device {
  int32_t device_type;
  int32_t device_id;
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
/// strides count elements; null means row-major.
struct TensorView {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct ManagedTensor {
  TensorView dl_tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor*);
};
struct Version {
  uint32_t major;
  uint32_t minor;
};
struct ManagedTensorVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned*);
  uint64_t flags;
  TensorView dl_tensor;
};

}  // namespace dlpack

/// A tensor on the producer's memory. Takes the managed tensor over: its deleter is called when the last
/// tensor on the memory is gone, and at once where the call throws. Throws Error(usage) for strides that are not row-major,
/// a dtype or device that is not known, an address that does not fit the dtype, and read-only memory.
Tensor from_dlpack(dlpack::ManagedTensor* managed);
Tensor from_dlpack(dlpack::ManagedTensorVersioned* managed);
/// A managed tensor on the same memory, which lives until its deleter is called. Strides are filled in.
dlpack::ManagedTensor* to_dlpack(const Tensor& tensor);
dlpack::ManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor);

}  // namespace hidet
