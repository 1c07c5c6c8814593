// tune_test.cpp - `hidet tune` and `hidet compile --tune`: choices in the file, records, stopping and going on, refusals.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sstream>

#include "tools/child.h"
#include "tools/models.h"

using namespace tools_test;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

namespace {

/// x[n, 96] -> product with 96 x 160 -> relu.
onnx_test::Model wide_product() {
  using namespace onnx_test;
  Model m;
  m.input("x", 1, {"n", 96}).output("y").initializer(tensor<float>("w", {96, 160}, wave(96 * 160)));
  m.node("MatMul", {"x", "w"}, {"p"}, {}, "product").node("Relu", {"p"}, {"y"}, {}, "relu");
  return m;
}

struct Files {
  Folder folder;
  std::string onnx = folder / "m.onnx", file = folder / "m.hidet", records = folder / "t.sqlite",
              json = folder / "r.json";
  Files() { onnx_test::write_file(onnx, wide_product().serialize()); }
  Ran compile(std::vector<std::string> more, const How& how = {}) const {
    std::vector<std::string> args{"compile", onnx, "-o", file, "--target", "cpu:native"};
    args.insert(args.end(), more.begin(), more.end());
    return hidet(args, how);
  }
  Ran tune(std::vector<std::string> more, const How& how = {}) const {
    std::vector<std::string> args{"tune", file, "--records", records, "--json", json};
    args.insert(args.end(), more.begin(), more.end());
    return hidet(args, how);
  }
  Json result() const { return Json::parse(read_file(json)); }
  /// Measurements of all candidates that the last tune reports.
  int measured() const {
    int count = 0;
    const Json all = result();
    for (const Json& s : all["sizes"])
      for (const Json& k : s["kernels"])
        for (const Json& c : k["candidates"]) count += c["measured"].get<int>();
    return count;
  }
};

TEST(TuneCommand, MeasuresOnceAndKeepsChoicesInTheFile) {
  const Files f;
  ASSERT_EQ(f.compile({"--space", "1", "-q"}).status, 0);
  const Ran first = f.tune({"--dims", "n=1,40", "--rounds", "2"});
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("at n=1"), HasSubstr("at n=40"), HasSubstr("k_matmul")));
  const Json r = f.result();
  ASSERT_EQ(r["sizes"].size(), 2u);
  EXPECT_TRUE(r["sizes"][1]["complete"].get<bool>());
  EXPECT_EQ(r["sizes"][1]["dims"]["n"], 40);
  // A second one finds all in the records and gives the same file.
  const std::string before = read_file(f.file);
  ASSERT_EQ(f.tune({"--dims", "n=1,40", "--rounds", "2", "-q"}).status, 0);
  EXPECT_TRUE(read_file(f.file) == before);
  EXPECT_EQ(f.result()["sizes"][0]["kernels"], r["sizes"][0]["kernels"]);
  EXPECT_EQ(hidet({"run", f.file, "--shapes", "x:7x96", "-q"}).status, 0);
  // An .onnx: with -o the file is written, too.
  const Ran onnx = hidet({"tune", f.onnx, "-o", f.folder / "o.hidet", "--records", f.records,
                          "--dims", "n=40", "--rounds", "2", "-q", "--json", f.json});
  ASSERT_EQ(onnx.status, 0) << onnx.err;
  EXPECT_EQ(f.result()["sizes"][0]["kernels"], r["sizes"][1]["kernels"]) << "equal digests";
}

TEST(TuneCommand, CompileTunesFromRecordsAndKeepsTheWinnersOnly) {
  const Files f;
  const std::vector<std::string> args{"--tune", "--dims",    "n=40",   "--rounds",
                                      "1",      "--records", f.records};
  const Ran r = f.compile(args);
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("measured"), HasSubstr("at n=40")));
  const std::string first = read_file(f.file);
  EXPECT_NE(first.find("dispatch_table.txt"), std::string::npos);
  ASSERT_EQ(f.compile({"-q"}).status, 0);
  EXPECT_LT(first.size(), read_file(f.file).size() + 20000) << "what lost is not in the file";
  ASSERT_EQ(f.compile(args).status, 0);
  EXPECT_TRUE(read_file(f.file) == first) << "from the records";
}

