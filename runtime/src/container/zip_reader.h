// zip_reader.h - strict reader of stored zip files: finds the data in place, trusts no number.
// Threading: pure functions; thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace hidet::runtime {

/// Where an entry's data is.
struct ZipEntry {
  uint64_t offset = 0, size = 0;
  uint32_t crc = 0;
};
struct ZipDirectory {
  std::map<std::string, ZipEntry, std::less<>> entries;
  std::string first;  ///< name of the entry that comes first in the directory
};

/// Reads the central directory and every local header. Throws Error(bad_file) at `where` that names the entry: not a
/// zip, cut, compressed or encrypted entries, names that are absolute, double or leave the folder, entries that
/// overlap, sizes and counts that do not fit the file.
ZipDirectory read_zip(std::span<const std::byte> file, const std::string& where);

/// True for a name that an entry may have: relative, no "..", no empty part, no backslash, no control character.
bool good_entry_name(std::string_view name);

}  // namespace hidet::runtime
