// hopper.cpp - records the rows of sm_90 and sm_90a.
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

void require_map(const Handle& map, const char* what, SourceLoc at) {
  HIDET_REQUIRE(
      map.type() == ir::tensor_map_type() && detail::recording(at, what).is_param(map.expr().get()),
      ErrorCode::usage, at.text(), what,
      " takes an argument of the function of type tensor_map_type, not ", map.type().text());
}

/// Coordinates as the hardware counts them: innermost first.
std::vector<Located> coordinates(const std::vector<Located>& at, const char* what, SourceLoc loc) {
  HIDET_REQUIRE(!at.empty() && at.size() <= 5, ErrorCode::usage, loc.text(), what, " takes 1 to 5 ",
                "coordinates, not ", at.size());
  std::vector<Located> out;
  for (auto it = at.rbegin(); it != at.rend(); ++it) out.push_back(number(*it, "a coordinate"));
  return out;
}

void load_box(const Located& to, const Handle& map, const std::vector<Located>& at,
              const Located& barrier, const Located* blocks) {
  require_map(map, "tma_load()", to.loc);
  std::vector<Located> args{to, Located(map, to.loc), barrier};
  HIDET_REQUIRE(to.value.type().is_pointer() && barrier.value.type() == Type::pointer(Type(u64)),
                ErrorCode::usage, to.loc.text(), "tma_load() takes a pointer to shared memory and ",
                "a ptr(u64) to an mbarrier, not ", to.value.type().text(), " and ",
                barrier.value.type().text());
  if (blocks) args.push_back(number(*blocks, "a mask of blocks"));
  for (const Located& c : coordinates(at, "tma_load()", to.loc)) args.push_back(c);
  (void)detail::effect("tma_load", args, {}, 1,
                       {static_cast<int64_t>(at.size()), blocks != nullptr}, to.loc);
}

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
void mbarrier_wait(const Located& barrier, const Located& parity) {
  act("mbarrier_wait", {barrier, number(parity, "a parity")}, 1, {}, barrier.loc);
}

