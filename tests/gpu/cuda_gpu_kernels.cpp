// cuda_gpu_kernels.cpp - compiles the kernels of cuda_runtime_gpu, on a machine that need not have a GPU.
// usage: cuda_gpu_kernels OUT_FOLDER   writes OUT_FOLDER/{sm_80,sm_90a,sm_120}.cubin, ptx.ptx
// Needs: NVRTC or nvcc.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <hidet/backends/cuda.h>
#include <hidet/runtime/error.h>

namespace {

using hidet::backends::CudaUnit;

std::vector<CudaUnit> portable_units() {
  return {
      {"vector_add",
       R"(extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
})",
       {"vector_add"}},
      {"scale",
       R"(__constant__ float factor = 2.0f;
extern "C" __global__ void scale(float* a, int n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) a[i] *= factor;
})",
       {"scale"}},
      {"reverse",
       R"(extern "C" __global__ void reverse(float* a, int n) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = a[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = tile[n - 1 - i];
})",
       {"reverse"}},
      {"spin",
       R"(extern "C" __global__ void spin(long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - start < (unsigned long long)nanoseconds);
})",
       {"spin"}},
      {"checked",
       R"(__device__ int* hidet_error_word;
extern "C" __global__ void checked(const float* a, int n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n && !(a[i] >= 0.0f)) *(volatile int*)hidet_error_word = 17;
})",
       {"checked"}},
      {"bad_access",
       R"(extern "C" __global__ void bad_access(float* a) { a[threadIdx.x] = 1.0f; })",
       {"bad_access"}},
  };
}

std::vector<CudaUnit> hopper_units() {
  return {
      {"cluster_rank",
       R"(extern "C" __global__ void cluster_rank(int* out) {
  unsigned rank, size;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  if (threadIdx.x == 0) out[blockIdx.x] = (int)(rank * 100 + size);
})",
       {"cluster_rank"}},
      {"bulk_tile",
       R"(struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void bulk_tile(const __grid_constant__ Map map, float* out, int x, int y) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned b = (unsigned)__cvta_generic_to_shared(&barrier), t = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(b), "r"(8 * 32 * 4));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(t), "l"(&map), "r"(x), "r"(y), "r"(b) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(b) : "memory");
  for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) out[i] = tile[i];
})",
       {"bulk_tile"}},
  };
}

void write(const std::filesystem::path& file, const std::vector<uint8_t>& bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  HIDET_REQUIRE(out.flush().good(), hidet::ErrorCode::io, "", "cannot write ", file.string());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cuda_gpu_kernels OUT_FOLDER\n");
    return 2;
  }
  if (hidet::backends::cuda_compiler_identity().empty()) {
    std::printf("no CUDA compiler is here, so no kernel was made\n");
    return 0;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const char* target : {"sm_80", "sm_90a", "sm_120", "ptx"}) {
    const auto arch = hidet::backends::CudaArch::parse(target);
    std::vector<CudaUnit> units = portable_units();
    if (arch.kernels == 90)
      for (CudaUnit& unit : hopper_units()) units.push_back(std::move(unit));
    write(folder / (std::string(target) + (arch.is_ptx ? ".ptx" : ".cubin")),
          hidet::backends::compile_cuda(units, {.target = target, .use_cache = false}));
  }
  return 0;
} catch (const hidet::Error& error) {
  std::fprintf(stderr, "cuda_gpu_kernels: %s\n", error.what());
  return static_cast<int>(error.code());
}
