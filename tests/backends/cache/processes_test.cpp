// processes_test.cpp - one cache folder, many processes: all build the same entries, one is killed, or the
// folder is being cleared. Every survivor reads whole entries only, and a later run needs no cleaning.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "backends/cache/folder.h"
#include "hidet/backends/cache.h"

namespace {

using hidet::backends::BuildCache;
using hidet::backends::CacheKey;

constexpr int kEntries = 24;

CacheKey key_of(int entry) {
  return CacheKey("object").add("source", "entry " + std::to_string(entry));
}

/// Large enough that a write takes many pages.
std::vector<uint8_t> payload_of(int entry) {
  std::mt19937 random(static_cast<unsigned>(entry));
  std::vector<uint8_t> bytes(40000 + static_cast<size_t>(entry) * 1111);
  for (auto& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

/// What a build does: look up each, make it where it is missing. 0 when all were right.
int build_all(const std::string& folder) {
  BuildCache cache({.folder = folder});
  for (int entry = 0; entry < kEntries; ++entry) {
    const auto made = payload_of(entry);
    if (const auto found = cache.get(key_of(entry))) {
      if (*found != made) return 1;
    } else {
      cache.put(key_of(entry), made);
    }
  }
  return cache.stats().damaged == 0 ? 0 : 2;
}

template <class Body>
pid_t in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

TEST(BuildCacheProcesses, SixteenBuildersAndOneKilled) {
  TestFolder folder;
  std::mt19937 random(20261202);
  for (int round = 0; round < 12; ++round) {
    std::filesystem::remove_all(folder.path() + "/cache");
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i)
      children.push_back(in_child([&] { return build_all(folder.path() + "/cache"); }));
    usleep(random() % 20000);
    const size_t victim = random() % children.size();
    kill(children[victim], SIGKILL);
    for (size_t i = 0; i < children.size(); ++i) {
      int status = 0;
      waitpid(children[i], &status, 0);
      if (i == victim) continue;
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "round " << round << " process " << i;
    }
    BuildCache cache({.folder = folder.path() + "/cache", .stale_seconds = -1});
    for (int entry = 0; entry < kEntries; ++entry)
      ASSERT_EQ(cache.get(key_of(entry)), payload_of(entry));
    ASSERT_TRUE(cache.verify().empty());
    // The killed one may have left a temporary file; nobody else does, and the next store drops it.
    cache.put(CacheKey("object").add("source", "one more"), payload_of(0));
    int left = 0;
    for (const auto& item : std::filesystem::directory_iterator(folder.path() + "/cache"))
      left += item.path().filename().string().rfind(".tmp-", 0) == 0;
    ASSERT_EQ(left, 0);
  }
}

TEST(BuildCacheProcesses, BuildersWhileOthersDelete) {
  TestFolder folder;
  const std::string path = folder.path() + "/cache";
  std::vector<pid_t> builders;
  const pid_t deleter = in_child([&] {
    for (;;) {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
      usleep(300);
    }
    return 0;
  });
  for (int i = 0; i < 8; ++i) builders.push_back(in_child([&] { return build_all(path); }));
  for (const pid_t builder : builders) {
    int status = 0;
    waitpid(builder, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  kill(deleter, SIGKILL);
  waitpid(deleter, nullptr, 0);
  EXPECT_EQ(build_all(path), 0);
  EXPECT_EQ(build_all(path), 0);
  BuildCache cache({.folder = path});
  EXPECT_EQ(cache.list().size(), static_cast<size_t>(kEntries));
}

}  // namespace
