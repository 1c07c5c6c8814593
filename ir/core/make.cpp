// make.cpp - makers of expressions: type checks, unification of dtypes, exact constant folding.
#include <hidet/ir/expr.h>
#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

#include <cmath>
#include <limits>

#include <hidet/ir/fold.h>

namespace hidet::ir {
namespace {

template <class T, class... Args>
Expr node(SourceLoc loc, Args&&... args) {
  T* n = new T(std::forward<Args>(args)...);
  n->loc = loc;
  return Expr(n);
}

constexpr BinaryOpInfo kBinaryOps[] = {
    {"add", "+", 12, false, false, true},       {"sub", "-", 12, false, false, false},
    {"mul", "*", 13, false, false, true},       {"div", "/", 13, false, false, false},
    {"mod", "%", 13, false, false, false},      {"floordiv", "", 0, false, false, false},
    {"floormod", "", 0, false, false, false},   {"min", "", 0, false, false, true},
    {"max", "", 0, false, false, true},         {"pow", "", 0, false, false, false},
    {"bit_and", "&", 8, false, false, true},    {"bit_or", "|", 6, false, false, true},
    {"bit_xor", "^", 7, false, false, true},    {"shl", "<<", 11, false, false, false},
    {"shr", ">>", 11, false, false, false},     {"lt", "<", 10, true, false, false},
    {"le", "<=", 10, true, false, false},       {"gt", ">", 10, true, false, false},
    {"ge", ">=", 10, true, false, false},       {"eq", "==", 9, true, false, true},
    {"ne", "!=", 9, true, false, true},         {"logical_and", "&&", 5, false, true, true},
    {"logical_or", "||", 4, false, true, true},
};

/// Scripts may hold a Value that was never given one.
void require_values(std::initializer_list<const Expr*> operands, const char* what, SourceLoc loc) {
  for (const Expr* e : operands)
    HIDET_REQUIRE(*e, ErrorCode::usage, loc.text(), "'", what, "' has an operand without a value");
}

bool is_imm(const Expr& e) { return e->kind == Kind::IntImm || e->kind == Kind::FloatImm; }

/// The immediate `e` in another dtype.
Expr retype(const Expr& e, DType to, SourceLoc loc) {
  if (e->type.dtype() == to) return e;
  if (const IntImm* i = as<IntImm>(e)) {
    HIDET_REQUIRE(e->type.dtype().is_boolean() == to.is_boolean(), ErrorCode::usage, loc.text(),
                  "a constant of type ", e->type.text(), " meets an operand of type ", to.name(),
                  "; cast one of them");
    const DType from = e->type.dtype();
    if (to.is_float()) return fold_cast(e, to, loc);
    HIDET_REQUIRE(fits(i->value, from, to), ErrorCode::usage, loc.text(), "the constant ",
                  int_text(i->value, from), " does not fit ", to.name(),
                  " of the other operand; cast one of them");
    return make_int(i->value, Type(to), loc);
  }
  const FloatImm* f = as<FloatImm>(e);
  HIDET_REQUIRE(to.is_float(), ErrorCode::usage, loc.text(), "the constant ", f->value,
                " meets an operand of type ", to.name(), "; cast one of them");
  return make_float(f->value, Type(to), loc);
}

/// The common dtype of two operands that are no immediates.
DType common_dtype(const Expr& a, const Expr& b, const char* op, SourceLoc loc) {
  const DType x = a->type.dtype(), y = b->type.dtype();
  if (x == y) return x;
  const bool ints = x.is_integer() && y.is_integer();
  const DType wide = x.bits() >= y.bits() ? x : y, narrow = x.bits() >= y.bits() ? y : x;
  HIDET_REQUIRE(ints && x.bits() != y.bits() && (wide.is_signed() || !narrow.is_signed()),
                ErrorCode::usage, loc.text(), "'", op, "' of ", a->type.text(), " and ",
                b->type.text(), " has no common type; cast one of them");
  return wide;
}

/// Brings both operands to one dtype and lane count.
void unify(Expr& a, Expr& b, const char* op, SourceLoc loc) {
  HIDET_REQUIRE(a->type.is_arithmetic() && b->type.is_arithmetic(), ErrorCode::usage, loc.text(),
                "'", op, "' takes numbers, not ", a->type.text(), " and ", b->type.text());
  if (!(a->type.dtype() == b->type.dtype())) {
    if (is_imm(a) && is_imm(b)) {
      const bool to_b = b->type.dtype().is_float() ||
                        b->type.dtype().bits() > a->type.dtype().bits() ||
                        (b->type.dtype() == u64 && a->type.dtype() == i64);
      if (a->type.dtype().is_float() && !to_b) b = retype(b, a->type.dtype(), loc);
      else if (to_b &&
               !(a->type.dtype().is_float() && b->type.dtype().bits() < a->type.dtype().bits()))
        a = retype(a, b->type.dtype(), loc);
      else b = retype(b, a->type.dtype(), loc);
    } else if (is_imm(a)) {
      a = retype(a, b->type.dtype(), loc);
    } else if (is_imm(b)) {
      b = retype(b, a->type.dtype(), loc);
    } else {
      const DType t = common_dtype(a, b, op, loc);
      a = make_cast(a, a->type.with_dtype(t), loc);
      b = make_cast(b, b->type.with_dtype(t), loc);
    }
  }
  const int lanes = std::max(a->type.lanes(), b->type.lanes());
  if (a->type.lanes() == lanes && b->type.lanes() == lanes) return;
  HIDET_REQUIRE(a->type.lanes() == 1 || b->type.lanes() == 1, ErrorCode::usage, loc.text(), "'", op,
                "' of ", a->type.text(), " and ", b->type.text(), ": the lane counts differ");
  a = make_broadcast(a, lanes, loc);
  b = make_broadcast(b, lanes, loc);
}

bool is_value(const Expr& e, int64_t v) {
  int64_t x;
  return is_const_int(e, &x) && x == v;
}

/// Identities that are exact for integers (and && ||); null where none applies.
Expr identity(BinaryOp op, const Expr& a, const Expr& b) {
  if (!a->type.is_scalar() || a->type.dtype().is_float()) return nullptr;
  switch (op) {
    case BinaryOp::add: return is_value(a, 0) ? b : is_value(b, 0) ? a : Expr();
    case BinaryOp::sub: return is_value(b, 0) ? a : Expr();
    case BinaryOp::mul:
      if (is_value(a, 1) || is_value(b, 0)) return b;
      return is_value(b, 1) || is_value(a, 0) ? a : Expr();
    case BinaryOp::div:
    case BinaryOp::floordiv: return is_value(b, 1) ? a : Expr();
    case BinaryOp::mod:
    case BinaryOp::floormod: return is_value(b, 1) ? make_int(0, a->type) : Expr();
    case BinaryOp::logical_and:
      return is_value(a, 1) ? b : is_value(b, 1) ? a : is_value(a, 0) ? a : Expr();
    case BinaryOp::logical_or:
      return is_value(a, 0) ? b : is_value(b, 0) ? a : is_value(a, 1) ? a : Expr();
    default: return nullptr;
  }
}

Expr make_pointer_offset(BinaryOp op, const Expr& a, const Expr& b, SourceLoc loc) {
  HIDET_REQUIRE((op == BinaryOp::add || op == BinaryOp::sub) && b->type.is_scalar() &&
                    b->type.dtype().is_integer(),
                ErrorCode::usage, loc.text(), "'", info(op).name, "' of ", a->type.text(), " and ",
                b->type.text(), ": a pointer takes + or - of an integer");
  return node<Binary>(loc, op, a, b, a->type);
}

}  // namespace

const BinaryOpInfo& info(BinaryOp op) { return kBinaryOps[static_cast<int>(op)]; }

Expr make_int(int64_t value, Type type, SourceLoc loc) {
  HIDET_CHECK(type.is_scalar() && !type.dtype().is_float(), "integer constant of type ",
              type.text());
  return node<IntImm>(loc, wrap_int(value, type.dtype()), type);
}
Expr make_float(double value, Type type, SourceLoc loc) {
  HIDET_CHECK(type.is_scalar() && type.dtype().is_float(), "float constant of type ", type.text());
  return node<FloatImm>(loc, round_to(value, type.dtype()), type);
}
Expr make_const(double value, DType dtype, SourceLoc loc) {
  return dtype.is_float() ? make_float(value, Type(dtype), loc)
                          : make_int(saturate(value, dtype), Type(dtype), loc);
}
Expr make_bool(bool value, SourceLoc loc) { return make_int(value, Type(boolean), loc); }
VarRef make_var(std::string name, Type type, bool is_mutable, SourceLoc loc) {
  Var* v = new Var(std::move(name), std::move(type), is_mutable);
  v->loc = loc;
  return VarRef(v);
}
Expr make_symbol(std::string name) { return Expr(new DimSymbol(std::move(name))); }

Expr make_unary(UnaryOp op, Expr a, SourceLoc loc) {
  HIDET_REQUIRE(a && a->type.is_arithmetic(), ErrorCode::usage, loc.text(), "'", name(op),
                "' takes a number, not ", a ? a->type.text() : "nothing");
  const DType t = a->type.dtype();
  const bool fine = op == UnaryOp::neg       ? !t.is_boolean()
                    : op == UnaryOp::bit_not ? t.is_integer()
                                             : t.is_boolean();
  HIDET_REQUIRE(fine, ErrorCode::usage, loc.text(), "'", name(op), "' does not take ",
                a->type.text());
  if (const IntImm* i = as<IntImm>(a))
    return make_int(op == UnaryOp::neg ? static_cast<int64_t>(0 - static_cast<uint64_t>(i->value))
                    : op == UnaryOp::bit_not ? ~i->value
                                             : !i->value,
                    a->type, loc);
  if (const FloatImm* f = as<FloatImm>(a)) return make_float(-f->value, a->type, loc);
  const Type type = a->type;
  return node<Unary>(loc, op, std::move(a), type);
}

Expr make_binary(BinaryOp op, Expr a, Expr b, SourceLoc loc) {
  const BinaryOpInfo& row = info(op);
  HIDET_REQUIRE(a && b, ErrorCode::usage, loc.text(), "'", row.name,
                "' has an operand without a value");
  if (a->type.is_pointer() && !row.comparison) return make_pointer_offset(op, a, b, loc);
  if (a->type.is_pointer() && a->type == b->type) return node<Binary>(loc, op, a, b, Type(boolean));
  unify(a, b, row.name, loc);
  const DType t = a->type.dtype();
  if (row.logical) {
    HIDET_REQUIRE(t.is_boolean(), ErrorCode::usage, loc.text(), "'", row.c,
                  "' takes booleans, not ", a->type.text());
  } else if (!row.comparison) {
    const bool bitwise = op >= BinaryOp::bit_and && op <= BinaryOp::bit_xor;
    const bool shift = op == BinaryOp::shl || op == BinaryOp::shr;
    HIDET_REQUIRE(!t.is_boolean() || bitwise, ErrorCode::usage, loc.text(), "'", row.name,
                  "' does not take booleans; cast them");
    HIDET_REQUIRE(!t.is_float() || !(bitwise || shift), ErrorCode::usage, loc.text(), "'", row.name,
                  "' takes integers, not ", a->type.text());
  }
  if (Expr folded = fold_binary(op, a, b, loc)) return folded;
  if (Expr simple = identity(op, a, b)) return simple;
  const Type type = row.comparison ? Type::vector(boolean, a->type.lanes()) : a->type;
  return node<Binary>(loc, op, std::move(a), std::move(b), type);
}

Expr make_select(Expr cond, Expr a, Expr b, SourceLoc loc) {
  require_values({&cond, &a, &b}, "select", loc);
  HIDET_REQUIRE(cond->type.is_arithmetic() && cond->type.dtype().is_boolean(), ErrorCode::usage,
                loc.text(), "select takes a boolean condition, not ", cond->type.text());
  if (!(a->type.is_pointer() && a->type == b->type)) unify(a, b, "select", loc);
  int64_t known;
  if (is_const_int(cond, &known)) return known ? a : b;
  const Type type = a->type;
  return node<Select>(loc, std::move(cond), std::move(a), std::move(b), type);
}

Expr make_cast(Expr a, Type to, SourceLoc loc) {
  require_values({&a}, "cast", loc);
  if (a->type == to) return a;
  HIDET_REQUIRE(a->type.is_arithmetic() && to.is_arithmetic(), ErrorCode::usage, loc.text(),
                "cannot cast ", a->type.text(), " to ", to.text());
  if (a->type.lanes() == 1 && to.lanes() > 1)
    return make_broadcast(make_cast(a, Type(to.dtype()), loc), to.lanes(), loc);
  HIDET_REQUIRE(a->type.lanes() == to.lanes(), ErrorCode::usage, loc.text(), "cannot cast ",
                a->type.text(), " to ", to.text(), ": the lane counts differ");
  if (is_imm(a)) return fold_cast(a, to.dtype(), loc);
  return node<Cast>(loc, CastKind::value, std::move(a), to);
}
Expr make_bitcast(Expr a, Type to, SourceLoc loc) {
  HIDET_REQUIRE(a->type.is_arithmetic() && to.is_arithmetic() &&
                    a->type.dtype().bits() * a->type.lanes() == to.dtype().bits() * to.lanes(),
                ErrorCode::usage, loc.text(), "cannot reinterpret ", a->type.text(), " as ",
                to.text(), ": the sizes differ");
  return node<Cast>(loc, CastKind::bits, std::move(a), to);
}
Expr make_pointer_cast(Expr a, Type pointer, SourceLoc loc) {
  HIDET_REQUIRE(a->type.is_pointer() && pointer.is_pointer(), ErrorCode::usage, loc.text(),
                "a pointer cast takes pointers, not ", a->type.text(), " and ", pointer.text());
  if (a->type == pointer) return a;
  return node<Cast>(loc, CastKind::pointer, std::move(a), pointer);
}

Expr make_call(std::string callee, std::vector<Expr> args, Type returns, SourceLoc loc) {
  return node<Call>(loc, std::move(callee), std::move(args), std::move(returns));
}
Expr make_prim(std::string name, std::vector<Expr> args, Type returns, std::vector<int64_t> attrs,
               SourceLoc loc) {
  return node<Prim>(loc, std::move(name), std::move(args), std::move(attrs), std::move(returns));
}

Expr make_load(Expr base, Expr index, int lanes, SourceLoc loc) {
  require_values({&base, &index}, "[]", loc);
  HIDET_REQUIRE(base->type.is_pointer() && !base->type.pointee().is_void(), ErrorCode::usage,
                loc.text(), "[] takes a pointer, not ", base->type.text());
  HIDET_REQUIRE(index->type.is_scalar() && index->type.dtype().is_integer(), ErrorCode::usage,
                loc.text(), "an index is a scalar integer, not ", index->type.text());
  const Type& pointee = base->type.pointee();
  const Type type = lanes > 1 ? pointee.with_lanes(lanes) : pointee;
  return node<Load>(loc, std::move(base), std::move(index), type);
}

namespace {
void check_indices(const Expr& tensor, const std::vector<Expr>& indices, SourceLoc loc) {
  require_values({&tensor}, "()", loc);
  for (const Expr& i : indices) require_values({&i}, "()", loc);
  HIDET_REQUIRE(tensor->type.is_tensor(), ErrorCode::usage, loc.text(), "() takes a tensor, not ",
                tensor->type.text());
  const size_t rank = tensor->type.tensor_info().shape.size();
  const Var* v = as<Var>(tensor);
  HIDET_REQUIRE(indices.size() == rank, ErrorCode::usage, loc.text(), "tensor '", v ? v->name : "",
                "' of rank ", rank, " takes ", rank, " indices, not ", indices.size());
  for (const Expr& i : indices)
    HIDET_REQUIRE(i->type.is_scalar() && i->type.dtype().is_integer(), ErrorCode::usage, loc.text(),
                  "an index is a scalar integer, not ", i->type.text());
}
}  // namespace

Expr make_element(Expr tensor, std::vector<Expr> indices, bool guarded, int lanes, SourceLoc loc) {
  check_indices(tensor, indices, loc);
  const Type type = Type::vector(tensor->type.dtype(), lanes);
  return node<Element>(loc, std::move(tensor), std::move(indices), guarded, type);
}
Expr make_address(Expr tensor, std::vector<Expr> indices, SourceLoc loc) {
  check_indices(tensor, indices, loc);
  const Type type = Type::pointer(Type(tensor->type.dtype()));
  return node<AddressOf>(loc, std::move(tensor), std::move(indices), type);
}

Expr make_vector(std::vector<Expr> lanes, SourceLoc loc) {
  for (const Expr& e : lanes) require_values({&e}, "vector", loc);
  HIDET_REQUIRE(!lanes.empty() && lanes[0]->type.is_scalar(), ErrorCode::usage, loc.text(),
                "a vector is made of scalars");
  for (const Expr& e : lanes)
    HIDET_REQUIRE(e->type == lanes[0]->type, ErrorCode::usage, loc.text(), "a vector of ",
                  lanes[0]->type.text(), " has a lane of type ", e->type.text());
  if (lanes.size() == 1) return lanes[0];
  const Type type = lanes[0]->type.with_lanes(static_cast<int>(lanes.size()));
  return node<MakeVector>(loc, std::move(lanes), type);
}
Expr make_broadcast(Expr a, int lanes, SourceLoc loc) {
  require_values({&a}, "broadcast", loc);
  if (a->type.lanes() == lanes) return a;
  HIDET_REQUIRE(a->type.is_scalar(), ErrorCode::usage, loc.text(), "only a scalar broadcasts, not ",
                a->type.text());
  const Type type = a->type.with_lanes(lanes);
  return node<Broadcast>(loc, std::move(a), type);
}
Expr make_lane(Expr vector, Expr index, SourceLoc loc) {
  require_values({&vector, &index}, "lane", loc);
  int64_t i;
  if (vector->type.is_scalar() && is_const_int(index, &i) && i == 0) return vector;
  HIDET_REQUIRE(vector->type.is_vector(), ErrorCode::usage, loc.text(), "a lane of ",
                vector->type.text());
  if (is_const_int(index, &i)) {
    HIDET_REQUIRE(i >= 0 && i < vector->type.lanes(), ErrorCode::usage, loc.text(), "lane ",
                  int_text(i, index->type.dtype()), " of ", vector->type.text());
    if (const MakeVector* m = as<MakeVector>(vector)) return m->lanes[i];
  }
  if (const Broadcast* b = as<Broadcast>(vector)) return b->a;
  const Type type = vector->type.with_lanes(1);
  return node<Lane>(loc, std::move(vector), std::move(index), type);
}

Expr make_reduce(ReduceOp op, std::vector<VarRef> axes, std::vector<Expr> extents, Expr value,
                 SourceLoc loc) {
  HIDET_CHECK(axes.size() == extents.size(), "a reduction has ", axes.size(), " axes and ",
              extents.size(), " extents");
  const Type type = value->type;
  return node<Reduce>(loc, op, std::move(axes), std::move(extents), std::move(value), type);
}
Expr make_arg_reduce(bool is_max, bool last, VarRef axis, Expr extent, Expr value, SourceLoc loc) {
  return node<ArgReduce>(loc, is_max, last, std::move(axis), std::move(extent), std::move(value),
                         Type(i64));
}

Expr reduce_identity(ReduceOp op, DType t) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::sum: return make_const(0, t);
    case ReduceOp::prod: return make_const(1, t);
    case ReduceOp::max: return t.is_float() ? make_const(-inf, t) : make_int(t.min_int(), Type(t));
    case ReduceOp::min:
      return t.is_float() ? make_const(inf, t)
                          : make_int(static_cast<int64_t>(t.max_int()), Type(t));
    case ReduceOp::all: return make_bool(true);
    case ReduceOp::any: return make_bool(false);
  }
  HIDET_CHECK(false, "unknown reduction");
  return nullptr;
}
Expr reduce_combine(ReduceOp op, Expr a, Expr b) {
  static constexpr BinaryOp ops[] = {BinaryOp::add, BinaryOp::mul,         BinaryOp::max,
                                     BinaryOp::min, BinaryOp::logical_and, BinaryOp::logical_or};
  const bool of_bool = a->type.dtype().is_boolean();
  if (of_bool && op == ReduceOp::max)
    return make_binary(BinaryOp::logical_or, std::move(a), std::move(b));
  if (of_bool && op == ReduceOp::min)
    return make_binary(BinaryOp::logical_and, std::move(a), std::move(b));
  return make_binary(ops[static_cast<int>(op)], std::move(a), std::move(b));
}

bool is_const_int(const Expr& e, int64_t* value) {
  const IntImm* i = as<IntImm>(e);
  if (i && value) *value = i->value;
  return i != nullptr;
}

}  // namespace hidet::ir
