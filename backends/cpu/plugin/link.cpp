// link.cpp - LLD in process, from memory to memory.
// LLD reads and writes files only: inputs are anonymous memory files named through /proc/self/fd, and
// the output is a pipe that a thread drains (LLD writes to what is no regular file in one piece,
// without a temporary file beside it).
// Needs: /proc. Leaves: nothing on disk. Threading: LLD is not re-entrant, so one lock.
#include "link.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lld/Common/Driver.h>
#include <llvm/Support/CrashRecoveryContext.h>

#include "guard.h"

LLD_HAS_DRIVER(elf)

namespace hidet_clang {
namespace {

/// A file descriptor that closes itself, and its name in /proc.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

Descriptor memory_file(const void* data, size_t size) {
  Descriptor file(memfd_create("hidet-link", MFD_CLOEXEC));
  if (file.valid() && !write_all(file.get(), static_cast<const char*>(data), size)) file.close();
  return file;
}

/// All objects as one archive: a program has more of them than a process may have open files.
std::string archive_of(const hidet_clang_bytes* objects, int count) {
  std::string archive = "!<arch>\n";
  for (int i = 0; i < count; ++i) {
    char name[24], header[96];
    std::snprintf(name, sizeof name, "u%d.o/", i);
    std::snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "644",
                  objects[i].size);
    archive.append(header, 60);
    archive.append(static_cast<const char*>(objects[i].data), objects[i].size);
    if (objects[i].size % 2) archive += '\n';
  }
  return archive;
}

struct Linked {
  int status = HIDET_CLANG_REFUSED;
  std::string output, words;
};

/// One run of LLD; the output is read from a pipe.
Linked run_lld(std::vector<std::string> arguments) {
  Linked linked;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    linked.words = "cannot make a pipe";
    return linked;
  }
  Descriptor from(ends[0]), to(ends[1]);
  arguments.insert(arguments.begin(), "ld.lld");
  arguments.insert(arguments.end(), {"-o", to.path()});
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  std::thread reader([&] {
    char block[65536];
    for (ssize_t got; (got = ::read(from.get(), block, sizeof block)) != 0;) {
      if (got < 0 && errno != EINTR) break;
      if (got > 0) linked.output.append(block, static_cast<size_t>(got));
    }
  });
  llvm::raw_string_ostream words(linked.words);
  lld::Result result{1, true};
  const bool survived = run_guarded(
      [&] { result = lld::lldMain(pointers, words, words, {{lld::Gnu, &lld::elf::link}}); });
  to.close();
  reader.join();
  if (!survived || !result.canRunAgain) linked.status = HIDET_CLANG_CRASHED;
  else if (result.retCode == 0) linked.status = HIDET_CLANG_OK;
  return linked;
}

/// An empty shared object called `soname`: names a library that the result needs without binding to
/// the versions of its symbols on this machine.
Linked stub_library(const std::string& soname) {
  Elf64_Ehdr nothing = {};  // an object file without a section: LLD wants one input at least
  std::memcpy(nothing.e_ident, ELFMAG, SELFMAG);
  nothing.e_ident[EI_CLASS] = ELFCLASS64;
  nothing.e_ident[EI_DATA] = ELFDATA2LSB;
  nothing.e_ident[EI_VERSION] = EV_CURRENT;
  nothing.e_type = ET_REL;
  nothing.e_machine = EM_X86_64;
  nothing.e_version = EV_CURRENT;
  nothing.e_ehsize = sizeof nothing;
  nothing.e_shentsize = sizeof(Elf64_Shdr);
  const Descriptor input = memory_file(&nothing, sizeof nothing);
  return run_lld({"-shared", "--threads=1", "-m", "elf_x86_64", "-soname", soname, input.path()});
}

}  // namespace

int link(const char* const* arguments, int count, const hidet_clang_bytes* objects,
         int object_count, hidet_clang_bytes version_script, const char* const* needed,
         int needed_count, hidet_clang_sink sink, void* user) {
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  std::vector<Descriptor> inputs;
  std::vector<std::string> all(arguments, arguments + count);
  const std::string archive = archive_of(objects, object_count);
  inputs.push_back(memory_file(archive.data(), archive.size()));
  inputs.push_back(memory_file(version_script.data, version_script.size));
  all.insert(all.end(), {"--version-script=" + inputs[1].path(), "--whole-archive",
                         inputs[0].path(), "--no-whole-archive"});
  Linked linked;
  linked.status = HIDET_CLANG_OK;
  for (int i = 0; i < needed_count && linked.status == HIDET_CLANG_OK; ++i) {
    linked = stub_library(needed[i]);
    inputs.push_back(memory_file(linked.output.data(), linked.output.size()));
    all.push_back(inputs.back().path());
  }
  for (const Descriptor& input : inputs)
    if (!input.valid()) {
      const std::string words = "cannot make a memory file for the linker";
      sink(user, 1, words.data(), words.size());
      return HIDET_CLANG_REFUSED;
    }
  if (linked.status == HIDET_CLANG_OK) linked = run_lld(std::move(all));
  sink(user, 1, linked.words.data(), linked.words.size());
  if (linked.status == HIDET_CLANG_OK) sink(user, 0, linked.output.data(), linked.output.size());
  return linked.status;
}

}  // namespace hidet_clang
