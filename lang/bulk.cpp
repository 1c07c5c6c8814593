// bulk.cpp - records tensor maps, bulk copies and reductions, and policies of L2.
#include <hidet/ir/primitives.h>
#include <hidet/lang/hopper.h>
#include <hidet/lang/primitives.h>
#include <hidet/lang/statements.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
namespace {

void require_map(const Handle& map, const char* what, SourceLoc at) {
  HIDET_REQUIRE(
      map.type() == ir::tensor_map_type() && detail::recording(at, what).is_param(map.expr().get()),
      ErrorCode::usage, at.text(), what,
      "() takes an argument of the function of type tensor_map_type, not ", map.type().text());
}

std::string type_of(const Located& v) { return v.value.expr() ? v.value.type().text() : "nothing"; }
void require_pointer(const Located& v, const char* what, const char* memory) {
  HIDET_REQUIRE(v.value.expr() && v.value.type().is_pointer(), ErrorCode::usage, v.loc.text(), what,
                "() takes a pointer to ", memory, " memory, not ", type_of(v));
}
void require_barrier(const Located& v, const char* what) {
  HIDET_REQUIRE(v.value.expr() && v.value.type() == Type::pointer(Type(u64)), ErrorCode::usage,
                v.loc.text(), what, "() takes a ptr(u64) to an mbarrier, not ", type_of(v));
}

/// Coordinates as the hardware counts them: innermost first.
void add_coordinates(std::vector<Located>& args, const std::vector<Located>& at, const char* what,
                     SourceLoc loc) {
  HIDET_REQUIRE(!at.empty() && at.size() <= 5, ErrorCode::usage, loc.text(), what,
                "() takes 1 to 5 coordinates, not ", at.size());
  for (auto it = at.rbegin(); it != at.rend(); ++it)
    args.push_back(detail::coerced(*it, Type(i32), "a coordinate"));
}
Located bytes_of(const Located& v) { return detail::coerced(v, Type(i32), "a number of bytes"); }

/// Blocks come behind the operands that every copy has, the policy is the last: true where there is one.
bool add_blocks(std::vector<Located>& args, const CopyOptions& o, SourceLoc at) {
  if (o.blocks.expr())
    args.push_back(detail::coerced(Located(o.blocks, at), Type(i32), "a mask of blocks"));
  return static_cast<bool>(o.blocks.expr());
}
bool add_policy(std::vector<Located>& args, const CopyOptions& o, SourceLoc at) {
  if (!o.policy.expr()) return false;
  HIDET_REQUIRE(o.policy.type() == Type(u64), ErrorCode::usage, at.text(),
                "the policy of a copy is what cache_policy() gives, a u64, not ",
                o.policy.type().text());
  args.emplace_back(o.policy, at);
  return true;
}
void require_no_blocks(const CopyOptions& o, const char* what, SourceLoc at) {
  HIDET_REQUIRE(!o.blocks.expr(), ErrorCode::usage, at.text(), what,
                "() goes to no blocks of the cluster; loads do");
}
void require_reduction(Combine op, const Located& to, bool shared) {
  const Type& t = to.value.type().pointee();
  HIDET_REQUIRE(t.is_scalar() && ir::can_reduce(op, t.dtype(), shared), ErrorCode::usage,
                to.loc.text(), "there is no bulk reduction '", ir::name_of(op), "' of ", t.text(),
                " in ", shared ? "shared" : "global", " memory");
}
int64_t code(Combine op) { return static_cast<int64_t>(op); }

/// tma_store, and with an operation tma_reduce.
void to_box(const char* row, const Handle& map, const std::vector<Located>& at, const Located& from,
            const CopyOptions& o, std::vector<int64_t> attrs) {
  require_map(map, row, from.loc);
  require_pointer(from, row, "shared");
  require_no_blocks(o, row, from.loc);
  std::vector<Located> args{Located(map, from.loc), from};
  add_coordinates(args, at, row, from.loc);
  attrs.insert(attrs.begin(), static_cast<int64_t>(at.size()));
  attrs.push_back(add_policy(args, o, from.loc));
  (void)detail::effect(row, args, {}, 0, std::move(attrs), from.loc);
}
/// bulk_store, and with an operation bulk_reduce.
void to_global(const char* row, const Located& to, const Located& from, const Located& bytes,
               const CopyOptions& o, std::vector<int64_t> attrs) {
  require_pointer(to, row, "global");
  require_pointer(from, row, "shared");
  require_no_blocks(o, row, to.loc);
  std::vector<Located> args{to, from, bytes_of(bytes)};
  attrs.push_back(add_policy(args, o, to.loc));
  (void)detail::effect(row, args, {}, 1, std::move(attrs), to.loc);
}
void to_cluster(const char* row, const std::vector<Located>& args, std::vector<int64_t> attrs) {
  detail::require_signature(row, args, {}, args[0].loc);
  (void)detail::effect(row, args, {}, 1, std::move(attrs), args[0].loc);
}

}  // namespace

