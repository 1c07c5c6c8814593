// driver.cpp - a C compiler as a child process: gcc, or a clang driver.
// Needs: a compiler in PATH, or named by HIDET_CC ("none": do not look). Leaves: nothing; every run has a
// private folder in which all names are our own.
// Threading: thread-safe, one child per call.
#include <cstdlib>

#include "cpu/child.h"
#include "cpu/compiler.h"
#include "hidet/runtime/error.h"

namespace hidet::backends::cpu {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class DriverCompiler final : public Compiler {
 public:
  DriverCompiler(std::string path, std::string version)
      : path_(std::move(path)),
        version_(std::move(version)),
        is_clang_(version_.find("clang") != std::string::npos) {}

  CpuCompiler kind() const override { return is_clang_ ? CpuCompiler::clang : CpuCompiler::cc; }
  std::string identity() const override { return version_; }
  int max_level() const override { return is_clang_ ? 4 : 3; }

  std::string options_text(const CpuTarget& target, bool fast_math) const override {
    return joined(driver_arguments(target, fast_math, Output::object, is_clang_)) + " | " +
           joined(driver_link_arguments());
  }

  Bytes compile(const Unit& unit, const CpuTarget& target, bool fast_math, Output output) override {
    const TemporaryFolder folder;
    folder.write("kernel.c", unit.c_source);
    std::vector<std::string> arguments = {path_};
    for (std::string& argument : driver_arguments(target, fast_math, output, is_clang_))
      arguments.push_back(std::move(argument));
    arguments.insert(arguments.end(), {"kernel.c", "-o", "kernel.out"});
    return run(arguments, folder, "kernel.out", "'" + unit.name + "'");
  }

  Bytes link(std::span<const Bytes> objects) override {
    const TemporaryFolder folder;
    folder.write("exports", kVersionScript);
    // The names go through a file: a program may have more objects than a command line holds.
    std::string names;
    for (size_t i = 0; i < objects.size(); ++i) {
      const std::string name = "u" + std::to_string(i) + ".o";
      folder.write(name, {reinterpret_cast<const char*>(objects[i].data()), objects[i].size()});
      names += name + "\n";
    }
    folder.write("objects", names);
    std::vector<std::string> arguments = {path_, "@objects"};
    for (std::string& argument : driver_link_arguments()) arguments.push_back(std::move(argument));
    arguments.insert(arguments.end(), {"-o", "library"});
    return run(arguments, folder, "library", "the linked library");
  }

 private:
  Bytes run(const std::vector<std::string>& arguments, const TemporaryFolder& folder,
            const std::string& result, const std::string& what) const {
    const ChildResult child = run_child(arguments, folder.path());
    Bytes bytes = folder.read(result);
    HIDET_REQUIRE(child.exit_code == 0 && !bytes.empty(), ErrorCode::internal, "",
                  "the C compiler ", path_, " failed on ", what, " with status ", child.exit_code,
                  ": ", child.output.substr(0, 4000));
    return bytes;
  }

  std::string path_, version_;
  bool is_clang_;
};

}  // namespace

std::unique_ptr<Compiler> make_driver_compiler() {
  const char* chosen = std::getenv("HIDET_CC");
  const std::string wanted = chosen == nullptr ? "" : chosen;
  if (wanted == "none") return nullptr;
  const std::vector<std::string> names =
      wanted.empty() ? std::vector<std::string>{"clang-19", "cc", "gcc", "clang"}
                     : std::vector<std::string>{wanted};
  for (const std::string& name : names) {
    const std::string path = find_program(name);
    if (path.empty()) continue;
    const ChildResult version = run_child({path, "--version"}, "/");
    if (version.exit_code == 0)
      return std::make_unique<DriverCompiler>(path, first_line(version.output));
  }
  HIDET_REQUIRE(wanted.empty(), ErrorCode::device, "", "HIDET_CC names '", wanted,
                "', which is no C compiler that can be run");
  return nullptr;
}

}  // namespace hidet::backends::cpu
