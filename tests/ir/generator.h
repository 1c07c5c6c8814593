// generator.h - random expressions over given variables, and the seed of a run: HIDET_TEST_SEED, else a fixed one.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include "ir/interpreter.h"

namespace hidet::testing {

/// Printed, so that a failing run can be had again.
inline unsigned test_seed() {
  const char* given = std::getenv("HIDET_TEST_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 20261202;
  std::printf("seed %u (HIDET_TEST_SEED sets it)\n", seed);
  return seed;
}

inline constexpr DType kTypes[] = {boolean, i8, i32, i64, u8, u32, u64, f32, f64};

class Generator {
 public:
  Generator(unsigned seed, std::vector<VarRef> known)
      : variables(std::move(known)), random_(seed) {}
  std::vector<VarRef> variables;          ///< what leaves may name
  std::function<Expr(DType)> other_leaf;  ///< further leaves of a type; may give null
  size_t pick(size_t n) { return random_() % n; }

  Expr expr(DType t, int depth) {
    if (depth == 0 || pick(8) == 0) return leaf(t);
    if (pick(6) == 0)
      return make_select(expr(boolean, depth - 1), expr(t, depth - 1), expr(t, depth - 1));
    if (pick(6) == 0) return make_cast(expr(kTypes[pick(std::size(kTypes))], depth - 1), Type(t));
    if (t.is_boolean()) return boolean_expr(depth);
    if (pick(8) == 0) {
      const UnaryOp op = t.is_integer() && pick(2) ? UnaryOp::bit_not : UnaryOp::neg;
      return make_unary(op, expr(t, depth - 1));
    }
    static constexpr BinaryOp ops[] = {
        BinaryOp::add, BinaryOp::sub,     BinaryOp::mul,      BinaryOp::div,      BinaryOp::min,
        BinaryOp::max, BinaryOp::mod,     BinaryOp::floordiv, BinaryOp::floormod, BinaryOp::shl,
        BinaryOp::shr, BinaryOp::bit_and, BinaryOp::bit_or,   BinaryOp::bit_xor};
    const BinaryOp op = ops[pick(t.is_float() ? 6 : std::size(ops))];
    return node(op, expr(t, depth - 1), pick(3) ? expr(t, depth - 1) : constant(t));
  }
  /// Values with many near the ends of the ranges.
  int64_t integer() {
    static constexpr int64_t edges[] = {
        0, 1, 2, 3, 7, 8, 16, 31, 63, 127, 255, 1 << 16, INT32_MAX, int64_t{1} << 32, INT64_MAX};
    int64_t v = edges[pick(std::size(edges))];
    if (pick(3) == 0) v = static_cast<int64_t>(random_());
    v = static_cast<int64_t>(static_cast<uint64_t>(v) + pick(3) - 1);
    return pick(2) ? v : static_cast<int64_t>(0 - static_cast<uint64_t>(v));
  }
  double real() {
    static const double edges[] = {
        0.0,   -0.0, 1.0,      -1.0,      0.5, 1.5, 2147483648.0, 9223372036854775808.0,
        1e-40, 3e38, HUGE_VAL, -HUGE_VAL, NAN};
    if (pick(2)) return edges[pick(std::size(edges))];
    return std::ldexp(static_cast<double>(static_cast<int64_t>(random_())),
                      -static_cast<int>(pick(70)));
  }
  Cell cell(DType t) {
    if (t.is_float()) return {0, t == f32 ? static_cast<float>(real()) : real()};
    return {wrap(integer(), t), 0};
  }

  Expr constant(DType t) {
    return t.is_float() ? make_float(real(), Type(t)) : make_int(integer(), Type(t));
  }

 private:
  /// Sometimes a node that the makers would have folded, so that the passes meet it.
  Expr node(BinaryOp op, const Expr& a, const Expr& b) {
    if (pick(2)) return make_binary(op, a, b);
    return Expr(new Binary(op, a, b, info(op).comparison ? Type(boolean) : a->type));
  }
  Expr boolean_expr(int depth) {
    if (pick(4) == 0) return make_unary(UnaryOp::logical_not, expr(boolean, depth - 1));
    if (pick(3) == 0)
      return node(pick(2) ? BinaryOp::logical_and : BinaryOp::logical_or, expr(boolean, depth - 1),
                  expr(boolean, depth - 1));
    const DType of = kTypes[1 + pick(std::size(kTypes) - 1)];
    return node(static_cast<BinaryOp>(static_cast<int>(BinaryOp::lt) + static_cast<int>(pick(6))),
                expr(of, depth - 1), expr(of, depth - 1));
  }
  Expr leaf(DType t) {
    if (pick(3) == 0) return constant(t);
    if (other_leaf && pick(3) == 0)
      if (Expr e = other_leaf(t)) return e;
    std::vector<VarRef> fit;
    for (const VarRef& v : variables)
      if (v->type == Type(t)) fit.push_back(v);
    return fit.empty() ? constant(t) : Expr(fit[pick(fit.size())]);
  }
  std::mt19937_64 random_;
};

}  // namespace hidet::testing
