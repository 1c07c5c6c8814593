// hopper.h - CUDA primitives of sm_90 and sm_90a: mbarriers, bulk copies and tensor maps, clusters, wgmma.
// Each is a row of the table ir/primitives.h.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/ir/bulk.h>
#include <hidet/lang/types.h>

#include <optional>
#include <string>

namespace hidet::lang {

// --- mbarriers: elements of a shared tensor of u64. A phase ends when all arrivals and all expected bytes are there;
// phases alternate in parity, the first has parity 0.
void mbarrier_init(const Located& barrier, const Located& arrivals);
void mbarrier_invalidate(const Located& barrier);
void mbarrier_arrive(const Located& barrier);
/// Arrives at the barrier at the same place in block `rank` of the cluster.
void mbarrier_arrive(const Located& barrier, const Located& rank);
/// The phase waits for `bytes` of copies more, before this arrival counts; in block `rank` of the cluster.
void mbarrier_arrive_expect_tx(const Located& barrier, const Located& bytes);
void mbarrier_arrive_expect_tx(const Located& barrier, const Located& bytes, const Located& rank);
void mbarrier_expect_tx(const Located& barrier, const Located& bytes);
/// Counts as the end of a copy of `bytes`.
void mbarrier_complete_tx(const Located& barrier, const Located& bytes);
/// `count` arrivals; the phase's state before them (u64), for mbarrier_test_wait and mbarrier_pending.
Value mbarrier_arrive_state(const Located& barrier, const Located& count = 1);
/// The same, where the phase does not end with these arrivals.
Value mbarrier_arrive_no_complete(const Located& barrier, const Located& count = 1);
/// Arrives for the last time: phases from the next on wait for one arrival less.
void mbarrier_arrive_drop(const Located& barrier);
/// Arrives when the cp_async that this thread issued before have ended. `counted`: it is one of those that the phase waits
/// for; else the phase waits for one more.
void mbarrier_arrive_copies(const Located& barrier, bool counted = true);
/// Arrivals that the phase of a state missed, i32.
Value mbarrier_pending(const Located& state);
/// Waits until the phase of that parity has ended; a new barrier counts as one whose phase of parity 1 has.
void mbarrier_wait(const Located& barrier, const Located& parity);
/// Whether it has: the phase of a parity (i32), or that of a state (u64). try_wait lets the thread sleep for up to about `ns`.
Value mbarrier_test_wait(const Located& barrier, const Located& parity_or_state);
Value mbarrier_try_wait(const Located& barrier, const Located& parity_or_state, const Located& ns);
/// After mbarrier_init: the barriers are ready for other blocks of the cluster and for copies.
void fence_mbarrier_init(Here at = Here::current());
/// Makes what threads wrote to memory visible to bulk copies and wgmma that follow; to that of one kind.
void fence_proxy_async(Here at = Here::current());
void fence_proxy_async_shared(Here at = Here::current());
void fence_proxy_async_global(Here at = Here::current());
/// Between accesses to the same memory through two of its addresses (mapped twice by the driver).
void fence_proxy_alias(Here at = Here::current());
/// threadfence for the cluster's threads.
void threadfence_cluster(Here at = Here::current());

// --- tensor maps: a public function makes them of device memory, a kernel takes them as arguments of this type
inline constexpr VectorName tensor_map_type{u64, 16};
struct MapOptions {
  int swizzle = 0;  ///< 0, 32, 64, 128: bytes of a row of the box that are permuted
  std::vector<Value> strides =
      {};  ///< in elements, outermost first, without the last; {}: row major
};
/// Describes a tensor of `shape` (1 to 5 extents, outermost first) and the box of it that one copy moves.
Value tensor_map(const std::string& name, const Located& pointer, const std::vector<Value>& shape,
                 const std::vector<int>& box, const MapOptions& options = {},
                 Here at = Here::current());
/// The layout of a shared tensor whose rows have `bytes` (32, 64, 128) and that tensor maps of this swizzle fill.
Layout swizzled_rows(DType dtype, int bytes);

// --- bulk copies, by one thread. Coordinates are elements, outermost first, the last a multiple of 16 bytes; outside of the
// tensor loads give 0 and stores, which begin at 0 or behind, do nothing. Loads count their bytes at the mbarrier; stores end in groups.
using ir::Combine;
using ir::Evict;
/// How L2 keeps what copies touch (u64): a part of it (above 0 to 1) as `first` says, the rest as `rest` (first, unchanged).
Value cache_policy(Evict first, const Located& part = 1.0f, Evict rest = Evict::unchanged);
struct CopyOptions {
  /// Loads: a mask of blocks of the cluster. The copy goes to the same place in each, where a barrier at the same place counts.
  Value blocks = {};
  Value policy = {};  ///< of cache_policy()
};
void tma_load(const Located& to, const Handle& map, const std::vector<Located>& at,
              const Located& barrier, const CopyOptions& options = {});
void tma_store(const Handle& map, const std::vector<Located>& at, const Located& from,
               const CopyOptions& options = {});
/// Combines each element with the one that is there, atomically (maps of i64: min and max only; u64 does the rest). Sums: 32- and 64-bit integers, f16, bf16, f32, f64; min and
/// max: integers, f16, bf16; inc, dec: u32; bits: integers.
void tma_reduce(Combine op, const Handle& map, const std::vector<Located>& at, const Located& from,
                const CopyOptions& options = {});
void tma_prefetch(const Handle& map, Here at = Here::current());
/// Loads a box into L2.
void tma_prefetch(const Handle& map, const std::vector<Located>& at,
                  const CopyOptions& options = {}, Here here = Here::current());
/// `bytes` is a multiple of 16, as are the addresses.
void bulk_load(const Located& to, const Located& from, const Located& bytes, const Located& barrier,
               const CopyOptions& options = {});
void bulk_store(const Located& to, const Located& from, const Located& bytes,
                const CopyOptions& options = {});
/// Combines as tma_reduce does; the elements are of the type that `to` points to.
void bulk_reduce(Combine op, const Located& to, const Located& from, const Located& bytes,
                 const CopyOptions& options = {});
void bulk_prefetch(const Located& from, const Located& bytes, const CopyOptions& options = {});
/// From shared memory to that of a block of the cluster: `to` and `barrier`, which counts the bytes, are map_shared_rank's.
void bulk_send(const Located& to, const Located& from, const Located& bytes,
               const Located& barrier);
/// Sums of 32- and 64-bit integers; min, max, bits of 32-bit ones; inc, dec of u32.
void bulk_send(Combine op, const Located& to, const Located& from, const Located& bytes,
               const Located& barrier);
/// A thread's value of 4, 8 or 16 bytes, at a multiple of them, likewise; async_reduce: i32, u32, i64, u64 as bulk_send does.
void async_store(const Located& to, const Located& value, const Located& barrier);
void async_reduce(Combine op, const Located& to, const Located& value, const Located& barrier);
void bulk_commit(Here at = Here::current());
/// Until `pending` groups are left; bulk_wait_read: until all others have read their shared memory.
void bulk_wait(int pending = 0, Here at = Here::current());
void bulk_wait_read(int pending = 0, Here at = Here::current());

// --- clusters (Function::cluster_dim)
struct ClusterBuiltin : ir::Recordable {
  const char* row;
  constexpr explicit ClusterBuiltin(const char* name) : row(name) {}
  operator Value() const;
};
inline constexpr ClusterBuiltin cluster_rank{"cluster_rank"}, cluster_size{"cluster_size"};
void cluster_arrive(Here at = Here::current());
void cluster_wait(Here at = Here::current());
void cluster_sync(Here at = Here::current());
/// The pointer to the same place in the shared memory of block `rank` of the cluster.
Value map_shared_rank(const Located& pointer, const Located& rank);

// --- launches that overlap, warps, registers
void griddep_wait(Here at = Here::current());
void griddep_launch(Here at = Here::current());
/// True on one lane of the warp, all of which must be there.
Value elect_one(Here at = Here::current());
/// Registers of a thread, 24 to 256 in steps of 8; all warps of the warp group.
void setmaxnreg_inc(int registers, Here at = Here::current());
void setmaxnreg_dec(int registers, Here at = Here::current());

// --- wgmma: products of a warp group (4 warps, the first a multiple of 4) of matrices in shared memory
struct MatrixOptions {
  int swizzle = 128;  ///< of the shared tensor: 128, 64, 32 or 0
  /// Contiguous along m of a or n of b, not along k; 16-bit types only.
  bool mn_major = false;
  /// Bytes. k-major: `stride` from 8 rows to the next 8, `leading` (without swizzle) from 16 bytes of k to the next.
  /// mn-major: `leading` from one swizzled row's width of m or n to the next, `stride` from 8 steps of k to the next;
  /// without a swizzle the two change places. 0: as in a tensor of rows of `swizzle` bytes.
  int leading = 0, stride = 0;
};
/// The descriptor (u64) of a matrix in shared memory. Descriptors count in 16 bytes: d + 2 is 32 bytes further.
Value wgmma_matrix(const Located& pointer, const MatrixOptions& options = {});
/// A product of 64 x n x k, where k fills 32 bytes.
struct Wgmma {
  int n = 256;     ///< 8 to 256 in steps of 8
  DType in = f16;  ///< f16, bf16, tf32, f8e4m3, f8e5m2, i8, u8
  std::optional<DType> in_b =
      {};           ///< of b where it is not a's: the other f8, or the other of i8 and u8
  DType sum = f32;  ///< f32; f16 for f16 and f8; i32 for i8 and u8
  bool a_mn_major = false, b_mn_major = false;
  bool negate_a = false, negate_b = false;  ///< not of integers
  bool saturate = false;                    ///< integers: sums stay at the limits of i32
};
/// sums = a b + (accumulate ? sums : 0), at once with what follows. `sums`: a register tensor of n / 2 f32 or i32 or n / 4
/// u32 (pairs of f16). `a`: a descriptor, or its fragment u32x4. `b`: a descriptor, n rows of k.
void wgmma(const Handle& sums, const Located& a, const Located& b, const Wgmma& shape,
           const Located& accumulate = true);
/// Before the first product, and after other code wrote to `sums` or fragments.
void wgmma_fence(const std::vector<Handle>& sums = {}, Here at = Here::current());
void wgmma_commit(Here at = Here::current());
/// Until `pending` groups of products are left; `sums` may be used afterwards.
void wgmma_wait(int pending, const std::vector<Handle>& sums, Here at = Here::current());

}  // namespace hidet::lang
