// workers_test.cpp - the compile threads: every index once, exceptions, cancelling, CPU targets.
#include "cpu/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "hidet/runtime/cpu_level.h"
#include "hidet/runtime/error.h"

namespace {

using hidet::CpuTarget;
using hidet::backends::cpu::run_on_workers;

TEST(Workers, RunEveryIndexOnce) {
  for (const int jobs : {1, 2, 7, 100}) {
    std::vector<std::atomic<int>> count(57);
    run_on_workers(57, jobs, [&](int i) { ++count[i]; }, {});
    for (const auto& c : count) EXPECT_EQ(c, 1);
  }
  run_on_workers(0, 4, [](int) { FAIL(); }, {});
}

TEST(Workers, ThrowTheFirstFailure) {
  std::atomic<int> ran{0};
  const auto body = [&](int i) {
    ++ran;
    if (i >= 5) throw hidet::Error("index " + std::to_string(i));
  };
  try {
    run_on_workers(1000, 3, body, {});
    FAIL();
  } catch (const hidet::Error& error) {
    EXPECT_STREQ(error.what(), "index 5");
  }
  EXPECT_LT(ran, 20);
}

TEST(Workers, HaveADeepStack) {
  run_on_workers(1, 1,
                 [](int) {
                   volatile char deep[48 << 20];
                   deep[0] = 1;
                   EXPECT_EQ(deep[0], 1);
                 },
                 {});
}

TEST(CpuTarget, TextGoesBothWays) {
  for (const char* text :
       {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v3+avxvnni", "x86-64-v4", "x86-64-v4+vnni+bf16",
        "x86-64-v4+amx", "x86-64-v4+avxvnni+vbmi+vnni+bf16+fp16+amx"})
    EXPECT_EQ(CpuTarget::parse(text).name(), text);
  EXPECT_EQ(CpuTarget::parse("x86-64-v4+bf16+vnni+bf16").name(), "x86-64-v4+vnni+bf16");
  EXPECT_EQ(CpuTarget::parse("x86-64-v1").name(), "x86-64");
  EXPECT_EQ(CpuTarget::parse("native"), hidet::host_cpu_target());
  for (const char* text : {"", "x86", "x86-64-v5", "x86-64-v4+", "x86-64-v4+amy", "x86-64-v3+bf16",
                           "x86-64-v3+amx", "+vnni", "x86-64-v4 "})
    EXPECT_THROW(CpuTarget::parse(text), hidet::Error) << text;
}

TEST(CpuTarget, RunsOnWhatHasAtLeastAsMuch) {
  const auto v3 = CpuTarget::parse("x86-64-v3"), v4 = CpuTarget::parse("x86-64-v4");
  const auto vnni = CpuTarget::parse("x86-64-v4+vnni");
  EXPECT_TRUE(v3.runs_on(v4));
  EXPECT_TRUE(v4.runs_on(vnni));
  EXPECT_FALSE(vnni.runs_on(v4));
  EXPECT_FALSE(v4.runs_on(v3));
  EXPECT_EQ(v3.why_not(v4), "");
  EXPECT_EQ(vnni.why_not(v4), "the code is for x86-64-v4+vnni and this CPU is x86-64-v4");
  EXPECT_TRUE(vnni.better_than(v4));
  EXPECT_TRUE(v4.better_than(v3));
  EXPECT_FALSE(v3.better_than(v3));
  EXPECT_TRUE(hidet::host_cpu_target().runs_on(hidet::host_cpu_target()));
}

}  // namespace
