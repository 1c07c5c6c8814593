// inspect.cpp - hidet inspect: what is in a file and whether it can be loaded here, without loading code.
#include "command.h"

#include <hidet/graph/onnx.h>
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

/// Prints the tensors, each after `title`.
Json signatures(const std::vector<TensorSignature>& list, const char* title) {
  Json out = Json::array();
  for (const TensorSignature& s : list) {
    std::printf("  %-7s %s\n", title, s.text().c_str());
    out.push_back(signature_json(s));
  }
  return out;
}

int inspect_onnx_file(const InspectCommand& o) {
  const OnnxInfo info = inspect_onnx(o.file);
  std::printf("%s: ONNX, opset %lld%s%s, %zu nodes\n", o.file.c_str(),
              static_cast<long long>(info.opset), info.producer.empty() ? "" : ", made by ",
              info.producer.c_str(), info.nodes.size());
  Json inputs = Json::array(), outputs = Json::array(), problem;
  try {
    const FlowGraph g = from_onnx(o.file);
    inputs = signatures(g.inputs(), "input");
    outputs = signatures(g.outputs(), "output");
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unsupported) throw;
    problem = e.what();
  }
  Json table = Json::object(), unsupported = Json::array();
  for (const auto& [name, count] : info.operators) {
    const bool known = !info.unsupported.count(name);
    std::printf("  %5lld  %s%s\n", static_cast<long long>(count), name.c_str(),
                known ? "" : "  (not supported)");
    table[name] = count;
  }
  for (const auto& [name, nodes] : info.unsupported)
    unsupported.push_back({{"operator", name}, {"nodes", nodes}});
  std::printf("  can be compiled: %s%s\n", problem.is_null() ? "yes" : "no, ",
              problem.is_null() ? "" : problem.get<std::string>().c_str());
  write_json(o.common, {{"format", "onnx"},
                        {"opset", info.opset},
                        {"producer", info.producer},
                        {"inputs", inputs},
                        {"outputs", outputs},
                        {"operators", table},
                        {"unsupported", unsupported},
                        {"reason", problem}});
  return 0;
}

int run(const InspectCommand& o) {
  if (is_onnx(o.file)) return inspect_onnx_file(o);
  LoadOptions load;
  load.verify = o.verify ? Verify::full : Verify::code;
  const ModelData m = read_model(o.file, load);
  const LoadVerdict verdict = can_load(o.file, load);
  int64_t weights = 0;
  for (const StoredWeight& w : m.stored) weights += w.dtype.bytes_of(product(w.shape));
  std::printf("%s: hidet model '%s'\n", o.file.c_str(), m.name.c_str());
  const Json inputs = signatures(m.inputs, "input"), outputs = signatures(m.outputs, "output");
  Json targets = Json::array(), symbols = Json::array(), kernels = Json::object(),
       memory = Json::object();
  for (const SymbolRange& s : m.symbols) {
    Json symbol = {{"name", s.name}, {"min", s.min}};
    if (s.max != INT64_MAX) symbol["max"] = s.max;
    symbols.push_back(symbol);
  }
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
                        {"inputs", inputs},
                        {"outputs", outputs},
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
  app->group("Models");
  app->add_option("file", o->file, "the .hidet or .onnx file")->required();
  app->add_flag("--verify", o->verify, "check the weights against their digests, too");
  o->common.add_to(*app);
  return {app, [o] { return run(*o); }};
}

}  // namespace hidet::tools
