// The table of dtypes, devices, and the bit conversions against the compiler's own and exact values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/runtime/device.h>
#include <hidet/runtime/dtype.h>
#include <hidet/runtime/error.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace hidet {
namespace {

TEST(DType, Table) {
  EXPECT_STREQ(f32.name(), "f32");
  EXPECT_STREQ(bf16.c_name(), "uint16_t");
  EXPECT_STREQ(i64.numpy_name(), "<i8");
  EXPECT_EQ(i4.bytes_of(3), 2);
  EXPECT_EQ(f64.bytes_of(3), 24);
  EXPECT_TRUE(f8e4m3.is_float());
  EXPECT_FALSE(boolean.is_integer());
  EXPECT_TRUE(u4.is_integer());
  EXPECT_FALSE(u4.is_signed());
  EXPECT_EQ(i8.min_int(), -128);
  EXPECT_EQ(i4.min_int(), -8);
  EXPECT_EQ(i4.max_int(), 7u);
  EXPECT_EQ(i64.min_int(), INT64_MIN);
  EXPECT_EQ(i64.max_int(), static_cast<uint64_t>(INT64_MAX));
  EXPECT_EQ(u64.max_int(), UINT64_MAX);
  EXPECT_EQ(boolean.max_int(), 1u);
  EXPECT_THROW(f32.max_int(), Error);
}

TEST(DType, Parse) {
  for (int i = 0; i < kNumDTypes; i++) {
    const DType dtype(static_cast<DTypeCode>(i));
    EXPECT_EQ(DType::parse(dtype.name()), dtype);
  }
  EXPECT_EQ(DType::parse("float32"), f32);
  EXPECT_EQ(DType::parse("bool"), boolean);
  EXPECT_EQ(DType::parse("bfloat16"), bf16);
  for (const char* wrong : {"", " ", "f", "F32", "float32 float"}) {
    try {
      DType::parse(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr("bf16"));
    }
  }
}

TEST(Device, Text) {
  EXPECT_EQ(Device("cpu").name(), "cpu");
  EXPECT_EQ(Device("cuda"), Device("cuda:0"));
  EXPECT_EQ(Device("cuda:12").index(), 12);
  for (const char* wrong :
       {"", "gpu", "cuda:", "cuda:-1", "cuda1", "cuda:1x", "cuda:99999999999", "cpu:0"})
    EXPECT_THROW(Device{wrong}, Error) << wrong;
  EXPECT_THROW(Device(static_cast<const char*>(nullptr)), Error);
}

TEST(Half, EveryF16RoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = f16_to_f32(half);
    if ((half & 0x7c00) == 0x7c00 && (half & 0x3ff)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
      continue;
    }
    ASSERT_EQ(f32_to_f16(value), half);
    ASSERT_EQ(f64_to_f16(static_cast<double>(value)), half);
  }
}

TEST(Half, EveryBf16RoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = bf16_to_f32(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
      EXPECT_TRUE(std::isnan(bf16_to_f32(f64_to_bf16(static_cast<double>(value)))));
      continue;
    }
    ASSERT_EQ(f32_to_bf16(value), half);
    ASSERT_EQ(f64_to_bf16(static_cast<double>(value)), half);
  }
}

TEST(Half, KnownRoundings) {
  EXPECT_EQ(f32_to_f16(1.0f), 0x3c00);
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65519.99f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);  // half way: even is infinity
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(0x1p-24f), 0x0001);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);  // half of the least: even is 0
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 0x0001);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(f32_to_f16(1 + 0x1p-11f), 0x3c00);           // tie to even
  EXPECT_EQ(f32_to_f16(1 + 0x1.8p-10f), 0x3c02);         // tie to even, upwards
  EXPECT_EQ(f64_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);  // through float it would be 0x3c00
  EXPECT_EQ(f32_to_bf16(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(f64_to_bf16(1e300), 0x7f80);
}

// Both neighbours of a random float are candidates: the nearer one must come.
TEST(Half, RandomRoundings) {
  std::mt19937 rng(7);
  for (int i = 0; i < 100000; i++) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    if (!std::isfinite(value) || std::fabs(value) > 65000) continue;
    const uint16_t half = f32_to_f16(value);
    const double error = std::fabs(static_cast<double>(f16_to_f32(half)) - value);
    for (const int step : {-1, 1}) {
      const auto other = static_cast<uint16_t>(half + step);
      if ((half & 0x7fff) == 0 && step < 0) continue;
      ASSERT_LE(error, std::fabs(static_cast<double>(f16_to_f32(other)) - value)) << value;
    }
  }
}

TEST(Error, CheckNamesThePlace) {
  try {
    HIDET_CHECK(1 == 2, "sizes ", 3);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::internal);
    EXPECT_THAT(e.what(),
                ::testing::AllOf(::testing::HasSubstr("dtype_test.cpp:"),
                                 ::testing::HasSubstr("1 == 2"), ::testing::HasSubstr("sizes 3")));
  }
}

}  // namespace
}  // namespace hidet
