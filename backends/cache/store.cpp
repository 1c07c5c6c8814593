// store.cpp - BuildCache: look up, store, bound the size, list, clear, verify.
// An entry appears by rename, so a reader sees all of it or nothing, whatever other processes do and
// wherever one of them is killed. No locks between processes: the worst that a race costs is a second
// compile of the same text.
// Threading: thread-safe.
#include "cache/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "hidet/runtime/error.h"
#include "hidet/runtime/log.h"

namespace hidet::backends {
namespace {

constexpr std::string_view kSuffix = ".entry";
constexpr std::string_view kTemporary = ".tmp-";

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

/// Makes the folder and those above it, private to the user; 0 or errno.
int make_folders(const std::string& folder) {
  for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string part = folder.substr(0, end);
    struct stat info;
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;  // on a read-only file system a folder that exists gives no EEXIST
      if (stat(part.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return error;
    }
    if (end == folder.npos) return 0;
  }
}

/// Opens a new temporary file in the folder, made first where it is not there; -1 and errno.
int open_temporary(const std::string& folder, std::string& path) {
  static std::atomic<uint64_t> counter{std::random_device{}()};
  int error = 0;
  // The folder may vanish between the two steps when another process clears it.
  for (int attempt = 0; attempt < 8; ++attempt) {
    path =
        detail::concat(folder, "/", kTemporary, getpid(), "-", counter.fetch_add(1), "-", now_ns());
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    error = errno;
    if (error == ENOENT) error = make_folders(folder);
    else if (error != EEXIST) break;
    if (error != 0 && error != EEXIST && error != ENOENT) break;
  }
  errno = error != 0 ? error : ENOENT;
  return -1;
}

std::string field(const std::vector<std::pair<std::string, std::string>>& fields,
                  std::string_view name) {
  for (const auto& [key, value] : fields)
    if (key == name) return value;
  return "";
}

}  // namespace

std::string BuildCache::Impl::path_of(const CacheKey& key) const {
  const std::string digest =
      options.digest ? options.digest(key.text()) : cache::key_digest(key.text());
  return path_of_file(digest + std::string(kSuffix));
}

std::vector<CacheFile> BuildCache::Impl::files() const {
  std::vector<CacheFile> found;
  DIR* folder = options.folder.empty() ? nullptr : opendir(options.folder.c_str());
  if (folder == nullptr) return found;
  while (const dirent* item = readdir(folder)) {
    const std::string_view name = item->d_name;
    CacheFile file;
    file.temporary = name.substr(0, kTemporary.size()) == kTemporary;
    // Anything else is not ours and stays.
    if (!file.temporary &&
        (name.size() <= kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix))
      continue;
    struct stat info;
    if (fstatat(dirfd(folder), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode))
      continue;
    file.name = name;
    file.bytes = static_cast<uint64_t>(info.st_size);
    file.used_ns = int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
    found.push_back(std::move(file));
  }
  closedir(folder);
  return found;
}

void BuildCache::Impl::make_room(uint64_t incoming) {
  // Other processes write too, so the folder is read again after each 1/32 of the bound.
  const uint64_t bound = options.max_bytes;
  const bool fits = known_bytes + written_bytes + incoming <= bound && written_bytes <= bound / 32;
  if (scanned && fits) return;
  std::vector<CacheFile> all = files();
  const int64_t stale = now_ns() - options.stale_seconds * 1000000000;
  uint64_t total = 0;
  for (const CacheFile& file : all) {
    if (!file.temporary) total += file.bytes;
    else if (file.used_ns < stale) unlink(path_of_file(file.name).c_str());
  }
  if (total + incoming > bound) {
    std::sort(all.begin(), all.end(),
              [](const CacheFile& a, const CacheFile& b) { return a.used_ns < b.used_ns; });
    const uint64_t wanted = bound / 8 * 7;  // some slack, so that not every store reads the folder
    for (const CacheFile& file : all) {
      if (total + incoming <= wanted || file.temporary) continue;
      unlink(path_of_file(file.name).c_str());
      total -= file.bytes;
      ++stats.evicted;
    }
  }
  scanned = true;
  known_bytes = total;
  written_bytes = 0;
}

int BuildCache::Impl::store(const CacheKey& key, std::span<const uint8_t> payload) {
  std::string temporary;
  const int fd = open_temporary(options.folder, temporary);
  if (fd < 0) return errno;
  int error = cache::write_entry(fd, key.text(), key.label(), payload);
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path_of(key).c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

BuildCache::BuildCache(CacheOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
}
BuildCache::~BuildCache() = default;

std::optional<std::vector<uint8_t>> BuildCache::get(const CacheKey& key) {
  if (!enabled()) return std::nullopt;
  const std::string path = impl_->path_of(key);
  cache::EntryContent content;
  const cache::ReadResult result = cache::read_entry(path, cache::ReadDepth::all, true, content);
  std::lock_guard lock(impl_->mutex);
  if (result == cache::ReadResult::good && content.key == key.text()) {
    ++impl_->stats.hits;
    return std::move(content.payload);
  }
  ++impl_->stats.misses;
  if (result == cache::ReadResult::good) ++impl_->stats.collisions;
  if (result == cache::ReadResult::damaged) {
    ++impl_->stats.damaged;
    unlink(path.c_str());
  }
  return std::nullopt;
}

void BuildCache::put(const CacheKey& key, std::span<const uint8_t> payload) {
  const uint64_t bytes = cache::entry_bytes(key.text().size(), key.label().size(), payload.size());
  if (!enabled() || impl_->write_off || bytes > impl_->options.max_bytes) return;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->make_room(bytes);
  }
  const int error = impl_->store(key, payload);
  std::lock_guard lock(impl_->mutex);
  if (error == 0) {
    ++impl_->stats.stores;
    impl_->written_bytes += bytes;
    return;
  }
  if (error == ENOENT) return;  // another process removed the folder meanwhile
  // A full disk may have room again later; a folder that may not be written stays so.
  impl_->write_off = error != ENOSPC && error != EDQUOT;
  log_once("build cache",
           detail::concat("the build cache '", folder(), "' cannot be written (",
                          std::strerror(error), "): what is compiled now is not kept"));
}

bool BuildCache::enabled() const { return !impl_->options.folder.empty(); }
const std::string& BuildCache::folder() const { return impl_->options.folder; }

std::vector<CacheEntry> BuildCache::list() const {
  std::vector<CacheFile> files = impl_->files();
  std::sort(files.begin(), files.end(),
            [](const CacheFile& a, const CacheFile& b) { return a.used_ns > b.used_ns; });
  std::vector<CacheEntry> entries;
  for (const CacheFile& file : files) {
    if (file.temporary) continue;
    cache::EntryContent content;
    const auto result =
        cache::read_entry(impl_->path_of_file(file.name), cache::ReadDepth::head, false, content);
    if (result == cache::ReadResult::missing) continue;  // removed since
    CacheEntry entry;
    entry.file = file.name;
    entry.bytes = file.bytes;
    entry.last_used = file.used_ns / 1000000000;
    entry.damaged = result == cache::ReadResult::damaged;
    if (!entry.damaged) {
      const auto fields = CacheKey::fields(content.key);
      entry.label = content.label;
      entry.kind = field(fields, "kind");
      entry.target = field(fields, "target");
      entry.compiler = field(fields, "compiler");
      entry.payload_bytes = content.payload_bytes;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

uint64_t BuildCache::clear() {
  uint64_t freed = 0;
  const int64_t stale = now_ns() - impl_->options.stale_seconds * 1000000000;
  for (const CacheFile& file : impl_->files()) {
    if (file.temporary && file.used_ns >= stale) continue;  // another process is writing it
    if (unlink(impl_->path_of_file(file.name).c_str()) == 0) freed += file.bytes;
  }
  std::lock_guard lock(impl_->mutex);
  impl_->scanned = false;
  return freed;
}

std::vector<CacheEntry> BuildCache::verify(bool remove) {
  std::vector<CacheEntry> damaged;
  for (CacheEntry& entry : list()) {
    const std::string path = impl_->path_of_file(entry.file);
    cache::EntryContent content;
    const auto result = cache::read_entry(path, cache::ReadDepth::all, false, content);
    if (result != cache::ReadResult::damaged) continue;
    entry.damaged = true;
    if (remove) unlink(path.c_str());
    damaged.push_back(std::move(entry));
  }
  return damaged;
}

CacheStats BuildCache::stats() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->stats;
}

}  // namespace hidet::backends
