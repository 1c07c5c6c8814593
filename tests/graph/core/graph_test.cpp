// graph_test.cpp - tracing, signatures, checks of inputs, text, operators of the user's own, the script interpreter,
// checked reads of the reference.
#include <hidet/graph/custom.h>
#include <hidet/lang.h>

#include "graph/core/samples.h"

namespace hidet::test {
namespace {

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Graph, TracesAndNames) {
  const Tensor x = symbol({"n", 8}), w = randn({8, 3}, f32, {}, 1), b = randn({3}, f32, {}, 2);
  const FlowGraph graph = trace_from(ops::relu(ops::matmul(x, w) + b));
  EXPECT_EQ(graph.nodes().size(), 3u);
  ASSERT_EQ(graph.weights().size(), 2u);
  EXPECT_TRUE(graph.weights()[0].same_as(w));
  EXPECT_EQ(graph.inputs()[0].name, "x0");
  EXPECT_EQ(graph.symbols(), std::vector<std::string>{"n"});
  EXPECT_EQ(graph.outputs()[0].shape, (std::vector<DimExpr>{"n", 3}));
  EXPECT_EQ(graph.text(),
            "graph model {\n  input %x0: f32[n, 8] cpu\n  weight @w0: f32[8, 3] cpu\n  weight @w1: "
            "f32[3] cpu\n"
            "  %0 = matmul(%x0, @w0): f32[n, 3]\n  %1 = add(%0, @w1): f32[n, 3]\n  %2 = relu(%1): "
            "f32[n, 3]\n"
            "  output y0 = %2\n}\n");
}

TEST(Graph, ScalarsAreNoWeights) {
  EXPECT_TRUE(trace_from(symbol({2}) * 2.0 + 1.0).weights().empty());
}

TEST(Graph, NeedsTheListOfSeveralInputs) {
  const Tensor a = symbol({2}, f32, {}, "left"), b = symbol({2});
  const std::string what = message_of([&] { trace_from(a + b); });
  EXPECT_SAYS(what, "left");
  EXPECT_SAYS(what, "x1");
  EXPECT_SAYS(message_of([&] { trace_from(a + b, {a}); }), "not in the list");
}

TEST(Graph, RefusesWrongInputs) {
  const FlowGraph graph = trace_from(ops::relu(symbol({2, 3}, f32, {}, "image")));
  const std::string what = message_of([&] { graph(zeros({2, 4})); });
  for (const char* part : {"image", "[2, 3]", "[2, 4]"}) EXPECT_SAYS(what, part);
  EXPECT_SAYS(message_of([&] { graph(zeros({2, 3}, f64)); }), "f64");
  EXPECT_SAYS(message_of([&] { graph.run({}); }), "takes 1 inputs, got 0");
}

TEST(Graph, ErrorsNameOperatorAndShapes) {
  const std::string what = message_of([] { ops::add(zeros({2, 3}), zeros({2, 4})); });
  for (const char* part : {"add", "[2, 3]", "[2, 4]"}) EXPECT_SAYS(what, part);
  EXPECT_SAYS(message_of([] { ops::matmul(zeros({2, 3}), zeros({4, 5})); }), "matmul");
  EXPECT_SAYS(message_of([] { ops::add(zeros({2}), zeros({2}, i32)); }), "i32");
}

TEST(Graph, LongChains) {
  Tensor x = symbol({1});
  const Tensor first = x;
  for (int i = 0; i < 3000; i++) x = ops::neg(x);
  const FlowGraph graph = trace_from(x, {first});
  EXPECT_EQ(graph(ones({1})).item<float>(), 1);
}

TEST(Graph, ShapesAreValues) {
  const Tensor x = symbol({"n", 4});
  const FlowGraph graph =
      FlowGraph({x}, {ops::shape(x), ops::reshape(x, {-1}), ops::reshape(x, {2, "n", 2})});
  const std::vector<Tensor> out = graph.run({zeros({5, 4})});
  EXPECT_EQ(out[2].shape(), (Shape{2, 5, 2}));
  EXPECT_EQ(values<int64_t>(out[0]), (std::vector<int64_t>{5, 4}));
  EXPECT_EQ(out[1].shape(), Shape{20});
}

Tensor energy_share(const Tensor& x) {
  return ops::define("energy_share", {x}, [](ops::Define& d) {
    auto x = d.input(0);
    auto rows = x.shape(0), columns = x.shape(1);
    auto total = d.compute("total", {rows}, [&](auto i) {
      return ops::reduce_sum({columns}, [&](auto k) { return x(i, k) * x(i, k); });
    });
    d.output("y", x.dtype(), {rows, columns},
             [&](auto i, auto j) { return x(i, j) * x(i, j) / total(i); });
  });
}

TEST(Custom, Define) {
  const Tensor in = from_vector<float>({1, 2, 2, 0, 3, 4}, {2, 3});
  const std::vector<float> expected{1 / 9.f, 4 / 9.f, 4 / 9.f, 0, 9 / 25.f, 16 / 25.f};
  expect_same(energy_share(in), from_vector(expected, {2, 3}), "at once");
  expect_same(trace_from(energy_share(symbol({"n", 3})))(in), from_vector(expected, {2, 3}),
              "in a graph");
}

Tensor running_sum(const Tensor& x, bool out_of_bounds = false) {
  ops::CustomOp op;
  op.name = "running_sum";
  op.outputs = {{x.dtype(), x.shape_expr()}};
  op.share_map = {{0, 0}};
  op.cpu = [=](lang::ScriptModule& m, const ops::CustomTypes& types) {
    m.public_func("launch", [&](lang::Function& f) {
      using namespace hidet::lang;
      auto x = f.arg("x", ptr(hidet::f32));
      auto y = f.arg("y", ptr(hidet::f32));
      (void)x;
      const DimExpr end = types.inputs[0].shape[0] + (out_of_bounds ? 1 : 0);
      for (auto i : range(1, end)) y[i] = y[i] + y[i - 1];
    });
  };
  return ops::custom(op, {x})[0];
}

TEST(Custom, ScriptWorksInPlaceOnTheUsersInput) {
  const FlowGraph graph = trace_from(running_sum(symbol({"n"})));
  const Tensor data = from_vector<float>({1, 2, 3, 4, 5}, {5});
  const Tensor out = graph(data);
  EXPECT_EQ(values<float>(out), (std::vector<float>{1, 3, 6, 10, 15}));
  EXPECT_EQ(out.data(), data.data());
  // Not on a value inside the graph.
  const Tensor x = symbol({3});
  const Tensor doubled = x + x;
  const FlowGraph inner = trace_from({running_sum(doubled), doubled}, {x});
  const std::vector<Tensor> outs = inner.run({ones({3})});
  EXPECT_EQ(values<float>(outs[0]), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(values<float>(outs[1]), (std::vector<float>{2, 2, 2}));
}

TEST(Custom, ScriptsAreChecked) {
  const FlowGraph graph = trace_from(running_sum(symbol({4}), true));
  EXPECT_SAYS(message_of([&] { graph(ones({4})); }), "running_sum: element 4 is outside");
}

TEST(Interpret, RefusesReadsOutsideATensor) {
  ir::Task task;
  task.name = "shifted";
  const graph::TensorSpec spec{f32, {4}};
  task.inputs = {graph::task_input(0, spec)};
  task.outputs = {graph::add_compute(task, "y", spec, [&](const auto& at) {
    return graph::element(task.inputs[0], {at[0] + 1});
  })};
  EXPECT_SAYS(message_of([&] { graph::interpret(task, {ones({4})}); }), "shifted: reads");
  // Guarded by a select it is fine.
  ir::Task guarded;
  guarded.name = "guarded";
  guarded.inputs = {graph::task_input(0, spec)};
  guarded.outputs = {graph::add_compute(guarded, "y", spec, [&](const auto& at) {
    return ir::select(at[0] < 3, graph::element(guarded.inputs[0], {at[0] + 1}), 7.0f);
  })};
  EXPECT_EQ(values<float>(graph::interpret(guarded, {ones({4})})[0]),
            (std::vector<float>{1, 1, 1, 7}));
}

}  // namespace
}  // namespace hidet::test
