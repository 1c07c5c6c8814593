// Rows 59 and 61 of tests/cases/bug_reports.md: tuning calls a kernel many times, and the caller sees none of it; a candidate that
// cannot be compiled, crashes or never ends is left out with its reason.
#include <hidet/hidet.h>
#include <hidet/runtime/tensor.h>

#include <chrono>

#include "notes.h"
#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Define = std::function<void(ScriptModule&, int64_t)>;

ScriptModule with_space(const std::string& name, const std::vector<int64_t>& values,
                        const Define& define) {
  ScriptModule m(name);
  m.space({{"t", values}}, [define](ScriptModule& s, const Params& p) { define(s, p["t"]); });
  return m;
}

/// f(i) for i < n, by blocks of t.
template <class F>
void in_blocks(const Value& n, int64_t t, F f) {
  for (auto block : parallel((n + t - 1) / t))
    for (auto i : range(t))
      if (auto _ = when(block * t + i < n)) f(block * t + i);
}

/// y += x, by blocks of t.
void adds(ScriptModule& s, int64_t t) {
  s.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto y = f.arg("y", ptr(f32));
    auto n = f.arg("n", i32);
    in_blocks(n, t, [&](const Value& i) { y[i] += x[i]; });
  });
}
/// Counts equal keys, by blocks of t.
void counts(ScriptModule& s, int64_t t) {
  s.public_func("launch", [&](Function& f) {
    auto keys = f.arg("keys", ptr(i32));
    auto count = f.arg("count", ptr(i32));
    auto n = f.arg("n", i32);
    in_blocks(n, t, [&](const Value& i) { atomic_add(count + keys[i], 1); });
  });
}
/// Appends t to a list of room for one: a second call without the first one's state back would write beyond it.
void appends(ScriptModule& s, int64_t t) {
  s.public_func("launch", [&](Function& f) {
    auto list = f.arg("list", ptr(i32));
    auto length = f.arg("length", ptr(i32));
    assert_(length[0] == 0, "the list is full");
    list[length[0]] = Value(int(t));
    length[0] += 1;
  });
}

TEST(Reports, Row59TuningInPlace) {
  const Tensor x = full({1000}, 1);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{8, 64, 256, 1000}, {64}})
    for (const bool tuned : {true, false}) {
      // The second build is from the cache.
      for (int build = 0; build < 2; build++) {
        const CompiledModule sums = with_space("adds", sizes, adds).build();
        const Tensor y = zeros({1000});
        if (tuned) {
          EXPECT_EQ(sums.tune({.budget = 5, .rounds = 3}, x, y, 1000).candidates.size(),
                    sizes.size());
        }
        sums(x, y, 1000);
        EXPECT_EQ(y.to_vector<float>(), std::vector<float>(1000, 1));

        const CompiledModule histogram = with_space("counts", sizes, counts).build();
        const Tensor keys = full({1000}, 2, i32), count = zeros({4}, i32);
        if (tuned) (void)histogram.tune({.budget = 5, .rounds = 3}, keys, count, 1000);
        histogram(keys, count, 1000);
        EXPECT_EQ(count.to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 1000, 0}));
      }
    }
  // The same tensor twice: both names stay one memory.
  const CompiledModule sums = with_space("adds", {8, 64}, adds).build();
  const Tensor y = full({1000}, 3);
  (void)sums.tune({.budget = 5, .rounds = 3}, y, y, 1000);
  sums(y, y, 1000);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(1000, 6));
}

TEST(Reports, Row59EachCallOfATuningStartsFromTheArguments) {
  const CompiledModule built = with_space("appends", {1, 2}, appends).build();
  const Tensor list = zeros({1}, i32), length = zeros({1}, i32);
  const TuneReport report = built.tune({.budget = 5, .rounds = 3}, list, length);
  for (const CandidateTime& c : report.candidates) EXPECT_GT(c.measured, 1) << c.note;
  EXPECT_EQ(length.to_vector<int32_t>(), std::vector<int32_t>{0});
  const Profile profile = built.profile(list, length);
  EXPECT_EQ(profile.operators.size(), 1u);
  built(list, length);
  EXPECT_EQ(length.to_vector<int32_t>(), std::vector<int32_t>{1});
}

enum Fault : int64_t { kRefused, kNoAssembly, kEndless, kFault, kTraps, kAsserts, kGood };

