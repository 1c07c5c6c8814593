// streams_test.cpp - kernels whose results are larger than the caches, which are stored past these: rows that begin at no multiple of a
// vector, at the CPU levels of this machine, on several threads. Every element is compared with a loop of the test's own.
#include <hidet/codegen/codegen.h>

#include "build/plan.h"
#include "build/split.h"
#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

constexpr int64_t kRows = 2049, kColumns = 4099;  // 32 MiB and a little
using Wanted = std::function<double(int64_t row, int64_t column)>;

float value_of(int64_t i) { return static_cast<float>(i * 37 % 1009) * 0.01F - 5; }

Tensor values(const Shape& shape) {
  Tensor t = zeros(shape);
  float* v = static_cast<float*>(t.data());
  for (int64_t i = 0; i < t.num_elements(); i++) v[i] = value_of(i);
  return t;
}

std::string texts_of(const FlowGraph& g, const graph::CpuTargetInfo& target) {
  const graph::Parts parts = graph::split(g);
  graph::KernelStore kernels(target);
  for (const graph::Group& group : graph::fuse(parts.run, g.output_tensors()))
    if (!group.is_view) (void)kernels.add(group);
  kernels.finish();
  std::string all;
  for (const graph::PlanKernel& k : kernels.kernels()) all += k.text;
  return all;
}

void expect_streamed(const Tensor& x, const Tensor& y, const std::vector<Tensor>& inputs,
                     const Wanted& want) {
  const FlowGraph graph = optimize(trace_from(y, {x}));
  const int threads = num_threads();
  for (const std::string& level : levels()) {
    const std::string text = texts_of(graph, {level, level == "x86-64-v4" ? 64 : 32});
    EXPECT_NE(text.find("hidet_store_cs_f32x"), std::string::npos) << text;
    EXPECT_NE(text.find("cleanup(hidet_store_fence)"), std::string::npos) << text;
    BuildModelOptions options;
    options.targets = {level};
    const CompiledModel model =
        CompiledModel::from_data(graph::build_model_data(graph, options, nullptr));
    set_num_threads(3);
    const Tensor got = model.run(inputs)[0];
    set_num_threads(threads);
    ASSERT_EQ(got.shape(), Shape({kRows, kColumns}));
    const float* at = static_cast<const float*>(got.data());
    int64_t wrong = 0;
    for (int64_t i = 0; i < kRows; i++)
      for (int64_t j = 0; j < kColumns; j++, at++) {
        const double w = want(i, j);
        if (std::fabs(*at - w) <= 1e-5 * (1 + std::fabs(w))) continue;
        if (wrong++ == 0)
          ADD_FAILURE() << level << " " << i << ", " << j << ": " << *at << ", not " << w;
      }
    EXPECT_EQ(wrong, 0) << level;
  }
}

TEST(Streams, InPlace) {
  const Tensor x = symbol({kRows, kColumns});
  expect_streamed(x, x * 2.0 + 1.0, {values({kRows, kColumns})},
                  [](int64_t i, int64_t j) { return value_of(i * kColumns + j) * 2.0 + 1; });
}

TEST(Streams, RowsThatBeginAnywhere) {
  const Tensor x = symbol({kRows, 1});
  expect_streamed(x, x * values({kColumns}), {values({kRows, 1})}, [](int64_t i, int64_t j) {
    return static_cast<double>(value_of(i)) * value_of(j);
  });
}

TEST(Streams, Transposed) {
  const Tensor x = symbol({kColumns, kRows});
  expect_streamed(x, ops::transpose(x, {1, 0}), {values({kColumns, kRows})},
                  [](int64_t i, int64_t j) { return value_of(j * kRows + i); });
}

TEST(Streams, ReadByTheNextKernelOnOtherThreads) {
  const Tensor x = symbol({kRows, kColumns}), y = ops::softmax(x);
  std::vector<double> share, most(kColumns, 0);
  for (int64_t i = 0; i < kRows; i++) {
    std::vector<double> e;
    double sum = 0;
    for (int64_t j = 0; j < kColumns; j++) {
      e.push_back(std::exp(static_cast<double>(value_of(i * kColumns + j))));
      sum += e.back();
    }
    for (int64_t j = 0; j < kColumns; j++) {
      double& top = most[static_cast<size_t>(j)];
      share.push_back(1000 * e[static_cast<size_t>(j)] / sum);
      top = std::max(top, share.back());
    }
  }
  expect_streamed(x, (y - ops::reduce_max(y, {0}, true)) * 1000.0, {values({kRows, kColumns})},
                  [&](int64_t i, int64_t j) {
                    return share[static_cast<size_t>(i * kColumns + j)] -
                           most[static_cast<size_t>(j)];
                  });
}

}  // namespace
}  // namespace hidet::test
