// cache_test.cpp - the build cache in one process: keys, damage, collisions, bound, folders that fail.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <numeric>
#include <thread>

#include "backends/cache/folder.h"
#include "hidet/backends/cache.h"
#include "hidet/runtime/error.h"
#include "hidet/runtime/log.h"

namespace {

using hidet::backends::BuildCache;
using hidet::backends::CacheKey;
using hidet::backends::CacheOptions;
using Bytes = std::vector<uint8_t>;
using testing::HasSubstr;

Bytes some_bytes(size_t size, uint8_t start = 1) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), start);
  return bytes;
}

CacheKey object_key(const std::string& source, const std::string& target = "x86-64-v3",
                    const std::string& compiler = "clang 19", const std::string& label = "matmul") {
  return CacheKey("object", label)
      .add("target", target)
      .add("compiler", compiler)
      .add("options", "-O3")
      .add("source", source);
}

std::string only_entry(const std::string& folder) {
  for (const auto& item : std::filesystem::directory_iterator(folder)) return item.path().string();
  return "";
}

TEST(CacheKey, FieldsComeBack) {
  const CacheKey key = CacheKey("object").add("source", "int x;\n# 3\nkind 2\n").add("empty", "");
  const auto fields = CacheKey::fields(key.text());
  ASSERT_EQ(fields.size(), 3u);
  EXPECT_EQ(fields[0], std::make_pair(std::string("kind"), std::string("object")));
  EXPECT_EQ(fields[1].second, "int x;\n# 3\nkind 2\n");
  EXPECT_EQ(fields[2].second, "");
  EXPECT_TRUE(CacheKey::fields("kind 99\nobject\n").empty());
  EXPECT_TRUE(CacheKey::fields("kind -1\nobject\n").empty());
  EXPECT_TRUE(CacheKey::fields("nonsense").empty());
}

TEST(CacheKey, FieldsCannotRunIntoEachOther) {
  EXPECT_NE(CacheKey("k").add("a", "b\nc 1\nd").text(),
            CacheKey("k").add("a", "b").add("c", "d").text());
  EXPECT_NE(CacheKey("k").add("a", "").add("b", "x").text(),
            CacheKey("k").add("a", "x").add("b", "").text());
}

TEST(BuildCache, GivesBackWhatWasStored) {
  TestFolder folder;
  BuildCache cache({.folder = folder.path() + "/new/folders"});
  for (const size_t size : {0, 1, 7, 4096, 100001}) {
    const CacheKey key = object_key("size " + std::to_string(size));
    EXPECT_FALSE(cache.get(key).has_value());
    cache.put(key, some_bytes(size));
    EXPECT_EQ(cache.get(key), some_bytes(size));
  }
  EXPECT_EQ(cache.stats().hits, 5u);
  EXPECT_EQ(cache.stats().misses, 5u);
  BuildCache again({.folder = folder.path() + "/new/folders"});
  EXPECT_EQ(again.get(object_key("size 7")), some_bytes(7));
}

TEST(BuildCache, EveryFieldCounts) {
  TestFolder folder;
  BuildCache cache({.folder = folder.path()});
  cache.put(object_key("text"), some_bytes(3));
  EXPECT_FALSE(cache.get(object_key("text", "x86-64-v4")));
  EXPECT_FALSE(cache.get(object_key("text", "x86-64-v3", "clang 20")));
  EXPECT_FALSE(cache.get(object_key("text ")));
  EXPECT_TRUE(cache.get(object_key("text", "x86-64-v3", "clang 19", "another label")));
}

TEST(BuildCache, KeysWithOneDigestAreNotMixedUp) {
  TestFolder folder;
  BuildCache cache(
      {.folder = folder.path(), .digest = [](std::string_view) { return std::string(32, '0'); }});
  cache.put(object_key("first"), some_bytes(10, 1));
  EXPECT_FALSE(cache.get(object_key("second")).has_value());
  EXPECT_EQ(cache.stats().collisions, 1u);
  EXPECT_THAT(cache.why(object_key("second")), HasSubstr("another key has the same digest"));
  cache.put(object_key("second"), some_bytes(10, 2));
  EXPECT_EQ(cache.get(object_key("second")), some_bytes(10, 2));
  EXPECT_FALSE(cache.get(object_key("first")).has_value());
}

