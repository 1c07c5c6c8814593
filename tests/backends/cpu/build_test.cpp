// build_test.cpp - text to a loaded library through the in-process compiler: values, exports, errors,
// the build cache, many units at once, cancelling.
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <thread>

#include "backends/cache/folder.h"
#include "backends/cpu/library.h"
#include "backends/cpu/samples.h"
#include "hidet/backends/cache.h"
#include "hidet/backends/cpu.h"
#include "hidet/runtime/error.h"

namespace {

using namespace hidet::backends;  // the test's subject
using testing::HasSubstr;

/// The process's cache lies in a folder of its own, with a name that a shell would take apart.
struct CacheFolder : testing::Environment {
  TestFolder folder;
  CacheFolder() {
    setenv("HIDET_CACHE_DIR", (folder.path() + "/a b'c\"d;$(touch pwned)&ü-模").c_str(), 1);
  }
};
const auto* const kCacheFolder = testing::AddGlobalTestEnvironment(new CacheFolder);

std::vector<uint8_t> build(const std::string& text, CpuOptions options = {}) {
  const Unit unit{"test", text};
  return build_shared_object({&unit, 1}, options);
}

TEST(CpuBackend, UsesClangInProcess) {
  EXPECT_EQ(cpu_compiler(), CpuCompiler::plugin);
  EXPECT_THAT(compiler_identity(), HasSubstr("clang version 19"));
}

TEST(CpuBackend, ComputesOnEveryLevelThatRunsHere) {
  for (const char* target : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "native"}) {
    if (!hidet::CpuTarget::parse(target).runs_on(hidet::host_cpu_target())) continue;
    const TestLibrary library(build(samples::kAxpy, {.target = target}));
    auto* axpy = library.get<void(float, const float*, float*, int)>("hidet_axpy");
    ASSERT_NE(axpy, nullptr);
    for (const int n : {0, 1, 3, 17, 1000}) {
      std::vector<float> x(n), y(n);
      for (int i = 0; i < n; ++i) x[i] = 0.25f * i, y[i] = -i;
      axpy(3.0f, x.data(), y.data(), n);
      for (int i = 0; i < n; ++i) ASSERT_EQ(y[i], 3.0f * (0.25f * i) + -i) << target << " " << i;
    }
  }
}

TEST(CpuBackend, DoesNotContractUnlessAsked) {
  // 1 + 2^-12 squared minus its rounded square is 0 in two roundings and 2^-24 in one.
  const char* text = "float hidet_f(float a, float b) { return a * a - b; }";
  const float a = 1 + std::ldexp(1.0f, -12), b = a * a;
  const TestLibrary exact(build(text, {.target = "native"}));
  EXPECT_EQ(exact.get<float(float, float)>("hidet_f")(a, b), 0.0f);
  if (hidet::host_cpu_target().level < 3) return;
  const TestLibrary fast(build(text, {.target = "native", .fast_math = true}));
  EXPECT_EQ(fast.get<float(float, float)>("hidet_f")(a, b), std::ldexp(1.0f, -24));
}

TEST(CpuBackend, KeepsNanInfinityAndWrapping) {
  const char* text =
      "float hidet_max(float a, float b) { return a > b || a != a ? a : b; }\n"
      "float hidet_zero(float a) { return a - a; }\n"
      "int hidet_less(int a) { return a + 1 < a; }\n"
      "float hidet_bits(int* p) { *(float*)p = 1.0f; *p += 1; return *(float*)p; }\n";
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  for (const bool fast : {false, true}) {
    const TestLibrary library(build(text, {.fast_math = fast}));
    EXPECT_TRUE(std::isnan(library.get<float(float, float)>("hidet_max")(nan, 1)));
    EXPECT_TRUE(std::isnan(library.get<float(float)>("hidet_zero")(inf)));
    EXPECT_EQ(library.get<int(int)>("hidet_less")(std::numeric_limits<int>::max()), 1);
    int word = 0;
    EXPECT_EQ(library.get<float(int*)>("hidet_bits")(&word), std::nextafter(1.0f, 2.0f));
  }
}

