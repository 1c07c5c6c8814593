// model_file.cpp - opens and maps an ONNX file and its external data; see model_file.h.
#include "onnx/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "onnx/wire.h"

namespace hidet::graph::onnx {
namespace {

/// A file descriptor that closes itself.
struct Descriptor {
  int fd = -1;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::shared_ptr<const Mapping> map(int fd, size_t size, const std::string& what) {
  auto out = std::make_shared<Mapping>();
  if (size == 0) return out;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  HIDET_REQUIRE(data != MAP_FAILED, ErrorCode::io, what,
                "cannot be mapped: ", std::strerror(errno));
  out->data = static_cast<const char*>(data);
  out->size = size;
  return out;
}

/// The parts of a relative location; throws where it could lead out of the folder.
std::vector<std::string> split_location(const std::string& location, const std::string& where,
                                        const std::string& tensor) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorCode::bad_file,
                tensor + ": its external data location " + why +
                    "; it must name a file inside the model's folder",
                where);
  };
  if (location.empty()) refuse("is empty");
  if (location[0] == '/') refuse("is an absolute path");
  if (location.find('\\') != std::string::npos) refuse("has a backslash");
  if (location.find('\0') != std::string::npos) refuse("has a zero byte");
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string part = location.substr(begin, end - begin);
    if (part == "..") refuse("has '..' in it");
    if (!part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  if (parts.empty() || location.back() == '/') refuse("names a folder");
  return parts;
}

/// The value of an external_data key as a number; `fallback` where the key is absent.
uint64_t number_of(const TensorProto& tensor, const char* key, uint64_t fallback,
                   const std::string& where, const std::string& what) {
  uint64_t out = fallback;
  for (const auto& [name, text] : tensor.external_data) {
    if (name != key) continue;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
    HIDET_REQUIRE(status == std::errc() && end == text.data() + text.size() && !text.empty(),
                  ErrorCode::bad_file, where, what, ": external data ", key,
                  " is no number: ", quote_name(text));
  }
  return out;
}

}  // namespace

Mapping::~Mapping() {
  if (data) ::munmap(const_cast<char*>(data), size);
}

ModelFile::ModelFile(const std::string& path) {
  const size_t slash = path.rfind('/');
  folder_ = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  struct stat info{};
  HIDET_REQUIRE(::stat(path.c_str(), &info) == 0, ErrorCode::bad_file, path,
                "cannot open the model file: ", std::strerror(errno));
  HIDET_REQUIRE(S_ISREG(info.st_mode), ErrorCode::bad_file, path, "the model is not a plain file");
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  HIDET_REQUIRE(file.fd >= 0, ErrorCode::io, path,
                "cannot open the model file: ", std::strerror(errno));
  HIDET_REQUIRE(::fstat(file.fd, &info) == 0 && S_ISREG(info.st_mode), ErrorCode::bad_file, path,
                "the model is not a plain file");
  HIDET_REQUIRE(info.st_size > 0, ErrorCode::bad_file, path, "the model file is empty");
  model_ = map(file.fd, static_cast<size_t>(info.st_size), path);
}

// Walks the location part by part without following links, so that no check can be raced past.
std::shared_ptr<const Mapping> ModelFile::open_external(const std::string& location,
                                                        const std::string& what) const {
  const std::vector<std::string> parts = split_location(location, name_, what);
  const std::string data = what + ": external data ";
  Descriptor at(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  HIDET_REQUIRE(at.fd >= 0, ErrorCode::io, name_, "cannot open the model's folder");
  for (size_t i = 0; i < parts.size(); i++) {
    const bool last = i + 1 == parts.size();
    struct stat info{};
    HIDET_REQUIRE(::fstatat(at.fd, parts[i].c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0,
                  ErrorCode::bad_file, name_, data, quote_name(location),
                  " is missing from the model's folder");
    HIDET_REQUIRE(!S_ISLNK(info.st_mode), ErrorCode::bad_file, name_, data, quote_name(location),
                  " goes through a symbolic link, which could leave the model's folder");
    HIDET_REQUIRE(last ? S_ISREG(info.st_mode) : S_ISDIR(info.st_mode), ErrorCode::bad_file, name_,
                  data, quote_name(location), " is not a plain file");
    HIDET_REQUIRE(!last || info.st_nlink == 1, ErrorCode::bad_file, name_, data,
                  quote_name(location),
                  " is a hard link, so that it may be a file of another folder; copy it");
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
    at = Descriptor(::openat(at.fd, parts[i].c_str(), flags));
    HIDET_REQUIRE(at.fd >= 0, ErrorCode::io, name_, data, quote_name(location),
                  " cannot be opened: ", std::strerror(errno));
  }
  struct stat info{};
  HIDET_REQUIRE(::fstat(at.fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1,
                ErrorCode::bad_file, name_, data, quote_name(location), " is not a plain file");
  return map(at.fd, static_cast<size_t>(info.st_size), name_);
}

ModelFile::View ModelFile::external(const TensorProto& tensor, uint64_t bytes_needed,
                                    const std::string& what) {
  const std::string* location = nullptr;
  for (const auto& [key, value] : tensor.external_data)
    if (key == "location") location = &value;
  HIDET_REQUIRE(location, ErrorCode::bad_file, name_, what, ": its external data has no location");
  const uint64_t offset = number_of(tensor, "offset", 0, name_, what);
  const uint64_t length = number_of(tensor, "length", bytes_needed, name_, what);
  HIDET_REQUIRE(length == bytes_needed, ErrorCode::bad_file, name_, what,
                ": its external data has ", length, " bytes where shape and type need ",
                bytes_needed);
  auto& mapping = external_[*location];
  if (!mapping) mapping = open_external(*location, what);
  HIDET_REQUIRE(offset <= mapping->size && length <= mapping->size - offset, ErrorCode::bad_file,
                name_, what, ": its external data is ", length, " bytes at ", offset,
                ", the file has ", mapping->size);
  return {mapping->bytes().substr(offset, length), mapping};
}

}  // namespace hidet::graph::onnx
