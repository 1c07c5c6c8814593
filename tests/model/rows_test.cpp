// rows_test.cpp - what a compiled model must do, row by row: calls, outputs, weights, memory, threads, profiles.
#include <thread>

#include <hidet/runtime/device_api.h>

#include "model/nets.h"

namespace hidet::test {
namespace {

// model(x...): one Tensor; an error if the model has not exactly one output.
TEST(Rows, CallHasOneOutput) {
  const Tensor x = symbol({"n", 4}, f32, {}, "x");
  const CompiledModel two = build(trace_from({ops::relu(x), ops::neg(x)}, {x}));
  EXPECT_THAT(error_of([&] { (void)two(zeros({2, 4})); }), HasSubstr("2 outputs"));
  EXPECT_EQ(two.run({zeros({2, 4})}).size(), 2u);
}

// run checks count, dtype, device, rank, fixed dims and symbols; the error names the input, expected and got.
TEST(Rows, RunChecksItsInputs) {
  const Tensor a = symbol({"n", 4}, f32, {}, "a"), b = symbol({"n", 4}, f32, {}, "b");
  const CompiledModel m = build(trace_from(ops::add(a, b), {a, b}));
  const auto refused = [&](const std::vector<Tensor>& in) {
    return error_of([&] { (void)m.run(in); });
  };
  EXPECT_THAT(refused({zeros({2, 4})}), AllOf(HasSubstr("2 inputs"), HasSubstr("got 1")));
  EXPECT_THAT(refused({zeros({2, 4}), zeros({2, 4}, f64)}),
              AllOf(HasSubstr("'b'"), HasSubstr("f32[n, 4]"), HasSubstr("f64[2, 4]")));
  EXPECT_THAT(refused({zeros({4}), zeros({2, 4})}), AllOf(HasSubstr("'a'"), HasSubstr("f32[4]")));
  EXPECT_THAT(refused({zeros({2, 5}), zeros({2, 5})}),
              AllOf(HasSubstr("'a'"), HasSubstr("[2, 5]")));
  EXPECT_THAT(refused({zeros({2, 4}), zeros({3, 4})}),
              AllOf(HasSubstr("'b'"), HasSubstr("n is 2"), HasSubstr("[3, 4]")));
  EXPECT_EQ(m(ones({3, 4}), ones({3, 4})).to_vector<float>(), std::vector<float>(12, 2));
  EXPECT_EQ(m.run_async({ones({3, 4}), ones({3, 4})}, nullptr)[0].to_vector<float>(),
            std::vector<float>(12, 2));
}

// interpret equals launch, with a hook for each instruction.
TEST(Rows, InterpretEqualsLaunch) {
  const FlowGraph g = conv_net(ConvWeights(1));
  const CompiledModel m = build(g);
  for (const int64_t n : {0, 1, 3}) {
    const Tensor x = randn({n, 3, 9, 7}, f32, {}, 5);
    size_t events = 0;
    const std::vector<Tensor> y =
        m.run({x}, {.interpret = true, .hook = [&](const InstructionEvent& e) {
                      EXPECT_EQ(e.index, static_cast<int>(events++));
                      EXPECT_FALSE(e.kernel.empty());
                    }});
    EXPECT_EQ(events, m.execution().instructions.size());
    EXPECT_EQ(y[0].to_vector<float>(), m(x).to_vector<float>());
  }
}

// Outputs are always distinct, writable tensors that outlive the model.
TEST(Rows, OutputsAreTensorsOfTheirOwn) {
  const Tensor x = symbol({"n", 4}, f32, {}, "x"), w = ones({4});
  graph::RecordScope record;
  const Tensor y = ops::relu(x);
  std::vector<Tensor> out;
  const Tensor in = ones({2, 4});
  {
    const CompiledModel m = build(trace_from({y, x, w, y, ops::reshape(x, {-1})}, {x}));
    out = m.run({in});
    (void)m.run({in});
  }
  for (size_t i = 0; i < out.size(); i++) {
    for (size_t k = 0; k < i; k++) EXPECT_NE(out[i].data(), out[k].data()) << i << k;
    EXPECT_NE(out[i].data(), in.data());
    std::fill_n(static_cast<float*>(out[i].data()), out[i].num_elements(),
                static_cast<float>(i + 2));
  }
  for (size_t i = 0; i < out.size(); i++)
    EXPECT_EQ(
        out[i].to_vector<float>(),
        std::vector<float>(static_cast<size_t>(out[i].num_elements()), static_cast<float>(i + 2)));
  EXPECT_EQ(in.to_vector<float>(), std::vector<float>(8, 1));
  EXPECT_EQ(w.to_vector<float>(), std::vector<float>(4, 1));
}

// Symbolic output shapes are computed; a size of 1 at run time broadcasts where the graph said so.
TEST(Rows, ShapesAreComputed) {
  const Tensor a = symbol({"n", "m"}, f32, {}, "a"), b = symbol({"k", "m"}, f32, {}, "b");
  const FlowGraph g = trace_from(ops::concat({a, b}, 0), {a, b});
  const CompiledModel m = build(g);
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{2, 3}, {0, 1}, {1, 0}, {5, 5}})
    expect_same(m(full({n, 2}, 1, f32), full({k, 2}, 2, f32)),
                g(full({n, 2}, 1, f32), full({k, 2}, 2, f32)), "concat");
  const Tensor c = symbol({"p", 3}, f32, {}, "c"), d = symbol({"q", 3}, f32, {}, "d");
  const FlowGraph h = trace_from(ops::add(c, d), {c, d});
  const CompiledModel sum = build(h);
  for (const auto& [p, q] : {std::pair<int64_t, int64_t>{4, 1}, {1, 4}, {4, 4}, {1, 1}})
    expect_same(sum(full({p, 3}, 1, f32), full({q, 3}, 2, f32)),
                h(full({p, 3}, 1, f32), full({q, 3}, 2, f32)), "add");
}

