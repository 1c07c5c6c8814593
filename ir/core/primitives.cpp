// primitives.cpp - the table of primitives.
#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

#include <unordered_map>

namespace hidet::ir {
namespace {
using T = PrimTarget;
using R = PrimResult;

// name, arity, target, result, C, CUDA, least arch, pure, elementwise, convergent, doc.
// C text "@" means: a helper function of the prelude named hidet_<name>_<type>.
const std::vector<Primitive> kTable = {
    // --- math, elementwise on any float dtype; CUDA: $s is "f" for f32, "" for f64
    {"exp", 1, T::any, R::same, "@", "exp$s($0)", 0, true, true, false, "e^x"},
    {"exp2", 1, T::any, R::same, "@", "exp2$s($0)", 0, true, true, false, "2^x"},
    {"expm1", 1, T::any, R::same, "@", "expm1$s($0)", 0, true, true, false, "e^x - 1"},
    {"log", 1, T::any, R::same, "@", "log$s($0)", 0, true, true, false, "natural logarithm"},
    {"log2", 1, T::any, R::same, "@", "log2$s($0)", 0, true, true, false, "logarithm to base 2"},
    {"log10", 1, T::any, R::same, "@", "log10$s($0)", 0, true, true, false, "logarithm to base 10"},
    {"log1p", 1, T::any, R::same, "@", "log1p$s($0)", 0, true, true, false, "log(1 + x)"},
    {"sqrt", 1, T::any, R::same, "@", "sqrt$s($0)", 0, true, true, false, "square root"},
    {"rsqrt", 1, T::any, R::same, "@", "(1.0$s / sqrt$s($0))", 0, true, true, false, "1 / sqrt(x)"},
    {"tanh", 1, T::any, R::same, "@", "tanh$s($0)", 0, true, true, false, "hyperbolic tangent"},
    {"erf", 1, T::any, R::same, "@", "erf$s($0)", 0, true, true, false, "error function"},
    {"sigmoid", 1, T::any, R::same, "@", "(1.0$s / (1.0$s + exp$s(-($0))))", 0, true, true, false,
     "1 / (1 + e^-x)"},
    {"sin", 1, T::any, R::same, "@", "sin$s($0)", 0, true, true, false, "sine"},
    {"cos", 1, T::any, R::same, "@", "cos$s($0)", 0, true, true, false, "cosine"},
    {"tan", 1, T::any, R::same, "@", "tan$s($0)", 0, true, true, false, "tangent"},
    {"asin", 1, T::any, R::same, "@", "asin$s($0)", 0, true, true, false, "arc sine"},
    {"acos", 1, T::any, R::same, "@", "acos$s($0)", 0, true, true, false, "arc cosine"},
    {"atan", 1, T::any, R::same, "@", "atan$s($0)", 0, true, true, false, "arc tangent"},
    {"sinh", 1, T::any, R::same, "@", "sinh$s($0)", 0, true, true, false, "hyperbolic sine"},
    {"cosh", 1, T::any, R::same, "@", "cosh$s($0)", 0, true, true, false, "hyperbolic cosine"},
    {"asinh", 1, T::any, R::same, "@", "asinh$s($0)", 0, true, true, false,
     "inverse hyperbolic sine"},
    {"acosh", 1, T::any, R::same, "@", "acosh$s($0)", 0, true, true, false,
     "inverse hyperbolic cosine"},
    {"atanh", 1, T::any, R::same, "@", "atanh$s($0)", 0, true, true, false,
     "inverse hyperbolic tangent"},
    {"floor", 1, T::any, R::same, "@", "floor$s($0)", 0, true, true, false, "largest integer <= x"},
    {"ceil", 1, T::any, R::same, "@", "ceil$s($0)", 0, true, true, false, "least integer >= x"},
    {"round", 1, T::any, R::same, "@", "rint$s($0)", 0, true, true, false,
     "nearest integer, ties to even"},
    {"trunc", 1, T::any, R::same, "@", "trunc$s($0)", 0, true, true, false, "toward zero"},
    {"abs", 1, T::any, R::same, "@", "@", 0, true, true, false,
     "absolute value; the least integer stays"},
    {"isnan", 1, T::any, R::boolean, "@", "isnan($0)", 0, true, true, false, "is NaN"},
    {"isinf", 1, T::any, R::boolean, "@", "isinf($0)", 0, true, true, false, "is +inf or -inf"},
    {"fma", 3, T::any, R::same, "@", "fma$s($0, $1, $2)", 0, true, true, false,
     "a * b + c with one rounding"},
    // --- output; $0 is the format, the rest are promoted as C's variable arguments are
    {"printf", -1, T::any, R::none, "@", "@", 0, false, false, false, "prints"},
    {"refuse", -1, T::cpu, R::none, "@", nullptr, 0, false, false, false,
     "the call fails with this message: a usage error"},
    // --- CUDA: indices
    {"thread_idx_x", 0, T::cuda, R::i32, nullptr, "((int)threadIdx.x)", 0, true, false, false,
     "thread index in the block"},
    {"thread_idx_y", 0, T::cuda, R::i32, nullptr, "((int)threadIdx.y)", 0, true, false, false,
     "thread index in the block"},
    {"thread_idx_z", 0, T::cuda, R::i32, nullptr, "((int)threadIdx.z)", 0, true, false, false,
     "thread index in the block"},
    {"block_idx_x", 0, T::cuda, R::i32, nullptr, "((int)blockIdx.x)", 0, true, false, false,
     "block index in the grid"},
    {"block_idx_y", 0, T::cuda, R::i32, nullptr, "((int)blockIdx.y)", 0, true, false, false,
     "block index in the grid"},
    {"block_idx_z", 0, T::cuda, R::i32, nullptr, "((int)blockIdx.z)", 0, true, false, false,
     "block index in the grid"},
    {"block_dim_x", 0, T::cuda, R::i32, nullptr, "((int)blockDim.x)", 0, true, false, false,
     "threads in a block"},
    {"block_dim_y", 0, T::cuda, R::i32, nullptr, "((int)blockDim.y)", 0, true, false, false,
     "threads in a block"},
    {"block_dim_z", 0, T::cuda, R::i32, nullptr, "((int)blockDim.z)", 0, true, false, false,
     "threads in a block"},
    {"grid_dim_x", 0, T::cuda, R::i32, nullptr, "((int)gridDim.x)", 0, true, false, false,
     "blocks in the grid"},
    {"grid_dim_y", 0, T::cuda, R::i32, nullptr, "((int)gridDim.y)", 0, true, false, false,
     "blocks in the grid"},
    {"grid_dim_z", 0, T::cuda, R::i32, nullptr, "((int)gridDim.z)", 0, true, false, false,
     "blocks in the grid"},
    // --- CUDA: synchronisation
    {"syncthreads", 0, T::cuda, R::none, nullptr, "__syncthreads()", 0, false, false, true,
     "barrier of the block"},
    {"syncwarp", 0, T::cuda, R::none, nullptr, "__syncwarp()", 0, false, false, true,
     "barrier of the warp"},
    {"threadfence", 0, T::cuda, R::none, nullptr, "__threadfence()", 0, false, false, false,
     "memory fence, device"},
    {"threadfence_block", 0, T::cuda, R::none, nullptr, "__threadfence_block()", 0, false, false,
     false, "memory fence, block"},
    // --- CUDA: warp exchange (full mask, width 32)
    {"shfl_sync", 2, T::cuda, R::same, nullptr, "__shfl_sync(0xffffffffu, $0, $1)", 0, false, false,
     true, "value of lane $1"},
    {"shfl_up_sync", 2, T::cuda, R::same, nullptr, "__shfl_up_sync(0xffffffffu, $0, $1)", 0, false,
     false, true, "value of the lane $1 below"},
    {"shfl_down_sync", 2, T::cuda, R::same, nullptr, "__shfl_down_sync(0xffffffffu, $0, $1)", 0,
     false, false, true, "value of the lane $1 above"},
    {"shfl_xor_sync", 2, T::cuda, R::same, nullptr, "__shfl_xor_sync(0xffffffffu, $0, $1)", 0,
     false, false, true, "value of lane (own ^ $1)"},
    {"ballot_sync", 1, T::cuda, R::u32, nullptr, "__ballot_sync(0xffffffffu, $0)", 0, false, false,
     true, "bit mask of a condition"},
    {"any_sync", 1, T::cuda, R::boolean, nullptr, "(__any_sync(0xffffffffu, $0) != 0)", 0, false,
     false, true, "condition holds on a lane"},
    {"all_sync", 1, T::cuda, R::boolean, nullptr, "(__all_sync(0xffffffffu, $0) != 0)", 0, false,
     false, true, "condition holds on all lanes"},
    // --- CUDA: atomics on (pointer, value); the old value
    {"atomic_add", 2, T::cuda, R::custom, nullptr, "atomicAdd($0, $1)", 0, false, false, false,
     "*p += v"},
    {"atomic_max", 2, T::cuda, R::custom, nullptr, "atomicMax($0, $1)", 0, false, false, false,
     "*p = max(*p, v)"},
    {"atomic_min", 2, T::cuda, R::custom, nullptr, "atomicMin($0, $1)", 0, false, false, false,
     "*p = min(*p, v)"},
    {"atomic_exch", 2, T::cuda, R::custom, nullptr, "atomicExch($0, $1)", 0, false, false, false,
     "*p = v"},
    {"atomic_cas", 3, T::cuda, R::custom, nullptr, "atomicCAS($0, $1, $2)", 0, false, false, false,
     "compare and swap"},
    // --- CUDA: asynchronous copies to shared memory (bytes: $k0 = 4, 8 or 16)
    {"cp_async", 2, T::cuda, R::none, nullptr, "@", 80, false, false, false,
     "copy $k0 bytes from global to shared memory"},
    {"cp_async_commit", 0, T::cuda, R::none, nullptr,
     "asm volatile(\"cp.async.commit_group;\\n\" ::)", 80, false, false, false,
     "closes a group of copies"},
    {"cp_async_wait", 0, T::cuda, R::none, nullptr,
     "asm volatile(\"cp.async.wait_group %0;\\n\" ::\"n\"($k0))", 80, false, false, false,
     "waits until $k0 groups are pending"},
    {"assume_aligned", 1, T::cuda, R::none, nullptr,
     "__builtin_assume(((unsigned long long)($0) & ($k0 - 1)) == 0)", 0, false, false, false,
     "promises that a pointer is a multiple of $k0 bytes, a power of two"},
    // --- fast math (CUDA)
    {"fast_exp", 1, T::cuda, R::f32, nullptr, "__expf($0)", 0, true, true, false,
     "approximate e^x"},
    {"fast_log", 1, T::cuda, R::f32, nullptr, "__logf($0)", 0, true, true, false,
     "approximate logarithm"},
    // --- CPU
    {"scratch", 2, T::cpu, R::custom, "@", nullptr, 0, false, false, false,
     "this thread's scratch block number $0 of $1 bytes, 64-byte aligned"},
    {"prefetch", 1, T::cpu, R::none, "__builtin_prefetch($0)", nullptr, 0, false, false, false,
     "prefetches the cache line for reading"},
};
}  // namespace

const std::vector<Primitive>& all_primitives() { return kTable; }

const Primitive* find_primitive(const std::string& name) {
  static const auto* const index = [] {
    auto* map = new std::unordered_map<std::string, const Primitive*>;
    for (const Primitive& p : kTable) map->emplace(p.name, &p);
    return map;
  }();
  auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
}

Expr call_math(const std::string& name, std::vector<Expr> args, SourceLoc loc) {
  const Primitive* p = find_primitive(name);
  HIDET_CHECK(p && p->elementwise && p->arity == static_cast<int>(args.size()),
              "no elementwise primitive '", name, "' of ", args.size(), " arguments");
  int lanes = 1;
  const Expr* typed = &args[0];
  for (const Expr& a : args) {
    HIDET_REQUIRE(a->type.is_arithmetic(), ErrorCode::usage, loc.text(), "'", name,
                  "' takes numbers, not ", a->type.text());
    lanes = std::max(lanes, a->type.lanes());
    if (a->kind != Kind::FloatImm && a->kind != Kind::IntImm) typed = &a;
  }
  const DType dtype = (*typed)->type.dtype();
  HIDET_REQUIRE(dtype.is_float() || (name == "abs" && dtype.is_integer()), ErrorCode::usage,
                loc.text(), "'", name, "' takes floating-point numbers, not ",
                (*typed)->type.text());
  for (Expr& a : args) {
    const bool imm = a->kind == Kind::FloatImm || a->kind == Kind::IntImm;
    HIDET_REQUIRE(imm || a->type.dtype() == dtype, ErrorCode::usage, loc.text(), "'", name, "' of ",
                  dtype.name(), " and ", a->type.text(), "; cast one of them");
    a = make_cast(a, Type::vector(dtype, lanes), loc);
  }
  const DType result = p->result == PrimResult::boolean ? boolean : dtype;
  return make_prim(name, std::move(args), Type::vector(result, lanes), {}, loc);
}

}  // namespace hidet::ir
