// faults_test.cpp - faults of an earlier compiler that must not come back, one test each.
#include <filesystem>
#include <span>
#include <thread>

#include "model/nets.h"
#include "runtime/compiled/tiny_model.h"
#include "tools/models.h"

namespace hidet::test {
namespace {

// 1. Two models of one structure in one process shared weight pointers: the second's init overwrote the first's.
TEST(Fault01, ModelsOfOneStructureKeepTheirWeights) {
  const FlowGraph one = conv_net(ConvWeights(1)), two = conv_net(ConvWeights(100));
  const CompiledModel a = build(one), b = build(two);
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  for (int round = 0; round < 2; round++) {
    expect_same(a(x), one(x), "the first model");
    expect_same(b(x), two(x), "the second model");
  }
}

// 2. A two-slot buffer was passed to a function that writes three workspace sizes. Here code returns each size by itself,
// and a run gets as many bytes as the formula of the file says, which the sanitizers watch.
TEST(Fault02, CodeStaysInsideTheWorkspaceItAskedFor) {
  const FlowGraph g = conv_net(ConvWeights(1));
  const CompiledModel m = build(g);
  for (const int64_t n : {1, 2, 7}) {
    const MemoryNeed need = m.memory({{"n", n}});
    EXPECT_GT(need.cpu.workspace, 0);
    EXPECT_EQ(need.cuda.total(), 0);
    const Tensor x = randn({n, 3, 9, 7}, f32, {}, 5);
    expect_same(m.run_async({x}, nullptr)[0], g(x), "n = " + std::to_string(n));
  }
}

// 3. bf16 and fp8 weights were saved and reloaded as f32.
TEST(Fault03, WeightsKeepTheirDtype) {
  const Folder folder;
  for (const DType t : {bf16, f16, f64, f32}) {
    const Tensor x = symbol({"n", 4}, t, {}, "x"), w = randn({4, 3}, t, {}, 2);
    const FlowGraph g = trace_from(ops::matmul(x, w), {x});
    build(g).save(folder / "m.hidet", {.weights = SaveWeights::both});
    const CompiledModel m = load_model(folder / "m.hidet");
    EXPECT_EQ(m.weights().at(0).dtype(), t);
    EXPECT_EQ(m.weights()[0].to_doubles(), w.to_doubles());
    EXPECT_EQ(m.memory({{"n", 0}}).cpu.weights % static_cast<int64_t>(t.bytes()), 0);
    const Tensor in = randn({3, 4}, t, {}, 3);
    expect_same(m(in), g(in), t.name());
  }
}

// 4. A CPU-only machine could not run a compiled model. There is no driver here at all, on any path.
TEST(Fault04, RunsWithoutAnyDriver) {
  const Folder folder;
  build(conv_net(ConvWeights(1))).save(folder / "m.hidet");
  const tools_test::How no_driver{.env = {{"HIDET_LIBCUDA", folder / "no_such_driver.so"}}};
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"run", folder / "m.hidet", "-q"},
        {"bench", folder / "m.hidet", "--iterations", "2", "--warm-up", "0", "--profile", "--trace",
         folder / "t.json"},
        {"inspect", folder / "m.hidet", "--verify"}}) {
    const tools_test::Ran r = tools_test::hidet(args, no_driver);
    EXPECT_EQ(r.status, 0) << args[0] << ": " << r.err;
  }
  EXPECT_THAT(tools_test::read_file(folder / "t.json"), HasSubstr("conv2d"));
}

// 5. save("model.hidet") without a folder failed.
TEST(Fault05, SavesABareName) {
  const Folder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  build(conv_net(ConvWeights(1))).save("model.hidet");
  std::filesystem::current_path(before);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"model.hidet"});
  EXPECT_TRUE(can_load(folder / "model.hidet").ok());
}

/// Two outputs; output `shared` adds 1 to input `in` in its storage, the other is twice the other input.
std::vector<Tensor> add_in_place(const Tensor& a, const Tensor& b, int shared, int in) {
  ops::CustomOp op;
  op.name = "add_in_place";
  op.outputs = {{f32, a.shape_expr()}, {f32, a.shape_expr()}};
  op.share_map = {{shared, in}};
  op.cpu = [=](lang::ScriptModule& m, const ops::CustomTypes&) {
    m.public_func("launch", [&](lang::Function& f) {
      using namespace lang;
      auto x0 = f.arg("x0", ptr(f32)), x1 = f.arg("x1", ptr(f32));
      auto y0 = f.arg("y0", ptr(f32)), y1 = f.arg("y1", ptr(f32));
      for (auto i : range(4)) {
        if (shared == 0) y0[i] = y0[i] + 1.0f;
        else y1[i] = y1[i] + 1.0f;
        if (shared == 0 && in == 0) y1[i] = x1[i] * 2.0f;
        if (shared == 0 && in == 1) y1[i] = x0[i] * 2.0f;
        if (shared == 1 && in == 0) y0[i] = x1[i] * 2.0f;
        if (shared == 1 && in == 1) y0[i] = x0[i] * 2.0f;
      }
    });
  };
  return ops::custom(op, {a, b});
}

