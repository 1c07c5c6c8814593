// samples_test.cpp - every operator's samples: what is inferred is what comes out, the symbolic definition and the
// concrete one agree, the reference agrees with the compute definition, a graph gives what the operator gives.
#include <hidet/ir/task.h>

#include "graph/core/samples.h"

namespace hidet::test {
namespace {
using namespace graph;

class Samples : public testing::TestWithParam<std::string> {};

TEST_P(Samples, InferenceReferenceAndDefinitionAgree) {
  const OpDef& def = *operators().find(GetParam());
  ASSERT_FALSE(def.samples.empty()) << def.name << " has no samples";
  int number = 0;
  for (const OpSample& sample : def.samples)
    for (const int64_t n : {int64_t{1}, int64_t{3}}) {
      const SymbolMap symbols{{"n", n}};
      const std::string what = def.name + " sample " + std::to_string(number++);
      // A symbol that meets a number other than 1 and itself does not broadcast; those samples are for n = 1 and 3.
      OpCall call{sample.inputs, sample.attrs};
      std::vector<TensorSpec> specs;
      ASSERT_NO_THROW(specs = def.infer(call)) << what;
      std::vector<Tensor> inputs, symbolic;
      bool has_symbol = false;
      for (size_t i = 0; i < sample.inputs.size(); i++) {
        inputs.push_back(fill(sample.inputs[i], sample, symbols, 7 * i + 1));
        symbolic.push_back(
            symbol(sample.inputs[i].shape, sample.inputs[i].dtype, {}, "in" + std::to_string(i)));
        has_symbol = has_symbol || !is_concrete(sample.inputs[i].shape);
      }
      if (!has_symbol && n != 1) continue;
      const std::vector<Tensor> got = apply(def.name, inputs, sample.attrs);
      ASSERT_EQ(got.size(), specs.size()) << what;
      for (size_t i = 0; i < got.size(); i++) {
        EXPECT_EQ(got[i].shape(), shape_of(specs[i].shape, symbols)) << what;
        EXPECT_EQ(std::string(got[i].dtype().name()), specs[i].dtype.name()) << what;
      }
      // The symbolic compute definition, interpreted; scripts run in built_test.cpp.
      const ir::Task task = def.compute(call);
      if (!task.opaque) {
        const std::vector<Tensor> interpreted = interpret(task, inputs, symbols);
        for (size_t i = 0; i < got.size(); i++)
          expect_same(interpreted[i], got[i], what + " interpreted");
      }
      if (inputs.empty()) continue;
      const std::vector<Tensor> outs = apply(def.name, symbolic, sample.attrs);
      const std::vector<Tensor> run = FlowGraph(symbolic, outs).run(inputs);
      for (size_t i = 0; i < got.size(); i++) expect_same(run[i], got[i], what + " in a graph");
    }
}

/// A task obeys its contract: i64 axes, one output a compute, an inverse map of the right rank.
TEST_P(Samples, TasksAreWellFormed) {
  const OpDef& def = *operators().find(GetParam());
  for (const OpSample& sample : def.samples) {
    const ir::Task task = def.compute({sample.inputs, sample.attrs});
    EXPECT_EQ(task.inputs.size(), sample.inputs.size());
    if (task.opaque) {
      EXPECT_EQ(task.outputs.size(), def.infer({sample.inputs, sample.attrs}).size());
      continue;
    }
    for (const ir::VarRef& out : task.outputs) ASSERT_NE(task.compute_of(out), nullptr);
    for (const ir::Compute& c : task.computes) {
      EXPECT_EQ(c.axes.size(), ir::shape_of(c.tensor).size());
      for (const ir::VarRef& a : c.axes) EXPECT_TRUE(a->type == ir::Type(i64));
      EXPECT_TRUE(c.value->type == ir::Type(ir::dtype_of(c.tensor)));
    }
    EXPECT_TRUE(task.inverse_maps.empty() || task.inverse_maps.size() == task.inputs.size());
    for (size_t k = 0; k < task.inverse_maps.size(); k++)
      if (const auto& map = task.inverse_maps[k]) {
        EXPECT_EQ(map->axes.size(), ir::shape_of(task.inputs[k]).size());
        EXPECT_EQ(map->indices.size(), ir::shape_of(task.outputs[0]).size());
      }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const OpDef* def : operators().all()) out.push_back(def->name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Operators, Samples, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

TEST(Operators, AllAreThere) { EXPECT_GE(operators().all().size(), 80u); }

}  // namespace
}  // namespace hidet::test
