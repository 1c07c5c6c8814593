// cuda.h - the CUDA backend: CUDA C++ text to cubins or PTX, through NVRTC or nvcc; no GPU needed.
// Needs: libnvrtc (opened at the first compile) or nvcc; cuda_fp16.h and its like where the text includes them.
// Leaves: bytes in memory; nothing in the working directory.
// Threading: thread-safe; units of one call compile in parallel.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace hidet::backends {

/// A GPU target, taken apart.
struct CudaArch {
  std::string name;  ///< as files and messages write it: "sm_90a", "ptx"
  std::string code;  ///< what the compiler is told: "sm_90a", "compute_80"
  int arch = 80;     ///< 80, 90, 120
  bool is_ptx = false;
  /// Which kernels to choose from: 90 where Hopper's own instructions may be used (sm_90a), else 80, which run on
  /// every later chip too (sm_90, sm_100a, sm_120, ptx).
  int kernels = 80;
  /// Reads "sm_90a", "90a", "ptx", "compute_80", "native" (the GPU of this machine). Throws Error(usage) that lists
  /// the targets, Error(device) for "native" without a GPU.
  static CudaArch parse(const std::string& name);
};
/// The targets that are known to work; parse takes later ones too.
const std::vector<std::string>& cuda_targets();
/// Targets to build for without being told: this machine's GPU, or sm_80, sm_90a and ptx where there is none.
std::vector<std::string> default_cuda_targets();

/// One translation unit.
struct CudaUnit {
  std::string name;                  ///< for people: errors, the cache's list
  std::string source;                ///< includes at most cuda_fp16.h, cuda_bf16.h, cuda_fp8.h
  std::vector<std::string> kernels;  ///< names of its extern "C" __global__ functions
};

struct CudaOptions {
  std::string target = "sm_80";  ///< as CudaArch::parse
  std::string compiler = {};     ///< "nvrtc", "nvcc"; empty: NVRTC where it is, else nvcc
  bool fast_math = false;        ///< contraction, approximate division, square root and functions
  bool line_info = false;        ///< source lines for profilers
  int jobs = 0;                  ///< threads; 0: one per CPU
  bool use_cache = true;         ///< look in and fill BuildCache::process()
  /// Called on the calling thread after each unit; returning false stops with Error(cancelled).
  std::function<bool(int done, int total)> progress = {};
};

/// What a build did.
struct CudaStats {
  int units = 0, cache_hits = 0, compiled = 0;
  double compile_ms = 0;  ///< wall time of all compiles together
  std::string
      report;  ///< the assembler's words on registers, shared memory and spills of what was compiled now
};

/// The bytes of kernels.cubin (kernels.ptx for PTX targets): one unit's code as it is, several as a bundle
/// (hidet/runtime/cuda_bundle.h). The same units, options and compiler give the same bytes.
/// Throws Error(device) when there is no compiler or header, Error(internal) with the compiler's first lines when it
/// refuses the text (HIDET_KEEP keeps that text), Error(cancelled) when progress says so.
std::vector<uint8_t> compile_cuda(std::span<const CudaUnit> units, const CudaOptions& options = {},
                                  CudaStats* stats = nullptr);

/// Name and version of the compiler that compile_cuda would use, one line, part of every cache key; empty when
/// there is none.
std::string cuda_compiler_identity(const std::string& compiler = "");

/// One line of `hidet devices`.
struct CudaToolRow {
  std::string kind;     ///< "gpu", "driver", "nvrtc", "nvcc"
  std::string name;     ///< "NVIDIA H200", "libcuda.so.1" ...
  std::string version;  ///< "13.0"; empty when missing
  std::string detail;   ///< what it can build or run; where it is missing: one sentence why
  bool usable = false;
};
std::vector<CudaToolRow> cuda_tool_rows();

}  // namespace hidet::backends
