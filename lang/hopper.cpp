// hopper.cpp - records the rows of sm_90 and sm_90a; those of bulk copies are in bulk.cpp.
#include <hidet/ir/primitives.h>
#include <hidet/lang/hopper.h>
#include <hidet/lang/primitives.h>
#include <hidet/lang/statements.h>
#include <hidet/runtime/error.h>

#include <algorithm>

#include "recorder.h"

namespace hidet::lang {
using detail::Expr;
namespace {

/// Records a row that acts, its operands checked by its signature.
void act(const char* name, const std::vector<Located>& args, int stores, std::vector<int64_t> attrs,
         SourceLoc at) {
  detail::require_signature(name, args, {}, at);
  (void)detail::effect(name, args, {}, stores, std::move(attrs), at);
}
Located number(const Located& v, const char* what) { return detail::coerced(v, Type(i32), what); }

Value bound(const char* name, const std::vector<Located>& args, const Type& type, SourceLoc at) {
  detail::require_signature(name, args, type, at);
  return detail::bound(name, args, type, {}, at);
}

/// A row that acts on an mbarrier and gives a value: bound where it is written.
Value acting(const char* name, const std::vector<Located>& args, const Type& type) {
  detail::require_signature(name, args, type, args[0].loc);
  return let(name, detail::effect(name, args, type, 1, {}, args[0].loc));
}
bool is_state(const Located& v) { return v.value.expr() && v.value.type() == Type(u64); }

}  // namespace

void mbarrier_init(const Located& barrier, const Located& arrivals) {
  act("mbarrier_init", {barrier, number(arrivals, "a count")}, 1, {}, barrier.loc);
}
void mbarrier_invalidate(const Located& barrier) {
  act("mbarrier_invalidate", {barrier}, 1, {}, barrier.loc);
}
void mbarrier_arrive(const Located& barrier) {
  act("mbarrier_arrive", {barrier}, 1, {}, barrier.loc);
}
void mbarrier_arrive(const Located& barrier, const Located& rank) {
  act("mbarrier_arrive_remote", {barrier, number(rank, "a rank")}, 1, {}, barrier.loc);
}
void mbarrier_arrive_expect_tx(const Located& barrier, const Located& bytes) {
  act("mbarrier_arrive_expect_tx", {barrier, number(bytes, "a number of bytes")}, 1, {},
      barrier.loc);
}
void mbarrier_expect_tx(const Located& barrier, const Located& bytes) {
  act("mbarrier_expect_tx", {barrier, number(bytes, "a number of bytes")}, 1, {}, barrier.loc);
}
void mbarrier_arrive_expect_tx(const Located& barrier, const Located& bytes, const Located& rank) {
  act("mbarrier_arrive_expect_tx_remote",
      {barrier, number(bytes, "a number of bytes"), number(rank, "a rank")}, 1, {}, barrier.loc);
}
void mbarrier_complete_tx(const Located& barrier, const Located& bytes) {
  act("mbarrier_complete_tx", {barrier, number(bytes, "a number of bytes")}, 1, {}, barrier.loc);
}
Value mbarrier_arrive_state(const Located& barrier, const Located& count) {
  return acting("mbarrier_arrive_state", {barrier, number(count, "a count")}, Type(u64));
}
Value mbarrier_arrive_no_complete(const Located& barrier, const Located& count) {
  return acting("mbarrier_arrive_no_complete", {barrier, number(count, "a count")}, Type(u64));
}
void mbarrier_arrive_drop(const Located& barrier) {
  act("mbarrier_arrive_drop", {barrier}, 1, {}, barrier.loc);
}
void mbarrier_arrive_copies(const Located& barrier, bool counted) {
  act("mbarrier_arrive_copies", {barrier}, 1, {counted}, barrier.loc);
}
Value mbarrier_pending(const Located& state) {
  return bound("mbarrier_pending", {state}, Type(i32), state.loc);
}
void mbarrier_wait(const Located& barrier, const Located& parity) {
  act("mbarrier_wait", {barrier, number(parity, "a parity")}, 1, {}, barrier.loc);
}
Value mbarrier_test_wait(const Located& barrier, const Located& which) {
  if (is_state(which)) return acting("mbarrier_test_state", {barrier, which}, Type(boolean));
  return acting("mbarrier_test_wait", {barrier, number(which, "a parity")}, Type(boolean));
}
Value mbarrier_try_wait(const Located& barrier, const Located& which, const Located& ns) {
  const Located time = detail::coerced(ns, Type(u32), "a number of nanoseconds");
  if (is_state(which)) return acting("mbarrier_try_state", {barrier, which, time}, Type(boolean));
  return acting("mbarrier_try_wait", {barrier, number(which, "a parity"), time}, Type(boolean));
}

#define HIDET_PLAIN(name) \
  void name(Here at) { act(#name, {}, 0, {}, at); }
HIDET_PLAIN(fence_mbarrier_init)
HIDET_PLAIN(fence_proxy_async)
HIDET_PLAIN(fence_proxy_async_shared)
HIDET_PLAIN(fence_proxy_async_global)
HIDET_PLAIN(fence_proxy_alias)
HIDET_PLAIN(threadfence_cluster)
HIDET_PLAIN(cluster_arrive)
HIDET_PLAIN(cluster_wait)
HIDET_PLAIN(griddep_wait)
HIDET_PLAIN(griddep_launch)
HIDET_PLAIN(wgmma_commit)
#undef HIDET_PLAIN
void cluster_sync(Here at) {
  cluster_arrive(at);
  cluster_wait(at);
}
ClusterBuiltin::operator Value() const { return detail::pure(row, {}, {}); }
Value map_shared_rank(const Located& pointer, const Located& rank) {
  detail::require_values("map_shared_rank", {pointer, rank});
  return bound("map_shared_rank", {pointer, number(rank, "a rank")}, pointer.value.type(),
               pointer.loc);
}
Value elect_one(Here at) { return bound("elect_one", {}, Type(boolean), at); }

namespace {
void registers_of(const char* name, int count, SourceLoc at) {
  HIDET_REQUIRE(count >= 24 && count <= 256 && count % 8 == 0, ErrorCode::usage, at.text(), name,
                " of ", count, " registers; from 24 to 256 in steps of 8");
  act(name, {}, 0, {count}, at);
}

int64_t elements_of(const ir::TensorInfo& info) {
  int64_t n = 0;
  return ir::is_const_int(info.layout.span(info.shape), &n) ? n : 0;
}
/// The first register of a tensor of sums.
Located first_register(const Handle& sums, SourceLoc at) {
  HIDET_REQUIRE(sums.type().is_tensor() && sums.type().tensor_info().scope == ir::Scope::registers,
                ErrorCode::usage, at.text(), "the sums of wgmma are a register tensor, not ",
                sums.type().text());
  std::vector<Expr> zeros(sums.type().tensor_info().shape.size(), ir::make_int(0, Type(i32)));
  return Located(Value(ir::make_address(sums.expr(), std::move(zeros), at)), at);
}
void pin(const std::vector<Handle>& sums, SourceLoc at) {
  for (const Handle& s : sums) {
    const Located first = first_register(s, at);
    act("wgmma_pin", {first}, 1, {elements_of(s.type().tensor_info())}, at);
  }
}

void require_product(const Wgmma& w, SourceLoc at) {
  const DType b = w.in_b.value_or(w.in);
  const auto byte = [](DType t) { return t == i8 || t == u8; };
  const auto f8 = [](DType t) { return t == f8e4m3 || t == f8e5m2; };
  const bool halves = w.in == f16 || w.in == bf16, bytes = byte(w.in);
  const bool fine = bytes ? w.sum == i32
                          : (halves || f8(w.in) || w.in == tf32) &&
                                (w.sum == f32 || (w.sum == f16 && (w.in == f16 || f8(w.in))));
  const bool pair = b == w.in || (bytes && byte(b)) || (f8(w.in) && f8(b));
  HIDET_REQUIRE(fine && pair, ErrorCode::usage, at.text(), "there is no wgmma of ", w.in.name(),
                pair ? "" : std::string(" and ") + b.name(), " with sums of ", w.sum.name());
  HIDET_REQUIRE(w.n >= 8 && w.n <= 256 && w.n % 8 == 0 && (!bytes || w.n <= 24 || w.n % 16 == 0),
                ErrorCode::usage, at.text(), "wgmma of n = ", w.n, "; from 8 to 256 in steps of ",
                bytes ? "8 to 32, then of 16" : "8");
  HIDET_REQUIRE(halves || !(w.a_mn_major || w.b_mn_major), ErrorCode::usage, at.text(),
                "only matrices of 16-bit types may be contiguous along m or n, not ", w.in.name());
  HIDET_REQUIRE(bytes ? !(w.negate_a || w.negate_b) : !w.saturate, ErrorCode::usage, at.text(),
                bytes ? "wgmma negates no integers" : "wgmma saturates sums of integers only");
}
}  // namespace

void setmaxnreg_inc(int registers, Here at) { registers_of("setmaxnreg_inc", registers, at); }
void setmaxnreg_dec(int registers, Here at) { registers_of("setmaxnreg_dec", registers, at); }

Value wgmma_matrix(const Located& pointer, const MatrixOptions& o) {
  detail::require_values("wgmma_matrix", {pointer});
  const int swizzle = o.swizzle;
  HIDET_REQUIRE(pointer.value.expr() && pointer.value.type().is_pointer(), ErrorCode::usage,
                pointer.loc.text(), "wgmma_matrix() takes a pointer to shared memory");
  HIDET_REQUIRE(swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128, ErrorCode::usage,
                pointer.loc.text(), "a matrix's swizzle is 0, 32, 64 or 128, not ", swizzle);
  HIDET_REQUIRE(swizzle || (o.leading && o.stride), ErrorCode::usage, pointer.loc.text(),
                "a matrix without a swizzle needs `leading` and `stride`");
  for (int bytes : {o.leading, o.stride})
    HIDET_REQUIRE(bytes % 16 == 0 && bytes >= 0 && bytes < 1 << 18, ErrorCode::usage,
                  pointer.loc.text(), "a matrix's `leading` or `stride` is ", bytes,
                  " bytes; a multiple of 16 below 262144");
  const int64_t stride = o.stride ? o.stride : 8 * swizzle, leading = o.leading ? o.leading : 16;
  const int64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return Value(ir::make_prim("wgmma_descriptor", {pointer.value.expr()}, Type(u64),
                             {leading / 16 << 16, stride / 16 | mode << 30}, pointer.loc),
               pointer.value.reads());
}

void wgmma(const Handle& sums, const Located& a, const Located& b, const Wgmma& w,
           const Located& accumulate) {
  detail::require_values("wgmma", {Located(sums, a.loc), a, b, accumulate});
  require_product(w, a.loc);
  const Located first = first_register(sums, a.loc);
  const ir::TensorInfo& info = sums.type().tensor_info();
  const int64_t wanted = w.sum == f16 ? w.n / 4 : w.n / 2;
  const DType dtype = w.sum == f16 ? u32 : w.sum;
  HIDET_REQUIRE(info.dtype == dtype && elements_of(info) == wanted, ErrorCode::usage, a.loc.text(),
                "the sums of this wgmma are ", wanted, " registers of ", dtype.name(), ", not ",
                elements_of(info), " of ", info.dtype.name());
  const bool fragment = a.value.type() == Type::vector(u32, 4);
  HIDET_REQUIRE(fragment || a.value.type() == Type(u64), ErrorCode::usage, a.loc.text(),
                "wgmma takes a descriptor (wgmma_matrix) or a fragment u32x4 for a, not ",
                a.value.type().text());
  HIDET_REQUIRE(!fragment || !w.a_mn_major, ErrorCode::usage, a.loc.text(),
                "a fragment has no order of its own: a_mn_major is for matrices in shared memory");
  act("wgmma", {first, a, b, detail::coerced(accumulate, Type(boolean), "whether to accumulate")},
      1,
      {w.n, static_cast<int64_t>(w.in.code()), static_cast<int64_t>(w.in_b.value_or(w.in).code()),
       static_cast<int64_t>(w.sum.code()), fragment, w.a_mn_major, w.b_mn_major,
       (w.negate_a ? ir::kNegateA : 0) | (w.negate_b ? ir::kNegateB : 0) |
           (w.saturate ? ir::kSaturate : 0)},
      a.loc);
}

void wgmma_fence(const std::vector<Handle>& sums, Here at) {
  pin(sums, at);
  act("wgmma_fence", {}, 0, {}, at);
}
void wgmma_wait(int pending, const std::vector<Handle>& sums, Here at) {
  act("wgmma_wait", {}, 0, {pending}, at);
  pin(sums, at);
}

}  // namespace hidet::lang
