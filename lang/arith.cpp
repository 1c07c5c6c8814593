// arith.cpp - records bits of integers, packed halves, fast approximations, access with hints and masks.
#include <hidet/ir/primitives.h>
#include <hidet/lang/arith.h>
#include <hidet/lang/memory.h>
#include <hidet/lang/statements.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
using namespace detail;

namespace {
/// A row whose arguments are converted to `types` where C would.
Value call(const char* name, const std::vector<Located>& args, const std::vector<Type>& types,
           const Type& result) {
  require_values(name, args);
  std::vector<Expr> exprs;
  for (size_t i = 0; i < args.size(); i++)
    exprs.push_back(ir::coerce(args[i].value, types[i],
                               std::string("an argument of '") + name + "'", args[i].loc));
  return Value(ir::make_prim(name, std::move(exprs), result, {}, args[0].loc), reads_of(args));
}

DType dtype_of_value(const char* name, const Located& v) {
  require_values(name, {v});
  HIDET_REQUIRE(v.value.type().is_scalar(), ErrorCode::usage, v.loc.text(), "'", name,
                "' takes a number, not ", v.value.type().text());
  return v.value.dtype();
}

/// The row name_u32 or name_u64 of an integer of 32 or 64 bits.
Value bits(const char* name, const Located& v, bool same) {
  const DType t = dtype_of_value(name, v);
  const bool wide = t.bits() == 64;
  HIDET_REQUIRE(t.is_integer() && (wide || t.bits() == 32), ErrorCode::usage, v.loc.text(), "'",
                name, "' takes an integer of 32 or 64 bits, not ", t.name());
  const Type word(wide ? u64 : u32);
  const std::string row = std::string(name) + (wide ? "_u64" : "_u32");
  return call(row.c_str(), {Located(cast(v, word), v.loc)}, {word}, same ? word : Type(i32));
}
Value words(const char* name, const std::vector<Located>& args) {
  return call(name, args, {Type(u32), Type(u32), Type(u32)}, Type(u32));
}

Value packed(const char* name, const std::vector<Located>& args) {
  require_values(name, args);
  const Type& type = args[0].value.type();
  HIDET_REQUIRE(type == Type::vector(f16, 2) || type == Type::vector(bf16, 2), ErrorCode::usage,
                args[0].loc.text(), "'", name, "' takes f16x2 or bf16x2, not ", type.text());
  return call(name, args, {type, type, type}, type);
}
Value fast(const char* name, const std::vector<Located>& args) {
  return call(name, args, {Type(f32), Type(f32)}, Type(f32));
}
}  // namespace

Value popc(const Located& v) { return bits("popc", v, false); }
Value clz(const Located& v) { return bits("clz", v, false); }
Value ffs(const Located& v) { return bits("ffs", v, false); }
Value brev(const Located& v) { return bits("brev", v, true); }
Value mulhi(const Located& a, const Located& b) {
  require_values("mulhi", {a, b});
  const DType d = dtype_of_value("mulhi", a);
  const Type t(d == u32 || d == u64 || d == i64 ? d : i32);
  return call(("mulhi_" + t.text()).c_str(), {a, b}, {t, t}, t);
}
Value byte_perm(const Located& a, const Located& b, const Located& selector) {
  return words("byte_perm", {a, b, selector});
}
Value funnel_shift_left(const Located& low, const Located& high, const Located& n) {
  return words("funnel_shift_left", {low, high, n});
}
Value funnel_shift_right(const Located& low, const Located& high, const Located& n) {
  return words("funnel_shift_right", {low, high, n});
}
Value dp4a(const Located& a, const Located& b, const Located& c) {
  require_values("dp4a", {a, b, c});
  const Type t(dtype_of_value("dp4a", c) == u32 ? u32 : i32);
  return call(t.dtype() == u32 ? "dp4a_u32" : "dp4a_i32", {a, b, c}, {Type(u32), Type(u32), t}, t);
}

Value packed_add(const Located& a, const Located& b) { return packed("packed_add", {a, b}); }
Value packed_sub(const Located& a, const Located& b) { return packed("packed_sub", {a, b}); }
Value packed_mul(const Located& a, const Located& b) { return packed("packed_mul", {a, b}); }
Value packed_min(const Located& a, const Located& b) { return packed("packed_min", {a, b}); }
Value packed_max(const Located& a, const Located& b) { return packed("packed_max", {a, b}); }
Value packed_fma(const Located& a, const Located& b, const Located& c) {
  return packed("packed_fma", {a, b, c});
}
Value packed_fma_relu(const Located& a, const Located& b, const Located& c) {
  return packed("packed_fma_relu", {a, b, c});
}
Value packed_neg(const Located& a) { return packed("packed_neg", {a}); }
Value packed_abs(const Located& a) { return packed("packed_abs", {a}); }
Value packed_fast_exp2(const Located& a) { return packed("packed_fast_exp2", {a}); }
Value packed_fast_tanh(const Located& a) { return packed("packed_fast_tanh", {a}); }

