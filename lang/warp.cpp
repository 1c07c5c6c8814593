// warp.cpp - records matrix products and reductions of a warp.
#include <hidet/ir/primitives.h>
#include <hidet/lang/memory.h>
#include <hidet/lang/primitives.h>
#include <hidet/lang/warp.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
using namespace detail;

namespace {
void require_count(int count, const char* name, SourceLoc at) {
  HIDET_REQUIRE(count == 1 || count == 2 || count == 4, ErrorCode::usage, at.text(), name,
                " moves 1, 2 or 4 matrices, not ", count);
}

/// The bits of v, which has 32 or 64.
Located word_of(const char* name, const Located& v) {
  require_values(name, {v});
  HIDET_REQUIRE(
      v.value.type().is_scalar() && (v.value.dtype().bits() == 32 || v.value.dtype().bits() == 64),
      ErrorCode::usage, v.loc.text(), name, " takes a value of 32 or 64 bits, not ",
      v.value.type().text());
  return {reinterpret(v, Type(v.value.dtype().bits() == 32 ? u32 : u64)), v.loc};
}
Value redux(const char* name, const Located& v, bool signed_too) {
  require_values(name, {v});
  const bool fine = v.value.type() == Type(u32) || (signed_too && v.value.type() == Type(i32));
  HIDET_REQUIRE(fine, ErrorCode::usage, v.loc.text(), name, " takes ",
                signed_too ? "i32 or u32" : "u32", ", not ", v.value.type().text());
  return exchange(name, {v});
}
}  // namespace

Value ldmatrix(const Located& row, int count, bool transposed) {
  require_count(count, "ldmatrix", row.loc);
  const Type type = Type::vector(u32, count);
  require_signature("ldmatrix", {row}, type, row.loc);
  return bound("ldmatrix", {row}, type, {count, transposed}, row.loc);
}
void stmatrix(const Located& row, const Located& fragment, bool transposed) {
  require_values("stmatrix", {row, fragment});
  const Type& t = fragment.value.type();
  HIDET_REQUIRE(t.is_arithmetic() && t.dtype() == u32, ErrorCode::usage, row.loc.text(),
                "stmatrix takes a vector of u32, not ", t.text());
  require_count(t.lanes(), "stmatrix", row.loc);
  require_signature("stmatrix", {row, fragment}, {}, row.loc);
  (void)detail::effect("stmatrix", {row, fragment}, {}, 1, {t.lanes(), transposed}, row.loc);
}
Value movmatrix(const Located& fragment) {
  require_signature("movmatrix", {fragment}, Type(u32), fragment.loc);
  return bound("movmatrix", {fragment}, Type(u32), {}, fragment.loc);
}
Value Mma::operator()(const Located& a, const Located& b, const Located& c) const {
  require_signature(row, {a, b, c}, c.value.type(), a.loc);
  return bound(row, {a, b, c}, c.value.type(), {}, a.loc);
}

Value redux_add(const Located& v) { return redux("redux_add", v, true); }
Value redux_min(const Located& v) { return redux("redux_min", v, true); }
Value redux_max(const Located& v) { return redux("redux_max", v, true); }
Value redux_and(const Located& v) { return redux("redux_and", v, false); }
Value redux_or(const Located& v) { return redux("redux_or", v, false); }
Value redux_xor(const Located& v) { return redux("redux_xor", v, false); }
Value match_any(const Located& v) { return exchange("match_any_sync", {word_of("match_any", v)}); }
Value match_all(const Located& v) { return exchange("match_all_sync", {word_of("match_all", v)}); }

}  // namespace hidet::lang
