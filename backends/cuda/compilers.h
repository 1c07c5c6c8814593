// compilers.h - the two ways from CUDA text to code: NVRTC in process, nvcc as a child process.
// Threading: thread-safe.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <hidet/backends/cuda.h>

namespace hidet::backends::cuda {

/// One compile.
struct Job {
  const CudaUnit& unit;
  const CudaArch& arch;
  const CudaOptions& options;
  const std::atomic<bool>& cancelled;  ///< a child process is killed when this turns true
};
struct Outcome {
  bool ok = false;
  std::vector<uint8_t> code;
  std::string log;  ///< the compiler's words: errors, or the resource report
};

/// A compiler that was found, or why it was not.
struct Found {
  std::string problem;  ///< empty when it is there
  std::string path;
  std::string version;   ///< "13.0"
  std::string identity;  ///< for cache keys
  std::string headers;   ///< the folder with cuda_fp16.h; empty: none
};
const Found& nvrtc();
/// Looked for again when HIDET_NVCC or the roots change; runs `nvcc --version` once a path.
Found nvcc();

Outcome run_nvrtc(const Job& job);
Outcome run_nvcc(const Job& job);

/// Options that both understand, in one order: part of the cache key.
std::vector<std::string> common_options(const CudaArch& arch, const CudaOptions& options);

}  // namespace hidet::backends::cuda
