// primitives.cpp - the table of primitives: math and CPU rows, look-up, rules. The rows of CUDA are in
// primitives_cuda.cpp and its neighbours (primitive_tables.h).
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include "primitive_tables.h"

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
    // --- CPU
    {"scratch", 2, T::cpu, R::custom, "@", nullptr, 0, false, false, false,
     "this thread's scratch block number $0 of $1 bytes, 64-byte aligned"},
    {"parallel_threads", 0, T::cpu, R::custom, "H->threads()", nullptr, 0, false, false, false,
     "threads that parallel loops may use: how work is split, never what it gives"},
    {"prefetch", 1, T::cpu, R::none, "__builtin_prefetch($0)", nullptr, 0, false, false, false,
     "prefetches the cache line for reading"},
};
}  // namespace

const std::vector<Primitive>& all_primitives() {
  static const std::vector<Primitive>* const all = [] {
    auto* rows = new std::vector<Primitive>(kTable);
    for (const auto* more :
         {&cuda_primitives(), &arith_primitives(), &access_primitives(), &sm80_primitives(),
          &mma_primitives(), &sm90_primitives(), &bulk_primitives(), &amx_primitives()})
      rows->insert(rows->end(), more->begin(), more->end());
    return rows;
  }();
  return *all;
}

const Primitive* find_primitive(const std::string& name) {
  static const auto* const index = [] {
    auto* map = new std::unordered_map<std::string, const Primitive*>;
    for (const Primitive& p : all_primitives()) map->emplace(p.name, &p);
    return map;
  }();
  auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
}

bool uses_swizzled_tiles(const Module& module) {
  bool found = false;
  for (const Function& f : module.functions)
    if (is_cuda(f.kind) && f.body && !found)
      visit_all(f.body, [&](const Node& n) {
        const Prim* p = as<Prim>(&n);
        found = found || (p && (p->name == "tma_load" || p->name == "tma_store" ||
                                p->name == "tma_reduce" || p->name == "wgmma_descriptor"));
      });
  return found;
}

std::string signature_problem(const Primitive& row, const std::vector<Expr>& args,
                              const Type& result) {
  if (!row.signature) return "";
  const std::string text = row.signature;
  const size_t arrow = text.find("-> ");
  const auto fits = [](const std::string& wanted, const Type& t) {
    return wanted == "*" || (wanted == "ptr" ? t.is_pointer() : wanted == t.text());
  };
  size_t at = 0;
  for (const Expr& a : args) {
    const size_t end = std::min(text.find(',', at), arrow - 1);
    const std::string wanted = text.substr(at, end - at);
    if (!fits(wanted, a->type))
      return "takes (" + text.substr(0, arrow - 1) + "), not " + a->type.text() + " for " + wanted;
    at = end + 2;
  }
  const std::string wanted = text.substr(arrow + 3);
  return fits(wanted, result) ? "" : "returns " + wanted + ", not " + result.text();
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
