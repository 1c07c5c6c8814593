// folder.h - a private folder for one test.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <string>

/// Made when constructed, removed with all in it at the end.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hidet-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  /// Names of the files in it whose name begins with `prefix`.
  int count(const std::string& prefix) const {
    int n = 0;
    std::error_code ignored;
    for (const auto& item : std::filesystem::directory_iterator(path_, ignored))
      n += item.path().filename().string().rfind(prefix, 0) == 0;
    return n;
  }

 private:
  std::string path_;
};
