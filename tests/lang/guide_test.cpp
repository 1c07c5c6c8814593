// The programs of docs/script.md: the blocks there are the functions of guide.h, word for word, and run.
#include <gtest/gtest.h>
#include <hidet/backends/cuda.h>
#include <hidet/lang.h>
#include <hidet/runtime/tensor.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "guide.h"
#include "guide_matmul.h"
#include "guide_matmul_hopper.h"

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Guide, BlocksAreTheFunctionsOfTheHeader) {
  const std::filesystem::path root = HIDET_SOURCE_DIR;
  std::string code;
  for (const char* header : {"guide.h", "guide_matmul.h", "guide_matmul_hopper.h"})
    code += text_of(root / "tests/lang" / header);
  const std::string guide = text_of(root / "docs/script.md");
  ASSERT_FALSE(code.empty());
  int blocks = 0;
  for (size_t at = guide.find("```cpp\n"); at != std::string::npos;
       at = guide.find("```cpp\n", at + 1)) {
    const size_t begin = at + 7;
    const std::string block = guide.substr(begin, guide.find("```", begin) - begin);
    if (block.find("inline ScriptModule") == std::string::npos) continue;
    EXPECT_NE(code.find(block), std::string::npos) << "not in guide.h:\n" << block;
    blocks++;
  }
  EXPECT_EQ(blocks, 11);
}

TEST(Guide, ReportOfTheSimulator) {
  const hidet::Tensor x = hidet::randn({64}, hidet::f32, {}, 1);
  const std::vector<float> before = x.to_vector<float>();
  reverse(true).simulate("launch", x);
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(before.rbegin(), before.rend()));
  try {
    reverse(false).simulate("launch", x);
    FAIL() << "no report";
  } catch (const hidet::Error& e) {
    const std::filesystem::path root = HIDET_SOURCE_DIR;
    EXPECT_NE(text_of(root / "docs/script.md").find(std::string("\n") + e.what() + "\n"),
              std::string::npos)
        << e.what();
  }
}

TEST(Guide, Hello) { hello().build()(2); }

TEST(Guide, VectorAdd) {
  const hidet::Tensor a = hidet::from_vector<float>({1, 2, 3}, {3}),
                      b = hidet::from_vector<float>({10, 20, 30}, {3});
  hidet::Tensor c = hidet::zeros({3}, hidet::f32);
  vector_add().build()(a, b, c, 3);
  EXPECT_EQ(c.to_vector<float>(), (std::vector<float>{11, 22, 33}));
}

TEST(Guide, SumOfSquares) {
  EXPECT_EQ(sum_of_squares().build()(hidet::from_vector<float>({1, 2, 3}, {3}), 3).number(), 14);
}

TEST(Guide, Softmax) {
  const std::vector<float> in = {0, 1, 2, -1, -1, -1};
  hidet::Tensor y = hidet::zeros({2, 3}, hidet::f32);
  softmax(2, 3).build()(hidet::from_vector<float>(in, {2, 3}), y);
  const std::vector<float> out = y.to_vector<float>();
  const double sum = 1 + std::exp(1.0) + std::exp(2.0);
  for (int j = 0; j < 3; j++) {
    EXPECT_NEAR(out[j], std::exp(j) / sum, 1e-6);
    EXPECT_NEAR(out[3 + j], 1.0 / 3, 1e-6);
  }
}

TEST(Guide, TunedSum) {
  const hidet::CompiledModule built = tuned_sum().build();
  ASSERT_EQ(built.candidates().size(), 6u);
  const hidet::Tensor a = hidet::randn({4096}, hidet::f32, {}, 5), b = hidet::full({4096}, 1);
  const hidet::TuneReport report = built.tune({.budget = 5, .rounds = 2}, a, b, 4096);
  EXPECT_EQ(built.candidate(a, b, 4096), report.best);
  built(a, b, 4096);
  for (int i = 0; i < 4096; i++)
    ASSERT_EQ(b.data<float>()[i], 1 + a.data<float>()[i]) << report.best;
}

TEST(Guide, CudaProgramsCompile) {
  ASSERT_FALSE(hidet::backends::cuda_compiler_identity().empty()) << "no CUDA compiler";
  EXPECT_FALSE(vector_add_cuda().build({.cuda_arch = "sm_80"}).data().images.empty());
  EXPECT_FALSE(matmul(45, 37, 19).build({.cuda_arch = "sm_80"}).data().images.empty());
  EXPECT_FALSE(softmax_cuda(1024).build({.cuda_arch = "sm_80"}).data().images.empty());
  EXPECT_FALSE(tensor_core_matmul({}).build({.cuda_arch = "sm_80"}).data().images.empty());
  EXPECT_THROW((void)hopper_matmul({}).build({.cuda_arch = "sm_90"}), hidet::Error);
}

/// The assembler's words on a module for sm_90a.
std::string report_of(const ScriptModule& m, const std::string& compiler) {
  std::string report;
  (void)m.build(
      {.cuda_arch = "sm_90a", .cuda_compiler = compiler, .use_cache = false, .report = &report});
  return report;
}

