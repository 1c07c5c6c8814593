// assembly_test.cpp - what the compiler makes of vectors, read from the assembly text.
#include <gmock/gmock.h>

#include <string>

#include "hidet/backends/cpu.h"

namespace {

using hidet::backends::emit_assembly;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const char* const kVectorKernel = R"(
typedef float f32x16 __attribute__((vector_size(64)));
void hidet_scale(f32x16* y, const f32x16* x, int n) {
  for (int i = 0; i < n; ++i) y[i] = __builtin_elementwise_fma(x[i], x[i], y[i]);
}
)";
const char* const kPlainLoop =
    "void hidet_add(float* y, const float* x, int n) { for (int i = 0; i < n; ++i) y[i] += x[i]; }";

TEST(CpuAssembly, VectorsOf64BytesStayWholeAtLevel4) {
  const std::string text = emit_assembly(kVectorKernel, {.target = "x86-64-v4"});
  EXPECT_THAT(text, ContainsRegex("vfmadd[0-9]+ps[^\n]*%zmm"));
  EXPECT_THAT(text, Not(HasSubstr("%ymm")));
}

TEST(CpuAssembly, VectorsAreSplitBelowLevel4) {
  const std::string text = emit_assembly(kVectorKernel, {.target = "x86-64-v3"});
  EXPECT_THAT(text, ContainsRegex("vfmadd[0-9]+ps[^\n]*%ymm"));
  EXPECT_THAT(text, Not(HasSubstr("%zmm")));
}

TEST(CpuAssembly, PlainLoopsUseTheWidestVectors) {
  EXPECT_THAT(emit_assembly(kPlainLoop, {.target = "x86-64-v4"}), HasSubstr("%zmm"));
  EXPECT_THAT(emit_assembly(kPlainLoop, {.target = "x86-64-v3"}), HasSubstr("%ymm"));
  EXPECT_THAT(emit_assembly(kPlainLoop, {.target = "x86-64"}), Not(HasSubstr("%ymm")));
}

TEST(CpuAssembly, FeaturesGiveTheirInstructions) {
  const char* dot =
      "typedef int i32x16 __attribute__((vector_size(64)));\n"
      "i32x16 hidet_dot(i32x16 s, i32x16 a, i32x16 b) { return __builtin_ia32_vpdpbusd512(s, a, "
      "b); }\n";
  EXPECT_THAT(emit_assembly(dot, {.target = "x86-64-v4+vnni"}), HasSubstr("vpdpbusd"));
  EXPECT_ANY_THROW(emit_assembly(dot, {.target = "x86-64-v4"}));
}

TEST(CpuAssembly, ReductionsAreReassociatedUnderFastMathOnly) {
  const char* sum =
      "float hidet_sum(const float* x, int n) { float s = 0; for (int i = 0; i < n; ++i) s += "
      "x[i]; return s; }";
  EXPECT_THAT(emit_assembly(sum, {.target = "x86-64-v4"}), Not(ContainsRegex("vaddps[^\n]*%zmm")));
  EXPECT_THAT(emit_assembly(sum, {.target = "x86-64-v4", .fast_math = true}),
              ContainsRegex("vaddps[^\n]*%zmm"));
}

TEST(CpuAssembly, SquareRootIsAnInstruction) {
  const std::string text =
      emit_assembly("float sqrtf(float); float hidet_s(float x) { return sqrtf(x); }");
  EXPECT_THAT(text, HasSubstr("sqrtss"));
  EXPECT_THAT(text, Not(HasSubstr("sqrtf@")));
}

}  // namespace
