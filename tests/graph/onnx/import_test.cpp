// import_test.cpp - imported operators against values computed by hand, and the public bug reports
// that touch them (the numbers are rows of tests/cases/bug_reports.md).
#include "import_helper.h"

using namespace onnx_test;
using hidet::ErrorCode;
using hidet::Tensor;
using ::testing::HasSubstr;

namespace {

/// x -> op -> y, one float input.
Model one_op(const std::string& op, const std::vector<Dim>& dims,
             const std::vector<std::string>& attrs = {}) {
  Model m;
  m.input("x", kFloat, dims).node(op, {"x"}, {"y"}, attrs).output("y");
  return m;
}

Model slice_model(int64_t start, int64_t end, int64_t step) {
  Model m;
  m.input("x", kFloat, {10});
  m.initializer(tensor<int64_t>("s", {1}, {start})).initializer(tensor<int64_t>("e", {1}, {end}));
  m.initializer(tensor<int64_t>("a", {1}, {0})).initializer(tensor<int64_t>("t", {1}, {step}));
  m.node("Slice", {"x", "s", "e", "a", "t"}, {"y"}).output("y");
  return m;
}

}  // namespace

// 1: negative steps with sentinel and out-of-range ends.
TEST(OnnxImport, SliceWithNegativeStep) {
  const Tensor x = floats(iota(10), {10});
  expect_tensor(run(slice_model(-1, INT64_MIN, -3), {x})[0], {4}, {9, 6, 3, 0});
  expect_tensor(run(slice_model(7, 0, -1), {x})[0], {7}, {7, 6, 5, 4, 3, 2, 1});
  expect_tensor(run(slice_model(8, -100, -4), {x})[0], {3}, {8, 4, 0});
  expect_tensor(run(slice_model(2, INT64_MAX, 3), {x})[0], {3}, {2, 5, 8});
  expect_tensor(run(slice_model(5, 2, 1), {x})[0], {0}, {});
}

// 1: the same bounds on a symbolic axis.
TEST(OnnxImport, SliceOfSymbolicAxis) {
  Model m;
  m.input("x", kFloat, {"n"});
  m.initializer(tensor<int64_t>("s", {1}, {-1}))
      .initializer(tensor<int64_t>("e", {1}, {INT64_MIN}));
  m.initializer(tensor<int64_t>("a", {1}, {0})).initializer(tensor<int64_t>("t", {1}, {-3}));
  m.node("Slice", {"x", "s", "e", "a", "t"}, {"y"}).output("y");
  const hidet::FlowGraph graph = import(m);
  expect_tensor(graph.run({floats(iota(10), {10})})[0], {4}, {9, 6, 3, 0});
  expect_tensor(graph.run({floats(iota(5), {5})})[0], {2}, {4, 1});
}

// One known index of a known extent is a slice; an extent that is a symbol keeps the gather, and so does an index that does not fit.
TEST(OnnxImport, GatherOfOneKnownIndex) {
  const auto gather = [](const Dim& rows, int64_t index, int64_t axis) {
    Model m;
    m.input("x", kFloat, {rows, 2}).initializer(tensor<int64_t>("i", {}, {index}));
    return import(m.node("Gather", {"x", "i"}, {"y"}, {attr("axis", axis)}).output("y"));
  };
  const Tensor x = floats(iota(6), {3, 2});
  const auto has = [](const hidet::FlowGraph& g, const char* name) {
    return std::any_of(g.nodes().begin(), g.nodes().end(),
                       [&](const auto& n) { return n.op->def->name == name; });
  };
  for (const Dim& rows : {Dim(3), Dim("n")}) {
    for (const int64_t index : {2, -1}) {
      const hidet::FlowGraph g = gather(rows, index, 0);
      expect_tensor(g.run({x})[0], {2}, {4, 5});
      EXPECT_NE(has(g, "slice"), has(g, "gather"));
    }
    expect_tensor(gather(rows, 1, 1).run({x})[0], {3}, {1, 3, 5});
  }
  EXPECT_TRUE(has(gather(3, 0, 0), "slice"));
  EXPECT_TRUE(has(gather("n", 0, 0), "gather"));
  EXPECT_TRUE(has(gather(3, 3, 0), "gather"));
}

