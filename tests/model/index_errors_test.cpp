// index_errors_test.cpp - an index outside its axis is an error of the run that names operator and index, in compiled
// code as in the reference, also where the operator is folded into another kernel; negative ones count from the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/hidet.h>

#include "graph/core/samples.h"

namespace hidet::test {
namespace {
using testing::HasSubstr;

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    return e.what();
  }
  return "no error";
}

/// One graph, its compiled model, and whether both say the same of an input.
struct Both {
  FlowGraph graph;
  CompiledModel model;
  explicit Both(const FlowGraph& g) : graph(g), model(optimize(g).build()) {}

  void equal(const std::vector<Tensor>& inputs) const {
    expect_same(model.run(inputs)[0], graph.run(inputs)[0], "compiled");
    expect_same(model.run(inputs, {.interpret = true})[0], graph.run(inputs)[0], "interpreted");
  }
  void refused(const std::vector<Tensor>& inputs, const std::string& text) const {
    EXPECT_THAT(message([&] { (void)graph.run(inputs); }), HasSubstr(text)) << "reference";
    EXPECT_THAT(message([&] { (void)model.run(inputs); }), HasSubstr(text)) << "compiled";
    EXPECT_THAT(message([&] { (void)model.run(inputs, {.interpret = true}); }), HasSubstr(text));
  }
};

Tensor ints(const std::vector<int64_t>& v, const Shape& shape) {
  return from_vector<int64_t>(v, shape);
}

TEST(IndexErrors, Gather) {
  const Tensor x = symbol({6, 5}, f32, {}, "x"), i = symbol({"n"}, i64, {}, "i");
  const Both g(trace_from(ops::gather(x, i, 0), {x, i}));
  const Tensor values = randn({6, 5}, f32, {}, 3);
  g.equal({values, ints({0, 5, -1, -6, 3}, {5})});
  g.equal({values, ints({}, {0})});
  g.refused({values, ints({0, 1, 6}, {3})}, "gather: the index 6 is outside axis 0 of [6, 5]");
  g.refused({values, ints({-7}, {1})}, "gather: the index -7 is outside axis 0 of [6, 5]");
  g.refused({values, ints({INT64_MIN, 0}, {2})},
            "gather: the index -9223372036854775808 is outside axis 0");
  g.refused({values, ints({INT64_MAX}, {1})},
            "gather: the index 9223372036854775807 is outside axis 0");
  g.equal({values, ints({2}, {1})});  // the error of one run is not that of the next
}

TEST(IndexErrors, GatherOfSymbolicAxisAndShortIndices) {
  const Tensor x = symbol({4, "n"}, f32, {}, "x"), i = symbol({2, 3}, i32, {}, "i");
  const Both g(trace_from(ops::gather(x, i, -1), {x, i}));
  const auto at = [](std::vector<int32_t> v) { return from_vector<int32_t>(v, {2, 3}); };
  g.equal({randn({4, 3}, f32, {}, 1), at({0, 1, 2, -1, -2, -3})});
  g.refused({randn({4, 3}, f32, {}, 1), at({0, 1, 2, 0, 0, 3})},
            "gather: the index 3 is outside axis 1 of [4, 3]");
  g.equal({randn({4, 9}, f32, {}, 1), at({0, 1, 2, 0, 0, 8})});
  g.refused({zeros({4, 0}), at({0, 0, 0, 0, 0, 0})},
            "gather: the index 0 is outside axis 1 of [4, 0]");
}

TEST(IndexErrors, GatherFoldedIntoOtherKernels) {
  // Indices that are computed, and results that a reduction and a product read.
  const Tensor x = symbol({7, 4}, f32, {}, "x"), i = symbol({"n"}, i64, {}, "i");
  const Tensor half = ops::gather(ops::relu(x), ops::sub(i, full({1}, 2, i64)), 0);
  const Both sum(trace_from(ops::reduce_sum(ops::mul(half, half), {1}), {x, i}));
  const Both product(trace_from(ops::matmul(half, randn({4, 3}, f32, {}, 9)), {x, i}));
  const Tensor values = randn({7, 4}, f32, {}, 5);
  for (const Both* g : {&sum, &product}) {
    g->equal({values, ints({2, 8, -5, 1}, {4})});
    g->refused({values, ints({2, 9}, {2})}, "gather: the index 7 is outside axis 0 of [7, 4]");
  }
}

TEST(IndexErrors, GatherElements) {
  const Tensor x = symbol({"n", 5}, f32, {}, "x"), i = symbol({"n", 2}, i64, {}, "i");
  const Both g(trace_from(ops::gather_elements(x, i, 1), {x, i}));
  const Tensor values = randn({3, 5}, f32, {}, 3);
  g.equal({values, ints({0, 4, -1, -5, 2, 2}, {3, 2})});
  g.refused({values, ints({0, 4, -1, -6, 2, 2}, {3, 2})},
            "gather_elements: the index -6 is outside axis 1 of [3, 5]");
}

TEST(IndexErrors, GatherNd) {
  const Tensor x = symbol({4, 3, 2}, f32, {}, "x"), i = symbol({"n", 2}, i64, {}, "i");
  const Both g(
      trace_from(graph::apply("gather_nd", {x, i}, {{"batch_dims", int64_t{0}}})[0], {x, i}));
  const Tensor values = randn({4, 3, 2}, f32, {}, 3);
  g.equal({values, ints({0, 0, 3, 2, -1, -1, -4, -3}, {4, 2})});
  g.refused({values, ints({0, 0, 3, 3}, {2, 2})},
            "gather_nd: the index 3 is outside axis 1 of [4, 3, 2]");
  g.refused({values, ints({0, 0, 4, 0}, {2, 2})},
            "gather_nd: the index 4 is outside axis 0 of [4, 3, 2]");
}

// Many indices are looked at by several threads; the first wrong one is named or another, but one that is wrong.
TEST(IndexErrors, ManyIndices) {
  const Tensor x = symbol({50}, f32, {}, "x"), i = symbol({"n"}, i64, {}, "i");
  const Both g(trace_from(ops::gather(x, i, 0), {x, i}));
  std::vector<int64_t> at(200000);
  for (size_t k = 0; k < at.size(); k++) at[k] = static_cast<int64_t>(k % 100) - 50;
  g.equal({randn({50}, f32, {}, 1), ints(at, {200000})});
  at[199999] = 50;
  g.refused({randn({50}, f32, {}, 1), ints(at, {200000})},
            "gather: the index 50 is outside axis 0 of [50]");
}

}  // namespace
}  // namespace hidet::test
