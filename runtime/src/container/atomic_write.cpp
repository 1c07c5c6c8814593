// atomic_write.cpp - a file that is there whole or not at all: temporary file, fsync, rename, fsync of the folder.
// Threading: thread-safe; of two writers of one path the later rename wins.
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

#include "hidet/runtime/error.h"
#include "src/container/zip_writer.h"

namespace hidet::runtime {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int reason) {
  throw Error(ErrorCode::io,
              detail::concat("cannot save '", path, "': ", what, ": ", std::strerror(reason)));
}

/// The new file until it has its final name; removed when anything fails.
class Temporary {
 public:
  explicit Temporary(const std::string& target) : target_(target) {
    static std::atomic<uint64_t> counter{0};
    path_ = detail::concat(target, ".", getpid(), "-", counter++, ".tmp");
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail(target_, "cannot create a file in its folder", errno);
  }
  ~Temporary() {
    if (fd_ >= 0) close(fd_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

  void write(std::span<const ZipPart> parts) {
    std::vector<iovec> list;
    for (const ZipPart& part : parts)
      if (!part.bytes.empty())
        list.push_back({const_cast<std::byte*>(part.bytes.data()), part.bytes.size()});
    for (size_t next = 0; next < list.size();) {
      const ssize_t done =
          writev(fd_, &list[next], static_cast<int>(std::min<size_t>(list.size() - next, IOV_MAX)));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail(target_, "write", errno);
      for (size_t left = static_cast<size_t>(done); left > 0;) {
        const size_t taken = std::min(left, list[next].iov_len);
        list[next].iov_base = static_cast<char*>(list[next].iov_base) + taken;
        left -= taken;
        if ((list[next].iov_len -= taken) == 0) ++next;
      }
    }
  }
  void sync() {
    if (fsync(fd_) != 0) fail(target_, "fsync", errno);
    const int fd = std::exchange(fd_, -1);
    if (close(fd) != 0) fail(target_, "close", errno);
  }
  void rename_to_target() {
    if (rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "rename", errno);
    path_.clear();
  }

 private:
  const std::string& target_;
  std::string path_;
  int fd_ = -1;
};

}  // namespace

void write_atomically(const std::string& path, std::span<const ZipPart> parts,
                      void (*check)(const std::string&)) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail(path, "cannot make its folder", error.value());
  }
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    fail(path, "it is not a regular file", EEXIST);
  Temporary file(path);
  file.write(parts);
  file.sync();
  if (check) check(file.path());
  file.rename_to_target();
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot open its folder", errno);
  const int result = fsync(fd), reason = errno;
  close(fd);
  // Some file systems cannot sync a folder; the rename has happened.
  if (result != 0 && reason != EINVAL && reason != EROFS) fail(path, "fsync of its folder", reason);
}

}  // namespace hidet::runtime
