// digest.cpp - CRC-32 by carry-less products (by tables on a CPU without them), joined over chunks; XXH3-128 from the header-only xxhash.
// Threading: thread-safe.
#include "src/container/digest.h"

#include <immintrin.h>

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

/// The register after `n` more bytes; no inversion at either end.
uint32_t crc_by_tables(uint32_t crc, const std::byte* p, size_t n) {
  for (; n >= 16; p += 16, n -= 16) {
    uint32_t w[4];
    std::memcpy(w, p, 16);
    w[0] ^= crc;
    crc = 0;
    for (int k = 0; k < 4; ++k)
      for (int b = 0; b < 4; ++b) crc ^= kTables[15 - 4 * k - b][(w[k] >> (8 * b)) & 255];
  }
  for (; n > 0; ++p, --n) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint32_t>(*p)) & 255];
  return crc;
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

/// base^n modulo the polynomial.
uint32_t power(uint32_t base, uint64_t n) {
  uint32_t result = 1u << 31;  // x^0
  for (; n != 0; n >>= 1, base = multiply(base, base))
    if (n & 1) result = multiply(result, base);
  return result;
}
constexpr uint32_t kX1 = 1u << 30, kX8 = 1u << 23;

/// Factors that move a register of 128 bits `bits` further in the message. Its first 8 bytes are the upper half of the
/// polynomial. A product of two reflected halves comes out times x, so the exponents are one less.
struct Fold {
  explicit Fold(uint64_t bits)
      : upper(uint64_t{power(kX1, bits + 63)} << 32), lower(uint64_t{power(kX1, bits - 1)} << 32) {}
  uint64_t upper, lower;
};

/// As crc_by_tables, by carry-less products of 64 bytes a step: as fast as memory.
__attribute__((target("pclmul,sse4.1"))) uint32_t crc_by_products(uint32_t crc, const std::byte* p,
                                                                  size_t n) {
  if (n < 64) return crc_by_tables(crc, p, n);
  static const Fold by_64_bytes(512), by_16_bytes(128);
  const auto load = [](const std::byte* at) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
  const auto moved = [](__m128i x, __m128i k) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11));
  };
  const auto factors = [](const Fold& f) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_set_epi64x(static_cast<int64_t>(f.lower), static_cast<int64_t>(f.upper));
  };
  __m128i x[4];
  for (int i = 0; i < 4; ++i) x[i] = load(p + 16 * i);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  const __m128i far = factors(by_64_bytes), near = factors(by_16_bytes);
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
    for (int i = 0; i < 4; ++i) x[i] = _mm_xor_si128(moved(x[i], far), load(p + 16 * i));
  for (int i = 1; i < 4; ++i) x[i] = _mm_xor_si128(moved(x[i - 1], near), x[i]);
  std::byte rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), x[3]);
  return crc_by_tables(crc_by_tables(0, rest, sizeof rest), p, n);
}

uint32_t crc_of_chunk(const std::byte* p, size_t n) {
  static const bool products = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return ~(products ? crc_by_products(~0u, p, n) : crc_by_tables(~0u, p, n));
}

}  // namespace

uint32_t crc32_join(uint32_t a, uint32_t b, uint64_t b_bytes) {
  return multiply(power(kX8, b_bytes), a) ^ b;
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
