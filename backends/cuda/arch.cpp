// arch.cpp - names of GPU targets, and what to tell the compiler for each.
// Needs: a GPU for "native" only. Leaves: nothing.
// Threading: pure functions.
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hidet/backends/cuda.h>
#include <hidet/runtime/cuda.h>
#include <hidet/runtime/error.h>

namespace hidet::backends {
namespace {

constexpr int kLeastArch = 75, kPortableArch = 80, kHopper = 90;

// The target that a GPU runs best.
std::string name_of(const CudaDeviceInfo& gpu) {
  return fmt::format("sm_{}{}", gpu.arch(), gpu.arch() == kHopper ? "a" : "");
}

[[noreturn]] void refuse(const std::string& name) {
  throw Error(ErrorCode::usage, fmt::format("'{}' is no CUDA target: write one of {}", name,
                                            fmt::join(cuda_targets(), ", ")));
}

}  // namespace

const std::vector<std::string>& cuda_targets() {
  static const std::vector<std::string> targets = {"sm_80",  "sm_86",   "sm_87",  "sm_89",
                                                   "sm_90",  "sm_90a",  "sm_100", "sm_100a",
                                                   "sm_120", "sm_120a", "ptx",    "native"};
  return targets;
}

CudaArch CudaArch::parse(const std::string& name) {
  if (name == "native") {
    const std::string problem = cuda_problem();
    HIDET_REQUIRE(problem.empty(), ErrorCode::device, "",
                  "the CUDA target 'native' needs a GPU: ", problem);
    return parse(name_of(cuda_device_info(0)));
  }
  CudaArch target;
  if (name == "ptx") {
    target.name = name;
    target.code = fmt::format("compute_{}", kPortableArch);
    target.is_ptx = true;
    return target;
  }
  std::string digits = name;
  for (const char* prefix : {"sm_", "compute_"})
    if (name.starts_with(prefix)) digits = name.substr(std::char_traits<char>::length(prefix));
  target.is_ptx = name.starts_with("compute_");
  target.arch = 0;
  size_t at = 0;
  for (; at < digits.size() && at < 3 && std::isdigit(static_cast<unsigned char>(digits[at])); ++at)
    target.arch = target.arch * 10 + (digits[at] - '0');
  const std::string variant = digits.substr(at);
  if (at < 2 || target.arch < kLeastArch || (!variant.empty() && variant != "a" && variant != "f"))
    refuse(name);
  target.code = fmt::format("{}{}{}", target.is_ptx ? "compute_" : "sm_", target.arch, variant);
  target.name = target.code;
  target.kernels =
      target.arch == kHopper && variant == "a" ? kHopper : std::min(target.arch, kPortableArch);
  return target;
}

std::vector<std::string> default_cuda_targets() {
  if (cuda_device_count() == 0) return {"sm_80", "sm_90a", "ptx"};
  return {name_of(cuda_device_info(0))};
}

}  // namespace hidet::backends