TEST(BuildCache, EveryFlippedBitIsFound) {
  TestFolder folder;
  BuildCache cache({.folder = folder.path()});
  cache.put(object_key("x"), some_bytes(9));
  const std::string path = only_entry(folder.path());
  const auto size = std::filesystem::file_size(path);
  std::string good(size, 0);
  std::ifstream(path, std::ios::binary).read(good.data(), static_cast<std::streamsize>(size));
  for (size_t byte = 0; byte < size; ++byte) {
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ (1 << (byte % 8)));
    std::ofstream(path, std::ios::binary).write(bad.data(), static_cast<std::streamsize>(size));
    EXPECT_FALSE(cache.get(object_key("x")).has_value()) << "byte " << byte;
    EXPECT_FALSE(std::filesystem::exists(path)) << "the damaged entry stayed, byte " << byte;
  }
  for (size_t length = 0; length < size; ++length) {
    std::ofstream(path, std::ios::binary).write(good.data(), static_cast<std::streamsize>(length));
    EXPECT_FALSE(cache.get(object_key("x")).has_value()) << "length " << length;
  }
  std::ofstream(path, std::ios::binary).write(good.data(), static_cast<std::streamsize>(size));
  EXPECT_EQ(cache.get(object_key("x")), some_bytes(9));
}

TEST(BuildCache, VerifyNamesAndRemovesDamage) {
  TestFolder folder;
  BuildCache cache({.folder = folder.path()});
  cache.put(object_key("one"), some_bytes(50));
  const std::string path = only_entry(folder.path());
  cache.put(object_key("two"), some_bytes(50));
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-1, std::ios::end);
    file.put('!');
  }
  ASSERT_EQ(cache.verify().size(), 1u);
  EXPECT_EQ(cache.verify()[0].label, "matmul");
  EXPECT_EQ(cache.list().size(), 2u);
  cache.verify(true);
  EXPECT_EQ(cache.list().size(), 1u);
  EXPECT_TRUE(cache.verify().empty());
}

TEST(BuildCache, ListsNewestFirstAndClears) {
  TestFolder folder;
  BuildCache cache({.folder = folder.path()});
  cache.put(object_key("one", "x86-64-v3", "clang 19", "a"), some_bytes(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cache.put(object_key("two", "x86-64-v4", "clang 19", "b"), some_bytes(20));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(cache.get(object_key("one")));
  std::ofstream(folder.path() + "/not ours") << "stays";
  const auto entries = cache.list();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].label, "a");
  EXPECT_EQ(entries[1].label, "b");
  EXPECT_EQ(entries[1].kind, "object");
  EXPECT_EQ(entries[1].target, "x86-64-v4");
  EXPECT_EQ(entries[1].payload_bytes, 20u);
  EXPECT_EQ(cache.clear(), entries[0].bytes + entries[1].bytes);
  EXPECT_TRUE(cache.list().empty());
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/not ours"));
}

TEST(BuildCache, StaysUnderItsBoundAndDropsTheLeastRecentlyUsed) {
  TestFolder folder;
  constexpr uint64_t kBound = 100000;
  BuildCache cache({.folder = folder.path(), .max_bytes = kBound});
  const CacheKey kept = object_key("kept");
  cache.put(kept, some_bytes(1000));
  for (int i = 0; i < 200; ++i) {
    cache.put(object_key("entry " + std::to_string(i)), some_bytes(3000));
    ASSERT_TRUE(cache.get(kept).has_value()) << "used all the time, dropped after " << i;
    uint64_t total = 0;
    for (const auto& entry : cache.list()) total += entry.bytes;
    ASSERT_LE(total, kBound);
  }
  EXPECT_TRUE(cache.get(object_key("entry 199")));
  EXPECT_FALSE(cache.get(object_key("entry 0")));
  EXPECT_GT(cache.stats().evicted, 100u);
  cache.put(object_key("too large"), some_bytes(kBound + 1));
  EXPECT_FALSE(cache.get(object_key("too large")));
  EXPECT_TRUE(cache.get(kept));
}

TEST(BuildCache, DropsTemporaryFilesByAge) {
  TestFolder folder;
  const std::string old_file = folder.path() + "/.tmp-1-1-1",
                    new_file = folder.path() + "/.tmp-2-2-2";
  std::ofstream(old_file) << "half";
  std::ofstream(new_file) << "half";
  const timespec hour_ago[2] = {{time(nullptr) - 3600, 0}, {time(nullptr) - 3600, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, old_file.c_str(), hour_ago, 0), 0);
  BuildCache cache({.folder = folder.path()});
  cache.put(object_key("x"), some_bytes(5));
  EXPECT_FALSE(std::filesystem::exists(old_file));
  EXPECT_TRUE(std::filesystem::exists(new_file));
}

