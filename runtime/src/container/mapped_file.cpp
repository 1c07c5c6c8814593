// mapped_file.cpp - open, check that it is a regular file, mmap.
// Threading: thread-safe.
#include "src/container/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hidet/runtime/error.h"

namespace hidet::runtime {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

Bytes map_file(const std::string& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) {
    const int reason = errno;
    const bool missing = reason == ENOENT || reason == ENOTDIR;
    throw Error(missing ? ErrorCode::bad_file : ErrorCode::io,
                detail::concat("cannot open '", path, "': ", std::strerror(reason)));
  }
  struct stat info;
  HIDET_REQUIRE(fstat(file.fd, &info) == 0, ErrorCode::io, "", "cannot read '", path,
                "': ", std::strerror(errno));
  HIDET_REQUIRE(S_ISREG(info.st_mode), ErrorCode::bad_file, "", "'", path,
                "' is not a regular file");
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) return {};
  // Writable for this process alone: a tensor on a weight may be written, the file never changes.
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.fd, 0);
  HIDET_REQUIRE(address != MAP_FAILED, ErrorCode::io, "", "cannot map '", path,
                "': ", std::strerror(errno));
  std::shared_ptr<const void> owner(address,
                                    [size](const void* p) { munmap(const_cast<void*>(p), size); });
  return Bytes(std::move(owner), {static_cast<const std::byte*>(address), size});
}

}  // namespace hidet::runtime
