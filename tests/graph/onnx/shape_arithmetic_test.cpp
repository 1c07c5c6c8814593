// shape_arithmetic_test.cpp - chains of operators on shapes fold at import: no operator of them is
// left, and sizes stay formulas of the inputs' symbols.
#include "import_helper.h"

using namespace onnx_test;
using hidet::DimExpr;
using hidet::Tensor;

namespace {

/// How many operators of each name a graph has.
std::map<std::string, int> operators_of(const hidet::FlowGraph& graph) {
  std::map<std::string, int> out;
  for (const auto& node : graph.nodes()) out[node.op->def->name]++;
  return out;
}

/// shape(x)[i] as `name`, a scalar.
void dimension(Model& m, const std::string& name, int64_t i) {
  m.node("Shape", {"x"}, {name + "_shape"});
  m.initializer(tensor<int64_t>(name + "_i", {}, {i}));
  m.node("Gather", {name + "_shape", name + "_i"}, {name}, {attr("axis", 0)});
}
void vector_of(Model& m, const std::string& name, const std::string& scalar) {
  m.initializer(tensor<int64_t>(name + "_axes", {1}, {0}));
  m.node("Unsqueeze", {scalar, name + "_axes"}, {name});
}

}  // namespace

// What exporters write for x.view(b, s, -1, 4).transpose(1, 2).
TEST(OnnxShapes, ReshapeOfShapes) {
  Model m;
  m.input("x", kFloat, {"batch", "seq", 8});
  dimension(m, "b", 0);
  dimension(m, "s", 1);
  vector_of(m, "b1", "b");
  vector_of(m, "s1", "s");
  m.initializer(tensor<int64_t>("rest", {1}, {-1})).initializer(tensor<int64_t>("four", {1}, {4}));
  m.node("Concat", {"b1", "s1", "rest", "four"}, {"to"}, {attr("axis", 0)});
  m.node("Reshape", {"x", "to"}, {"r"});
  m.node("Transpose", {"r"}, {"y"}, {attr("perm", std::vector<int64_t>{0, 2, 1, 3})}).output("y");
  const hidet::FlowGraph graph = import(m);
  EXPECT_EQ(graph.nodes().size(), 2u) << graph.text();
  const DimExpr batch("batch"), seq("seq");
  EXPECT_EQ(graph.outputs()[0].shape, (hidet::SymbolicShape{batch, 2, seq, 4}));
  const Tensor y = graph.run({floats(iota(48), {2, 3, 8})})[0];
  EXPECT_EQ(y.shape(), (hidet::Shape{2, 2, 3, 4}));
  EXPECT_EQ(y.to_vector<float>()[4], 8.0f);   // [0, 0, 1, 0]
  EXPECT_EQ(y.to_vector<float>()[12], 4.0f);  // [0, 1, 0, 0]
}

// What exporters write for expand with -1: Where(shape == -1, ones, shape).
TEST(OnnxShapes, ExpandOfComparedShapes) {
  Model m;
  m.input("x", kFloat, {"n", 3});
  dimension(m, "n_", 0);
  vector_of(m, "n1", "n_");
  m.initializer(tensor<int64_t>("three", {1}, {3})).initializer(tensor<int64_t>("minus", {}, {-1}));
  m.node("Concat", {"n1", "three"}, {"to"}, {attr("axis", 0)});
  m.node("Shape", {"to"}, {"count"});
  m.node("ConstantOfShape", {"count"}, {"ones"},
         {attr_tensor("value", tensor<int64_t>("", {1}, {1}))});
  m.node("Mul", {"ones", "minus"}, {"minuses"}).node("Equal", {"to", "minuses"}, {"is_minus"});
  m.node("Where", {"is_minus", "ones", "to"}, {"target"});
  m.initializer(tensor<float>("row", {1, 3}, {1, 2, 3}));
  m.node("Expand", {"row", "target"}, {"wide"}).node("Add", {"x", "wide"}, {"y"}).output("y");
  const hidet::FlowGraph graph = import(m);
  const auto ops = operators_of(graph);
  EXPECT_EQ(ops.count("where"), 0u) << graph.text();
  EXPECT_EQ(ops.count("equal"), 0u);
  expect_tensor(graph.run({hidet::zeros({2, 3})})[0], {2, 3}, {1, 2, 3, 1, 2, 3});
}