TEST(TuneCommand, StoppedByCtrlCItGoesOnLater) {
  const Files f;
  ASSERT_EQ(f.compile({"--space", "1", "-q"}).status, 0);
  const std::string before = read_file(f.file);
  const std::vector<std::string> args{"--dims", "n=4000", "--rounds", "100000"};
  const Ran stopped = f.tune(args, {.interrupt_ms = 700});
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_TRUE(read_file(f.file) == before) << "no half-done file";
  const Ran exported = hidet({"tune", "--records", f.records, "--export", f.folder / "l.jsonl"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_THAT(read_file(f.folder / "l.jsonl"), HasSubstr("\"dims\":\"n=4000\""));
  ASSERT_EQ(f.tune({"--dims", "n=4000", "--rounds", "2", "-q"}).status, 0);
  EXPECT_TRUE(f.result()["sizes"][0]["complete"].get<bool>());
  EXPECT_GE(f.measured(), 2);
}

TEST(TuneCommand, RecordsAreMergedLockedAndExported) {
  const Files f;
  ASSERT_EQ(f.compile({"--space", "1", "-q"}).status, 0);
  ASSERT_EQ(f.tune({"--rounds", "1", "-q"}).status, 0);
  const std::string lines = f.folder / "l.jsonl", other = f.folder / "other.sqlite";
  ASSERT_EQ(hidet({"tune", "--records", f.records, "--export", lines}).status, 0);
  const Ran merged = hidet({"tune", "--merge", other, lines, lines});
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr(other));
  EXPECT_EQ(hidet({"tune", "--records", other, "--export", "-"}).out, read_file(lines));
  EXPECT_THAT(hidet({"tune", "--records", other, "--lock", "all"}).out, HasSubstr("locked"));
  // Locked: more rounds change nothing.
  const std::string locked = hidet({"tune", "--records", other, "--export", "-"}).out;
  EXPECT_THAT(locked, HasSubstr("\"locked\":true"));
  ASSERT_EQ(hidet({"tune", f.file, "--records", other, "--rounds", "5", "-q"}).status, 0);
  EXPECT_EQ(hidet({"tune", "--records", other, "--export", "-"}).out, locked);
  EXPECT_THAT(hidet({"tune", "--records", other, "--unlock", "matmul"}).out,
              Not(HasSubstr("0 records")));
}

TEST(TuneCommand, ExplainTellsTimesAndWhy) {
  const Files f;
  ASSERT_EQ(f.compile({"-q"}).status, 0);
  EXPECT_THAT(hidet({"explain", f.file, "product", "--records", f.records}).err,
              HasSubstr("no tuning records"));
  EXPECT_THAT(hidet({"explain", f.file, "product"}).out, HasSubstr("candidates one"));
  ASSERT_EQ(f.compile({"--space", "1", "-q"}).status, 0);
  EXPECT_THAT(hidet({"explain", f.file, "product"}).out,
              AllOf(HasSubstr("candidate  panels="), HasSubstr("the file has no choices")));
  ASSERT_EQ(f.tune({"--dims", "n=3", "--rounds", "1", "-q"}).status, 0);
  // Times for which there can be one reason only: every candidate takes 1 ms, one of them a quarter.
  ASSERT_EQ(hidet({"tune", "--records", f.records, "--export", f.folder / "l.jsonl"}).status, 0);
  std::istringstream lines(read_file(f.folder / "l.jsonl"));
  std::string planted;
  for (std::string line; std::getline(lines, line);) {
    Json j = Json::parse(line);
    j["milliseconds"] = j["candidate"] == "panels=3" ? 0.25 : 1;
    j["measured"] = 100;
    j["note"] = "";
    planted += j.dump() + "\n";
  }
  std::ofstream(f.folder / "p.jsonl") << planted;
  const std::string other = f.folder / "p.sqlite";
  ASSERT_EQ(hidet({"tune", "--merge", other, f.folder / "p.jsonl"}).status, 0);
  ASSERT_EQ(hidet({"tune", f.file, "--records", other, "--dims", "n=3", "-q"}).status, 0);
  const Ran r = hidet({"explain", f.file, "product", "--records", other, "--json", f.json});
  EXPECT_THAT(r.out,
              AllOf(HasSubstr("n=3: panels=3 on"), HasSubstr("0.2500 ms, the default 1.0000 ms"),
                    HasSubstr("nearest of these sizes"), HasSubstr("threads: 1.0000 ms")));
  const Json k = f.result()["kernels"][0];
  EXPECT_EQ(k["chosen"][0]["candidate"], "panels=3");
  EXPECT_EQ(k["candidates"][0]["times"][0]["ms"], 1);
  EXPECT_EQ(hidet({"explain", f.file, "--records", f.folder / "none"}).status, 3);
}

TEST(TuneCommand, WhatItRefuses) {
  const Files f;
  const auto refused = [&](std::vector<std::string> args, int status,
                           const std::vector<std::string>& words) {
    const Ran r = hidet(args);
    EXPECT_EQ(r.status, status) << r.err;
    for (const std::string& w : words) EXPECT_THAT(r.err, HasSubstr(w));
  };
  ASSERT_EQ(f.compile({"-q"}).status, 0);
  refused({"tune", f.file}, 2, {"one candidate each", "space 1"});
  ASSERT_EQ(f.compile({"--space", "1", "-q"}).status, 0);
  refused({"tune"}, 2, {".hidet", "--merge"});
  refused({"tune", f.folder / "none.hidet"}, 3, {"none.hidet"});
  refused({"tune", f.file, "--dims", "n"}, 2, {"--dims", "'n'", "NAME=SIZE"});
  refused({"tune", f.file, "--dims", "k=1"}, 2, {"no symbol 'k'"});
  refused({"tune", f.file, "--dims", "n=1.5"}, 2, {"'1.5'"});
  refused({"tune", f.file, "--dims", "n="}, 2, {"no size"});
  refused({"tune", f.file, "--budget", "0"}, 2, {"--budget"});
  refused({"tune", "--merge", "a"}, 2, {"--merge"});
  refused({"tune", "--merge", f.folder / "a", f.folder / "b"}, 3, {"no tuning records"});
  std::ofstream(f.records) << "this is no database at all, but text that is longer than a header";
  refused({"tune", f.file, "--records", f.records}, 3, {f.records, "damaged"});
  EXPECT_EQ(hidet({"tune", "--export", "-"}, {.env = {{"HIDET_CACHE", "off"}}}).status, 2);
}

}  // namespace
