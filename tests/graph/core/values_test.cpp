// values_test.cpp - the main operators against loops written here, in double.
#include "graph/core/samples.h"

namespace hidet::test {
namespace {

std::vector<double> doubles(const Tensor& t) { return t.to_doubles(); }
void expect_near(const Tensor& got, const std::vector<double>& expected, double tol = 1e-5) {
  const std::vector<double> v = got.to_doubles();
  ASSERT_EQ(v.size(), expected.size());
  for (size_t i = 0; i < v.size(); i++)
    ASSERT_NEAR(v[i], expected[i], tol * (1 + std::fabs(expected[i]))) << i;
}

TEST(Values, Matmul) {
  for (const DType t : {f32, f64, f16, i32}) {
    const Tensor a =
        t.is_float() ? randn({2, 5, 7}, t, {}, 1) : randint({2, 5, 7}, -9, 9, t, {}, 1);
    const Tensor b = t.is_float() ? randn({7, 3}, t, {}, 2) : randint({7, 3}, -9, 9, t, {}, 2);
    const auto x = doubles(a), w = doubles(b);
    std::vector<double> expected;
    for (int i = 0; i < 10; i++)
      for (int j = 0; j < 3; j++) {
        double sum = 0;
        for (int k = 0; k < 7; k++) sum += x[i * 7 + k] * w[k * 3 + j];
        expected.push_back(sum);
      }
    const Tensor got = ops::matmul(a, b);
    EXPECT_EQ(got.shape(), (Shape{2, 5, 3}));
    expect_near(got, expected, tolerance(t) * 4);
  }
}

TEST(Values, Conv2dWithGroupsPadsStrideDilation) {
  const Tensor x = randn({2, 4, 7, 6}, f32, {}, 1), w = randn({6, 2, 3, 2}, f32, {}, 2);
  const Tensor y = ops::conv2d(x, w, {2, 1}, {1, 0, 2, 1}, {1, 2}, 2);
  const int oh = (7 + 3 - 3) / 2 + 1, ow = (6 + 1 - 3) / 1 + 1;
  ASSERT_EQ(y.shape(), (Shape{2, 6, oh, ow}));
  const auto xs = doubles(x), ws = doubles(w);
  std::vector<double> expected;
  for (int n = 0; n < 2; n++)
    for (int o = 0; o < 6; o++)
      for (int i = 0; i < oh; i++)
        for (int j = 0; j < ow; j++) {
          double sum = 0;
          for (int c = 0; c < 2; c++)
            for (int p = 0; p < 3; p++)
              for (int q = 0; q < 2; q++) {
                const int h = i * 2 + p - 1, v = j + q * 2;
                if (h < 0 || h >= 7 || v >= 6) continue;
                sum += xs[((n * 4 + o / 3 * 2 + c) * 7 + h) * 6 + v] *
                       ws[((o * 2 + c) * 3 + p) * 2 + q];
              }
          expected.push_back(sum);
        }
  expect_near(y, expected);
}

TEST(Values, Pooling) {
  const Tensor x = randn({1, 2, 5, 6}, f32, {}, 3);
  const auto v = doubles(x);
  std::vector<double> most, mean, mean_pads;
  for (int c = 0; c < 2; c++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        double top = -1e30, sum = 0;
        int count = 0;
        for (int h = i * 2 - 1; h <= i * 2 + 1; h++)
          for (int w = j * 2 - 1; w <= j * 2 + 1; w++) {
            if (h < 0 || h >= 5 || w < 0 || w >= 6) continue;
            top = std::max(top, v[(c * 5 + h) * 6 + w]);
            sum += v[(c * 5 + h) * 6 + w];
            count++;
          }
        most.push_back(top);
        mean.push_back(sum / count);
        mean_pads.push_back(sum / 9);
      }
  expect_near(ops::max_pool2d(x, {3, 3}, {2, 2}, {1, 1, 1, 1}), most);
  expect_near(ops::avg_pool2d(x, {3, 3}, {2, 2}, {1, 1, 1, 1}), mean);
  expect_near(ops::avg_pool2d(x, {3, 3}, {2, 2}, {1, 1, 1, 1}, true), mean_pads);
}

TEST(Values, SoftmaxAndLayerNorm) {
  const Tensor x = randn({3, 70}, f32, {}, 4), scale = randn({70}, f32, {}, 5),
               bias = randn({70}, f32, {}, 6);
  const auto v = doubles(x), s = doubles(scale), b = doubles(bias);
  std::vector<double> soft, logs, norm;
  for (int i = 0; i < 3; i++) {
    double sum = 0, mean = 0, square = 0;
    for (int k = 0; k < 70; k++) sum += std::exp(v[i * 70 + k]), mean += v[i * 70 + k] / 70;
    for (int k = 0; k < 70; k++) square += std::pow(v[i * 70 + k] - mean, 2) / 70;
    for (int k = 0; k < 70; k++) {
      soft.push_back(std::exp(v[i * 70 + k]) / sum);
      logs.push_back(v[i * 70 + k] - std::log(sum));
      norm.push_back((v[i * 70 + k] - mean) / std::sqrt(square + 1e-5) * s[k] + b[k]);
    }
  }
  expect_near(ops::softmax(x), soft);
  expect_near(ops::log_softmax(x), logs);
  expect_near(ops::layer_norm(x, scale, bias), norm, 2e-5);
}

TEST(Values, Unary) {
  const std::vector<double> v{-2.5, -0.5, 0, 0.25, 3};
  const Tensor x = from_doubles(v, {5}, f32);
  const std::vector<std::pair<std::string, double (*)(double)>> table{
      {"gelu", [](double a) { return a / 2 * (1 + std::erf(a / std::sqrt(2.0))); }},
      {"gelu_tanh",
       [](double a) {
         return a / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
       }},
      {"silu", [](double a) { return a / (1 + std::exp(-a)); }},
      {"softplus", [](double a) { return std::log1p(std::exp(a)); }},
      {"sigmoid", [](double a) { return 1 / (1 + std::exp(-a)); }},
      {"round", [](double a) { return std::nearbyint(a); }},
      {"sign", [](double a) { return static_cast<double>((a > 0) - (a < 0)); }},
      {"hard_swish", [](double a) { return a * std::min(1.0, std::max(0.0, a / 6 + 0.5)); }},
      {"softsign", [](double a) { return a / (1 + std::fabs(a)); }},
  };
  for (const auto& [name, f] : table) {
    std::vector<double> expected;
    for (double a : v) expected.push_back(f(a));
    SCOPED_TRACE(name);
    expect_near(ops::unary(name, x), expected);
  }
}

TEST(Values, Moves) {
  const Tensor x = ops::reshape(arange(24), {2, 3, 4});
  const auto t = values<int64_t>(ops::transpose(x, {2, 0, 1}));
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 3; k++) EXPECT_EQ(t[(i * 2 + j) * 3 + k], (j * 3 + k) * 4 + i);
  const std::vector<Tensor> parts = ops::split(x, 2, {1, 3});
  EXPECT_EQ(values<int64_t>(ops::concat(parts, 2)), values<int64_t>(x));
  EXPECT_EQ(values<int64_t>(ops::gather(x, from_vector<int64_t>({-1, 0}, {2}), 1)),
            (std::vector<int64_t>{8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15}));
  EXPECT_EQ(values<int64_t>(ops::argmax(from_vector<float>({1, 3, 3, 2}, {4}), 0)),
            (std::vector<int64_t>{1}));
  EXPECT_EQ(values<int64_t>(ops::argmax(from_vector<float>({1, 3, 3, 2}, {4}), 0, true, true)),
            (std::vector<int64_t>{2}));
  try {
    (void)ops::gather(x, from_vector<int64_t>({3}, {1}), 1);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("gather: the index 3"), std::string::npos) << e.what();
  }
}

TEST(Values, CastsSaturateAndWrap) {
  const Tensor x = from_vector<float>({-1e9f, 300.7f, std::nanf(""), 1e30f}, {4});
  EXPECT_EQ(values<int8_t>(ops::cast(x, i8)), (std::vector<int8_t>{-128, 127, 0, 127}));
  EXPECT_EQ(values<uint8_t>(ops::cast(from_vector<int32_t>({-1, 256, 300}, {3}), u8)),
            (std::vector<uint8_t>{255, 0, 44}));
}

}  // namespace
}  // namespace hidet::test
