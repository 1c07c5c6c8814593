// Emitted f32 functions against double over a stride of all 2^32 inputs (NaN, infinities, denormals and both zeros among
// them): at most 2 ULP, vectors and single lanes equal to the bit, at two levels.
// tests/bench/math runs all inputs.
#include "codegen/math_check.h"

#include <gtest/gtest.h>
#include <hidet/runtime/cpu_level.h>

#include <cstdlib>
#include <random>

namespace hidet::testing {
namespace {

class Math : public ::testing::TestWithParam<MathRow> {};

unsigned first_seed() {
  const char* given = std::getenv("HIDET_TEST_SEED");
  return given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
}

TEST_P(Math, WithinTwoPlaces) {
  const unsigned start = first_seed();
  SCOPED_TRACE("HIDET_TEST_SEED " + std::to_string(start));
  for (const char* level : {"x86-64-v3", "x86-64-v4"}) {
    if (!CpuTarget::parse(level).runs_on(host_cpu_target())) continue;
    SCOPED_TRACE(level);
    MathChecker checker(GetParam(), level);
    // A prime stride: about 200,000 inputs of every exponent and sign.
    EXPECT_TRUE(checker.run(start, 20011, 16 * 13414)) << "vectors and scalars differ";
    // The ends of the ranges, and what lies beside them.
    for (const uint32_t bits :
         {0x00000000u, 0x80000000u, 0x00800000u, 0x80800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
          0x3f800000u, 0xbf800000u, 0x42b17218u, 0xc2aeac50u, 0xc2cff1b5u, 0x43000000u, 0xc3150000u,
          0x48000000u, 0xc8000000u})
      EXPECT_TRUE(checker.run(bits - 32, 1, 64)) << "vectors and scalars differ";
    std::printf("%s\n", checker.text().c_str());
    EXPECT_LE(checker.worst.error, 2.0) << checker.text();
  }
}

// A function of two numbers has too many inputs to try them all.
TEST(MathOfTwo, PowersAreWithinTwoPlaces) {
  using namespace ir;
  Function fn;
  fn.name = "launch", fn.kind = FuncKind::public_;
  const Type floats = Type::pointer(Type(f32));
  const VarRef x = make_var("x", floats), y = make_var("y", floats), z = make_var("z", floats),
               n = make_var("n", Type(i64)), j = make_var("j", Type(i64));
  const auto whole = [](int64_t v) { return make_int(v, Type(i64)); };
  fn.params = {x, y, z, n};
  fn.body = make_stmt<For>(
      {}, j, whole(0), n, whole(1), LoopKind::serial, int64_t{1},
      make_stmt<Store>({}, z, j, make_binary(BinaryOp::pow, make_load(x, j), make_load(y, j))));
  Module m;
  m.name = "powers", m.functions = {fn};
  Loaded code(m);
  const unsigned seed = first_seed();
  SCOPED_TRACE("HIDET_TEST_SEED " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = NAN;
  std::vector<float> a, b;
  for (const float u : {0.f, -0.f, 1.f, -1.f, 2.f, -2.f, 0x1p-149f, -0x1p-149f, inf, -inf, nan})
    for (const float v : {0.f, -0.f, 1.f, -1.f, 3.f, -3.f, 0.5f, 2.f, 0x1p-149f, inf, -inf, nan})
      a.push_back(u), b.push_back(v);
  // NaN is quiet: the power 0 of a signalling one is NaN, of what the conversion to double makes of it 1.
  const auto any = [&random] {
    const float v = std::bit_cast<float>(static_cast<uint32_t>(random()));
    return v == v ? v : NAN;
  };
  for (int i = 0; i < 200000; i++) {
    a.push_back(any());
    b.push_back(i % 2 ? any() : static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 16);
  }
  std::vector<float> c(a.size());
  ASSERT_EQ(code.call("launch", {value(a.data()), value(b.data()), value(c.data()),
                                 value(static_cast<int64_t>(a.size()))}),
            0);
  for (size_t i = 0; i < a.size(); i++)
    ASSERT_LE(ulps(c[i], std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]))), 2.0)
        << a[i] << " to the power of " << b[i] << " gave " << c[i];
}

INSTANTIATE_TEST_SUITE_P(Functions, Math, ::testing::ValuesIn(kMathRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hidet::testing
