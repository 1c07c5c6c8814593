// expr.h - expressions. Each node declares its fields once; the rest is derived (node.h).
// Threading: immutable; thread-safe.
#pragma once
#include <hidet/ir/layout.h>

#include <tuple>

namespace hidet::ir {

struct ExprNode : Node {
  Type type;

 protected:
  ExprNode(Kind k, Type t) : Node(k), type(std::move(t)) {}
};

/// Gives a node its kind.
template <Kind K, class Base>
struct NodeOf : Base {
  static constexpr Kind kKind = K;

 protected:
  template <class... Args>
  explicit NodeOf(Args&&... args) : Base(K, std::forward<Args>(args)...) {}
};

/// An integer or boolean constant; u64 as its bit pattern.
struct IntImm final : NodeOf<Kind::IntImm, ExprNode> {
  int64_t value;
  IntImm(int64_t v, Type t) : NodeOf(std::move(t)), value(v) {}
  static constexpr auto fields() { return std::tuple{&IntImm::value}; }
};

/// A floating-point constant of the node's dtype.
struct FloatImm final : NodeOf<Kind::FloatImm, ExprNode> {
  double value;
  FloatImm(double v, Type t) : NodeOf(std::move(t)), value(v) {}
  static constexpr auto fields() { return std::tuple{&FloatImm::value}; }
};

struct StringImm final : NodeOf<Kind::StringImm, ExprNode> {
  std::string value;
  explicit StringImm(std::string v) : NodeOf(Type::string()), value(std::move(v)) {}
  static constexpr auto fields() { return std::tuple{&StringImm::value}; }
};

/// A variable, known by identity; the name is a hint, made unique by the emitters.
struct Var final : NodeOf<Kind::Var, ExprNode> {
  std::string name;
  bool is_mutable;  ///< may be the target of Assign
  Var(std::string n, Type t, bool m = false)
      : NodeOf(std::move(t)), name(std::move(n)), is_mutable(m) {}
  static constexpr auto fields() { return std::tuple{&Var::name, &Var::is_mutable}; }
};
using VarRef = Ref<Var>;

/// A symbolic dimension of a graph, by name; i64. Lowering turns it into an explicit parameter.
struct DimSymbol final : NodeOf<Kind::DimSymbol, ExprNode> {
  std::string name;
  explicit DimSymbol(std::string n) : NodeOf(Type(i64)), name(std::move(n)) {}
  static constexpr auto fields() { return std::tuple{&DimSymbol::name}; }
};

enum class UnaryOp : uint8_t { neg, logical_not, bit_not };

/// Operators of two operands of one type. div and mod truncate as in C; x/0 and x%0 give 0,
/// INT_MIN/-1 wraps; floordiv and floormod round down. min and max propagate NaN. Integers wrap.
/// Comparisons and logical operators give boolean. add and sub also take (pointer, integer).
enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,
  mod,
  floordiv,
  floormod,
  min,
  max,
  pow,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  lt,
  le,
  gt,
  ge,
  eq,
  ne,
  logical_and,
  logical_or,
};
/// One row an operator; c is the C infix text or "" where a helper function is called.
struct BinaryOpInfo {
  const char* name;
  const char* c;
  int precedence;
  bool comparison;
  bool logical;
  bool commutative;
};
const BinaryOpInfo& info(BinaryOp op);
const char* name(UnaryOp op);

struct Unary final : NodeOf<Kind::Unary, ExprNode> {
  UnaryOp op;
  Expr a;
  Unary(UnaryOp o, Expr x, Type t) : NodeOf(std::move(t)), op(o), a(std::move(x)) {}
  static constexpr auto fields() { return std::tuple{&Unary::op, &Unary::a}; }
};

struct Binary final : NodeOf<Kind::Binary, ExprNode> {
  BinaryOp op;
  Expr a, b;
  Binary(BinaryOp o, Expr x, Expr y, Type t)
      : NodeOf(std::move(t)), op(o), a(std::move(x)), b(std::move(y)) {}
  static constexpr auto fields() { return std::tuple{&Binary::op, &Binary::a, &Binary::b}; }
};

/// cond ? a : b; evaluates only the side taken. cond is boolean (scalar, or a vector of the same lanes).
struct Select final : NodeOf<Kind::Select, ExprNode> {
  Expr cond, a, b;
  Select(Expr c, Expr x, Expr y, Type t)
      : NodeOf(std::move(t)), cond(std::move(c)), a(std::move(x)), b(std::move(y)) {}
  static constexpr auto fields() { return std::tuple{&Select::cond, &Select::a, &Select::b}; }
};

/// value: numeric conversion (int -> int wraps; float -> int saturates, NaN gives 0), also vectors.
/// bits: same size, bits kept. pointer: pointer to pointer.
enum class CastKind : uint8_t { value, bits, pointer };
struct Cast final : NodeOf<Kind::Cast, ExprNode> {
  CastKind how;
  Expr a;
  Cast(CastKind h, Expr x, Type t) : NodeOf(std::move(t)), how(h), a(std::move(x)) {}
  static constexpr auto fields() { return std::tuple{&Cast::how, &Cast::a}; }
};