#define HIDET_PLAIN(name) \
  void name(Here at) { act(#name, {}, 0, {}, at); }
HIDET_PLAIN(fence_mbarrier_init)
HIDET_PLAIN(fence_proxy_async)
HIDET_PLAIN(bulk_commit)
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
void bulk_wait(int pending, Here at) { act("bulk_wait", {}, 0, {pending}, at); }
void bulk_wait_read(int pending, Here at) { act("bulk_wait_read", {}, 0, {pending}, at); }

Value tensor_map(const std::string& name, const Located& pointer, const std::vector<Value>& shape,
                 const std::vector<int>& box, const MapOptions& options, Here here) {
  const SourceLoc at = here;
  const size_t rank = shape.size();
  const Type& type = pointer.value.type();
  HIDET_REQUIRE(type.is_pointer() && type.pointee().is_scalar() && !type.dtype().is_boolean(),
                ErrorCode::usage, at.text(), "tensor_map() takes a pointer to numbers, not ",
                type.text());
  HIDET_REQUIRE(rank >= 1 && rank <= 5 && box.size() == rank, ErrorCode::usage, at.text(),
                "tensor_map() takes 1 to 5 extents and as many of the box, not ", rank, " and ",
                box.size());
  HIDET_REQUIRE(options.strides.empty() || options.strides.size() + 1 == rank, ErrorCode::usage,
                at.text(), "tensor_map() of rank ", rank, " takes ", rank - 1, " strides, not ",
                options.strides.size());
  const int swizzle = options.swizzle;
  HIDET_REQUIRE(swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128, ErrorCode::usage,
                at.text(), "a tensor map's swizzle is 0, 32, 64 or 128, not ", swizzle);
  const auto element = static_cast<int64_t>(type.dtype().bytes());
  for (int extent : box)
    HIDET_REQUIRE(extent >= 1 && extent <= 256, ErrorCode::usage, at.text(),
                  "an extent of a tensor map's box is ", extent, "; it must be from 1 to 256");
  const int64_t row = box.back() * element;
  HIDET_REQUIRE(row % 16 == 0 && (swizzle == 0 || row <= swizzle), ErrorCode::usage, at.text(),
                "a row of a tensor map's box has ", row, " bytes; it must be a multiple of 16",
                swizzle ? " and no more than the swizzle's " + std::to_string(swizzle) : "");
  std::vector<Located> args{pointer};
  std::vector<int64_t> attrs{static_cast<int64_t>(type.dtype().code()), static_cast<int64_t>(rank),
                             swizzle};
  const auto wide = [&](const Value& v) {
    return Located(Value(ir::make_cast(v.expr(), Type(i64), at), v.reads()), at);
  };
  for (size_t d = rank; d-- > 0;) args.push_back(wide(shape[d]));
  Value stride(element);
  for (size_t d = rank; d-- > 1;) {
    stride = options.strides.empty()
                 ? cast(Located(shape[d], at), i64) * Located(stride, at)
                 : wide(options.strides[d - 1]).value * Located(Value(element), at);
    args.push_back(wide(stride));
  }
  for (size_t d = rank; d-- > 0;) attrs.push_back(box[d]);
  const Value call = prim("tensor_map", args, ir::tensor_map_type(), std::move(attrs), here);
  return let(name, Located(call, at));
}

Layout swizzled_rows(DType dtype, int bytes) {
  HIDET_REQUIRE(bytes == 32 || bytes == 64 || bytes == 128, ErrorCode::usage, "",
                "rows of 32, 64 or 128 bytes are swizzled, not of ", bytes);
  const auto log2 = [](int64_t v) {
    int64_t n = 0;
    while (int64_t{1} << n < v) n++;
    return n;
  };
  // 16 bytes are xor-ed with the number of the 128 bytes they are in.
  return swizzle(log2(bytes / 16), log2(16 / static_cast<int64_t>(dtype.bytes())), 3);
}

void tma_load(const Located& to, const Handle& map, const std::vector<Located>& at,
              const Located& barrier) {
  load_box(to, map, at, barrier, nullptr);
}
void tma_load(const Located& to, const Handle& map, const std::vector<Located>& at,
              const Located& barrier, const Located& blocks) {
  load_box(to, map, at, barrier, &blocks);
}
void tma_store(const Handle& map, const std::vector<Located>& at, const Located& from) {
  require_map(map, "tma_store()", from.loc);
  HIDET_REQUIRE(from.value.type().is_pointer(), ErrorCode::usage, from.loc.text(),
                "tma_store() takes a pointer to shared memory, not ", from.value.type().text());
  std::vector<Located> args{Located(map, from.loc), from};
  for (const Located& c : coordinates(at, "tma_store()", from.loc)) args.push_back(c);
  (void)detail::effect("tma_store", args, {}, 0, {static_cast<int64_t>(at.size())}, from.loc);
}
void tma_prefetch(const Handle& map, Here at) {
  require_map(map, "tma_prefetch()", at);
  act("tma_prefetch", {Located(map, at)}, 0, {}, at);
}
void bulk_load(const Located& to, const Located& from, const Located& bytes,
               const Located& barrier) {
  act("bulk_load", {to, from, number(bytes, "a number of bytes"), barrier}, 1, {}, to.loc);
}
void bulk_load(const Located& to, const Located& from, const Located& bytes, const Located& barrier,
               const Located& blocks) {
  act("bulk_load_multicast",
      {to, from, number(bytes, "a number of bytes"), barrier, number(blocks, "a mask of blocks")},
      1, {}, to.loc);
}
void bulk_store(const Located& to, const Located& from, const Located& bytes) {
  act("bulk_store", {to, from, number(bytes, "a number of bytes")}, 1, {}, to.loc);
}

ClusterBuiltin::operator Value() const { return detail::pure(row, {}, {}); }
Value map_shared_rank(const Located& pointer, const Located& rank) {
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
  const bool halves = w.in == f16 || w.in == bf16, bytes = w.in == i8 || w.in == u8,
             f8 = w.in == f8e4m3 || w.in == f8e5m2;
  const bool fine = bytes ? w.sum == i32
                          : (halves || f8 || w.in == tf32) &&
                                (w.sum == f32 || (w.sum == f16 && (w.in == f16 || f8)));
  HIDET_REQUIRE(fine, ErrorCode::usage, at.text(), "there is no wgmma of ", w.in.name(),
                " with sums of ", w.sum.name());
  HIDET_REQUIRE(w.n >= 8 && w.n <= 256 && w.n % 8 == 0 && (!bytes || w.n <= 24 || w.n % 16 == 0),
                ErrorCode::usage, at.text(), "wgmma of n = ", w.n, "; from 8 to 256 in steps of ",
                bytes ? "8 to 32, then of 16" : "8");
  HIDET_REQUIRE(halves || !(w.a_mn_major || w.b_mn_major), ErrorCode::usage, at.text(),
                "only matrices of 16-bit types may be contiguous along m or n, not ", w.in.name());
}
}  // namespace

void setmaxnreg_inc(int registers, Here at) { registers_of("setmaxnreg_inc", registers, at); }
void setmaxnreg_dec(int registers, Here at) { registers_of("setmaxnreg_dec", registers, at); }

Value wgmma_matrix(const Located& pointer, const MatrixOptions& o) {
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
      {w.n, static_cast<int64_t>(w.in.code()), static_cast<int64_t>(w.sum.code()), fragment,
       w.a_mn_major, w.b_mn_major},
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
