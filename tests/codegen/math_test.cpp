// Emitted f32 functions against double over a stride of all 2^32 inputs (NaN, infinities, denormals and both zeros among
// them): at most 2 ULP, vectors and single lanes equal to the bit. tests/bench/math runs all inputs.
#include "codegen/math_check.h"

#include <gtest/gtest.h>

#include <random>

namespace hidet::testing {
namespace {

class Math : public ::testing::TestWithParam<MathRow> {};

TEST_P(Math, WithinTwoPlaces) {
  MathChecker checker(GetParam());
  const unsigned start = std::random_device{}();
  SCOPED_TRACE("start " + std::to_string(start));
  // A prime stride: about 400,000 inputs of every exponent and sign.
  EXPECT_TRUE(checker.run(start, 10007, 16 * 26824)) << "vectors and scalars differ";
  // The ends of the ranges, and what lies beside them.
  for (const uint32_t bits :
       {0x00000000u, 0x80000000u, 0x00800000u, 0x80800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
        0x3f800000u, 0xbf800000u, 0x42b17218u, 0xc2aeac50u, 0xc2cff1b5u, 0x43000000u, 0xc3150000u})
    EXPECT_TRUE(checker.run(bits - 32, 1, 64)) << "vectors and scalars differ";
  std::printf("%s\n", checker.text().c_str());
  EXPECT_LE(checker.worst.error, 2.0) << checker.text();
}

INSTANTIATE_TEST_SUITE_P(Functions, Math, ::testing::ValuesIn(kMathRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hidet::testing
