// command.h - what the subcommands of `hidet` share.
// Threading: one thread.
#pragma once
#include <hidet/hidet.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hidet::tools {

/// Options that every subcommand has.
struct Common {
  std::string json;  ///< file for JSON, "-": stdout, empty: none
  bool quiet = false;
  void add_to(CLI::App& app);
};

/// One line of progress on a terminal, plain lines elsewhere, nothing when quiet.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  /// Shows phase, count and time left; throws Error(cancelled) after Ctrl-C.
  void operator()(const std::string& phase, int done, int total);

 private:
  void finish_line();
  bool quiet_, terminal_, open_ = false;
  std::string phase_;
  double phase_start_ = 0, last_shown_ = 0;
};

/// Seconds of a steady clock.
double now_seconds();
/// Throws Error(cancelled) once Ctrl-C was pressed.
void check_cancelled();
void watch_for_cancel();

/// "x:1x3x224x224,ids:batchxseq" -> shapes by input name. Throws Error(usage).
std::map<std::string, std::vector<DimExpr>> parse_shapes(const std::string& text);
/// A number; throws Error(usage) that begins with `what` ("--val-range") and says `text` is none.
double parse_number(const std::string& what, const std::string& text);
/// Splits at `separator`; no empty parts.
std::vector<std::string> split(const std::string& text, char separator);

/// Prints to stdout or a file, as --json says.
void write_json(const Common& common, const nlohmann::ordered_json& value);
nlohmann::ordered_json signature_json(const TensorSignature& s);

/// How inputs are made.
struct InputOptions {
  std::vector<std::string> given;  ///< name=@file.npy or name=1,2,3
  std::string shapes;              ///< sizes of symbols through the shapes of inputs
  uint64_t seed = 0;
  std::string range;  ///< LOW,HIGH of generated values
  void add_to(CLI::App& app);
};
/// One tensor an input, on `device`; symbols without a size are 1 (said on stderr unless quiet).
std::vector<Tensor> make_inputs(const std::vector<TensorSignature>& signatures,
                                const InputOptions& options, Device device, bool quiet);

/// A .hidet file, or an .onnx compiled in memory.
CompiledModel open_model(const std::string& file, const std::string& device, bool quiet,
                         double* load_ms = nullptr);
bool is_onnx(const std::string& file);
/// The graph of an .onnx as it is built for a GPU, which need not be there. Throws Error(usage) for another file.
FlowGraph gpu_graph(const std::string& file, int opt_level);

/// Adds a subcommand; `run` returns the exit status.
using Runner = std::function<int()>;
struct Command {
  CLI::App* app;
  Runner run;
};
Command add_compile(CLI::App& root);
Command add_run(CLI::App& root);
Command add_bench(CLI::App& root);
Command add_verify(CLI::App& root);
Command add_inspect(CLI::App& root);
Command add_cache(CLI::App& root);
Command add_devices(CLI::App& root);
Command add_opt(CLI::App& root);
Command add_explain(CLI::App& root);
Command add_tune(CLI::App& root);

}  // namespace hidet::tools
