// cases_test.cpp - rows of tests/cases/bug_reports.md that the operators and the reference answer for. Each runs at once
// on concrete tensors and through a graph.
#include <limits>

#include "graph/core/samples.h"

namespace hidet::test {
namespace {
using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor vec(const Floats& v) { return from_vector(v, {static_cast<int64_t>(v.size())}); }
Tensor vec(const Ints& v) { return from_vector(v, {static_cast<int64_t>(v.size())}); }

/// f(x) at once and in a graph; both must agree.
template <class F>
Tensor both(const F& f, const Tensor& x) {
  const Tensor now = f(x);
  const Tensor s = symbol(to_symbolic(x.shape()), x.dtype());
  const Tensor later = trace_from(f(s), {s})(x);
  expect_same(later, now, "in a graph");
  return now;
}
void expect_floats(const Tensor& t, const Floats& expected) {
  expect_same(t.reshape({-1}), vec(expected), "values");
}

TEST(Cases, Row1SliceWithNegativeSteps) {
  const Tensor x = ops::cast(arange(10), f32);
  const auto cut = [](int64_t start, int64_t end, int64_t step) {
    return [=](const Tensor& t) { return ops::slice(t, {start}, {end}, {0}, {step}); };
  };
  expect_floats(both(cut(-1, std::numeric_limits<int64_t>::min(), -3), x), {9, 6, 3, 0});
  expect_floats(both(cut(7, 0, -1), x), {7, 6, 5, 4, 3, 2, 1});
  expect_floats(both(cut(8, -100, -4), x), {8, 4, 0});
  EXPECT_EQ(both(cut(0, 3, -1), zeros({0})).num_elements(), 0);
}

TEST(Cases, Row9NanWins) {
  const Tensor x = vec(Floats{kNan, -1, 2});
  expect_floats(both(ops::relu, x), {kNan, 0, 2});
  const Tensor one = vec(Floats{1});
  expect_floats(both([&](const Tensor& t) { return ops::maximum(t, one); }, x), {kNan, 1, 2});
  expect_floats(both([&](const Tensor& t) { return ops::maximum(one, t); }, x), {kNan, 1, 2});
  expect_floats(both([&](const Tensor& t) { return ops::minimum(t, one); }, x), {kNan, -1, 1});
  expect_floats(both([&](const Tensor& t) { return ops::minimum(one, t); }, x), {kNan, -1, 1});
  expect_floats(both([](const Tensor& t) { return ops::clip(t, 0, 1); }, x), {kNan, 0, 1});
  for (const int n : {3, 70})
    for (int at = 0; at < n; at++) {
      Floats v(n, 1);
      v[at] = kNan;
      EXPECT_TRUE(std::isnan(ops::reduce_max(vec(v)).item<float>())) << at;
      EXPECT_TRUE(std::isnan(ops::reduce_min(vec(v)).item<float>())) << at;
    }
}

TEST(Cases, Row11IntegerDivision) {
  const Tensor a = vec(Ints{-11, 11, -11, 11}), b = vec(Ints{3, -3, -3, 3});
  EXPECT_EQ(values<int32_t>(a / b), (Ints{-3, -3, 3, 3}));
  EXPECT_EQ(values<int32_t>(ops::mod(a, b, false)), (Ints{1, -1, -2, 2}));
  EXPECT_EQ(values<int32_t>(ops::mod(a, b, true)), (Ints{-2, 2, -2, 2}));
  const int32_t least = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(values<int32_t>(vec(Ints{least, 1}) / vec(Ints{-1, 0})), (Ints{least, 0}));
  EXPECT_EQ(values<int32_t>(ops::mod(vec(Ints{least, 1}), vec(Ints{-1, 0}))), (Ints{0, 0}));
  expect_floats(ops::mod(vec(Floats{-5.5f, 5.5f, -5.5f}), vec(Floats{2, -2, -2}), true),
                {-1.5f, 1.5f, -1.5f});
}

TEST(Cases, Row13Pads) {
  const Tensor m = from_vector<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor v = vec(Floats{0, 1, 2, 3, 4});
  const auto pad = [](std::vector<int64_t> pads, const char* mode) {
    return [=](const Tensor& t) { return ops::pad(t, pads, mode); };
  };
  expect_floats(both(pad({0, 1, 0, 0}, "reflect"), m), {2, 1, 2, 4, 3, 4, 6, 5, 6});
  expect_floats(both(pad({2, 0, 0, 0}, "reflect"), m), {5, 6, 3, 4, 1, 2, 3, 4, 5, 6});
  expect_floats(both(pad({-2, 2}, "reflect"), v), {2, 3, 4, 3, 2});
  expect_floats(both(pad({2, -2}, "reflect"), v), {2, 1, 0, 1, 2});
  expect_floats(both(pad({-1, 2}, "edge"), v), {1, 2, 3, 4, 4, 4});
  EXPECT_THROW(ops::pad(m, {0, 2, 0, 0}, "reflect"), Error);
}

TEST(Cases, Row19Reductions) {
  const Tensor x = ops::reshape(ops::cast(arange(6), f32), {2, 3});
  EXPECT_EQ(ops::reduce_sum(x).item<float>(), 15);
  EXPECT_EQ(ops::reduce_sum(x).rank(), 0);
  EXPECT_EQ(ops::reduce_sum(x, {}, true).shape(), (Shape{1, 1}));
  expect_floats(both([](const Tensor& t) { return ops::reduce_sum(t, {-2}); }, x), {3, 5, 7});
  EXPECT_EQ(ops::reduce_sum(full({}, -3.0)).item<float>(), -3);
  const Tensor none = zeros({2, 0});
  for (const bool keep : {false, true}) {
    expect_floats(ops::reduce_sum(none, {1}, keep), {0, 0});
    expect_floats(ops::reduce_prod(none, {1}, keep), {1, 1});
    expect_floats(ops::reduce_max(none, {1}, keep), {-kInf, -kInf});
    EXPECT_EQ(ops::reduce_max(none, {1}, keep).shape(), keep ? (Shape{2, 1}) : (Shape{2}));
  }
}

TEST(Cases, Row25ReluThenClip) {
  for (const DType t : {f64, f32, f16}) {
    const Tensor x = from_doubles({-3, 0.5, 3}, {3}, t);
    const auto run = [&](std::optional<double> low, std::optional<double> high) {
      return both([=](const Tensor& v) { return ops::clip(ops::relu(v), low, high); }, x)
          .to_doubles();
    };
    EXPECT_EQ(run(-1, 1), (std::vector<double>{0, 0.5, 1}));
    EXPECT_EQ(run(-1, {}), (std::vector<double>{0, 0.5, 3}));
    EXPECT_EQ(run(0.75, {}), (std::vector<double>{0.75, 0.75, 3}));
  }
}

TEST(Cases, Row27NoAlgebraOnFloats) {
  expect_floats(both([](const Tensor& x) { return x - (x + 1.0); }, vec(Floats{5, 1e8f})), {-1, 0});
  expect_floats(both([](const Tensor& x) { return x * 0.0; }, vec(Floats{kInf, kNan})),
                {kNan, kNan});
  expect_floats(both([](const Tensor& x) { return x / x; }, vec(Floats{0, kInf})), {kNan, kNan});
  expect_floats(both([](const Tensor& x) { return x - x; }, vec(Floats{kInf})), {kNan});
}

TEST(Cases, Row31EightBitsWrap) {
  const Tensor x = from_vector<uint8_t>({128, 200, 255}, {3});
  EXPECT_EQ(values<int32_t>(both([](const Tensor& t) { return ops::cast(t + t, i32); }, x)),
            (Ints{0, 144, 254}));
  EXPECT_EQ(values<uint8_t>(from_vector<uint8_t>({3, 0}, {2}) - from_vector<uint8_t>({5, 1}, {2})),
            (std::vector<uint8_t>{254, 255}));
  const Tensor low = from_vector<int8_t>({-128}, {1}), minus = from_vector<int8_t>({-1}, {1});
  EXPECT_EQ(values<int32_t>(ops::cast(low * minus, i32)), (Ints{-128}));
}

TEST(Cases, Row33Denormals) { EXPECT_EQ((vec(Floats{3e-39f}) * 0.5).item<float>(), 1.5e-39f); }

TEST(Cases, Row35DoublesStayDoubles) {
  EXPECT_EQ(ops::reduce_min(from_vector<double>({1e300, -1e300}, {2})).item<double>(), -1e300);
  EXPECT_EQ(ops::reduce_max(from_vector<double>({-1e300, -1e299}, {2})).item<double>(), -1e299);
  EXPECT_EQ(ops::reduce_sum(from_vector<double>({1, std::ldexp(1.0, -40)}, {2})).item<double>(),
            1.0000000000009095);
  const Tensor yes = from_vector<bool>({true}, {1});
  for (const float c : {std::numeric_limits<float>::max(), -std::numeric_limits<float>::max(),
                        1e-45f, kInf, -kInf, -0.0f}) {
    const float got = ops::where(yes, ops::full({1}, c, f32), zeros({1})).item<float>();
    EXPECT_EQ(got, c);
    EXPECT_EQ(std::signbit(got), std::signbit(c));
  }
  EXPECT_EQ(ops::full({1}, 0.1, f64).item<double>(), 0.1);
  const Tensor most = from_vector<uint64_t>({std::numeric_limits<uint64_t>::max()}, {1});
  EXPECT_EQ(ops::where(yes, most, most).item<uint64_t>(), std::numeric_limits<uint64_t>::max());
  const Tensor least = from_vector<int64_t>({std::numeric_limits<int64_t>::min()}, {1});
  EXPECT_EQ(ops::where(yes, least, least).item<int64_t>(), std::numeric_limits<int64_t>::min());
}

TEST(Cases, Row45OutputsOwnTheirStorage) {
  const Tensor x = symbol({2}, f32, {}, "x");
  const Tensor c = vec(Floats{0.5f, 0.5f});
  const Tensor s = x + c, r = ops::relu(s);
  const FlowGraph graph = trace_from({s, c, r, r, x}, {x});
  const Tensor in = vec(Floats{-1, 2});
  std::vector<Tensor> out = graph.run({in});
  for (const Tensor& t : out) std::fill_n(t.data<float>(), 2, 99.f);
  EXPECT_EQ(values<float>(in), (Floats{-1, 2}));
  out = graph.run({in});
  const std::vector<Floats> expected{{-0.5f, 2.5f}, {0.5f, 0.5f}, {0, 2.5f}, {0, 2.5f}, {-1, 2}};
  for (size_t i = 0; i < out.size(); i++) {
    EXPECT_EQ(values<float>(out[i]), expected[i]) << i;
    for (size_t j = 0; j < i; j++) EXPECT_NE(out[i].data(), out[j].data()) << i << " and " << j;
  }
}

TEST(Cases, Row47OneSymbolOneValue) {
  const Tensor a = symbol({"n", 2}, f32, {}, "a"), b = symbol({"n", 2}, f32, {}, "b");
  const FlowGraph graph = trace_from(a + b, {a, b});
  try {
    (void)graph.run({zeros({3, 2}), zeros({4, 2})});
    FAIL() << "accepted";
  } catch (const Error& e) {
    const std::string what = e.what();
    for (const char* part : {"'n'", "3", "4"})
      EXPECT_NE(what.find(part), std::string::npos) << what;
  }
  const Tensor x = symbol({"n", 4}, f32, {}, "x"), y = symbol({2, 4}, f32, {}, "y");
  const FlowGraph least = trace_from(ops::minimum(x, y), {x, y});
  const Tensor full_y = uniform({2, 4}, 0, 1, f32, {}, 1);
  EXPECT_EQ(values<float>(least.run({ones({1, 4}), full_y})[0]), values<float>(full_y));
  EXPECT_EQ(values<float>(least.run({zeros({2, 4}), full_y})[0]), Floats(8, 0));
  EXPECT_THROW(least.run({zeros({3, 4}), full_y}), Error);
}

}  // namespace
}  // namespace hidet::test
