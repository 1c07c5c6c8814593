// compile.cpp - hidet compile: import, optimize, build, save.
#include "tuning.h"

#include <hidet/backends/cpu.h>
#include <hidet/backends/cuda.h>
#include <hidet/graph/build.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace hidet::tools {
namespace {

struct CompileOptions {
  std::string model, output, shapes, name, cuda_compiler, dtype;
  std::vector<std::string> targets;
  int space = 0, level = 3, jobs = 0;
  bool no_weights = false, save_source = false, fast_math = false, plain_sums = false, tune = false;
  TuningOptions tuning;
  Common common;
};

/// What today's machines have; v4 only where the compiler at hand can make it.
std::vector<std::string> default_cpu_levels() {
  if (backends::cpu_compiler() == backends::CpuCompiler::cc) return {"x86-64-v3"};
  return {"x86-64-v3", "x86-64-v4", "x86-64-v4+amx"};
}

/// "cpu", "cpu:x86-64-v3,native", "cuda:sm_80,ptx" -> build targets.
std::vector<std::string> build_targets(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (const std::string& t : given) {
    const size_t colon = t.find(':');
    const std::string kind = t.substr(0, colon);
    HIDET_REQUIRE(kind == "cpu" || kind == "cuda", ErrorCode::usage, "", "--target: '", t,
                  "' should be cpu[:LEVEL,...] or cuda[:ARCH,...]");
    const bool cuda = kind == "cuda";
    const std::vector<std::string> all =
        cuda ? backends::default_cuda_targets() : default_cpu_levels();
    for (const std::string& level :
         colon == std::string::npos ? all : split(t.substr(colon + 1), ','))
      out.push_back(cuda ? backends::CudaArch::parse(level).name
                         : backends::resolve_target(level).name());
  }
  return out.empty() ? default_cpu_levels() : out;
}

/// One graph for the CPU targets and one for the GPU targets, as far as there are such: layouts and fusion differ.
std::vector<FlowGraph> optimized(const FlowGraph& imported, const std::vector<std::string>& targets,
                                 const OptimizeOptions& options) {
  const auto is_cpu = [](const std::string& t) { return CpuTarget::is_cpu_target(t); };
  std::vector<FlowGraph> graphs;
  if (std::any_of(targets.begin(), targets.end(), is_cpu))
    graphs.push_back(optimize(imported, options));
  if (!std::all_of(targets.begin(), targets.end(), is_cpu))
    graphs.push_back(optimize(graph::on_device(imported, Device("cuda")), options));
  return graphs;
}

int64_t file_bytes(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 ? static_cast<int64_t>(s.st_size) : 0;
}
int64_t peak_rss() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

/// A line for each target: its code and the stored weights that no target before it has.
std::string bytes_added(const ModelData& data) {
  std::string text;
  std::vector<bool> there(data.stored.size(), false);
  for (const ProgramData& p : data.programs) {
    int64_t weights = 0;
    for (const int i : p.stored) {
      const StoredWeight& w = data.stored[static_cast<size_t>(i)];
      if (!there[static_cast<size_t>(i)]) weights += w.dtype.bytes_of(product(w.shape));
      there[static_cast<size_t>(i)] = true;
    }
    text += p.target + ": " + std::to_string(p.code.size() + p.cuda_image.size()) +
            " bytes of code, " + std::to_string(weights) + " bytes of weights\n";
  }
  return text;
}

/// The default of each kernel and what was measured to be faster here.
ModelData tuned(const std::vector<FlowGraph>& graphs, BuildModelOptions b, const CompileOptions& o,
                graph::BuildReport* report) {
  b.space = std::max(b.space, 1);
  const Tuning tuning(o.tuning, o.common.quiet);
  std::vector<graph::TargetTuning> done;
  ModelData data = graph::build_tuned(
      graphs, b, dims_from(o.tuning.dims, graphs.at(0).symbols(), o.common.quiet), tuning.options(),
      &done, report);
  for (const graph::TargetTuning& t : done) {
    if (o.common.quiet) continue;
    std::printf("%s: %s\n", t.target.c_str(), t.note.empty() ? "measured" : t.note.c_str());
    print_reports(t.reports);
  }
  return data;
}

int run_compile(const CompileOptions& o) {
  HIDET_REQUIRE(!o.output.empty(), ErrorCode::usage, "", "-o: the name of the file is empty");
  Progress progress(o.common.quiet);
  const double start = now_seconds();
  progress("import", 0, 1);
  OnnxOptions onnx;
  onnx.shapes = parse_shapes(o.shapes);
  BuildModelOptions b;
  b.targets = build_targets(o.targets);
  FlowGraph imported = from_onnx(o.model, onnx);
  if (!o.dtype.empty()) imported = graph::convert_floats(imported, DType::parse(o.dtype));
  const double after_import = now_seconds();
  progress("optimize", 0, 1);
  const std::vector<FlowGraph> graphs = optimized(imported, b.targets, {.level = o.level});
  const double after_optimize = now_seconds();
  b.space = o.space;
  b.name = o.name.empty() ? imported.name() : o.name;
  b.fast_math = o.fast_math;
  b.fewer_products = !o.plain_sums;
  b.cuda_compiler = o.cuda_compiler;
  b.threads = o.jobs;
  b.progress = [&](const std::string& phase, int done, int total) { progress(phase, done, total); };
  graph::BuildReport report;
  ModelData data =
      o.tune ? tuned(graphs, b, o, &report) : graph::build_model_data(graphs, b, &report);
  nlohmann::ordered_json targets = nlohmann::ordered_json::array();
  for (const ProgramData& p : data.programs) targets.push_back(p.target);
  const std::string added = o.common.quiet ? "" : bytes_added(data);
  // A GPU file is saved without being loaded: the GPU need not be here.
  const CompiledModel model = CompiledModel::from_data(std::move(data));
  const double after_build = now_seconds();
  progress("save", 0, 1);
  SaveOptions s;
  s.save_weights = !o.no_weights;
  s.save_source = o.save_source;
  s.save_dispatch_table = o.tune;
  model.save(o.output, s);
  const double end = now_seconds();
  const auto ms = [](double a, double b) { return (b - a) * 1e3; };
  if (!o.common.quiet)
    std::fprintf(stderr,
                 "%s"
                 "%s: %d kernels a run, %lld bytes, %.0f ms (import %.0f, optimize %.0f, build "
                 "%.0f, save %.0f)\n",
                 added.c_str(), o.output.c_str(), report.kernels,
                 static_cast<long long>(file_bytes(o.output)), ms(start, end),
                 ms(start, after_import), ms(after_import, after_optimize),
                 ms(after_optimize, after_build), ms(after_build, end));
  write_json(o.common, {{"model", o.model},
                        {"output", o.output},
                        {"targets", targets},
                        {"kernels", report.kernels},
                        {"kernels_unique", report.kernels_unique},
                        {"import_ms", ms(start, after_import)},
                        {"optimize_ms", ms(after_import, after_optimize)},
                        {"build_ms", ms(after_optimize, after_build)},
                        {"save_ms", ms(after_build, end)},
                        {"total_ms", ms(start, end)},
                        {"cache_hits", report.cache_hits},
                        {"file_bytes", file_bytes(o.output)},
                        {"peak_rss_bytes", peak_rss()},
                        {"unsupported", nlohmann::ordered_json::array()}});
  return 0;
}

}  // namespace

