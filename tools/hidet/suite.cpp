// suite.cpp - a child process a case, which answers through a pipe (see suite.h).
#include "suite.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "command.h"

namespace hidet::tools {
namespace {

/// The child's part: runs the case and writes status, a line end and the message.
[[noreturn]] void answer(int pipe, const std::string& folder,
                         const std::function<CaseResult(const std::string&)>& run) {
  // Cases may print; the caller's output is not theirs.
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  CaseResult r;
  try {
    r = run(folder);
  } catch (const Error& e) {
    r.status = e.code() == ErrorCode::unsupported ? "unsupported" : "error";
    r.message = e.what();
  } catch (const std::exception& e) {
    r.status = "error";
    r.message = e.what();
  }
  const std::string text = r.status + "\n" + r.message;
  for (size_t at = 0; at < text.size();) {
    const ssize_t done = write(pipe, text.data() + at, text.size() - at);
    if (done < 0 && errno != EINTR) break;
    at += static_cast<size_t>(std::max<ssize_t>(done, 0));
  }
  _exit(0);
}

/// A child and the end of the pipe that it writes to; killed and reaped at the latest by the destructor.
class Child {
 public:
  Child(const std::string& folder, const std::function<CaseResult(const std::string&)>& run) {
    int ends[2];
    HIDET_REQUIRE(pipe2(ends, O_CLOEXEC) == 0, ErrorCode::io, "",
                  "cannot make a pipe: ", std::strerror(errno));
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) answer(ends[1], folder, run);
    close(ends[1]);
    pipe_ = ends[0];
    HIDET_REQUIRE(pid_ > 0, ErrorCode::memory, "",
                  "cannot start a process: ", std::strerror(errno));
  }
  ~Child() {
    close(pipe_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// All that it says until it ends; false when it takes longer than until `deadline`.
  bool listen(double deadline, std::string* said) {
    for (char buffer[4096];;) {
      check_cancelled();
      pollfd wait{pipe_, POLLIN, 0};
      if (poll(&wait, 1, 100) <= 0) {
        if (now_seconds() > deadline) return false;
        continue;
      }
      const ssize_t got = read(pipe_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return true;
      said->append(buffer, static_cast<size_t>(got));
    }
  }
  /// The signal that ended it, 0 for none.
  int reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

CaseResult run_one(const std::string& folder, double timeout_s,
                   const std::function<CaseResult(const std::string&)>& run) {
  CaseResult r;
  r.name = std::filesystem::path(folder).filename();
  const double start = now_seconds();
  Child child(folder, run);
  std::string said;
  if (!child.listen(start + timeout_s, &said)) {
    r.status = "timeout";
    r.message = "no answer within " + std::to_string(static_cast<int>(timeout_s)) + " s";
  } else if (const int signal = child.reap(); signal != 0 || said.empty()) {
    r.status = "crash";
    r.message = signal ? strsignal(signal) : "it ended without an answer";
  } else {
    const size_t line = said.find('\n');
    r.status = said.substr(0, line);
    r.message = said.substr(line + 1);
  }
  r.ms = (now_seconds() - start) * 1e3;
  return r;
}

}  // namespace

std::vector<CaseResult> run_cases(const std::vector<std::string>& folders, double timeout_s,
                                  const std::function<CaseResult(const std::string&)>& run,
                                  const std::function<void(const CaseResult&, int, int)>& each) {
  std::vector<CaseResult> results;
  for (const std::string& folder : folders) {
    results.push_back(run_one(folder, timeout_s, run));
    each(results.back(), static_cast<int>(results.size()), static_cast<int>(folders.size()));
  }
  return results;
}

}  // namespace hidet::tools
