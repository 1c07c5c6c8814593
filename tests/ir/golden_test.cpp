// Golden tests: tests/ir/golden/<pass>/*.hir holds a module, a line "---", and what the pass makes of it (or
// "error: " and the message). HIDET_UPDATE_GOLDEN=1 rewrites what follows the line.
#include <gtest/gtest.h>
#include <hidet/ir/passes.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hidet::ir {
namespace {
namespace fs = std::filesystem;

const fs::path kFolder = fs::path(HIDET_SOURCE_DIR) / "tests/ir/golden";

std::string read(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<fs::path> files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(kFolder))
    if (entry.path().extension() == ".hir") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

const Pass* find_pass(const std::vector<Pass>& passes, const std::string& name) {
  for (const Pass& p : passes)
    if (p.name == name) return &p;
  return nullptr;
}

/// What the pass makes of the text; checks that the result is legal and reads back.
std::string result_of(const Pass& pass, const std::string& input, const std::string& name) {
  try {
    const Module before = parse(input, name);
    verify(before);
    const Module after = run_passes(before, {pass});
    verify(after);
    const std::string text = print(after);
    EXPECT_TRUE(equal(parse(text), after)) << text;
    return text;
  } catch (const Error& e) {
    return std::string("error: ") + e.what() + "\n";
  }
}

TEST(Golden, EveryFile) {
  const bool update = std::getenv("HIDET_UPDATE_GOLDEN") != nullptr;
  const std::vector<Pass> passes = all_passes();
  const std::string mark = "---\n";
  for (const fs::path& file : files()) {
    SCOPED_TRACE(file.string());
    const Pass* pass = find_pass(passes, file.parent_path().filename());
    ASSERT_TRUE(pass) << "the folder is named after no pass";
    const std::string text = read(file);
    const size_t at = text.find("\n" + mark);
    const std::string input = text.substr(0, at == std::string::npos ? at : at + 1);
    const std::string result = result_of(*pass, input, file.filename());
    if (update) {
      std::ofstream(file, std::ios::binary) << input << mark << result;
      continue;
    }
    ASSERT_NE(at, std::string::npos) << "no line ---";
    EXPECT_EQ(result, text.substr(at + 1 + mark.size()));
  }
}

TEST(Golden, EveryPassHasOne) {
  for (const Pass& p : all_passes())
    EXPECT_TRUE(fs::exists(kFolder / p.name)) << "no golden file for " << p.name;
}

}  // namespace
}  // namespace hidet::ir
