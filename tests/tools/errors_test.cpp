// errors_test.cpp - what the command says and the exit status where the machine, a file or an argument is not as needed:
// one sentence that names the object, no signal. And what works all the same, with one note at most.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tools/child.h"
#include "tools/models.h"

using namespace tools_test;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

using Env = std::vector<std::pair<std::string, std::string>>;

class Errors : public testing::Test {
 protected:
  void SetUp() override { onnx_test::write_file(onnx, small_net().serialize()); }
  /// One sentence on stderr with these words, this status, nothing half-written.
  void refused(const std::vector<std::string>& args, int status,
               const std::vector<std::string>& words, const Env& env = {}) {
    const Ran r = hidet(args, {.env = env});
    EXPECT_EQ(r.status, status) << testing::PrintToString(args) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    for (const std::string& w : words)
      EXPECT_THAT(r.err, HasSubstr(w)) << testing::PrintToString(args);
  }
  /// Exit status 0 and at most `notes` lines on stderr.
  void works(const std::vector<std::string>& args, int notes, const Env& env) {
    const Ran r = hidet(args, {.env = env});
    EXPECT_EQ(r.status, 0) << testing::PrintToString(args) << r.err;
    EXPECT_LE(std::count(r.err.begin(), r.err.end(), '\n'), notes) << r.err;
  }
  std::vector<std::string> compile(const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {"compile", onnx, "-o", file, "-q"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  Folder folder;
  const std::string onnx = folder / "net.onnx", file = folder / "m.hidet";
};

TEST_F(Errors, AnotherCpuLevel) {
  const Env old_cpu = {{"HIDET_CPU_LEVEL", "x86-64-v2"}};
  // HIDET_CPU_LEVEL makes this machine an older one for loading; the file is for a newer one.
  ASSERT_EQ(hidet(compile({"--target", "cpu:x86-64-v3"})).status, 0);
  refused({"run", file}, 5, {"x86-64-v3", "x86-64-v2"}, old_cpu);
  const Ran r = hidet({"inspect", file, "--json", folder / "i.json"}, {.env = old_cpu});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(read_file(folder / "i.json"),
              AllOf(HasSubstr("\"can_load\": \"no\""), HasSubstr("x86-64-v2")));
  EXPECT_THAT(hidet({"inspect", file}).out, HasSubstr("can be loaded here: yes"));
  ASSERT_EQ(hidet(compile({"--target", "cpu:x86-64-v2,x86-64-v3"})).status, 0);
  works({"run", file, "-q"}, 0, old_cpu);
}

TEST_F(Errors, NoDriverAndNoGpu) {
  onnx_test::write_file(onnx, product_net().serialize());
  const Env no_driver = {{"HIDET_LIBCUDA", folder / "none.so"}};
  ASSERT_EQ(hidet(compile({"--target", "cuda:sm_80"}), {.env = no_driver}).status, 0);
  refused({"run", file}, 5, {"no GPU driver", "none.so"}, no_driver);
  refused({"run", file, "--device", "cpu"}, 5, {"no program for", "cpu", "sm_80"}, no_driver);
  refused({"run", onnx, "--device", "cuda:0", "-q"}, 5, {"none.so"}, no_driver);
  refused({"bench", file}, 5, {"no GPU driver"}, no_driver);
  const Ran r = hidet({"inspect", file}, {.env = no_driver});
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out,
              AllOf(HasSubstr("can be loaded here: no"), HasSubstr("there is no GPU driver")));
  ASSERT_EQ(hidet(compile({"--target", "cpu"})).status, 0);
  refused({"run", file, "--device", "cuda:0"}, 5, {"no program for", "cuda:0", "x86-64-v3"},
          no_driver);
  EXPECT_THAT(hidet({"devices"}, {.env = no_driver}).out, HasSubstr("there is no GPU driver"));
}

TEST_F(Errors, NeitherNvrtcNorNvcc) {
  onnx_test::write_file(onnx, product_net().serialize());
  const Env none = {
      {"HIDET_NVRTC", folder / "none.so"}, {"HIDET_NVCC", folder / "none"}, {"HIDET_CACHE", "off"}};
  refused(compile({"--target", "cuda:sm_80"}), 5, {"NVRTC", "nvcc"}, none);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"net.onnx"});
}

TEST_F(Errors, NeitherClangLibraryNorCc) {
  const Env none = {{"HIDET_CLANG_PLUGIN", "none"}, {"HIDET_CC", "none"}, {"HIDET_CACHE", "off"}};
  refused(compile(), 5, {"libhidet_clang.so", "cc"}, none);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"net.onnx"});
  // A file that was compiled before runs: that needs no compiler.
  ASSERT_EQ(hidet(compile()).status, 0);
  works({"run", file, "-q"}, 0, none);
}

