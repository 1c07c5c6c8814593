// tune_test.cpp - what tune keeps of the candidates of kernels, dispatch by sizes, files with a dispatch table.
#include <hidet/runtime/thread_pool.h>

#include <algorithm>
#include <cmath>

#include "model/spaces.h"
#include "runtime/compiled/tiny_model.h"

namespace hidet::test {
namespace {

TEST(Tune, KeepsARowForEachSizeAndSavesIt) {
  CompiledModel m = build_space(product("n", 64, 96), 1);
  EXPECT_EQ(m.dispatch_table(), "");
  int calls = 0;
  const auto reports = m.tune({{{"n", 1}}, {{"n", 40}}},
                              {.budget = 60, .rounds = 2, .progress = [&](const TuneProgress& p) {
                                 calls++;
                                 EXPECT_LE(p.done, p.total);
                                 EXPECT_GE(p.eta, 0);
                               }});
  EXPECT_GT(calls, 4);
  ASSERT_EQ(reports.size(), 2u);
  for (const ModelTuneReport& r : reports) {
    EXPECT_TRUE(r.complete);
    ASSERT_EQ(r.kernels.size(), 1u);
    EXPECT_EQ(r.kernels[0].dims, std::vector<int64_t>{r.dims.at("n")});
    EXPECT_EQ(r.kernels[0].candidates.size(), richest(m).second);
    for (const CandidateTime& t : r.kernels[0].candidates) {
      EXPECT_GT(t.measured, 0) << t.name << t.note;
      EXPECT_GT(t.milliseconds, 0);
    }
  }
  const std::string table = m.dispatch_table();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  EXPECT_THAT(table, HasSubstr(host_cpu_name() + "\t40\t"));
  const Folder folder;
  m.save(folder / "with.hidet", {.save_dispatch_table = true});
  m.save(folder / "without.hidet");
  EXPECT_EQ(load_model(folder / "with.hidet").dispatch_table(), table);
  EXPECT_EQ(load_model(folder / "without.hidet").dispatch_table(), "");
  m.save(folder / "again.hidet", {.save_dispatch_table = true});
  EXPECT_TRUE(tools_test::read_file(folder / "with.hidet") ==
              tools_test::read_file(folder / "again.hidet"));
  (void)m.tune({{{"n", 40}}}, {.budget = 60, .rounds = 1});
  const std::string later = m.dispatch_table();
  EXPECT_EQ(std::count(later.begin(), later.end(), '\n'), 3)
      << "a row of the same sizes is replaced";
}

TEST(Tune, PlantedTimesChooseAndNothingIsMeasuredAgain) {
  CompiledModel m = build_space(product("n", 64, 96), 1);
  const std::vector<std::string> names = m.tasks()[richest(m).first].candidates;
  int kept = 0;
  TuneOptions o{.budget = 60, .rounds = 3};
  o.memory.keep = [&](const TuneKey&, const CandidateTime&) { kept++; };
  // At n = 8 the third candidate takes half the default's time, at n = 64 the best is faster by 1 % only.
  o.memory.find = [&](const TuneKey& key) -> std::optional<CandidateTime> {
    EXPECT_EQ(key.device, host_cpu_name());
    EXPECT_EQ(key.threads, num_threads());
    EXPECT_FALSE(key.digest.empty());
    const bool small = key.dims == "n=8";
    EXPECT_TRUE(small || key.dims == "n=64");
    double ms = 2;
    if (key.candidate == names[2]) ms = small ? 1 : 1.98;
    if (key.candidate == names[1]) return CandidateTime{"", 0, 0, "fails: it was so before"};
    return CandidateTime{"", ms, 9, ""};
  };
  const auto reports = m.tune({{{"n", 8}}, {{"n", 64}}}, o);
  EXPECT_EQ(kept, 0);
  EXPECT_EQ(reports[0].kernels[0].best, names[2]);
  EXPECT_EQ(reports[1].kernels[0].best, "default");
  EXPECT_TRUE(reports[0].complete && reports[1].complete);
  // Runs take the row of the nearest size.
  for (const auto& [n, expected] : std::vector<std::pair<int64_t, std::string>>{
           {1, names[2]}, {8, names[2]}, {20, names[2]}, {30, "default"}, {500, "default"}}) {
    std::string ran;
    (void)m.run({ones({n, 64})}, {.hook = [&](const InstructionEvent& e) { ran = e.candidate; }});
    EXPECT_EQ(ran, expected) << n;
  }
}

TEST(Tune, StoppedAndTakenUpAgain) {
  CompiledModel m = build_space(product("n", 64, 96), 1);
  std::map<std::string, CandidateTime> memory;
  TuneOptions o{.budget = 60, .rounds = 2};
  o.memory.find = [&](const TuneKey& k) -> std::optional<CandidateTime> {
    const auto it = memory.find(k.digest + k.dims);
    return it == memory.end() ? std::nullopt : std::optional(it->second);
  };
  o.memory.keep = [&](const TuneKey& k, const CandidateTime& t) { memory[k.digest + k.dims] = t; };
  o.progress = [](const TuneProgress& p) {
    if (p.done == 4) throw Error(ErrorCode::cancelled, "stopped");
  };
  EXPECT_EQ(error_of([&] { m.tune({{{"n", 9}}}, o); }, ErrorCode::cancelled), "stopped");
  EXPECT_THAT(m.dispatch_table(), HasSubstr("\t9\t")) << "what was measured is used";
  int measured = 0;
  for (const auto& [key, t] : memory) measured += t.measured;
  EXPECT_EQ(measured, 4);
  int runs = 0;
  o.progress = [&](const TuneProgress& p) { runs = p.done; };
  const ModelTuneReport r = m.tune({{{"n", 9}}}, o)[0];
  EXPECT_TRUE(r.complete);
  int total = 0;
  for (const CandidateTime& t : r.kernels[0].candidates) total += t.measured;
  EXPECT_EQ(runs, total - 4) << "only the rest was measured";
  runs = 0;
  (void)m.tune({{{"n", 9}}}, o);
  EXPECT_EQ(runs, 0);
}

/// tiny::model with candidates that are wrong, fail, are slow, crash or never end.
ModelData model_of_bad_candidates() {
  ModelData d = tiny::model();
  d.programs[0].code = tiny::compile(std::string(tiny::kCode) + R"(
int32_t hidet_graph_launch_chosen(hidet_ctx* c, const int64_t* s, void* const* in, void* const* out, void* const* w,
                                  void* ws, const int32_t* candidates) {
  return hidet_graph_launch(c, s, in, out, w, ws);
}
int32_t hidet_call_wrong(hidet_ctx* c, const hidet_value* a) {
  int32_t status = hidet_call_scale_relu(c, a);
  ((float*)a[2].p)[0] += 1;
  return status;
}
int32_t hidet_call_lazy(hidet_ctx* c, const hidet_value* a) { return 0; }
int32_t hidet_call_fails(hidet_ctx* c, const hidet_value* a) { return H->raise(c, 2, "no such thing"); }
int32_t hidet_call_crashes(hidet_ctx* c, const hidet_value* a) { *(volatile int*)8 = 1; return 0; }
int32_t hidet_call_endless(hidet_ctx* c, const hidet_value* a) { for (volatile int i = 0;; i++) {} return 0; }
int32_t hidet_call_slow(hidet_ctx* c, const hidet_value* a) {
  for (volatile int i = 0; i < 3000000; i++) {}
  return hidet_call_scale_relu(c, a);
}
)");
  for (const char* name : {"wrong", "lazy", "fails", "slow", "crashes", "endless"})
    d.programs[0].kernels[0].candidates.push_back(
        {name, "", name, std::string("digest of ") + name});
  return d;
}

TEST(Tune, WhatIsWrongOrFailsNeverWinsAndIsReported) {
  CompiledModel m = CompiledModel::from_data(model_of_bad_candidates());
  std::map<std::string, std::vector<std::string>> notes;
  TuneOptions o{.budget = 60, .rounds = 3};
  o.memory.keep = [&](const TuneKey& k, const CandidateTime& t) {
    notes[k.candidate].push_back(t.note);
  };
  const TuneReport r = m.tune({{{"n", 5}}}, o)[0].kernels.at(0);
  EXPECT_EQ(r.best, "default");
  EXPECT_GE(r.candidates[0].measured, 1);
  EXPECT_THAT(r.candidates[1].note, HasSubstr("its results differ"));
  EXPECT_THAT(r.candidates[2].note, HasSubstr("its results differ")) << "wrote nothing";
  EXPECT_THAT(r.candidates[3].note, HasSubstr("no such thing"));
  EXPECT_THAT(r.candidates[4].note, HasSubstr("far behind"));
  EXPECT_THAT(r.candidates[5].note, HasSubstr("crashed"));
  EXPECT_THAT(r.candidates[6].note, HasSubstr("did not end within"));
  for (const int c : {1, 2, 3, 5, 6}) EXPECT_EQ(r.candidates[c].measured, 0);
  // Before its first run each is kept as one that did not come back, for the next process.
  for (const char* name : {"wrong", "fails", "slow", "crashes"})
    EXPECT_THAT(notes[name].at(0), testing::StrEq(kTuneStarted)) << name;
  EXPECT_EQ(notes["slow"].at(1), "");
}

TEST(Tune, WhatItRefuses) {
  CompiledModel one = build(product("n", 8, 16));
  EXPECT_THAT(error_of([&] { one.tune({{{"n", 1}}}); }), HasSubstr("one candidate each"));
  CompiledModel m = build_space(product("n", 64, 96), 1);
  EXPECT_THAT(error_of([&] { m.tune({{}}); }), HasSubstr("'n' of 'model' has no size"));
  EXPECT_THAT(error_of([&] { m.tune({{{"n", 1}, {"s", 2}}}); }), HasSubstr("no symbol 's'"));
  EXPECT_THAT(error_of([&] { m.tune({{{"n", -1}}}); }), HasSubstr("-1"));
  EXPECT_THAT(error_of([&] { m.tune({{{"n", 1}}}, {.budget = 0}); }), HasSubstr("budget"));
  EXPECT_THAT(error_of([&] { m.use_dispatch_table("device\n"); }, ErrorCode::bad_file),
              HasSubstr("dispatch_table.txt"));
  EXPECT_THAT(error_of([&] { CompiledModel().tune({}); }), HasSubstr("empty"));
}

}  // namespace
}  // namespace hidet::test
