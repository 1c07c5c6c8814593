// crash_test.cpp - LLVM crashes inside this process: the build goes on with a C compiler, once told, and the
// host program's signal handlers are its own again.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "backends/cpu/library.h"
#include "cpu/child.h"
#include "hidet/backends/cpu.h"
#include "hidet/runtime/error.h"
#include "hidet/runtime/log.h"

namespace {

using namespace hidet::backends;  // the test's subject

constexpr int kNoPlugin = 77;

void host_handler(int) {}

/// Pragmas that make Clang crash in different ways; gcc does not know them and compiles the text.
class Crash : public testing::TestWithParam<const char*> {
  void SetUp() override {
    if (cpu::find_program("gcc").empty()) GTEST_SKIP() << "no gcc in PATH";
  }
};

TEST_P(Crash, GoesOnWithAChildProcess) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("HIDET_CC", "gcc", 1);
    setenv("HIDET_CACHE", "off", 1);
    if (cpu_compiler() != CpuCompiler::plugin) _exit(kNoPlugin);
    freopen("/dev/null", "w", stderr);  // LLVM prints a trace
    signal(SIGSEGV, host_handler);
    int told = 0;
    hidet::set_log(
        [&](const std::string& text) { told += text.find("crashed on 'bad'") != text.npos; });
    const std::vector<Unit> units = {{"good", "int hidet_good(void) { return 1; }"},
                                     {"bad", std::string("#pragma clang __debug ") + GetParam() +
                                                 "\nint hidet_bad(void) { return 2; }"}};
    const TestLibrary library(build_shared_object(units, {.target = "x86-64-v3"}));
    const bool right = library.get<int()>("hidet_good")() + library.get<int()>("hidet_bad")() == 3;
    const bool handler_kept = signal(SIGSEGV, SIG_DFL) == host_handler;
    _exit(right && told == 1 && handler_kept && cpu_compiler() == CpuCompiler::cc ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoPlugin) GTEST_SKIP() << "no libhidet_clang.so";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, Crash, testing::Values("crash", "parser_crash", "llvm_fatal_error"));

TEST(CrashByDepth, IsAnErrorAndNoSignal) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("HIDET_CC", "none", 1);
    setenv("HIDET_CACHE", "off", 1);
    if (cpu_compiler() != CpuCompiler::plugin) _exit(kNoPlugin);
    freopen("/dev/null", "w", stderr);
    const Unit unit{"deep", "int hidet_deep(int x) { return " + std::string(2000000, '~') + "x; }"};
    try {
      build_shared_object({&unit, 1});
    } catch (const hidet::Error& error) {
      _exit(std::string(error.what()).find("crashed on 'deep'") != std::string::npos ? 0 : 2);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoPlugin) GTEST_SKIP() << "no libhidet_clang.so";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
