// Tensor: shapes, elements of every dtype, views, the caller's memory, symbolic tensors, memory counters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/runtime.h>

#include <cmath>
#include <limits>
#include <thread>

namespace hidet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Tensor, Basics) {
  const Tensor t = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(t.describe(), "f32[2, 3] cpu");
  EXPECT_EQ(t.shape(), (Shape{2, 3}));
  EXPECT_EQ(t.shape(-1), 3);
  EXPECT_EQ(t.rank(), 2);
  EXPECT_EQ(t.bytes(), 24);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_EQ(t.data<float>()[4], 5);
  EXPECT_THROW(t.data<double>(), Error);
  EXPECT_THROW(t.to_vector<int32_t>(), Error);
  EXPECT_THROW(t.item<float>(), Error);
  EXPECT_THROW(t.shape(2), Error);
  EXPECT_EQ(t.shape_expr(), (std::vector<DimExpr>{2, 3}));
  EXPECT_EQ(from_vector<int64_t>({7}, {}).item<int64_t>(), 7);
  EXPECT_THAT(from_vector<bool>({true, false}, {2}).to_vector<bool>(), ElementsAre(true, false));
  EXPECT_THROW(from_vector<float>({1, 2}, {3}), Error);
  EXPECT_TRUE(t.cpu().same_as(t));
  const Tensor copy = t.clone();
  copy.data<float>()[0] = 9;
  EXPECT_EQ(t.data<float>()[0], 1);
}

TEST(Tensor, EmptyHandleSaysSo) {
  const Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_THAT(message_of([&] { t.shape(); }), HasSubstr("empty"));
  EXPECT_THAT(message_of([&] { t.data(); }), HasSubstr("empty"));
}

TEST(Tensor, ViewsShareTheMemory) {
  const Tensor t = arange(12, i32);
  const Tensor v = t.reshape({3, -1});
  EXPECT_EQ(v.shape(), (Shape{3, 4}));
  v.data<int32_t>()[5] = 50;
  EXPECT_EQ(t.to_vector<int32_t>()[5], 50);
  EXPECT_EQ(t.view_at(20, {2}, i32).to_vector<int32_t>(), (std::vector<int32_t>{50, 6}));
  EXPECT_THROW(t.reshape({5, -1}), Error);
  EXPECT_THROW(t.reshape({-1, -1}), Error);
  EXPECT_THROW(t.reshape({13}), Error);
  EXPECT_THROW(t.view_at(40, {3}, i32), Error);
  EXPECT_THROW(t.view_at(2, {1}, i32), Error);
  EXPECT_THROW(t.view_at(-4, {1}, i32), Error);
  EXPECT_EQ(zeros({0, 3}).reshape({7, 0}).num_elements(), 0);
}

TEST(Tensor, SizesThatNoTensorCanHave) {
  EXPECT_THAT(message_of([] { zeros({2, -3}); }), HasSubstr("[2, -3]"));
  EXPECT_THROW(empty({INT64_MAX, 2}), Error);
  EXPECT_THROW(empty({INT64_MAX / 4}), Error);
  EXPECT_EQ(zeros({INT64_MAX, 0, INT64_MAX}).num_elements(), 0);
}

TEST(Tensor, ZeroSized) {
  const Tensor t = zeros({0, 4});
  EXPECT_TRUE(t.to_vector<float>().empty());
  EXPECT_TRUE(t.clone().to_doubles().empty());
  EXPECT_EQ(randn({0}).bytes(), 0);
  EXPECT_EQ(t.data(), nullptr);
}

TEST(Tensor, EveryDtypeThroughDoubles) {
  const std::vector<double> values = {0, 1, 2, 3, 4, 5, 6};
  for (int code = 0; code < kNumDTypes; code++) {
    const DType dtype(static_cast<DTypeCode>(code));
    const std::vector<double> in = dtype.is_boolean() ? std::vector<double>{0, 1, 1} : values;
    const Tensor t = from_doubles(in, {static_cast<int64_t>(in.size())}, dtype);
    EXPECT_EQ(t.to_doubles(), in) << dtype;
    EXPECT_EQ(t.bytes(), dtype.bytes_of(static_cast<int64_t>(in.size())));
  }
  EXPECT_EQ(from_doubles({-8, 7, -1}, {3}, i4).to_doubles(), (std::vector<double>{-8, 7, -1}));
  EXPECT_THROW(from_doubles({8}, {1}, i4), Error);
  EXPECT_THROW(from_doubles({0.5}, {1}, i32), Error);
  EXPECT_THROW(from_doubles({kNaN}, {1}, i64), Error);
  EXPECT_THROW(from_doubles({0x1p63}, {1}, i64), Error);
  EXPECT_EQ(from_doubles({-0x1p63}, {1}, i64).item<int64_t>(), INT64_MIN);
  EXPECT_THROW(from_doubles({-1}, {1}, u64), Error);
  EXPECT_THROW(full({2}, 2, boolean), Error);
}

