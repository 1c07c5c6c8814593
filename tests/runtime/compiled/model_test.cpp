// model_test.cpp - running, interpreting, weights, saving and loading of a hand-made model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include <hidet/c.h>
#include <hidet/runtime.h>

#include "tiny_model.h"

using namespace hidet;
using testing::HasSubstr;

namespace {

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::vector<float> expected(const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float v = x[i] * 2 * w[i % 3];
    y[i] = v > 0 || v != v ? v : 0;
  }
  return y;
}
Tensor rows(int n) { return randn({n, 3}, f32, {}, 7); }

void check_outputs(const CompiledModel& m, const std::vector<float>& w,
                   const RunOptions& options = {}) {
  for (const int n : {0, 1, 2, 17}) {
    const Tensor x = rows(n);
    const std::vector<Tensor> out = m.run({x}, options);
    ASSERT_EQ(out.size(), 4u);
    EXPECT_EQ(out[0].shape(), (Shape{n, 3}));
    EXPECT_EQ(out[0].to_vector<float>(), expected(x.to_vector<float>(), w));
    EXPECT_EQ(out[1].to_vector<float>(), x.to_vector<float>());
    EXPECT_EQ(out[2].to_vector<float>(), (std::vector<float>{2 * w[0], 2 * w[1], 2 * w[2]}));
    EXPECT_EQ(out[3].to_vector<float>(), out[0].to_vector<float>());
    if (n > 0) {
      EXPECT_NE(out[1].data(), x.data());
      EXPECT_NE(out[3].data(), out[0].data());
    }
  }
}

TEST(CompiledModel, RunsAndInterprets) {
  const CompiledModel m = CompiledModel::from_data(tiny::model());
  check_outputs(m, {1, -2, 3});
  check_outputs(m, {1, -2, 3}, {.interpret = true});
  int events = 0;
  (void)m.run({rows(2)}, {.hook = [&](const InstructionEvent& e) {
                events++;
                EXPECT_EQ(e.name, "relu");
                EXPECT_EQ(e.outputs[0].shape(), (Shape{2, 3}));
              }});
  EXPECT_EQ(events, 1);
  const Profile p = m.profile({rows(5)});
  ASSERT_EQ(p.operators.size(), 1u);
  EXPECT_THAT(p.text(), HasSubstr("scale_relu"));
  const float nan = std::nanf("");
  const Tensor odd = from_vector<float>({nan, INFINITY, -INFINITY}, {1, 3});
  const std::vector<float> y = m.run({odd})[0].to_vector<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0.f);
  EXPECT_EQ(y[2], 0.f);
  EXPECT_THAT(m.to_string(),
              AllOf(HasSubstr("tiny"), HasSubstr("f32[n, 3]"), HasSubstr("3 parameters")));
}

TEST(CompiledModel, RefusesWrongInputs) {
  CompiledModel m = CompiledModel::from_data(tiny::model());
  EXPECT_THAT(message([&] { m.run({}); }), HasSubstr("takes 1 inputs, got 0"));
  EXPECT_THAT(message([&] { m.run({zeros({2, 4})}); }),
              AllOf(HasSubstr("'x'"), HasSubstr("[n, 3]"), HasSubstr("[2, 4]")));
  EXPECT_THAT(message([&] { m.run({zeros({2, 3}, f64)}); }), HasSubstr("f64[2, 3]"));
  EXPECT_THAT(message([&] { m.run({zeros({1001, 3})}); }), HasSubstr("from 0 to 1000"));
  EXPECT_THAT(message([&] { m.run({Tensor()}); }), HasSubstr("empty"));
  EXPECT_THAT(message([&] { m(zeros({2, 3})); }), HasSubstr("4 outputs"));
  EXPECT_THAT(message([&] { m.run({zeros({13, 3})}); }), HasSubstr("thirteen rows"));
  EXPECT_THAT(message([&] { m.run({zeros({13, 3})}, {.interpret = true}); }),
              HasSubstr("thirteen rows"));
  EXPECT_EQ(m.memory({{"n", 10}}).cpu.workspace, 640);
  EXPECT_EQ(m.memory({{"n", 10}}).cpu.weights, 12);
  m.set_memory_limit({}, 500);
  EXPECT_THAT(message([&] { m.run({zeros({10, 3})}); }), HasSubstr("over the limit of 500"));
  m.set_memory_limit({}, 0);
  check_outputs(m, {1, -2, 3});
}

