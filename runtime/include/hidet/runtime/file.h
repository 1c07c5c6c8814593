// file.h - writes a file whole or not at all.
// Threading: thread-safe; of two writers of one path the later one wins.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hidet::runtime {

/// How write_file writes.
struct WriteOptions {
  /// On the disk when the call returns: the file and its folder are synced.
  bool durable = false;
  /// Only a regular file may be there before; otherwise a pipe, a terminal or another device is written to as it is.
  bool regular = false;
  /// Looks at the new file, given its path, before it takes the place of the old one; throws to keep the old one.
  void (*check)(const std::string& path) = nullptr;
};

/// Writes the parts beside `path` and renames the result to it; its folder is made where it is missing, and a symbolic
/// link stays one. On any failure the old file stays, the new one goes, and Error(io) names the path.
void write_file(const std::string& path, std::span<const std::span<const std::byte>> parts,
                const WriteOptions& options = {});
/// The same for text.
void write_file(const std::string& path, std::string_view text);

}  // namespace hidet::runtime