TEST(Tensor, SmallFloats) {
  // OCP 8-bit formats: largest values, least subnormals, ties, what is too large.
  const auto round = [](double v, DType dtype) {
    return from_doubles({v}, {1}, dtype).to_doubles()[0];
  };
  EXPECT_EQ(round(448, f8e4m3), 448);
  EXPECT_EQ(round(463, f8e4m3), 448);
  EXPECT_TRUE(std::isnan(round(500, f8e4m3)));
  EXPECT_TRUE(std::isnan(round(kInf, f8e4m3)));
  EXPECT_TRUE(std::isnan(round(kNaN, f8e4m3)));
  EXPECT_EQ(round(0x1p-9, f8e4m3), 0x1p-9);
  EXPECT_EQ(round(0x1p-10, f8e4m3), 0);
  EXPECT_EQ(round(1.0625, f8e4m3), 1.0);
  EXPECT_EQ(round(1.1875, f8e4m3), 1.25);
  EXPECT_EQ(round(57344, f8e5m2), 57344);
  EXPECT_EQ(round(61440, f8e5m2), kInf);
  EXPECT_EQ(round(-kInf, f8e5m2), -kInf);
  EXPECT_TRUE(std::isnan(round(kNaN, f8e5m2)));
  EXPECT_EQ(round(0x1p-16, f8e5m2), 0x1p-16);
  EXPECT_EQ(round(1 + 0x1p-11, tf32), 1.0);
  EXPECT_EQ(round(1 + 0x1p-10, tf32), 1 + 0x1p-10);
  for (const DType dtype : {f8e4m3, f8e5m2}) {
    for (int bits = 0; bits < 256; bits++) {
      auto byte = static_cast<uint8_t>(bits);
      const double value = Tensor::from_blob(&byte, {1}, dtype).to_doubles()[0];
      if (std::isnan(value)) continue;
      EXPECT_EQ(from_doubles({value}, {1}, dtype).data<uint8_t>()[0], byte) << dtype << " " << bits;
    }
  }
}

TEST(Tensor, HalvesReadAsFloats) {
  const Tensor t = from_doubles({1.5, -2, kInf, kNaN}, {4}, bf16);
  const std::vector<float> values = t.to_vector<float>();
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[2], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(values[3]));
  EXPECT_EQ(t.to_vector<uint16_t>()[0], 0x3fc0);
}