// Squares and cubes become products; other exponents, and those of several values, stay powers.
TEST(OnnxImport, PowersWithConstantExponents) {
  const Tensor x = floats({-2, 0, 3, -1.5F, HUGE_VALF, -HUGE_VALF}, {6});
  const auto power = [&](float exponent) {
    Model m;
    m.input("x", kFloat, {6}).initializer(tensor<float>("e", {}, {exponent}));
    return run(m.node("Pow", {"x", "e"}, {"y"}).output("y"), {x})[0];
  };
  expect_tensor(power(2), {6}, {4, 0, 9, 2.25, HUGE_VAL, HUGE_VAL});
  expect_tensor(power(3), {6}, {-8, 0, 27, -3.375, HUGE_VAL, -HUGE_VAL});
  expect_tensor(power(1), {6}, {-2, 0, 3, -1.5, HUGE_VAL, -HUGE_VAL});
  Model m;
  m.input("x", kFloat, {6}).initializer(tensor<float>("e", {6}, {2, 1, 2, 3, 1, 1}));
  m.node("Pow", {"x", "e"}, {"y"}).output("y");
  expect_tensor(run(m, {x})[0], {6}, {4, 0, 9, -3.375, HUGE_VAL, -HUGE_VAL});
}

// Group norm as exporters write it: an instance norm of reshaped groups, of whole channels or not.
TEST(OnnxImport, InstanceNormOfGroups) {
  for (const int64_t groups : {2, 3}) {
    Model m;
    m.input("x", kFloat, {2, 4, 3, 1}).initializer(tensor<int64_t>("g", {3}, {0, groups, -1}));
    std::vector<float> scale, bias;
    for (int64_t g = 0; g < groups; g++)
      scale.push_back(static_cast<float>(g + 1)), bias.push_back(static_cast<float>(10 * g));
    m.initializer(tensor<float>("s", {groups}, scale))
        .initializer(tensor<float>("b", {groups}, bias));
    m.node("Reshape", {"x", "g"}, {"r"})
        .node("InstanceNormalization", {"r", "s", "b"}, {"y"})
        .output("y");
    const std::vector<float> x = iota(24);
    const int64_t n = 12 / groups;
    std::vector<double> want;
    // Consecutive values: the variance of n of them is (n n - 1) / 12.
    for (int64_t i = 0; i < 24; i++) {
      const int64_t g = i / n % groups;
      const double centred = static_cast<double>(i % n) - static_cast<double>(n - 1) / 2;
      want.push_back(centred / std::sqrt(static_cast<double>(n * n - 1) / 12 + 1e-5) *
                         static_cast<double>(g + 1) +
                     static_cast<double>(10 * g));
    }
    expect_tensor(run(m, {floats(x, {2, 4, 3, 1})})[0], {2, groups, n}, want, 1e-5);
  }
}

// 3: names that are words of C, that collide when cleaned, and that hold anything.
TEST(OnnxImport, NamesAreKeptByteForByte) {
  for (const std::string& odd : {std::string("while"), std::string("a\"b\n*/ 1ü")}) {
    Model m;
    m.input("x.1", kFloat, {1}).input("x_1", kFloat, {1});
    m.initializer(tensor<float>("x/1", {1}, {5}));
    m.node("Mul", {"x.1", "x_1"}, {"int"}, {}, "float");
    m.node("Sub", {"int", "x/1"}, {odd}, {}, "for").output(odd);
    const hidet::FlowGraph graph = import(m);
    ASSERT_EQ(graph.inputs().size(), 2u);
    EXPECT_EQ(graph.inputs()[0].name, "x.1");
    EXPECT_EQ(graph.inputs()[1].name, "x_1");
    EXPECT_EQ(graph.outputs()[0].name, odd);
    EXPECT_EQ(graph.weight_names(), std::vector<std::string>{"x/1"});
    expect_tensor(graph.run({floats({2}, {1}), floats({3}, {1})})[0], {1}, {1});
  }
}

