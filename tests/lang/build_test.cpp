// Scripts compiled and run: CPU modules against values computed here; CUDA modules compiled without a GPU.
#include <hidet/backends/cuda.h>
#include <hidet/runtime/tensor.h>

#include <cmath>

#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::HasSubstr;

TEST(Build, KindsOnTheCpu) {
  ScriptModule m("cpu_kinds");
  auto square = m.cpu_internal("square", [](Function& f) {
    auto x = f.arg("x", f32);
    f.returns(x * x);
  });
  auto kernel = m.cpu_kernel("square_all", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto y = f.arg("y", ptr(f32));
    auto n = f.arg("n", i32);
    for (auto i : parallel(n)) y[i] = square(x[i]);
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto y = f.arg("y", ptr(f32));
    auto n = f.arg("n", i32);
    kernel(x, y, n);
  });
  CompiledModule built = m.build();
  Tensor x = from_vector<float>({1, 2, 3, 4, 5}, {5}), y = zeros({5}, f32);
  built(x, y, 5);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 4, 9, 16, 25}));
  built["launch"](x, y, 0);
  EXPECT_THAT(built.source(), HasSubstr("void hidet_launch(float* "));
  EXPECT_THAT(built.source(), HasSubstr("// build_test.cpp:"));
}

TEST(Build, ResultsBranchesAndLoops) {
  ScriptModule m("numbers");
  m.public_func("collatz", [](Function& f) {
    auto n = f.arg("n", i64);
    auto v = var("v", i64, n);
    auto steps = var("steps", i32, 0);
    for (auto _ : loop_while(v != 1)) {
      if (auto w = when(v % 2 == 0)) v = v / 2;
      if (auto w = otherwise()) v = v * 3 + 1;
      steps += 1;
      if (auto w = when(steps >= 1000)) break_loop();
    }
    f.returns(steps);
  });
  m.public_func("safe", [](Function& f) {
    auto p = f.arg("p", ptr(f32));
    auto i = f.arg("i", i32);
    auto n = f.arg("n", i32);
    f.returns(select(i >= 0 && i < n, p[i], -1.f));
  });
  m.public_func("checked", [](Function& f) {
    auto n = f.arg("n", i32);
    assert_(n > 0, "n must be positive");
    f.returns(n / 2);
  });
  CompiledModule built = m.build();
  EXPECT_EQ(built["collatz"](27).integer(), 111);
  EXPECT_EQ(built["collatz"](1).integer(), 0);
  Tensor p = from_vector<float>({1, 2, 3}, {3});
  EXPECT_EQ(built["safe"](p, 2, 3).number(), 3);
  EXPECT_EQ(built["safe"](p, 1000000000, 3).number(), -1);
  EXPECT_EQ(built["checked"](7).integer(), 3);
  try {
    built["checked"](0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    EXPECT_THAT(e.what(), HasSubstr("n must be positive"));
  }
}

TEST(Build, TensorsGuardsAndMath) {
  constexpr int rows = 5, columns = 7;
  ScriptModule m("softmax");
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", tensor(f32, {rows, columns}));
    auto y = f.arg("y", tensor(f32, {rows, columns}, col_major()));
    for (auto i : parallel(rows)) {
      auto most = var("most", f32, x(i, 0));
      for (auto j : range(1, columns + 3))
        most = max(most, select(j < columns, x.read({i, j}), x(i, 0)));
      auto sum = var("sum", f32, 0.f);
      for (auto j : range(columns)) sum += exp(x(i, j) - most);
      for (auto j : range(columns + 2)) y.write({i, j}, exp(x.read({i, j}) - most) / sum);
    }
  });
  std::vector<float> in;
  for (int i = 0; i < rows * columns; i++) in.push_back(static_cast<float>((i * 37) % 11) - 5.f);
  Tensor x = from_vector<float>(in, {rows, columns}), y = zeros({columns, rows}, f32);
  m.build()(x, y);
  const std::vector<float> out = y.to_vector<float>();
  for (int i = 0; i < rows; i++) {
    double most = -1e30, sum = 0;
    for (int j = 0; j < columns; j++) most = std::fmax(most, in[i * columns + j]);
    for (int j = 0; j < columns; j++) sum += std::exp(in[i * columns + j] - most);
    for (int j = 0; j < columns; j++)
      EXPECT_NEAR(out[j * rows + i], std::exp(in[i * columns + j] - most) / sum, 1e-6)
          << i << ", " << j;
  }
}

