// hopper.h - the state that sm_90 adds to blocks: mbarriers, clusters, tensor maps, copies and products on their way.
// Threading: one thread at a time.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "sim/clock.h"
#include "sim/values.h"

namespace hidet::backends::sim {

struct Block;

/// What acts on its own is stamped as a thread of its block with a number from there on, its clock the number of the phase or
/// group that tells others of its end: copies by their mbarrier, products by their warp group, bulk stores by their thread.
constexpr uint16_t kCopies = 1024, kProducts = 2048, kStoreReads = 4096, kStoreWrites = 8192;
/// Knowledge of a run that also came by a proxy fence is kept under the run's number with this bit.
constexpr uint32_t kFenced = 0x80000000;
/// Numbers of objects from one block of the cluster to the next.
constexpr int64_t kLocalsPerBlock = 240;

/// The operations, in the order of the table in compile_hopper.cpp.
enum class Hopper : uint8_t {
  tensor_map,
  init,
  invalidate,
  arrive,
  arrive_remote,
  arrive_expect,
  expect,
  wait,
  fence_init,
  fence_proxy,
  tma_load,
  tma_store,
  bulk_load,
  bulk_load_multicast,
  bulk_store,
  bulk_commit,
  bulk_wait,
  bulk_wait_read,
  cluster_rank,
  cluster_size,
  cluster_arrive,
  cluster_wait,
  map_rank,
  descriptor,
  product_fence,
  product_commit,
  product_wait,
  product,
  nothing,
};

struct Mbarrier {
  std::string name;  ///< "full[2]"
  int64_t count = 0, missing = 0, bytes = 0;
  uint32_t phase = 0;  ///< ended ones
  uint16_t slot = 0;
  bool fenced = false;
  uint32_t init_clock = 0;
  uint16_t init_thread = 0;
  int32_t init_at = 0;
  Clock arriving, done;  ///< what those who arrived knew: so far, and in phases that have ended
};

/// Blocks that run together.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  int64_t arrived = 0;
  uint32_t phase = 0;  ///< ended ones of the cluster's barrier
  Clock arriving, done;
};

/// What a tensor map says, innermost extent first.
struct TensorMap {
  int64_t pointer = 0;
  DType dtype;
  int rank = 0, swizzle = 0;
  int64_t extent[5] = {}, stride[5] = {}, box[5] = {};  ///< stride in bytes
  int64_t box_bytes() const;
  void write(Cell* row) const;  ///< 16 rows of cells
  static TensorMap read(const Cell* row);
};

/// The address of 16 bytes in shared memory, permuted by a swizzle of 0, 32, 64 or 128 bytes.
inline int64_t swizzled(int64_t address, int swizzle) {
  return swizzle ? address ^ ((address >> 7) & (swizzle / 16 - 1)) << 4 : address;
}

/// In `written` of registers: also since the last wgmma_fence.
constexpr uint8_t kFresh = 2;

/// Sums of a product that has not ended, in a thread's registers.
struct Pending {
  int64_t offset, bytes;
  uint32_t group;
  int32_t at;
};

}  // namespace hidet::backends::sim