/// Calls a function of the module, by name.
struct Call final : NodeOf<Kind::Call, ExprNode> {
  std::string callee;
  std::vector<Expr> args;
  Call(std::string f, std::vector<Expr> x, Type t)
      : NodeOf(std::move(t)), callee(std::move(f)), args(std::move(x)) {}
  static constexpr auto fields() { return std::tuple{&Call::callee, &Call::args}; }
};

/// A primitive: a row of the table in primitives.h. `attrs` are compile-time integers (e.g. an mma shape).
struct Prim final : NodeOf<Kind::Prim, ExprNode> {
  std::string name;
  std::vector<Expr> args;
  std::vector<int64_t> attrs;
  Prim(std::string n, std::vector<Expr> x, std::vector<int64_t> k, Type t)
      : NodeOf(std::move(t)), name(std::move(n)), args(std::move(x)), attrs(std::move(k)) {}
  static constexpr auto fields() { return std::tuple{&Prim::name, &Prim::args, &Prim::attrs}; }
};

/// base[index], where base is a pointer; a vector type reads `lanes` consecutive scalars (any alignment
/// that fits the dtype).
struct Load final : NodeOf<Kind::Load, ExprNode> {
  Expr base, index;
  Load(Expr p, Expr i, Type t) : NodeOf(std::move(t)), base(std::move(p)), index(std::move(i)) {}
  static constexpr auto fields() { return std::tuple{&Load::base, &Load::index}; }
};

/// tensor[indices]; guarded: 0 where an index is outside the shape. A vector type reads consecutive
/// elements along the last index.
struct Element final : NodeOf<Kind::Element, ExprNode> {
  Expr tensor;
  std::vector<Expr> indices;
  bool guarded;
  Element(Expr t, std::vector<Expr> i, bool g, Type type)
      : NodeOf(std::move(type)), tensor(std::move(t)), indices(std::move(i)), guarded(g) {}
  static constexpr auto fields() {
    return std::tuple{&Element::tensor, &Element::indices, &Element::guarded};
  }
};

/// Pointer to tensor[indices].
struct AddressOf final : NodeOf<Kind::AddressOf, ExprNode> {
  Expr tensor;
  std::vector<Expr> indices;
  AddressOf(Expr t, std::vector<Expr> i, Type type)
      : NodeOf(std::move(type)), tensor(std::move(t)), indices(std::move(i)) {}
  static constexpr auto fields() { return std::tuple{&AddressOf::tensor, &AddressOf::indices}; }
};

/// A vector from its lanes.
struct MakeVector final : NodeOf<Kind::MakeVector, ExprNode> {
  std::vector<Expr> lanes;
  MakeVector(std::vector<Expr> l, Type t) : NodeOf(std::move(t)), lanes(std::move(l)) {}
  static constexpr auto fields() { return std::tuple{&MakeVector::lanes}; }
};

/// A vector whose lanes are all `a`.
struct Broadcast final : NodeOf<Kind::Broadcast, ExprNode> {
  Expr a;
  Broadcast(Expr x, Type t) : NodeOf(std::move(t)), a(std::move(x)) {}
  static constexpr auto fields() { return std::tuple{&Broadcast::a}; }
};

/// One lane of a vector.
struct Lane final : NodeOf<Kind::Lane, ExprNode> {
  Expr vector, index;
  Lane(Expr v, Expr i, Type t) : NodeOf(std::move(t)), vector(std::move(v)), index(std::move(i)) {}
  static constexpr auto fields() { return std::tuple{&Lane::vector, &Lane::index}; }
};

enum class ReduceOp : uint8_t { sum, prod, max, min, all, any };
const char* name(ReduceOp op);

/// Task level only: the reduction of `value` over axes in [0, extent). Empty extents give the identity
/// (0, 1, -inf or the least integer, +inf or the largest, true, false).
struct Reduce final : NodeOf<Kind::Reduce, ExprNode> {
  ReduceOp op;
  std::vector<VarRef> axes;
  std::vector<Expr> extents;
  Expr value;
  Reduce(ReduceOp o, std::vector<VarRef> x, std::vector<Expr> n, Expr v, Type t)
      : NodeOf(std::move(t)),
        op(o),
        axes(std::move(x)),
        extents(std::move(n)),
        value(std::move(v)) {}
  static constexpr auto fields() {
    return std::tuple{&Reduce::op, &Reduce::axes, &Reduce::extents, &Reduce::value};
  }
};

/// Task level only: the first (or last) index in [0, extent) where `value` is largest or least; NaN wins.
struct ArgReduce final : NodeOf<Kind::ArgReduce, ExprNode> {
  bool is_max, last;
  VarRef axis;
  Expr extent, value;
  ArgReduce(bool m, bool l, VarRef x, Expr n, Expr v, Type t)
      : NodeOf(std::move(t)),
        is_max(m),
        last(l),
        axis(std::move(x)),
        extent(std::move(n)),
        value(std::move(v)) {}
  static constexpr auto fields() {
    return std::tuple{&ArgReduce::is_max, &ArgReduce::last, &ArgReduce::axis, &ArgReduce::extent,
                      &ArgReduce::value};
  }
};

}  // namespace hidet::ir

#include <hidet/ir/make.h>
