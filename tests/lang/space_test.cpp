// Parameter spaces: candidates built, left out, measured on copies, chosen by dims; times of a call.
#include <hidet/runtime/tensor.h>

#include <algorithm>

#include "notes.h"
#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

/// y[i] += x[i] + tile: what a call gives shows which candidate ran; larger tiles do more work in vain.
ScriptModule adds_its_tile(std::vector<int64_t> tiles) {
  ScriptModule m("adds_its_tile");
  auto slow = m.cpu_internal("slow", [](Function& f) {
    auto n = f.arg("n", i64);
    auto sum = var("sum", f32, 1.f);
    for (auto i : range(n)) sum = sum * 0.5f + cast(i, f32);
    f.returns(sum);
  });
  m.space({{"tile", std::move(tiles)}}, [slow](ScriptModule& s, const Params& p) {
    const int64_t tile = p["tile"];
    HIDET_REQUIRE(tile % 7 != 0, ErrorCode::usage, "", "no multiples of 7, such as ", tile);
    s.public_func("launch", [&](Function& f) {
      auto x = f.arg("x", ptr(f32));
      auto y = f.arg("y", ptr(f32));
      auto n = f.arg("n", i32);
      auto waste = let("waste", slow(tile * 100));
      for (auto i : range(n)) y[i] += x[i] + select(waste == -1.f, 0.f, float(tile));
    });
  });
  return m;
}

TEST(Space, CandidatesAreBuiltOrLeftOutWithANote) {
  CompiledModule built;
  const auto notes = candidate_notes([&] { built = adds_its_tile({3, 7, 1, 14}).build(); });
  EXPECT_THAT(built.candidates(), ElementsAre("tile=3", "tile=1"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("candidate tile=7 of 'adds_its_tile' is left out: no "
                                           "multiples of 7, such as 7"),
                                 HasSubstr("tile=14")));
  const Tensor x = full({4}, 1), y = zeros({4});
  built(x, y, 3);  // the first
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{4, 4, 4, 0}));
  EXPECT_EQ(built.candidate(x, y, 3), "tile=3");
}

TEST(Space, NoneLeftIsAnError) {
  (void)candidate_notes([] {
    try {
      (void)adds_its_tile({7, 14}).build();
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
      EXPECT_THAT(e.what(), HasSubstr("space_test.cpp:"));
      EXPECT_THAT(e.what(), HasSubstr("no candidate of 'adds_its_tile' can be built; tile=7: no "
                                      "multiples of 7"));
    }
  });
}

TEST(Space, TuneMeasuresCopiesAndKeepsTheBestPerDims) {
  CompiledModule built = adds_its_tile({2000, 1, 4000}).build();
  const Tensor x = full({8}, 1), y = full({8}, 5);
  int reports = 0;
  const TuneReport report = built.tune({.budget = 5,
                                        .rounds = 4,
                                        .progress =
                                            [&](const TuneProgress& p) {
                                              reports++;
                                              EXPECT_GE(p.total, p.done);
                                              EXPECT_GE(p.eta, 0);
                                            }},
                                       x, y, 8);
  EXPECT_EQ(report.best, "tile=1");
  EXPECT_EQ(report.dims, (std::vector<int64_t>{8, 8, 8}));
  EXPECT_GE(reports, 3);
  ASSERT_EQ(report.candidates.size(), 3u);
  EXPECT_LT(report.candidates[1].milliseconds, report.candidates[0].milliseconds);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(8, 5)) << "the arguments were changed";
  built(x, y, 8);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(8, 7));
  // Copies of the module share what was measured; unseen dims take the nearest entry.
  const CompiledModule copy = built;
  EXPECT_EQ(copy.candidate(x, y, 4), "tile=1");
}

