// memory.cpp - memory of devices: counters and limits for all of them, and the CPU with its cache of
// freed blocks.
// Leaves: up to kMostCached bytes of freed CPU memory stay for the next allocations, until trim_memory or
// until the system has no more.
// Threading: thread-safe; objects live for ever, as tensors may be freed while the process ends.
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"

namespace hidet {
namespace runtime {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMostCached = size_t{256} << 20;

// Sizes are rounded up to eight steps a power of two, so that blocks fit again; at most 1/8 is wasted.
size_t class_of(size_t bytes) {
  if (bytes <= 8 * kAlignment) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

// Asks for pages of 2 MiB where the system gives them to those that ask: faults of 4 KiB pages cost as much as filling them.
// The pages lie inside the bytes that are asked for, so that no more memory becomes resident.
void ask_for_large_pages(void* block, size_t bytes) {
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  const auto at = reinterpret_cast<uintptr_t>(block);
  const uintptr_t begin = (at + kPage - 1) / kPage * kPage, end = (at + bytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

class CpuApi final : public DeviceApi {
 public:
  void* allocate(size_t bytes) override {
    if (bytes == 0) return nullptr;
    HIDET_REQUIRE(bytes <= SIZE_MAX / 4, ErrorCode::memory, "", "cpu has no room for ", bytes,
                  " bytes");
    const size_t size = class_of(bytes);
    {
      std::lock_guard lock(mutex_);
      const auto at = blocks_.find(size);
      if (at != blocks_.end() && !at->second.empty()) {
        void* block = at->second.back();
        at->second.pop_back();
        cached_ -= size;
        return block;
      }
    }
    void* block = std::aligned_alloc(kAlignment, size);
    if (!block) {
      trim();
      block = std::aligned_alloc(kAlignment, size);
    }
    HIDET_REQUIRE(block, ErrorCode::memory, "", "cpu has no room for ", bytes, " bytes");
    ask_for_large_pages(block, bytes);
    return block;
  }

  void free(void* block, size_t bytes) noexcept override {
    if (!block) return;
    const size_t size = class_of(bytes);
    {
      std::lock_guard lock(mutex_);
      if (size <= kMostCached - cached_ && keep(block, size)) return;
    }
    std::free(block);
  }

  void copy(void* to, Device, const void* from, Device, size_t bytes) override {
    if (bytes) std::memmove(to, from, bytes);
  }
  void fill_zero(void* to, size_t bytes) override {
    if (bytes) std::memset(to, 0, bytes);
  }
  void synchronize() override {}

  void trim() override {
    std::unordered_map<size_t, std::vector<void*>> blocks;
    {
      std::lock_guard lock(mutex_);
      blocks.swap(blocks_);
      cached_ = 0;
    }
    for (const auto& [size, list] : blocks)
      for (void* block : list) std::free(block);
  }

  int64_t cached_bytes() override {
    std::lock_guard lock(mutex_);
    return static_cast<int64_t>(cached_);
  }

 private:
  // Where even the list cannot grow, the block goes back to the system.
  bool keep(void* block, size_t size) noexcept {
    try {
      blocks_[size].push_back(block);
    } catch (const std::bad_alloc&) {
      return false;
    }
    cached_ += size;
    return true;
  }

  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> blocks_;  // by size class
  size_t cached_ = 0;
};

// What one device has given out.
struct Counter {
  std::atomic<int64_t> current{0}, peak{0}, limit{0};
};

Counter& counter(Device device) {
  static Counter* const cpu = new Counter;
  if (device.is_cpu()) return *cpu;
  static std::mutex* const mutex = new std::mutex;
  static auto* const gpus = new std::map<int, Counter>;
  std::lock_guard lock(*mutex);
  return (*gpus)[device.index()];
}

// Counts `bytes` in, unless that passes the limit.
void count_in(Counter& c, Device device, int64_t bytes) {
  int64_t now = c.current.load(std::memory_order_relaxed);
  do {
    const int64_t limit = c.limit.load(std::memory_order_relaxed);
    HIDET_REQUIRE(limit == 0 || bytes <= limit - now, ErrorCode::memory, "", bytes,
                  " bytes more on ", device.name(), " would pass the limit of ", limit,
                  " bytes: ", now, " are in use");
  } while (!c.current.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  int64_t peak = c.peak.load(std::memory_order_relaxed);
  while (peak < now + bytes &&
         !c.peak.compare_exchange_weak(peak, now + bytes, std::memory_order_relaxed)) {
  }
}

}  // namespace

DeviceApi& device_api(Device device) {
  static CpuApi* const cpu = new CpuApi;
  if (device.is_cpu()) return *cpu;
  return cuda_device_api(device.index());
}

void* allocate(Device device, size_t bytes) {
  if (bytes == 0) return nullptr;
  HIDET_REQUIRE(bytes <= INT64_MAX / 2, ErrorCode::memory, "", device.name(), " has no room for ",
                bytes, " bytes");
  DeviceApi& api = device_api(device);
  Counter& c = counter(device);
  count_in(c, device, static_cast<int64_t>(bytes));
  try {
    return api.allocate(bytes);
  } catch (...) {
    c.current.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    throw;
  }
}

void free_memory(Device device, void* ptr, size_t bytes) noexcept {
  if (!ptr) return;
  device_api(device).free(ptr, bytes);
  counter(device).current.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  if (bytes == 0) return;
  device_api(from_device.is_cuda() ? from_device : to_device)
      .copy(to, to_device, from, from_device, bytes);
}

}  // namespace runtime

MemoryStats memory_stats(Device device) {
  const runtime::Counter& c = runtime::counter(device);
  MemoryStats stats{c.current, c.peak, c.limit, 0};
  stats.cached = runtime::device_api(device).cached_bytes();
  return stats;
}

void reset_peak_memory(Device device) {
  runtime::Counter& c = runtime::counter(device);
  c.peak = c.current.load();
}

void set_memory_limit(Device device, int64_t bytes) {
  HIDET_REQUIRE(bytes >= 0, ErrorCode::usage, "", "the memory limit of ", device.name(),
                " must not be negative: ", bytes);
  runtime::counter(device).limit = bytes;
}

void trim_memory(Device device) { runtime::device_api(device).trim(); }

}  // namespace hidet
