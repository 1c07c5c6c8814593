// primitives.cpp - records rows of the table of primitives.
#include <hidet/ir/primitives.h>
#include <hidet/lang/memory.h>
#include <hidet/lang/primitives.h>
#include <hidet/lang/statements.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
namespace detail {
void require_values(const char* name, const std::vector<Located>& args) {
  for (size_t i = 0; i < args.size(); i++)
    HIDET_REQUIRE(!args[i].value.type().is_void(), ErrorCode::usage, args[i].loc.text(),
                  args.size() == 1 ? "an argument" : "argument " + std::to_string(i + 1), " of '",
                  name, "' has no value");
}
namespace {
std::vector<Expr> exprs(const std::vector<Located>& args, const char* name) {
  require_values(name, args);
  std::vector<Expr> out;
  for (const Located& a : args) out.push_back(a.value.expr());
  return out;
}
const ir::Primitive& row_of(const char* name, SourceLoc at) {
  const ir::Primitive* row = ir::find_primitive(name);
  HIDET_REQUIRE(row, ErrorCode::usage, at.text(), "there is no primitive '", name, "'");
  return *row;
}
}  // namespace

Value math(const char* name, const std::vector<Located>& args) {
  return Value(ir::call_math(name, exprs(args, name), args[0].loc), reads_of(args));
}

Value pure(const char* name, const std::vector<Located>& args, SourceLoc at) {
  using R = ir::PrimResult;
  const ir::Primitive& row = row_of(name, at);
  HIDET_REQUIRE(row.arity < 0 || row.arity == static_cast<int>(args.size()), ErrorCode::usage,
                at.text(), "'", name, "' takes ", row.arity, " arguments, not ", args.size());
  std::vector<Expr> operands = exprs(args, name);
  const Type first = args.empty() ? Type() : operands[0]->type;
  const Type type = row.result == R::boolean ? Type(boolean)
                    : row.result == R::i32   ? Type(i32)
                    : row.result == R::u32   ? Type(u32)
                    : row.result == R::f32   ? Type(f32)
                                             : first;
  return Value(ir::make_prim(name, std::move(operands), type, {}, at), reads_of(args));
}

CallResult effect(const char* name, const std::vector<Located>& args, const Type& result,
                  int stores, std::vector<int64_t> attrs, SourceLoc at) {
  FunctionRecorder& r = recording(at, name);
  const ir::Primitive& row = row_of(name, at);
  HIDET_REQUIRE(row.arity < 0 || row.arity == static_cast<int>(args.size()), ErrorCode::usage,
                at.text(), "'", name, "' takes ", row.arity, " arguments, not ", args.size());
  require_values(name, args);
  std::vector<ir::Read> reads = reads_of(args);
  for (int i = 0; i < stores; i++) {
    const Node* place = ir::place_of(args[i].value.expr());
    auto it = reads.begin();
    while (it != reads.end() && it->place != place) ++it;
    if (it == reads.end()) reads.push_back({place, r.clock(), at, true});
    else it->writes = true;
  }
  Value call(ir::make_prim(name, exprs(args, name), result, std::move(attrs), at),
             std::move(reads));
  if (!result.is_void()) return CallResult(std::move(call), true, at);
  r.emit(ir::make_stmt<ir::Evaluate>(at, call.expr()), {&call}, nullptr);
  return CallResult(Value(), true, at);
}

Type pointee(const Located& p) {
  HIDET_REQUIRE(
      p.value.expr() && p.value.type().is_pointer() && p.value.type().pointee().is_scalar(),
      ErrorCode::usage, p.loc.text(), "an atomic takes a pointer to a scalar, not ",
      p.value.expr() ? p.value.type().text() : "nothing");
  return p.value.type().pointee();
}

Located coerced(const Located& v, const Type& type, const char* what) {
  if (!v.value.expr()) return v;
  return Located(Value(ir::coerce(v.value, type, what, v.loc), v.value.reads()), v.loc);
}

Located operand(const Located& p, const Located& v) {
  if (!p.value.expr()) return v;
  return coerced(v, pointee(p), "the operand of an atomic");
}

CallResult atomic(const char* name, const std::vector<Located>& args, SourceLoc at) {
  require_values(name, args);
  const Type type = pointee(args[0]);
  const DType t = type.dtype();
  const bool bits = std::string(name) == "atomic_and" || std::string(name) == "atomic_or" ||
                    std::string(name) == "atomic_xor";
  const bool word = t == i32 || t == u32 || t == i64 || t == u64;
  const bool cuda = recording(at, name).is_cuda(), half = t == f16 || t == bf16;
  HIDET_REQUIRE(word || (!bits && ((cuda && half) || t == f32 || t == f64)), ErrorCode::usage,
                at.text(), "'", name, "' does not work on ", t.name(), cuda ? "" : " on the CPU",
                "; it takes i32, u32, i64, u64",
                bits   ? ""
                : cuda ? ", f16, bf16, f32, f64"
                       : ", f32, f64");
  return effect(name, args, type, 1, {}, at);
}

Value bound(const char* name, const std::vector<Located>& args, const Type& type,
            std::vector<int64_t> attrs, SourceLoc at) {
  const Value call(
      ir::make_prim(row_of(name, at).name, exprs(args, name), type, std::move(attrs), at),
      reads_of(args));
  return let(name, Located(call, at));
}
void require_signature(const char* name, const std::vector<Located>& args, const Type& type,
                       SourceLoc at) {
  const std::string problem = ir::signature_problem(row_of(name, at), exprs(args, name), type);
  HIDET_REQUIRE(problem.empty(), ErrorCode::usage, at.text(), "'", name, "' ", problem);
}

Value exchange(const char* name, const std::vector<Located>& args) {
  return let(name, Located(pure(name, args, args[0].loc), args[0].loc));
}
namespace {
Located lane_number(const Located& v) { return coerced(v, Type(i32), "a lane number"); }
}  // namespace
}  // namespace detail

