// device_api.h - memory of devices: allocate, copy, count, limit.
// Threading: everything here is thread-safe.
#pragma once
#include <hidet/runtime/device.h>

#include <cstddef>
#include <cstdint>

namespace hidet {

/// Bytes of one device as this program's tensors and workspaces use it.
struct MemoryStats {
  int64_t current = 0;  ///< given out and not freed
  int64_t peak = 0;     ///< the most of `current` since the start or reset_peak_memory
  int64_t limit = 0;    ///< set by the user; 0: none
  int64_t cached = 0;   ///< freed, and kept for the next allocation (CPU only)
};
MemoryStats memory_stats(Device device);
void reset_peak_memory(Device device);
/// From now on an allocation that would pass `bytes` throws Error(memory); 0 takes the limit away.
void set_memory_limit(Device device, int64_t bytes);
/// Give memory that is kept for later allocations back to the system.
void trim_memory(Device device);

namespace runtime {

/// What a kind of device can do. Copies and fills are finished when the call returns, as far as the
/// host can tell: a later read by the host, or work on the default stream, sees them.
class DeviceApi {
 public:
  virtual ~DeviceApi() = default;
  /// At least 64-byte aligned; null for 0 bytes; throws Error(memory).
  virtual void* allocate(size_t bytes) = 0;
  /// `bytes` as allocated.
  virtual void free(void* ptr, size_t bytes) noexcept = 0;
  virtual void copy(void* to, Device to_device, const void* from, Device from_device,
                    size_t bytes) = 0;
  virtual void fill_zero(void* to, size_t bytes) = 0;
  virtual void synchronize() = 0;
  virtual void trim() = 0;
  virtual int64_t cached_bytes() { return 0; }
};

/// The one of this device; throws Error(device) where the device is not there.
DeviceApi& device_api(Device device);
/// The GPUs' one, in src/cuda/. Throws Error(device) where there is no such GPU.
DeviceApi& cuda_device_api(int index);

/// Memory of the device, counted and under the user's limit: what tensors and workspaces use.
void* allocate(Device device, size_t bytes);
void free_memory(Device device, void* ptr, size_t bytes) noexcept;
/// A copy between any two devices.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

}  // namespace runtime
}  // namespace hidet
