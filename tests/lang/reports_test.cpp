// Rows of tests/cases/bug_reports.md that the script language answers for, each named by its number.
#include <hidet/hidet.h>

#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::HasSubstr;

// C[i, j] = B[j % 4], plain, as one loop of 24, by vectors of 2 and 4, split by 4 and by 5; on the CPU and, where threads
// take the place of the loop, in a kernel.
TEST(Reports, Row63ModuloOfALoopIndex) {
  using Body = std::function<void(Handle b, Handle c)>;
  const auto at = [](const Handle& c, const Value& i, const Value& j) { return c[i * 6 + j]; };
  const auto split = [&](Handle b, Handle c, int by) {
    for (auto [i, o, j] : grid(4, (6 + by - 1) / by, by))
      if (auto _ = when(o * by + j < 6)) at(c, i, o * by + j) = b[(o * by + j) % 4];
  };
  const auto fused_vectors = [](Handle b, Handle c, int lanes) {
    for (auto o : range(24 / lanes))
      for (auto v : vectorize(lanes)) c[o * lanes + v] = b[(o * lanes + v) % 6 % 4];
  };
  const std::vector<Body> forms = {[&](Handle b, Handle c) {
                                     for (auto [i, j] : grid(4, 6)) at(c, i, j) = b[j % 4];
                                   },
                                   [](Handle b, Handle c) {
                                     for (auto k : range(24)) c[k] = b[k % 6 % 4];
                                   },
                                   [&](Handle b, Handle c) { fused_vectors(b, c, 2); },
                                   [&](Handle b, Handle c) { fused_vectors(b, c, 4); },
                                   [&](Handle b, Handle c) {
                                     for (auto [i, o] : grid(4, 3))
                                       for (auto j : vectorize(2))
                                         at(c, i, o * 2 + j) = b[(o * 2 + j) % 4];
                                   },
                                   [&](Handle b, Handle c) { split(b, c, 4); },
                                   [&](Handle b, Handle c) { split(b, c, 5); },
                                   [&](Handle b, Handle c) {
                                     for (auto i : range(4))
                                       for (auto j : unroll(6)) at(c, i, j) = b[j % 4];
                                   },
                                   [&](Handle b, Handle c) {
                                     for (auto k : parallel(24)) c[k] = b[k % 6 % 4];
                                   }};
  std::vector<int32_t> expected;
  for (int i = 0; i < 4; i++) expected.insert(expected.end(), {10, 20, 30, 40, 10, 20});
  const Tensor b = from_vector<int32_t>({10, 20, 30, 40}, {4});
  for (size_t form = 0; form < forms.size(); form++) {
    ScriptModule m("modulo");
    m.public_func("launch", [&](Function& f) {
      auto in = f.arg("b", ptr(i32));
      auto out = f.arg("c", ptr(i32));
      forms[form](in, out);
    });
    const Tensor c = zeros({24}, i32);
    m.build()(b, c);
    EXPECT_EQ(c.to_vector<int32_t>(), expected) << form;
  }
  ScriptModule m("modulo_cuda");
  m.cuda_kernel("k", [&](Function& f) {
    auto in = f.arg("b", ptr(i32));
    auto out = f.arg("c", ptr(i32));
    f.grid_dim(3);
    f.block_dim(8);
    auto k = let("k", blockIdx.x * 8 + threadIdx.x);
    out[k] = in[k % 6 % 4];
  });
  const Tensor c = zeros({24}, i32);
  m.simulate("launch", b, c);
  EXPECT_EQ(c.to_vector<int32_t>(), expected);
}

/// y[i] = i with these sizes.
ScriptModule iota(int64_t blocks, int64_t threads) {
  ScriptModule m("iota");
  m.cuda_kernel("k", [&](Function& f) {
    auto y = f.arg("y", ptr(f32));
    f.grid_dim(blocks);
    f.block_dim(threads);
    y[threadIdx.x] = cast(threadIdx.x, f32);
  });
  return m;
}