TEST(CpuBackend, HalvesConvertWithoutInstructionsForThem) {
  const char* text =
      "_Float16 hidet_from_double(double x) { return (_Float16)x; }\n"
      "_Float16 hidet_from_float(float x) { return (_Float16)x; }\n"
      "float hidet_to_float(_Float16 x) { return x; }\n";
  // The independent answers are those of the compiler of this test.
  const auto bits_of = [](_Float16 value) { return std::bit_cast<uint16_t>(value); };
  for (const char* target : {"x86-64", "x86-64-v3"}) {
    const TestLibrary library(build(text, {.target = target}));
    auto* from_double = library.get<_Float16(double)>("hidet_from_double");
    auto* from_float = library.get<_Float16(float)>("hidet_from_float");
    auto* to_float = library.get<float(_Float16)>("hidet_to_float");
    EXPECT_EQ(library.get<void()>("__truncdfhf2"), nullptr);
    for (int i = 0; i < 65536; ++i) {
      const auto half = std::bit_cast<_Float16>(static_cast<uint16_t>(i));
      const float value = to_float(half);
      ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(static_cast<float>(half)))
          << i;
      if (value != value) continue;
      ASSERT_EQ(bits_of(from_float(value)), i);
      // The points between two halves and beside them: ties, and what is just off a tie.
      const double next = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(i ^ 1)));
      if (!std::isfinite(next) || !std::isfinite(value)) continue;
      const double middle = (value + next) / 2;
      for (const double x : {middle, std::nextafter(middle, 1e9), std::nextafter(middle, -1e9)})
        ASSERT_EQ(bits_of(from_double(x)), bits_of(static_cast<_Float16>(x))) << x;
    }
    for (const double x :
         {65519.999, 65520.0, 1e300, -65520.0, 1e-300, 0x1p-25, 0x1.0001p-25, -0.0})
      EXPECT_EQ(bits_of(from_double(x)), bits_of(static_cast<_Float16>(x))) << x;
    EXPECT_TRUE(std::isnan(to_float(from_double(std::numeric_limits<double>::quiet_NaN()))));
  }
}

TEST(CpuBackend, LinksUnitsAndExportsHidetFunctionsOnly) {
  const auto units = samples::two_units();
  const TestLibrary library(build_shared_object(units));
  EXPECT_EQ(library.get<double(double)>("hidet_first")(9), 21);
  EXPECT_EQ(library.get<double(double)>("hidet_second")(9), 22);
  EXPECT_EQ(library.get<double(double)>("helper"), nullptr);
}

TEST(CpuBackend, AWrongTextIsAnErrorThatNamesTheUnit) {
  const Unit unit{"gemm_3", "int hidet_f(void) { return missing; }"};
  for (int i = 0; i < 2; ++i) {
    try {
      build_shared_object({&unit, 1});
      FAIL() << "compiled";
    } catch (const hidet::Error& error) {
      EXPECT_EQ(error.code(), hidet::ErrorCode::internal);
      EXPECT_THAT(error.what(), HasSubstr("'gemm_3'"));
      EXPECT_THAT(error.what(), HasSubstr("undeclared identifier 'missing'"));
    }
  }
}

TEST(CpuBackend, ATextCannotIncludeFiles) {
  EXPECT_THROW(build("#include \"/etc/passwd\"\n"), hidet::Error);
  EXPECT_THROW(build("#include <stdio.h>\n"), hidet::Error);
}

TEST(CpuBackend, DuplicateFunctionsAreALinkError) {
  const std::vector<Unit> units = {{"a", "int hidet_f(void) { return 1; }"},
                                   {"b", "int hidet_f(void) { return 2; }"}};
  try {
    build_shared_object(units);
    FAIL() << "linked";
  } catch (const hidet::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("duplicate symbol: hidet_f"));
  }
}

TEST(CpuBackend, DeepExpressionsCompile) {
  std::string text = "int hidet_deep(int x) { return ";
  for (int i = 0; i < 3000; ++i) text += "(x + ";
  text += "0" + std::string(3000, ')') + "; }";
  const TestLibrary library(build(text));
  EXPECT_EQ(library.get<int(int)>("hidet_deep")(7), 21000);
}

TEST(CpuBackend, UnknownTargetsAreNamed) {
  EXPECT_THROW(build(samples::kAxpy, {.target = "armv9"}), hidet::Error);
  EXPECT_THROW(build(samples::kAxpy, {.target = "x86-64-v3+vnni"}), hidet::Error);
}

