// entry.h - one file of the build cache: header, key, label, payload, and a checksum over all of them.
// Threading: pure functions on files.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hidet::backends::cache {

/// What a read of an entry gave.
enum class ReadResult { good, missing, damaged };

struct EntryContent {
  std::string key, label;
  std::vector<uint8_t> payload;
  uint64_t payload_bytes = 0;  ///< also set when the payload was not read
};

enum class ReadDepth {
  head,  ///< key and label; lengths are checked, the checksum is not
  all,   ///< payload too, everything checked
};

/// Reads the file; `touch` sets its time of last use to now (as far as the file system allows).
ReadResult read_entry(const std::string& path, ReadDepth depth, bool touch, EntryContent& content);

/// Writes a whole entry into an open file; 0 or errno. The file is not synchronised: what a power cut
/// leaves half written is found by its checksum and dropped.
int write_entry(int fd, std::string_view key, std::string_view label,
                std::span<const uint8_t> payload);

/// Bytes of the file that write_entry makes.
uint64_t entry_bytes(size_t key, size_t label, size_t payload);

/// 32 hexadecimal digits of XXH3-128: the entry's file name.
std::string key_digest(std::string_view key);

}  // namespace hidet::backends::cache