TEST(BuildCache, SaysWhyAKeyIsNotThere) {
  TestFolder folder;
  BuildCache cache({.folder = folder.path()});
  EXPECT_THAT(cache.why(object_key("a")), HasSubstr("no entry is like it (0 in the cache)"));
  cache.put(object_key("line one\nline two\n"), some_bytes(5));
  EXPECT_EQ(cache.why(object_key("line one\nline two\n")), "the entry is there");
  EXPECT_THAT(cache.why(object_key("line one\nline two\n", "x86-64-v4")),
              HasSubstr("target is 'x86-64-v3' there, 'x86-64-v4' asked"));
  EXPECT_THAT(cache.why(object_key("line one\nline two\n", "x86-64-v3", "clang 20")),
              HasSubstr("compiler is 'clang 19' there, 'clang 20' asked"));
  const std::string filler(500, 'x');
  cache.put(object_key(filler + "\nsame\nold\n", "t", "c", "long"), some_bytes(5));
  EXPECT_THAT(cache.why(object_key(filler + "\nsame\nnew\n", "t", "c", "long")),
              HasSubstr("source differs from line 3 on ('old' there, 'new' asked)"));
  EXPECT_THAT(cache.why_label("matmul"), HasSubstr("object for x86-64-v3"));
  EXPECT_THAT(cache.why_label("nothing"), HasSubstr("no entry is called 'nothing'"));
}

TEST(BuildCache, OffIsAMissAndKeepsNothing) {
  BuildCache cache(CacheOptions{});
  cache.put(object_key("x"), some_bytes(5));
  EXPECT_FALSE(cache.enabled());
  EXPECT_FALSE(cache.get(object_key("x")));
  EXPECT_TRUE(cache.list().empty());
}

/// Runs `body` in a child as a user who is not root, so that permissions count; its exit status.
template <class Body>
int as_nobody(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(90);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(BuildCache, AFolderThatCannotBeWrittenIsToldOnce) {
  TestFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const int status = as_nobody([&] {
    int told = 0;
    hidet::set_log(
        [&](const std::string& text) { told += text.find("cannot be written") != text.npos; });
    BuildCache cache({.folder = folder.path() + "/below"});
    for (int i = 0; i < 3; ++i) {
      cache.put(object_key("x"), some_bytes(5));
      if (cache.get(object_key("x"))) return 2;
    }
    return told == 1 ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
}

TEST(BuildCache, AFullDiskLeavesNoBrokenEntry) {
  TestFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    // A file size limit stops a write in the middle, as a full disk does.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {2000, 2000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int told = 0;
    hidet::set_log([&](const std::string&) { ++told; });
    BuildCache cache({.folder = folder.path()});
    cache.put(object_key("large"), some_bytes(5000));
    cache.put(object_key("large again"), some_bytes(5000));
    _exit(told == 1 && !cache.get(object_key("large")) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(folder.count(""), 0);
}

TEST(BuildCache, FolderAndBoundComeFromTheEnvironment) {
  const auto options = [](std::initializer_list<std::pair<const char*, const char*>> values) {
    for (const char* name :
         {"HIDET_CACHE", "HIDET_CACHE_DIR", "HIDET_CACHE_SIZE", "XDG_CACHE_HOME", "HOME"})
      unsetenv(name);
    for (const auto& [name, value] : values) setenv(name, value, 1);
    return BuildCache::options_from_environment();
  };
  const std::string home = getenv("HOME") != nullptr ? getenv("HOME") : "";
  EXPECT_EQ(options({}).folder, "");
  EXPECT_EQ(options({{"HOME", "/h"}}).folder, "/h/.cache/hidet");
  EXPECT_EQ(options({{"HOME", "/h"}}).max_bytes, uint64_t(1) << 30);
  EXPECT_EQ(options({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x y"}}).folder, "/x y/hidet");
  EXPECT_EQ(options({{"HOME", "/h"}, {"XDG_CACHE_HOME", "relative"}}).folder, "/h/.cache/hidet");
  EXPECT_EQ(options({{"HOME", "/h"}, {"HIDET_CACHE_DIR", "/d"}}).folder, "/d");
  EXPECT_EQ(options({{"HIDET_CACHE_DIR", "d"}}).folder,
            std::filesystem::current_path().string() + "/d");
  EXPECT_EQ(options({{"HOME", "/h"}, {"HIDET_CACHE", "off"}}).folder, "");
  EXPECT_EQ(options({{"HIDET_CACHE_SIZE", "1000"}}).max_bytes, 1000u);
  EXPECT_EQ(options({{"HIDET_CACHE_SIZE", "10M"}}).max_bytes, 10u << 20);
  for (const char* wrong : {"ten", "10X", "-1", "99999999999999999999", "9999999999999G", "1 M"})
    EXPECT_THROW(options({{"HIDET_CACHE_SIZE", wrong}}), hidet::Error) << wrong;
  options({});
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

}  // namespace
