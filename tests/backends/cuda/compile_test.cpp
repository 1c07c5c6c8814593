// compile_test.cpp - CUDA text to code without a GPU: targets, bundles, options, refusals, missing compilers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <hidet/backends/cuda.h>
#include <hidet/runtime/cuda.h>
#include <hidet/runtime/cuda_bundle.h>
#include <hidet/runtime/error.h>

using namespace hidet;
using namespace hidet::backends;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

CudaUnit vector_add(const std::string& name = "vector_add") {
  return {name,
          "extern \"C\" __global__ void " + name +
              "(const float* a, const float* b, float* c, int n) {\n"
              "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] = a[i] * b[i] + "
              "c[i];\n}\n",
          {name}};
}

std::string compile(const CudaUnit& unit, CudaOptions options) {
  options.use_cache = false;
  const std::vector<uint8_t> code = compile_cuda({&unit, 1}, options);
  return {code.begin(), code.end()};
}

// The error that `call` throws.
template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::ok, "nothing was thrown");
}

class CudaCompile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_compiler_identity("nvrtc").empty()) GTEST_SKIP() << "NVRTC is not here";
  }
};

}  // namespace

TEST_F(CudaCompile, CubinsAreElfFilesWithTheKernel) {
  for (const char* target : {"sm_80", "sm_90a", "sm_100a", "sm_120"}) {
    const std::string code = compile(vector_add(), {.target = target});
    ASSERT_GT(code.size(), 64U);
    EXPECT_EQ(code.substr(0, 4), "\177ELF") << target;
    EXPECT_EQ(static_cast<unsigned char>(code[18]), 190) << target;  // e_machine: CUDA
    EXPECT_THAT(code, HasSubstr(".text.vector_add")) << target;
  }
}

TEST_F(CudaCompile, PtxIsPortableText) {
  for (const char* target : {"ptx", "compute_80"}) {
    const std::string text = compile(vector_add(), {.target = target});
    EXPECT_THAT(text, HasSubstr(".target sm_80"));
    EXPECT_THAT(text, HasSubstr(".entry vector_add"));
    EXPECT_NE(text.back(), '\0');
  }
  EXPECT_THAT(compile(vector_add(), {.target = "compute_90a"}), HasSubstr(".target sm_90a"));
}

TEST_F(CudaCompile, ContractionOnlyUnderFastMath) {
  EXPECT_THAT(compile(vector_add(), {.target = "ptx"}), Not(HasSubstr("fma.rn")));
  EXPECT_THAT(compile(vector_add(), {.target = "ptx", .fast_math = true}), HasSubstr("fma.rn"));
}

TEST_F(CudaCompile, HalfAndBrainFloatHeaders) {
  const CudaUnit unit{"halves",
                      "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n"
                      "extern \"C\" __global__ void halves(__half* a, __nv_bfloat16* b) { a[0] = "
                      "__hadd(a[0], a[1]); b[0] = b[0] * b[1]; }\n",
                      {"halves"}};
  EXPECT_THAT(compile(unit, {.target = "sm_90a"}), HasSubstr(".text.halves"));
}

TEST_F(CudaCompile, ManyUnitsAreOneBundleWhateverTheThreads) {
  std::vector<CudaUnit> units;
  for (int i = 0; i < 5; ++i) units.push_back(vector_add("kernel_" + std::to_string(i)));
  std::vector<int> seen;
  CudaStats stats;
  const auto one = compile_cuda(units,
                                {.target = "sm_80",
                                 .jobs = 1,
                                 .use_cache = false,
                                 .progress =
                                     [&](int done, int total) {
                                       EXPECT_EQ(total, 5);
                                       seen.push_back(done);
                                       return true;
                                     }},
                                &stats);
  const auto four = compile_cuda(units, {.target = "sm_80", .jobs = 4, .use_cache = false});
  EXPECT_EQ(one, four);
  EXPECT_EQ(stats.compiled, 5);
  EXPECT_EQ(seen.back(), 5);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_THAT(stats.report, HasSubstr("registers"));
  const auto parts = runtime::read_cuda_bundle(std::as_bytes(std::span(one)));
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[3].kernels, std::vector<std::string>{"kernel_3"});
  const auto* code = reinterpret_cast<const char*>(parts[3].code.data());
  EXPECT_THAT(std::string(code, parts[3].code.size()), HasSubstr(".text.kernel_3"));
  const std::vector<uint8_t> none = compile_cuda({}, {.use_cache = false});
  EXPECT_TRUE(runtime::read_cuda_bundle(std::as_bytes(std::span(none))).empty());
}

TEST_F(CudaCompile, RefusedTextNamesUnitAndLine) {
  const CudaUnit unit{"broken_kernel",
                      "extern \"C\" __global__ void broken_kernel() {\n  int x = undeclared;\n}\n",
                      {"broken_kernel"}};
  const auto folder = std::filesystem::temp_directory_path() / "hidet_keep_test";
  std::filesystem::remove_all(folder);
  Error error = error_of([&] { compile(unit, {}); });
  EXPECT_EQ(error.code(), ErrorCode::internal);
  EXPECT_EQ(error.where(), "broken_kernel");
  EXPECT_THAT(error.what(), HasSubstr("kernels.cu(2)"));
  EXPECT_THAT(error.what(), HasSubstr("undeclared"));
  EXPECT_FALSE(std::filesystem::exists(folder));
  setenv("HIDET_KEEP", folder.c_str(), 1);
  error = error_of([&] { compile(unit, {}); });
  unsetenv("HIDET_KEEP");
  EXPECT_THAT(error.what(), HasSubstr((folder / "broken_kernel.cu").string()));
  std::ifstream kept(folder / "broken_kernel.cu");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), unit.source);
  std::filesystem::remove_all(folder);
}

