// file_test.cpp - write_file: whole or not at all, and what may not become a plain file stays what it is.
#include <hidet/runtime/error.h>
#include <hidet/runtime/file.h>
#include <hidet/runtime/numpy.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace fs = std::filesystem;

namespace hidet::runtime {
namespace {

class WriteFile : public testing::Test {
 protected:
  WriteFile() : folder(testing::TempDir() + "hidet_file_test_" + std::to_string(getpid())) {
    fs::create_directory(folder);
  }
  ~WriteFile() override { fs::remove_all(folder); }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
  }
  const std::string folder, path = folder + "/a.txt";
};

std::string refusal(const std::function<void()>& write) {
  try {
    write();
    return "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io);
    return e.what();
  }
}

TEST_F(WriteFile, ReplacesAndMakesFolders) {
  write_file(path, "one");
  write_file(path, "");
  EXPECT_EQ(content(path), "");
  write_file(path, "two");
  EXPECT_EQ(content(path), "two");
  write_file(folder + "/b/c/d", "three");
  EXPECT_EQ(content(folder + "/b/c/d"), "three");
  EXPECT_EQ(files(), 2u);
}

TEST_F(WriteFile, ALinkStaysOne) {
  write_file(path, "one");
  fs::create_symlink("a.txt", folder + "/link");
  write_file(folder + "/link", "two");
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  EXPECT_EQ(content(path), "two");
}

// A test that only checked for an error once removed /dev/full itself.
TEST_F(WriteFile, DevicesStayDevices) {
  EXPECT_THAT(refusal([] { write_file("/dev/full", "x"); }), testing::HasSubstr("/dev/full"));
  EXPECT_THAT(refusal([] { write_npy("/dev/full", zeros({3})); }), testing::HasSubstr("/dev/full"));
  write_file("/dev/null", "x");
  struct stat info;
  for (const char* device : {"/dev/full", "/dev/null"})
    EXPECT_TRUE(stat(device, &info) == 0 && S_ISCHR(info.st_mode)) << device;
  EXPECT_THAT(refusal([&] { write_file("/dev/null", {}, {.regular = true}); }),
              testing::HasSubstr("not a regular file"));
  EXPECT_THAT(refusal([&] { write_file(folder, "x"); }), testing::HasSubstr("not a regular file"));
}

TEST_F(WriteFile, AFailedCheckKeepsTheOldFile) {
  write_file(path, "old");
  const std::byte letter{'n'};
  const std::span<const std::byte> part(&letter, 1);
  const auto refuse = [](const std::string& file) {
    EXPECT_EQ(content(file), "n");
    throw Error(ErrorCode::io, "refused");
  };
  EXPECT_EQ(refusal([&] { write_file(path, {&part, 1}, {.durable = true, .check = refuse}); }),
            "refused");
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace hidet::runtime