// 6. The share map was inverted: only {0: 0} worked.
TEST(Fault06, AnyOutputMayLiveInAnyInput) {
  for (const int shared : {0, 1})
    for (const int in : {0, 1}) {
      const Tensor a = symbol({4}, f32, {}, "a"), b = symbol({4}, f32, {}, "b");
      const FlowGraph g = trace_from(add_in_place(a, b, shared, in), {a, b});
      const Folder folder;
      g.build().save(folder / "m.hidet");
      const CompiledModel m = load_model(folder / "m.hidet");
      const std::vector<Tensor> x = {from_vector<float>({1, 2, 3, 4}, {4}),
                                     from_vector<float>({10, 20, 30, 40}, {4})};
      const std::vector<float> own = x[in].to_vector<float>(), other = x[1 - in].to_vector<float>();
      const std::vector<Tensor> y = m.run(x);
      for (size_t i = 0; i < 4; i++) {
        EXPECT_EQ(y[shared].to_vector<float>()[i], own[i] + 1) << shared << in;
        EXPECT_EQ(y[1 - shared].to_vector<float>()[i], other[i] * 2) << shared << in;
      }
      EXPECT_EQ(y[shared].data(), x[in].data()) << shared << in;
      EXPECT_NE(y[1 - shared].data(), x[1 - in].data()) << shared << in;
      EXPECT_EQ(m.data().share_map, (std::map<int, int>{{shared, in}}));
    }
}

// 7. Cache keys left out architecture and build options; a stale cached copy won over the file.
TEST(Fault07, CacheKnowsTargetAndOptionsAndFilesWin) {
  const Folder folder;
  setenv("HIDET_CACHE_DIR", (folder / "cache").c_str(), 1);
  const FlowGraph g = optimize(conv_net(ConvWeights(1)));
  const auto code = [&](const char* target, bool fast) {
    const ModelData data = graph::build_model_data(g, {.targets = {target}, .fast_math = fast});
    const std::span<const std::byte> bytes = data.programs[0].code.span();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::string v2 = code("x86-64-v2", false), v3 = code("x86-64-v3", false),
                    fast = code("x86-64-v3", true);
  EXPECT_TRUE(v2 != v3);
  EXPECT_TRUE(v3 != fast);
  EXPECT_TRUE(code("x86-64-v2", false) == v2);  // from the cache, the right one
  EXPECT_TRUE(code("x86-64-v3", true) == fast);
  const Tensor x = randn({1, 3, 9, 7}, f32, {}, 5);
  for (const uint64_t seed : {1, 50}) {
    const FlowGraph h = conv_net(ConvWeights(seed));
    build(h).save(folder / "same.hidet");
    expect_same(load_model(folder / "same.hidet")(x), h(x), "seed " + std::to_string(seed));
  }
  unsetenv("HIDET_CACHE_DIR");
}

// 8. Constant folding used floor division where the generated C truncated.
TEST(Fault08, FoldingDividesAsCodeDoes) {
  const std::vector<int32_t> a = {-7, 7, -7, 7, -8, 0, INT32_MIN, 5},
                             b = {2, -2, -2, 2, 3, 5, -1, 0};
  std::vector<int32_t> quotient;
  for (size_t i = 0; i < a.size(); i++)  // C's, with x / 0 = 0 and wrapping
    quotient.push_back(b[i] == 0 ? 0 : static_cast<int32_t>(int64_t{a[i]} / b[i]));
  const Tensor ta = from_vector<int32_t>(a, {8}), tb = from_vector<int32_t>(b, {8});
  const Tensor x = symbol({8}, i32, {}, "x"), y = symbol({8}, i32, {}, "y");
  const Tensor zero = symbol({8}, i32, {}, "zero");
  const FlowGraph run_time = trace_from({ops::div(x, y)}, {x, y});
  EXPECT_EQ(build(run_time).run({ta, tb})[0].to_vector<int32_t>(), quotient);
  EXPECT_EQ(run_time.run({ta, tb})[0].to_vector<int32_t>(), quotient);
  graph::RecordScope
      record;  // constants become part of the graph, where they are folded or left to init
  const FlowGraph constants = trace_from({ops::add(ops::div(ta, tb), zero)}, {zero});
  EXPECT_EQ(build(constants).run({zeros({8}, i32)})[0].to_vector<int32_t>(), quotient);
  EXPECT_EQ(constants.run({zeros({8}, i32)})[0].to_vector<int32_t>(), quotient);
}

// 9. The hash from the file became a path; files were extracted, unpickled and opened before any check.
TEST(Fault09, NothingInTheFileIsAPath) {
  const Folder folder;
  std::filesystem::create_directory(folder / "empty");
  const FlowGraph g = conv_net(ConvWeights(1));
  ModelData data = graph::build_model_data(optimize(g), {});
  data.graph_hash = "../../../" + (folder / "stolen");
  data.name = "../" + (folder / "stolen");
  data.source_texts["../../stolen.c"] = "int x;";
  const CompiledModel m = CompiledModel::from_data(data);
  m.save(folder / "m.hidet");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "empty");
  const CompiledModel loaded = load_model(folder / "m.hidet");
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  expect_same(loaded(x), g(x), "loaded");
  std::filesystem::current_path(before);
  EXPECT_EQ(loaded.data().graph_hash, data.graph_hash);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"empty", "m.hidet"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "empty"));
}

