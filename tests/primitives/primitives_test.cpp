// primitives_test.cpp - every row of the table of primitives: its value in the simulator and on the CPU, and that the CUDA
// compiler takes it for the least architecture. The cases are in cases_*.cpp.
#include <gmock/gmock.h>

#include <hidet/backends/cuda.h>
#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

#include <map>
#include <set>

#include "primitives/cases.h"

namespace hidet::primitives {
namespace {

/// Rows without a case, and where they are tested.
const std::map<std::string, std::string> kElsewhere{
    {"printf", "tests/lang/build_test.cpp, tests/backends/sim/kernels_test.cpp"},
    {"refuse", "tests/model/index_errors_test.cpp"},
    {"scratch", "tests/lang/language_test.cpp"},
    {"parallel_threads", "tests/lang/language_test.cpp"},
    {"prefetch", "tests/lang/language_test.cpp"},
    {"amx_config", "tests/lang/amx_test.cpp"},
    {"amx_release", "tests/lang/amx_test.cpp"},
    {"amx_zero", "tests/lang/amx_test.cpp"},
    {"amx_load", "tests/lang/amx_test.cpp"},
    {"amx_store", "tests/lang/amx_test.cpp"},
    {"amx_dot_bf16", "tests/lang/amx_test.cpp"},
};

const Cases& cases() {
  static const Cases all = all_cases();
  return all;
}

void compare(const Case& c, const Tensor& got, const char* where) {
  const std::vector<double> values = got.to_doubles();
  ASSERT_EQ(values.size(), c.expected.size()) << c.name;
  int shown = 0;
  for (size_t i = 0; i < values.size() && shown < 3; i++)
    if (!c.value.fits(values[i], c.expected[i])) {
      ADD_FAILURE() << c.name << " " << where << ", element " << i << ": " << values[i]
                    << ", expected " << c.expected[i];
      shown++;
    }
}

TEST(Primitives, EveryRowHasACase) {
  std::set<std::string> rows;
  for (const Case& c : cases()) {
    rows.merge(rows_of(c));
    EXPECT_TRUE(!c.expected.empty() || !c.elsewhere.empty()) << c.name;
    EXPECT_TRUE(ir::find_primitive(c.row)) << c.row;
  }
  for (const ir::Primitive& p : ir::all_primitives())
    EXPECT_TRUE(rows.count(p.name) || kElsewhere.count(p.name)) << p.name << " has no case";
}

TEST(Primitives, Simulated) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    try {
      const Tensor got = simulated(c).back();
      if (!c.expected.empty()) compare(c, got, "in the simulator");
    } catch (const Error& e) {
      ADD_FAILURE() << c.name << ": " << e.what();
    }
  }
}

TEST(Primitives, OnTheCpu) {
  int run = 0;
  for (const Case& c : cases()) {
    if (!c.cpu) continue;
    SCOPED_TRACE(c.name);
    const CompiledModule built = c.cpu->build();
    const Tensor out = c.output.clone();
    std::vector<CallArg> args(c.inputs.begin(), c.inputs.end());
    args.emplace_back(out);
    built.call(args);
    compare(c, out, "on the CPU");
    run++;
  }
  EXPECT_GT(run, 100);
}

TEST(Primitives, CompiledForTheLeastArchitecture) {
  ASSERT_FALSE(backends::cuda_compiler_identity().empty()) << "no CUDA compiler";
  for (const Case& c : cases()) try {
      if (!c.compiled) continue;
      std::string said;  // by what is compiled now alone
      const CompiledModule built = c.cuda.build(
          {.cuda_arch = arch_name(least_arch(c)), .use_cache = c.row != "wgmma", .report = &said});
      EXPECT_EQ(built.data().images.size(), 1u) << c.name;
      // The assembler's words where products may not overlap.
      for (const char* word : {"serialized", "injected"})
        EXPECT_EQ(said.find(word), std::string::npos) << c.name << ": " << said;
    } catch (const Error& e) {
      ADD_FAILURE() << c.name << ": " << e.what();
    }
}

}  // namespace
}  // namespace hidet::primitives
