// driver.h - libcuda opened at run time: our own declarations of the few types and calls that we use.
// Needs: nothing at build time. Leaves: driver(), whose calls are function pointers, and check().
// Threading: thread-safe; the library is opened once and never closed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <hidet/runtime/cuda.h>

struct CUctx_st;
struct CUgraph_st;
struct CUlib_st;
struct CUkern_st;
struct CUmemPoolHandle_st;

namespace hidet::runtime::cuda {

using DevicePtr = unsigned long long;

inline DevicePtr as_device(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
inline void* as_host(DevicePtr pointer) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer));
}

// The driver's numbers that we use.
enum : int {
  kOk = 0,
  kOutOfMemory = 2,
  kStubLibrary = 34,
  kNoDevice = 100,
  kNotFound = 500,
  kNotReady = 600,
};
enum : int {
  kAttrMultiprocessors = 16,
  kAttrL2 = 38,
  kAttrMajor = 75,
  kAttrMinor = 76,
  kAttrSharedOptin = 97,
  kAttrPools = 115,
};
enum : int { kFuncStaticShared = 1, kFuncMaxDynamicShared = 8, kFuncNonPortableCluster = 14 };
enum : int { kPoolReleaseThreshold = 4, kPoolReserved = 5, kPoolUsed = 7, kPoolUsedHigh = 8 };
enum : int { kJitErrorLog = 5, kJitErrorLogSize = 6 };
enum : unsigned { kStreamDefault = 0, kStreamNonBlocking = 1, kHostPortable = 1, kHostMapped = 2 };
enum : int { kCaptureRelaxed = 2 };
enum : int { kLaunchClusterDimension = 4 };

// Laid out as the driver's structs of the same purpose.
struct PoolProps {
  int alloc_type = 1;  // pinned, the only one
  int handle_types = 0;
  int location_type = 1;  // a device
  int location_id = 0;
  void* security = nullptr;
  size_t max_size = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
struct alignas(8) LaunchAttribute {
  int id = 0;
  char pad[4] = {};
  uint32_t value[16] = {};
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  CUstream_st* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(PoolProps) == 88 && sizeof(LaunchAttribute) == 72 &&
              sizeof(LaunchConfig) == 56);

/// The opened library's calls.
struct Driver {
#define CALL(name, symbol, ...) int (*name)(__VA_ARGS__) = nullptr;
#include "src/cuda/driver_calls.inc"
#undef CALL
};

/// One GPU: what it is, and what is made at its first use.
struct DeviceState {
  CudaDeviceInfo info;
  int handle = 0;  // CUdevice
  bool has_pools = false;
  std::once_flag context_once;
  CUctx_st* context = nullptr;
  std::once_flag pool_once;
  CUmemPoolHandle_st* pool = nullptr;
  std::mutex sizes_mutex;  // where the GPU has no pools: what was given out
  std::unordered_map<DevicePtr, size_t> sizes;
  size_t used = 0, used_high = 0;
};

/// Everything that opening the driver found: calls and GPUs, or the sentence that says why not.
struct Found {
  Driver calls;
  std::vector<std::unique_ptr<DeviceState>> devices;
  std::string problem;
  int version = 0;      // 13000 for CUDA 13.0; 0: not known
  std::string library;  // the name that was opened
};
const Found& found();

/// The calls; throws Error(device) with the reason where there is no driver or no GPU.
const Driver& driver();
/// Throws Error(device) where GPU number `index` is not there.
DeviceState& device_state(int index);
/// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
std::string error_text(int result);
/// Throws unless `result` is 0: Error(memory) for out of memory, else Error(device), naming call and work.
void check(int result, const char* call, const std::string& what = "");
[[noreturn]] void fail(int result, const char* call, const std::string& what);

/// Make the primary context current, as cuda_bind, and return the state.
DeviceState& bind(int device);

}  // namespace hidet::runtime::cuda

/// A driver call, checked; the error names the call.
#define HIDET_CU(call, ...) \
  ::hidet::runtime::cuda::check(::hidet::runtime::cuda::driver().call(__VA_ARGS__), #call)