TEST(Rows, Signatures) {
  const CompiledModel m = build(conv_net(ConvWeights(1)));
  EXPECT_EQ(m.inputs()[0].name, "x");
  EXPECT_EQ(m.inputs()[0].shape[0].text(), "n");
  EXPECT_EQ(m.outputs()[0].shape[1].value(), 5);
  ASSERT_EQ(m.symbols().size(), 1u);
  EXPECT_EQ(m.symbols()[0].name, "n");
  EXPECT_EQ(m.weights().size(), 6u);
  EXPECT_EQ(m.weight_names().size(), 6u);
  EXPECT_EQ(m.tasks().size(), m.data().programs[0].kernels.size());
  EXPECT_THAT(m.to_string(), AllOf(HasSubstr("f32[n, 3, 9, 7]"), HasSubstr("216 parameters")));
  const Folder folder;
  m.save(folder / "m.hidet");
  EXPECT_THAT(error_of([&] { (void)load_model(folder / "m.hidet").weights(); }), HasSubstr("both"));
}

// set_weights with new convolution and batch-norm weights equals the reference of a graph that has them, also after the
// file was saved and loaded, with and without its own weights, and while other threads run.
TEST(Rows, SetWeights) {
  const Folder folder;
  const FlowGraph second = conv_net(ConvWeights(40));
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  CompiledModel m = build(conv_net(ConvWeights(1)));
  m.save(folder / "with.hidet", {.weights = SaveWeights::both});
  m.save(folder / "without.hidet", {.save_weights = false});
  CompiledModel with = load_model(folder / "with.hidet"),
                without = load_model(folder / "without.hidet");
  EXPECT_THAT(error_of([&] { (void)without(x); }), HasSubstr("set_weights"));
  for (CompiledModel* each : {&m, &with, &without}) {
    std::map<std::string, Tensor> named;
    for (size_t i = 0; i < second.weights().size(); i++)
      named[second.weight_names()[i]] = second.weights()[i];
    each->set_weights(named);
    expect_same((*each)(x), second(x), "by name");
    // The order is the traced graph's, whatever optimization made of it.
    EXPECT_EQ(each->weight_names(), second.weight_names());
    each->set_weights(conv_net(ConvWeights(7)).weights());
    expect_same((*each)(x), conv_net(ConvWeights(7))(x), "by order");
    EXPECT_EQ((*each)(x).to_vector<float>(), build(conv_net(ConvWeights(7)))(x).to_vector<float>());
  }
  EXPECT_THAT(error_of([&] { m.set_weights(std::vector<Tensor>(5, zeros({1}))); }),
              HasSubstr("got 5"));
  std::map<std::string, Tensor> wrong;
  for (size_t i = 0; i < second.weights().size(); i++)
    wrong[second.weight_names()[i]] = second.weights()[i];
  wrong[second.weight_names()[0]] = zeros({6, 3, 9});
  EXPECT_THAT(error_of([&] { m.set_weights(wrong); }),
              AllOf(HasSubstr("[6, 3, 3, 3]"), HasSubstr("[6, 3, 9]")));
  expect_same(m(x), conv_net(ConvWeights(7))(x), "after a refusal");
}

