// cache.h - the build cache: compiled objects and libraries on disk, found by everything that made them.
// Needs: nothing; without a usable folder the cache is off and says so once.
// Leaves: one file an entry in one flat folder, and no temporary file after a normal end.
// Threading: thread-safe, and safe between processes.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hidet::backends {

/// Everything that decides what a compiler makes: named fields, e.g. kind, compiler, target, options,
/// source. Two keys are equal when all names and values are; the digest only names the file.
class CacheKey {
 public:
  CacheKey() = default;
  /// `kind` says what the entry is ("object", "library", "cubin"); `label` is for people and is no part of the key.
  explicit CacheKey(std::string_view kind, std::string label = "");
  CacheKey& add(std::string_view name, std::string_view value);

  const std::string& text() const { return text_; }    ///< the full key, one text
  const std::string& label() const { return label_; }  ///< what people call it: a kernel's name
  /// The fields again, from a key's text; empty when the text is no key.
  static std::vector<std::pair<std::string, std::string>> fields(std::string_view text);

 private:
  std::string text_, label_;
};

/// One entry, for lists.
struct CacheEntry {
  std::string file;      ///< name in the cache's folder
  std::string label;     ///< CacheKey::label
  std::string kind;      ///< field "kind"
  std::string target;    ///< field "target"
  std::string compiler;  ///< field "compiler"
  uint64_t bytes = 0;    ///< size of the file
  uint64_t payload_bytes = 0;
  int64_t last_used = 0;  ///< seconds since 1970
  bool damaged = false;   ///< header, length or checksum are wrong
};

struct CacheStats {
  uint64_t hits = 0, misses = 0, stores = 0;
  uint64_t collisions = 0;  ///< another key with the same digest was there
  uint64_t damaged = 0;     ///< entries dropped because they were damaged
  uint64_t evicted = 0;     ///< entries dropped to stay under the size bound
};

struct CacheOptions {
  std::string folder;  ///< empty: no cache
  uint64_t max_bytes =
      1 << 30;                  ///< bound of all entries together; the least recently used go first
  int64_t stale_seconds = 600;  ///< temporary files older than this were left by a killed process
  /// Test hook: when set, gives every key's digest, so that two keys can be made to collide.
  std::function<std::string(std::string_view key)> digest = {};
};

/// Content-addressed store of compiled code.
class BuildCache {
 public:
  explicit BuildCache(CacheOptions options);
  ~BuildCache();
  BuildCache(const BuildCache&) = delete;
  BuildCache& operator=(const BuildCache&) = delete;

  /// The process's cache: HIDET_CACHE=off none; folder HIDET_CACHE_DIR, else $XDG_CACHE_HOME/hidet,
  /// else ~/.cache/hidet; bound HIDET_CACHE_SIZE (bytes, or with K, M, G; default 1G).
  static BuildCache& process();
  /// What process() is made from, read from the environment now.
  static CacheOptions options_from_environment();

  /// The payload stored for exactly this key; nothing on a miss, a damaged entry or an unreadable folder.
  std::optional<std::vector<uint8_t>> get(const CacheKey& key);
  /// Stores; a failure (full disk, read-only folder) is logged once and changes nothing.
  void put(const CacheKey& key, std::span<const uint8_t> payload);

  /// True while entries can be read; false when it is off or has no folder.
  bool enabled() const;
  const std::string& folder() const;
  std::vector<CacheEntry> list()
      const;         ///< newest use first; headers only, payloads are not checked
  uint64_t clear();  ///< removes entries and temporary files; bytes freed
  /// Reads every entry; the damaged ones, which are removed when `remove` is set.
  std::vector<CacheEntry> verify(bool remove = false);
  /// Why `key` is or is not there, in one sentence: present, damaged, or what differs from the nearest entry.
  std::string why(const CacheKey& key) const;
  /// For people: entries called `label` and how each differs from the newest of them.
  std::string why_label(std::string_view label) const;
  CacheStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hidet::backends
