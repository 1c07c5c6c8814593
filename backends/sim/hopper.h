// hopper.h - the state that sm_90 adds to blocks: mbarriers, clusters, tensor maps, copies and products on their way.
// Threading: one thread at a time.
#pragma once
#include <hidet/ir/bulk.h>

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
/// Knowledge of a run that also came by a proxy fence for shared or global memory is kept under the run's number with these bits.
constexpr uint32_t kFencedShared = 0x80000000, kFencedGlobal = 0x40000000;
/// Of a state of an mbarrier: arrivals missed then; the number of the phase is above.
constexpr int64_t kStatePending = 0xfffff;
/// Marks what cache_policy() gives.
constexpr int64_t kPolicy = int64_t{0x4c32} << 48;
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
  arrive_expect_remote,
  arrive_state,
  arrive_no_complete,
  arrive_drop,
  arrive_copies,
  expect,
  complete,
  pending,
  test_parity,
  test_state,
  wait,
  fence_init,
  fence_proxy,
  fence_proxy_shared,
  fence_proxy_global,
  tma_load,
  tma_store,
  tma_reduce,
  tma_prefetch,
  bulk_load,
  bulk_store,
  bulk_reduce,
  bulk_prefetch,
  bulk_send,
  bulk_send_reduce,
  async_store,
  async_reduce,
  policy,
  more_registers,
  fewer_registers,
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

/// How a bulk reduction combines numbers.
struct Reduction {
  ir::Combine op = ir::Combine::add;
  DType dtype;
  bool of_thread = false;  ///< as threads access memory: no proxy fence has to come before
  static Reduction of(const HopperCall& c, bool of_thread = false) {
    return {static_cast<ir::Combine>(c.attrs.at(0)), DType(static_cast<DTypeCode>(c.attrs.at(1))),
            of_thread};
  }
};
/// What an access that is under way does: an atomic one reads and writes, and meets no other; update: one of a thread.
enum class Use : uint8_t { read, write, atomic, update };

/// Sums of a product that has not ended, in a thread's registers.
struct Pending {
  int64_t offset, bytes;
  uint32_t group;
  int32_t at;
};

}  // namespace hidet::backends::sim