// memory(dims) at three sizes is the allocator's peak, to the byte.
TEST(Rows, MemoryIsTheMeasuredPeak) {
  const FlowGraph g = optimize(conv_net(ConvWeights(1)));
  for (const int64_t n : {1, 3, 64}) {
    const CompiledModel m = g.build();  // a new one: no workspace of an earlier run
    const MemoryNeed need = m.memory({{"n", n}});
    const int64_t before = memory_stats({}).current;
    reset_peak_memory({});
    {
      const Tensor x = zeros({n, 3, 9, 7});
      EXPECT_EQ(memory_stats({}).current - before, need.cpu.inputs);
      const Tensor y = m(x);
      EXPECT_EQ(memory_stats({}).peak - before,
                need.cpu.inputs + need.cpu.outputs + need.cpu.workspace)
          << n;
    }
    EXPECT_EQ(need.cuda.total(), 0);
  }
}
// The weights that a model makes are counted as memory() says.
TEST(Rows, MemoryOfWeights) {
  const ModelData data = graph::build_model_data(optimize(conv_net(ConvWeights(1))), {});
  const int64_t before = memory_stats({}).current;
  const CompiledModel m = CompiledModel::from_data(data);
  int64_t kept = 0;  // weights as the user gave them are not made again
  for (const StoredWeight& w : data.stored)
    if (w.source >= 0) kept += w.dtype.bytes_of(product(w.shape));
  EXPECT_EQ(memory_stats({}).current - before, m.memory({{"n", 1}}).cpu.weights - kept);
  EXPECT_GT(m.memory({{"n", 1}}).cpu.weights, 0);
}
TEST(Rows, MemoryLimitRefusesEarly) {
  CompiledModel m = build(conv_net(ConvWeights(1)));
  const int64_t need = m.memory({{"n", 8}}).cpu.total();
  const Tensor x = zeros({8, 3, 9, 7});
  m.set_memory_limit({}, need - 1);
  EXPECT_THAT(error_of([&] { (void)m(x); }, ErrorCode::memory),
              AllOf(HasSubstr(std::to_string(need)), HasSubstr(std::to_string(need - 1))));
  m.set_memory_limit({}, need);
  (void)m(x);
}

TEST(Rows, ProfileAndTrace) {
  const Folder folder;
  const CompiledModel m = build(conv_net(ConvWeights(1)));
  const Profile p = m.profile({zeros({2, 3, 9, 7})});
  ASSERT_EQ(p.operators.size(), m.execution().instructions.size());
  for (const OperatorTime& t : p.operators) {
    EXPECT_FALSE(t.kernel.empty());
    EXPECT_THAT(t.shapes, HasSubstr("->"));
    EXPECT_GE(t.milliseconds, 0);
  }
  p.save_trace(folder / "t.json");
  const std::string trace = tools_test::read_file(folder / "t.json");
  EXPECT_THAT(trace, AllOf(HasSubstr("traceEvents"), HasSubstr(p.operators[0].kernel),
                           HasSubstr("candidate"), HasSubstr("shapes")));
}

// The work of a kernel is a formula: of fixed and symbolic sizes, with what is folded in.
TEST(Rows, ProfileCountsWork) {
  const Tensor x = symbol({"n", 48}), w = randn({48, 32}, f32, {}, 1);
  const CompiledModel m = build(trace_from(ops::relu(ops::matmul(x, w))));
  for (const int64_t n : {3, 50}) {
    const Profile p = m.profile({zeros({n, 48})});
    ASSERT_EQ(p.operators.size(), 1u);
    const double values = static_cast<double>(n) * 32;
    EXPECT_EQ(p.operators[0].flops, values * 48 * 2 + values);
    EXPECT_EQ(p.operators[0].bytes, 4.0 * static_cast<double>(n * 48 + 48 * 32 + n * 32));
    EXPECT_THAT(p.text(MachineLimits{.gflops = 1, .gbps = 1}), HasSubstr("of limit"));
    EXPECT_DOUBLE_EQ(p.least_ms({.gflops = 1e-3, .gbps = 1e9}), p.operators[0].flops / 1e3);
  }
  const Folder folder;
  m.save(folder / "m.hidet");
  EXPECT_EQ(load_model(folder / "m.hidet").profile({zeros({3, 48})}).operators[0].flops,
            3 * 32 * 97);
}