TEST_F(CudaCompile, TheFirstUnitsErrorIsReported) {
  std::vector<CudaUnit> units = {
      vector_add("good"), {"bad_1", "nonsense", {}}, {"bad_2", "nonsense", {}}};
  for (int jobs : {1, 3}) {
    const Error error = error_of([&] { compile_cuda(units, {.jobs = jobs, .use_cache = false}); });
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_THAT(error.where(), ::testing::StartsWith("bad_"));
  }
}

TEST_F(CudaCompile, ProgressCanCancel) {
  std::vector<CudaUnit> units;
  for (int i = 0; i < 4; ++i) units.push_back(vector_add("kernel_" + std::to_string(i)));
  const Error error = error_of([&] {
    compile_cuda(units,
                 {.jobs = 1, .use_cache = false, .progress = [](int, int) { return false; }});
  });
  EXPECT_EQ(error.code(), ErrorCode::cancelled);
}

TEST_F(CudaCompile, NvccMakesTheSameKernel) {
  if (cuda_compiler_identity("nvcc").empty()) GTEST_SKIP() << "nvcc is not here";
  // A folder of its own: other tests run nvcc at the same time.
  const char* before = std::getenv("TMPDIR");
  const std::string restored = before ? before : "";
  std::string folder = (std::filesystem::temp_directory_path() / "hidet-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  setenv("TMPDIR", folder.c_str(), 1);
  const std::string code = compile(vector_add(), {.target = "sm_90a", .compiler = "nvcc"});
  EXPECT_EQ(code.substr(0, 4), "\177ELF");
  EXPECT_THAT(code, HasSubstr(".text.vector_add"));
  const Error error = error_of([&] { compile({"bad", "nonsense", {}}, {.compiler = "nvcc"}); });
  EXPECT_EQ(error.code(), ErrorCode::internal);
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "nvcc's folder was left in " << folder;
  std::filesystem::remove_all(folder);
  before ? setenv("TMPDIR", restored.c_str(), 1) : unsetenv("TMPDIR");
}

TEST(CudaArch, NamesAndKernels) {
  struct Row {
    const char *name, *code;
    int kernels;
    bool ptx;
  };
  const Row rows[] = {{"sm_80", "sm_80", 80, false},     {"sm_90a", "sm_90a", 90, false},
                      {"90a", "sm_90a", 90, false},      {"sm_90", "sm_90", 80, false},
                      {"sm_100a", "sm_100a", 80, false}, {"sm_120", "sm_120", 80, false},
                      {"ptx", "compute_80", 80, true},   {"compute_90a", "compute_90a", 90, true},
                      {"sm_75", "sm_75", 75, false}};
  for (const Row& row : rows) {
    const CudaArch arch = CudaArch::parse(row.name);
    EXPECT_EQ(arch.code, row.code);
    EXPECT_EQ(arch.kernels, row.kernels) << row.name;
    EXPECT_EQ(arch.is_ptx, row.ptx) << row.name;
  }
  EXPECT_EQ(CudaArch::parse("90a").name, "sm_90a");
  for (const char* bad :
       {"", "sm_", "sm_70", "sm_90x", "hopper", "sm_90a ", "compute_", "sm_90;ls"}) {
    const Error error = error_of([&] { CudaArch::parse(bad); });
    EXPECT_EQ(error.code(), ErrorCode::usage) << bad;
    EXPECT_THAT(error.what(), HasSubstr("sm_80, sm_86"));
  }
}

TEST(CudaArch, DefaultsWithoutAGpu) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(default_cuda_targets(), (std::vector<std::string>{"sm_80", "sm_90a", "ptx"}));
  EXPECT_EQ(error_of([] { CudaArch::parse("native"); }).code(), ErrorCode::device);
}

TEST(CudaTools, RowsSayWhatIsThere) {
  const std::vector<CudaToolRow> rows = cuda_tool_rows();
  ASSERT_GE(rows.size(), 3U);
  for (const CudaToolRow& row : rows) {
    EXPECT_FALSE(row.detail.empty()) << row.kind;
    EXPECT_EQ(row.usable, !row.version.empty()) << row.kind;
  }
}

namespace {

// In a process of its own: no NVRTC and no nvcc can be found.
void compile_with_nothing() {
  for (const char* name : {"HIDET_NVRTC", "HIDET_NVCC"}) setenv(name, "/nonexistent/tool", 1);
  const CudaUnit unit = vector_add();
  const Error error = error_of([&] { compile_cuda({&unit, 1}, {.use_cache = false}); });
  std::cerr << error.what() << std::endl;
  std::exit(error.code() == ErrorCode::device && cuda_compiler_identity().empty() ? 5 : 1);
}

}  // namespace

TEST(CudaMissing, NeitherCompiler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(compile_with_nothing(), ::testing::ExitedWithCode(5),
              "NVRTC cannot be opened .looked for /nonexistent/tool.*HIDET_CUDA_ROOT");
}

TEST(CudaMissing, UnknownCompilerIsUsage) {
  const CudaUnit unit = vector_add();
  EXPECT_EQ(error_of([&] { compile_cuda({&unit, 1}, {.compiler = "gcc"}); }).code(),
            ErrorCode::usage);
}