// 7: -1, 0 and allowzero. A shape that is computed from data is refused by name.
TEST(OnnxImport, ReshapeShapes) {
  const auto reshaped = [](const std::vector<int64_t>& shape) {
    Model m;
    m.input("x", kFloat, {2, 3, 4});
    m.initializer(tensor<int64_t>("s", {static_cast<int64_t>(shape.size())}, shape));
    m.node("Reshape", {"x", "s"}, {"y"}).output("y");
    const Tensor y = run(m, {floats(iota(24), {2, 3, 4})})[0];
    EXPECT_EQ(y.to_vector<float>(), iota(24));
    return y.shape();
  };
  EXPECT_EQ(reshaped({2, -1}), (hidet::Shape{2, 12}));
  EXPECT_EQ(reshaped({0, -1}), (hidet::Shape{2, 12}));
  EXPECT_EQ(reshaped({-1, 4}), (hidet::Shape{6, 4}));

  Model zero;
  zero.input("x", kFloat, {0, 3}).initializer(tensor<int64_t>("s", {2}, {3, 0}));
  zero.node("Reshape", {"x", "s"}, {"y"}, {attr("allowzero", 1)}).output("y");
  expect_tensor(run(zero, {floats({}, {0, 3})})[0], {3, 0}, {});

  Model runtime;
  runtime.input("x", kFloat, {2, 3, 4}).input("shape", kInt64, {2});
  runtime.node("Reshape", {"x", "shape"}, {"y"}, {}, "reshape_me").output("y");
  EXPECT_THAT(import_error(runtime.serialize(), ErrorCode::unsupported), HasSubstr("reshape_me"));

  // with the input fixed at import it is a constant
  const Tensor target = hidet::from_vector<int64_t>({-1, 4}, {2});
  const hidet::FlowGraph fixed = import(runtime, {.values = {{"shape", target}}});
  ASSERT_EQ(fixed.inputs().size(), 1u);
  EXPECT_EQ(fixed.run({floats(iota(24), {2, 3, 4})})[0].shape(), (hidet::Shape{6, 4}));
  EXPECT_THROW((void)import(runtime, {.values = {{"x", target}}}), hidet::Error);

  Model wrong;
  wrong.input("x", kFloat, {2, 3}).initializer(tensor<int64_t>("s", {1}, {5}));
  wrong.node("Reshape", {"x", "s"}, {"y"}).output("y");
  EXPECT_THAT(import_error(wrong.serialize(), ErrorCode::bad_file), HasSubstr("[2, 3]"));
}

// 9: NaN survives.
TEST(OnnxImport, NanPropagates) {
  const Tensor x = floats({kNan, -1, 2}, {3});
  expect_tensor(run(one_op("Relu", {3}), {x})[0], {3}, {kNan, 0, 2});
  for (const auto& [op, expected] : std::vector<std::pair<std::string, std::vector<double>>>{
           {"Max", {kNan, 1, 2}}, {"Min", {kNan, -1, 1}}}) {
    for (const auto& order : std::vector<std::vector<std::string>>{{"x", "c"}, {"c", "x"}}) {
      Model m;
      m.input("x", kFloat, {3}).initializer(tensor<float>("c", {1}, {1}));
      m.node(op, order, {"y"}).output("y");
      expect_tensor(run(m, {x})[0], {3}, expected);
    }
  }
  Model clip;
  clip.input("x", kFloat, {3}).initializer(tensor<float>("lo", {}, {0}));
  clip.initializer(tensor<float>("hi", {}, {1})).node("Clip", {"x", "lo", "hi"}, {"y"}).output("y");
  expect_tensor(run(clip, {x})[0], {3}, {kNan, 0, 1});
  for (const char* op : {"ReduceMax", "ReduceMin"})
    for (int at = 0; at < 70; at++) {
      std::vector<float> values = iota(70);
      values[at] = kNan;
      const Model m = one_op(op, {70}, {attr("keepdims", 0)});
      expect_tensor(run(m, {floats(values, {70})})[0], {}, {kNan});
    }
}

