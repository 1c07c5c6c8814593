// store.h - the inside of BuildCache: its folder, its numbers, and how files come and go.
// Threading: as BuildCache; `mutex` guards the numbers, the folder is guarded by rename.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "cache/entry.h"
#include "hidet/backends/cache.h"

namespace hidet::backends {

/// A file of the cache's folder.
struct CacheFile {
  std::string name;
  uint64_t bytes = 0;
  int64_t used_ns = 0;  ///< time of last use, nanoseconds since 1970
  bool temporary = false;
};

struct BuildCache::Impl {
  CacheOptions options;
  mutable std::mutex mutex;
  mutable CacheStats stats;
  bool scanned = false;
  uint64_t known_bytes = 0;            ///< all entries at the last scan
  uint64_t written_bytes = 0;          ///< by this process since then
  std::atomic<bool> write_off{false};  ///< the folder cannot be written

  std::string path_of(const CacheKey& key) const;
  std::string path_of_file(const std::string& name) const { return options.folder + "/" + name; }
  /// Entries and temporary files; empty when the folder cannot be read.
  std::vector<CacheFile> files() const;
  /// Drops stale temporary files, and least recently used entries until `incoming` bytes more fit.
  void make_room(uint64_t incoming);
  /// Writes to a temporary file and renames it; 0 or errno.
  int store(const CacheKey& key, std::span<const uint8_t> payload);
};

}  // namespace hidet::backends