// Fault 1: models of one structure, and of the same code bytes, keep their own weights.
TEST(CompiledModel, ModelsOfOneStructureKeepTheirWeights) {
  const CompiledModel a = CompiledModel::from_data(tiny::model({1, 2, 3})),
                      b = CompiledModel::from_data(tiny::model({4, 5, 6}));
  check_outputs(a, {1, 2, 3});
  check_outputs(b, {4, 5, 6});
  check_outputs(a, {1, 2, 3});
}

TEST(CompiledModel, SetWeights) {
  CompiledModel m = CompiledModel::from_data(tiny::model());
  m.set_weights({from_vector<float>({5, 6, 7}, {3})});
  check_outputs(m, {5, 6, 7});
  m.set_weights({{"w", from_vector<float>({1, 1, 1}, {3})}});
  check_outputs(m, {1, 1, 1});
  EXPECT_THAT(message([&] { m.set_weights(std::map<std::string, Tensor>{{"v", zeros({3})}}); }),
              HasSubstr("'w' is missing"));
  EXPECT_THAT(message([&] { m.set_weights(std::vector<Tensor>{zeros({4})}); }),
              AllOf(HasSubstr("[3]"), HasSubstr("[4]")));
  EXPECT_THAT(message([&] { m.set_weights(std::vector<Tensor>{}); }), HasSubstr("got 0"));
  check_outputs(m, {1, 1, 1});
}

// Fault 12: any number of threads, also while weights change.
TEST(CompiledModel, Threads) {
  CompiledModel m = CompiledModel::from_data(tiny::model({1, 1, 1}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const int n = 1 + (t * 7 + i) % 12;
        const std::vector<float> y = m.run({ones({n, 3})})[0].to_vector<float>();
        EXPECT_EQ(y.size(), size_t(n) * 3);
        for (const float v : y) EXPECT_EQ(v, y[0]);
      }
    });
  for (int i = 1; i < 50; ++i) m.set_weights({full({3}, i)});
  for (auto& t : threads) t.join();
}

// Fault 5: a bare file name; faults 7 and 9: nothing outside the file is read or written.
TEST(ModelFile, RoundTrips) {
  const tiny::Folder folder;
  const CompiledModel m = CompiledModel::from_data(tiny::model());
  const auto old = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  m.save("bare.hidet");
  m.save("deep/er/model.hidet", {.save_source = true});
  std::filesystem::current_path(old);
  check_outputs(load_model(folder / "bare.hidet"), {1, -2, 3});
  check_outputs(load_model(folder / "deep/er/model.hidet", {.verify = Verify::full}), {1, -2, 3});
  m.save(folder / "again.hidet");
  const std::vector<uint8_t> bytes = tiny::read_file(folder / "bare.hidet");
  EXPECT_EQ(bytes, tiny::read_file(folder / "again.hidet"));
  EXPECT_EQ(bytes, m.serialize());
  EXPECT_EQ(load_model(folder / "bare.hidet").serialize(), bytes);
  check_outputs(load_model(bytes), {1, -2, 3});
  EXPECT_STREQ(can_load(folder / "bare.hidet").text(), "yes");
  EXPECT_EQ(read_model(folder / "bare.hidet").graph_string, "y = relu(x * (w * 2))");
  size_t files = 0;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder.path))
    files += e.is_regular_file();
  EXPECT_EQ(files, 3u);
}

TEST(ModelFile, WeightModes) {
  const tiny::Folder folder;
  const CompiledModel m = CompiledModel::from_data(tiny::model());
  m.save(folder / "none.hidet", {.save_weights = false});
  CompiledModel none = load_model(folder / "none.hidet");
  EXPECT_THAT(message([&] { none.run({rows(2)}); }), HasSubstr("set_weights"));
  EXPECT_THAT(message([&] { none.weights(); }), HasSubstr("both"));
  none.set_weights(m.weights());
  check_outputs(none, {1, -2, 3});
  m.save(folder / "source.hidet", {.weights = SaveWeights::source});
  check_outputs(load_model(folder / "source.hidet"), {1, -2, 3});
  m.save(folder / "both.hidet", {.weights = SaveWeights::both});
  EXPECT_EQ(load_model(folder / "both.hidet").weights()[0].to_vector<float>(),
            (std::vector<float>{1, -2, 3}));
}

