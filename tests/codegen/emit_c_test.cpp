// emit_c_test.cpp - emitted C against the meaning of the IR: operators, casts, loops in vectors, parallel loops, asserts.
#include <gtest/gtest.h>
#include <hidet/ir/primitives.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "codegen/harness.h"

namespace hidet::testing {
namespace {

using namespace ir;

Module module_of(std::vector<Function> functions) {
  Module m;
  m.name = "test";
  m.functions = std::move(functions);
  return m;
}
Expr i64c(int64_t v) { return make_int(v, Type(i64)); }

/// y[i] = f(a[i], b[i]) for i < n, as loops of `how` with 16 lanes, or one by one.
Module binary_map(DType t, DType out, LoopKind how, const std::function<Expr(Expr, Expr)>& f) {
  Function fn;
  fn.name = "launch";
  fn.kind = FuncKind::public_;
  const VarRef a = make_var("a", Type::pointer(Type(t))), b = make_var("b", Type::pointer(Type(t)));
  const VarRef y = make_var("y", Type::pointer(Type(out))), n = make_var("n", Type(i64)),
               j = make_var("j", Type(i64)), v = make_var("v", Type(i64));
  fn.params = {a, b, y, n};
  const Expr at = make_binary(BinaryOp::add, j, v);
  const Stmt body = make_stmt<Store>({}, y, at, f(make_load(a, at), make_load(b, at)));
  const Stmt lanes = make_stmt<For>({}, v, i64c(0), i64c(16), i64c(1), how, int64_t{1}, body);
  fn.body = make_stmt<For>({}, j, i64c(0), n, i64c(16), LoopKind::serial, int64_t{1}, lanes);
  return module_of({fn});
}

class Loops : public ::testing::TestWithParam<LoopKind> {};

TEST_P(Loops, IntegerDivisionTruncatesAndNeverTraps) {
  const BinaryOp ops[] = {BinaryOp::div, BinaryOp::mod, BinaryOp::floordiv, BinaryOp::floormod};
  const int32_t low = std::numeric_limits<int32_t>::min();
  const std::vector<int32_t> a{-11, 11, -11, 11, low, 1, low, 7, -7, 0, 5, -5, 9, -9, 100, -100};
  const std::vector<int32_t> b{3, -3, -3, 3, -1, 0, 0, -1, 1, 5, 7, 7, 3, 3, 9, 9};
  const std::vector<std::vector<int32_t>> expected{
      {-3, -3, 3, 3, low, 0, 0, -7, -7, 0, 0, 0, 3, -3, 11, -11},
      {-2, 2, -2, 2, 0, 0, 0, 0, 0, 0, 5, -5, 0, 0, 1, -1},
      {-4, -4, 3, 3, low, 0, 0, -7, -7, 0, 0, -1, 3, -3, 11, -12},
      {1, -1, -2, 2, 0, 0, 0, 0, 0, 0, 5, 2, 0, 0, 1, 8}};
  for (size_t k = 0; k < 4; k++) {
    Loaded code(binary_map(i32, i32, GetParam(),
                           [&](Expr x, Expr y) { return make_binary(ops[k], x, y); }));
    std::vector<int32_t> y(16);
    ASSERT_EQ(code.call("launch",
                        {value(a.data()), value(b.data()), value(y.data()), value(int64_t{16})}),
              0);
    EXPECT_EQ(y, expected[k]) << info(ops[k]).name;
  }
}

TEST_P(Loops, MinMaxPropagateNaN) {
  const float nan = NAN, inf = INFINITY;
  const std::vector<float> a{nan, 1, 2, -inf, inf, nan, 0, -1, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<float> b{1, nan, 1, 5, 5, nan, -1, 0, 4, 3, 5, 7, 6, 8, 10, 9};
  for (const bool max : {true, false}) {
    Loaded code(binary_map(f32, f32, GetParam(), [&](Expr x, Expr y) {
      return make_binary(max ? BinaryOp::max : BinaryOp::min, x, y);
    }));
    std::vector<float> y(16);
    ASSERT_EQ(code.call("launch",
                        {value(a.data()), value(b.data()), value(y.data()), value(int64_t{16})}),
              0);
    for (size_t i = 0; i < 16; i++) {
      const bool is_nan = std::isnan(a[i]) || std::isnan(b[i]);
      if (is_nan) EXPECT_TRUE(std::isnan(y[i])) << i;
      else EXPECT_EQ(y[i], max ? std::max(a[i], b[i]) : std::min(a[i], b[i])) << i;
    }
  }
}

TEST_P(Loops, FloatToIntegerSaturates) {
  const std::vector<float> a{NAN,   INFINITY,     -INFINITY,     1e20f, -1e20f, 1.9f,
                             -1.9f, 2147483648.f, -2147483648.f, 0.f,   -0.f,   255.f,
                             256.f, -1.f,         127.5f,        128.f};
  Loaded to_i32(
      binary_map(f32, i32, GetParam(), [](Expr x, Expr) { return make_cast(x, Type(i32)); }));
  Loaded to_u8(
      binary_map(f32, u8, GetParam(), [](Expr x, Expr) { return make_cast(x, Type(u8)); }));
  std::vector<int32_t> y(16);
  std::vector<uint8_t> z(16);
  ASSERT_EQ(to_i32.call("launch",
                        {value(a.data()), value(a.data()), value(y.data()), value(int64_t{16})}),
            0);
  ASSERT_EQ(
      to_u8.call("launch", {value(a.data()), value(a.data()), value(z.data()), value(int64_t{16})}),
      0);
  const int32_t high = std::numeric_limits<int32_t>::max(),
                low = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(y, (std::vector<int32_t>{0, high, low, high, low, 1, -1, high, low, 0, 0, 255, 256, -1,
                                     127, 128}));
  EXPECT_EQ(z,
            (std::vector<uint8_t>{0, 255, 0, 255, 0, 1, 0, 255, 0, 0, 0, 255, 255, 0, 127, 128}));
}

TEST_P(Loops, NarrowIntegersWrap) {
  const std::vector<uint8_t> a{128, 200, 255, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
      b{128, 200, 255, 5, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  Loaded add(binary_map(u8, i32, GetParam(), [](Expr x, Expr y) {
    return make_cast(make_binary(BinaryOp::add, x, y), Type(i32));
  }));
  Loaded sub(binary_map(u8, i32, GetParam(), [](Expr x, Expr y) {
    return make_cast(make_binary(BinaryOp::sub, x, y), Type(i32));
  }));
  std::vector<int32_t> y(16), z(16);
  ASSERT_EQ(
      add.call("launch", {value(a.data()), value(b.data()), value(y.data()), value(int64_t{16})}),
      0);
  ASSERT_EQ(
      sub.call("launch", {value(a.data()), value(b.data()), value(z.data()), value(int64_t{16})}),
      0);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 144);
  EXPECT_EQ(y[2], 254);
  EXPECT_EQ(z[3], 254);
  EXPECT_EQ(z[4], 255);
}

TEST_P(Loops, BfloatRoundsAtEachOperator) {
  const auto f = [](Expr x, Expr y) {
    return make_binary(BinaryOp::sub, make_binary(BinaryOp::add, x, y), x);
  };
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  for (const DType t : {bf16, f16}) {
    const auto bits = [&](float v) { return t == f16 ? f32_to_f16(v) : f32_to_bf16(v); };
    const auto back = [&](uint16_t v) { return t == f16 ? f16_to_f32(v) : bf16_to_f32(v); };
    std::vector<uint16_t> a(16), b(16), y(16);
    for (size_t i = 0; i < 16; i++) a[i] = bits(normal(rng) * 100), b[i] = bits(normal(rng));
    Loaded code(binary_map(t, t, GetParam(), f));
    ASSERT_EQ(code.call("launch",
                        {value(a.data()), value(b.data()), value(y.data()), value(int64_t{16})}),
              0);
    for (size_t i = 0; i < 16; i++)
      EXPECT_EQ(y[i], bits(back(bits(back(a[i]) + back(b[i]))) - back(a[i])))
          << t.name() << " " << i;
  }
}

TEST_P(Loops, ScalarAndVectorMathGiveEqualBits) {
  std::mt19937 rng(11);
  std::uniform_real_distribution<float> uniform(-20, 20);
  std::vector<float> a(16), y(16), z(16);
  for (float& v : a) v = uniform(rng);
  a[3] = NAN, a[4] = INFINITY, a[5] = -INFINITY, a[6] = 0.f, a[7] = 1e-40f;
  for (const char* name : {"exp", "tanh", "erf", "sigmoid"}) {
    const auto f = [&](Expr x, Expr) { return call_math(name, {x}); };
    Loaded code(binary_map(f32, f32, GetParam(), f)),
        one(binary_map(f32, f32, LoopKind::serial, f));
    ASSERT_EQ(code.call("launch",
                        {value(a.data()), value(a.data()), value(y.data()), value(int64_t{16})}),
              0);
    ASSERT_EQ(
        one.call("launch", {value(a.data()), value(a.data()), value(z.data()), value(int64_t{16})}),
        0);
    for (size_t i = 0; i < 16; i++) {
      const double x = a[i];
      const double exact = std::string(name) == "exp"    ? std::exp(x)
                           : std::string(name) == "tanh" ? std::tanh(x)
                           : std::string(name) == "erf"  ? std::erf(x)
                                                         : 1 / (1 + std::exp(-x));
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(y[i]));
        continue;
      }
      EXPECT_EQ(y[i], z[i]) << name << "(" << x << ")";
      if (std::isinf(exact)) EXPECT_EQ(y[i], exact);
      else EXPECT_NEAR(y[i], exact, std::fabs(exact) * 5e-7 + 1e-44) << name << "(" << x << ")";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Loops,
                         ::testing::Values(LoopKind::serial, LoopKind::vectorize,
                                           LoopKind::unroll));

TEST(EmitC, SelectReadsOnlyTheSideTaken) {
  // y[i] = i < n ? x[i] : 0 over 32 places of an array of 20: the rest lies behind an unmapped page's edge.
  Function fn;
  fn.name = "launch";
  fn.kind = FuncKind::public_;
  const VarRef x = make_var("x", Type::pointer(Type(f32))),
               y = make_var("y", Type::pointer(Type(f32))), n = make_var("n", Type(i64)),
               v = make_var("v", Type(i64));
  fn.params = {x, y, n};
  const Expr value_of =
      make_select(make_binary(BinaryOp::lt, v, n), make_load(x, v), make_const(0, f32));
  fn.body = make_stmt<For>({}, v, i64c(0), i64c(32), i64c(1), LoopKind::vectorize, int64_t{1},
                           make_stmt<Store>({}, y, v, value_of));
  Loaded code(module_of({fn}));
  const long page = sysconf(_SC_PAGESIZE);
  char* pages =
      static_cast<char*>(mmap(nullptr, static_cast<size_t>(page) * 2, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(pages + page, static_cast<size_t>(page), PROT_NONE), 0);
  float* edge = reinterpret_cast<float*>(pages + page) - 20;
  for (int i = 0; i < 20; i++) edge[i] = static_cast<float>(i + 1);
  std::vector<float> out(32, -1);
  ASSERT_EQ(code.call("launch", {value(edge), value(out.data()), value(int64_t{20})}), 0);
  for (int i = 0; i < 32; i++) EXPECT_EQ(out[i], i < 20 ? i + 1 : 0) << i;
  munmap(pages, static_cast<size_t>(page) * 2);
}

TEST(EmitC, ParallelLoopsCaptureAndStep) {
  Function fn;
  fn.name = "launch";
  fn.kind = FuncKind::public_;
  const VarRef y = make_var("y", Type::pointer(Type(i64))), n = make_var("n", Type(i64)),
               scale = make_var("scale", Type(i64)), i = make_var("i", Type(i64));
  fn.params = {y, n};
  const Stmt body = make_stmt<Store>({}, y, i, make_binary(BinaryOp::mul, i, scale));
  fn.body =
      make_seq({make_stmt<DeclVar>({}, scale, make_binary(BinaryOp::add, n, i64c(1))),
                make_stmt<For>({}, i, i64c(3), n, i64c(2), LoopKind::parallel, int64_t{4}, body)});
  Loaded code(module_of({fn}));
  std::vector<int64_t> out(20, -1);
  ASSERT_EQ(code.call("launch", {value(out.data()), value(int64_t{20})}), 0);
  for (int64_t k = 0; k < 20; k++) EXPECT_EQ(out[k], k >= 3 && k % 2 == 1 ? k * 21 : -1) << k;
}

TEST(EmitC, AssertInACalleeReachesTheCaller) {
  Function inner;
  inner.name = "inner";
  const VarRef x = make_var("x", Type(i32));
  inner.params = {x};
  inner.returns = Type(i32);
  inner.body =
      make_seq({make_stmt<Assert>({}, make_binary(BinaryOp::gt, x, make_int(0, Type(i32))),
                                  "x must be \"positive\""),
                make_stmt<Return>({}, make_binary(BinaryOp::mul, x, make_int(2, Type(i32))))});
  Function fn;
  fn.name = "launch";
  fn.kind = FuncKind::public_;
  fn.returns = Type(i32);
  const VarRef p = make_var("int", Type(i32));  // a reserved word as a name
  fn.params = {p};
  fn.body = make_stmt<Return>(
      {}, make_binary(BinaryOp::add, make_call("inner", {p}, Type(i32)), make_int(1, Type(i32))));
  Loaded code(module_of({inner, fn}));
  ASSERT_EQ(code.call("launch", {value(int64_t{20})}), 0);
  EXPECT_EQ(static_cast<int32_t>(code.result.i), 41);
  EXPECT_EQ(code.call("launch", {value(int64_t{-1})}), 2);
  EXPECT_EQ(code.context.message, "x must be \"positive\"");
}

TEST(EmitC, ConstantsKeepTheirBits) {
  const std::vector<double> values{3.4028234663852886e38,
                                   -3.4028234663852886e38,
                                   1.401298464324817e-45,
                                   0.1,
                                   -0.0,
                                   INFINITY,
                                   -INFINITY};
  for (const double v : values) {
    Function fn;
    fn.name = "launch";
    fn.kind = FuncKind::public_;
    const VarRef y = make_var("y", Type::pointer(Type(f64)));
    fn.params = {y};
    fn.body = make_stmt<Store>({}, y, i64c(0), make_const(v, f64));
    Loaded code(module_of({fn}));
    double out = 7;
    ASSERT_EQ(code.call("launch", {value(&out)}), 0);
    EXPECT_EQ(std::memcmp(&out, &v, sizeof v), 0) << v;
  }
}

TEST(EmitC, EqualModulesGiveEqualText) {
  const auto make = [] {
    return binary_map(f32, f32, LoopKind::vectorize,
                      [](Expr x, Expr y) { return make_binary(BinaryOp::max, x, y); });
  };
  const auto emit = [&] { return codegen::emit_c(run_passes(make(), lowering(Target::cpu))); };
  EXPECT_EQ(emit(), emit());
}

}  // namespace
}  // namespace hidet::testing
