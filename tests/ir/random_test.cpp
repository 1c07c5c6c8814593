// 2,000 random expressions of integers and floats a run: interpreted as recorded, interpreted after simplify, and as compiled
// C, all three to the bit. The interpreter here is its own; the seed is printed, HIDET_TEST_SEED sets it.
#include <gtest/gtest.h>
#include <hidet/ir/primitives.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <unordered_map>

#include "codegen/harness.h"

namespace hidet::testing {
namespace {

using namespace ir;
using Wide = __int128;

/// A value: integers and booleans in `i` (the mathematical value), floats in `f`.
struct Cell {
  Wide i = 0;
  double f = 0;
};
using Cells = std::unordered_map<const Node*, Cell>;

Wide wrap(Wide v, DType t) {
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
      default: break;
    }
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
      case BinaryOp::min: return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b;
      default: return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b;
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

constexpr DType kTypes[] = {boolean, i8, i32, i64, u8, u32, u64, f32, f64};

class Generator {
 public:
  Generator(unsigned seed, std::vector<VarRef> variables)
      : random_(seed), variables_(std::move(variables)) {}
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
  Expr constant(DType t) {
    return t.is_float() ? make_float(real(), Type(t)) : make_int(integer(), Type(t));
  }
  Expr leaf(DType t) {
    if (pick(3) == 0) return constant(t);
    std::vector<VarRef> fit;
    for (const VarRef& v : variables_)
      if (v->type == Type(t)) fit.push_back(v);
    return fit[pick(fit.size())];
  }
  std::mt19937_64 random_;
  std::vector<VarRef> variables_;
};

/// A cell as 64 bits: the wrapped integer, or a double; all NaN alike.
uint64_t bits_of(const Cell& c, DType t) {
  if (!t.is_float()) return static_cast<uint64_t>(c.i);
  return std::isnan(c.f) ? 0x7ff8000000000000 : std::bit_cast<uint64_t>(c.f);
}

struct Batch {
  std::vector<VarRef> variables;
  std::vector<Expr> exprs;
};

/// launch(ints, floats, out): out[k] = the k-th expression as 64 bits; two variables of each type.
Module module_of(const Batch& batch) {
  const VarRef in = make_var("in", Type::pointer(Type(i64))),
               real = make_var("real", Type::pointer(Type(f64))),
               out = make_var("out", Type::pointer(Type(i64))),
               real_out = make_var("real_out", Type::pointer(Type(f64)));
  const auto at = [](size_t k) { return make_int(static_cast<int64_t>(k), Type(i64)); };
  std::vector<Stmt> body;
  for (size_t k = 0; k < batch.variables.size(); k++) {
    const VarRef& v = batch.variables[k];
    const Expr cell = v->type.dtype().is_float() ? make_load(real, at(k)) : make_load(in, at(k));
    body.push_back(make_stmt<DeclVar>({}, v, make_cast(cell, v->type)));
  }
  for (size_t k = 0; k < batch.exprs.size(); k++) {
    const bool is_float = batch.exprs[k]->type.dtype().is_float();
    body.push_back(make_stmt<Store>({}, is_float ? real_out : out, at(k),
                                    make_cast(batch.exprs[k], Type(is_float ? f64 : i64))));
  }
  Module m;
  m.name = "random";
  Function f;
  f.name = "launch";
  f.kind = FuncKind::public_;
  f.params = {in, real, out, real_out};
  f.body = make_seq(std::move(body));
  m.functions = {f};
  return m;
}

void check(const Batch& batch, Generator& generator) {
  const Module module = module_of(batch);
  verify(module);
  ASSERT_TRUE(equal(parse(print(module)), module));
  Loaded code(module, "x86-64-v3");
  const size_t n = batch.exprs.size();
  for (int round = 0; round < 12; round++) {
    Cells cells;
    std::vector<int64_t> in(batch.variables.size()), out(n);
    std::vector<double> real(batch.variables.size()), real_out(n);
    for (size_t k = 0; k < batch.variables.size(); k++) {
      const Cell c = generator.cell(batch.variables[k]->type.dtype());
      cells[batch.variables[k].get()] = c;
      in[k] = static_cast<int64_t>(c.i);
      real[k] = c.f;
    }
    ASSERT_EQ(code.call("launch", {value(in.data()), value(real.data()), value(out.data()),
                                   value(real_out.data())}),
              0);
    const Interpreter interpreted(cells);
    for (size_t k = 0; k < n; k++) {
      const Expr& e = batch.exprs[k];
      const DType t = e->type.dtype();
      const uint64_t expected = bits_of(interpreted(e), t);
      const Expr simple = simplify(e);
      EXPECT_EQ(bits_of(interpreted(simple), t), expected)
          << print(e) << "\nsimplified: " << print(simple);
      EXPECT_EQ(bits_of({out[k], real_out[k]}, t), expected) << "compiled: " << print(e);
      if (::testing::Test::HasFailure()) {
        for (const auto& [v, c] : cells)
          std::printf("%s: %s = %lld %.17g\n", static_cast<const Var*>(v)->name.c_str(),
                      static_cast<const Var*>(v)->type.text().c_str(), static_cast<long long>(c.i),
                      c.f);
        return;
      }
    }
  }
}

TEST(Random, ExpressionsInterpretedSimplifiedAndCompiled) {
  const char* given = std::getenv("HIDET_TEST_SEED");
  const unsigned seed =
      given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  std::printf("seed %u\n", seed);
  constexpr int kBatches = 10, kExprs = 200;
  for (int b = 0; b < kBatches && !HasFailure(); b++) {
    Batch batch;
    for (const DType t : kTypes)
      for (const char* name : {"a", "b"})
        batch.variables.push_back(make_var(name + std::string(t.name()), Type(t)));
    Generator generator(seed + static_cast<unsigned>(b), batch.variables);
    for (int k = 0; k < kExprs; k++)
      batch.exprs.push_back(generator.expr(kTypes[generator.pick(std::size(kTypes))], 4));
    check(batch, generator);
  }
}

}  // namespace
}  // namespace hidet::testing