// A causal mask: Range over a symbolic size, compared with itself.
TEST(OnnxShapes, RangeOfASymbol) {
  Model m;
  m.input("x", kFloat, {"n", "n"});
  dimension(m, "n_", 0);
  m.initializer(tensor<int64_t>("zero", {}, {0})).initializer(tensor<int64_t>("one", {}, {1}));
  m.initializer(tensor<int64_t>("a0", {1}, {0})).initializer(tensor<int64_t>("a1", {1}, {1}));
  m.node("Range", {"zero", "n_", "one"}, {"r"});
  m.node("Unsqueeze", {"r", "a0"}, {"row"}).node("Unsqueeze", {"r", "a1"}, {"col"});
  m.node("LessOrEqual", {"row", "col"}, {"keep"});
  m.initializer(tensor<float>("low", {}, {-9}))
      .node("Where", {"keep", "x", "low"}, {"y"})
      .output("y");
  const hidet::FlowGraph graph = import(m);
  expect_tensor(graph.run({floats(iota(4), {2, 2})})[0], {2, 2}, {0, -9, 2, 3});
  expect_tensor(graph.run({floats({7}, {1, 1})})[0], {1, 1}, {7});
}

// A size used as data: it becomes a tensor where an operator on data needs it.
TEST(OnnxShapes, SizesAsData) {
  Model m;
  m.input("x", kFloat, {"n", 2});
  dimension(m, "n_", 0);
  m.node("Cast", {"n_"}, {"nf"}, {attr("to", kFloat)}).node("Div", {"x", "nf"}, {"y"}).output("y");
  m.node("Shape", {"x"}, {"s"}).output("s");
  m.node("Size", {"x"}, {"size"}).output("size");
  const auto out = import(m).run({floats({2, 4, 6, 8}, {2, 2})});
  expect_tensor(out[0], {2, 2}, {1, 2, 3, 4});
  expect_tensor(out[1], {2}, {2, 2});
  EXPECT_EQ(out[1].dtype(), hidet::i64);
  expect_tensor(out[2], {}, {4});
}

TEST(OnnxShapes, ArithmeticOnSizes) {
  Model m;
  m.input("x", kFloat, {"n", 6});
  m.node("Shape", {"x"}, {"c"}, {attr("start", 1)});
  m.initializer(tensor<int64_t>("two", {}, {2})).initializer(tensor<int64_t>("rest", {1}, {-1}));
  m.node("Div", {"c", "two"}, {"half"});
  m.node("Concat", {"rest", "half"}, {"to"}, {attr("axis", 0)});
  m.node("Reshape", {"x", "to"}, {"y"}).output("y");
  const hidet::FlowGraph graph = import(m);
  EXPECT_EQ(graph.outputs()[0].shape[0], DimExpr("n") * 2);
  EXPECT_EQ(graph.run({hidet::zeros({5, 6})})[0].shape(), (hidet::Shape{10, 3}));
}

// Slices of vectors that hold sizes, with both kinds of step.
TEST(OnnxShapes, SlicesOfShapes) {
  Model m;
  m.input("x", kFloat, {"n", 3, 5});
  m.node("Shape", {"x"}, {"s"});
  m.initializer(tensor<int64_t>("b", {1}, {-1}))
      .initializer(tensor<int64_t>("e", {1}, {INT64_MIN}));
  m.initializer(tensor<int64_t>("a", {1}, {0})).initializer(tensor<int64_t>("t", {1}, {-1}));
  m.node("Slice", {"s", "b", "e", "a", "t"}, {"reversed"});
  m.node("Reshape", {"x", "reversed"}, {"y"}).output("y");
  EXPECT_EQ(import(m).run({hidet::zeros({2, 3, 5})})[0].shape(), (hidet::Shape{5, 3, 2}));
}