#define HIDET_DEFINE(name) \
  Value name(const Located& x) { return fast(#name, {x}); }
HIDET_FAST_MATH(HIDET_DEFINE)
#undef HIDET_DEFINE
Value fast_div(const Located& a, const Located& b) { return fast("fast_div", {a, b}); }
Value fast_pow(const Located& x, const Located& y) { return fast("fast_pow", {x, y}); }

// --- memory

namespace {
constexpr const char* kHints[] = {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt"};

/// The scalar type behind a pointer; `lanes` of it are an access with a hint.
DType hinted_type(const Located& p, int lanes, const std::string& row) {
  const bool fine = p.value.type().is_pointer() && p.value.type().pointee().is_scalar() &&
                    ir::find_primitive(row);
  HIDET_REQUIRE(fine, ErrorCode::usage, p.loc.text(), "there is no '", row, "' of ",
                p.value.type().text());
  const DType t = p.value.type().pointee().dtype();
  const int64_t bytes = t.bytes_of(lanes);
  HIDET_REQUIRE(lanes > 0 && t.bits() >= 8 && bytes <= 16 && (bytes & (bytes - 1)) == 0,
                ErrorCode::usage, p.loc.text(), "'", row, "' moves 1, 2, 4, 8 or 16 bytes, not ",
                lanes, " of ", t.name());
  return t;
}
/// What `e` reads, and the memory behind p.
std::vector<ir::Read> with_memory(const std::vector<Located>& args, SourceLoc at) {
  std::vector<ir::Read> reads = reads_of(args);
  reads.push_back({ir::place_of(args[0].value.expr()), recording(at, "a load").clock(), at});
  return reads;
}
Type mask_type(const char* name, const Located& p, const Located& mask) {
  const Type& m = mask.value.type();
  HIDET_REQUIRE(m.is_vector() && m.dtype().is_boolean(), ErrorCode::usage, mask.loc.text(), "'",
                name, "' takes a vector of booleans, not ", m.text());
  HIDET_REQUIRE(p.value.type().is_pointer() && p.value.type().pointee().is_scalar() &&
                    p.value.type().pointee().dtype().bits() >= 8,
                ErrorCode::usage, p.loc.text(), "'", name, "' takes a pointer to scalars");
  return Type::vector(p.value.type().pointee().dtype(), m.lanes());
}
}  // namespace

Value load(const Located& pointer, int width, Cache hint) {
  const std::string row = std::string("load_") + kHints[static_cast<int>(hint)];
  require_values(row.c_str(), {pointer});
  const Type type = Type::vector(hinted_type(pointer, width, row), width);
  const Value v(ir::make_prim(row, {pointer.value.expr()}, type, {}, pointer.loc),
                with_memory({pointer}, pointer.loc));
  return let("loaded", Located(v, pointer.loc));
}
void store(const Located& pointer, const Located& value, Cache hint) {
  const std::string row = std::string("store_") + kHints[static_cast<int>(hint)];
  require_values(row.c_str(), {pointer, value});
  const int lanes = value.value.type().lanes();
  const Type type = Type::vector(hinted_type(pointer, lanes, row), lanes);
  (void)effect(row.c_str(), {pointer, coerced(value, type, "an element")}, {}, 1, {}, pointer.loc);
}

Value masked_load(const Located& pointer, const Located& mask) {
  require_values("masked_load", {pointer, mask});
  const Type type = mask_type("masked_load", pointer, mask);
  const Value v(ir::make_prim("masked_load", {pointer.value.expr(), mask.value.expr()}, type, {},
                              pointer.loc),
                with_memory({pointer, mask}, pointer.loc));
  return let("loaded", Located(v, pointer.loc));
}
void masked_store(const Located& pointer, const Located& value, const Located& mask) {
  require_values("masked_store", {pointer, value, mask});
  const Type type = mask_type("masked_store", pointer, mask);
  (void)effect("masked_store", {pointer, coerced(value, type, "an element"), mask}, {}, 1, {},
               pointer.loc);
}
Value lanes_below(const Located& n, int lanes) {
  HIDET_REQUIRE(lanes >= 2 && lanes <= 64, ErrorCode::usage, n.loc.text(), "a mask of ", lanes,
                " lanes; from 2 to 64");
  require_values("lanes_below", {n});
  std::vector<Located> numbers;
  for (int i = 0; i < lanes; i++)
    numbers.emplace_back(Value(ir::make_int(i, Type(i32), n.loc)), n.loc);
  const Located count = coerced(n, Type(i32), "a number of lanes");
  return make_vec(numbers) < Located(broadcast(count, lanes), n.loc);
}
Value shuffle_lanes(const Located& a, const Located& b, const std::vector<int>& lanes) {
  require_values("shuffle_lanes", {a, b});
  const Type& type = a.value.type();
  HIDET_REQUIRE(type.is_vector() && b.value.type() == type, ErrorCode::usage, a.loc.text(),
                "shuffle_lanes() takes two vectors of one type");
  HIDET_REQUIRE(lanes.size() >= 2, ErrorCode::usage, a.loc.text(),
                "shuffle_lanes() gives a vector of ", lanes.size(), " lanes");
  const Handle left = let("left", a), right = let("right", b);
  std::vector<Located> out;
  for (const int i : lanes) {
    HIDET_REQUIRE(i >= 0 && i < 2 * type.lanes(), ErrorCode::usage, a.loc.text(),
                  "shuffle_lanes() of ", type.text(), " has lanes 0 to ", 2 * type.lanes() - 1,
                  ", not ", i);
    const bool first = i < type.lanes();
    out.emplace_back(lane(Located(first ? left : right, a.loc),
                          Located(Value(first ? i : i - type.lanes()), a.loc)),
                     a.loc);
  }
  return make_vec(out);
}

// --- atomics and time

CallResult atomic_add_pair(const Located& p, const Located& v) {
  require_values("atomic_add_pair", {p, v});
  const DType t = pointee(p).dtype();
  HIDET_REQUIRE(t == f16 || t == bf16, ErrorCode::usage, p.loc.text(),
                "'atomic_add_pair' does not work on ", t.name(), "; it takes f16 or bf16");
  const Type type = Type::vector(t, 2);
  return effect("atomic_add_pair", {p, coerced(v, type, "the operand of an atomic")}, type, 1, {},
                v.loc);
}
CallResult atomic_add_vector(const Located& p, const Located& v) {
  require_values("atomic_add_vector", {p, v});
  const Type& type = v.value.type();
  const DType t = type.is_vector() ? type.dtype() : DType();
  const int64_t bytes = type.is_vector() ? t.bytes_of(type.lanes()) : 0;
  HIDET_REQUIRE(
      (t == f32 || t == f16 || t == bf16) && pointee(p) == Type(t) && (bytes == 8 || bytes == 16),
      ErrorCode::usage, p.loc.text(), "'atomic_add_vector' of ", type.text(), " to ",
      p.value.type().text(),
      "; it takes 8 or 16 bytes of f32, f16 or bf16 to a pointer to that type");
  return effect("atomic_add_vector", {p, v}, type, 1, {static_cast<int64_t>(t.code())}, v.loc);
}
CallResult atomic_exch_128(const Located& p, const Located& v) {
  require_signature("atomic_exch_128", {p, v}, Type::vector(u64, 2), p.loc);
  return effect("atomic_exch_128", {p, v}, Type::vector(u64, 2), 1, {}, v.loc);
}
CallResult atomic_cas_128(const Located& p, const Located& expected, const Located& v) {
  require_signature("atomic_cas_128", {p, expected, v}, Type::vector(u64, 2), p.loc);
  return effect("atomic_cas_128", {p, expected, v}, Type::vector(u64, 2), 1, {}, v.loc);
}
namespace {
CallResult counted(const char* name, const Located& p, const Located& v) {
  require_values(name, {p, v});
  HIDET_REQUIRE(pointee(p) == Type(u32), ErrorCode::usage, p.loc.text(), "'", name,
                "' does not work on ", pointee(p).text(), "; it takes u32");
  return effect(name, {p, operand(p, v)}, Type(u32), 1, {}, v.loc);
}
}  // namespace
CallResult atomic_inc(const Located& p, const Located& v) { return counted("atomic_inc", p, v); }
CallResult atomic_dec(const Located& p, const Located& v) { return counted("atomic_dec", p, v); }

Value clock(Here at) {
  return let("clock", Located(Value(ir::make_prim("clock", {}, Type(i64), {}, at)), at));
}
void nanosleep(const Located& ns) {
  (void)effect("nanosleep", {coerced(ns, Type(u32), "a number of ns")}, {}, 0, {}, ns.loc);
}

}  // namespace hidet::lang
