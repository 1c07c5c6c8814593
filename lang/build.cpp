// build.cpp - verifies, lowers, prints, compiles and loads a module.
// Needs: a CPU compiler; for CUDA functions NVRTC or nvcc.
// Threading: thread-safe.
#include <hidet/backends/cpu.h>
#include <hidet/backends/cuda.h>
#include <hidet/codegen/codegen.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/ir/value.h>
#include <hidet/lang/build.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <set>

namespace hidet::lang {
namespace {
using namespace ir;

bool has_kind(const Module& module, FuncKind kind) {
  return std::any_of(module.functions.begin(), module.functions.end(),
                     [&](const Function& f) { return f.kind == kind; });
}
bool has_cuda(const Module& module) {
  return has_kind(module, FuncKind::cuda_kernel) || has_kind(module, FuncKind::cuda_internal);
}

/// Which parameters of public functions are device memory: those that reach a kernel, also through other
/// public functions.
class DevicePointers {
 public:
  explicit DevicePointers(const Module& module) : module_(module) {
    for (size_t before = 1, after = 0; before != after;) {
      before = found_.size();
      for (const Function& f : module.functions)
        if (f.kind == FuncKind::public_ && f.body) scan(f);
      after = found_.size();
    }
  }
  bool contains(const VarRef& param) const { return found_.count(param.get()) > 0; }

