// check_levels.h - a graph compiled at each CPU level of this machine beside the reference evaluator.
#pragma once
#include <hidet/graph/build.h>
#include <hidet/runtime/compiled_model.h>
#include <hidet/runtime/cpu_level.h>
#include <hidet/runtime/thread_pool.h>

#include <cstring>

#include "graph/core/samples.h"

namespace hidet::test {

inline Tensor weight(const Shape& shape, uint64_t seed) { return randn(shape, f32, {}, seed); }

/// The levels that this machine runs.
inline std::vector<std::string> levels() {
  std::vector<std::string> out{"x86-64-v3"};
  for (const char* level : {"x86-64-v4", "x86-64-v4+amx"})
    if (CpuTarget::parse(level).runs_on(host_cpu_target())) out.push_back(level);
  return out;
}

/// Equal within the error of sums in another order (f16 and bf16: of one rounding); infinities and NaN in the same places.
inline void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape());
  ASSERT_EQ(got.dtype().name(), std::string(want.dtype().name()));
  const double error = want.dtype() == f32 ? 2e-4 : tolerance(want.dtype());
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  for (size_t i = 0; i < a.size(); i++) {
    if (std::isnan(b[i]) || std::isinf(b[i])) {
      ASSERT_TRUE(std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]) << what << " element " << i;
    } else {
      ASSERT_NEAR(a[i], b[i], error * (1 + std::fabs(b[i]))) << what << " element " << i;
    }
  }
}

/// `y` of `x` compiled at every level, on these inputs; the bits must not depend on the number of threads.
inline void check_on(const Tensor& x, const Tensor& y, const std::vector<Tensor>& inputs,
                     int kernels = -1, const std::vector<std::string>& on = levels()) {
  const FlowGraph graph = trace_from(y, {x}), optimized = optimize(graph);
  const int threads = num_threads();
  for (const std::string& level : on) {
    BuildModelOptions options;
    options.targets = {level};
    graph::BuildReport report;
    const CompiledModel model =
        CompiledModel::from_data(graph::build_model_data(optimized, options, &report));
    if (kernels >= 0) {
      EXPECT_EQ(report.kernels, kernels) << level;
    }
    for (const Tensor& input : inputs) {
      const Tensor want = graph(input);
      set_num_threads(3);
      const Tensor got = model.run({input})[0];
      set_num_threads(1);
      const Tensor alone = model.run({input})[0];
      set_num_threads(threads);
      expect_close(got, want, level);
      ASSERT_EQ(got.shape(), alone.shape());
      const size_t bytes = static_cast<size_t>(got.num_elements()) * got.dtype().bytes();
      if (bytes) {
        EXPECT_EQ(std::memcmp(got.data(), alone.data(), bytes), 0) << level << ": 3 threads and 1";
      }
    }
  }
}
inline void check(const Tensor& x, const Tensor& y, const std::vector<Shape>& shapes,
                  int kernels = -1, const std::vector<std::string>& on = levels()) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes) inputs.push_back(randn(shape, x.dtype(), {}, 3));
  check_on(x, y, inputs, kernels, on);
}

}  // namespace hidet::test