// 10. An unseen shape benchmarked every candidate inside the user's call. Here the code counts its calls.
TEST(Fault10, AnUnseenShapeRunsEachKernelOnce) {
  ModelData d = tiny::model();
  std::string code = tiny::kCode;
  const std::string entry =
      "static int32_t scale_relu(hidet_ctx* c, float* x, float* w, float* y, int64_t n) {\n";
  ASSERT_NE(code.find(entry), std::string::npos);
  code.replace(code.find(entry), entry.size(),
               "static float calls;\n" + entry + "  w[0] = ++calls; w[1] = w[2] = 0;\n");
  code +=
      "int32_t hidet_call_other(hidet_ctx* c, const hidet_value* a) { calls += 1000; return "
      "hidet_call_scale_relu(c, a); }\n";
  d.programs[0].code = tiny::compile(code);
  d.programs[0].kernels[0].candidates.push_back({"other", "", "other"});
  d.programs[0].dispatch_table = "device\tn\tscale_relu\ncpu\t4\t0\ncpu\t400\t1\n";
  const CompiledModel m = CompiledModel::from_data(d);
  float calls = 0;
  for (const int64_t n : {4, 5, 7, 90}) {
    const float other = n < 90 ? 0 : 1000;  // the candidate of the nearest row
    const Tensor x = ones({n, 3});
    EXPECT_EQ(m.run({x})[0].to_vector<float>()[0], calls += 1) << n;
    EXPECT_EQ(m.run({x}, {.interpret = true})[0].to_vector<float>()[0], calls += 1 + other) << n;
    (void)m.profile({x});  // a run to warm up, and the one that is timed
    calls += 2 * (1 + other);
  }
}

// 11. Generated parameter order depended on hash order. Two processes, with memory laid out anew in each and no cache
// between them, write the same bytes.
TEST(Fault11, TwoProcessesWriteTheSameBytes) {
  const Folder folder;
  onnx_test::write_file(folder / "net.onnx", tools_test::small_net().serialize());
  std::string files[2];
  for (int i = 0; i < 2; i++) {
    const std::string out = folder / ("m" + std::to_string(i) + ".hidet");
    const tools_test::Ran r = tools_test::hidet(
        {"compile", folder / "net.onnx", "-o", out, "-q", "--save-source"},
        {.env = {{"HIDET_CACHE", "off"}, {"HIDET_NUM_THREADS", std::to_string(i + 1)}}});
    EXPECT_EQ(r.status, 0) << r.err;
    files[i] = tools_test::read_file(out);
  }
  EXPECT_GT(files[0].size(), 10000u);
  EXPECT_TRUE(files[0] == files[1]);
}

// 12. Symbol values, planner state and the workspace were process-global: no two threads at once.
TEST(Fault12, ThreadsWithTheirOwnSizes) {
  const FlowGraph g = conv_net(ConvWeights(1));
  const CompiledModel m = build(g);
  std::vector<Tensor> inputs, expected;
  for (int64_t n = 1; n <= 8; n++) {
    inputs.push_back(randn({n, 3, 9, 7}, f32, {}, static_cast<uint64_t>(n)));
    expected.push_back(m(inputs.back()));  // one at a time
    expect_same(expected.back(), g(inputs.back()), "serial");
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 50; i++) {
        const size_t k = i % 2 ? t : (t + i) % 8;
        const RunOptions how{.interpret = i % 5 == 0};
        EXPECT_EQ(m.run({inputs[k]}, how)[0].to_vector<float>(), expected[k].to_vector<float>());
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace hidet::test
