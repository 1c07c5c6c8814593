// library.h - loads a shared object from memory for one test.
#pragma once
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

/// A loaded shared object; closed at the end.
class TestLibrary {
 public:
  explicit TestLibrary(const std::vector<uint8_t>& bytes) {
    // The descriptor stays open: dlopen takes two libraries of one name for the same.
    fd_ = memfd_create("test", MFD_CLOEXEC);
    if (write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("short write");
    handle_ = dlopen(("/proc/self/fd/" + std::to_string(fd_)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~TestLibrary() {
    dlclose(handle_);
    close(fd_);
  }
  TestLibrary(const TestLibrary&) = delete;
  TestLibrary& operator=(const TestLibrary&) = delete;

  /// The function called `name`, or nullptr.
  template <class F>
  F* get(const char* name) const {
    return reinterpret_cast<F*>(dlsym(handle_, name));
  }

 private:
  int fd_ = -1;
  void* handle_ = nullptr;
};