Value prim(const std::string& name, const std::vector<Located>& args, const Type& result,
           std::vector<int64_t> attrs, Here at) {
  (void)detail::row_of(name.c_str(), at);
  return Value(ir::make_prim(name, detail::exprs(args, name.c_str()), result, std::move(attrs), at),
               detail::reads_of(args));
}

Value shfl(const Located& v, const Located& lane) {
  return detail::exchange("shfl_sync", {v, detail::lane_number(lane)});
}
Value shfl_up(const Located& v, const Located& d) {
  return detail::exchange("shfl_up_sync", {v, detail::lane_number(d)});
}
Value shfl_down(const Located& v, const Located& d) {
  return detail::exchange("shfl_down_sync", {v, detail::lane_number(d)});
}
Value shfl_xor(const Located& v, const Located& m) {
  return detail::exchange("shfl_xor_sync", {v, detail::lane_number(m)});
}
Value ballot(const Located& cond) { return detail::exchange("ballot_sync", {cond}); }
Value any_lane(const Located& cond) { return detail::exchange("any_sync", {cond}); }
Value all_lanes(const Located& cond) { return detail::exchange("all_sync", {cond}); }

void barrier_sync(const Located& id, const Located& count) {
  (void)detail::effect("barrier_sync", {detail::lane_number(id), detail::lane_number(count)}, {}, 0,
                       {}, id.loc);
}
void barrier_arrive(const Located& id, const Located& count) {
  (void)detail::effect("barrier_arrive", {detail::lane_number(id), detail::lane_number(count)}, {},
                       0, {}, id.loc);
}
Value syncthreads_and(const Located& cond) { return detail::exchange("syncthreads_and", {cond}); }
Value syncthreads_or(const Located& cond) { return detail::exchange("syncthreads_or", {cond}); }
Value syncthreads_count(const Located& cond) {
  return detail::exchange("syncthreads_count", {cond});
}

void assume_aligned(const Handle& pointer, int bytes, Here at) {
  detail::require_values("assume_aligned", {Located(pointer, at)});
  HIDET_REQUIRE(pointer.type().is_pointer() && bytes > 0 && (bytes & (bytes - 1)) == 0,
                ErrorCode::usage, SourceLoc(at).text(),
                "assume_aligned takes a pointer and a power of two");
  (void)detail::effect("assume_aligned", {Located(pointer, at)}, {}, 0, {bytes}, at);
}

