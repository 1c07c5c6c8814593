// explain.cpp - hidet explain: for each kernel of a model the operators that it stands for, what made it, its work and its text.
#include "explain_choices.h"

#include <hidet/graph/build.h>
#include <hidet/runtime/model_data.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace hidet::tools {
namespace {

using Json = nlohmann::ordered_json;

struct ExplainCommand {
  std::string file, kernel, target, records;
  Common common;
};

/// The data of a .hidet file, or of an .onnx built now.
ModelData data_of(const ExplainCommand& o) {
  if (!is_onnx(o.file)) return read_model(o.file);
  Progress progress(o.common.quiet);
  BuildModelOptions b;
  if (!o.target.empty()) b.targets = {o.target};
  b.progress = [&](const std::string& phase, int done, int total) { progress(phase, done, total); };
  const FlowGraph imported = from_onnx(o.file);
  const bool gpu = !o.target.empty() && !CpuTarget::is_cpu_target(o.target);
  return graph::build_model_data(
      optimize(gpu ? graph::on_device(imported, Device("cuda")) : imported), b);
}

/// One kernel of a program, with the steps that launch it.
struct Row {
  const KernelData* kernel;
  std::vector<std::string> operators;
  KernelChoices choices = {};
  std::string text(const char* separator) const {
    std::string out;
    for (const std::string& name : operators) out += (out.empty() ? "" : separator) + name;
    return out;
  }
};

std::vector<Row> rows_of(const ModelData& m, const ProgramData& p,
                         const std::vector<graph::TuneRecord>& records) {
  std::vector<Row> rows;
  for (size_t k = 0; k < p.kernels.size(); k++)
    rows.push_back({&p.kernels[k], {}, choices_with_times(m, p, k, records)});
  for (const Instruction& i : p.execution.instructions)
    rows[static_cast<size_t>(i.task)].operators.push_back(
        i.name.empty() ? p.kernels[static_cast<size_t>(i.task)].name : i.name);
  // Kernels that the init program alone uses are not run.
  rows.erase(
      std::remove_if(rows.begin(), rows.end(), [](const Row& r) { return r.operators.empty(); }),
      rows.end());
  return rows;
}

Json json_of(const Row& r) {
  Json inputs = Json::array(), outputs = Json::array();
  const Json choices = choices_json(r.choices);
  for (const TensorSignature& s : r.kernel->inputs) inputs.push_back(signature_json(s));
  for (const TensorSignature& s : r.kernel->outputs) outputs.push_back(signature_json(s));
  return {{"name", r.kernel->name},
          {"function", r.kernel->candidates[0].function},
          {"operators", r.operators},
          {"candidates", choices["candidates"]},
          {"chosen", choices["chosen"]},
          {"inputs", inputs},
          {"outputs", outputs},
          {"flops", r.kernel->flops.text()},
          {"workspace", r.kernel->workspace.text()}};
}

void print_whole(const Row& r, const ModelData& m, const ProgramData& p) {
  const KernelCandidate& c = r.kernel->candidates[0];
  std::printf(
      "%s  (%s)\n  operators  %s\n  made by    %s\n  flops      %s\n  workspace  %s bytes\n",
      r.kernel->name.c_str(), c.function.c_str(), r.text("\n             ").c_str(),
      c.parameters.c_str(), r.kernel->flops.text().c_str(), r.kernel->workspace.text().c_str());
  for (const TensorSignature& s : r.kernel->inputs)
    std::printf("  input      %s\n", s.text().c_str());
  for (const TensorSignature& s : r.kernel->outputs)
    std::printf("  output     %s\n", s.text().c_str());
  print_choices(r.choices);
  bool any = false;
  for (const char* ending : {".ir", ".c", ".cu"}) {
    const auto it = m.source_texts.find(p.target + "/" + c.function + ending);
    if (it == m.source_texts.end()) continue;
    any = true;
    std::printf("\n// %s\n%s", it->first.c_str(), it->second.c_str());
  }
  if (!any) std::printf("\nthe file has no text of it; hidet compile --save-source keeps it\n");
}

/// Those of --records, or those of the build cache where there are any: nothing is made.
std::vector<graph::TuneRecord> records_for(const ExplainCommand& o) {
  const std::string path = o.records.empty() ? graph::TuneRecords::default_path() : o.records;
  const bool there = !path.empty() && std::filesystem::exists(path);
  return there || !o.records.empty() ? graph::read_records(path) : std::vector<graph::TuneRecord>();
}

int run(const ExplainCommand& o) {
  const ModelData m = data_of(o);
  const auto wanted = [&](const ProgramData& p) {
    return o.target.empty() || p.target == o.target;
  };
  const auto p = std::find_if(m.programs.begin(), m.programs.end(), wanted);
  std::string targets;
  for (const ProgramData& q : m.programs) targets += (targets.empty() ? "" : ", ") + q.target;
  HIDET_REQUIRE(p != m.programs.end(), ErrorCode::usage, "", "'", o.file, "' has no program for '",
                o.target, "'; it has ", targets);
  Json list = Json::array();
  bool found = false;
  if (o.kernel.empty())
    std::printf("%s\n uses  kernel, made by, candidates, operators\n", p->target.c_str());
  for (const Row& r : rows_of(m, *p, records_for(o))) {
    const KernelCandidate& c = r.kernel->candidates[0];
    const bool named = r.kernel->name == o.kernel || c.function == o.kernel ||
                       std::count(r.operators.begin(), r.operators.end(), o.kernel) > 0;
    if (!o.kernel.empty() && !named) continue;
    found = true;
    if (o.kernel.empty())
      std::printf("%5zu  %s, %s, %zu candidates, %s\n", r.operators.size(), r.kernel->name.c_str(),
                  c.parameters.c_str(), r.kernel->candidates.size(), r.text(" ").c_str());
    else print_whole(r, m, *p);
    list.push_back(json_of(r));
  }
  HIDET_REQUIRE(found || o.kernel.empty(), ErrorCode::usage, "", "'", o.file, "' has no kernel '",
                o.kernel, "'; hidet explain ", o.file, " lists them");
  write_json(o.common, {{"model", o.file}, {"target", p->target}, {"kernels", list}});
  return 0;
}

}  // namespace

Command add_explain(CLI::App& root) {
  auto o = std::make_shared<ExplainCommand>();
  CLI::App* app = root.add_subcommand(
      "explain",
      "for each kernel: its operators, what made it, its candidates, its work, its text");
  app->group("Models");
  app->add_option("file", o->file, "the .hidet or .onnx file")->required();
  app->add_option("kernel", o->kernel, "a kernel or an operator of the model: all about it");
  app->add_option("--target", o->target,
                  "one of the file's targets; for a .onnx what to build for");
  app->add_option("--records", o->records,
                  "file of measurements; default tune.sqlite in HIDET_CACHE_DIR");
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
