// driver_test.cpp - what the runtime says where the driver is missing, a stub, old, broken or has no GPU.
// Each case runs in a process of its own, since a process opens the driver once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <hidet/runtime/cuda.h>
#include <hidet/runtime/device_api.h>
#include <hidet/runtime/error.h>

#include "src/cuda/cuda_memory.h"
#include "src/cuda/cuda_module.h"

using namespace hidet;

namespace {

// In the child: opens the library called `name` as the driver and prints the problem, then checks that every
// call gives that sentence as Error(device).
void print_problem(const char* name, const char* fake) {
  setenv("HIDET_LIBCUDA", name, 1);
  setenv("FAKE_CUDA", fake, 1);
  const std::string problem = cuda_problem();
  std::cerr << problem << std::endl;
  int right = 0;
  const auto expect = [&](auto call) {
    try {
      call();
    } catch (const Error& error) {
      right += error.code() == ErrorCode::device &&
               std::string(error.what()).find(problem) != std::string::npos;
    }
  };
  expect([] { cuda_device_info(0); });
  expect([] { cuda_synchronize(); });
  expect([] { CudaStream stream; });
  expect([] { CudaEvent event; });
  expect([] { CudaPinned pinned(16); });
  expect([] { runtime::cuda_allocate(0, 16); });
  expect([] { runtime::cuda_device_api(0); });
  expect(
      [] { runtime::CudaModule::load(std::vector<runtime::CudaImage>{{"sm_80", {}}}, {"k"}, 0); });
  runtime::cuda_free(0, nullptr);
  const runtime::CudaImage image{"sm_80", {}};
  const bool verdict = runtime::cuda_verdict({&image, 1}, 0).reason == problem;
  std::exit(right == 8 && verdict && cuda_device_count() == 0 ? 5 : 1);
}

std::string stub() {
  for (const char* folder : {"lib", "lib64", "targets/x86_64-linux/lib"}) {
    const auto file = std::filesystem::path("/usr/local/cuda") / folder / "stubs/libcuda.so";
    if (std::filesystem::exists(file)) return file;
  }
  return "";
}

class CudaDriver : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

}  // namespace

TEST_F(CudaDriver, Missing) {
  EXPECT_EXIT(print_problem("/nonexistent/libcuda.so.1", ""), ::testing::ExitedWithCode(5),
              "there is no GPU driver: /nonexistent/libcuda.so.1 cannot be opened");
}

TEST_F(CudaDriver, Stub) {
  const std::string file = stub();
  if (file.empty()) GTEST_SKIP() << "no stub libcuda.so in /usr/local/cuda";
  EXPECT_EXIT(print_problem(file.c_str(), ""), ::testing::ExitedWithCode(5),
              "the CUDA toolkit's stub, not a driver");
}

TEST_F(CudaDriver, Old) {
  EXPECT_EXIT(print_problem(HIDET_FAKE_LIBCUDA, "old"), ::testing::ExitedWithCode(5),
              "the GPU driver is too old: it is for CUDA 11.4 and lacks cuGetErrorString; CUDA "
              "12.0 or later is needed");
}

TEST_F(CudaDriver, NoGpu) {
  EXPECT_EXIT(print_problem(HIDET_FAKE_LIBCUDA, "nodevice"), ::testing::ExitedWithCode(5),
              "the GPU driver finds no GPU");
}

TEST_F(CudaDriver, Broken) {
  EXPECT_EXIT(print_problem(HIDET_FAKE_LIBCUDA, "broken"), ::testing::ExitedWithCode(5),
              "the GPU driver does not start: cuInit answers CUDA_ERROR_UNKNOWN .999.");
}

TEST_F(CudaDriver, NotADriver) {
  EXPECT_EXIT(print_problem("libc.so.6", ""), ::testing::ExitedWithCode(5),
              "libc.so.6 is no GPU driver: it has no cuInit");
}
