// reports_test.cpp - rows of tests/cases/bug_reports.md about GPU kernels that outgrow the device, in the simulator and by the launch
// sizes of what is scheduled.
#include <gtest/gtest.h>
#include <hidet/ir/limits.h>

#include <cmath>

#include "build/simulated.h"
#include "graph/core/samples.h"

namespace hidet::test {
namespace {
using namespace graph;

Tensor input(const std::vector<DimExpr>& shape, const std::string& name, DType dtype = f32) {
  return symbol(shape, dtype, Device("cuda"), name);
}

/// Blocks in y and z are few, and constant: what grows is in x. Kernels take few parameters.
void expect_launchable(const Simulated& s) {
  for (const PlanKernel& k : s.kernels())
    for (const ir::Function& f : k.recorded.functions) {
      if (f.kind != ir::FuncKind::cuda_kernel) continue;
      for (size_t axis = 1; axis < f.launch.grid.size(); axis++) {
        int64_t blocks = 0;
        EXPECT_TRUE(ir::is_const_int(f.launch.grid[axis], &blocks)) << k.function;
        EXPECT_LE(blocks, ir::kMostGrid[axis]) << k.function;
      }
      size_t bytes = 0;
      for (const ir::VarRef& p : f.params)
        bytes += p->type.is_scalar() ? p->type.dtype().bytes() : 8;
      EXPECT_LE(bytes, 4096u) << k.function;
    }
}

// More than 65,535 rows or batches, known and at run time.
TEST(Reports, Row37MoreRowsThanAGridHasInY) {
  for (const DimExpr& n : {DimExpr(65537), DimExpr("n")}) {
    const Tensor a = input({n, 1, 2}, "a"), b = input({n, 2, 1}, "b");
    expect_launchable(Simulated(trace_from({ops::matmul(a, b)}, {a, b})));
    const Tensor x = input({n, 3}, "x"), image = input({n, 1, 2, 2}, "image");
    expect_launchable(Simulated(trace_from({ops::softmax(x)}, {x})));
    expect_launchable(Simulated(trace_from({ops::avg_pool2d(image, {2, 2}, {1, 1})}, {image})));
    const Tensor w = input({n, 5, 4}, "w"), v = input({4, 7}, "v");
    expect_launchable(Simulated(trace_from({ops::matmul(w, v)}, {w, v})));
  }
}

// f16 products of sizes that no tile divides, K = 0 among them: exact integers.
TEST(Reports, Row39ProductsThatNoTileDivides) {
  struct Row {
    int64_t k;
    double first, last, sum;
  };
  const Row rows[] = {{0, 0, 0, 0},     {1, 6, -1, 15}, {24, -4, 7, 10},
                      {31, -1, 2, -12}, {40, 6, -7, 2}, {129, -4, 7, 10}};
  const Tensor da = input({17, "k"}, "a", f16), db = input({"k", 33}, "b", f16);
  const Simulated dynamic(trace_from({ops::matmul(da, db)}, {da, db}));
  for (const Row& row : rows) {
    std::vector<double> a, b;
    for (int64_t i = 0; i < 17; i++)
      for (int64_t j = 0; j < row.k; j++) a.push_back(static_cast<double>((i + j) % 5 - 2));
    for (int64_t i = 0; i < row.k; i++)
      for (int64_t j = 0; j < 33; j++) b.push_back(static_cast<double>((2 * i + j) % 7 - 3));
    const Tensor ta = ops::cast(from_vector<double>(a, {17, row.k}), f16),
                 tb = ops::cast(from_vector<double>(b, {row.k, 33}), f16);
    const Tensor sa = input({17, row.k}, "a", f16), sb = input({row.k, 33}, "b", f16);
    const Simulated fixed(trace_from({ops::matmul(sa, sb)}, {sa, sb}));
    for (const Simulated* s : {&fixed, &dynamic}) {
      const std::vector<double> c = s->run({ta, tb}, {.symbols = {{"k", row.k}}})[0].to_doubles();
      double sum = 0;
      for (const double v : c) sum += v;
      EXPECT_EQ(c[0], row.first) << row.k;
      EXPECT_EQ(c[16 * 33 + 32], row.last) << row.k;
      EXPECT_EQ(sum, row.sum) << row.k;
    }
  }
}

// Rows longer than shared memory and registers hold.
TEST(Reports, Row41LongRows) {
  const Tensor x = input({2, 65536}, "x");
  std::vector<float> in(2 * 65536, 0.f);
  in[65536 + 40000] = 50;
  const Simulated softmax(trace_from({ops::softmax(x)}, {x}));
  const std::vector<float> y =
      softmax.run({from_vector<float>(in, {2, 65536})})[0].to_vector<float>();
  for (int i = 0; i < 65536; i += 997) {
    EXPECT_EQ(y[static_cast<size_t>(i)], std::ldexp(1.f, -16));
    EXPECT_NEAR(y[static_cast<size_t>(65536 + i)], std::exp(-50.0), 1e-26);
  }
  EXPECT_EQ(y[65536 + 40000], 1.f);
  const Tensor h = input({1, 102400}, "h", f16);
  const Simulated halves(trace_from({ops::softmax(h)}, {h}));
  const std::vector<double> flat = halves.run({zeros({1, 102400}, f16)})[0].to_doubles();
  for (size_t i = 0; i < flat.size(); i += 1009) EXPECT_NEAR(flat[i], 1.0 / 102400, 6e-8);
  const Tensor n = input({1, 65536}, "n"), scale = input({65536}, "scale"),
               shift = input({65536}, "shift");
  const Simulated norm(trace_from({ops::layer_norm(n, scale, shift)}, {n, scale, shift}));
  std::vector<float> values(65536);
  for (size_t i = 0; i < values.size(); i++) values[i] = i % 2 ? 1.f : -1.f;
  const std::vector<float> normal =
      norm.run({from_vector<float>(values, {1, 65536}), full({65536}, 2.0), full({65536}, 0.5)})[0]
          .to_vector<float>();
  for (size_t i = 0; i < normal.size(); i += 991) EXPECT_NEAR(normal[i], i % 2 ? 2.5 : -1.5, 1e-4);
}

// The sum and the concatenation of 600 inputs: no kernel takes more parameters than a launch may have.
TEST(Reports, Row43ManyInputs) {
  constexpr int kInputs = 600;
  std::vector<Tensor> symbols, values;
  for (int i = 0; i < kInputs; i++) {
    symbols.push_back(input({1}, "x" + std::to_string(i)));
    values.push_back(full({1}, i));
  }
  Tensor sum = symbols[0];
  for (int i = 1; i < kInputs; i++) sum = ops::add(sum, symbols[static_cast<size_t>(i)]);
  const Tensor all = ops::concat(symbols, 0);
  const Simulated both(trace_from({sum, all}, symbols));
  expect_launchable(both);
  const std::vector<Tensor> got = both.run(values);
  EXPECT_EQ(got[0].to_vector<float>()[0], 179700);
  const std::vector<float> order = got[1].to_vector<float>();
  for (int i = 0; i < kInputs; i++) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace hidet::test