Command add_compile(CLI::App& root) {
  auto o = std::make_shared<CompileOptions>();
  CLI::App* app = root.add_subcommand("compile", "compile an ONNX model to a .hidet file");
  app->group("Models");
  app->add_option("model", o->model, "the .onnx file")->required();
  app->add_option("-o,--output", o->output, "the .hidet file to write")->required();
  app->add_option("--target", o->targets,
                  "cpu[:x86-64-v3,x86-64-v4|native] or cuda[:sm_80,sm_90a,ptx] (repeatable, both "
                  "kinds go in one "
                  "file); "
                  "default x86-64-v3, v4 and v4+amx");
  app->add_option("--shapes", o->shapes, "sizes or symbols of inputs: x:1x3x224x224,ids:batchxseq");
  app->add_option("--dtype", o->dtype, "f16 or bf16: the dtype of f32 arithmetic and weights")
      ->check(CLI::IsMember({"f16", "bf16"}));
  app->add_option("--space", o->space,
                  "candidates of a kernel, for tuning: 0, one default; 1, a few; 2, all")
      ->check(CLI::Range(0, 2));
  app->add_flag("--tune", o->tune,
                "measure the candidates here (--space 1 at least) and keep the fastest");
  o->tuning.add_to(*app);
  app->add_option("--opt-level", o->level, "0 nothing .. 3 everything")->check(CLI::Range(0, 3));
  app->add_option("--name", o->name, "the model's name in the file");
  app->add_flag("--no-weights", o->no_weights, "leave the weights out (set_weights brings them)");
  app->add_flag("--save-source", o->save_source, "keep emitted text and IR in the file");
  app->add_option("--cuda-compiler", o->cuda_compiler, "nvrtc or nvcc; default NVRTC where it is")
      ->check(CLI::IsMember({"nvrtc", "nvcc"}));
  app->add_flag("--fast-math", o->fast_math, "allow re-association of floating-point sums");
  app->add_flag(
      "--plain-sums", o->plain_sums,
      "no Winograd, no Strassen, no parts of bf16 on tile registers: sums of products as they are "
      "defined");
  app->add_option("-j,--jobs", o->jobs, "threads of the compiler; 0: all")
      ->check(CLI::NonNegativeNumber);
  o->common.add_to(*app);
  return {app, [o] { return run_compile(*o); }};
}

}  // namespace hidet::tools