// 11: integer division truncates; both kinds of remainder.
TEST(OnnxImport, IntegerDivisionAndRemainder) {
  const Tensor a = hidet::from_vector<int32_t>({-11, 11, -11, 11}, {4});
  const Tensor b = hidet::from_vector<int32_t>({3, -3, -3, 3}, {4});
  const auto both = [&](const std::string& op, const std::vector<std::string>& attrs) {
    Model m;
    m.input("a", kInt32, {4})
        .input("b", kInt32, {4})
        .node(op, {"a", "b"}, {"y"}, attrs)
        .output("y");
    return run(m, {a, b})[0];
  };
  expect_tensor(both("Div", {}), {4}, {-3, -3, 3, 3});
  expect_tensor(both("Mod", {}), {4}, {1, -1, -2, 2});
  expect_tensor(both("Mod", {attr("fmod", 1)}), {4}, {-2, 2, -2, 2});

  Model m;
  m.input("a", kFloat, {3}).input("b", kFloat, {3});
  m.node("Mod", {"a", "b"}, {"y"}, {attr("fmod", 1)}).output("y");
  expect_tensor(run(m, {floats({-5.5, 5.5, -5.5}, {3}), floats({2, 2, -2}, {3})})[0], {3},
                {-1.5, 1.5, -1.5});

  // nothing traps: at run time, and where the importer folds
  Model trap;
  trap.input("a", kInt32, {2}).input("b", kInt32, {2}).node("Div", {"a", "b"}, {"y"}).output("y");
  (void)run(trap, {hidet::from_vector<int32_t>({INT32_MIN, 1}, {2}),
                   hidet::from_vector<int32_t>({-1, 0}, {2})});
  Model folded;
  folded.initializer(tensor<int64_t>("a", {2}, {INT64_MIN, 1}));
  folded.initializer(tensor<int64_t>("b", {2}, {-1, 0}));
  folded.node("Div", {"a", "b"}, {"y"}).node("Mod", {"a", "b"}, {"z"}).output("y").output("z");
  (void)run(folded);
}

// 13: reflect and edge pads with negative ones; a pad of the extent is refused.
TEST(OnnxImport, Pads) {
  const auto padded = [](const std::vector<int64_t>& shape, const std::vector<int64_t>& pads,
                         const std::string& mode) {
    Model m;
    m.input("x", kFloat, std::vector<Dim>(shape.begin(), shape.end()));
    m.initializer(tensor<int64_t>("p", {static_cast<int64_t>(pads.size())}, pads));
    m.node("Pad", {"x", "p"}, {"y"}, {attr("mode", mode)}, "padder").output("y");
    return m;
  };
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {3, 2}), v = floats(iota(5), {5});
  expect_tensor(run(padded({3, 2}, {0, 1, 0, 0}, "reflect"), {x})[0], {3, 3},
                {2, 1, 2, 4, 3, 4, 6, 5, 6});
  expect_tensor(run(padded({3, 2}, {2, 0, 0, 0}, "reflect"), {x})[0], {5, 2},
                {5, 6, 3, 4, 1, 2, 3, 4, 5, 6});
  expect_tensor(run(padded({5}, {-2, 2}, "reflect"), {v})[0], {5}, {2, 3, 4, 3, 2});
  expect_tensor(run(padded({5}, {2, -2}, "reflect"), {v})[0], {5}, {2, 1, 0, 1, 2});
  expect_tensor(run(padded({5}, {-1, 2}, "edge"), {v})[0], {6}, {1, 2, 3, 4, 4, 4});
  expect_tensor(run(padded({5}, {1, -1}, "constant"), {v})[0], {5}, {0, 0, 1, 2, 3});
  EXPECT_THAT(
      import_error(padded({3, 2}, {0, 2, 0, 0}, "reflect").serialize(), ErrorCode::bad_file),
      HasSubstr("padder"));
}

// 19: scalars, empty axes, negative axes, zero-size dims.
TEST(OnnxImport, ReductionCorners) {
  for (const auto& [op, expected] : std::vector<std::pair<std::string, double>>{
           {"ReduceSumSquare", 9}, {"ReduceL1", 3}, {"ReduceL2", 3}})
    expect_tensor(run(one_op(op, std::vector<Dim>{}), {floats({-3}, {})})[0], {}, {expected});
  const auto sum = [](const std::vector<int64_t>& axes, int noop, int keep) {
    Model m;
    m.input("x", kFloat, {2, 3});
    m.initializer(tensor<int64_t>("a", {static_cast<int64_t>(axes.size())}, axes));
    m.node("ReduceSum", {"x", "a"}, {"y"},
           {attr("noop_with_empty_axes", noop), attr("keepdims", keep)});
    m.output("y");
    return run(m, {floats(iota(6), {2, 3})})[0];
  };
  expect_tensor(sum({}, 1, 0), {2, 3}, {0, 1, 2, 3, 4, 5});
  expect_tensor(sum({}, 0, 0), {}, {15});
  expect_tensor(sum({}, 0, 1), {1, 1}, {15});
  expect_tensor(sum({-2}, 0, 0), {3}, {3, 5, 7});
  const Tensor none = floats({}, {2, 0});
  for (int keep : {0, 1}) {
    const std::vector<int64_t> shape = keep ? std::vector<int64_t>{2, 1} : std::vector<int64_t>{2};
    for (const auto& [op, value] :
         std::vector<std::pair<std::string, double>>{{"ReduceProd", 1}, {"ReduceMax", -kInf}}) {
      const Model m =
          one_op(op, {2, 0}, {attr("axes", std::vector<int64_t>{1}), attr("keepdims", keep)});
      expect_tensor(run(m, {none})[0], shape, {value, value});
    }
  }
}

