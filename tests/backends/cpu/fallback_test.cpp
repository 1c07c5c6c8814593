// fallback_test.cpp - without the in-process compiler: a C compiler as a child process, strange folders,
// and the error where there is none at all.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "backends/cache/folder.h"
#include "backends/cpu/library.h"
#include "backends/cpu/samples.h"
#include "cpu/child.h"
#include "hidet/backends/cpu.h"
#include "hidet/runtime/error.h"
#include "hidet/runtime/log.h"

namespace {

using namespace hidet::backends;  // the test's subject
using testing::HasSubstr;

/// Runs `body` in a child process, where nothing has chosen a compiler yet; true when it returned true.
template <class Body>
bool in_fresh_process(const char* compiler, const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("HIDET_CLANG_PLUGIN", "none", 1);
    setenv("HIDET_CACHE", "off", 1);
    if (compiler != nullptr) setenv("HIDET_CC", compiler, 1);
    bool good = false;
    try {
      good = body();
    } catch (const std::exception& error) {
      fprintf(stderr, "%s\n", error.what());
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool axpy_is_right(const std::vector<uint8_t>& bytes) {
  const TestLibrary library(bytes);
  float x[5] = {1, 2, 3, 4, 5}, y[5] = {1, 1, 1, 1, 1};
  library.get<void(float, const float*, float*, int)>("hidet_axpy")(2, x, y, 5);
  return y[0] == 3 && y[4] == 11;
}

class Fallback : public testing::TestWithParam<const char*> {
  void SetUp() override {
    if (cpu::find_program(GetParam()).empty()) GTEST_SKIP() << "no " << GetParam() << " in PATH";
  }
};

TEST_P(Fallback, CompilesLinksAndSaysSoOnce) {
  EXPECT_TRUE(in_fresh_process(GetParam(), [] {
    int told = 0;
    hidet::set_log(
        [&](const std::string& text) { told += text.find("child process") != text.npos; });
    const Unit unit{"axpy", samples::kAxpy};
    const auto bytes = build_shared_object({&unit, 1});
    const auto pair = samples::two_units();
    const TestLibrary library(build_shared_object(pair));
    return axpy_is_right(bytes) && bytes == build_shared_object({&unit, 1}) &&
           library.get<double(double)>("hidet_second")(9) == 22 &&
           library.get<void()>("helper") == nullptr && told == 1;
  }));
}

TEST_P(Fallback, AWrongTextIsAnErrorWithTheCompilersWords) {
  EXPECT_TRUE(in_fresh_process(GetParam(), [] {
    hidet::set_log([](const std::string&) {});
    const Unit unit{"gemm_3", "int hidet_f(void) { return missing; }"};
    try {
      build_shared_object({&unit, 1});
    } catch (const hidet::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("'gemm_3'"));
      EXPECT_THAT(error.what(), HasSubstr("missing"));
      return !testing::Test::HasFailure();
    }
    return false;
  }));
}

TEST_P(Fallback, FoldersWithStrangeNamesAndCleanUp) {
  TestFolder folder;
  for (std::string name :
       {std::string("a b"), std::string("a'b"), std::string("a\"b"), std::string("$(touch pwned)"),
        std::string("a;b"), std::string("a&b"), std::string("ünï-模"), std::string("-rf"),
        std::string("new\nline"), std::string("com,ma"), std::string(200, 'x')}) {
    const std::string path = folder.path() + "/" + name;
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    EXPECT_TRUE(in_fresh_process(GetParam(), [&] {
      hidet::set_log([](const std::string&) {});
      setenv("TMPDIR", path.c_str(), 1);
      std::filesystem::current_path(path);
      const Unit unit{name, samples::kAxpy};
      return axpy_is_right(build_shared_object({&unit, 1})) && std::filesystem::is_empty(path);
    })) << name;
  }
  EXPECT_EQ(folder.count("pwned"), 0);
}

INSTANTIATE_TEST_SUITE_P(Compilers, Fallback, testing::Values("gcc", "clang-19"),
                         [](const auto& info) {
                           return std::string(info.param) == "gcc" ? "gcc" : "clang";
                         });

TEST(FallbackRules, GccMakesAtMostLevel3) {
  EXPECT_TRUE(in_fresh_process("gcc", [] {
    hidet::set_log([](const std::string&) {});
    EXPECT_EQ(cpu_compiler(), CpuCompiler::cc);
    EXPECT_LE(default_target().level, 3);
    try {
      resolve_target("x86-64-v4");
    } catch (const hidet::Error& error) {
      EXPECT_EQ(error.code(), hidet::ErrorCode::device);
      EXPECT_THAT(error.what(), HasSubstr("ask for x86-64-v3 or lower"));
      return !testing::Test::HasFailure();
    }
    return false;
  }));
}

TEST(FallbackRules, NoCompilerAtAllIsASentence) {
  EXPECT_TRUE(in_fresh_process("none", [] {
    EXPECT_EQ(cpu_compiler(), CpuCompiler::none);
    EXPECT_EQ(compiler_identity(), "");
    const Unit unit{"axpy", samples::kAxpy};
    try {
      build_shared_object({&unit, 1});
    } catch (const hidet::Error& error) {
      EXPECT_EQ(error.code(), hidet::ErrorCode::device);
      EXPECT_THAT(error.what(), HasSubstr("libhidet_clang.so"));
      EXPECT_THAT(error.what(), HasSubstr("cc"));
      return !testing::Test::HasFailure();
    }
    return false;
  }));
}

TEST(FallbackRules, AWrongPluginOrCompilerNamedByTheUserIsAnError) {
  EXPECT_TRUE(in_fresh_process("no-such-compiler", [] {
    try {
      cpu_compiler();
    } catch (const hidet::Error& error) {
      return std::string(error.what()).find("no-such-compiler") != std::string::npos;
    }
    return false;
  }));
  EXPECT_TRUE(in_fresh_process(nullptr, [] {
    setenv("HIDET_CLANG_PLUGIN", "/etc/passwd", 1);
    try {
      cpu_compiler();
    } catch (const hidet::Error& error) {
      return error.code() == hidet::ErrorCode::device &&
             std::string(error.what()).find("/etc/passwd") != std::string::npos;
    }
    return false;
  }));
}

}  // namespace