// Fault 3: every dtype comes back as it was.
TEST(ModelFile, KeepsDtypes) {
  const tiny::Folder folder;
  ModelData d = tiny::model();
  for (const DType t : {bf16, f16, f8e4m3, i4, boolean, i64, f64}) {
    SourceWeight w{std::string("extra_") + t.name(), t, {5}, zeros({5}, t)};
    static_cast<uint8_t*>(w.data.data())[0] = 1;
    d.sources.push_back(w);
  }
  d.sources.push_back({"none", f32, {0, 4}, zeros({0, 4})});
  const CompiledModel m = CompiledModel::from_data(d);
  m.save(folder / "m.hidet", {.weights = SaveWeights::both});
  const std::vector<Tensor> weights = load_model(folder / "m.hidet").weights();
  ASSERT_EQ(weights.size(), d.sources.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(weights[i].dtype(), d.sources[i].dtype);
    EXPECT_EQ(weights[i].shape(), d.sources[i].shape);
    if (weights[i].bytes() > 0) {
      EXPECT_EQ(std::memcmp(weights[i].data(), d.sources[i].data.data(),
                            static_cast<size_t>(weights[i].bytes())),
                0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(weights[i].data()) % 64, 0u);
    }
  }
}

TEST(ModelFile, SaveFailsCleanly) {
  const tiny::Folder folder;
  const CompiledModel m = CompiledModel::from_data(tiny::model());
  tiny::write_file(folder / "file", {1});
  EXPECT_THAT(message([&] { m.save(folder / "file/model.hidet"); }), HasSubstr("file/model.hidet"));
  EXPECT_THAT(message([&] { m.save(folder.path); }), HasSubstr("not a regular file"));
  EXPECT_THAT(message([&] { m.save("/proc/model.hidet"); }), HasSubstr("/proc/model.hidet"));
  EXPECT_THAT(message([&] { m.save("/dev/full"); }), HasSubstr("/dev/full"));
  EXPECT_THAT(message([&] { load_model(folder / "missing.hidet"); }), HasSubstr("missing.hidet"));
}

// Every cut and every flipped byte: an error, or the right answer.
TEST(ModelFile, DamageIsFound) {
  const tiny::Folder folder;
  const std::vector<uint8_t> good = CompiledModel::from_data(tiny::model()).serialize();
  const std::string path = folder / "bad.hidet";
  const auto try_it = [&](const std::vector<uint8_t>& bytes) {
    tiny::write_file(path, bytes);
    try {
      check_outputs(load_model(path, {.verify = Verify::full}), {1, -2, 3});
      return true;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("bad.hidet"));
      return false;
    }
  };
  ASSERT_TRUE(try_it(good));
  for (size_t i = 0; i < 200; ++i)
    EXPECT_FALSE(try_it({good.begin(), good.begin() + static_cast<long>(good.size() * i / 200)}));
  for (size_t i = 0; i < 200; ++i) {
    std::vector<uint8_t> bytes = good;
    bytes[(i * 7919 + i * good.size() / 200) % bytes.size()] ^= static_cast<uint8_t>(1 << (i % 8));
    (void)try_it(bytes);
  }
  for (size_t i = 1; i <= 200; ++i) {  // the directory and the ends
    std::vector<uint8_t> bytes = good;
    bytes[bytes.size() - i] ^= 0xff;
    (void)try_it(bytes);
  }
}

TEST(ModelFile, DispatchTableIsCheckedAndUsed) {
  ModelData d = tiny::model();
  d.programs[0].kernels[0].candidates.push_back({"second", "", "scale_relu"});
  d.programs[0].dispatch_table = "device\tn\tscale_relu\ncpu\t1\t0\ncpu\t16\t1\n";
  std::string candidate;
  (void)CompiledModel::from_data(d).run(
      {rows(12)}, {.hook = [&](const InstructionEvent& e) { candidate = e.candidate; }});
  EXPECT_EQ(candidate, "second");
  for (const char* bad : {"device\tn\n", "device\tn\tk\ncpu\t1\t2\n", "device\tn\tk\ncpu\t1\t-1\n",
                          "device\tn\tk\ncpu\tx\t0\n"}) {
    d.programs[0].dispatch_table = bad;
    EXPECT_THAT(message([&] { CompiledModel::from_data(d); }), HasSubstr("dispatch_table.txt"));
  }
}

