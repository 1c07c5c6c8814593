// report.cpp - the CUDA lines of `hidet devices`: GPUs, driver, NVRTC, nvcc.
// Needs: nothing; what is missing is a row that says why. Leaves: nothing.
// Threading: thread-safe.
#include <fmt/format.h>

#include <hidet/backends/cuda.h>
#include <hidet/runtime/cuda.h>

#include "cuda/compilers.h"

namespace hidet::backends {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

CudaToolRow gpu_row(const CudaDeviceInfo& gpu) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  CudaToolRow row{"gpu", gpu.name, fmt::format("sm_{}{}", gpu.arch(), gpu.arch() == 90 ? "a" : ""),
                  "", true};
  row.detail = fmt::format(
      "cuda:{}, {:.1f} GiB, {} multiprocessors, {} KiB shared memory a block, {:.0f} MiB L2",
      gpu.index, static_cast<double>(gpu.memory_bytes) / kGiB, gpu.multiprocessors,
      gpu.shared_bytes / 1024, static_cast<double>(gpu.l2_bytes) / (1024 * 1024));
  return row;
}

CudaToolRow compiler_row(const char* kind, const cuda::Found& found) {
  if (!found.problem.empty()) return {kind, found.path, "", found.problem, false};
  const std::string headers =
      found.headers.empty() ? "no CUDA headers were found: f16 and bf16 kernels cannot be built"
                            : "headers in " + found.headers;
  return {kind, found.path, found.version, headers, true};
}

}  // namespace

std::vector<CudaToolRow> cuda_tool_rows() {
  std::vector<CudaToolRow> rows;
  const std::string problem = cuda_problem();
  if (problem.empty()) {
    for (int i = 0; i < cuda_device_count(); ++i) rows.push_back(gpu_row(cuda_device_info(i)));
    rows.push_back({"driver", "libcuda.so.1", version_text(cuda_device_info(0).driver_version),
                    "runs cubins and PTX of that CUDA version and older", true});
  } else {
    rows.push_back({"driver", "libcuda.so.1", "", problem, false});
  }
  rows.push_back(compiler_row("nvrtc", cuda::nvrtc()));
  rows.push_back(compiler_row("nvcc", cuda::nvcc()));
  return rows;
}

}  // namespace hidet::backends
