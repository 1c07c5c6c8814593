// cuda_test.cpp - GPU kernels without a GPU: every operator's samples, and the templates at odd, zero and symbolic
// sizes with what is fused, in the simulator against the reference; each template compiles for sm_80 and sm_90.
#include <gmock/gmock.h>
#include <hidet/backends/cuda.h>
#include <hidet/graph/build.h>
#include <hidet/runtime/cuda.h>

#include "build/simulated.h"
#include "graph/core/samples.h"

namespace hidet::test {
namespace {
using namespace graph;

Tensor input(const std::vector<DimExpr>& shape, const std::string& name, DType dtype = f32) {
  return symbol(shape, dtype, Device("cuda"), name);
}

// --- every operator

class OnGpu : public testing::TestWithParam<std::string> {};

TEST_P(OnGpu, AgreesWithTheReference) {
  const OpDef& def = *operators().find(GetParam());
  const SymbolMap symbols{{"n", 3}};
  for (size_t number = 0; number < def.samples.size(); number++) {
    const OpSample& sample = def.samples[number];
    if (sample.inputs.empty()) continue;
    std::vector<Tensor> inputs, on_gpu, on_cpu;
    for (size_t i = 0; i < sample.inputs.size(); i++) {
      const TensorSpec& spec = sample.inputs[i];
      inputs.push_back(fill(spec, sample, symbols, i + 1));
      on_gpu.push_back(input(spec.shape, "in" + std::to_string(i), spec.dtype));
      on_cpu.push_back(symbol(spec.shape, spec.dtype, {}, "in" + std::to_string(i)));
    }
    const FlowGraph graph(on_gpu, apply(def.name, on_gpu, sample.attrs));
    if (def.compute({sample.inputs, sample.attrs}).opaque) {  // the script is for the CPU
      try {
        (void)Simulated(graph);
        FAIL() << def.name << " was not refused";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::unsupported) << e.what();
      }
      continue;
    }
    const std::vector<Tensor> expected =
        FlowGraph(on_cpu, apply(def.name, on_cpu, sample.attrs)).run(inputs);
    const std::vector<Tensor> got = Simulated(graph).run(inputs, {.symbols = symbols});
    for (size_t i = 0; i < got.size(); i++)
      expect_same(got[i], expected[i], def.name + " sample " + std::to_string(number));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const OpDef* def : operators().all()) out.push_back(def->name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Operators, OnGpu, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

// --- templates

struct Case {
  std::string name;
  std::vector<std::vector<DimExpr>> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> graph;
  std::vector<SymbolMap> sizes = {{}};
  size_t kernels = 1;
};

Tensor bias_relu(const Tensor& x, const Tensor& bias) { return ops::relu(ops::add(x, bias)); }
Tensor product(const std::vector<Tensor>& x) { return ops::matmul(x[0], x[1]); }
Tensor rows(const std::vector<Tensor>& x) { return ops::softmax(x[0]); }
Tensor normalized(const std::vector<Tensor>& x) { return ops::layer_norm(x[0], x[1], x[2]); }
auto conv(int64_t stride, int64_t pad) {
  return [=](const std::vector<Tensor>& x) {
    return ops::conv2d(x[0], x[1], {stride, stride}, {pad, pad, pad, pad});
  };
}

std::vector<Case> cases() {
  const std::vector<SymbolMap> some{{{"n", 0}}, {{"n", 1}}, {{"n", 37}}};
  return {
      // Vectors of 16 bytes, and single elements.
      {"elementwise_vectors", {{5, 24}, {24}}, [](const auto& x) { return bias_relu(x[0], x[1]); }},
      {"elementwise_odd", {{5, 7}, {7}}, [](const auto& x) { return bias_relu(x[0], x[1]); }},
      {"elementwise_symbolic",
       {{"n", 12}, {12}},
       [](const auto& x) { return bias_relu(x[0], x[1]); },
       some},
      {"transposed",
       {{6, 8}},
       [](const auto& x) { return ops::relu(ops::transpose(x[0], {1, 0})); }},
      // Rows: of a warp, several of a warp, of a block, longer than registers, of unknown length.
      {"rows_of_a_warp", {{5, 600}}, rows},
      {"short_rows", {{37, 12}}, rows},
      {"odd_rows", {{3, 37}}, rows},
      {"rows_of_a_block", {{2, 1500}}, rows},
      {"longest_kept_rows", {{1, 4099}}, rows},
      {"long_rows", {{1, 33000}}, rows},
      {"unknown_rows", {{3, "n"}}, rows, {{{"n", 0}}, {{"n", 1}}, {{"n", 300}}, {{"n", 1400}}}},
      {"unknown_count_of_rows", {{"n", 20}}, rows, some},
      {"rows_with_more",
       {{4, 3, 36}, {4, 3, 36}, {36}},
       [](const auto& x) { return ops::mul(ops::softmax(ops::add(x[0], x[1])), x[2]); }},
      {"layer_norm", {{3, 768}, {768}, {768}}, normalized},
      {"layer_norm_odd", {{5, 33}, {33}, {33}}, normalized},
      {"layer_norm_of_a_sum",
       {{3, 64}, {3, 64}, {64}, {64}},
       [](const auto& x) { return ops::layer_norm(ops::add(x[0], x[1]), x[2], x[3]); }},
      {"layer_norm_of_matrices",
       {{2, 6, 8}, {6, 8}, {6, 8}},
       [](const auto& x) { return ops::layer_norm(x[0], x[1], x[2], 1); }},
      {"layer_norm_symbolic", {{"n", 40}, {40}, {40}}, normalized, some},
      // Products: edges in all directions, batches, vectors and none, what is fused.
      {"product_odd", {{33, 19}, {19, 35}}, product},
      {"product_vectors", {{35, 40}, {40, 68}}, product},
      {"product_of_one_row", {{1, 40}, {40, 12}}, product},
      {"product_batches", {{2, 1, 5, 8}, {3, 8, 9}}, product},
      {"product_fused",
       {{34, 20}, {34, 20}, {20, 36}, {36}},
       [](const auto& x) { return bias_relu(ops::matmul(ops::add(x[0], x[1]), x[2]), x[3]); }},
      {"product_symbolic_rows", {{"n", 20}, {20, 8}}, product, some},
      {"product_symbolic_depth", {{3, "n"}, {"n", 5}}, product, some},
      {"product_symbolic_columns", {{3, 4}, {4, "n"}}, product, some},
      {"product_of_nothing", {{3, 0}, {0, 5}}, product},
      {"product_without_rows", {{0, 3}, {3, 5}}, product},
      // Convolutions.
      {"conv_point", {{2, 5, 4, 6}, {9, 5, 1, 1}}, conv(1, 0)},
      {"conv_point_odd", {{1, 8, 5, 5}, {8, 8, 1, 1}}, conv(1, 0)},
      {"conv_window", {{2, 3, 9, 8}, {10, 3, 3, 3}}, conv(1, 1)},
      {"conv_stride", {{1, 4, 11, 9}, {8, 4, 3, 3}}, conv(2, 1)},
      {"conv_stride_point", {{1, 4, 8, 8}, {12, 4, 1, 1}}, conv(2, 0)},
      {"conv_fused",
       {{2, 4, 6, 8}, {8, 4, 3, 3}, {8, 1, 1}, {2, 8, 6, 8}},
       [](const auto& x) { return ops::relu(ops::add(bias_relu(conv(1, 1)(x), x[2]), x[3])); }},
      {"conv_symbolic", {{"n", 3, 6, 6}, {8, 3, 3, 3}}, conv(1, 1), {{{"n", 0}}, {{"n", 2}}}},
  };
}

/// The cases of which every candidate runs, with other tiles, depths, rows of a warp and threads.
bool with_candidates(const Case& c) {
  for (const char* name : {"short_rows", "rows_of_a_block", "unknown_rows", "product_odd",
                           "product_vectors", "product_symbolic_rows", "conv_window", "conv_point"})
    if (c.name == name) return true;
  return false;
}

class Template : public testing::TestWithParam<Case> {};

TEST_P(Template, AgreesWithTheReference) {
  const Case& c = GetParam();
  std::vector<Tensor> on_gpu, on_cpu;
  for (size_t i = 0; i < c.inputs.size(); i++) {
    on_gpu.push_back(input(c.inputs[i], "x" + std::to_string(i)));
    on_cpu.push_back(symbol(c.inputs[i], f32, {}, "x" + std::to_string(i)));
  }
  const FlowGraph graph = trace_from({c.graph(on_gpu)}, on_gpu);
  Simulated simulated(graph, with_candidates(c) ? 2 : 0);
  EXPECT_EQ(simulated.kernels().size(), c.kernels);
  const size_t candidates = simulated.kernels()[0].data.candidates.size();
  EXPECT_EQ(candidates > 1, with_candidates(c));
  for (const SymbolMap& symbols : c.sizes) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < c.inputs.size(); i++)
      inputs.push_back(randn(shape_of(c.inputs[i], symbols), f32, {}, i + 5));
    const Tensor expected = trace_from({c.graph(on_cpu)}, on_cpu).run(inputs)[0];
    for (size_t i = 0; i < candidates; i++) {
      simulated.use_candidate(i);
      expect_same(simulated.run(inputs, {.symbols = symbols})[0], expected,
                  c.name + " " + simulated.kernels()[0].data.candidates[i].name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Template, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

class Compiled : public testing::TestWithParam<const char*> {};

TEST_P(Compiled, TemplatesForTheTarget) {
  std::vector<backends::CudaUnit> units;
  for (const Case& c : cases()) {
    const bool one_of_each = c.name == "elementwise_vectors" || c.name == "rows_with_more" ||
                             c.name == "unknown_rows" || c.name == "product_symbolic_rows" ||
                             c.name == "conv_fused";
    if (!one_of_each) continue;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < c.inputs.size(); i++)
      inputs.push_back(input(c.inputs[i], "x" + std::to_string(i)));
    const FlowGraph graph = trace_from({c.graph(inputs)}, inputs);
    const Simulated built(graph, with_candidates(c) ? 1 : 0);
    for (const PlanKernel& k : built.kernels()) {
      units.push_back({c.name, k.cuda_text, k.cuda_kernels});
      for (const PlanKernel& other : k.others)
        units.push_back({c.name, other.cuda_text, other.cuda_kernels});
    }
  }
  EXPECT_GT(backends::compile_cuda(units, {.target = GetParam()}).size(), 10000u);
}
INSTANTIATE_TEST_SUITE_P(Targets, Compiled, testing::Values("sm_80", "sm_90"));

// --- graphs on a GPU

TEST(GpuGraph, WeightsOfTheCpuBesideAGpuInput) {
  const Tensor x = input({2, 3}, "x"), w = randn({3, 4}, f32, {}, 1);
  Tensor y;
  {
    RecordScope record;
    y = ops::matmul(x, ops::add(w, w));
  }
  EXPECT_TRUE(y.device().is_cuda());
  const FlowGraph graph = trace_from({y}, {x});
  const Tensor in = randn({2, 3}, f32, {}, 2);
  expect_same(Simulated(graph).run({in})[0], ops::matmul(in, ops::add(w, w)), "matmul");
  EXPECT_THROW(ops::add(x, symbol({2, 3}, f32, {}, "on_the_cpu")), Error);
}

TEST(GpuGraph, TheTargetNativeIsTheGpuNotTheCpu) {
  const bool has_gpu = cuda_device_count() > 0;
  const Tensor x = input({4}, "x");
  const FlowGraph graph = trace_from({ops::relu(x)}, {x});
  for (const char* target : {"native", "x86-64-v3"}) {
    try {
      const ModelData data = build_model_data(graph, {.targets = {target}});
      EXPECT_TRUE(has_gpu && std::string(target) == "native") << target;
      EXPECT_EQ(data.programs.at(0).target.rfind("sm_", 0), 0u) << data.programs[0].target;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), std::string(target) == "native" ? ErrorCode::device : ErrorCode::usage);
    }
  }
}

TEST(GpuGraph, ASymbolOfLaunchSizesAlone) {
  const Tensor x = input({"n"}, "x");
  const FlowGraph graph = trace_from({ops::relu(x)}, {x});
  const ModelData data = build_model_data(graph, {.targets = {"ptx"}});
  ASSERT_EQ(data.programs.size(), 1u);
  EXPECT_EQ(data.programs[0].target, "ptx");
  EXPECT_EQ(data.programs[0].cuda_kernels.size(), 1u);
}

}  // namespace
}  // namespace hidet::test
