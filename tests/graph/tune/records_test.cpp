// records_test.cpp - tuning records: what is kept is found, locked, exported, merged; damaged files, full disks, two processes.
#include <gmock/gmock.h>
#include <hidet/graph/tune_records.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/log.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "error_of.h"
#include "runtime/compiled/tiny_model.h"

namespace hidet::graph {
namespace {
using test::error_of;
using testing::AllOf;
using testing::HasSubstr;
using tiny::Folder;

std::string read_file(const std::string& path) {
  const std::vector<uint8_t> bytes = tiny::read_file(path);
  return {bytes.begin(), bytes.end()};
}

TuneKey key(const std::string& candidate, const std::string& dims = "n=8") {
  return {"product \"x\"\n", candidate, "digest of " + candidate, dims, "a CPU", 2};
}

TEST(TuneRecords, WhatIsKeptIsFoundInAnotherProcessToo) {
  const Folder folder;
  const std::string path = folder / "new/folder/t.sqlite";
  {
    TuneRecords r(path);
    EXPECT_FALSE(r.find(key("a")));
    r.keep(key("a"), {"a", 0.125, 2, ""});
    r.keep(key("a"), {"a", 0.1, 3, "dropped"});
    r.keep(key("a", "n=9"), {"a", 7, 1, ""});
  }
  TuneRecords r(path);
  const auto t = r.find(key("a"));
  ASSERT_TRUE(t);
  EXPECT_EQ(t->milliseconds, 0.1);
  EXPECT_EQ(t->measured, 3);
  EXPECT_EQ(t->note, "dropped");
  EXPECT_EQ(r.find(key("a", "n=9"))->milliseconds, 7);
  for (TuneKey other : {key("b"), key("a", "n=1")}) EXPECT_FALSE(r.find(other));
  TuneKey other = key("a");
  other.threads = 1;
  EXPECT_FALSE(r.find(other));
  other = key("a");
  other.device = "another CPU";
  EXPECT_FALSE(r.find(other));
  ASSERT_EQ(r.list().size(), 2u);
  EXPECT_EQ(r.list()[0].key.kernel, "product \"x\"\n");
}

TEST(TuneRecords, ALockedRecordIsNotChanged) {
  const Folder folder;
  TuneRecords r(folder / "t.sqlite");
  r.keep(key("a"), {"a", 1, 2, ""});
  r.keep(key("b"), {"b", 0, 0, "fails: so"});
  EXPECT_EQ(r.set_locked("prod", true), 2);
  EXPECT_EQ(r.set_locked("nothing", true), 0);
  r.keep(key("a"), {"a", 0.5, 9, ""});
  EXPECT_EQ(r.find(key("a"))->milliseconds, 1);
  EXPECT_EQ(r.find(key("a"))->note, "locked") << "it is not measured again";
  EXPECT_EQ(r.forget_failures(), 0);
  EXPECT_EQ(r.merge({{key("a"), {"a", 0.5, 9, ""}, true, INT64_MAX}}), 0);
  EXPECT_EQ(r.set_locked("", false), 2);
  EXPECT_EQ(r.forget_failures(), 1);
  r.keep(key("a"), {"a", 0.5, 9, ""});
  EXPECT_EQ(r.find(key("a"))->milliseconds, 0.5);
}

TEST(TuneRecords, LinesThereAndBackAndMerge) {
  const Folder folder;
  const std::string base = folder / "a.sqlite", lines = folder / "b.jsonl";
  const std::vector<TuneRecord> more{{key("a"), {"a", 3, 9, "x\ty"}, false, 10},
                                     {key("b"), {"b", 4, 1, ""}, false, 10},
                                     {key("c"), {"c", 0, 0, "fails"}, true, 10}};
  {
    TuneRecords r(base);
    r.keep(key("a"), {"a", 1, 5, ""});
    r.keep(key("b"), {"b", 2, 1, ""});
  }
  EXPECT_EQ(merge_into(lines, more), 3);
  const std::vector<TuneRecord> back = read_records(lines);
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(to_lines(back), read_file(lines));
  EXPECT_EQ(back[0].time.note, "x\ty");
  EXPECT_TRUE(back[2].locked);
  EXPECT_EQ(merge_into(base, back), 2) << "a: measured more often; b: as often, but older; c: new";
  TuneRecords r(base);
  EXPECT_EQ(r.find(key("a"))->milliseconds, 3);
  EXPECT_EQ(r.find(key("b"))->milliseconds, 2);
  EXPECT_EQ(r.find(key("c"))->note, "fails");
  EXPECT_EQ(merge_into(base, back), 0) << "nothing twice";
  EXPECT_EQ(merge_into(lines, read_records(base)), 1) << "b is newer there";
  EXPECT_EQ(merge_into(folder / "c.jsonl", read_records(base)), 3);
  EXPECT_EQ(read_file(folder / "c.jsonl"), read_file(lines));
}

TEST(TuneRecords, DamagedFilesAreNamedAndLeftAsTheyAre) {
  const Folder folder;
  const std::string path = folder / "t.sqlite";
  std::ofstream(path) << "these are no records, but somebody's text, and long enough to be a page";
  const std::string before = read_file(path);
  EXPECT_THAT(error_of([&] { TuneRecords{path}; }, ErrorCode::bad_file),
              AllOf(HasSubstr(path), HasSubstr("damaged"), HasSubstr("move the file away")));
  EXPECT_EQ(read_file(path), before);
  // A page in the middle overwritten.
  const std::string large = folder / "large.sqlite";
  {
    TuneRecords r(large);
    std::vector<TuneRecord> many;
    for (int i = 0; i < 2000; i++) many.push_back({key(std::to_string(i)), {"", 1, 1, ""}});
    EXPECT_EQ(r.merge(many), 2000);
  }
  std::string bytes = read_file(large);
  for (size_t i = 4096; i < bytes.size(); i++) bytes[i] = static_cast<char>(i * 31);
  std::ofstream(large, std::ios::binary) << bytes;
  EXPECT_THAT(error_of([&] { TuneRecords(large).list(); }, ErrorCode::bad_file),
              HasSubstr("damaged"));
  EXPECT_TRUE(read_file(large) == bytes);
  for (const char* line : {"{", "{}", "[]", R"({"kernel":1})"}) {
    std::ofstream(folder / "x.jsonl") << "\n" << line << "\n";
    EXPECT_THAT(error_of([&] { read_records(folder / "x.jsonl"); }, ErrorCode::bad_file),
                HasSubstr("line 2"));
  }
  std::vector<TuneRecord> bad{{key("a"), {"a", -1, 1, ""}}};
  EXPECT_THAT(error_of([&] { from_lines(to_lines(bad), "x"); }, ErrorCode::bad_file),
              HasSubstr("below 0"));
  EXPECT_THAT(error_of([&] { read_records(folder / "none"); }, ErrorCode::bad_file),
              HasSubstr("there are no tuning records"));
  EXPECT_THAT(error_of([&] { TuneRecords("/proc/none/t.sqlite"); }, ErrorCode::io),
              HasSubstr("/proc/none/t.sqlite"));
}

TEST(TuneRecords, AFullDiskIsToldOnceAndStopsNothing) {
  const Folder folder;
  TuneRecords r(folder / "t.sqlite");
  r.keep(key("before"), {"", 1, 1, ""});
  std::vector<std::string> notes;
  set_log([&](const std::string& note) { notes.push_back(note); });
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old, none;
  getrlimit(RLIMIT_FSIZE, &old);
  none = old;
  none.rlim_cur = 0;  // every write fails, as on a full disk
  setrlimit(RLIMIT_FSIZE, &none);
  const TuneMemory memory = r.memory();
  for (int i = 0; i < 3; i++) memory.keep(key(std::to_string(i)), {"", 1, 1, ""});
  setrlimit(RLIMIT_FSIZE, &old);
  set_log({});
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes.at(0), HasSubstr("is not kept"));
  memory.keep(key("after"), {"", 2, 1, ""});
  EXPECT_EQ(memory.find(key("before"))->milliseconds, 1);
  EXPECT_EQ(memory.find(key("after"))->milliseconds, 2);
}

TEST(TuneRecords, TwoProcessesAtOnce) {
  const Folder folder;
  const std::string path = folder / "t.sqlite";
  constexpr int kRecords = 100;
  std::vector<pid_t> children;
  for (int p = 0; p < 2; p++) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    try {
      for (int i = 0; i < kRecords; i++) {
        TuneRecords r(path);  // opened anew: both make the file
        r.keep(key(std::to_string(p) + "/" + std::to_string(i)), {"", 1, 1, ""});
      }
      _exit(0);
    } catch (...) {
      _exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(TuneRecords(path).list().size(), 2u * kRecords);
}

}  // namespace
}  // namespace hidet::graph
