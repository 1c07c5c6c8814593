// explain_test.cpp - `hidet explain`: every kernel with its operators, and the text of one.
#include <gmock/gmock.h>

#include "tools/child.h"
#include "tools/models.h"

using namespace tools_test;
using testing::AllOf;
using testing::HasSubstr;

TEST(Explain, KernelsAndTheirText) {
  const Folder folder;
  const std::string onnx = folder / "net.onnx", file = folder / "m.hidet";
  onnx_test::write_file(onnx, small_net().serialize());
  ASSERT_EQ(hidet({"compile", onnx, "-o", file, "--target", "cpu:x86-64-v3", "--save-source", "-q"})
                .status,
            0);
  const Ran all = hidet({"explain", file, "--json", folder / "e.json"});
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out,
              AllOf(HasSubstr("x86-64-v3"), HasSubstr("template "), HasSubstr("first_conv"),
                    HasSubstr("classes"), HasSubstr("probabilities")));
  EXPECT_THAT(read_file(folder / "e.json"),
              AllOf(HasSubstr("\"operators\""), HasSubstr("\"made_by\""), HasSubstr("\"flops\"")));
  const Ran one = hidet({"explain", file, "classes"});
  EXPECT_EQ(one.status, 0) << one.err;
  // 5 products and sums for each of 11 values of each row.
  EXPECT_THAT(one.out, AllOf(HasSubstr("flops      batch*110"), HasSubstr("hidet_"),
                             HasSubstr(".ir\n"), HasSubstr(".c\n")));
  EXPECT_THAT(hidet({"explain", onnx, "--target", "sm_80", "-q"}).out, HasSubstr("sm_80"));
  const Ran none = hidet({"explain", file, "nothing"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("'nothing'"), HasSubstr("hidet explain")));
  EXPECT_EQ(hidet({"explain", file, "--target", "sm_80"}).status, 2);
}
