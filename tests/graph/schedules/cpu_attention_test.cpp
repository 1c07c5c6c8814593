// cpu_attention_test.cpp - attention as one kernel against the reference evaluator, which runs its products and its softmax one by one:
// odd sizes, several passes of keys, masks, symbols, broadcast heads; what is not folded; NaN and infinities.
#include <cmath>

#include "graph/schedules/check_levels.h"

namespace hidet::test {
namespace {

struct Shapes {
  std::vector<DimExpr> q, k, v, mask;
};

/// softmax(q k^T * 0.3 [+ mask]) v as exporters write it.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {}) {
  std::vector<int64_t> swap;
  for (int d = 0; d < k.rank(); d++) swap.push_back(d);
  std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
  Tensor scores = ops::matmul(q, ops::transpose(k, swap)) * 0.3;
  if (mask.defined()) scores = scores + mask;
  return ops::matmul(ops::softmax(scores), v);
}

/// Both forms on random inputs of these shapes: the kernel is one, and its bits do not depend on the number of threads.
void check_attention(const Shapes& s, const std::vector<std::vector<Shape>>& runs,
                     const std::vector<std::vector<float>>& masks = {},
                     const std::function<void(std::vector<Tensor>&)>& change = {}) {
  std::vector<Tensor> inputs{symbol(s.q), symbol(s.k), symbol(s.v)};
  if (!s.mask.empty()) inputs.push_back(symbol(s.mask));
  const Tensor y =
      attention(inputs[0], inputs[1], inputs[2], s.mask.empty() ? Tensor() : inputs[3]);
  const FlowGraph graph = trace_from(y, inputs), optimized = optimize(graph);
  int found = 0;
  for (const FlowGraph::Node& n : optimized.nodes()) found += n.op->def->name == "attention";
  EXPECT_EQ(found, 1);
  const int threads = num_threads();
  for (const std::string& level : levels()) {
    BuildModelOptions options;
    options.targets = {level};
    const CompiledModel model =
        CompiledModel::from_data(graph::build_model_data(optimized, options));
    for (size_t r = 0; r < runs.size(); r++) {
      std::vector<Tensor> values;
      for (size_t k = 0; k < runs[r].size(); k++)
        values.push_back(randn(runs[r][k], f32, {}, k + 1));
      if (r < masks.size()) values.back() = from_vector(masks[r], runs[r].back());
      if (change) change(values);
      set_num_threads(3);
      const Tensor got = model.run(values)[0];
      set_num_threads(1);
      const Tensor alone = model.run(values)[0];
      set_num_threads(threads);
      expect_close(got, graph(values), level);
      ASSERT_EQ(got.shape(), alone.shape());
      if (got.bytes() > 0) {
        EXPECT_EQ(std::memcmp(got.data(), alone.data(), static_cast<size_t>(got.bytes())), 0)
            << level;
      }
    }
  }
}

TEST(Attention, OddSizes) {
  check_attention({{2, 3, 19, 20}, {2, 3, 37, 20}, {2, 3, 37, 33}, {}},
                  {{{2, 3, 19, 20}, {2, 3, 37, 20}, {2, 3, 37, 33}}});
  check_attention({{8, 1}, {1, 1}, {1, 1}, {}}, {{{8, 1}, {1, 1}, {1, 1}}});
}
TEST(Attention, SymbolsAndSeveralPassesOfKeys) {
  const auto run = [](int64_t b, int64_t m, int64_t n) {
    return std::vector<Shape>{{b, 2, m, 16}, {b, 2, n, 16}, {b, 2, n, 16}, {b, 1, m, n}};
  };
  check_attention({{"b", 2, "m", 16}, {"b", 2, "n", 16}, {"b", 2, "n", 16}, {"b", 1, "m", "n"}},
                  {run(1, 1, 1), run(2, 7, 7), run(1, 15, 257), run(3, 29, 600), run(1, 520, 31),
                   run(0, 5, 5), run(1, 0, 5), run(1, 3, 0)});
}
TEST(Attention, HeadsThatShareKeys) {
  check_attention({{2, 4, "m", 8}, {2, 1, "n", 8}, {1, 1, "n", 8}, {"n"}},
                  {{{2, 4, 9, 8}, {2, 1, 40, 8}, {1, 1, 40, 8}, {40}}});
}
TEST(Attention, MasksOfInfinitiesAndNaN) {
  constexpr int64_t m = 9, n = 300;
  const float inf = HUGE_VALF;
  std::vector<float> causal(m * n, 0.f), rows(m * n, 0.f);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      causal[static_cast<size_t>(i * n + j)] = j > i ? -inf : 0.f;
      // Nothing before key 280, nothing at all, NaN, +inf, the least finite number everywhere, and only key 5.
      float& at = rows[static_cast<size_t>(i * n + j)];
      if (i == 0 && j < 280) at = -inf;
      if (i == 1) at = -inf;
      if (i == 2 && j == 270) at = NAN;
      if (i == 3 && j == 3) at = inf;
      if (i == 4) at = -3.4028235e38f;
      if (i == 5 && j != 5) at = -inf;
    }
  const std::vector<Shape> run{{m, 8}, {n, 8}, {n, 8}, {m, n}};
  check_attention({{m, 8}, {n, 8}, {n, 8}, {m, n}}, {run, run}, {causal, rows});
}

