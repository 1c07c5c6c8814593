// bench.cpp - hidet bench: latency of a model.
#include "command.h"
#include "roofline.h"

#include <hidet/backends/cpu.h>
#include <hidet/runtime/thread_pool.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace hidet::tools {
namespace {

struct BenchCommand {
  std::string file, device, percentiles = "50,90,99", trace;
  double warm_up_ms = 200, duration_s = 3;
  int iterations = 0, threads = 0;
  bool profile = false, memory = false, cuda_graph = false;
  InputOptions inputs;
  Common common;
};

double percentile(const std::vector<double>& sorted, double p) {
  const double at = p / 100 * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

SymbolMap symbols_from(const CompiledModel& model, const std::vector<Tensor>& inputs) {
  SymbolMap map;
  for (size_t i = 0; i < inputs.size(); i++)
    for (size_t d = 0; d < model.inputs()[i].shape.size(); d++)
      if (model.inputs()[i].shape[d].is_symbol())
        map[model.inputs()[i].shape[d].name()] = inputs[i].shape()[d];
  return map;
}

std::vector<double> measure(const CompiledModel& model, const std::vector<Tensor>& inputs,
                            const BenchCommand& o) {
  const auto once = [&] {
    const double start = now_seconds();
    const std::vector<Tensor> out = o.cuda_graph ? model.cuda_graph(inputs) : model.run(inputs);
    if (model.device().is_cuda()) (void)out[0].cpu();
    return (now_seconds() - start) * 1e3;
  };
  for (const double start = now_seconds(); (now_seconds() - start) * 1e3 < o.warm_up_ms;) {
    once();
    check_cancelled();
  }
  std::vector<double> times;
  for (const double start = now_seconds(); o.iterations > 0
                                               ? static_cast<int>(times.size()) < o.iterations
                                               : now_seconds() - start < o.duration_s;) {
    times.push_back(once());
    check_cancelled();
  }
  if (times.empty()) times.push_back(once());
  return times;
}

/// The percentiles to print, as given; the median is always printed.
std::vector<std::pair<std::string, double>> percentiles_of(const std::string& text) {
  std::vector<std::pair<std::string, double>> list;
  for (const std::string& p : split(text, ',')) {
    const double value = parse_number("--percentile", p);
    HIDET_REQUIRE(value >= 0 && value <= 100, ErrorCode::usage, "", "--percentile: ", p,
                  " is not from 0 to 100");
    if (value != 50) list.emplace_back(p, value);
  }
  return list;
}

/// The times of each operator; on a CPU with a compiler beside what it can do at most, which is returned, too.
nlohmann::ordered_json print_profile(const Profile& p, Device device) {
  if (device.is_cuda() || backends::cpu_compiler() == backends::CpuCompiler::none)
    return std::printf("%s", p.text().c_str()), nullptr;
  const Roofline roof = measure_roofline();
  const MachineLimits limits{roof.gflops, std::max(roof.read_gbps, roof.copy_gbps)};
  const double share = p.total_ms > 0 ? p.least_ms(limits) / p.total_ms : 0;
  std::printf(
      "%slimits with %d threads: %.1f GFLOP/s, read %.1f GB/s, copy %.1f GB/s; the run reached "
      "%.0f %%\n",
      p.text(limits).c_str(), num_threads(), roof.gflops, roof.read_gbps, roof.copy_gbps,
      100 * share);
  return {{"gflops", roof.gflops},
          {"read_gbps", roof.read_gbps},
          {"copy_gbps", roof.copy_gbps},
          {"share", share}};
}

int run(const BenchCommand& o) {
  const auto wanted = percentiles_of(o.percentiles);
  if (o.threads > 0) set_num_threads(o.threads);
  double load_ms = 0;
  const CompiledModel model = open_model(o.file, o.device, o.common.quiet, &load_ms);
  const std::vector<Tensor> inputs =
      make_inputs(model.inputs(), o.inputs, model.device(), o.common.quiet);
  std::vector<double> times = measure(model, inputs, o);
  std::sort(times.begin(), times.end());
  double total = 0;
  for (double t : times) total += t;
  const int64_t peak = model.memory(symbols_from(model, inputs)).cpu.total() +
                       model.memory(symbols_from(model, inputs)).cuda.total();
  nlohmann::ordered_json ops = nlohmann::ordered_json::array(), limits;
  if (o.profile || !o.trace.empty()) {
    const Profile p = model.profile(inputs);
    if (!o.trace.empty()) p.save_trace(o.trace);
    if (o.profile) limits = print_profile(p, model.device());
    for (const OperatorTime& t : p.operators)
      ops.push_back({{"name", t.name},
                     {"kernel", t.kernel},
                     {"candidate", t.candidate},
                     {"ms", t.milliseconds},
                     {"gflops", t.gflops()},
                     {"gbps", t.gbps()}});
  }
  std::printf("%s on %s, %d threads, %zu runs: min %.3f ms, median %.3f ms", o.file.c_str(),
              model.device().name().c_str(), num_threads(), times.size(), times.front(),
              percentile(times, 50));
  for (const auto& [text, p] : wanted)
    std::printf(", p%s %.3f ms", text.c_str(), percentile(times, p));
  std::printf(", %.1f runs a second, load %.1f ms\n",
              1e3 * static_cast<double>(times.size()) / total, load_ms);
  if (o.memory) std::printf("peak memory: %lld bytes\n", static_cast<long long>(peak));
  write_json(o.common, {{"model", o.file},
                        {"device", model.device().name()},
                        {"threads", num_threads()},
                        {"runs", times.size()},
                        {"min_ms", times.front()},
                        {"median_ms", percentile(times, 50)},
                        {"p90_ms", percentile(times, 90)},
                        {"p99_ms", percentile(times, 99)},
                        {"throughput_per_s", 1e3 * static_cast<double>(times.size()) / total},
                        {"load_ms", load_ms},
                        {"peak_bytes", peak},
                        {"limits", limits},
                        {"ops", ops}});
  return 0;
}

}  // namespace

Command add_bench(CLI::App& root) {
  auto o = std::make_shared<BenchCommand>();
  CLI::App* app = root.add_subcommand("bench", "measure the latency of a .hidet or .onnx file");
  app->group("Models");
  app->add_option("file", o->file, "the .hidet or .onnx file")->required();
  app->add_option("--warm-up", o->warm_up_ms, "milliseconds before measuring")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--duration", o->duration_s, "seconds of measuring")->check(CLI::PositiveNumber);
  app->add_option("--iterations", o->iterations, "number of runs instead of a duration")
      ->check(CLI::PositiveNumber);
  app->add_option("--threads", o->threads, "CPU threads")->check(CLI::PositiveNumber);
  app->add_option("--percentile", o->percentiles, "50,90,99");
  app->add_option("--device", o->device, "cpu or cuda:0");
  app->add_flag("--cuda-graph", o->cuda_graph, "record the run as a CUDA graph and replay it");
  app->add_flag("--profile", o->profile, "times of each operator");
  app->add_option("--trace", o->trace, "write a Chrome trace of one run");
  app->add_flag("--memory", o->memory, "print the peak memory");
  o->inputs.add_to(*app);
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