 private:
  void scan(const Function& f) {
    visit_all(f.body, [&](const Node& n) {
      if (const Launch* l = as<Launch>(&n)) arguments(l->callee, l->args);
      if (const Call* c = as<Call>(&n)) arguments(c->callee, c->args);
      const Prim* p = as<Prim>(&n);
      if (p && p->name == "tensor_map") found_.insert(place_of(p->args.at(0)));
    });
  }
  void arguments(const std::string& name, const std::vector<Expr>& args) {
    const Function* callee = module_.find(name);
    if (!callee || (callee->kind != FuncKind::cuda_kernel && callee->kind != FuncKind::public_))
      return;
    for (size_t i = 0; i < args.size() && i < callee->params.size(); i++) {
      const Type& t = callee->params[i]->type;
      const bool memory = t.is_pointer() || t.is_tensor();
      if (memory && (callee->kind == FuncKind::cuda_kernel || contains(callee->params[i])))
        found_.insert(place_of(args[i]));
    }
  }
  const Module& module_;
  std::set<const Node*> found_;
};

ParamInfo param_info(const VarRef& p, bool on_device) {
  ParamInfo info;
  info.name = p->name;
  const Type& t = p->type;
  info.is_pointer = t.is_pointer() || t.is_tensor();
  info.any_pointer = t.is_pointer() && (t.pointee().is_void() || t.pointee().is_pointer());
  if (!info.any_pointer) info.dtype = t.dtype();
  if (info.is_pointer && on_device) info.device = Device("cuda");
  info.type = t.is_tensor() ? "ptr(" + std::string(t.dtype().name()) + ")" : t.text();
  return info;
}

/// The texts of a module.
struct Texts {
  Module host, device;
  std::string c, cuda;
};
Texts emit(const Module& module) {
  Texts t;
  t.host = run_passes(module, lowering(Target::cpu));
  t.c = codegen::emit_c(t.host);
  if (!has_cuda(module)) return t;
  t.device = run_passes(module, lowering(Target::cuda));
  t.cuda = codegen::emit_cuda(t.device);
  return t;
}

/// The first primitive of the CUDA functions that `arch` lacks; null where it has all.
const Prim* lacking(const Module& device, const backends::CudaArch& arch) {
  const Prim* found = nullptr;
  for (const Function& f : device.functions)
    if (is_cuda(f.kind) && f.body)
      visit_all(f.body, [&](const Node& n) {
        const Prim* p = as<Prim>(&n);
        const Primitive* row = p ? find_primitive(p->name) : nullptr;
        if (!row || found) return;
        const bool hopper = row->min_arch == kHopperOnly;
        if (hopper ? arch.kernels != 90 : row->min_arch > arch.arch) found = p;
      });
  return found;
}

/// Throws Error(usage) where a function of the CPU has a primitive whose feature `target` lacks.
void require_features(const Module& host, const CpuTarget& target) {
  for (const Function& f : host.functions) {
    if (is_cuda(f.kind) || !f.body) continue;
    visit_all(f.body, [&](const Node& n) {
      const Prim* p = as<Prim>(&n);
      const Primitive* row = p ? find_primitive(p->name) : nullptr;
      HIDET_REQUIRE(!row || !row->cpu_feature || target.has(row->cpu_feature), ErrorCode::usage,
                    p->loc.text(), "the primitive '", p->name, "' is not available on ",
                    target.name(), "; it needs a target with +", row->cpu_feature);
    });
  }
}

/// Where no target was asked for, those of the usual ones that have all instructions.
std::vector<std::string> targets_for(const Module& device, const std::string& asked) {
  std::vector<std::string> targets;
  const Prim* missing = nullptr;
  std::string refused;
  for (const std::string& target :
       asked.empty() ? backends::default_cuda_targets() : std::vector<std::string>{asked}) {
    if (const Prim* p = lacking(device, backends::CudaArch::parse(target)))
      missing = p, refused = backends::CudaArch::parse(target).name;
    else targets.push_back(target);
  }
  if (!targets.empty() || !missing) return targets;
  const int least = find_primitive(missing->name)->min_arch;
  throw Error(ErrorCode::usage,
              "the primitive '" + missing->name + "' is not available on " + refused +
                  "; it needs " +
                  (least == kHopperOnly ? "sm_90a" : "sm_" + std::to_string(least) + " or later"),
              missing->loc.text());
}

std::vector<ModuleImage> device_images(const Module& device, const std::string& text,
                                       const BuildOptions& o,
                                       const std::vector<std::string>& kernels) {
  std::vector<ModuleImage> images;
  for (const std::string& target : targets_for(device, o.cuda_arch)) {
    backends::CudaOptions cuda;
    cuda.target = target;
    cuda.compiler = o.cuda_compiler;
    cuda.fast_math = o.fast_math;
    cuda.jobs = o.jobs;
    cuda.use_cache = o.use_cache;
    const backends::CudaUnit unit{device.name, text, kernels};
    backends::CudaStats stats;
    images.push_back({backends::CudaArch::parse(target).name,
                      Bytes(backends::compile_cuda(std::span(&unit, 1), cuda, &stats))});
    if (o.report) *o.report += stats.report;
  }
  return images;
}

/// Host C, then the CUDA text, with the script's lines.
std::string readable(const Texts& t) {
  const codegen::EmitOptions lines{.lines = true};
  std::string out = codegen::emit_c(t.host, lines);
  if (!t.cuda.empty()) out += "\n" + codegen::emit_cuda(t.device, lines);
  return out;
}

}  // namespace

std::vector<FunctionInfo> public_functions(const Module& module) {
  const DevicePointers on_device(module);
  std::vector<FunctionInfo> out;
  for (const Function& f : module.functions) {
    if (f.kind != FuncKind::public_) continue;
    FunctionInfo info;
    info.name = f.name;
    for (const VarRef& p : f.params) info.params.push_back(param_info(p, on_device.contains(p)));
    info.returns = !f.returns.is_void();
    if (info.returns) info.return_dtype = f.returns.dtype();
    HIDET_REQUIRE(!info.returns || f.returns.is_scalar(), ErrorCode::usage, f.loc.text(),
                  "the public function '", f.name, "' returns ", f.returns.text(),
                  "; it may return a scalar");
    out.push_back(std::move(info));
  }
  return out;
}

ModuleData compile_module(const Module& module, const BuildOptions& options) {
  HIDET_REQUIRE(has_kind(module, FuncKind::public_), ErrorCode::usage,
                module.functions.empty() ? "" : module.functions.back().loc.text(), "the module '",
                module.name, "' has no public function to call");
  verify(module);
  ModuleData data;
  data.name = module.name;
  with_large_stack([&] {
    const Texts texts = emit(module);
    data.functions = public_functions(texts.host);
    data.source = readable(texts);
    backends::CpuOptions cpu;
    const bool cpu_code =
        has_kind(module, FuncKind::cpu_kernel) || has_kind(module, FuncKind::cpu_internal);
    cpu.target = texts.cuda.empty() || cpu_code ? options.cpu_target : "x86-64";
    cpu.fast_math = options.fast_math;
    cpu.jobs = options.jobs;
    cpu.use_cache = options.use_cache;
    const CpuTarget target = backends::resolve_target(cpu.target);
    require_features(texts.host, target);
    data.target = target.name();
    const backends::Unit unit{module.name, texts.c};
    data.code = Bytes(backends::build_shared_object(std::span(&unit, 1), cpu));
    if (texts.cuda.empty()) return;
    data.cuda_kernels = codegen::kernel_names(texts.host);
    data.cuda_asserts = codegen::assert_messages(texts.device);
    data.images =
        device_images(texts.device, texts.cuda, options, codegen::kernel_names(texts.device));
  });
  for (const ExternFunc& e : module.externs) data.extern_functions.push_back(e.address);
  return data;
}

CompiledModule build_module(const Module& module, const BuildOptions& options) {
  return CompiledModule(compile_module(module, options));
}

}  // namespace hidet::lang