// 23: an identity transpose before a product; a bias that widens the product.
TEST(OnnxImport, ProductsAndBias) {
  Model m;
  m.input("x", kFloat, {2, 2});
  m.initializer(tensor<float>("w", {2, 2}, {1, 10, 100, 1000}));
  m.initializer(tensor<float>("b", {2}, {.5, .25}));
  m.node("Transpose", {"x"}, {"t"}, {attr("perm", std::vector<int64_t>{0, 1})});
  m.node("MatMul", {"t", "w"}, {"p"}).node("Add", {"p", "b"}, {"y"}).output("y");
  const Tensor x = floats({1, 2, 3, 4}, {2, 2});
  expect_tensor(run(m, {x})[0], {2, 2}, {201.5, 2010.25, 403.5, 4030.25});

  Model wide;
  wide.input("x", kFloat, {2, 2}).initializer(tensor<float>("w", {2, 1}, {1, 1}));
  wide.initializer(tensor<float>("b", {1, 3}, {10, 20, 30}));
  wide.node("MatMul", {"x", "w"}, {"p"}).node("Add", {"p", "b"}, {"y"}).output("y");
  expect_tensor(run(wide, {x})[0], {2, 3}, {13, 23, 33, 17, 27, 37});

  Model gemm;
  gemm.input("x", kFloat, {2, 2}).initializer(tensor<float>("w", {3, 2}, {1, 2, 3, 4, 5, 6}));
  gemm.initializer(tensor<float>("c", {3}, {1, 2, 3}));
  gemm.node("Gemm", {"x", "w", "c"}, {"y"},
            {attr("transB", 1), attr("transA", 1), attr("alpha", 2.0f), attr("beta", 0.5f)});
  gemm.output("y");
  // x^T w^T = [[7, 15, 23], [10, 22, 34]]
  expect_tensor(run(gemm, {x})[0], {2, 3}, {14.5, 31, 47.5, 20.5, 45, 69.5});

  Model bad;
  bad.input("x", kFloat, {2, 2}).initializer(tensor<float>("w", {2, 1}, {1, 1}));
  bad.initializer(tensor<float>("c", {1, 3}, {1, 2, 3}));
  bad.node("Gemm", {"x", "w", "c"}, {"y"}, {}, "wide_gemm").output("y");
  EXPECT_THAT(import_error(bad.serialize(), ErrorCode::bad_file), HasSubstr("wide_gemm"));
}

// 25: relu then clip, missing bounds, a bound from outside; three types.
TEST(OnnxImport, ReluThenClip) {
  const auto model = [](int type, const std::string& low, const std::string& high, bool runtime) {
    Model m;
    m.input("x", type, {3});
    const std::vector<std::string> bounds{"x_relu", low.empty() ? "" : "lo",
                                          high.empty() ? "" : "hi"};
    m.node("Relu", {"x"}, {"x_relu"});
    const auto bound = [&](const std::string& name, double value) {
      m.initializer(tensor<double>(name + "64", {}, {value}));
      m.node("Cast", {name + "64"}, {name}, {attr("to", type)});
    };
    if (runtime) m.input("lo", type, {});
    else if (!low.empty()) bound("lo", std::stod(low));
    if (!high.empty()) bound("hi", std::stod(high));
    m.node("Clip", bounds, {"y"}).output("y");
    return m;
  };
  for (const auto& [type, dtype] : std::vector<std::pair<int, hidet::DType>>{
           {kDouble, hidet::f64}, {kFloat, hidet::f32}, {kHalf, hidet::f16}}) {
    const Tensor x = hidet::from_doubles({-3, .5, 3}, {3}, dtype);
    expect_tensor(run(model(type, "-1", "1", false), {x})[0], {3}, {0, .5, 1});
    expect_tensor(run(model(type, "-1", "", false), {x})[0], {3}, {0, .5, 3});
    expect_tensor(run(model(type, ".75", "", false), {x})[0], {3}, {.75, .75, 3});
    const Tensor low = hidet::from_doubles({.75}, {}, dtype);
    expect_tensor(run(model(type, ".75", "", true), {x, low})[0], {3}, {.75, .75, 3});
  }
}

