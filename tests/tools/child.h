// child.h - runs the `hidet` command as a child process, and folders for its files.
// Threading: one thread at a time.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace tools_test {

/// A folder that goes with the object.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hidet-tools-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& e : std::filesystem::directory_iterator(path_))
      out.push_back(e.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Ran {
  int status = -1;  ///< exit status; 1000 + the signal where one ended it
  std::string out, err;
};

/// How the child differs from this process.
struct How {
  std::vector<std::pair<std::string, std::string>> env = {};  ///< set for the child
  std::string folder = {};                                    ///< where it runs
  std::function<void()> prepare = {};  ///< in the child, before the command starts
  int interrupt_ms = -1;               ///< SIGINT after so many milliseconds; negative: none
  int seconds = 120;                   ///< then it is killed: status 1000 + SIGALRM
};

/// `hidet ARGS...`, its output kept.
inline Ran hidet(const std::vector<std::string>& args, const How& how = {}) {
  const Folder files;
  const pid_t pid = fork();
  if (pid == 0) {
    if (!how.folder.empty() && chdir(how.folder.c_str()) != 0) _exit(126);
    for (const auto& [name, value] : how.env) setenv(name.c_str(), value.c_str(), 1);
    const int out = open((files / "out").c_str(), O_CREAT | O_WRONLY, 0600);
    const int err = open((files / "err").c_str(), O_CREAT | O_WRONLY, 0600);
    dup2(out, 1);
    dup2(err, 2);
    std::vector<char*> argv{const_cast<char*>(HIDET_COMMAND)};
    for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    if (how.prepare) how.prepare();
    alarm(static_cast<unsigned>(how.seconds));
    execv(HIDET_COMMAND, argv.data());
    _exit(127);
  }
  if (how.interrupt_ms >= 0) {
    usleep(static_cast<unsigned>(how.interrupt_ms) * 1000);
    kill(pid, SIGINT);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  Ran ran;
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  ran.out = read_file(files / "out");
  ran.err = read_file(files / "err");
  if (ran.err.find("Sanitizer") != std::string::npos) std::fputs(ran.err.c_str(), stderr);
  return ran;
}

}  // namespace tools_test
