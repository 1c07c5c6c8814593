// bundle_test.cpp - bundles of GPU code: round trip, and numbers that lie.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include <hidet/runtime/cuda_bundle.h>
#include <hidet/runtime/error.h>

using namespace hidet;
using namespace hidet::runtime;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<uint8_t> sample() {
  static const std::string a = "first piece", b = "", c(200, 'c');
  const CudaBundlePart parts[] = {
      {{"add", "mul"}, bytes_of(a)}, {{}, bytes_of(b)}, {{"third"}, bytes_of(c)}};
  return write_cuda_bundle(parts);
}

}  // namespace

TEST(CudaBundle, RoundTrip) {
  const std::vector<uint8_t> file = sample();
  const auto parts = read_cuda_bundle(std::as_bytes(std::span(file)));
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].kernels, (std::vector<std::string>{"add", "mul"}));
  EXPECT_EQ(text_of(parts[0].code), "first piece");
  EXPECT_TRUE(parts[1].kernels.empty());
  EXPECT_TRUE(parts[1].code.empty());
  EXPECT_EQ(text_of(parts[2].code), std::string(200, 'c'));
  EXPECT_EQ((reinterpret_cast<const uint8_t*>(parts[2].code.data()) - file.data()) % 64, 0);
  EXPECT_EQ(file, sample());
}

TEST(CudaBundle, PlainCodeIsOnePiece) {
  const std::string elf = "\177ELF and so on";
  const auto parts = read_cuda_bundle(bytes_of(elf));
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(text_of(parts[0].code), elf);
  EXPECT_EQ(read_cuda_bundle({}).size(), 1U);
}

TEST(CudaBundle, EmptyBundle) {
  const auto file = write_cuda_bundle({});
  EXPECT_TRUE(read_cuda_bundle(std::as_bytes(std::span(file))).empty());
}

TEST(CudaBundle, EveryTruncationAndManyFlipsAreErrorsOrViewsInside) {
  const std::vector<uint8_t> file = sample();
  const auto inside = [](const std::vector<uint8_t>& bytes) {
    try {
      for (const CudaBundlePart& part : read_cuda_bundle(std::as_bytes(std::span(bytes)))) {
        const auto* at = reinterpret_cast<const uint8_t*>(part.code.data());
        EXPECT_GE(at, bytes.data());
        EXPECT_LE(at + part.code.size(), bytes.data() + bytes.size());
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
    }
  };
  for (size_t size = 8; size < file.size(); ++size)
    inside({file.begin(), file.begin() + static_cast<ptrdiff_t>(size)});
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    std::vector<uint8_t> damaged = file;
    for (int k = 0; k < 3; ++k) damaged[8 + random() % 120] = static_cast<uint8_t>(random());
    inside(damaged);
  }
}
