// verdict_test.cpp - which image runs on which GPU, decided from names and PTX headers alone.
#include <gtest/gtest.h>

#include <hidet/runtime/error.h>

#include "src/cuda/cuda_module.h"

using namespace hidet;
using namespace hidet::runtime;

namespace {

CudaDeviceInfo gpu(int major, int minor, int driver = 13000) {
  CudaDeviceInfo info;
  info.name = "Test GPU";
  info.major = major;
  info.minor = minor;
  info.driver_version = driver;
  return info;
}

std::vector<CudaImage> images(const std::vector<const char*>& targets) {
  std::vector<CudaImage> list;
  for (const char* target : targets) list.push_back({target, {}});
  return list;
}

struct Case {
  std::vector<const char*> targets;
  int major, minor;
  CudaFit fit;
  int image;
};

}  // namespace

TEST(CudaVerdict, TableOfTargets) {
  const Case cases[] = {
      {{"sm_80"}, 8, 0, CudaFit::yes, 0},
      {{"sm_80"}, 8, 6, CudaFit::yes, 0},
      {{"sm_86"}, 8, 0, CudaFit::no, -1},
      {{"sm_80"}, 9, 0, CudaFit::no, -1},  // the driver would take it and fail at the first kernel
      {{"sm_80", "sm_86"}, 8, 9, CudaFit::yes, 1},
      {{"sm_86", "sm_80"}, 8, 9, CudaFit::yes, 0},
      {{"sm_90", "sm_90a"}, 9, 0, CudaFit::yes, 1},
      {{"sm_90a"}, 9, 0, CudaFit::yes, 0},
      {{"sm_100a"}, 10, 3, CudaFit::no, -1},
      {{"sm_100f"}, 10, 3, CudaFit::yes, 0},
      {{"sm_100"}, 10, 0, CudaFit::yes, 0},
      {{"sm_100"}, 12, 0, CudaFit::no, -1},
      {{"compute_80"}, 9, 0, CudaFit::jit, 0},
      {{"compute_90a"}, 9, 0, CudaFit::jit, 0},
      {{"compute_90a"}, 10, 0, CudaFit::no, -1},
      {{"compute_90"}, 8, 0, CudaFit::no, -1},
      {{"ptx", "sm_80"}, 9, 0, CudaFit::jit, 0},
      {{"ptx", "sm_80"}, 8, 0, CudaFit::yes, 1},
      {{}, 9, 0, CudaFit::no, -1},
  };
  for (const Case& c : cases) {
    const auto list = images(c.targets);
    const CudaVerdict verdict = cuda_verdict(list, gpu(c.major, c.minor));
    EXPECT_EQ(verdict.fit, c.fit) << verdict.reason;
    EXPECT_EQ(verdict.image, c.image) << verdict.reason;
  }
}

TEST(CudaVerdict, ReasonsAreSentencesThatName) {
  const auto list = images({"sm_80", "sm_86"});
  EXPECT_EQ(cuda_verdict(list, gpu(9, 0)).reason,
            "the program has GPU code for sm_80, sm_86, none of which runs on Test GPU (compute "
            "capability 9.0)");
  EXPECT_EQ(cuda_verdict(list, gpu(8, 6)).reason,
            "runs with the code for sm_86 on Test GPU (compute capability 8.6)");
}

TEST(CudaVerdict, CompilingAtLoadCanBeSwitchedOff) {
  const auto list = images({"ptx"});
  const CudaVerdict verdict = cuda_verdict(list, gpu(9, 0), false);
  EXPECT_EQ(verdict.fit, CudaFit::no);
  EXPECT_NE(verdict.reason.find("compiling at load is switched off"), std::string::npos)
      << verdict.reason;
}

TEST(CudaVerdict, PtxNewerThanTheDriverIsRefused) {
  const std::string text = "//\n.version 9.0\n.target sm_80\n.address_size 64\n";
  const std::vector<CudaImage> list = {{"ptx", std::as_bytes(std::span(text))}};
  EXPECT_EQ(cuda_verdict(list, gpu(8, 0, 13000)).fit, CudaFit::jit);
  const CudaVerdict old = cuda_verdict(list, gpu(8, 0, 12040));
  EXPECT_EQ(old.fit, CudaFit::no);
  EXPECT_NE(old.reason.find("the driver (CUDA 12.4) is too old for its PTX 9.0 (CUDA 13.0)"),
            std::string::npos)
      << old.reason;
}

TEST(CudaVerdict, PtxTextSaysItsChip) {
  const std::string text = ".version 8.5\n.target sm_90a\n";
  const std::vector<CudaImage> list = {{"ptx", std::as_bytes(std::span(text))}};
  EXPECT_EQ(cuda_verdict(list, gpu(9, 0)).fit, CudaFit::jit);
  EXPECT_EQ(cuda_verdict(list, gpu(10, 0)).fit, CudaFit::no);
}

TEST(CudaTarget, Names) {
  EXPECT_EQ(CudaTarget::parse("sm_90a").arch, 90);
  EXPECT_EQ(CudaTarget::parse("sm_90a").variant, 'a');
  EXPECT_EQ(CudaTarget::parse("sm_120").arch, 120);
  EXPECT_TRUE(CudaTarget::parse("ptx").is_ptx);
  EXPECT_TRUE(CudaTarget::parse("compute_80").is_ptx);
  for (const char* bad : {"", "sm_", "sm_9", "sm_90b", "sm_9000", "compute_", "x86-64-v3", "ptx2",
                          "sm_-80", "sm_a"}) {
    EXPECT_FALSE(CudaTarget::is_cuda(bad)) << bad;
    EXPECT_THROW(CudaTarget::parse(bad), Error) << bad;
  }
}
