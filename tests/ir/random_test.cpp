// 2,000 random expressions of integers and floats a run: interpreted as recorded, interpreted after simplify, and as compiled
// C, all three to the bit. The interpreter here is its own; the seed is printed, HIDET_TEST_SEED sets it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "codegen/harness.h"
#include "ir/interpreter.h"

namespace hidet::testing {
namespace {

using namespace ir;
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
