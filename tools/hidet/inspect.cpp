// inspect.cpp - hidet inspect: what is in a file and whether it can be loaded here, without loading code.
#include "command.h"

#include <hidet/runtime/model_data.h>
#include <nlohmann/json.hpp>

namespace hidet::tools {
namespace {

struct InspectCommand {
  std::string file;
  bool verify = false;
  Common common;
};

using Json = nlohmann::ordered_json;

Json signatures(const std::vector<TensorSignature>& list) {
  Json out = Json::array();
  for (const TensorSignature& s : list) out.push_back(signature_json(s));
  return out;
}

int inspect_onnx(const InspectCommand& o) {
  const FlowGraph g = from_onnx(o.file);
  std::map<std::string, int> ops;
  for (const FlowGraph::Node& n : g.nodes()) ops[n.op->def->name]++;
  std::printf("%s: ONNX, %zu operators after import, all supported\n", o.file.c_str(),
              g.nodes().size());
  for (const TensorSignature& s : g.inputs()) std::printf("  input   %s\n", s.text().c_str());
  for (const TensorSignature& s : g.outputs()) std::printf("  output  %s\n", s.text().c_str());
  Json table = Json::object();
  for (const auto& [name, count] : ops) {
    std::printf("  %5d  %s\n", count, name.c_str());
    table[name] = count;
  }
  write_json(o.common, {{"format", "onnx"},
                        {"inputs", signatures(g.inputs())},
                        {"outputs", signatures(g.outputs())},
                        {"operators", table},
                        {"unsupported", Json::array()}});
  return 0;
}

int run(const InspectCommand& o) {
  if (is_onnx(o.file)) return inspect_onnx(o);
  LoadOptions load;
  load.verify = o.verify ? Verify::full : Verify::code;
  const ModelData m = read_model(o.file, load);
  const LoadVerdict verdict = can_load(o.file, load);
  int64_t weights = 0;
  for (const StoredWeight& w : m.stored) weights += w.dtype.bytes_of(product(w.shape));
  std::printf("%s: hidet model '%s'\n", o.file.c_str(), m.name.c_str());
  for (const TensorSignature& s : m.inputs) std::printf("  input   %s\n", s.text().c_str());
  for (const TensorSignature& s : m.outputs) std::printf("  output  %s\n", s.text().c_str());
  Json targets = Json::array(), symbols = Json::array(), kernels = Json::object(),
       memory = Json::object();
  for (const SymbolRange& s : m.symbols) symbols.push_back(s.name);
  for (const ProgramData& p : m.programs) {
    targets.push_back(p.target);
    kernels[p.target] = p.execution.instructions.size();
    memory[p.target] = {{"cpu", p.workspace_cpu.text()}, {"cuda", p.workspace_cuda.text()}};
    std::printf(
        "  target  %s: %zu kernels a run (%zu distinct), %zu bytes of code, workspace %s bytes\n",
        p.target.c_str(), p.execution.instructions.size(), p.kernels.size(),
        p.code.size() + p.cuda_image.size(), p.workspace_cpu.text().c_str());
  }
  std::printf("  weights %lld bytes in %zu tensors\n  can be loaded here: %s (%s)\n",
              static_cast<long long>(weights), m.stored.size(), verdict.text(),
              verdict.reason.c_str());
  write_json(o.common, {{"format", "hidet/1"},
                        {"name", m.name},
                        {"inputs", signatures(m.inputs)},
                        {"outputs", signatures(m.outputs)},
                        {"symbols", symbols},
                        {"targets", targets},
                        {"kernels", kernels},
                        {"weights_bytes", weights},
                        {"memory", memory},
                        {"can_load", verdict.text()},
                        {"reason", verdict.reason}});
  return 0;
}

}  // namespace

Command add_inspect(CLI::App& root) {
  auto o = std::make_shared<InspectCommand>();
  CLI::App* app = root.add_subcommand(
      "inspect", "what is in a .hidet or .onnx file, and whether it can be loaded here");
  app->add_option("file", o->file, "the .hidet or .onnx file")->required();
  app->add_flag("--verify", o->verify, "check the weights against their digests, too");
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