TEST(CpuBackend, CachesObjectsOneByOneAndTheLibrary) {
  std::vector<Unit> units;
  for (int i = 100; i < 106; ++i) units.push_back(samples::numbered(i));
  BuildStats stats;
  const auto first = build_shared_object(units, {}, &stats);
  EXPECT_EQ(stats.compiled, 6);
  EXPECT_FALSE(stats.library_cached);
  EXPECT_EQ(build_shared_object(units, {}, &stats), first);
  EXPECT_EQ(stats.compiled, 0);
  EXPECT_EQ(stats.cache_hits, 6);
  EXPECT_TRUE(stats.library_cached);

  units[2] = samples::numbered(200);
  units[3].name = "a name is no part of the key";
  build_shared_object(units, {}, &stats);
  EXPECT_EQ(stats.compiled, 1);
  EXPECT_EQ(stats.cache_hits, 5);
  build_shared_object(units, {.fast_math = true}, &stats);
  EXPECT_EQ(stats.compiled, 6) << "options are part of the key";
  build_shared_object(units, {.target = "x86-64-v2"}, &stats);
  EXPECT_EQ(stats.compiled, 6) << "the target is part of the key";
  build_shared_object(units, {.use_cache = false}, &stats);
  EXPECT_EQ(stats.compiled, 6);
}

TEST(CpuBackend, GivesTheSameBytesHoweverManyThreads) {
  std::vector<Unit> units;
  for (int i = 0; i < 24; ++i) units.push_back(samples::numbered(i));
  const auto one = build_shared_object(units, {.jobs = 1, .use_cache = false});
  for (const int jobs : {2, 3, 8})
    EXPECT_EQ(build_shared_object(units, {.jobs = jobs, .use_cache = false}), one);
  const TestLibrary library(one);
  const int x[] = {1, 2, 3};
  EXPECT_EQ(library.get<int(const int*, int)>("hidet_f23")(x, 3), 23 + 6 * 23);
}

TEST(CpuBackend, TheNameOfAUnitDoesNotReachTheLibrary) {
  const Unit plain{"a", samples::kAxpy}, odd{"-rf \"$(touch pwned)\" ../../x\n模", samples::kAxpy};
  EXPECT_EQ(build_shared_object({&plain, 1}, {.use_cache = false}),
            build_shared_object({&odd, 1}, {.use_cache = false}));
}

TEST(CpuBackend, BuildsOnSeveralThreadsAtOnce) {
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Unit unit = samples::numbered(300 + t);
      const TestLibrary library(build_shared_object({&unit, 1}));
      const int x = 2;
      right += library.get<int(const int*, int)>(("hidet_f" + std::to_string(300 + t)).c_str())(
                   &x, 1) == 3 * (300 + t);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

TEST(CpuBackend, ReportsProgressAndCanBeCancelled) {
  std::vector<Unit> units;
  for (int i = 400; i < 410; ++i) units.push_back(samples::numbered(i));
  const auto caller = std::this_thread::get_id();
  std::vector<int> seen;
  CpuOptions options{.jobs = 2, .use_cache = false};
  options.progress = [&](int done, int total) {
    EXPECT_EQ(total, 10);
    EXPECT_EQ(std::this_thread::get_id(), caller);
    seen.push_back(done);
    return true;
  };
  build_shared_object(units, options);
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  int calls = 0;
  options.progress = [&](int, int) { return ++calls < 3; };
  try {
    build_shared_object(units, options);
    FAIL() << "not cancelled";
  } catch (const hidet::Error& error) {
    EXPECT_EQ(error.code(), hidet::ErrorCode::cancelled);
  }
  EXPECT_EQ(calls, 3);
  // A callback that throws: its exception arrives, once no worker runs any more.
  struct Stop {};
  options.progress = [&](int, int) -> bool { throw Stop{}; };
  for (int round = 0; round < 3; round++) EXPECT_THROW(build_shared_object(units, options), Stop);
}

TEST(CpuBackend, KeepsTextForPeopleWhereAsked) {
  TestFolder folder;
  setenv("HIDET_KEEP", (folder.path() + "/new").c_str(), 1);
  const Unit unit{"../odd name", "int hidet_kept(void) { return 5; }"};
  build_shared_object({&unit, 1});
  unsetenv("HIDET_KEEP");
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/new/___odd_name-0-___odd_name.c"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/new/___odd_name.so"));
}

TEST(CpuBackend, WritesNothingToTheWorkingDirectory) {
  TestFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  build("int hidet_here(void) { return 5; }", {.use_cache = false});
  std::filesystem::current_path(before);
  EXPECT_EQ(folder.count(""), 0);
}

}  // namespace