TEST_F(Errors, CcAloneWorks) {
  works(compile(), 1, {{"HIDET_CLANG_PLUGIN", "none"}, {"HIDET_CACHE_DIR", folder / "cache"}});
  works({"run", file, "-q"}, 0, {});
}

TEST_F(Errors, ReadOnlyAndFullCache) {
  onnx_test::write_file(folder / "a_file", "x");
  for (const std::string& cache :
       {std::string("/proc/hidet"), folder / "a_file", folder / "a_file/below"}) {
    works(compile(), 1, {{"HIDET_CACHE_DIR", cache}});
    works({"run", file, "-q"}, 0, {});
  }
  works(compile(), 1, {{"HIDET_CACHE_DIR", folder / "small"}, {"HIDET_CACHE_SIZE", "1"}});
  works(compile(), 0, {{"HIDET_CACHE", "off"}});
}

TEST_F(Errors, MissingAndWrongFiles) {
  refused({"run", folder / "none.hidet"}, 3, {"none.hidet"});
  refused({"run", folder / "none.onnx", "-q"}, 3, {"none.onnx"});
  refused({"compile", folder / "none.onnx", "-o", file, "-q"}, 3, {"none.onnx"});
  refused({"verify", folder / "none.onnx", "-q"}, 3, {"none.onnx"});
  refused({"inspect", folder.path()}, 3, {folder.path()});
  onnx_test::write_file(folder / "empty.hidet", "");
  onnx_test::write_file(folder / "empty.onnx", "");
  onnx_test::write_file(folder / "text.onnx", "This is no model.");
  onnx_test::write_file(folder / "text.hidet", "This is no model.");
  for (const char* name : {"empty.hidet", "text.hidet", "empty.onnx", "text.onnx"})
    refused({"inspect", folder / name}, 3, {name});
}

TEST_F(Errors, UnsupportedOperatorsAreListedAtOnce) {
  using namespace onnx_test;
  Model m;
  m.input("x", 1, {2, 3}).output("y");
  m.node("Strange", {"x"}, {"a"}, {}, "first").node("Odder", {"a"}, {"y"}, {}, "second");
  write_file(onnx, m.serialize());
  refused(compile(), 4, {"Strange", "first", "Odder", "second"});
  EXPECT_EQ(folder.names(), std::vector<std::string>{"net.onnx"});
}

TEST_F(Errors, ContradictingSymbols) {
  using namespace onnx_test;
  Model m;
  m.input("a", 1, {"n", 2}).input("b", 1, {"n", 2}).output("y").node("Add", {"a", "b"}, {"y"});
  write_file(onnx, m.serialize());
  ASSERT_EQ(hidet(compile()).status, 0);
  for (const char* sub : {"run", "bench"})
    refused({sub, file, "--shapes", "a:3x2,b:4x2", "-q"}, 2, {"'n'", "3", "4"});
  EXPECT_EQ(hidet({"run", file, "--shapes", "a:3x2,b:3x2", "-q"}).status, 0);
}

TEST_F(Errors, InspectTellsWhatIsNotSupported) {
  using namespace onnx_test;
  Model m;
  m.input("x", 1, {2, 3}).output("y");
  m.node("Strange", {"x"}, {"a"}, {}, "first").node("Relu", {"a"}, {"y"}, {}, "second");
  write_file(onnx, m.serialize());
  const Ran r = hidet({"inspect", onnx, "--json", folder / "i.json"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("opset 17"), HasSubstr("Strange  (not supported)"),
                           HasSubstr("can be compiled: no"), HasSubstr("1  Relu\n")));
  EXPECT_THAT(read_file(folder / "i.json"),
              AllOf(HasSubstr("\"opset\": 17"), HasSubstr("\"operator\": \"Strange\""),
                    HasSubstr("first")));
  EXPECT_THAT(hidet({"inspect", folder / "net.onnx"}).out, HasSubstr("2 nodes"));
}

// Help, man page and completion name every subcommand and option.
TEST_F(Errors, HelpInEveryForm) {
  for (const std::string sub :
       {"compile", "run", "bench", "verify", "inspect", "explain", "cache", "devices", "opt"}) {
    EXPECT_THAT(hidet({"help", sub}).out, HasSubstr("Usage: hidet " + sub));
    EXPECT_THAT(hidet({"help", "--man"}).out, HasSubstr(".SS " + sub));
    for (const char* shell : {"bash", "zsh", "fish"})
      EXPECT_THAT(hidet({"help", "--completion", shell}).out, HasSubstr(sub)) << shell;
  }
  EXPECT_THAT(hidet({"help", "--man"}).out,
              AllOf(HasSubstr("\\-\\-save\\-source"), HasSubstr("130 cancelled")));
  EXPECT_THAT(hidet({"help", "--completion", "fish"}).out, HasSubstr("-l save-source"));
  refused({"help", "nothing"}, 2, {"'nothing'"});
  refused({"help", "--completion", "tcsh"}, 2, {"tcsh", "bash"});
}