TEST(Tensor, FromBlob) {
  std::vector<float> mine = {1, 2, 3, 4};
  int deleted = 0;
  {
    const Tensor t = Tensor::from_blob(mine.data() + 1, {3}, f32, "cpu", [&](void* p) {
      EXPECT_EQ(p, mine.data() + 1);
      deleted++;
    });
    t.data<float>()[0] = 20;
    const Tensor other = t.reshape({3, 1});
    EXPECT_EQ(other.to_vector<float>(), (std::vector<float>{20, 3, 4}));
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(mine[1], 20);
  EXPECT_THROW(Tensor::from_blob(reinterpret_cast<char*>(mine.data()) + 1, {1}, f32), Error);
  EXPECT_THROW(Tensor::from_blob(nullptr, {1}, f32), Error);
  EXPECT_EQ(Tensor::from_blob(nullptr, {0}, f32).num_elements(), 0);
}

TEST(Tensor, RandomNumbers) {
  const Tensor a = randn({100, 1001}, f32, "cpu", 5), b = randn({100, 1001}, f32, "cpu", 5);
  EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
  EXPECT_NE(randn({8}).to_vector<float>(), randn({8}).to_vector<float>());
  double sum = 0, squares = 0, neighbours = 0;
  const std::vector<double> values = a.to_doubles();
  for (size_t i = 0; i < values.size(); i++) {
    sum += values[i];
    squares += values[i] * values[i];
    neighbours += i ? values[i] * values[i - 1] : 0;
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.03);
  EXPECT_NEAR(neighbours / n, 0, 0.02);
  set_num_threads(1);
  EXPECT_EQ(randn({100, 1001}, f32, "cpu", 5).to_vector<float>(), a.to_vector<float>());
  set_num_threads(2);

  std::vector<int> seen(5);
  for (const int64_t v : randint({10000}, -2, 3).to_vector<int64_t>()) {
    ASSERT_TRUE(v >= -2 && v < 3);
    seen[static_cast<size_t>(v + 2)]++;
  }
  for (const int count : seen) EXPECT_NEAR(count, 2000, 250);
  for (const double v : uniform({1000}, 2, 3, f64).to_doubles()) ASSERT_TRUE(v >= 2 && v < 3);
  EXPECT_THROW(randn({2}, i32), Error);
  EXPECT_THROW(randint({2}, 3, 3), Error);
}

TEST(Tensor, Symbolic) {
  const auto producer = std::make_shared<int>(42);
  const Tensor t = Tensor::make_symbolic(f32, {"n", 64}, "cpu", producer, 1, "x");
  EXPECT_TRUE(t.is_symbolic());
  EXPECT_EQ(t.describe(), "f32[n, 64] cpu");
  EXPECT_EQ(t.producer(), producer);
  EXPECT_EQ(t.output_index(), 1);
  EXPECT_EQ(t.name(), "x");
  EXPECT_EQ(t.shape(1), 64);
  EXPECT_THAT(message_of([&] { t.shape(); }), HasSubstr("f32[n, 64]"));
  EXPECT_THAT(message_of([&] { t.data(); }), HasSubstr("symbolic"));
  EXPECT_THROW(t.shape(0), Error);
  EXPECT_THROW(t.clone(), Error);
  EXPECT_THROW(t.reshape({64}), Error);
  const Tensor fixed = Tensor::make_symbolic(f16, {2, 3}, "cuda:1", producer, 0);
  EXPECT_EQ(fixed.shape(), (Shape{2, 3}));
  EXPECT_EQ(fixed.describe(), "f16[2, 3] cuda:1");
}

// A producer as a graph has it: it holds its input.
TEST(Tensor, LongChainsOfProducersAreFreed) {
  Tensor t = zeros({1});
  for (int i = 0; i < 300000; i++)
    t = Tensor::make_symbolic(f32, {1}, {}, std::make_shared<Tensor>(t), 0);
  t = Tensor();
  EXPECT_FALSE(t.defined());
}

TEST(Tensor, Signature) {
  const TensorSignature s{"x", f16, {"n", DimExpr("n") * 2 + "m", 5}, "cuda"};
  EXPECT_EQ(s.concrete_shape({.unknown = 3}), (Shape{3, 9, 5}));
  EXPECT_EQ(s.concrete_shape(), (Shape{1, 3, 5}));
  EXPECT_EQ(s.text(), "x: f16[n, m + n*2, 5] cuda:0");
}

TEST(Memory, CountersAndLimit) {
  trim_memory({});
  const int64_t before = memory_stats({}).current;
  reset_peak_memory({});
  {
    const Tensor a = empty({1000}, f32);
    EXPECT_EQ(memory_stats({}).current, before + 4000);
    const Tensor b = empty({500}, f32);
  }
  EXPECT_EQ(memory_stats({}).current, before);
  EXPECT_EQ(memory_stats({}).peak, before + 6000);
  EXPECT_GT(memory_stats({}).cached, 0);
  set_memory_limit({}, before + 1000);
  try {
    empty({1000}, u8);
    empty({1001}, u8);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::memory);
    EXPECT_THAT(e.what(), HasSubstr("1001 bytes"));
  }
  set_memory_limit({}, 0);
  EXPECT_THROW(set_memory_limit({}, -1), Error);
  EXPECT_THROW(empty({int64_t{1} << 61}, u8), Error);
  EXPECT_EQ(memory_stats({}).current, before);
  trim_memory({});
  EXPECT_EQ(memory_stats({}).cached, 0);
}

TEST(Memory, ManyThreads) {
  const int64_t before = memory_stats({}).current;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([t] {
      for (int i = 0; i < 2000; i++) {
        const Tensor x = full({1 + (i * 37 + t) % 300}, t, f32);
        for (const float v : x.to_vector<float>()) ASSERT_EQ(v, static_cast<float>(t));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(memory_stats({}).current, before);
}

}  // namespace
}  // namespace hidet
