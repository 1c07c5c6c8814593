// verify_test.cpp - `hidet verify`: equal where all is right; with one kernel made wrong on purpose it names the operator.
#include <gmock/gmock.h>

#include <cstring>

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

// Stored inputs and outputs as ONNX keeps them, right and wrong.
TEST_F(Verify, ComparesWithStoredData) {
  using namespace onnx_test;
  Model m;
  m.input("x", 1, {"n", 2}).output("y");
  m.initializer(tensor<float>("w", {2, 2}, {1, 2, 3, 4})).node("MatMul", {"x", "w"}, {"y"});
  write_file(model, m.serialize());
  const std::string data = folder / "test_data_set_0";
  std::filesystem::create_directory(data);
  write_file(data + "/input_0.pb", tensor<float>("x", {1, 2}, {10, 1}));
  write_file(data + "/output_0.pb", tensor<float>("y", {1, 2}, {13, 24}));
  const Ran right = hidet({"verify", model, "--data", data, "-q"});
  EXPECT_EQ(right.status, 0) << right.err;
  EXPECT_THAT(right.out, HasSubstr("equal to the reference and the stored data"));
  write_file(data + "/output_0.pb", tensor<float>("y", {1, 2}, {13, 25}));
  const Ran wrong = hidet({"verify", model, "--data", data, "-q", "--json", folder / "v.json"});
  EXPECT_EQ(wrong.status, 1) << wrong.err;
  EXPECT_THAT(wrong.out,
              HasSubstr("largest difference from the stored data 1 at scale 25  DIFFERS"));
  EXPECT_THAT(read_file(folder / "v.json"), HasSubstr("\"mismatch\""));
  EXPECT_EQ(hidet({"verify", model, "--data", data, "-q", "--atol", "1"}).status, 0);
  std::filesystem::remove(data + "/input_0.pb");
  const Ran missing = hidet({"verify", model, "--data", data, "-q"});
  EXPECT_EQ(missing.status, 3);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("test_data_set_0"), HasSubstr("0 files input_K.pb")));
}

// The wrong node alone, with values from the reference; it shows the fault by itself and is right without it.
TEST_F(Verify, WritesTheSmallestFailingModel) {
  const std::string repro = folder / "repro";
  const auto broken = [](const char* op) { return How{.env = {{"HIDET_TEST_BREAK_KERNEL", op}}}; };
  for (const char* op : {"softmax", "first_conv", "matmul_packed"}) {
    const Ran r =
        hidet({"verify", model, "-q", "--shapes", "x:2x3x9x7", "--repro", repro}, broken(op));
    EXPECT_EQ(r.status, 1) << r.err;
    EXPECT_THAT(r.out, HasSubstr("smallest failing model (1 nodes): hidet verify " + repro)) << op;
    const std::vector<std::string> again = {"verify", repro + "/model.onnx", "--data",
                                            repro + "/test_data_set_0", "-q"};
    EXPECT_EQ(hidet(again, broken(op)).status, 1) << op;
    const Ran fine = hidet(again);
    EXPECT_EQ(fine.status, 0) << op << fine.out << fine.err;
  }
}

/// The elements of an npy file of `count` floats.
std::vector<float> last_floats(const std::string& file, size_t count) {
  const std::string bytes = read_file(file);
  std::vector<float> out(count);
  std::memcpy(out.data(), bytes.data() + bytes.size() - 4 * count, 4 * count);
  return out;
}

// The GPU's kernels on a machine without a GPU.
TEST_F(Verify, InTheSimulator) {
  const auto with_shapes = [](std::vector<std::string> args) {
    for (const char* a : {"--shapes", "x:2x3x9x7", "-q"}) args.emplace_back(a);
    return args;
  };
  const Ran r = hidet(with_shapes({"verify", model, "--device", "sim"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("kernels in the simulator"));
  const std::string sim_file = folder / "sim.npy", cpu_file = folder / "cpu.npy";
  ASSERT_EQ(
      hidet(with_shapes({"run", model, "--device", "sim", "--output", "y=@" + sim_file})).status,
      0);
  ASSERT_EQ(hidet(with_shapes({"run", model, "--output", "y=@" + cpu_file})).status, 0);
  const std::vector<float> sim = last_floats(sim_file, 22), cpu = last_floats(cpu_file, 22);
  for (size_t i = 0; i < sim.size(); i++) EXPECT_NEAR(sim[i], cpu[i], 1e-6);
  const Ran refused = hidet({"run", folder / "m.hidet", "--device", "sim"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr(".onnx"));
}

TEST_F(Verify, RunsSuitesCaseByCase) {
  using namespace onnx_test;
  const auto add = [&](const std::string& name, const std::string& op, float expected) {
    const std::string at = folder / ("suite/test_" + name);
    std::filesystem::create_directories(at + "/test_data_set_0");
    Model m;
    m.input("x", 1, {1}).output("y").node(op, {"x"}, {"y"});
    write_file(at + "/model.onnx", m.serialize());
    write_file(at + "/test_data_set_0/input_0.pb", tensor<float>("x", {1}, {-4}));
    write_file(at + "/test_data_set_0/output_0.pb", tensor<float>("y", {1}, {expected}));
  };
  add("a_abs", "Abs", 4);
  add("b_neg", "Neg", 4);
  add("c_strange", "Strange", 0);
  const std::vector<std::string> suite = {"verify", "--suite", folder / "suite",
                                          "-q",     "--json",  "-"};
  const Ran good = hidet(suite);
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.err, HasSubstr("3 cases: 2 pass, 1 unsupported"));
  EXPECT_EQ(good.out.front(), '[');  // JSON and nothing else
  EXPECT_THAT(good.out, AllOf(HasSubstr("\"status\": \"unsupported\""), HasSubstr("Strange")));
  std::vector<std::string> floor = suite;
  floor.insert(floor.end(), {"--floor", "3"});
  EXPECT_EQ(hidet(floor).status, 1);
  add("d_wrong", "Abs", 5);
  write_file(folder / "suite/test_a_abs/model.onnx", "no model");
  const Ran bad = hidet(suite);
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("4 cases: 1 error, 1 mismatch, 1 pass, 1 unsupported"),
                             HasSubstr("test_d_wrong: mismatch"), HasSubstr("test_a_abs: error")));
}

}  // namespace
