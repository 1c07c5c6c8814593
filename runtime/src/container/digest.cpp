// digest.cpp - CRC-32 by tables of 16 bytes a step, joined over chunks; XXH3-128 from the header-only xxhash.
// Threading: thread-safe.
#include "src/container/digest.h"

#include <algorithm>
#include <array>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hidet/runtime/error.h"
#include "hidet/runtime/thread_pool.h"

namespace hidet::runtime {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;
constexpr size_t kChunk = size_t{1} << 20;
using Tables = std::array<std::array<uint32_t, 256>, 16>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) ? kPolynomial : 0);
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t k = 1; k < 16; ++k) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
  return t;
}
constexpr Tables kTables = make_tables();

uint32_t crc_of_chunk(const std::byte* p, size_t n) {
  uint32_t crc = ~0u;
  for (; n >= 16; p += 16, n -= 16) {
    uint32_t w[4];
    std::memcpy(w, p, 16);
    w[0] ^= crc;
    crc = 0;
    for (int k = 0; k < 4; ++k)
      for (int b = 0; b < 4; ++b) crc ^= kTables[15 - 4 * k - b][(w[k] >> (8 * b)) & 255];
  }
  for (; n > 0; ++p, --n) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint32_t>(*p)) & 255];
  return ~crc;
}

/// a * b modulo the polynomial, bit-reflected: the highest bit is x^0.
uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ ((b & 1) ? kPolynomial : 0);
  }
  return product;
}

/// x^(8 * bytes) modulo the polynomial.
uint32_t shift_of(uint64_t bytes) {
  uint32_t result = 1u << 31, square = 1u << 23;  // 1 and x^8
  for (; bytes != 0; bytes >>= 1) {
    if (bytes & 1) result = multiply(result, square);
    square = multiply(square, square);
  }
  return result;
}

}  // namespace

uint32_t crc32_join(uint32_t a, uint32_t b, uint64_t b_bytes) {
  return multiply(shift_of(b_bytes), a) ^ b;
}

uint32_t crc32(std::span<const std::byte> bytes) {
  if (bytes.size() <= kChunk) return crc_of_chunk(bytes.data(), bytes.size());
  const int64_t chunks = static_cast<int64_t>((bytes.size() + kChunk - 1) / kChunk);
  std::vector<uint32_t> crcs(chunks);
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t offset = i * kChunk;
      crcs[i] = crc_of_chunk(bytes.data() + offset, std::min(kChunk, bytes.size() - offset));
    }
  });
  uint32_t crc = crcs[0];
  for (int64_t i = 1; i < chunks; ++i)
    crc = crc32_join(crc, crcs[i], std::min(kChunk, bytes.size() - i * kChunk));
  return crc;
}

std::string xxh3_hex(std::span<const std::span<const std::byte>> parts) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const auto& part : parts)
    if (!part.empty()) XXH3_128bits_update(&state, part.data(), part.size());
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(&state));
  std::string text;
  for (const unsigned char c : bytes.digest) {
    text += "0123456789abcdef"[c >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}

std::string xxh3_hex(std::span<const std::byte> bytes) {
  const std::span<const std::byte> parts[] = {bytes};
  return xxh3_hex(parts);
}

}  // namespace hidet::runtime
