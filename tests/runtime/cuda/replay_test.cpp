// replay_test.cpp - CompiledModel::cuda_graph on a fake GPU: what is recorded and when, changed inputs, sizes, weights,
// outputs in place; refusals.
#include <gmock/gmock.h>

#include <dlfcn.h>

#include <cstdlib>

#include <hidet/runtime/compiled_model.h>
#include <hidet/runtime/device_api.h>
#include <hidet/runtime/error.h>

#include "runtime/compiled/tiny_model.h"

using namespace hidet;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

// The tiny model for a GPU: its kernel is the fake GPU's.
const char* const kCode = R"(
static int32_t scale_relu(hidet_ctx* c, void* x, void* w, void* y, int64_t n) {
  if (n == 13) return H->raise(c, 2, "thirteen rows are unlucky");
  void* args[] = {&x, &w, &y, &n};
  hidet_cuda_launch l = {sizeof l, "scale_relu", {n, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0, args, 0};
  return H->cuda_launch(c, &l);
}
int32_t hidet_call_scale_relu(hidet_ctx* c, const hidet_value* a) { return scale_relu(c, a[0].p, a[1].p, a[2].p, a[3].i); }
int32_t hidet_graph_init(hidet_ctx* c, void* const* s, void* const* o, void* ws) {
  (void)c; (void)ws;
  for (int i = 0; i < 3; i++) ((float*)o[0])[i] = 2 * ((float*)s[0])[i];
  return 0;
}
int32_t hidet_graph_launch(hidet_ctx* c, const int64_t* s, void* const* in, void* const* out, void* const* w, void* ws) {
  if (!ws && s[0]) return H->raise(c, 2, "no workspace");
  return scale_relu(c, in[0], w[0], out[0], s[0]);
}
int64_t hidet_graph_workspace(const int64_t* s, int32_t init) { return init ? 0 : 64 * s[0]; }
void hidet_graph_output_shapes(const int64_t* s, int64_t* d) { d[0] = s[0]; d[1] = 3; }
)";

ModelData gpu_data() {
  static const Bytes code = tiny::compile(kCode);
  ModelData m = tiny::model();
  ProgramData& p = m.programs[0];
  p.target = "sm_90a";
  p.code = code;
  p.cuda_image = Bytes(std::vector<uint8_t>(64, 7));
  p.cuda_kernels = {"scale_relu"};
  p.workspace_cuda = p.workspace_cpu;
  p.workspace_cpu = 0;
  return m;
}

struct Counts {
  int kernels, captures, replays;
};

class Replay : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("HIDET_LIBCUDA", HIDET_FAKE_GPU, 1); }
  Counts counts() {
    void* library = dlopen(HIDET_FAKE_GPU, RTLD_NOW | RTLD_LOCAL);
    const Counts now = *static_cast<Counts*>(dlsym(library, "fake_gpu_count"));
    const Counts since{now.kernels - before_.kernels, now.captures - before_.captures,
                       now.replays - before_.replays};
    before_ = now;
    return since;
  }
  static Tensor rows(std::vector<float> values) {
    const int64_t n = static_cast<int64_t>(values.size()) / 3;
    return from_vector<float>(values, {n, 3}).cuda();
  }
  static std::vector<float> values(const Tensor& t) { return t.cpu().to_vector<float>(); }
  static Tensor some_rows(int64_t n) {
    return rows(std::vector<float>(static_cast<size_t>(n) * 3, static_cast<float>(n)));
  }

 private:
  Counts before_{0, 0, 0};
};

std::string refusal(const CompiledModel& model, const std::vector<Tensor>& inputs) {
  try {
    model.cuda_graph(inputs);
  } catch (const Error& e) {
    return detail::concat(static_cast<int>(e.code()), " ", e.what());
  }
  return "";
}

}  // namespace

TEST_F(Replay, EqualsARunAndFollowsInputsInPlace) {
  const CompiledModel model = CompiledModel::from_data(gpu_data());
  ASSERT_TRUE(model.device().is_cuda());
  const Tensor x = rows({1, -1, 1, 2, 3, -4});
  counts();
  const std::vector<Tensor> first = model.cuda_graph({x});
  // One plain run, then the replay.
  Counts now = counts();
  EXPECT_EQ(now.kernels, 2);
  EXPECT_EQ(now.captures, 1);
  EXPECT_EQ(now.replays, 1);
  const std::vector<Tensor> plain = model.run({x});
  ASSERT_EQ(first.size(), 4U);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(values(first[i]), values(plain[i])) << i;
  EXPECT_THAT(values(first[0]), ElementsAre(2, 4, 6, 4, 0, 0));
  EXPECT_THAT(values(first[2]), ElementsAre(2, -4, 6));
  counts();
  for (int round = 1; round <= 3; ++round) {
    const float r = static_cast<float>(round);
    x.copy_from(from_vector<float>({r, r, r, -r, -r, -r}, {2, 3}));
    const std::vector<Tensor> next = model.cuda_graph({x});
    EXPECT_THAT(values(next[0]), ElementsAre(2 * r, 0, 6 * r, 0, 4 * r, 0));
    EXPECT_THAT(values(next[1]), ElementsAre(r, r, r, -r, -r, -r));
    EXPECT_EQ(values(next[3]), values(next[0]));
  }
  now = counts();
  EXPECT_EQ(now.captures, 0);
  EXPECT_EQ(now.replays, 3);
  EXPECT_EQ(now.kernels, 3);
  EXPECT_THAT(values(first[0]), ElementsAre(2, 4, 6, 4, 0, 0))
      << "an output is not the graph's own";
}

