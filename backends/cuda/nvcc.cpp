// nvcc.cpp - CUDA text to code through nvcc, a child process in a folder of its own.
// Needs: nvcc and the host compiler that it wants. Leaves: no file and no process, also after an error or a cancel.
// Threading: thread-safe; one folder and one child per compile.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include <hidet/runtime/error.h>

#include "cuda/compilers.h"
#include "cuda/search.h"

extern char** environ;

namespace hidet::backends::cuda {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (fs::temp_directory_path() / "hidet-nvcc-XXXXXX").string();
    HIDET_REQUIRE(mkdtemp(name.data()), ErrorCode::io, "", "no folder can be made in ",
                  fs::temp_directory_path().string(), ": ", std::strerror(errno));
    path_ = name;
  }
  ~TempFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Ours, with the child's temporary files inside its folder.
std::vector<std::string> child_environment(const fs::path& folder) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable)
    if (std::strncmp(*variable, "TMPDIR=", 7) != 0) variables.emplace_back(*variable);
  variables.push_back("TMPDIR=" + folder.string());
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// Waits; a cancel kills the child with the processes that it started.
int wait_for(pid_t child, const std::atomic<bool>& cancelled) {
  int status = 0;
  while (true) {
    const pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) break;
    if (done < 0 && errno != EINTR) return -1;
    if (cancelled) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      throw Error(ErrorCode::cancelled, "the compile was cancelled");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Exit status of a program run in `folder`, its output and errors in `folder`/log. No shell is involved.
int run(std::vector<std::string> arguments, const fs::path& folder,
        const std::atomic<bool>& cancelled) {
  std::vector<std::string> environment = child_environment(folder);
  const std::string log = (folder / "log").string();
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int result = posix_spawn(&child, arguments[0].c_str(), &actions, &attributes,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  HIDET_REQUIRE(result == 0, ErrorCode::device, "", arguments[0],
                " cannot be started: ", std::strerror(result));
  return wait_for(child, cancelled);
}

// "Cuda compilation tools, release 13.0, V13.0.88" -> "13.0.88"; empty where nvcc does not answer.
std::string version_of(const std::string& nvcc) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  std::lock_guard lock(mutex);
  if (const auto at = known.find(nvcc); at != known.end()) return at->second;
  const TempFolder folder;
  const std::atomic<bool> never{false};
  std::string version;
  if (run({nvcc, "--version"}, folder.path(), never) == 0) {
    const std::string text = read_file(folder.path() / "log");
    const size_t at = text.find(", V");
    if (at != text.npos)
      version = text.substr(at + 3, text.find_first_of(" \r\n", at + 3) - at - 3);
  }
  return known[nvcc] = version;
}

}  // namespace

Found nvcc() {
  Found found;
  found.path = find_nvcc();
  if (found.path.empty()) {
    found.problem =
        "there is no nvcc in PATH, CUDA_HOME/bin or /usr/local/cuda/bin: install the CUDA toolkit, "
        "or name it in HIDET_NVCC";
    return found;
  }
  found.version = version_of(found.path);
  if (found.version.empty())
    found.problem = found.path + " does not answer to --version: it is no nvcc";
  found.identity = "nvcc " + found.version;
  found.headers = find_headers("");
  return found;
}

Outcome run_nvcc(const Job& job) {
  const std::string program = find_nvcc();
  const TempFolder folder;
  const char* result = job.arch.is_ptx ? "kernels.ptx" : "kernels.cubin";
  {
    std::ofstream out(folder.path() / "kernels.cu", std::ios::binary);
    out << job.unit.source;
    HIDET_REQUIRE(out.flush().good(), ErrorCode::io, "", "the CUDA text cannot be written to ",
                  folder.path().string());
  }
  std::vector<std::string> arguments = {program, job.arch.is_ptx ? "-ptx" : "-cubin", "-o", result,
                                        "kernels.cu"};
  for (std::string& option : common_options(job.arch, job.options))
    arguments.push_back(std::move(option));
  const int status = run(arguments, folder.path(), job.cancelled);
  Outcome outcome;
  outcome.log = read_file(folder.path() / "log");
  if (status != 0) {
    if (outcome.log.empty()) outcome.log = fmt::format("nvcc ended with status {}", status);
    return outcome;
  }
  const std::string code = read_file(folder.path() / result);
  outcome.code.assign(code.begin(), code.end());
  outcome.ok = !outcome.code.empty();
  if (!outcome.ok) outcome.log += "nvcc made no code";
  return outcome;
}

}  // namespace hidet::backends::cuda
