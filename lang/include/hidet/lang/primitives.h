// primitives.h - math, CUDA and CPU primitives. Each is a row of the table ir/primitives.h.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/lang/handle.h>

#include <string>

namespace hidet::lang {

namespace detail {
Value math(const char* name, const std::vector<Located>& args);
/// A row without side effects.
Value pure(const char* name, const std::vector<Located>& args, SourceLoc at);
/// A row that acts: recorded as a statement, or as the result. `stores`: how many of the first arguments
/// are pointers that it writes through.
CallResult effect(const char* name, const std::vector<Located>& args, const Type& result,
                  int stores, std::vector<int64_t> attrs, SourceLoc at);
Type pointee(const Located& pointer);
/// The second operand of an atomic: a constant takes the pointee's type.
Located operand(const Located& pointer, const Located& v);
CallResult atomic(const char* name, const std::vector<Located>& args, SourceLoc at);
}  // namespace detail

/// Any row of the table by name, where no function below says it better.
Value prim(const std::string& name, const std::vector<Located>& args, const Type& result,
           std::vector<int64_t> attrs = {}, Here at = Here::current());
/// The same for a row with a side effect; it may store through its first `stores` arguments.
inline CallResult prim_effect(const std::string& name, const std::vector<Located>& args,
                              const Type& result = {}, int stores = 0,
                              std::vector<int64_t> attrs = {}, Here at = Here::current()) {
  return detail::effect(name.c_str(), args, result, stores, std::move(attrs), at);
}

// --- math, lane by lane, on any floating-point dtype (abs: integers, too)
#define HIDET_MATH(name) \
  inline Value name(const Located& x) { return detail::math(#name, {x}); }
HIDET_MATH(exp)
HIDET_MATH(exp2)
HIDET_MATH(expm1)
HIDET_MATH(log)
HIDET_MATH(log2)
HIDET_MATH(log10)
HIDET_MATH(log1p)
HIDET_MATH(sqrt)
HIDET_MATH(rsqrt)
HIDET_MATH(tanh)
HIDET_MATH(erf)
HIDET_MATH(sigmoid)
HIDET_MATH(sin)
HIDET_MATH(cos)
HIDET_MATH(tan)
HIDET_MATH(asin)
HIDET_MATH(acos)
HIDET_MATH(atan)
HIDET_MATH(sinh)
HIDET_MATH(cosh)
HIDET_MATH(asinh)
HIDET_MATH(acosh)
HIDET_MATH(atanh)
HIDET_MATH(floor)
HIDET_MATH(ceil)
HIDET_MATH(round)
HIDET_MATH(trunc)
HIDET_MATH(abs)
HIDET_MATH(isnan)
HIDET_MATH(isinf)
#undef HIDET_MATH
inline Value fma(const Located& a, const Located& b, const Located& c) {
  return detail::math("fma", {a, b, c});
}
inline Value pow(const Located& a, const Located& b) {
  return ir::binary(ir::BinaryOp::pow, a.value, b.value, b.loc);
}

// --- CUDA: indices, i32
struct Builtin : ir::Recordable {
  const char* row;
  constexpr explicit Builtin(const char* name) : row(name) {}
  operator Value() const { return detail::pure(row, {}, {}); }
};
struct Builtin3 {
  Builtin x, y, z;
};
inline constexpr Builtin3 threadIdx{Builtin("thread_idx_x"), Builtin("thread_idx_y"),
                                    Builtin("thread_idx_z")};
inline constexpr Builtin3 blockIdx{Builtin("block_idx_x"), Builtin("block_idx_y"),
                                   Builtin("block_idx_z")};
inline constexpr Builtin3 blockDim{Builtin("block_dim_x"), Builtin("block_dim_y"),
                                   Builtin("block_dim_z")};
inline constexpr Builtin3 gridDim{Builtin("grid_dim_x"), Builtin("grid_dim_y"),
                                  Builtin("grid_dim_z")};

// --- CUDA: barriers and fences
#define HIDET_STATEMENT(name) \
  inline void name(Here at = Here::current()) { (void)detail::effect(#name, {}, {}, 0, {}, at); }
HIDET_STATEMENT(syncthreads)
HIDET_STATEMENT(syncwarp)
HIDET_STATEMENT(threadfence)
HIDET_STATEMENT(threadfence_block)
HIDET_STATEMENT(threadfence_system)
HIDET_STATEMENT(cp_async_commit)
#undef HIDET_STATEMENT

/// Named barriers 1 to 15, for a part of the block: `count` threads, whole warps; arrive does not wait.
void barrier_sync(const Located& id, const Located& count);
void barrier_arrive(const Located& id, const Located& count);
/// syncthreads that tells all threads whether `cond` holds on all, on any, on how many.
Value syncthreads_and(const Located& cond);
Value syncthreads_or(const Located& cond);
Value syncthreads_count(const Located& cond);

// --- CUDA: exchange within a warp, full mask. Bound to an immutable variable where they are written, so
// that every thread of the warp meets them once.
Value shfl(const Located& v, const Located& lane);
Value shfl_up(const Located& v, const Located& delta);
Value shfl_down(const Located& v, const Located& delta);
Value shfl_xor(const Located& v, const Located& mask);
Value ballot(const Located& cond);
Value any_lane(const Located& cond);
Value all_lanes(const Located& cond);

// --- atomics on 32 and 64 bit integers, f32, f64, on CUDA f16 and bf16, too (and, or, xor: the integers); the old value.
// CUDA: relaxed; CPU: sequentially consistent.
#define HIDET_ATOMIC(name)                                           \
  inline CallResult name(const Located& p, const Located& v) {       \
    return detail::atomic(#name, {p, detail::operand(p, v)}, v.loc); \
  }
HIDET_ATOMIC(atomic_add)
HIDET_ATOMIC(atomic_max)
HIDET_ATOMIC(atomic_min)
HIDET_ATOMIC(atomic_exch)
HIDET_ATOMIC(atomic_and)
HIDET_ATOMIC(atomic_or)
HIDET_ATOMIC(atomic_xor)
#undef HIDET_ATOMIC
inline CallResult atomic_cas(const Located& p, const Located& expected, const Located& v) {
  return detail::atomic("atomic_cas", {p, detail::operand(p, expected), detail::operand(p, v)},
                        v.loc);
}

/// Promises that an argument that is a pointer is a multiple of `bytes`, a power of two, so that vectors are whole.
void assume_aligned(const Handle& pointer, int bytes, Here at = Here::current());

// --- CUDA: asynchronous copies (sm_80), 4, 8 or 16 bytes from global to shared memory
void cp_async(const Located& to, const Located& from, int bytes);
/// The first `kept` bytes are copied, the rest of `bytes` is 0.
void cp_async(const Located& to, const Located& from, int bytes, const Located& kept);
void cp_async_wait(int pending = 0, Here at = Here::current());

// --- prefetch: on the CPU for reading; on CUDA global memory into L1 or L2
void prefetch(const Located& pointer);
void prefetch_l1(const Located& pointer);
void prefetch_l2(const Located& pointer);
// --- CPU
/// This thread's scratch block number `slot` (0 to 3) of at least `bytes`, 64-byte aligned.
Value scratch(int slot, const Located& bytes, const Type& element);
/// Tile registers of x86 CPUs with the feature "amx": eight, numbered 0 to 7, of 16 rows of 64 bytes. A task that uses them begins with
/// amx_config and ends with amx_release; they are the thread's own, and what they hold is lost in a parallel loop.
void amx_config(Here at = Here::current());
void amx_release(Here at = Here::current());
/// Register `tile` = 0; = 16 rows of 64 bytes, `distance` bytes apart, in memory; and the way back.
void amx_zero(int tile, Here at = Here::current());
void amx_load(int tile, const Located& pointer, const Located& distance);
void amx_store(int tile, const Located& pointer, const Located& distance);
/// Register `to` (16x16 f32) += a (16x32 bf16) times b (32x16 bf16 in pairs: word [k][j] holds elements [2k][j] and [2k + 1][j]). Subnormal
/// numbers count as 0. Sums of products of even and of odd k are rounded one by one, then added.
void amx_dot_bf16(int to, int a, int b, Here at = Here::current());
/// Threads that parallel loops may use, at least 1 (i64): for how work is split, which must not change what it gives.
Value parallel_threads(Here at = Here::current());

}  // namespace hidet::lang