TEST_F(Replay, OutputsOutliveTheModel) {
  std::vector<Tensor> out;
  {
    const CompiledModel model = CompiledModel::from_data(gpu_data());
    out = model.cuda_graph({rows({1, 1, 1})});
  }
  EXPECT_THAT(values(out[0]), ElementsAre(2, 0, 6));
}

TEST_F(Replay, OneGraphForEachSizeAndABoundedNumber) {
  const CompiledModel model = CompiledModel::from_data(gpu_data());
  counts();
  for (int64_t n = 1; n <= 8; ++n) model.cuda_graph({some_rows(n)});
  EXPECT_EQ(counts().captures, 8);
  for (int64_t n = 1; n <= 8; ++n)
    EXPECT_EQ(values(model.cuda_graph({some_rows(n)})[0]), values(model.run({some_rows(n)})[0]));
  EXPECT_EQ(counts().captures, 0);
  const int64_t held = memory_stats(Device("cuda:0")).current;
  for (int64_t n = 20; n <= 40; ++n) model.cuda_graph({some_rows(n)});
  EXPECT_EQ(counts().captures, 21);
  // Eight graphs of at most 40 rows: the graph's input, output and workspace.
  EXPECT_LE(memory_stats(Device("cuda:0")).current - held, 8 * 40 * (12 + 12 + 64) + 40 * 64);
  model.cuda_graph({some_rows(40)});
  EXPECT_EQ(counts().captures, 0) << "the last used stay";
  model.cuda_graph({some_rows(1)});
  EXPECT_EQ(counts().captures, 1);
}

TEST_F(Replay, NoRows) {
  const CompiledModel model = CompiledModel::from_data(gpu_data());
  const std::vector<Tensor> out = model.cuda_graph({some_rows(0)});
  EXPECT_EQ(out[0].shape(), (Shape{0, 3}));
}

TEST_F(Replay, NewWeightsAreRecordedAnew) {
  CompiledModel model = CompiledModel::from_data(gpu_data());
  const Tensor x = rows({1, 1, 1});
  model.cuda_graph({x});
  model.set_weights({from_vector<float>({-1, 10, 100}, {3})});
  counts();
  EXPECT_THAT(values(model.cuda_graph({x})[0]), ElementsAre(0, 20, 200));
  EXPECT_EQ(counts().captures, 1);
}

TEST_F(Replay, AnOutputInPlaceChangesTheInputOnce) {
  ModelData data = gpu_data();
  data.outputs.resize(1);
  data.programs[0].execution.outputs_index.resize(1);
  data.share_map = {{0, 0}};
  const CompiledModel model = CompiledModel::from_data(std::move(data));
  const Tensor x = rows({1, -1, 1});
  for (int round = 0; round < 2; ++round) {
    const std::vector<Tensor> out = model.cuda_graph({x});
    EXPECT_EQ(out[0].data(), x.data());
  }
  EXPECT_THAT(values(x), ElementsAre(4, 0, 36)) << "times 2, 6 each round";
}

TEST_F(Replay, Refusals) {
  const CompiledModel model = CompiledModel::from_data(gpu_data());
  EXPECT_THAT(refusal(model, {zeros({2, 3})}),
              HasSubstr("input 'x' is on the cpu; cuda_graph takes tensors of a GPU"));
  EXPECT_THAT(refusal(model, {}), HasSubstr("takes 1 inputs, got 0"));
  EXPECT_THAT(refusal(model, {Tensor()}), HasSubstr("an empty tensor"));
  EXPECT_THAT(refusal(model, {zeros({2, 4}).cuda()}), HasSubstr("input 'x': expected"));
  // A run that fails leaves nothing behind that a later one would stumble over.
  EXPECT_THAT(refusal(model, {some_rows(13)}), HasSubstr("thirteen rows are unlucky"));
  EXPECT_THAT(values(model.cuda_graph({rows({1, 1, 1})})[0]), ElementsAre(2, 0, 6));
  const CompiledModel cpu = CompiledModel::from_data(tiny::model());
  EXPECT_THAT(refusal(cpu, {zeros({2, 3})}), HasSubstr("input 'x' is on the cpu"));
  EXPECT_THAT(refusal(cpu, {some_rows(2)}),
              HasSubstr("model 'tiny' runs on the cpu; cuda_graph needs"));
  EXPECT_THAT(refusal(CompiledModel(), {}), HasSubstr("empty"));
}