Value tensor_map(const std::string& name, const Located& pointer, const std::vector<Value>& shape,
                 const std::vector<int>& box, const MapOptions& options, Here here) {
  const SourceLoc at = here;
  const size_t rank = shape.size();
  std::vector<Located> all{pointer};
  for (const std::vector<Value>* list : {&shape, &options.strides})
    for (const Value& v : *list) all.emplace_back(v, at);
  detail::require_values("tensor_map", all);
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

Value cache_policy(Evict first, const Located& part, Evict rest) {
  HIDET_REQUIRE(rest == Evict::first || rest == Evict::unchanged, ErrorCode::usage, part.loc.text(),
                "the rest of a cache policy is Evict::first or Evict::unchanged");
  const Located fraction = detail::coerced(part, Type(f32), "the part of a cache policy");
  return detail::bound("cache_policy", {fraction}, Type(u64),
                       {static_cast<int64_t>(first), static_cast<int64_t>(rest)}, part.loc);
}

void tma_load(const Located& to, const Handle& map, const std::vector<Located>& at,
              const Located& barrier, const CopyOptions& options) {
  require_map(map, "tma_load", to.loc);
  require_pointer(to, "tma_load", "shared");
  require_barrier(barrier, "tma_load");
  std::vector<Located> args{to, Located(map, to.loc), barrier};
  const bool several = add_blocks(args, options, to.loc);
  add_coordinates(args, at, "tma_load", to.loc);
  const bool hinted = add_policy(args, options, to.loc);
  (void)detail::effect("tma_load", args, {}, 1, {static_cast<int64_t>(at.size()), several, hinted},
                       to.loc);
}
void tma_store(const Handle& map, const std::vector<Located>& at, const Located& from,
               const CopyOptions& options) {
  to_box("tma_store", map, at, from, options, {});
}
void tma_reduce(Combine op, const Handle& map, const std::vector<Located>& at, const Located& from,
                const CopyOptions& options) {
  to_box("tma_reduce", map, at, from, options, {code(op)});
}
void tma_prefetch(const Handle& map, Here at) {
  require_map(map, "tma_prefetch", at);
  (void)detail::effect("tma_prefetch", {Located(map, at)}, {}, 0, {}, at);
}
void tma_prefetch(const Handle& map, const std::vector<Located>& at, const CopyOptions& options,
                  Here here) {
  require_map(map, "tma_prefetch", here);
  require_no_blocks(options, "tma_prefetch", here);
  std::vector<Located> args{Located(map, here)};
  add_coordinates(args, at, "tma_prefetch", here);
  const bool hinted = add_policy(args, options, here);
  (void)detail::effect("tma_prefetch_box", args, {}, 0, {static_cast<int64_t>(at.size()), hinted},
                       here);
}

void bulk_load(const Located& to, const Located& from, const Located& bytes, const Located& barrier,
               const CopyOptions& options) {
  require_pointer(to, "bulk_load", "shared");
  require_pointer(from, "bulk_load", "global");
  require_barrier(barrier, "bulk_load");
  std::vector<Located> args{to, from, bytes_of(bytes), barrier};
  const bool several = add_blocks(args, options, to.loc);
  const bool hinted = add_policy(args, options, to.loc);
  (void)detail::effect("bulk_load", args, {}, 1, {several, hinted}, to.loc);
}
void bulk_store(const Located& to, const Located& from, const Located& bytes,
                const CopyOptions& options) {
  to_global("bulk_store", to, from, bytes, options, {});
}
void bulk_reduce(Combine op, const Located& to, const Located& from, const Located& bytes,
                 const CopyOptions& options) {
  require_pointer(to, "bulk_reduce", "global");
  require_reduction(op, to, false);
  to_global("bulk_reduce", to, from, bytes, options,
            {code(op), static_cast<int64_t>(to.value.type().dtype().code())});
}
void bulk_prefetch(const Located& from, const Located& bytes, const CopyOptions& options) {
  require_pointer(from, "bulk_prefetch", "global");
  require_no_blocks(options, "bulk_prefetch", from.loc);
  std::vector<Located> args{from, bytes_of(bytes)};
  const bool hinted = add_policy(args, options, from.loc);
  (void)detail::effect("bulk_prefetch", args, {}, 0, {hinted}, from.loc);
}
void bulk_send(const Located& to, const Located& from, const Located& bytes,
               const Located& barrier) {
  to_cluster("bulk_send", {to, from, bytes_of(bytes), barrier}, {});
}
void bulk_send(Combine op, const Located& to, const Located& from, const Located& bytes,
               const Located& barrier) {
  require_pointer(to, "bulk_send", "shared");
  require_reduction(op, to, true);
  to_cluster("bulk_send_reduce", {to, from, bytes_of(bytes), barrier},
             {code(op), static_cast<int64_t>(to.value.type().dtype().code())});
}
void async_store(const Located& to, const Located& value, const Located& barrier) {
  require_pointer(to, "async_store", "shared");
  const Type& type = value.value.type();
  const int64_t bytes = type.is_arithmetic() ? type.dtype().bytes_of(type.lanes()) : 0;
  HIDET_REQUIRE(bytes == 4 || bytes == 8 || bytes == 16, ErrorCode::usage, to.loc.text(),
                "async_store() sends 4, 8 or 16 bytes, not ", type_of(value));
  to_cluster("async_store", {to, value, barrier},
             {static_cast<int64_t>(type.dtype().code()), type.lanes()});
}
void async_reduce(Combine op, const Located& to, const Located& value, const Located& barrier) {
  require_pointer(to, "async_reduce", "shared");
  require_reduction(op, to, true);
  const Type& type = to.value.type().pointee();
  to_cluster("async_reduce", {to, detail::coerced(value, type, "a number to combine"), barrier},
             {code(op), static_cast<int64_t>(type.dtype().code())});
}
void bulk_commit(Here at) { (void)detail::effect("bulk_commit", {}, {}, 0, {}, at); }
void bulk_wait(int pending, Here at) {
  (void)detail::effect("bulk_wait", {}, {}, 0, {pending}, at);
}
void bulk_wait_read(int pending, Here at) {
  (void)detail::effect("bulk_wait_read", {}, {}, 0, {pending}, at);
}

}  // namespace hidet::lang