TEST(Space, TheTableAsText) {
  CompiledModule built = adds_its_tile({3, 5}).build();
  const std::string device = built.data().target, header = "device\tfunction\tdims\tcandidate\n";
  EXPECT_EQ(built.dispatch_table(), header);
  const std::string table = header + device + "\tlaunch\t4,4,4\ttile=5\n" + device +
                            "\tlaunch\t4,4,1000\ttile=3\nanother machine\tlaunch\t4,4,30\ttile=3\n";
  built.use_dispatch_table(table);
  EXPECT_EQ(built.dispatch_table(), table);
  const Tensor x = zeros({4}), y = zeros({4});
  EXPECT_EQ(built.candidate(x, y, 4), "tile=5");
  EXPECT_EQ(built.candidate(x, y, 30), "tile=5");
  EXPECT_EQ(built.candidate(x, y, 400), "tile=3");
  EXPECT_EQ(built.candidate(x.data(), y.data(), 4), "tile=3") << "other dims than any row";
  const auto problem = [&](const std::string& text) -> std::string {
    try {
      built.use_dispatch_table(text);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file);
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(problem("nonsense\n"), HasSubstr("line 1 of the dispatch table"));
  EXPECT_THAT(problem(header + "a\tb\n"), HasSubstr("line 2"));
  EXPECT_THAT(problem(header + "a\tlaunch\t1\ttile=9\n"), HasSubstr("'tile=9', which is none"));
  EXPECT_THAT(problem(header + "a\tlaunch\t1,x\ttile=3\n"), HasSubstr("has a dim 'x'"));
  EXPECT_THAT(problem(header + "a\tother\t1\ttile=3\n"), HasSubstr("the function 'other'"));
  EXPECT_EQ(built.dispatch_table(), table) << "a refused text changes nothing";
}

TEST(Space, CombinationsAndWhatTheyShare) {
  ScriptModule m("combined");
  auto bias = m.global_var("bias", f32, {100});
  m.cpu_internal("unused", [](Function& f) { f.returns(f.arg("x", f32)); });
  m.space({{"a", {1, 2}}, {"b", {10, 20}}}, [bias](ScriptModule& s, const Params& p) {
    s.public_func("launch", [&](Function& f) { f.returns(bias + float(p["a"] * 1000 + p["b"])); });
    EXPECT_THROW((void)p["c"], Error);
  });
  const CompiledModule built = m.build();
  EXPECT_THAT(built.candidates(), ElementsAre("a=1,b=10", "a=1,b=20", "a=2,b=10", "a=2,b=20"));
  EXPECT_EQ(built().number(), 1110);
  EXPECT_THAT(m.ir(), HasSubstr("1010"));  // the first candidate
}

TEST(Space, Refusals) {
  const auto problem = [](auto define) -> std::string {
    try {
      ScriptModule m("m");
      define(m);
      (void)m.build();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const auto nothing = [](ScriptModule&, const Params&) {};
  EXPECT_THAT(problem([&](ScriptModule& m) { m.space({}, nothing); }),
              HasSubstr("space_test.cpp:"));
  EXPECT_THAT(problem([&](ScriptModule& m) { m.space({{"t", {}}}, nothing); }),
              HasSubstr("the parameter 't' has no values"));
  EXPECT_THAT(problem([&](ScriptModule& m) { m.space({{"t", {1, 1}}}, nothing); }),
              HasSubstr("'t' has a value twice"));
  EXPECT_THAT(problem([&](ScriptModule& m) { m.space({{"t", {1}}, {"t", {2}}}, nothing); }),
              HasSubstr("two parameters called 't'"));
  EXPECT_THAT(problem([&](ScriptModule& m) {
                m.space({{"t", {1}}}, nothing);
                m.space({{"u", {1}}}, nothing);
              }),
              HasSubstr("already has a parameter space"));
  CompiledModule plain;
  {
    ScriptModule m("plain");
    m.public_func("launch", [](Function& f) { f.arg("x", ptr(f32))[0] = 1.f; });
    plain = m.build();
  }
  EXPECT_TRUE(plain.candidates().empty());
  const Tensor x = zeros({1});
  EXPECT_THROW((void)plain.tune({}, x), Error);
  CompiledModule built = adds_its_tile({1}).build();
  try {
    (void)built.tune({}, x.data(), x.data(), 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("argument 'x' of void hidet_launch(float* x, float* y, int32_t "
                                    "n) is a pointer, whose memory cannot be copied"));
  }
}

TEST(Space, CandidatesWithOtherFunctions) {
  ScriptModule m("m");
  m.space({{"t", {1, 2}}}, [](ScriptModule& s, const Params& p) {
    s.public_func(p["t"] == 1 ? "one" : "two", [](Function& f) { f.returns(1); });
  });
  try {
    (void)m.build();
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("'t=1' and 't=2' of 'm' have different public functions"));
  }
}

TEST(Space, KernelsOfAGpuAreCompiledForEach) {
  ScriptModule m("cuda_space");
  m.space({{"tile", {64, 20000, 128}}}, [](ScriptModule& s, const Params& p) {
    s.cuda_kernel("k", [&](Function& f) {
      auto y = f.arg("y", ptr(f32));
      f.grid_dim(1);
      f.block_dim(32);
      auto tile = shared("tile", f32, {p["tile"]});
      tile(threadIdx.x) = 1.f;
      y[threadIdx.x] = tile(threadIdx.x);
    });
  });
  CompiledModule built;
  std::string report;
  const auto notes = candidate_notes(
      [&] { built = m.build({.cuda_arch = "sm_80", .use_cache = false, .report = &report}); });
  EXPECT_THAT(built.candidates(), ElementsAre("tile=64", "tile=128"));
  // What the assembler says of each, in their order.
  const size_t first = report.find("256 bytes smem"), second = report.find("512 bytes smem");
  EXPECT_NE(first, std::string::npos) << report;
  EXPECT_NE(second, std::string::npos) << report;
  EXPECT_LT(first, second);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("80000 bytes of shared memory")));
}

TEST(Profile, ACallOnTheCpuIsOneRow) {
  CompiledModule built = adds_its_tile({50, 1}).build();
  const Tensor x = zeros({8}), y = full({8}, 2);
  const Profile profile = built.profile(x, y, 8);
  ASSERT_EQ(profile.operators.size(), 1u);
  EXPECT_EQ(profile.operators[0].name, "launch");
  EXPECT_EQ(profile.operators[0].candidate, "tile=50");
  EXPECT_GT(profile.operators[0].milliseconds, 0);
  EXPECT_EQ(profile.operators[0].milliseconds, profile.total_ms);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(8, 2)) << "the arguments were changed";
}

}  // namespace
}  // namespace hidet::lang