TEST(Reports, Row65LaunchSizes) {
  const auto refused = [](int64_t blocks, int64_t threads) {
    try {
      (void)iota(blocks, threads);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
      const std::string what = e.what();
      return what.substr(what.find("error: ") + 7);
    }
    return std::string();
  };
  for (const int64_t n : {int64_t{-1}, int64_t{0}, int64_t{1025}, int64_t{1} << 31})
    EXPECT_EQ(refused(1, n),
              "block_dim x of 'k' is " + std::to_string(n) + "; it must be from 1 to 1024");
  for (const int64_t n : {int64_t{0}, int64_t{-1}, int64_t{1} << 31})
    EXPECT_EQ(refused(n, 8),
              "grid_dim x of 'k' is " + std::to_string(n) + "; it must be from 1 to 2147483647");
  // A grid that becomes 0 is no work, and no error of it meets the next launch.
  ScriptModule m("dynamic");
  auto k = m.cuda_kernel("k", [](Function& f) {
    auto y = f.arg("y", ptr(f32));
    auto n = f.arg("n", i32);
    f.grid_dim((n + 3) / 4);
    f.block_dim(4);
    auto i = let("i", blockIdx.x * 4 + threadIdx.x);
    if (auto _ = when(i < n)) y[i] = cast(i, f32);
  });
  m.public_func("launch", [&](Function& f) {
    auto y = f.arg("y", ptr(f32));
    auto n = f.arg("n", i32);
    k(y, n - n);
    k(y, n);
  });
  const Tensor y = full({8}, -1.0);
  m.simulate("launch", y, 0);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(8, -1.f));
  m.simulate("launch", y, 8);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Reports, Row67BarriersThatSomeThreadsSkip) {
  // 64 threads; s[tx] = tx * tx where tx < 48; a barrier; out[tx] = s[47 - tx].
  const auto kernel = [](bool inside, bool per_thread_loop) {
    ScriptModule m("barrier");
    m.cuda_kernel("k", [&](Function& f) {
      auto out = f.arg("out", ptr(i32));
      f.grid_dim(1);
      f.block_dim(64);
      auto tx = let("tx", threadIdx.x);
      auto s = shared("s", i32, {48});
      if (auto _ = when(tx < 48)) {
        s(tx) = tx * tx;
        if (inside) syncthreads();
      }
      if (!inside) syncthreads();
      if (per_thread_loop)
        for (auto i : range(tx)) {
          comment("a turn of " + i.type().text());
          syncthreads();
        }
      if (auto _ = when(tx < 48)) out[tx] = s(47 - tx);
    });
    return m;
  };
  const Tensor out = zeros({64}, i32);
  kernel(false, false).simulate("launch", out);
  const std::vector<int32_t> got = out.to_vector<int32_t>();
  for (int i = 0; i < 48; i++) EXPECT_EQ(got[static_cast<size_t>(i)], (47 - i) * (47 - i));
  for (const bool inside : {true, false}) try {
      kernel(inside, !inside).simulate("launch", out);
      FAIL() << "not refused";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("the barrier 'syncthreads' in 'k' is under a condition that "
                                      "differs between the threads of a block (reports_test.cpp:"));
    }
}

// A batch of more than 65,535 in y or z of a grid: refused where it is written, and where it is launched.
TEST(Reports, Row37RowsBeyondAGrid) {
  const auto sized = [](bool in_y) {
    ScriptModule m("rows");
    m.cuda_kernel("k", [&](Function& f) {
      auto y = f.arg("y", ptr(i32));
      auto n = f.arg("n", i32);
      if (in_y) f.grid_dim(1, n);
      else f.grid_dim(n);
      f.block_dim(1);
      auto row = let("row", in_y ? Value(blockIdx.y) : Value(blockIdx.x));
      y[row] = row % 97;
    });
    return m;
  };
  const int rows = 65537;
  const Tensor y = zeros({rows}, i32);
  sized(false).simulate("launch", y, rows);
  const std::vector<int32_t> got = y.to_vector<int32_t>();
  for (int i = 0; i < rows; i++) ASSERT_EQ(got[static_cast<size_t>(i)], i % 97);
  try {
    sized(true).simulate("launch", y, rows);
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("65537"));
  }
}

