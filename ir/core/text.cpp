// text.cpp - words of the text form, and the types that it need not say.
// Needs: nodes whose children are there. Threading: pure functions.
#include "core/text.h"

#include <hidet/ir/primitives.h>

#include <algorithm>
#include <cctype>

namespace hidet::ir {
namespace {

constexpr std::string_view kReserved[] = {
    "true",       "false",        "inf",        "nan",         "select",      "cast",
    "bitcast",    "pointer_cast", "broadcast",  "floordiv",    "floormod",    "min",
    "max",        "pow",          "reduce_sum", "reduce_prod", "reduce_max",  "reduce_min",
    "reduce_all", "reduce_any",   "argmax",     "argmin",      "argmax_last", "argmin_last",
    "let",        "var",          "tensor",     "parallel",    "unroll",      "vectorize",
    "for",        "in",           "while",      "break",       "continue",    "if",
    "else",       "return",       "assert",     "launch",      "comment",     "asm",
    "nothing",    "serial"};

Type prim_type(const Prim& p) {
  const Primitive* row = find_primitive(p.name);
  const Type first = p.args.empty() ? Type() : p.args[0]->type;
  if (!row) return Type();
  switch (row->result) {
    case PrimResult::same: return first;
    case PrimResult::boolean: return Type::vector(boolean, first.lanes());
    case PrimResult::i32: return Type(i32);
    case PrimResult::u32: return Type(u32);
    case PrimResult::f32: return Type::vector(f32, first.lanes());
    case PrimResult::none:
    case PrimResult::custom: break;
  }
  return Type();
}

}  // namespace

bool is_plain_name(std::string_view s) {
  const auto fine = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) &&
         std::all_of(s.begin(), s.end(), fine);
}

bool is_reserved_word(std::string_view s) {
  return std::find(std::begin(kReserved), std::end(kReserved), s) != std::end(kReserved);
}

Type natural_type(const ExprNode& e) {
  switch (e.kind) {
    case Kind::IntImm: return e.type.dtype().is_boolean() ? e.type : Type(i32);
    case Kind::FloatImm: return Type(f32);
    case Kind::Unary: return static_cast<const Unary&>(e).a->type;
    case Kind::Binary: {
      const Binary& b = static_cast<const Binary&>(e);
      return info(b.op).comparison ? Type::vector(boolean, b.a->type.lanes()) : b.a->type;
    }
    case Kind::Select: return static_cast<const Select&>(e).a->type;
    case Kind::Call: return Type();
    case Kind::Prim: return prim_type(static_cast<const Prim&>(e));
    case Kind::Load: {
      const Type& pointee = static_cast<const Load&>(e).base->type.pointee();
      return e.type.is_vector() ? pointee.with_lanes(e.type.lanes()) : pointee;
    }
    case Kind::Element:
      return Type::vector(static_cast<const Element&>(e).tensor->type.dtype(), e.type.lanes());
    case Kind::AddressOf:
      return Type::pointer(Type(static_cast<const AddressOf&>(e).tensor->type.dtype()));
    case Kind::MakeVector: {
      const std::vector<Expr>& lanes = static_cast<const MakeVector&>(e).lanes;
      return lanes[0]->type.with_lanes(static_cast<int>(lanes.size()));
    }
    case Kind::Broadcast:
      return static_cast<const Broadcast&>(e).a->type.with_lanes(e.type.lanes());
    case Kind::Lane: return static_cast<const Lane&>(e).vector->type.with_lanes(1);
    case Kind::Reduce: return static_cast<const Reduce&>(e).value->type;
    case Kind::ArgReduce: return Type(i64);
    default: return e.type;  // the text says it: strings, variables, symbols, casts
  }
}

}  // namespace hidet::ir
