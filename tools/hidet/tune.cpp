// tune.cpp - hidet tune: measures the candidates of a model's kernels and writes the choices into its file; records of measurements are
// exported, merged and locked.
#include <hidet/runtime/file.h>
#include <hidet/runtime/thread_pool.h>
#include <nlohmann/json.hpp>

#include "tuning.h"

namespace hidet::tools {
namespace {

struct TuneCommand {
  std::string file, output, device, exported, lock, unlock;
  std::vector<std::string> merged;
  int threads = 0, space = 1;
  TuningOptions tuning;
  Common common;
};

graph::TuneRecords records_of(const TuneCommand& o) {
  auto records = open_records(o.tuning.records);
  HIDET_REQUIRE(records, ErrorCode::usage, "",
                "there is no folder for tuning records: set HIDET_CACHE_DIR, or name a file with "
                "--records");
  return std::move(*records);
}

int merge(const TuneCommand& o) {
  int taken = 0, seen = 0;
  for (size_t i = 1; i < o.merged.size(); i++) {
    const auto records = graph::read_records(o.merged[i]);
    seen += static_cast<int>(records.size());
    taken += graph::merge_into(o.merged[0], records);
  }
  std::printf("%s: %d of %d records taken\n", o.merged[0].c_str(), taken, seen);
  write_json(o.common, {{"file", o.merged[0]}, {"taken", taken}, {"seen", seen}});
  return 0;
}

int export_lines(const TuneCommand& o) {
  const auto records = records_of(o).list();
  if (o.exported == "-") std::fputs(graph::to_lines(records).c_str(), stdout);
  else runtime::write_file(o.exported, graph::to_lines(records));
  if (!o.common.quiet) std::fprintf(stderr, "%zu records\n", records.size());
  return 0;
}

int set_locked(const TuneCommand& o) {
  graph::TuneRecords records = records_of(o);
  const bool lock = !o.lock.empty();
  const std::string& part = lock ? o.lock : o.unlock;
  const int count = records.set_locked(part == "all" ? "" : part, lock);
  std::printf("%d records %s\n", count, lock ? "locked" : "unlocked");
  write_json(o.common, {{"records", count}, {"locked", lock}});
  return 0;
}

/// What a file that was loaded holds, so that it is saved again as it was.
SaveOptions as_loaded(const ModelData& data) {
  SaveOptions s;
  s.save_dispatch_table = true;
  s.save_source = !data.source_texts.empty();
  std::vector<bool> used(data.sources.size(), false);
  for (const StoredWeight& w : data.stored)
    if (w.source >= 0) used[static_cast<size_t>(w.source)] = true;
  for (size_t i = 0; i < used.size(); i++)
    if (!used[i] && data.sources[i].data.defined()) s.weights = SaveWeights::both;
  return s;
}

/// The model with candidates: a file's, or an .onnx compiled in memory.
CompiledModel model_of(const TuneCommand& o) {
  if (!is_onnx(o.file)) return open_model(o.file, o.device, o.common.quiet);
  Progress progress(o.common.quiet);
  BuildModelOptions b;
  b.space = o.space;
  b.progress = [&](const std::string& phase, int done, int total) { progress(phase, done, total); };
  OnnxOptions onnx;
  if (!o.device.empty()) onnx.device = Device(o.device);
  return optimize(from_onnx(o.file, onnx)).build(b);
}

int tune(const TuneCommand& o) {
  HIDET_REQUIRE(!o.file.empty(), ErrorCode::usage, "",
                "hidet tune takes a .hidet or .onnx file, or --merge, --export, --lock, --unlock");
  if (o.threads > 0) set_num_threads(o.threads);
  CompiledModel model = model_of(o);
  std::vector<std::string> symbols;
  for (const SymbolRange& s : model.symbols()) symbols.push_back(s.name);
  const auto dims = dims_from(o.tuning.dims, symbols, o.common.quiet);
  std::vector<ModelTuneReport> reports;
  std::string place;
  {
    const Tuning tuning(o.tuning, o.common.quiet);
    place = tuning.place();
    reports = model.tune(dims, tuning.options());
  }
  const std::string output = !o.output.empty() ? o.output : is_onnx(o.file) ? "" : o.file;
  if (!output.empty()) model.save(output, as_loaded(model.data()));
  if (!o.common.quiet) {
    print_reports(reports);
    std::printf("choices in %s, measurements in %s\n",
                output.empty() ? "no file (-o names one)" : output.c_str(),
                place.empty() ? "no file" : place.c_str());
  }
  write_json(o.common, {{"model", o.file},
                        {"target", model.target()},
                        {"threads", num_threads()},
                        {"output", output},
                        {"records", place},
                        {"sizes", reports_json(reports)}});
  return 0;
}

int run(const TuneCommand& o) {
  if (!o.merged.empty()) return merge(o);
  if (!o.exported.empty()) return export_lines(o);
  if (!o.lock.empty() || !o.unlock.empty()) return set_locked(o);
  return tune(o);
}

}  // namespace

Command add_tune(CLI::App& root) {
  auto o = std::make_shared<TuneCommand>();
  CLI::App* app = root.add_subcommand(
      "tune", "measure the candidates of a model's kernels on this machine and keep the fastest");
  app->group("Models");
  app->add_option("file", o->file, "the .hidet file (hidet compile --space 1), or an .onnx");
  app->add_option("-o,--output", o->output, "the .hidet file to write; default the same file");
  app->add_option("--space", o->space, "candidates of an .onnx: 1, a few; 2, all")
      ->check(CLI::Range(1, 2));
  app->add_option("--device", o->device, "cpu or cuda:0");
  app->add_option("--threads", o->threads, "CPU threads")->check(CLI::PositiveNumber);
  o->tuning.add_to(*app);
  app->add_option("--merge", o->merged,
                  "A B ...: adds to the records A those of B ... (databases or JSON lines)")
      ->expected(2, -1)
      ->group("Records");
  app->add_option("--export", o->exported, "writes the records as JSON lines; - for stdout")
      ->group("Records");
  app->add_option("--lock", o->lock,
                  "locks the records of kernels with this in their name, or all: they stay as they "
                  "are")
      ->group("Records");
  app->add_option("--unlock", o->unlock, "unlocks them")->group("Records");
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
