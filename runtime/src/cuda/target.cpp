// target.cpp - names of GPU targets and the verdict: which image of a program runs on which GPU.
// Needs: names and, for PTX, the text's first lines. Leaves: nothing; asks no driver.
// Threading: pure functions.
#include <algorithm>
#include <cctype>

#include <hidet/runtime/cuda_bundle.h>
#include <hidet/runtime/error.h>

#include "src/cuda/cuda_module.h"
#include "src/cuda/driver.h"

namespace hidet::runtime {
namespace {

// "80", "90a", "120f" -> arch and variant; false for anything else.
bool parse_arch(std::string_view text, CudaTarget& target) {
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
    target.variant = text.back();
    text.remove_suffix(1);
  }
  if (text.size() < 2 || text.size() > 3) return false;
  int arch = 0;
  for (char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c))) return false;
    arch = arch * 10 + (c - '0');
  }
  target.arch = arch;
  return arch >= 50;
}

bool parse_name(std::string_view name, CudaTarget& target) {
  if (name == "ptx") {
    target.is_ptx = true;
    return true;
  }
  constexpr std::string_view cubin = "sm_", ptx = "compute_";
  if (name.starts_with(cubin)) return parse_arch(name.substr(cubin.size()), target);
  target.is_ptx = true;
  return name.starts_with(ptx) && parse_arch(name.substr(ptx.size()), target);
}

// The word after `.directive` in the PTX header, or empty.
std::string_view ptx_directive(std::span<const std::byte> bytes, std::string_view directive) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 4096));
  size_t at = text.find(directive);
  if (at == text.npos) return {};
  at = text.find_first_not_of(" \t", at + directive.size());
  if (at == text.npos) return {};
  return text.substr(at, text.find_first_of(" \t\r\n,", at) - at);
}

// The CUDA version (13000 form) that first understood a PTX version such as "8.5"; 0: unknown.
int cuda_of_ptx(std::string_view version) {
  if (version.size() < 3 || version[1] != '.') return 0;
  const int major = version[0] - '0', minor = version[2] - '0';
  if (major < 7) return 0;
  if (major == 7) return 11000 + minor * 10;
  // 8.0 to 8.5 came with 12.0 to 12.5; then the numbers move apart.
  static constexpr int kEight[] = {0, 1, 2, 3, 4, 5, 7, 8, 9};
  if (major == 8) return minor < 9 ? 12000 + kEight[minor] * 10 : 0;
  return (major + 4) * 1000 + minor * 10;
}

std::string arch_text(int arch) { return detail::concat(arch / 10, ".", arch % 10); }

bool fits(const CudaTarget& target, const CudaDeviceInfo& gpu) {
  if (target.variant == 'a') return target.arch == gpu.arch();
  if (target.is_ptx && target.variant == 0) return target.arch <= gpu.arch();
  return target.arch / 10 == gpu.major && target.arch <= gpu.arch();
}

// Fills what the name "ptx" leaves open from the text; the reason why it cannot run, or empty.
std::string ptx_problem(const CudaImage& image, CudaTarget& target, const CudaDeviceInfo& gpu) {
  if (!image.bytes.empty()) {
    const std::vector<CudaBundlePart> parts = read_cuda_bundle(image.bytes);
    const std::span<const std::byte> text = parts.empty() ? image.bytes : parts[0].code;
    const std::string_view named = ptx_directive(text, ".target");
    CudaTarget of_text;
    if (named.starts_with("sm_") && parse_arch(named.substr(3), of_text)) {
      target.arch = of_text.arch;
      target.variant = of_text.variant;
    }
    const std::string_view version = ptx_directive(text, ".version");
    const int needed = cuda_of_ptx(version);
    if (needed > gpu.driver_version)
      return detail::concat("the driver (CUDA ", gpu.driver_version / 1000, ".",
                            gpu.driver_version % 1000 / 10, ") is too old for its PTX ", version,
                            " (CUDA ", needed / 1000, ".", needed % 1000 / 10, ")");
  }
  return "";
}

// Better images have higher numbers: a cubin of this very chip, then of its family, then the nearest minor, then PTX.
int rank(const CudaTarget& target) {
  const int base = target.arch * 10 + (target.variant == 'a' ? 2 : target.variant == 'f' ? 1 : 0);
  return target.is_ptx ? base : base + 100000;
}

std::string list_targets(std::span<const CudaImage> images) {
  std::string text;
  for (const CudaImage& image : images) text += (text.empty() ? "" : ", ") + image.target;
  return text;
}

}  // namespace

CudaTarget CudaTarget::parse(std::string_view name) {
  CudaTarget target;
  HIDET_REQUIRE(parse_name(name, target), ErrorCode::usage, "", "'", name,
                "' is no CUDA target: write sm_80, sm_90a, sm_120, compute_80 or ptx");
  return target;
}

bool CudaTarget::is_cuda(std::string_view name) {
  CudaTarget target;
  return parse_name(name, target);
}

CudaVerdict cuda_verdict(std::span<const CudaImage> images, const CudaDeviceInfo& gpu,
                         bool allow_jit) {
  CudaVerdict best;
  int best_rank = -1;
  std::string why_not;
  for (size_t i = 0; i < images.size(); ++i) {
    CudaTarget target = CudaTarget::parse(images[i].target);
    if (target.is_ptx) {
      std::string problem = ptx_problem(images[i], target, gpu);
      if (problem.empty() && fits(target, gpu) && !allow_jit)
        problem = "its PTX would run, but compiling at load is switched off";
      if (!problem.empty()) {
        why_not = "; " + problem;
        continue;
      }
    }
    if (!fits(target, gpu) || rank(target) <= best_rank) continue;
    best_rank = rank(target);
    best.image = static_cast<int>(i);
    best.fit = target.is_ptx ? CudaFit::jit : CudaFit::yes;
  }
  const std::string where =
      detail::concat(gpu.name, " (compute capability ", arch_text(gpu.arch()), ")");
  if (best.fit == CudaFit::no)
    best.reason = detail::concat("the program has GPU code for ",
                                 images.empty() ? "no GPU" : list_targets(images),
                                 ", none of which runs on ", where, why_not);
  else
    best.reason = detail::concat(
        best.fit == CudaFit::yes ? "runs with the code for " : "runs by compiling the PTX of ",
        images[static_cast<size_t>(best.image)].target, " on ", where);
  return best;
}

CudaVerdict cuda_verdict(std::span<const CudaImage> images, int device, bool allow_jit) {
  const cuda::Found& all = cuda::found();
  if (!all.problem.empty()) return {CudaFit::no, -1, all.problem};
  if (device < 0 || device >= static_cast<int>(all.devices.size()))
    return {
        CudaFit::no, -1,
        detail::concat("there is no GPU cuda:", device, "; this machine has ", all.devices.size())};
  return cuda_verdict(images, all.devices[static_cast<size_t>(device)]->info, allow_jit);
}

}  // namespace hidet::runtime
