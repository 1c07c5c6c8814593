// emit_cuda_test.cpp - the CUDA text compiles for the oldest and the newest architecture, without a GPU.
#include <gtest/gtest.h>
#include <hidet/backends/cuda.h>
#include <hidet/codegen/codegen.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/primitives.h>

namespace hidet::testing {
namespace {

using namespace ir;

/// y[i] = f(x[i]) with 4 lanes a thread.
Module map_kernel(DType t, const std::function<Expr(Expr)>& f) {
  Function k;
  k.name = "map";
  k.kind = FuncKind::cuda_kernel;
  const VarRef x = make_var("x", Type::pointer(Type(t))), y = make_var("y", Type::pointer(Type(t))),
               v = make_var("v", Type(i32));
  k.params = {x, y};
  k.launch.grid = {make_int(4, Type(i32))};
  k.launch.block = {make_int(64, Type(i32))};
  const Expr thread = make_binary(
      BinaryOp::add,
      make_binary(BinaryOp::mul, make_prim("block_idx_x", {}, Type(i32)), make_int(64, Type(i32))),
      make_prim("thread_idx_x", {}, Type(i32)));
  const Expr at =
      make_binary(BinaryOp::add, make_binary(BinaryOp::mul, thread, make_int(4, Type(i32))), v);
  k.body = make_stmt<For>({}, v, make_int(0, Type(i32)), make_int(4, Type(i32)),
                          make_int(1, Type(i32)), LoopKind::vectorize, int64_t{1},
                          make_stmt<Store>({}, y, at, f(make_load(x, at))));
  Module m;
  m.name = "map";
  m.functions = {k};
  return m;
}

class Text : public ::testing::TestWithParam<const char*> {};

TEST_P(Text, CompilesForEveryDtype) {
  const auto f = [](Expr x) {
    const DType t = x->type.dtype();
    const Expr two = make_const(2, t);
    if (!t.is_float())
      return make_binary(BinaryOp::floormod,
                         make_binary(BinaryOp::div, make_binary(BinaryOp::max, x, two), x), two);
    return make_select(make_binary(BinaryOp::gt, x, two), call_math("exp", {x}),
                       make_binary(BinaryOp::min, make_binary(BinaryOp::mul, x, x), two));
  };
  for (const DType t : {f32, f64, f16, bf16, i8, u8, i32, i64, u32, u64}) {
    const Module lowered = run_passes(map_kernel(t, f), lowering(Target::cuda));
    const backends::CudaUnit unit{"map", codegen::emit_cuda(lowered),
                                  codegen::kernel_names(lowered)};
    const std::vector<uint8_t> code =
        backends::compile_cuda(std::span(&unit, 1), {.target = GetParam()});
    EXPECT_GT(code.size(), 500u) << t.name();
  }
}

/// The text of y[index] = x[index] for 4 lanes, with the promise that both begin at a multiple of 16 bytes or without.
std::string copy_text(const Expr& index, bool promised) {
  Module m = map_kernel(f32, [](Expr x) { return x; });
  Function& k = m.functions[0];
  std::vector<Stmt> body;
  for (const VarRef& p : k.params)
    if (promised)
      body.push_back(make_stmt<Evaluate>({}, make_prim("assume_aligned", {p}, Type(), {16})));
  body.push_back(make_stmt<Store>({}, k.params[1], index, make_load(k.params[0], index, 4)));
  k.body = make_seq(body);
  return codegen::emit_cuda(run_passes(m, lowering(Target::cuda)));
}

TEST(VectorAccess, IsCheckedWhereTheAddressIsNotKnown) {
  const Expr thread = make_prim("thread_idx_x", {}, Type(i32));
  const auto plus = [](const Expr& a, int64_t b) {
    return make_binary(BinaryOp::add, a, make_int(b, Type(i32)));
  };
  const auto times = [](const Expr& a, int64_t b) {
    return make_binary(BinaryOp::mul, a, make_int(b, Type(i32)));
  };
  const auto checked = [](const std::string& text) { return text.find("% 16 == 0") != text.npos; };
  EXPECT_FALSE(checked(copy_text(times(thread, 4), true)));
  EXPECT_FALSE(checked(copy_text(plus(times(thread, 12), 8), true)));
  EXPECT_TRUE(checked(copy_text(times(thread, 4), false)));
  EXPECT_TRUE(checked(copy_text(times(thread, 6), true)));
  EXPECT_TRUE(checked(copy_text(plus(times(thread, 4), 2), true)));
  EXPECT_TRUE(checked(copy_text(thread, true)));
}

// Vectors of any width compile, and a condition for all lanes keeps the other side's memory untouched.
TEST(VectorAccess, OfAnyWidthAndOnlyOfTheSideTaken) {
  for (const DType t : {f16, f32, i64, u8, boolean})
    for (const int lanes : {2, 3, 5, 12, 64}) {
      Module m = map_kernel(t, [](Expr x) { return x; });
      Function& k = m.functions[0];
      const Expr zero = make_int(0, Type(i32)),
                 inside = make_binary(BinaryOp::lt, make_prim("thread_idx_x", {}, Type(i32)),
                                      make_int(9, Type(i32)));
      const Expr read = make_load(k.params[0], zero, lanes);
      k.body =
          make_stmt<Store>({}, k.params[1], zero,
                           make_select(inside, read, make_cast(make_const(0, t), read->type), {}));
      const Module lowered = run_passes(m, lowering(Target::cuda));
      const backends::CudaUnit unit{"map", codegen::emit_cuda(lowered),
                                    codegen::kernel_names(lowered)};
      EXPECT_NE(unit.source.find("9 ? hidet_load<"), std::string::npos) << unit.source;
      EXPECT_GT(backends::compile_cuda(std::span(&unit, 1), {.target = "sm_80"}).size(), 500u)
          << lanes << " of " << t.name();
    }
}

// Signed overflow has a meaning: the compiler may not conclude that a + 1 > a, -a > 0 or a << 1 >> 1 == a.
TEST(Overflow, OfSignedArithmeticWraps) {
  for (const DType t : {i32, i64}) {
    const VarRef y = make_var("y", Type::pointer(Type(boolean))), a = make_var("a", Type(t));
    const Expr one = make_int(1, Type(t)), two = make_int(2, Type(t)), zero = make_int(0, Type(t));
    const auto op = [](BinaryOp o, const Expr& x, const Expr& z) { return make_binary(o, x, z); };
    const Expr negative = op(BinaryOp::lt, a, zero);
    const Expr tests[] = {
        op(BinaryOp::gt, op(BinaryOp::add, a, one), a),
        op(BinaryOp::lt, op(BinaryOp::sub, a, one), a),
        op(BinaryOp::eq, op(BinaryOp::div, op(BinaryOp::mul, a, two), two), a),
        op(BinaryOp::logical_and, negative, op(BinaryOp::lt, make_unary(UnaryOp::neg, a), zero)),
        op(BinaryOp::eq, op(BinaryOp::shr, op(BinaryOp::shl, a, one), one), a)};
    for (const Expr& test : tests) {
      Function k;
      k.name = "k";
      k.kind = FuncKind::cuda_kernel;
      k.params = {y, a};
      k.launch.grid = k.launch.block = {make_int(1, Type(i32))};
      k.body = make_stmt<Store>({}, y, make_int(0, Type(i32)), test);
      Module m;
      m.name = "m";
      m.functions = {k};
      const Module lowered = run_passes(m, lowering(Target::cuda));
      const backends::CudaUnit unit{"k", codegen::emit_cuda(lowered),
                                    codegen::kernel_names(lowered)};
      const std::vector<uint8_t> ptx =
          backends::compile_cuda(std::span(&unit, 1), {.target = "ptx"});
      EXPECT_NE(std::string(ptx.begin(), ptx.end()).find("[k_param_1]"), std::string::npos)
          << "decided when compiling:\n"
          << print(test);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Text, ::testing::Values("sm_80", "sm_90a"));

}  // namespace
}  // namespace hidet::testing
