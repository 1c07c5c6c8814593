// choose.cpp - which program of a model runs here, and why: CPU levels by cpuid, GPU targets by the CUDA verdict.
// Threading: thread-safe.
#include "hidet/runtime/error.h"
#include "src/model/state.h"

namespace hidet::runtime {
namespace {

using Answer = LoadVerdict::Answer;

void choose_cpu(const ModelData& data, const LoadOptions& options, Choice& best,
                std::string& reasons) {
  const CpuTarget host = effective_cpu_target();
  CpuTarget chosen;
  for (size_t i = 0; i < data.programs.size(); ++i) {
    const std::string& name = data.programs[i].target;
    if (!CpuTarget::is_cpu_target(name) || (!options.target.empty() && options.target != name))
      continue;
    const CpuTarget target = CpuTarget::parse(name);
    if (!target.runs_on(host)) {
      reasons += (reasons.empty() ? "" : "; ") + target.why_not(host);
    } else if (best.program < 0 || target.better_than(chosen)) {
      chosen = target;
      best.program = static_cast<int>(i);
      best.verdict = {Answer::yes, name,
                      detail::concat(name, " runs on this CPU (", host.name(), ")")};
    }
  }
}

void choose_cuda(const ModelData& data, const LoadOptions& options, Choice& best,
                 std::string& reasons) {
  std::vector<CudaImage> images;
  std::vector<int> programs;
  for (size_t i = 0; i < data.programs.size(); ++i) {
    const ProgramData& p = data.programs[i];
    if (!CudaTarget::is_cuda(p.target) || (!options.target.empty() && options.target != p.target))
      continue;
    images.push_back({p.target, p.cuda_image.span()});
    programs.push_back(static_cast<int>(i));
  }
  if (images.empty()) return;
  const CudaVerdict verdict =
      cuda_verdict(images, options.device ? options.device->index() : 0, options.allow_jit);
  if (verdict.fit == CudaFit::no || verdict.image < 0) {
    reasons += (reasons.empty() ? "" : "; ") + verdict.reason;
    return;
  }
  best.program = programs[verdict.image];
  best.device = Device(DeviceKind::cuda, options.device ? options.device->index() : 0);
  best.verdict = {verdict.fit == CudaFit::yes ? Answer::yes : Answer::jit,
                  data.programs[best.program].target, verdict.reason};
}

}  // namespace

Choice choose_program(const ModelData& data, const LoadOptions& options) {
  Choice best;
  std::string reasons;
  const bool any = !options.device;
  // Without a device the order of the file's targets decides between CPU and GPU.
  const bool cuda_first =
      any && !data.programs.empty() && CudaTarget::is_cuda(data.programs[0].target);
  const bool cpu = any || options.device->is_cpu(), cuda = any || options.device->is_cuda();
  if (cuda && cuda_first) choose_cuda(data, options, best, reasons);
  if (cpu && best.program < 0) choose_cpu(data, options, best, reasons);
  if (cuda && !cuda_first && best.program < 0) choose_cuda(data, options, best, reasons);
  if (best.program >= 0) return best;
  if (reasons.empty()) {
    reasons = "the model has no program for ";
    reasons += !options.target.empty() ? "target " + options.target
               : any                   ? std::string("any device")
                                       : options.device->name();
    reasons += "; it has ";
    for (size_t i = 0; i < data.programs.size(); ++i)
      reasons += (i ? ", " : "") + data.programs[i].target;
  }
  best.verdict = {Answer::no, "", reasons};
  return best;
}

}  // namespace hidet::runtime