TEST(Build, VectorsAndRegisters) {
  ScriptModule m("vectors");
  m.public_func("launch", [](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto y = f.arg("y", ptr(f32));
    auto v = let("v", load(x, 8));
    auto acc = registers("acc", f32, {2, 4});
    for (auto [i, j] : grid(2, 4)) acc(i, j) = cast(i * 4 + j, f32);
    store(y, v * 2.f + broadcast(x[8], 8));
    for (auto i : range(8)) y[8 + i] = acc(i / 4, i % 4) + lane(v, 3);
    for (auto i : vectorize(4)) y[16 + i] = x[i] * 3;
    for (auto i : unroll(4)) y[20 + i] = x[i] - 1;
    for (auto [i, j] : spatial(2, 2).repeat(1, 2).on(3)) y[24 + i * 4 + j] = 1.f;
  });
  std::vector<float> in, expected(32, 0.f);
  for (int i = 0; i < 9; i++) in.push_back(static_cast<float>(i) + 0.5f);
  for (int i = 0; i < 8; i++)
    expected[i] = in[i] * 2 + in[8], expected[8 + i] = static_cast<float>(i) + in[3];
  for (int i = 0; i < 4; i++) expected[16 + i] = in[i] * 3, expected[20 + i] = in[i] - 1;
  expected[24 + 4 + 2] = expected[24 + 4 + 3] =
      1;  // worker 3 is at (1, 1) of 2 x 2: row 1, columns 2 and 3
  Tensor x = from_vector<float>(in, {9}), y = zeros({32}, f32);
  m.build()(x, y);
  EXPECT_EQ(y.to_vector<float>(), expected);
}

// Bug 63: modulo on a loop index in plain, fused, vectorised and split loops.
TEST(Build, ModuloOfLoopIndices) {
  for (int form = 0; form < 4; form++) {
    ScriptModule m("modulo");
    m.public_func("launch", [&](Function& f) {
      auto b = f.arg("b", ptr(i32));
      auto c = f.arg("c", ptr(i32));
      if (form == 0)
        for (auto [i, j] : grid(4, 6)) c[i * 6 + j] = b[j % 4];
      if (form == 1)
        for (auto k : range(24)) c[k] = b[k % 6 % 4];
      if (form == 2)
        for (auto [i, o] : grid(4, 3))
          for (auto j : vectorize(2)) c[i * 6 + o * 2 + j] = b[(o * 2 + j) % 4];
      if (form == 3)
        for (auto [i, o, j] : grid(4, 2, 4))
          if (auto _ = when(o * 4 + j < 6)) c[i * 6 + o * 4 + j] = b[(o * 4 + j) % 4];
    });
    Tensor b = from_vector<int32_t>({10, 20, 30, 40}, {4}), c = zeros({24}, i32);
    m.build()(b, c);
    std::vector<int32_t> expected;
    for (int i = 0; i < 4; i++) expected.insert(expected.end(), {10, 20, 30, 40, 10, 20});
    EXPECT_EQ(c.to_vector<int32_t>(), expected) << form;
  }
}