// Products of computed matrices without rows, columns or depth.
TEST(Rows, ProductsOfFixedSizesOfZero) {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{0, 4, 4}, {3, 0, 4}, {3, 4, 0}, {0, 0, 0}}) {
    const Tensor a = symbol({m, k}, f32, {}, "a"), b = symbol({k, n}, f32, {}, "b");
    const FlowGraph g = trace_from(ops::add(ops::matmul(a, b), full({1}, 2, f32)), {a, b});
    const Tensor y = build(g).run({zeros({m, k}), zeros({k, n})})[0];
    EXPECT_EQ(y.shape(), (Shape{m, n}));
    EXPECT_EQ(y.to_vector<float>(), std::vector<float>(static_cast<size_t>(m * n), 2));
  }
}

TEST(Rows, WhatCannotBeTaken) {
  const CompiledModel m = build(conv_net(ConvWeights(1)));
  EXPECT_THAT(error_of([&] { (void)m(symbol({2, 3, 9, 7})); }), HasSubstr("without values"));
  EXPECT_THAT(error_of([&] { (void)m.memory({{"n", -3}}); }),
              AllOf(HasSubstr("'n'"), HasSubstr("-3")));
  const std::vector<uint8_t> bytes = m.serialize();
  std::vector<uint8_t> moved(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
  EXPECT_THAT(error_of([&] { (void)load_model(std::as_bytes(std::span(moved).subspan(1))); }),
              HasSubstr("begins at a multiple of 16"));
  ops::CustomOp op;
  op.name = "twice";
  op.outputs = {{f32, {"q"}}};
  op.cpu = [](lang::ScriptModule&, const ops::CustomTypes&) {};
  EXPECT_THAT(error_of([&] { (void)ops::custom(op, {symbol({"n"})}); }),
              AllOf(HasSubstr("twice"), HasSubstr("'q'")));
  EXPECT_THAT(error_of([&] { (void)ops::pad(randn({2, 3}), {INT64_MAX, 0, 1, 0}); }),
              HasSubstr("too large"));
}

// Any alignment that fits the dtype works; inputs are contiguous by type.
TEST(Rows, UnalignedInputs) {
  const FlowGraph g = conv_net(ConvWeights(1));
  const CompiledModel m = build(g);
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  std::vector<float> memory(378 + 16);
  for (const size_t offset : {1, 3, 7}) {
    std::copy_n(static_cast<const float*>(x.data()), 378, memory.data() + offset);
    expect_same(m(Tensor::from_blob(memory.data() + offset, {2, 3, 9, 7}, f32)), g(x), "offset");
  }
}

// serialize and load_model from memory do what files do; options of save.
TEST(Rows, SaveOptions) {
  const Folder folder;
  const FlowGraph g = conv_net(ConvWeights(1));
  const CompiledModel m = build(g);
  const Tensor x = randn({2, 3, 9, 7}, f32, {}, 5);
  const std::vector<uint8_t> bytes = m.serialize();
  expect_same(load_model(bytes)(x), g(x), "from memory");
  m.save(folder / "plain.hidet");
  EXPECT_TRUE(tools_test::read_file(folder / "plain.hidet") ==
              std::string(bytes.begin(), bytes.end()));
  for (const SaveWeights w : {SaveWeights::ready, SaveWeights::source, SaveWeights::both}) {
    m.save(folder / "w.hidet", {.weights = w});
    expect_same(load_model(folder / "w.hidet")(x), g(x), "weights");
    EXPECT_EQ(load_model(folder / "w.hidet")(x).to_vector<float>(), m(x).to_vector<float>());
  }
  m.save(folder / "source.hidet", {.save_source = true});
  EXPECT_THAT(tools_test::read_file(folder / "source.hidet"), HasSubstr("source/"));
  EXPECT_THAT(tools_test::read_file(folder / "plain.hidet"), testing::Not(HasSubstr("source/x86")));
}

}  // namespace
}  // namespace hidet::test
