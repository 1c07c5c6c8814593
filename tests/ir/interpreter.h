// interpreter.h - evaluates scalar expressions in 128-bit integers and doubles: the meaning that design says, written apart
// from the folder, the simulator and the generators.
#pragma once
#include <gtest/gtest.h>
#include <hidet/ir/expr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

namespace hidet::testing {

using namespace ir;
using Wide = __int128;

/// A value: integers and booleans in `i` (the mathematical value), floats in `f`.
struct Cell {
  Wide i = 0;
  double f = 0;
};
using Cells = std::unordered_map<const Node*, Cell>;

inline Wide wrap(Wide v, DType t) {
  if (t.is_boolean()) return v != 0;
  const int bits = t.bits();
  const Wide mod = Wide{1} << bits;
  Wide r = v % mod;
  if (r < 0) r += mod;
  if (t.is_signed() && r >= mod / 2) r -= mod;
  return r;
}

class Interpreter {
 public:
  explicit Interpreter(const Cells& variables) : variables_(variables) {}

  Cell operator()(const Expr& e) const {
    const DType t = e->type.dtype();
    switch (e->kind) {
      case Kind::IntImm: {
        const int64_t v = as<IntImm>(e)->value;
        return {t == u64 ? Wide{static_cast<uint64_t>(v)} : Wide{v}, 0};
      }
      case Kind::FloatImm: return {0, as<FloatImm>(e)->value};
      case Kind::Var: return variables_.at(e.get());
      case Kind::Unary: return unary(*as<Unary>(e));
      case Kind::Binary: return binary(*as<Binary>(e));
      case Kind::Select:
        return (*this)(as<Select>(e)->cond).i ? (*this)(as<Select>(e)->a)
                                              : (*this)(as<Select>(e)->b);
      case Kind::Cast: return cast((*this)(as<Cast>(e)->a), as<Cast>(e)->a->type.dtype(), t);
      default: return other(e);
    }
  }
  virtual ~Interpreter() = default;

 protected:
  /// Kinds that read memory or call: machine.h.
  virtual Cell other(const Expr& e) const {
    ADD_FAILURE() << "a " << kind_name(e->kind) << " in a random expression";
    return {};
  }

 private:
  static double rounded(double v, DType t) { return t == f32 ? static_cast<float>(v) : v; }
  Cell unary(const Unary& u) const {
    const Cell a = (*this)(u.a);
    const DType t = u.type.dtype();
    if (t.is_float()) return {0, -a.f};
    return {u.op == UnaryOp::neg       ? wrap(-a.i, t)
            : u.op == UnaryOp::bit_not ? wrap(-a.i - 1, t)
                                       : Wide{!a.i},
            0};
  }
  Cell binary(const Binary& b) const {
    const Cell x = (*this)(b.a);
    if (b.op == BinaryOp::logical_and && !x.i) return {0, 0};
    if (b.op == BinaryOp::logical_or && x.i) return {1, 0};
    const Cell y = (*this)(b.b);
    const DType t = b.a->type.dtype();
    if (t.is_float())
      return info(b.op).comparison ? Cell{compared(b.op, x.f, y.f), 0}
                                   : Cell{0, floats(b.op, x.f, y.f, t)};
    return info(b.op).comparison ? Cell{compared(b.op, x.i, y.i), 0}
                                 : Cell{wrap(integers(b.op, x.i, y.i, t), t), 0};
  }
  static Wide compared(BinaryOp op, auto a, auto b) {
    return op == BinaryOp::lt   ? a < b
           : op == BinaryOp::le ? a <= b
           : op == BinaryOp::gt ? a > b
           : op == BinaryOp::ge ? a >= b
           : op == BinaryOp::eq ? a == b
                                : a != b;
  }
  static double floats(BinaryOp op, double a, double b, DType t) {
    switch (op) {
      case BinaryOp::add:
        return rounded(a + b, t);  // of two floats exact or rounded alike in double
      case BinaryOp::sub: return rounded(a - b, t);
      case BinaryOp::mul: return rounded(a * b, t);
      case BinaryOp::div: return t == f32 ? static_cast<float>(a) / static_cast<float>(b) : a / b;
      case BinaryOp::min: return std::isnan(a) || std::isnan(b) ? NAN : b < a ? b : a;
      default: return std::isnan(a) || std::isnan(b) ? NAN : b > a ? b : a;
    }
  }
  static Wide integers(BinaryOp op, Wide a, Wide b, DType t) {
    const Wide floored = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
    switch (op) {
      case BinaryOp::add: return a + b;
      case BinaryOp::sub: return a - b;
      case BinaryOp::mul:
        return static_cast<Wide>(static_cast<unsigned __int128>(a) *
                                 static_cast<unsigned __int128>(b));
      case BinaryOp::div: return b == 0 ? 0 : a / b;
      case BinaryOp::mod: return b == 0 ? 0 : a % b;
      case BinaryOp::floordiv: return floored;
      case BinaryOp::floormod: return b == 0 ? 0 : a - floored * b;
      case BinaryOp::min: return std::min(a, b);
      case BinaryOp::max: return std::max(a, b);
      case BinaryOp::bit_and: return a & b;
      case BinaryOp::bit_or: return a | b;
      case BinaryOp::bit_xor: return a ^ b;
      case BinaryOp::shl:
        return b >= 0 && b < t.bits() ? wrap(a * (Wide{1} << static_cast<int>(b)), t) : 0;
      case BinaryOp::shr: return b >= 0 && b < t.bits() ? a >> static_cast<int>(b) : a < 0 ? -1 : 0;
      default: return b;  // && and || of the side that decides
    }
  }
  static Cell cast(const Cell& a, DType from, DType to) {
    if (from.is_float() && to.is_float()) return {0, rounded(a.f, to)};
    if (!from.is_float() && !to.is_float()) return {wrap(a.i, to), 0};
    if (to.is_float())
      return {0,
              to == f32 ? static_cast<double>(static_cast<float>(a.i)) : static_cast<double>(a.i)};
    if (to.is_boolean()) return {a.f != 0, 0};
    if (std::isnan(a.f)) return {};
    const Wide low = to.is_signed() ? -(Wide{1} << (to.bits() - 1)) : 0;
    const Wide high = (Wide{1} << (to.is_signed() ? to.bits() - 1 : to.bits())) - 1;
    if (a.f <= static_cast<double>(low)) return {low, 0};
    if (a.f >= std::ldexp(1.0, to.is_signed() ? to.bits() - 1 : to.bits())) return {high, 0};
    return {static_cast<Wide>(a.f), 0};
  }
  const Cells& variables_;
};

/// A cell as 64 bits: the wrapped integer, or a double; all NaN alike.
inline uint64_t bits_of(const Cell& c, DType t) {
  if (!t.is_float()) return static_cast<uint64_t>(c.i);
  return std::isnan(c.f) ? 0x7ff8000000000000 : std::bit_cast<uint64_t>(c.f);
}

}  // namespace hidet::testing
