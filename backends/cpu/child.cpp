// child.cpp - starts programs with an argument vector: no shell, so no character is special.
// Leaves: no file outside the temporary folder and no process that nobody waits for.
// Threading: thread-safe; every descriptor is closed in the children of other threads.
#include "cpu/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hidet/runtime/error.h"

extern char** environ;

namespace hidet::backends::cpu {
namespace {

/// Attributes: default signals, none blocked, whatever the host program does with its own.
class SpawnSetup {
 public:
  SpawnSetup(const std::string& folder, int output) {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  }
  ~SpawnSetup() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

/// Our environment with messages in English and temporary files in `folder`.
std::vector<std::string> child_environment(const std::string& folder) {
  std::vector<std::string> all = {"LC_ALL=C", "TMPDIR=" + folder};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.substr(0, 7) != "LC_ALL=" && text.substr(0, 7) != "TMPDIR=") all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::string read_back(int fd) {
  std::string text;
  char block[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t got; (got = ::read(fd, block, sizeof block)) > 0;)
    text.append(block, static_cast<size_t>(got));
  return text;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    // Where the host program ignores SIGCHLD nobody can know the status; the output file then decides.
    if (errno != EINTR) return 0;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  const char* chosen = std::getenv("TMPDIR");
  for (const char* base : {chosen, "/tmp", "/var/tmp", "/dev/shm"}) {
    if (base == nullptr || base[0] != '/') continue;
    std::string pattern = std::string(base) + "/hidet-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) continue;
    path_ = pattern;
    return;
  }
  throw Error(
      ErrorCode::io,
      "no folder for temporary files can be written: tried TMPDIR, /tmp, /var/tmp and /dev/shm");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::write(const std::string& name, std::string_view bytes) const {
  std::ofstream out(path_ + "/" + name, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  HIDET_REQUIRE(out.good(), ErrorCode::io, "", "cannot write the temporary file '", path_, "/",
                name, "' (", std::strerror(errno), ")");
}

std::vector<uint8_t> TemporaryFolder::read(const std::string& name) const {
  std::ifstream in(path_ + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

ChildResult run_child(const std::vector<std::string>& arguments, const std::string& folder) {
  const int output = memfd_create("hidet-child", MFD_CLOEXEC);
  HIDET_REQUIRE(output >= 0, ErrorCode::device, "", "cannot make a memory file (",
                std::strerror(errno), ")");
  ChildResult result;
  int error = 0;
  {
    SpawnSetup setup(folder, output);
    const std::vector<std::string> environment = child_environment(folder);
    pid_t child = 0;
    error = posix_spawn(&child, arguments[0].c_str(), &setup.actions, &setup.attributes,
                        pointers(arguments).data(), pointers(environment).data());
    if (error == 0) result.exit_code = wait_for(child);
  }
  result.output = read_back(output);
  close(output);
  HIDET_REQUIRE(error == 0, ErrorCode::device, "", "cannot start '", arguments[0], "' (",
                std::strerror(error), ")");
  return result;
}

std::string find_program(const std::string& name) {
  const auto usable = [](const std::string& path) {
    std::error_code ignored;
    return access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path, ignored);
  };
  if (name.find('/') != name.npos)
    return usable(name) ? std::filesystem::absolute(name).string() : "";
  const char* text = std::getenv("PATH");
  const std::string path = text == nullptr ? "/usr/local/bin:/usr/bin:/bin" : text;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    begin = end + 1;
    // Relative entries would start whatever lies in the working directory.
    if (folder.empty() || folder[0] != '/') continue;
    if (const std::string candidate = folder + "/" + name; usable(candidate)) return candidate;
  }
  return "";
}

}  // namespace hidet::backends::cpu