namespace {
void require_bytes(int bytes, const Located& at) {
  HIDET_REQUIRE(bytes == 4 || bytes == 8 || bytes == 16, ErrorCode::usage, at.loc.text(),
                "cp_async copies 4, 8 or 16 bytes, not ", bytes);
}
}  // namespace
void cp_async(const Located& to, const Located& from, int bytes) {
  require_bytes(bytes, to);
  (void)detail::effect("cp_async", {to, from}, {}, 1, {bytes}, to.loc);
}
void cp_async(const Located& to, const Located& from, int bytes, const Located& kept) {
  require_bytes(bytes, to);
  (void)detail::effect("cp_async_part", {to, from, detail::lane_number(kept)}, {}, 1, {bytes},
                       to.loc);
}
void cp_async_wait(int pending, Here at) {
  (void)detail::effect("cp_async_wait", {}, {}, 0, {pending}, at);
}
void prefetch(const Located& pointer) {
  (void)detail::effect("prefetch", {pointer}, {}, 0, {}, pointer.loc);
}
void prefetch_l1(const Located& pointer) {
  (void)detail::effect("prefetch_l1", {pointer}, {}, 0, {}, pointer.loc);
}
void prefetch_l2(const Located& pointer) {
  (void)detail::effect("prefetch_l2", {pointer}, {}, 0, {}, pointer.loc);
}

namespace {
void require_tile(const char* name, int tile, SourceLoc at) {
  HIDET_REQUIRE(tile >= 0 && tile < 8, ErrorCode::usage, at.text(), name, ": tile register ", tile,
                "; from 0 to 7");
}
Located row_distance(const Located& bytes) {
  return {Value(ir::make_cast(bytes.value.expr(), Type(i64), bytes.loc), bytes.value.reads()),
          bytes.loc};
}
}  // namespace

void amx_config(Here at) { (void)detail::effect("amx_config", {}, {}, 0, {}, at); }
void amx_release(Here at) { (void)detail::effect("amx_release", {}, {}, 0, {}, at); }
void amx_zero(int tile, Here at) {
  require_tile("amx_zero", tile, at);
  (void)detail::effect("amx_zero", {}, {}, 0, {tile}, at);
}
void amx_load(int tile, const Located& pointer, const Located& distance) {
  require_tile("amx_load", tile, pointer.loc);
  detail::require_values("amx_load", {pointer, distance});
  (void)detail::effect("amx_load", {pointer, row_distance(distance)}, {}, 0, {tile}, pointer.loc);
}
void amx_store(int tile, const Located& pointer, const Located& distance) {
  require_tile("amx_store", tile, pointer.loc);
  detail::require_values("amx_store", {pointer, distance});
  (void)detail::effect("amx_store", {pointer, row_distance(distance)}, {}, 1, {tile}, pointer.loc);
}
void amx_dot_bf16(int to, int a, int b, Here at) {
  for (const int tile : {to, a, b}) require_tile("amx_dot_bf16", tile, at);
  (void)detail::effect("amx_dot_bf16", {}, {}, 0, {to, a, b}, at);
}

Value parallel_threads(Here at) {
  return let("threads",
             Located(Value(ir::make_prim("parallel_threads", {}, Type(i64), {}, at)), at));
}

Value scratch(int slot, const Located& bytes, const Type& element) {
  HIDET_REQUIRE(slot >= 0 && slot < 4, ErrorCode::usage, bytes.loc.text(), "scratch block ", slot,
                "; from 0 to 3");
  detail::require_values("scratch", {bytes});
  const Located size(
      Value(ir::make_cast(bytes.value.expr(), Type(i64), bytes.loc), bytes.value.reads()),
      bytes.loc);
  return let("scratch",
             detail::effect("scratch", {slot, size}, Type::pointer(element), 0, {}, bytes.loc));
}

}  // namespace hidet::lang
