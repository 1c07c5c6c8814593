// built_test.cpp - the operators' samples compiled for this CPU against the reference evaluator: every operator's
// first sample and every third after it, of scripts all (all of them are run by the reference in samples_test.cpp).
#include <hidet/runtime/compiled_model.h>

#include "graph/core/samples.h"

namespace hidet::test {
namespace {
using namespace graph;

class Built : public testing::TestWithParam<std::string> {};

TEST_P(Built, AgreesWithTheReference) {
  const OpDef& def = *operators().find(GetParam());
  const SymbolMap symbols{{"n", 3}};
  const bool script =
      def.compute({def.samples.at(0).inputs, def.samples.at(0).attrs}).opaque != nullptr;
  for (size_t number = 0; number < def.samples.size(); number += script ? 1 : 3) {
    const OpSample& sample = def.samples[number];
    if (sample.inputs.empty()) continue;
    std::vector<Tensor> inputs, symbolic;
    for (size_t i = 0; i < sample.inputs.size(); i++) {
      inputs.push_back(fill(sample.inputs[i], sample, symbols, i + 1));
      symbolic.push_back(
          symbol(sample.inputs[i].shape, sample.inputs[i].dtype, {}, "in" + std::to_string(i)));
    }
    const FlowGraph graph(symbolic, apply(def.name, symbolic, sample.attrs));
    const std::vector<Tensor> expected = graph.run(inputs), got = graph.build().run(inputs);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++)
      expect_same(got[i], expected[i], def.name + " sample " + std::to_string(number));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const OpDef* def : operators().all()) out.push_back(def->name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Operators, Built, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hidet::test
