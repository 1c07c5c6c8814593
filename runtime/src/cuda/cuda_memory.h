// cuda_memory.h - GPU memory from a pool of our own, in the order of the default stream.
// Needs: a driver and a GPU. A block may be freed while work of any CudaStream still uses it: the default
// stream's order makes later users wait. Work of a capturing stream must be waited for first.
// Threading: thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>

namespace hidet::runtime {

/// Bytes of one GPU.
struct CudaMemory {
  int64_t used = 0;      ///< given out by cuda_allocate and not freed
  int64_t peak = 0;      ///< the most of `used` since the start or cuda_reset_peak
  int64_t reserved = 0;  ///< held by the pool
  int64_t free = 0;      ///< what the driver could still give
  int64_t total = 0;
};

/// 256-byte aligned memory; null for 0 bytes. Throws Error(memory) that names sizes when there is no room.
void* cuda_allocate(int device, size_t bytes);
void cuda_free(int device, void* pointer) noexcept;
CudaMemory cuda_memory(int device);
void cuda_reset_peak(int device);
/// Give what the pool holds and nobody uses back to the driver; waits for the GPU.
void cuda_trim(int device);

}  // namespace hidet::runtime