// Names that are words of C, C++, CUDA or the text form, or equal once sanitised.
TEST(Reports, Row3NamesThatAreWords) {
  ScriptModule m("while");
  auto twice = m.cpu_internal("float", [](Function& f) {
    auto x = f.arg("return", i32);
    f.returns(x * 2);
  });
  m.public_func("for", [&](Function& f) {
    auto y = f.arg("y", ptr(i32));
    auto a = let("int", y[0]);
    auto b = let("int", y[1]);
    auto c = var("__global__", i32, twice(a));
    auto t = registers("tensor", i32, {2});
    t(0) = c;
    t(1) = b;
    for (auto hidet_i : range(2)) y[hidet_i] = t(hidet_i) + 1;
  });
  const Tensor y = from_vector<int32_t>({10, 20}, {2});
  m.build()["for"](y);
  EXPECT_EQ(y.to_vector<int32_t>(), (std::vector<int32_t>{21, 21}));
}

// Integer division, remainders and the ends of the range: constants and run time agree, nothing traps.
TEST(Reports, Row11IntegerDivision) {
  ScriptModule m("division");
  m.public_func("launch", [](Function& f) {
    auto a = f.arg("a", ptr(i32));
    auto b = f.arg("b", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    for (auto i : range(6)) {
      y[i * 3] = a[i] / b[i];
      y[i * 3 + 1] = a[i] % b[i];
      y[i * 3 + 2] = floormod(a[i], b[i]);
    }
    const auto constant = [](int64_t v) { return Value(ir::make_int(v, Type(i32))); };
    const int64_t pairs[6][2] = {{-11, 3}, {11, -3}, {-11, -3}, {11, 3}, {INT32_MIN, -1}, {1, 0}};
    for (int i = 0; i < 6; i++) {
      y[18 + i * 3] = constant(pairs[i][0]) / constant(pairs[i][1]);
      y[18 + i * 3 + 1] = constant(pairs[i][0]) % constant(pairs[i][1]);
      y[18 + i * 3 + 2] = floormod(constant(pairs[i][0]), constant(pairs[i][1]));
    }
  });
  const Tensor a = from_vector<int32_t>({-11, 11, -11, 11, INT32_MIN, 1}, {6}),
               b = from_vector<int32_t>({3, -3, -3, 3, -1, 0}, {6}), y = zeros({36}, i32);
  m.build()(a, b, y);
  const std::vector<int32_t> once = {-3, -2, 1, -3,        2, -1, 3, -2, -2,
                                     3,  2,  2, INT32_MIN, 0, 0,  0, 0,  0};
  std::vector<int32_t> expected = once;
  expected.insert(expected.end(), once.begin(), once.end());
  EXPECT_EQ(y.to_vector<int32_t>(), expected);
}

// No algebra on floats, no wider type kept, no lost digits, no lost denormal.
TEST(Reports, Rows27And31And33And35Numbers) {
  ScriptModule m("numbers");
  m.public_func("launch", [](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto y = f.arg("y", ptr(f32));
    auto u = f.arg("u", ptr(u8));
    auto w = f.arg("w", ptr(i32));
    auto d = f.arg("d", ptr(f64));
    for (auto i : range(2)) y[i] = x[i] - (x[i] + 1.f);
    y[2] = x[2] * 0.f;
    y[3] = x[2] - x[2];
    y[4] = x[3] * 0.5f;
    for (auto i : range(67)) w[i] = cast(u[i] + u[i], i32);
    d[0] = d[0] + 0.1;
  });
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = from_vector<float>({5, 1e8f, inf, 3e-39f}, {4}), y = zeros({5}),
               u = zeros({67}, u8), w = zeros({67}, i32), d = zeros({1}, f64);
  for (int i = 0; i < 67; i++) u.data<uint8_t>()[i] = static_cast<uint8_t>(100 + i * 2);
  m.build()(x, y, u, w, d);
  const std::vector<float> got = y.to_vector<float>();
  EXPECT_EQ(got[0], -1);
  EXPECT_EQ(got[1], 0);
  EXPECT_TRUE(std::isnan(got[2]) && std::isnan(got[3]));
  EXPECT_EQ(got[4], 1.5e-39f);
  for (int i = 0; i < 67; i++)
    EXPECT_EQ(w.to_vector<int32_t>()[static_cast<size_t>(i)], (200 + i * 4) % 256);
  EXPECT_EQ(d.to_vector<double>()[0], 0.1);
}

}  // namespace
}  // namespace hidet::lang
