// trial.cpp - a forked process that reports through a pipe: "+" where the work returned, "-" and a message where it threw.
// Leaves: no process that nobody waits for; the child dies with this one.
// Threading: see trial.h.
#include "src/compiled/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "hidet/runtime/error.h"

namespace hidet::runtime {
namespace {

/// The host's handlers would take a fault for one of its own; a core file would fill the folder.
void set_up_child(double seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU})
    signal(number, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const auto most = static_cast<rlim_t>(std::ceil(seconds)) + 1;
  const rlimit time{most, most};
  setrlimit(RLIMIT_CPU, &time);
  if (const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
}

[[noreturn]] void be_child(const std::function<void()>& work, double seconds, int out) {
  set_up_child(seconds);
  std::string said = "+";
  try {
    work();
  } catch (const std::exception& e) {
    said = std::string("-") + e.what();
  } catch (...) {
    said = "-an unknown exception";
  }
  said = said.substr(0, 4000);  // what a pipe holds: nobody need read for this to end
  const ssize_t written = write(out, said.c_str(), said.size() + 1);
  _exit(written == static_cast<ssize_t>(said.size()) + 1 ? 0 : 1);
}

/// What the child said so far, up to its closing zero.
bool complete(const std::string& said) { return !said.empty() && said.back() == '\0'; }

void read_more(int in, int wait_ms, std::string& said) {
  pollfd ready{in, POLLIN, 0};
  if (poll(&ready, 1, wait_ms) <= 0) return;
  char block[4096];
  if (const ssize_t n = read(in, block, sizeof block); n > 0)
    said.append(block, static_cast<size_t>(n));
  else poll(nullptr, 0, wait_ms);  // its end is closed: it is about to be gone
}

/// True when the process is gone; `status` as of waitpid, or -1 where the host ignores SIGCHLD and nobody can know it.
bool gone(pid_t child, int& status) {
  const pid_t got = waitpid(child, &status, WNOHANG);
  if (got == child) return true;
  if (got == 0 || errno != ECHILD) return false;
  status = -1;
  return kill(child, 0) != 0;
}

void end_child(pid_t child) {
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string end_of(int status) {
  if (status >= 0 && WIFSIGNALED(status))
    return detail::concat("it crashed: ", strsignal(WTERMSIG(status)));
  return "it ended the process";
}

struct Pipe {
  Pipe() {
    HIDET_REQUIRE(pipe2(ends, O_CLOEXEC) == 0, ErrorCode::device, "",
                  "no pipe can be made: ", std::strerror(errno));
  }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  int ends[2] = {-1, -1};
};

}  // namespace

std::string try_in_child(const std::function<void()>& work, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  const Pipe pipe;
  const pid_t child = fork();
  HIDET_REQUIRE(child >= 0, ErrorCode::device, "",
                "no process can be started: ", std::strerror(errno));
  if (child == 0) be_child(work, seconds, pipe.ends[1]);
  std::string said;
  int status = 0;
  bool over = false;
  while (!complete(said)) {
    if (over) return end_of(status);
    over = gone(child, status);
    read_more(pipe.ends[0], over ? 0 : 2, said);  // what it said before its end is still there
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (over || complete(said) || spent.count() < seconds) continue;
    end_child(child);
    return detail::concat("it did not end within ", std::round(seconds * 100) / 100, " s");
  }
  if (!over) end_child(child);
  said.pop_back();
  return said[0] == '+' ? "" : said.substr(1);
}

}  // namespace hidet::runtime
