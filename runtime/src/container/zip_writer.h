// zip_writer.h - lays out a zip of stored entries, data aligned to 64 bytes, from views of memory: nothing is copied,
// the same entries give the same bytes. Own code, as libzip neither aligns nor syncs, would compute its checksum
// byte by byte through small buffers and brings libcrypto along.
// Threading: values; one thread at a time.
#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace hidet::runtime {

/// A piece of an entry's data, with its checksum.
struct ZipPart {
  std::span<const std::byte> bytes;
  uint32_t crc = 0;
};
ZipPart zip_part(std::span<const std::byte> bytes);
ZipPart zip_part(std::string_view text);

/// The whole file as pieces in a row: headers that it owns and the data given to it, which must stay.
class ZipLayout {
 public:
  /// Appends an entry. The name must be good_entry_name and new.
  void add(const std::string& name, std::vector<ZipPart> data);
  /// Appends the directory; nothing can be added after it.
  void finish();
  const std::vector<ZipPart>& parts() const { return parts_; }
  uint64_t size() const { return size_; }

 private:
  struct Entry {
    std::string name;
    uint64_t offset, size;
    uint32_t crc;
  };
  void append(std::string bytes);
  std::deque<std::string> owned_;
  std::vector<ZipPart> parts_;
  std::vector<Entry> entries_;
  uint64_t size_ = 0;
};

}  // namespace hidet::runtime
