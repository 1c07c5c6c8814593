// processes_test.cpp - whole builds in many processes at once, and in surroundings that refuse to be
// written: each runs in a fresh process, where nothing has been chosen or opened yet.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "backends/cache/folder.h"
#include "backends/cpu/library.h"
#include "backends/cpu/samples.h"
#include "hidet/backends/cache.h"
#include "hidet/backends/cpu.h"
#include "hidet/runtime/log.h"

namespace {

using namespace hidet::backends;  // the test's subject

/// Builds and runs a program of five units; 0 when it computed the right values.
int build_program() {
  std::vector<Unit> units;
  for (int i = 0; i < 5; ++i) units.push_back(samples::numbered(i));
  const TestLibrary library(build_shared_object(units, {.jobs = 2}));
  const int x[] = {3, 4};
  for (int i = 0; i < 5; ++i) {
    auto* f = library.get<int(const int*, int)>(("hidet_f" + std::to_string(i)).c_str());
    if (f == nullptr || f(x, 2) != i + 7 * i) return 1;
  }
  return 0;
}

template <class Body>
pid_t in_child(const Body& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  int result = 99;
  try {
    result = body();
  } catch (const std::exception& error) {
    fprintf(stderr, "%s\n", error.what());
  }
  _exit(result);
}

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(BuildProcesses, SixteenBuildOneProgramAndOneIsKilled) {
  TestFolder folder;
  std::mt19937 random(53);
  for (int round = 0; round < 2; ++round) {
    const std::string cache = folder.path() + "/" + std::to_string(round);
    const auto build = [&] {
      setenv("HIDET_CACHE_DIR", cache.c_str(), 1);
      return build_program();
    };
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i) children.push_back(in_child(build));
    usleep(200000 + random() % 400000);
    kill(children[7], SIGKILL);
    for (int i = 0; i < 16; ++i) {
      const int status = status_of(children[i]);
      EXPECT_TRUE(status == 0 || i == 7) << "process " << i << " ended with " << status;
    }
    EXPECT_EQ(status_of(in_child(build)), 0);
    EXPECT_TRUE(BuildCache({.folder = cache}).verify().empty());
  }
}

/// As a user who is not root where this is root: permissions count then.
bool become_nobody() { return geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0); }

TEST(BuildProcesses, NothingMayBeWrittenAndItRunsAndSaysSoOnce) {
  TestFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const int status = status_of(in_child([&] {
    if (!become_nobody() || chdir(folder.path().c_str()) != 0) return 90;
    unsetenv("HIDET_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", folder.path().c_str(), 1);
    int told = 0;
    hidet::set_log([&](const std::string& text) { told += text.find("build cache") != text.npos; });
    return build_program() + build_program() == 0 && told == 1 ? 0 : 1;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.count(""), 0);
}

TEST(BuildProcesses, WithoutAHomeItRunsAndSaysSoOnce) {
  const int status = status_of(in_child([] {
    for (const char* name : {"HIDET_CACHE", "HIDET_CACHE_DIR", "XDG_CACHE_HOME", "HOME"})
      unsetenv(name);
    int told = 0;
    hidet::set_log([&](const std::string& text) { told += text.find("no folder") != text.npos; });
    return build_program() + build_program() == 0 && told == 1 ? 0 : 1;
  }));
  EXPECT_EQ(status, 0);
}

TEST(BuildProcesses, TwoHundredProgramsStayUnderTheBound) {
  TestFolder folder;
  const int status = status_of(in_child([&] {
    setenv("HIDET_CACHE_DIR", folder.path().c_str(), 1);
    setenv("HIDET_CACHE_SIZE", "100K", 1);
    for (int i = 0; i < 200; ++i) {
      const Unit unit = samples::numbered(i);
      build_shared_object({&unit, 1}, {.target = "x86-64"});
      uint64_t total = 0;
      for (const auto& entry : BuildCache::process().list()) total += entry.bytes;
      if (total > 100 << 10) return 2;
    }
    return BuildCache::process().stats().evicted > 0 ? 0 : 3;
  }));
  EXPECT_EQ(status, 0);
}

}  // namespace