/// y[0] = 1 in a way of its own.
void faulty(ScriptModule& s, int64_t how) {
  HIDET_REQUIRE(how != kRefused, ErrorCode::usage, "", "refused at recording");
  s.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto y = f.arg("y", ptr(f32));
    if (how == kNoAssembly) asm_("this is no instruction");
    if (how == kEndless)
      for (auto _ : loop_while(x[0] == 1.f)) y[0] += 1.f;
    if (how == kFault) y[cast(x[0], i64) * (int64_t{1} << 40)] = 1.f;
    if (how == kTraps) asm_("ud2");
    if (how == kAsserts) assert_(x[0] != 1.f, "x is 1");
    y[0] = 1.f;
  });
}

TEST(Reports, Row61CandidatesThatFailAreLeftOut) {
  CompiledModule built;
  const auto notes = candidate_notes([&] {
    built = with_space("faulty", {kRefused, kNoAssembly, kEndless, kFault, kTraps, kAsserts, kGood},
                       faulty)
                .build();
  });
  EXPECT_THAT(notes, ElementsAre(HasSubstr("candidate t=0 of 'faulty' is left out: refused at "),
                                 HasSubstr("candidate t=1 of 'faulty' is left out: ")));
  const Tensor x = full({1}, 1), y = zeros({1});
  const auto start = std::chrono::steady_clock::now();
  const TuneReport report = built.tune({.budget = 6, .rounds = 3}, x, y);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 12);
  EXPECT_EQ(report.best, "t=6");
  ASSERT_EQ(report.candidates.size(), 5u);
  EXPECT_THAT(report.candidates[0].note, HasSubstr("it did not end within 1 s"));
  EXPECT_THAT(report.candidates[1].note, HasSubstr("it crashed: Segmentation fault"));
  EXPECT_THAT(report.candidates[2].note, HasSubstr("it crashed: Illegal instruction"));
  EXPECT_THAT(report.candidates[3].note, HasSubstr("x is 1"));
  EXPECT_EQ(report.candidates[4].note, "");
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>{0});
  built(x, y);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>{1});
}

TEST(Reports, Row61WithoutAGoodOneTheErrorListsAll) {
  CompiledModule built;
  (void)candidate_notes(
      [&] { built = with_space("faulty", {kEndless, kFault, kAsserts}, faulty).build(); });
  const Tensor x = full({1}, 1), y = zeros({1});
  try {
    (void)built.tune({.budget = 2}, x, y);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    EXPECT_THAT(
        e.what(),
        AllOf(HasSubstr("no candidate of 'faulty' runs; t=2: it did not end within"),
              HasSubstr("; t=3: it crashed: Segmentation fault; t=5: "), HasSubstr("x is 1")));
  }
  // The next one runs in this process, on all its threads.
  const CompiledModule sums = with_space("adds", {8, 64}, adds).build();
  const Tensor a = full({1000}, 1), b = zeros({1000});
  (void)sums.tune({.budget = 5, .rounds = 3}, a, b, 1000);
  sums(a, b, 1000);
  EXPECT_EQ(b.to_vector<float>(), std::vector<float>(1000, 1));
  try {
    (void)candidate_notes(
        [&] { (void)with_space("none", {kRefused, kNoAssembly}, faulty).build(); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("no candidate of 'none' can be built; t=0: refused at"),
                                HasSubstr("; t=1: ")));
  }
}

// For a GPU: a tile over the shared memory, text that the CUDA compiler refuses, and a good one.
TEST(Reports, Row61OnAGpuWhatCannotBeBuiltIsLeftOut) {
  CompiledModule built;
  const auto notes = candidate_notes([&] {
    built = with_space("gpu", {20000, 1, 64}, [](ScriptModule& s, int64_t tile) {
              s.cuda_kernel("k", [&](Function& f) {
                auto y = f.arg("y", ptr(f32));
                f.grid_dim(1);
                f.block_dim(32);
                auto t = shared("t", f32, {std::max<int64_t>(tile, 32)});
                if (tile == 1) asm_("this is no instruction;");
                t(threadIdx.x) = 1.f;
                y[threadIdx.x] = t(threadIdx.x);
              });
            }).build({.cuda_arch = "sm_80"});
  });
  EXPECT_THAT(built.candidates(), ElementsAre("t=64"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("80000 bytes of shared memory"), HasSubstr("t=1 of")));
}

}  // namespace
}  // namespace hidet::lang