// 27: float algebra is not exact.
TEST(OnnxImport, FloatAlgebraIsKept) {
  Model m;
  m.input("x", kFloat, {2}).initializer(tensor<float>("one", {}, {1}));
  m.node("Add", {"x", "one"}, {"a"}).node("Sub", {"x", "a"}, {"y"}).output("y");
  expect_tensor(run(m, {floats({5, 1e8}, {2})})[0], {2}, {-1, 0});
  const auto self = [](const std::string& op, const std::vector<float>& x) {
    Model s;
    s.input("x", kFloat, {static_cast<int64_t>(x.size())}).initializer(tensor<float>("z", {}, {0}));
    s.node(op, {"x", op == "Mul" ? "z" : "x"}, {"y"}).output("y");
    return run(s, {floats(x, {static_cast<int64_t>(x.size())})})[0];
  };
  expect_tensor(self("Mul", {kInf, kNan}), {2}, {kNan, kNan});
  expect_tensor(self("Div", {0, kInf}), {2}, {kNan, kNan});
  expect_tensor(self("Sub", {kInf}), {1}, {kNan});
}

// 45: outputs that are inputs, weights, inner values, or one tensor twice.
TEST(OnnxImport, AliasedOutputs) {
  Model m;
  m.input("x", kFloat, {2}).initializer(tensor<float>("c", {2}, {.5, .5}));
  m.node("Add", {"x", "c"}, {"s"}).node("Relu", {"s"}, {"r"});
  m.node("Identity", {"r"}, {"r2"}).node("Identity", {"x"}, {"xi"});
  for (const char* name : {"s", "c", "r", "r2", "xi", "x"}) m.output(name);
  const hidet::FlowGraph graph = import(m);
  const std::vector<std::vector<double>> expected{{-.5, 2.5}, {.5, .5}, {0, 2.5},
                                                  {0, 2.5},   {-1, 2},  {-1, 2}};
  const std::vector<std::string> names{"s", "c", "r", "r2", "xi", "x"};
  for (int round = 0; round < 2; round++) {
    const Tensor x = floats({-1, 2}, {2});
    const std::vector<Tensor> out = graph.run({x});
    ASSERT_EQ(out.size(), 6u);
    for (size_t i = 0; i < 6; i++) {
      EXPECT_EQ(graph.outputs()[i].name, names[i]);
      expect_tensor(out[i], {2}, expected[i]);
      const Tensor mine = out[i];
      mine.copy_from(floats({99, 99}, {2}));  // no other output may change
    }
  }
}

// 47: one symbol, one size; a size of 1 broadcasts at run time.
TEST(OnnxImport, SymbolsAreChecked) {
  Model m;
  m.input("a", kFloat, {"n", 2}).input("b", kFloat, {"n", 2});
  m.node("Add", {"a", "b"}, {"y"}).output("y");
  const hidet::FlowGraph graph = import(m);
  try {
    (void)graph.run({hidet::zeros({3, 2}), hidet::zeros({4, 2})});
    ADD_FAILURE() << "accepted";
  } catch (const hidet::Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("n"));
    EXPECT_THAT(e.what(), HasSubstr("3"));
    EXPECT_THAT(e.what(), HasSubstr("4"));
  }
  Model wide;
  wide.input("x", kFloat, {"n", 4}).input("y", kFloat, {2, 4});
  wide.node("Min", {"x", "y"}, {"z"}).output("z");
  const hidet::FlowGraph min = import(wide);
  const Tensor y = floats({0, 0, 0, 0, 5, 5, 5, 5}, {2, 4});
  expect_tensor(min.run({floats({1, 2, 3, 4}, {1, 4}), y})[0], {2, 4}, {0, 0, 0, 0, 1, 2, 3, 4});
  expect_tensor(min.run({floats(iota(8), {2, 4}), y})[0], {2, 4}, {0, 0, 0, 0, 4, 5, 5, 5});
  EXPECT_THROW((void)min.run({hidet::zeros({3, 4}), y}), hidet::Error);
}