// After the prefix of its export no name is a word of C.
TEST(Build, PublicFunctionsWithNamesOfC) {
  ScriptModule m("words");
  const std::vector<std::string> names = {"for",    "int",  "class",   "main",
                                          "memcpy", "NULL", "restrict"};
  for (const std::string& name : names)
    m.public_func(name, [](Function& f) {
      auto y = f.arg("int", ptr(hidet::i32));
      y[0] = y[0] + 1;
    });
  const CompiledModule built = m.build();
  const Tensor y = zeros({1}, hidet::i32);
  for (const std::string& name : names) built[name](y);
  EXPECT_EQ(y.to_vector<int32_t>()[0], static_cast<int32_t>(names.size()));
}

TEST(Build, ArgumentsAreChecked) {
  ScriptModule m("meta");
  m.public_func("launch", [](Function& f) {
    auto args = f.args("args", meta::types({i32, boolean, f32}));
    f.returns(select(args[1], cast(args[0], f32), args[2]));
  });
  CompiledModule built = m.build();
  EXPECT_EQ(built(1, true, 0.5f).number(), 1);
  EXPECT_EQ(built(1, false, 0.5).number(), 0.5);
  try {
    built(1, true);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("hidet_launch(int32_t args, bool args_1, float args_2)"));
  }
}

TEST(Build, ExternFunctions) {
  ScriptModule m("extern_use");
  auto add = m.extern_func("host_add", {i32, i32}, i32,
                           reinterpret_cast<void*>(+[](int32_t a, int32_t b) { return a + b; }));
  m.public_func("launch", [&](Function& f) { f.returns(add(f.arg("x", i32), 40)); });
  EXPECT_EQ(m.build()(2).integer(), 42);
}

TEST(Build, Globals) {
  ScriptModule m("globals");
  auto table = m.global_var("table", tensor(f32, {4}), {1, 2, 4, 8});
  m.public_func("launch", [&](Function& f) { f.returns(table(f.arg("i", i32))); });
  EXPECT_EQ(m.build()(3).number(), 8);
}

// --- CUDA modules: compiled for GPUs that this machine does not have

TEST(Build, CudaWithoutAGpu) {
  ASSERT_FALSE(backends::cuda_compiler_identity().empty()) << "no CUDA compiler";
  ScriptModule m("cuda_kinds");
  auto square = m.cuda_internal("square", [](Function& f) {
    auto x = f.arg("x", f32);
    f.returns(x * x);
  });
  auto kernel = m.cuda_kernel("square_all", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto y = f.arg("y", ptr(f32));
    auto n = f.arg("n", i32);
    f.grid_dim((n + 255) / 256);
    f.block_dim(256);
    auto first = dynamic_shared("first", f32, {256});
    auto second = dynamic_shared("second", f16, {256});
    auto i = let("i", blockIdx.x * 256 + threadIdx.x);
    first(threadIdx.x) = 0.f;
    second(threadIdx.x) = f16.bits() == 16 ? 1.0 : 0.0;
    syncthreads();
    if (auto _ = when(i < n))
      y[i] = square(x[i]) + first(threadIdx.x) * cast(second(threadIdx.x), f32);
    auto total = var("total", f32, y[0]);
    for (int offset = 16; offset > 0; offset /= 2) total += shfl_down(total, offset);
    if (auto _ = when(threadIdx.x == 0)) atomic_add(y, total);
    lang::printf("%d\n", i);
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto y = f.arg("y", ptr(f32));
    auto n = f.arg("n", i32);
    kernel(x, y, n);
  });
  CompiledModule built = m.build({.cuda_arch = "sm_90a"});
  EXPECT_THAT(built.source(), HasSubstr("__global__"));
  ASSERT_EQ(built.data().images.size(), 1u);
  EXPECT_EQ(built.data().images[0].target, "sm_90a");
  EXPECT_EQ(built.functions()[0].params[0].device.is_cuda(), true);
  // Two dynamic shared tensors do not share their bytes.
  EXPECT_THAT(built.source(), HasSubstr("hidet_dynamic_shared + 1024"));
}

}  // namespace
}  // namespace hidet::lang
