// hidet opt: passes on the text of a module, their list, the text after each, what is refused; the switches that passes read.
#include <gmock/gmock.h>
#include <hidet/ir/passes.h>

#include "tools/child.h"

namespace tools_test {
namespace {
using testing::HasSubstr;

/// A golden file: what stands before and after the line ---.
struct Golden {
  std::string path, input, expected;
};
Golden golden(const std::string& name) {
  Golden g{std::string(HIDET_SOURCE_DIR) + "/tests/ir/golden/" + name, {}, {}};
  const std::string all = read_file(g.path);
  const size_t at = all.find("\n---\n");
  g.input = all.substr(0, at + 1);
  g.expected = all.substr(at + 5);
  return g;
}

TEST(Opt, ListsEveryPass) {
  std::string expected;
  for (const ::hidet::ir::Pass& p : ::hidet::ir::all_passes())
    expected += std::string(p.name) + "\n";
  EXPECT_EQ(hidet({"opt", "--list"}).out, expected);
}

TEST(Opt, OnePass) {
  for (const std::string name : {"unroll-loops/nested", "lower-mappings/composed"}) {
    const Golden g = golden(name + ".hir");
    const Ran r = hidet({"opt", g.path, "--passes", name.substr(0, name.find('/'))});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, g.expected);
  }
}

TEST(Opt, SeveralPassesWithTheTextAfterEach) {
  const Golden g = golden("lower-mappings/composed.hir");
  const auto text = [&](const std::vector<::hidet::ir::Pass>& passes) {
    return print(run_passes(::hidet::ir::parse(g.input), passes));
  };
  using namespace ::hidet::ir;
  const std::string one = text({lower_mappings()}), two = text({lower_mappings(), lower_tensors()});
  ASSERT_NE(one, two);
  EXPECT_EQ(hidet({"opt", g.path, "--passes", "lower-mappings,lower-tensors"}).out, two);
  EXPECT_EQ(hidet({"opt", g.path, "--passes", "lower-mappings,lower-tensors", "--dump-after"}).out,
            "// after lower-mappings\n" + one + "// after lower-tensors\n" + two);
  // What opt prints it reads.
  const Folder folder;
  std::ofstream(folder / "a.hir") << one;
  EXPECT_EQ(hidet({"opt", folder / "a.hir", "--passes", "lower-tensors"}).out, two);
  EXPECT_EQ(hidet({"opt", folder / "a.hir"}).out, one);
}

TEST(Opt, SwitchesOfTheEnvironment) {
  const Golden g = golden("lower-mappings/composed.hir");
  const std::vector<std::string> args = {"opt", g.path, "--passes", "lower-mappings,simplify"};
  const std::string out = hidet(args).out;
  const Ran dumped = hidet(args, {.env = {{"HIDET_DUMP", "after:lower-mappings"}}});
  EXPECT_EQ(dumped.err, g.expected);
  EXPECT_EQ(dumped.out, out);
  const Ran timed = hidet(args, {.env = {{"HIDET_TIME", "1"}}});
  EXPECT_THAT(timed.err, HasSubstr(" ms  lower-mappings @"));
  EXPECT_THAT(timed.err, HasSubstr(" ms  simplify @"));
  EXPECT_EQ(hidet(args, {.env = {{"HIDET_VERIFY", "text"}}}).err, "");
}

TEST(Opt, Refusals) {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& args, int status,
                           const std::string& message) {
    const Ran r = hidet(args);
    EXPECT_EQ(r.status, status);
    EXPECT_EQ(r.err, "hidet: " + message + "\n");
    EXPECT_EQ(r.out, "");
  };
  const auto file = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  };
  refused({"opt"}, 2, "hidet opt takes a file of IR text, or --list");
  const std::string fine = file("fine.hir", "module m\npublic f() {\n}\n");
  refused({"opt", fine, "--passes", "simplify,fold"}, 2,
          "there is no pass 'fold'; hidet opt --list names them all");
  const std::string cut = file("cut.hir", "module m\npublic f( {\n}\n");
  refused({"opt", cut}, 3, cut + ":2:11: error: expected the name of a variable, not '{'");
  const std::string wrong = file("wrong.hir", "module m\npublic f(x: i32) {\n  x = 1\n}\n");
  refused({"opt", wrong}, 2,
          "wrong.hir:3: error: 'x' of 'f' is not a variable that can be assigned");
  const std::string loop =
      file("loop.hir",
           "module m\npublic f(n: i32) {\n  unroll for i: i32 in range(0, n, 1) {\n  }\n}\n");
  refused({"opt", loop, "--passes", "unroll-loops"}, 2,
          "loop.hir:3: error: cannot unroll the loop over 'i': its bounds are not constants, while "
          "running unroll-loops on @m");
}

}  // namespace
}  // namespace tools_test
