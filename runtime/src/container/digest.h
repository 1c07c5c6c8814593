// digest.h - CRC-32 (what zip wants) and XXH3-128 (what the manifest holds).
// Threading: pure functions; thread-safe. Large inputs of crc32 are cut over the thread pool.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hidet::runtime {

uint32_t crc32(std::span<const std::byte> bytes);
/// The CRC of a followed by b, from their CRCs and b's length.
uint32_t crc32_join(uint32_t a, uint32_t b, uint64_t b_bytes);
/// 32 hexadecimal digits of the parts in a row.
std::string xxh3_hex(std::span<const std::span<const std::byte>> parts);
std::string xxh3_hex(std::span<const std::byte> bytes);

}  // namespace hidet::runtime
