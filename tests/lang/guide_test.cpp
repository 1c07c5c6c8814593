// The programs of docs/script.md: the blocks there are the functions here, word for word, and run.
#include <gtest/gtest.h>
#include <hidet/backends/cuda.h>
#include <hidet/lang.h>
#include <hidet/runtime/tensor.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace hidet::lang;

static ScriptModule hello() {
  ScriptModule m("hello");
  m.public_func("launch", [](Function& f) {
    auto n = f.arg("n", hidet::i32);
    for (auto i : range(n)) printf("hello from iteration %d of %d\n", i, n);
  });
  return m;
}

static ScriptModule vector_add() {
  ScriptModule m("vector_add");
  m.public_func("launch", [](Function& f) {
    auto a = f.arg("a", ptr(hidet::f32));
    auto b = f.arg("b", ptr(hidet::f32));
    auto c = f.arg("c", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i64);
    for (auto i : parallel(n, 4096)) c[i] = a[i] + b[i];
  });
  return m;
}

static ScriptModule vector_add_cuda() {
  ScriptModule m("vector_add_cuda");
  m.cuda_kernel("vector_add", [](Function& f) {
    auto a = f.arg("a", ptr(hidet::f32));
    auto b = f.arg("b", ptr(hidet::f32));
    auto c = f.arg("c", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i32);
    f.grid_dim((n + 255) / 256);
    f.block_dim(256);
    auto i = let("i", blockIdx.x * 256 + threadIdx.x);
    if (auto _ = when(i < n)) c[i] = a[i] + b[i];
  });
  return m;  // one kernel and no public function: it gets `launch` with the kernel's arguments
}

static ScriptModule sum_of_squares() {
  ScriptModule m("sum_of_squares");
  auto square = m.cpu_internal("square", [](Function& f) {
    auto x = f.arg("x", hidet::f32);
    f.returns(x * x);
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i32);
    auto sum = var("sum", hidet::f32, 0.f);
    for (auto i : range(n)) sum += square(x[i]);
    f.returns(sum);
  });
  return m;
}

static ScriptModule softmax(int rows, int columns) {
  ScriptModule m("softmax");
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", tensor(hidet::f32, {rows, columns}));
    auto y = f.arg("y", tensor(hidet::f32, {rows, columns}));
    for (auto i : parallel(rows)) {
      auto most = var("most", hidet::f32, x(i, 0));
      for (auto j : range(1, columns)) most = max(most, x(i, j));
      auto sum = var("sum", hidet::f32, 0.f);
      for (auto j : range(columns)) {
        auto e = let("e", exp(x(i, j) - most));
        y(i, j) = e;
        sum += e;
      }
      for (auto j : range(columns)) y(i, j) /= sum;
    }
  });
  return m;
}

static ScriptModule matmul(int m_size, int n_size, int k_size) {
  constexpr int block = 32, k_tile = 8;
  ScriptModule m("matmul");
  m.cuda_kernel("matmul", [&](Function& f) {
    auto a = f.arg("a", tensor(hidet::f32, {m_size, k_size}));
    auto b = f.arg("b", tensor(hidet::f32, {k_size, n_size}));
    auto c = f.arg("c", tensor(hidet::f32, {m_size, n_size}));
    f.grid_dim((n_size + block - 1) / block, (m_size + block - 1) / block);
    f.block_dim(64);
    auto tile_a = shared("tile_a", hidet::f32, {block, k_tile});
    auto tile_b = shared("tile_b", hidet::f32, {k_tile, block});
    auto acc = registers("acc", hidet::f32, {4, 4});
    auto row = let("row", blockIdx.y * block);
    auto col = let("col", blockIdx.x * block);
    for (auto [i, j] : grid(4, 4)) acc(i, j) = 0.f;
    for (auto k0 : range((k_size + k_tile - 1) / k_tile)) {
      for (auto [i, k] : repeat(4, 1).spatial(8, 8).on(threadIdx.x))
        tile_a(i, k) = a.read({row + i, k0 * k_tile + k});  // 0 outside the tensor
      for (auto [k, j] : repeat(1, 4).spatial(8, 8).on(threadIdx.x))
        tile_b(k, j) = b.read({k0 * k_tile + k, col + j});
      syncthreads();
      for (auto [ti, tj] : spatial(8, 8).on(threadIdx.x))
        for (auto [i, j] : grid(4, 4))
          for (auto k : range(k_tile)) acc(i, j) += tile_a(ti * 4 + i, k) * tile_b(k, tj * 4 + j);
      syncthreads();
    }
    for (auto [ti, tj] : spatial(8, 8).on(threadIdx.x))
      for (auto [i, j] : grid(4, 4))
        c.write({row + ti * 4 + i, col + tj * 4 + j}, acc(i, j));  // dropped outside
  });
  return m;
}

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Guide, BlocksAreTheFunctionsOfThisFile) {
  const std::filesystem::path root = HIDET_SOURCE_DIR;
  const std::string code = text_of(root / "tests/lang/guide_test.cpp"),
                    guide = text_of(root / "docs/script.md");
  ASSERT_FALSE(code.empty());
  int blocks = 0;
  for (size_t at = guide.find("```cpp\nstatic"); at != std::string::npos;
       at = guide.find("```cpp\nstatic", at + 1)) {
    const size_t begin = at + 7;
    const std::string block = guide.substr(begin, guide.find("```", begin) - begin);
    EXPECT_NE(code.find(block), std::string::npos) << "not in guide_test.cpp:\n" << block;
    blocks++;
  }
  EXPECT_EQ(blocks, 6);
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

TEST(Guide, CudaProgramsCompile) {
  ASSERT_FALSE(hidet::backends::cuda_compiler_identity().empty()) << "no CUDA compiler";
  EXPECT_FALSE(vector_add_cuda().build({.cuda_arch = "sm_80"}).data().images.empty());
  EXPECT_FALSE(matmul(45, 37, 19).build({.cuda_arch = "sm_80"}).data().images.empty());
}

}  // namespace