/// A mask of m x n from live(i, j): 0 or `low`.
template <class Live>
std::vector<float> mask_of(int64_t m, int64_t n, float low, const Live& live) {
  std::vector<float> mask;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) mask.push_back(live(i, j) ? 0.F : low);
  return mask;
}

Tensor with(const Tensor& t, size_t at, float value) {
  std::vector<float> v;
  for (double d : t.to_doubles()) v.push_back(static_cast<float>(d));
  v.at(at) = value;
  return from_vector(v, t.shape());
}

TEST(Attention, MasksThatLeaveAFewKeys) {
  constexpr int64_t m = 40, n = 331;
  const auto causal = [](int64_t i, int64_t j) { return j <= i + 5; };
  std::vector<std::vector<float>> masks;
  for (const float low : {-HUGE_VALF, -3.4028235e38F, -1e4F, -3.F}) {
    masks.push_back(mask_of(m, n, low, causal));
    masks.push_back(mask_of(m, n, low, [](int64_t i, int64_t j) { return j > 290 - i; }));
    masks.push_back(
        mask_of(m, n, low, [](int64_t i, int64_t j) { return j >= 3 * i && j < 3 * i + 9; }));
  }
  const std::vector<Shape> run{{2, m, 20}, {2, n, 20}, {2, n, 70}, {m, n}};
  const Shapes shapes{{2, "m", 20}, {2, "n", 20}, {2, "n", 70}, {"m", "n"}};
  const std::vector<std::vector<Shape>> runs(masks.size(), run);
  check_attention(shapes, runs, masks);
  // Scores so large that a masked key still counts.
  check_attention(shapes, runs, masks,
                  [](std::vector<Tensor>& values) { values[0] = values[0] * 90.0; });
  // What is not finite behind the mask reaches every row, as a sum of products has it.
  for (const size_t operand : {0, 1, 2})
    for (const float value : {NAN, HUGE_VALF})
      check_attention(shapes, {run}, masks, [&](std::vector<Tensor>& values) {
        values[operand] =
            with(values[operand], static_cast<size_t>(values[operand].num_elements()) - 9, value);
      });
}
TEST(Attention, PaddingOfKeysIsOneRowForAll) {
  std::vector<float> mask(300, 0.F);
  for (size_t j = 97; j < 300; j++) mask[j] = -3.4028235e38F;
  check_attention({{3, 2, "m", 64}, {3, 2, "n", 64}, {3, 2, "n", 64}, {1, 1, 1, "n"}},
                  {{{3, 2, 33, 64}, {3, 2, 300, 64}, {3, 2, 300, 64}, {1, 1, 1, 300}}}, {mask});
}
TEST(Attention, KeysThatAreColumnsAlready) {
  const Tensor q = symbol({2, "m", 20}), k = symbol({2, 20, "n"}), v = symbol({2, "n", 9});
  const FlowGraph graph = trace_from({ops::matmul(ops::softmax(ops::matmul(q, k)), v)}, {q, k, v}),
                  optimized = optimize(graph);
  EXPECT_EQ(optimized.nodes().back().op->def->name, "attention");
  const CompiledModel model = CompiledModel::from_data(graph::build_model_data(optimized, {}));
  const std::vector<Tensor> values{randn({2, 11, 20}), randn({2, 20, 75}), randn({2, 75, 9})};
  expect_close(model.run(values)[0], graph(values), "keys as columns");
}
TEST(Attention, ScaledKeysAreNotTurnedTwice) {
  const Tensor q = symbol({1, 2, "m", 16}), k = symbol({2, "n", 16}), v = symbol({1, 2, "n", 16});
  const Tensor columns = ops::reshape(ops::transpose(k, {0, 2, 1}), {1, 2, 16, "n"}) * 0.4;
  const FlowGraph graph = trace_from({ops::matmul(ops::softmax(ops::matmul(q, columns)), v)},
                                     {q, k, v}),
                  optimized = optimize(graph);
  for (const FlowGraph::Node& n : optimized.nodes()) EXPECT_NE(n.op->def->name, "transpose");
  EXPECT_EQ(optimized.nodes().back().op->def->name, "attention");
  const CompiledModel model = CompiledModel::from_data(graph::build_model_data(optimized, {}));
  const std::vector<Tensor> values{randn({1, 2, 11, 16}), randn({2, 39, 16}),
                                   randn({1, 2, 39, 16})};
  expect_close(model.run(values)[0], graph(values), "scaled keys");
}
TEST(Attention, ScoresHaveNoMemory) {
  const Tensor q = symbol({2, "m", 32}), k = symbol({2, "n", 32}), v = symbol({2, "n", 32});
  const ModelData data =
      graph::build_model_data(optimize(trace_from({attention(q, k, v)}, {q, k, v})), {});
  for (const auto& p : data.programs) EXPECT_TRUE(p.workspace_cpu.is_const(0));
}
TEST(Attention, FoldsWhatStandsBeforeAndBehind) {
  const Tensor x = symbol({1, "s", 3, 24});
  const auto heads = [&](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
  const Tensor y = attention(heads(x) * 0.5, heads(x), heads(x));
  check(x, ops::reshape(ops::transpose(y, {0, 2, 1, 3}), {1, "s", 72}) + 1.0,
        {{1, 1, 3, 24}, {1, 50, 3, 24}});
}
TEST(Attention, OtherReadersKeepTheScores) {
  const Tensor x = symbol({12, 8});
  const Tensor shares = ops::softmax(ops::matmul(x, ops::transpose(x, {1, 0})));
  const FlowGraph graph = optimize(trace_from({ops::matmul(shares, x), shares}, {x}));
  for (const FlowGraph::Node& n : graph.nodes()) EXPECT_NE(n.op->def->name, "attention");
  // Along another axis, of few rows, or wide: the operators stay.
  const Tensor few = symbol({4, 8}), wide = symbol({12, 300});
  for (const Tensor& y :
       {ops::matmul(ops::softmax(ops::matmul(x, ops::transpose(x, {1, 0})), 0), x),
        attention(few, few, few), attention(wide, wide, wide)}) {
    const FlowGraph g = optimize(trace_from(y));
    for (const FlowGraph::Node& n : g.nodes()) EXPECT_NE(n.op->def->name, "attention");
  }
}

}  // namespace
}  // namespace hidet::test
