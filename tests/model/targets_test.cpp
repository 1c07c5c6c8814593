// targets_test.cpp - one file with programs for CPU levels and for GPUs over the same source weights. There need be no GPU:
// the CPU's program runs, the others are looked at.
#include <hidet/backends/cuda.h>
#include <hidet/runtime/model_data.h>

#include <set>

#include "model/nets.h"
#include "tools/models.h"

namespace hidet::test {
namespace {

ModelData both(const FlowGraph& g, const std::vector<std::string>& targets) {
  return graph::build_model_data({optimize(g), optimize(graph::on_device(g, Device("cuda")))},
                                 {.targets = targets});
}
bool cuda_compiles() {
  for (const backends::CudaToolRow& r : backends::cuda_tool_rows())
    if (r.usable && (r.kind == "nvrtc" || r.kind == "nvcc")) return true;
  return false;
}

TEST(Targets, CpuAndGpuInOneFile) {
  ASSERT_TRUE(cuda_compiles()) << "neither NVRTC nor nvcc";
  const Folder folder;
  const FlowGraph g = conv_net(ConvWeights(1));
  const CompiledModel m = CompiledModel::from_data(both(g, {"x86-64-v2", "x86-64-v3", "sm_80"}),
                                                   {.device = Device("cpu")});
  m.save(folder / "m.hidet");
  m.save(folder / "again.hidet");
  EXPECT_TRUE(tools_test::read_file(folder / "m.hidet") ==
              tools_test::read_file(folder / "again.hidet"));
  const ModelData data = read_model(folder / "m.hidet");
  ASSERT_EQ(data.programs.size(), 3u);
  EXPECT_EQ(data.programs[0].target, "x86-64-v2");
  EXPECT_EQ(data.programs[2].target, "sm_80");
  EXPECT_FALSE(data.programs[2].cuda_image.empty());
  EXPECT_EQ(data.sources.size(),
            6u);  // each weight of the user once, whatever the graphs do with it
  std::set<std::string> keys;
  for (const StoredWeight& w : data.stored) EXPECT_TRUE(keys.insert(w.key).second) << w.key;
  EXPECT_EQ(data.programs[0].stored, data.programs[1].stored);  // the levels share what they pack
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  for (const char* target : {"x86-64-v2", "x86-64-v3"}) {
    CompiledModel loaded =
        load_model(folder / "m.hidet", {.target = target, .verify = Verify::full});
    EXPECT_EQ(loaded.target(), target);
    EXPECT_TRUE(loaded.inputs()[0].device.is_cpu());
    expect_same(loaded(x), g(x), target);
    EXPECT_EQ(loaded.run({x}, {.interpret = true})[0].to_vector<float>(),
              loaded(x).to_vector<float>());
  }
  // New weights and another save work on the whole file.
  CompiledModel loaded = load_model(folder / "m.hidet", {.device = Device("cpu")});
  loaded.save(folder / "copy.hidet");
  EXPECT_TRUE(tools_test::read_file(folder / "copy.hidet") ==
              tools_test::read_file(folder / "m.hidet"));
  const FlowGraph other = conv_net(ConvWeights(9));
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < other.weights().size(); i++)
    named[other.weight_names()[i]] = other.weights()[i];
  loaded.set_weights(named);
  expect_same(loaded(x), other(x), "new weights");
}

TEST(Targets, GraphsOfOneModelMustAgree) {
  const FlowGraph a = conv_net(ConvWeights(1));
  const Tensor z = symbol({"n", 4}, f32, Device("cuda"), "z");
  const FlowGraph b = trace_from(ops::relu(z), {z});
  EXPECT_THAT(error_of([&] { (void)graph::build_model_data({a, b}, {.targets = {"x86-64-v2"}}); }),
              HasSubstr("differ"));
  EXPECT_THAT(error_of([&] { (void)graph::build_model_data({a}, {.targets = {"sm_80"}}); }),
              AllOf(HasSubstr("inputs on a CPU"), HasSubstr("'sm_80'")));
  EXPECT_THAT(error_of([&] { (void)graph::build_model_data({b}, {.targets = {"x86-64-v2"}}); }),
              HasSubstr("inputs on a GPU"));
}

TEST(Targets, CommandMakesBoth) {
  ASSERT_TRUE(cuda_compiles()) << "neither NVRTC nor nvcc";
  const Folder folder;
  onnx_test::write_file(folder / "net.onnx", tools_test::small_net().serialize());
  const tools_test::Ran r =
      tools_test::hidet({"compile", folder / "net.onnx", "-o", folder / "m.hidet", "-q", "--target",
                         "cpu:x86-64-v3", "--target", "cuda:sm_80,ptx"});
  EXPECT_EQ(r.status, 0) << r.err;
  const tools_test::How no_driver{.env = {{"HIDET_LIBCUDA", folder / "none.so"}}};
  const tools_test::Ran look = tools_test::hidet({"inspect", folder / "m.hidet"}, no_driver);
  for (const char* word : {"x86-64-v3", "sm_80", "ptx", "can be loaded here: yes"})
    EXPECT_THAT(look.out, HasSubstr(word));
  EXPECT_EQ(tools_test::hidet({"run", folder / "m.hidet", "-q"}, no_driver).status, 0);
  EXPECT_EQ(tools_test::hidet({"run", folder / "m.hidet", "--device", "cuda:0"}, no_driver).status,
            5);
}

}  // namespace
}  // namespace hidet::test
