// memory.cpp - a stream-ordered memory pool per GPU, with counters.
// Needs: a GPU; one without pools is served by plain allocations. Leaves: the pool keeps freed memory for the
// next allocation, until cuda_trim or until an allocation finds no room.
// Threading: thread-safe.
#include <algorithm>

#include <hidet/runtime/error.h>

#include "src/cuda/cuda_memory.h"
#include "src/cuda/cuda_module.h"
#include "src/cuda/driver.h"

namespace hidet::runtime {
namespace {

using namespace cuda;

CUmemPoolHandle_st* pool_of(DeviceState& state) {
  std::call_once(state.pool_once, [&] {
    PoolProps props;
    props.location_id = state.info.index;
    HIDET_CU(cuMemPoolCreate, &state.pool, &props);
    uint64_t keep = UINT64_MAX;
    HIDET_CU(cuMemPoolSetAttribute, state.pool, static_cast<int>(kPoolReleaseThreshold), &keep);
  });
  return state.pool;
}

int allocate(DeviceState& state, DevicePtr* address, size_t bytes) {
  if (state.has_pools)
    return driver().cuMemAllocFromPoolAsync(address, bytes, pool_of(state), nullptr);
  const int result = driver().cuMemAlloc(address, bytes);
  if (result != kOk) return result;
  std::lock_guard lock(state.sizes_mutex);
  state.sizes[*address] = bytes;
  state.used += bytes;
  state.used_high = std::max(state.used_high, state.used);
  return result;
}

uint64_t pool_value(DeviceState& state, int which) {
  uint64_t value = 0;
  HIDET_CU(cuMemPoolGetAttribute, pool_of(state), which, &value);
  return value;
}

}  // namespace

void* cuda_allocate(int device, size_t bytes) {
  if (bytes == 0) return nullptr;
  DeviceState& state = bind(device);
  DevicePtr address = 0;
  int result = allocate(state, &address, bytes);
  if (result == kOutOfMemory) {
    cuda_trim(device);
    result = allocate(state, &address, bytes);
  }
  if (result == kOutOfMemory) {
    const CudaMemory now = cuda_memory(device);
    throw Error(ErrorCode::memory,
                detail::concat("cuda:", device, " (", state.info.name, ") has no room for ", bytes,
                               " bytes: ", now.free, " of ", now.total, " bytes are free and ",
                               now.used, " are in use by this program's tensors"));
  }
  check(result, "cuMemAllocFromPoolAsync", detail::concat(bytes, " bytes of cuda:", device));
  return as_host(address);
}

void cuda_free(int device, void* pointer) noexcept {
  if (!pointer) return;
  try {
    DeviceState& state = bind(device);
    if (state.has_pools) {
      driver().cuMemFreeAsync(as_device(pointer), nullptr);
      return;
    }
    {
      std::lock_guard lock(state.sizes_mutex);
      auto at = state.sizes.find(as_device(pointer));
      if (at != state.sizes.end()) {
        state.used -= at->second;
        state.sizes.erase(at);
      }
    }
    driver().cuMemFree(as_device(pointer));  // waits for work that uses it
  } catch (const Error&) {
    // The process is ending and the driver is gone, or an earlier kernel broke the context, which the next
    // checked call reports. Either way the memory is gone too.
  }
}

CudaMemory cuda_memory(int device) {
  DeviceState& state = bind(device);
  size_t free = 0, total = 0;
  HIDET_CU(cuMemGetInfo, &free, &total);
  CudaMemory memory;
  memory.free = static_cast<int64_t>(free);
  memory.total = static_cast<int64_t>(total);
  if (state.has_pools) {
    memory.used = static_cast<int64_t>(pool_value(state, kPoolUsed));
    memory.peak = static_cast<int64_t>(pool_value(state, kPoolUsedHigh));
    memory.reserved = static_cast<int64_t>(pool_value(state, kPoolReserved));
    return memory;
  }
  std::lock_guard lock(state.sizes_mutex);
  memory.used = memory.reserved = static_cast<int64_t>(state.used);
  memory.peak = static_cast<int64_t>(state.used_high);
  return memory;
}

void cuda_reset_peak(int device) {
  DeviceState& state = bind(device);
  uint64_t zero = 0;
  if (state.has_pools) {
    HIDET_CU(cuMemPoolSetAttribute, pool_of(state), static_cast<int>(kPoolUsedHigh), &zero);
    return;
  }
  std::lock_guard lock(state.sizes_mutex);
  state.used_high = state.used;
}

void cuda_trim(int device) {
  DeviceState& state = bind(device);
  HIDET_CU(cuCtxSynchronize);
  if (state.has_pools) HIDET_CU(cuMemPoolTrimTo, pool_of(state), static_cast<size_t>(0));
}

}  // namespace hidet::runtime
