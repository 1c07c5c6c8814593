// entry.cpp - reads and writes entries of the build cache.
// Layout: magic, three lengths, 128-bit checksum (48 bytes), then key, label, payload. Integers are
// this machine's: a cache never travels.
// Threading: pure functions on files.
#include "cache/entry.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hidet::backends::cache {
namespace {

struct Header {
  char magic[8];
  uint64_t key_bytes, label_bytes, payload_bytes;
  uint64_t sum_low, sum_high;
};
static_assert(sizeof(Header) == 48);
constexpr char kMagic[8] = {'H', 'I', 'D', 'E', 'T', 'B', 'C', '1'};
constexpr uint64_t kMaxLength = uint64_t(1) << 40;

/// Checksum of the lengths and of everything after the header.
XXH128_hash_t checksum(const Header& header, std::string_view key, std::string_view label,
                       std::span<const uint8_t> payload) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, &header, offsetof(Header, sum_low));
  XXH3_128bits_update(&state, key.data(), key.size());
  XXH3_128bits_update(&state, label.data(), label.size());
  XXH3_128bits_update(&state, payload.data(), payload.size());
  return XXH3_128bits_digest(&state);
}

bool read_all(int fd, void* to, size_t size) {
  auto* out = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::read(fd, out, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

int write_all(int fd, const void* from, size_t size) {
  const auto* in = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t written = ::write(fd, in, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    in += written;
    size -= static_cast<size_t>(written);
  }
  return 0;
}

/// Magic and lengths agree with the file's size, so that nothing beyond the file is allocated.
bool plausible(const Header& header, uint64_t file_bytes) {
  return std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 && header.key_bytes < kMaxLength &&
         header.label_bytes < kMaxLength && header.payload_bytes < kMaxLength &&
         entry_bytes(header.key_bytes, header.label_bytes, header.payload_bytes) == file_bytes;
}

ReadResult read_open(int fd, ReadDepth depth, EntryContent& content) {
  struct stat info;
  Header header;
  if (fstat(fd, &info) != 0 || !read_all(fd, &header, sizeof header) ||
      !plausible(header, static_cast<uint64_t>(info.st_size)))
    return ReadResult::damaged;
  content.key.resize(header.key_bytes);
  content.label.resize(header.label_bytes);
  content.payload_bytes = header.payload_bytes;
  if (!read_all(fd, content.key.data(), content.key.size()) ||
      !read_all(fd, content.label.data(), content.label.size()))
    return ReadResult::damaged;
  if (depth == ReadDepth::head) return ReadResult::good;
  content.payload.resize(header.payload_bytes);
  if (!read_all(fd, content.payload.data(), content.payload.size())) return ReadResult::damaged;
  const XXH128_hash_t sum = checksum(header, content.key, content.label, content.payload);
  return sum.low64 == header.sum_low && sum.high64 == header.sum_high ? ReadResult::good
                                                                      : ReadResult::damaged;
}

}  // namespace

ReadResult read_entry(const std::string& path, ReadDepth depth, bool touch, EntryContent& content) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return ReadResult::missing;
  const ReadResult result = read_open(fd, depth, content);
  if (touch && result == ReadResult::good) futimens(fd, nullptr);
  close(fd);
  return result;
}

int write_entry(int fd, std::string_view key, std::string_view label,
                std::span<const uint8_t> payload) {
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key_bytes = key.size();
  header.label_bytes = label.size();
  header.payload_bytes = payload.size();
  const XXH128_hash_t sum = checksum(header, key, label, payload);
  header.sum_low = sum.low64;
  header.sum_high = sum.high64;
  int error = write_all(fd, &header, sizeof header);
  if (error == 0) error = write_all(fd, key.data(), key.size());
  if (error == 0) error = write_all(fd, label.data(), label.size());
  if (error == 0) error = write_all(fd, payload.data(), payload.size());
  return error;
}

uint64_t entry_bytes(size_t key, size_t label, size_t payload) {
  return sizeof(Header) + uint64_t(key) + label + payload;
}

std::string key_digest(std::string_view key) {
  const XXH128_hash_t sum = XXH3_128bits(key.data(), key.size());
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, sum);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace hidet::backends::cache