TEST(Guide, HopperMatmulRunsItsProductsAsynchronously) {
  for (const char* compiler : {"nvrtc", "nvcc"}) {
    const std::string report = report_of(hopper_matmul({}), compiler);
    EXPECT_NE(report.find("registers"), std::string::npos) << compiler;
    for (const char* word : {"serialized", "injected"})
      EXPECT_EQ(report.find(word), std::string::npos) << report;
    EXPECT_NE(report.find(" 0 bytes spill stores"), std::string::npos) << report;
  }
}

/// Reads its sums while products run: the assembler waits after each.
ScriptModule serialized() {
  ScriptModule m("serialized");
  m.cuda_kernel("k", [](Function& f) {
    auto y = f.arg("y", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i32);
    f.grid_dim(1);
    f.block_dim(128);
    auto tile = shared("tile", hidet::f16, {64, 64}, swizzled_rows(hidet::f16, 128));
    auto acc = registers("acc", hidet::f32, {32});
    for (int e = 0; e < 32; e++) acc(e) = 0.f;
    auto d = let("d", wgmma_matrix(tile.ptr()));
    for (auto i : range(n)) {
      (void)i;
      wgmma_fence({acc});
      wgmma(acc, d, d, {.n = 64});
      y[threadIdx.x] = acc(0);
      wgmma_commit();
      wgmma_wait(0, {});
    }
    wgmma_wait(0, {acc});
    for (int e = 0; e < 32; e++) y[threadIdx.x * 32 + e] = acc(e);
  });
  return m;
}

TEST(Guide, SerializedProductsAreReported) {
  for (const char* compiler : {"nvrtc", "nvcc"})
    EXPECT_NE(report_of(serialized(), compiler).find("serialized"), std::string::npos) << compiler;
}

/// y = a b in f64, from values that are exact in f16.
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, int m,
                            int n, int k) {
  std::vector<double> c(static_cast<size_t>(m * n));
  for (int i = 0; i < m; i++)
    for (int p = 0; p < k; p++)
      for (int j = 0; j < n; j++) c[i * n + j] += a[i * k + p] * b[p * n + j];
  return c;
}

void check_tensor_cores(const Tiles& t, int m, int n, int k) {
  const hidet::Tensor a = hidet::randn({m, k}, hidet::f16, {}, 1),
                      b = hidet::randn({k, n}, hidet::f16, {}, 2),
                      c = hidet::zeros({m, n}, hidet::f16);
  tensor_core_matmul(t).simulate("launch", a, b, c, m, n, k);
  const std::vector<double> wanted = product(a.to_doubles(), b.to_doubles(), m, n, k),
                            got = c.to_doubles();
  for (size_t i = 0; i < got.size(); i++)
    EXPECT_NEAR(got[i], wanted[i], 1e-3 * (1 + std::fabs(wanted[i]))) << i;
}

TEST(Guide, TensorCoreMatmul) {
  check_tensor_cores({.m = 64, .n = 64, .warps_m = 2, .warps_n = 2}, 128, 192, 96);
  check_tensor_cores({.m = 64, .n = 64, .k = 64, .stages = 3, .warps_m = 1, .warps_n = 2}, 64, 128,
                     64);
}

void check_hopper(const HopperTiles& t, int m, int n, int k) {
  const hidet::Tensor a = hidet::randn({m, k}, hidet::f16, {}, 1),
                      b = hidet::randn({k, n}, hidet::f16, {}, 2),
                      c = hidet::zeros({m, n}, hidet::f16);
  hopper_matmul(t).simulate("launch", a, b, c, m, n, k);
  const std::vector<double> wanted = product(a.to_doubles(), b.to_doubles(), m, n, k),
                            got = c.to_doubles();
  for (size_t i = 0; i < got.size(); i++)
    EXPECT_NEAR(got[i], wanted[i], 1e-3 * (1 + std::fabs(wanted[i]))) << i;
}

TEST(Guide, HopperMatmul) {
  check_hopper({.n = 128, .stages = 3}, 256, 128, 320);
  check_hopper({.m = 64, .n = 64, .stages = 2}, 64, 128, 64);
}

TEST(Guide, TensorCoreMatmulRefusesOtherSizes) {
  const hidet::Tensor x = hidet::zeros({64, 64}, hidet::f16);
  EXPECT_THROW(tensor_core_matmul({}).simulate("launch", x, x, x, 64, 64, 64), hidet::Error);
}

TEST(Guide, CudaSoftmaxAndVectorAdd) {
  const hidet::Tensor x = hidet::randn({6, 256}, hidet::f32, {}, 3), y = hidet::zeros({6, 256});
  softmax_cuda(256).simulate("launch", x, y, 6);
  const std::vector<float> in = x.to_vector<float>(), out = y.to_vector<float>();
  for (int r = 0; r < 6; r++) {
    double sum = 0;
    for (int j = 0; j < 256; j++) sum += std::exp(double(in[r * 256 + j]));
    for (int j = 0; j < 256; j++)
      EXPECT_NEAR(out[r * 256 + j], std::exp(double(in[r * 256 + j])) / sum, 1e-6);
  }
  for (int n : {1, 4, 1025, 2047}) {
    const hidet::Tensor a = hidet::randn({n}, hidet::f32, {}, 4), c = hidet::zeros({n});
    vector_add_cuda().simulate("launch", a, a, c, n);
    for (int i = 0; i < n; i++) EXPECT_EQ(c.to_vector<float>()[i], 2 * a.to_vector<float>()[i]);
  }
}

}  // namespace