// stdout is JSON and nothing else.
TEST_F(Errors, JsonOnStdout) {
  ASSERT_EQ(hidet(compile()).status, 0);
  const std::vector<std::vector<std::string>> commands = {{"run", file},
                                                          {"bench", file, "--iterations", "1"},
                                                          {"verify", onnx},
                                                          {"inspect", file},
                                                          {"inspect", onnx},
                                                          {"explain", file},
                                                          {"cache", "ls"},
                                                          {"devices"},
                                                          {"compile", onnx, "-o", file}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--json", "-"});
    const Ran r = hidet(command);
    EXPECT_EQ(r.status, 0) << testing::PrintToString(command) << r.err;
    EXPECT_TRUE(nlohmann::json::accept(r.out)) << testing::PrintToString(command) << r.out;
  }
}

// At any moment of a compile: status 130, nothing left over, no signal.
TEST_F(Errors, CtrlC) {
  for (const int ms : {1, 20, 60, 120, 250}) {
    const std::string cache = folder / ("cache" + std::to_string(ms));
    const Ran r = hidet(compile({"--target", "cpu:x86-64-v2,x86-64-v3"}),
                        {.env = {{"HIDET_CACHE_DIR", cache}}, .interrupt_ms = ms});
    EXPECT_TRUE(r.status == 130 || r.status == 0 || r.status == 1000 + SIGINT) << r.status << r.err;
    if (r.status == 130) {
      EXPECT_THAT(r.err, HasSubstr("cancelled"));
    }
    for (const std::string& name : folder.names()) EXPECT_THAT(name, Not(HasSubstr(".tmp")));
    EXPECT_EQ(std::filesystem::exists(file), r.status == 0);
    std::filesystem::remove(file);
  }
}

TEST_F(Errors, WrongArguments) {
  ASSERT_EQ(hidet(compile()).status, 0);
  refused({"run", file, "--input", "z=1"}, 2, {"'z'"});
  refused({"run", file, "--input", "x"}, 2, {"NAME="});
  refused({"run", file, "--input", "x=1,2"}, 2, {"x", "2 values"});
  refused({"run", file, "--input", "x=@" + (folder / "none.npy")}, 7, {"none.npy"});
  refused({"run", file, "--shapes", "x:2x3x9x8", "-q"}, 2, {"x", "8"});
  refused({"run", file, "--shapes", "x:axb", "-q"}, 2, {"x"});
  refused({"run", file, "--val-range", "a,b", "-q"}, 2, {"--val-range", "'a'"});
  refused({"run", file, "--device", "tpu"}, 2, {"tpu"});
  refused({"run", file, "--output", "z=@z.npy"}, 2, {"'z'", "y"});
  refused({"run", file, "--threads", "0"}, 2, {"--threads"});
  refused({"bench", file, "--iterations", "-1"}, 2, {"--iterations"});
  refused({"bench", file, "--duration", "-1"}, 2, {"--duration"});
  refused({"verify", onnx, "--rtol", "-1"}, 2, {"--rtol"});
  refused({"verify", file}, 2, {".onnx", "m.hidet"});
  refused({"frobnicate", file}, 2, {"'frobnicate'", "hidet help"});
  refused(compile({"--shapes", "x:-1x3x9x7"}), 2, {"'-1'"});
  refused({"compile", onnx, "-o", "", "-q"}, 2, {"-o"});
  refused(compile({"--target", "cuda:sm_999"}), 2, {"sm_999", "sm_90a"});
  refused({"run", file, "--output-dir", "/proc/none", "-q"}, 7, {"/proc/none"});
  refused({"run", file, "--val-range", "3,2", "-q"}, 2, {"--val-range", "LOW below HIGH"});
  refused({"run", file, "--input", "x=1,two", "-q"}, 2, {"x", "'two'"});
  refused({"bench", file, "--percentile", "x", "-q"}, 2, {"--percentile", "'x'"});
  refused({"bench", file, "--percentile", "101", "-q"}, 2, {"--percentile", "101"});
  refused(compile({"--target", "cpu:x86-64-v9"}), 2, {"x86-64-v9"});
  refused(compile({"--target", "cuda:sm_1"}), 2, {"sm_1"});
  refused(compile({"--target", "fpga"}), 2, {"fpga"});
  refused(compile({"--json", "/proc/none/x.json"}), 7, {"/proc/none/x.json"});
}

}  // namespace
