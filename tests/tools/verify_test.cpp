// verify_test.cpp - `hidet verify`: equal where all is right; with one kernel made wrong on purpose it names the operator.
#include <gmock/gmock.h>

#include "tools/child.h"
#include "tools/models.h"

using namespace tools_test;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

class Verify : public testing::Test {
 protected:
  void SetUp() override { onnx_test::write_file(model, small_net().serialize()); }
  Ran verify(const std::string& broken) {
    return hidet({"verify", model, "-q", "--shapes", "x:2x3x9x7", "--json", folder / "v.json"},
                 {.env = {{"HIDET_TEST_BREAK_KERNEL", broken}}});
  }
  Folder folder;
  const std::string model = folder / "net.onnx";
};

TEST_F(Verify, RightModelIsEqual) {
  const Ran r = verify("");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("equal to the reference, as a whole and operator by operator"));
  EXPECT_THAT(read_file(folder / "v.json"), HasSubstr("\"pass\""));
}

TEST_F(Verify, NamesTheWrongOperator) {
  const std::pair<const char*, const char*> cases[] = {
      {"first_conv", "first wrong operator: first_conv"},
      {"softmax", "first wrong operator: probabilities (softmax, "},
      {"matmul_packed", "first wrong operator: classes"},
      {"pack_conv_weight", "pack_conv_weight, of the init program"},
  };
  for (const auto& [broken, named] : cases) {
    const Ran r = verify(broken);
    EXPECT_EQ(r.status, 1) << broken << r.err;
    EXPECT_THAT(r.err, HasSubstr("made wrong on purpose"));
    EXPECT_THAT(r.out, AllOf(HasSubstr(named), HasSubstr("DIFFERS"))) << broken;
    EXPECT_THAT(read_file(folder / "v.json"), HasSubstr("\"mismatch\""));
  }
}

// Kernels of one shape whose results are alike: only identity tells which of them is wrong.
TEST_F(Verify, FindsAWrongKernelAmongAlikes) {
  using namespace onnx_test;
  Model m;
  m.input("x", 1, {4, 6}).output("y").output("z");
  m.initializer(tensor<float>("w", {6, 6}, wave(36)))
      .node("MatMul", {"x", "w"}, {"a"}, {}, "left")
      .node("Softmax", {"a"}, {"y"}, {attr("axis", 1)}, "left_softmax")
      .node("Softmax", {"a"}, {"z"}, {attr("axis", 0)}, "right_softmax");
  write_file(model, m.serialize());
  for (const char* broken : {"left_softmax", "right_softmax"}) {
    const Ran r = hidet({"verify", model, "-q"}, {.env = {{"HIDET_TEST_BREAK_KERNEL", broken}}});
    EXPECT_EQ(r.status, 1) << r.err;
    EXPECT_THAT(r.out, HasSubstr(std::string("first wrong operator: ") + broken));
  }
}

}  // namespace