TEST(ModelFile, UnknownFeaturesAndFormats) {
  ModelData d = tiny::model();
  d.required_features = {"loop"};
  const tiny::Folder folder;
  CompiledModel::from_data(d).save(folder / "m.hidet");
  EXPECT_THAT(message([&] { load_model(folder / "m.hidet"); }), HasSubstr("'loop'"));
  EXPECT_STREQ(can_load(folder / "m.hidet").text(), "no");
  d = tiny::model();
  d.programs[0].target = "x86-64-v4";
  setenv("HIDET_CPU_LEVEL", "x86-64-v2", 1);
  // Made for another machine: it is saved there and runs here no more than the file does.
  d.programs[0].target = "sm_80";
  const CompiledModel cross = CompiledModel::from_data(d, {.device = Device("cuda:7")});
  EXPECT_THAT(message([&] { cross.run({rows(1)}); }), HasSubstr("cannot run here"));
  cross.save(folder / "cross.hidet");
  EXPECT_EQ(read_model(folder / "cross.hidet").stored[0].data.to_vector<float>(),
            (std::vector<float>{2, -4, 6}));
  d.programs[0].target = "x86-64-v4";
  CompiledModel::from_data(d).save(folder / "v4.hidet", {.weights = SaveWeights::source});
  EXPECT_THAT(message([&] { load_model(folder / "v4.hidet"); }),
              AllOf(HasSubstr("x86-64-v4"), HasSubstr("x86-64-v2")));
  unsetenv("HIDET_CPU_LEVEL");
}

TEST(ModelFile, PythonReadsIt) {
  ASSERT_EQ(std::system("python3 -c pass 2>/dev/null"), 0) << "no python3";
  const tiny::Folder folder;
  CompiledModel::from_data(tiny::model()).save(folder / "m.hidet");
  const std::string script =
      "import zipfile, io, sys; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; "
      "assert z.namelist()[0] == 'meta.json'; w = io.BytesIO(z.read('weights.npz')); "
      "assert zipfile.ZipFile(w).testzip() is None; exec('try: import numpy\\nexcept ImportError: "
      "sys.exit()'); "
      "w.seek(0); assert numpy.load(w)['stored_0'].tolist() == [2, -4, 6]";
  EXPECT_EQ(std::system(("python3 -c \"" + script + "\" " + (folder / "m.hidet")).c_str()), 0);
}

TEST(CApi, LoadsAndRuns) {
  const tiny::Folder folder;
  CompiledModel::from_data(tiny::model()).save(folder / "m.hidet");
  hidet_model* model = nullptr;
  EXPECT_EQ(hidet_load_model("missing.hidet", nullptr, &model), HIDET_BAD_FILE);
  EXPECT_THAT(hidet_last_error(), HasSubstr("missing.hidet"));
  ASSERT_EQ(hidet_load_model((folder / "m.hidet").c_str(), nullptr, &model), HIDET_OK);
  hidet_tensor_info info;
  ASSERT_EQ(hidet_model_input_info(model, 0, &info), HIDET_OK);
  EXPECT_EQ(info.shape[0], -1);
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
  const int64_t shape[] = {2, 3};
  hidet_tensor* in = nullptr;
  ASSERT_EQ(hidet_tensor_from_blob(x, shape, 2, info.dtype, info.device, &in), HIDET_OK);
  hidet_tensor* out[4];
  ASSERT_EQ(hidet_run(model, &in, 1, out, 4), HIDET_OK);
  ASSERT_EQ(hidet_tensor_copy_out(out[0], y, sizeof y), HIDET_OK);
  EXPECT_EQ(y[0], 2.f);
  EXPECT_EQ(y[1], 0.f);
  EXPECT_EQ(hidet_run(model, &in, 1, out, 3), HIDET_USAGE);
  for (hidet_tensor* t : out) hidet_tensor_release(t);
  hidet_tensor_release(in);
  hidet_model_release(model);
}

TEST(CompiledModel, CostOfARun) {
  ModelData d = tiny::model();
  d.outputs.resize(1);
  d.programs[0].execution.outputs_index.resize(1);
  const CompiledModel m = CompiledModel::from_data(d);
  const Tensor x = zeros({2, 3});
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 2000; ++i) (void)m(x);
    best = std::min(
        best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                      .count() /
                  2000);
  }
  std::printf("one run: %.3f us\n", best);
  EXPECT_LT(best, 20.0);  // the figure wanted is 2
}

}  // namespace