// 71: malformed models are errors that name the node.
TEST(OnnxImport, MalformedModels) {
  Model clip;
  clip.input("x", kFloat, {3}).initializer(tensor<float>("lo", {0}, {}));
  clip.node("Clip", {"x", "lo"}, {"y"}, {}, "clipper").output("y");
  EXPECT_THAT(import_error(clip.serialize(), ErrorCode::bad_file), HasSubstr("clipper"));

  Model untyped;
  untyped.graph += bytes(11, bytes(1, "x"));
  untyped.node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_THAT(import_error(untyped.serialize(), ErrorCode::bad_file), HasSubstr("'x'"));

  Model missing;
  missing.input("x", kFloat, {3}).node("Add", {"x"}, {"y"}, {}, "adder").output("y");
  EXPECT_THAT(import_error(missing.serialize(), ErrorCode::bad_file), HasSubstr("adder"));

  Model wrong_attr;
  wrong_attr.input("x", kFloat, {3}).node("Softmax", {"x"}, {"y"}, {attr("axis", "one")}, "soft");
  wrong_attr.output("y");
  EXPECT_THAT(import_error(wrong_attr.serialize(), ErrorCode::bad_file), HasSubstr("soft"));

  Model axis;
  axis.input("x", kFloat, {3}).node("Softmax", {"x"}, {"y"}, {attr("axis", 5)}, "soft").output("y");
  EXPECT_THAT(import_error(axis.serialize(), ErrorCode::bad_file), HasSubstr("axis 5"));

  Model cycle;
  cycle.node("Relu", {"b"}, {"a"}, {}, "one").node("Relu", {"a"}, {"b"}, {}, "two").output("a");
  EXPECT_THAT(import_error(cycle.serialize(), ErrorCode::bad_file), HasSubstr("'one'"));

  // x[0, 3] reversed along both axes is empty, not an error
  Model empty;
  empty.input("x", kFloat, {0, 3}).initializer(tensor<int64_t>("s", {2}, {-1, -1}));
  empty.initializer(tensor<int64_t>("e", {2}, {INT64_MIN, INT64_MIN}));
  empty.initializer(tensor<int64_t>("a", {2}, {0, 1}))
      .initializer(tensor<int64_t>("t", {2}, {-1, -1}));
  empty.node("Slice", {"x", "s", "e", "a", "t"}, {"y"}).output("y");
  expect_tensor(run(empty, {floats({}, {0, 3})})[0], {0, 3}, {});
}

TEST(OnnxImport, EveryUnsupportedOperatorIsListed) {
  Model m;
  m.input("x", kFloat, {3}).node("Frobnicate", {"x"}, {"a"}, {}, "first");
  m.node("Relu", {"a"}, {"b"}).node("Frobnicate", {"b"}, {"c"}, {}, "second");
  m.node("Gelu", {"c"}, {"d"}, {}, "third", "com.microsoft").output("d");
  const std::string what = import_error(m.serialize(), ErrorCode::unsupported);
  for (const char* part :
       {"Frobnicate (2 nodes", "'first'", "'second'", "com.microsoft.Gelu", "'third'"})
    EXPECT_THAT(what, HasSubstr(part));
  EXPECT_THAT(import_error(
                  [] {
                    Model late;
                    late.opset = 99;
                    late.input("x", kFloat, {1}).output("x");
                    return late.serialize();
                  }(),
                  ErrorCode::unsupported),
              HasSubstr("opset 99"));
}

TEST(OnnxImport, ShapesCanBeGiven) {
  Model m;
  m.input("x", kFloat, {"n", 2})
      .input("y", kFloat, {"n", "?"})
      .node("Add", {"x", "y"}, {"z"})
      .output("z");
  const hidet::FlowGraph graph = import(m, {.shapes = {{"x", {4, 2}}}});
  EXPECT_EQ(graph.inputs()[0].shape, (hidet::SymbolicShape{4, 2}));
  EXPECT_EQ(graph.inputs()[1].shape[0], hidet::DimExpr(4));
  const TempModel file(m.serialize());
  EXPECT_THROW((void)hidet::from_onnx(file.path(), {.shapes = {{"q", {1}}}}), hidet::Error);
  EXPECT_THROW((void)hidet::from_onnx(file.path(), {.shapes = {{"x", {4, 3}}}}), hidet::Error);
}
