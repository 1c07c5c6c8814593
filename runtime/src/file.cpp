// file.cpp - a file that is there whole or not at all: temporary file, rename, and where asked fsync of file and folder.
// Threading: thread-safe; of two writers of one path the later rename wins.
#include "hidet/runtime/file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "hidet/runtime/error.h"

namespace hidet::runtime {
namespace {

using Parts = std::span<const std::span<const std::byte>>;

[[noreturn]] void fail(const std::string& path, const char* what, int reason) {
  throw Error(ErrorCode::io,
              detail::concat("cannot write '", path, "': ", what, ": ", std::strerror(reason)));
}

void write_parts(int fd, Parts parts, const std::string& path) {
  std::vector<iovec> list;
  for (const std::span<const std::byte> part : parts)
    if (!part.empty()) list.push_back({const_cast<std::byte*>(part.data()), part.size()});
  for (size_t next = 0; next < list.size();) {
    const ssize_t done =
        writev(fd, &list[next], static_cast<int>(std::min<size_t>(list.size() - next, IOV_MAX)));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(path, "write", errno);
    for (size_t left = static_cast<size_t>(done); left > 0;) {
      const size_t taken = std::min(left, list[next].iov_len);
      list[next].iov_base = static_cast<char*>(list[next].iov_base) + taken;
      left -= taken;
      if ((list[next].iov_len -= taken) == 0) ++next;
    }
  }
}

/// An open file; closed at the latest by the destructor.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(open(path.c_str(), flags, 0666)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

/// The new file until it has its final name; removed when anything fails.
class Temporary {
 public:
  explicit Temporary(const std::string& target)
      : target_(target),
        path_(fresh_name(target)),
        fd_(path_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC) {
    if (fd_ < 0) fail(target_, "cannot create a file in its folder", errno);
    made_ = true;
  }
  ~Temporary() {
    if (made_) unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

  void write(Parts parts, bool durable) {
    write_parts(fd_, parts, target_);
    if (durable && fsync(fd_) != 0) fail(target_, "fsync", errno);
    if (fd_.close() != 0) fail(target_, "close", errno);
  }
  void rename_to_target() {
    if (rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "rename", errno);
    made_ = false;
  }

 private:
  static std::string fresh_name(const std::string& target) {
    static std::atomic<uint64_t> counter{0};
    return detail::concat(target, ".", getpid(), "-", counter++, ".tmp");
  }
  const std::string& target_;
  const std::string path_;
  Descriptor fd_;
  bool made_ = false;
};

void sync_folder(const std::filesystem::path& folder, const std::string& path) {
  const Descriptor fd(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot open its folder", errno);
  // Some file systems cannot sync a folder; the rename has happened.
  if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS) fail(path, "fsync of its folder", errno);
}

void write_device(const std::string& path, Parts parts) {
  Descriptor fd(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail(path, "open", errno);
  write_parts(fd, parts, path);
  if (fd.close() != 0) fail(path, "close", errno);
}

}  // namespace

void write_file(const std::string& path, Parts parts, const WriteOptions& options) {
  struct stat info;
  const bool there = stat(path.c_str(), &info) == 0;
  if (there && !S_ISREG(info.st_mode)) {
    if (options.regular || S_ISDIR(info.st_mode)) fail(path, "it is not a regular file", EEXIST);
    return write_device(path, parts);
  }
  std::error_code error;
  std::filesystem::path target = path;
  if (there) target = std::filesystem::canonical(target, error);
  if (error) fail(path, "cannot follow the link", error.value());
  const std::filesystem::path folder = target.parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) fail(path, "cannot make its folder", error.value());
  const std::string final_path = target;
  Temporary file(final_path);
  file.write(parts, options.durable);
  if (options.check) options.check(file.path());
  file.rename_to_target();
  if (options.durable) sync_folder(folder, path);
}

void write_file(const std::string& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  write_file(path, {&part, 1});
}

}  // namespace hidet::runtime
