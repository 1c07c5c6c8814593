// command.cpp - what the subcommands share: progress, cancelling, shapes, inputs, JSON.
#include "command.h"

#include <hidet/graph/build.h>
#include <hidet/runtime/file.h>
#include <hidet/runtime/numpy.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace hidet::tools {

namespace {
int json_output = -1;
/// What people read goes to stderr from here on, so that stdout is JSON and nothing else.
void take_stdout_for_json() {
  if (json_output >= 0) return;
  json_output = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}
}  // namespace

void Common::add_to(CLI::App& app) {
  app.add_option("--json", json, "write the results as JSON to FILE, or - for stdout")
      ->type_name("FILE")
      ->group("Output")
      ->each([](const std::string& file) {
        if (file == "-") take_stdout_for_json();
      });
  app.add_flag("-q,--quiet", quiet, "no progress and no notes")->group("Output");
}

namespace {
std::atomic<bool> cancelled{false};
void on_interrupt(int) { cancelled = true; }
}  // namespace

void watch_for_cancel() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
}
void check_cancelled() {
  if (cancelled) throw Error(ErrorCode::cancelled, "cancelled");
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO)) {}
Progress::~Progress() { finish_line(); }
void Progress::finish_line() {
  if (open_) std::fputs("\n", stderr);
  open_ = false;
}
void Progress::operator()(const std::string& phase, int done, int total) {
  check_cancelled();
  if (quiet_) return;
  const double now = now_seconds();
  if (phase != phase_) {
    finish_line();
    phase_ = phase;
    phase_start_ = now;
    last_shown_ = 0;
    if (!terminal_) std::fprintf(stderr, "%s\n", phase.c_str());
  }
  if (!terminal_ || now - phase_start_ < 0.3 || (now - last_shown_ < 0.1 && done != total)) return;
  last_shown_ = now;
  const double rate = done / std::max(now - phase_start_, 1e-9);
  const double left = rate > 0 ? (total - done) / rate : 0;
  std::fprintf(stderr, "\r%s: %d of %d, %.1f a second, %.0f s left ", phase.c_str(), done, total,
               rate, left);
  open_ = true;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (char c : text + separator) {
    if (c != separator) part += c;
    else if (!part.empty()) parts.push_back(std::exchange(part, ""));
  }
  return parts;
}

std::map<std::string, std::vector<DimExpr>> parse_shapes(const std::string& text) {
  std::map<std::string, std::vector<DimExpr>> shapes;
  for (const std::string& entry : split(text, ',')) {
    const size_t colon = entry.rfind(':');
    HIDET_REQUIRE(colon != std::string::npos && colon > 0, ErrorCode::usage, "", "--shapes: '",
                  entry, "' should be NAME:SIZExSIZE, such as x:1x3x224x224");
    std::vector<DimExpr>& shape = shapes[entry.substr(0, colon)];
    for (const std::string& size : split(entry.substr(colon + 1), 'x')) {
      const bool number = size.find_first_not_of("0123456789") == std::string::npos;
      HIDET_REQUIRE(number || std::isalpha(static_cast<unsigned char>(size[0])) || size[0] == '_',
                    ErrorCode::usage, "", "--shapes: '", size,
                    "' is no size; write a number or the name of a symbol");
      HIDET_REQUIRE(!number || size.size() < 18, ErrorCode::usage, "", "--shapes: the size '", size,
                    "' is too large");
      shape.push_back(number ? DimExpr(std::stoll(size)) : DimExpr(size));
    }
  }
  return shapes;
}

double parse_number(const std::string& what, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  HIDET_REQUIRE(!text.empty() && *end == 0, ErrorCode::usage, "", what, ": '", text,
                "' is no number");
  return value;
}

void write_json(const Common& common, const nlohmann::ordered_json& value) {
  if (common.json.empty()) return;
  const std::string text = value.dump(2) + "\n";
  if (common.json == "-") {
    FILE* out = fdopen(dup(json_output), "w");
    const bool written = out && std::fputs(text.c_str(), out) >= 0 && std::fclose(out) == 0;
    HIDET_REQUIRE(written, ErrorCode::io, "", "cannot write JSON to stdout");
    return;
  }
  runtime::write_file(common.json, text);
}

nlohmann::ordered_json signature_json(const TensorSignature& s) {
  nlohmann::ordered_json shape = nlohmann::ordered_json::array();
  for (const DimExpr& d : s.shape) {
    if (d.is_const()) shape.push_back(d.value());
    else shape.push_back(d.text());
  }
  return {
      {"name", s.name}, {"dtype", s.dtype.name()}, {"shape", shape}, {"device", s.device.name()}};
}

void InputOptions::add_to(CLI::App& app) {
  app.add_option("--input", given,
                 "NAME=@FILE.npy or NAME=1,2,3 (repeatable); others are generated")
      ->type_name("NAME=VALUE")
      ->group("Inputs");
  app.add_option("--shapes", shapes, "sizes of inputs: NAME:SIZExSIZE,...")->group("Inputs");
  app.add_option("--seed", seed, "of generated values")->group("Inputs");
  app.add_option("--val-range", range,
                 "LOW,HIGH of generated values; integers are 0 or 1 by default")
      ->group("Inputs");
}

namespace {

/// Values of the symbols, from --shapes.
SymbolMap symbols_of(const std::vector<TensorSignature>& signatures, const InputOptions& options,
                     bool quiet) {
  SymbolMap symbols;
  for (const auto& [name, shape] : parse_shapes(options.shapes)) {
    const TensorSignature* found = nullptr;
    std::string names;
    for (const TensorSignature& s : signatures) {
      if (s.name == name) found = &s;
      names += (names.empty() ? "" : ", ") + s.name;
    }
    HIDET_REQUIRE(found, ErrorCode::usage, "", "--shapes: the model has no input '", name,
                  "'; it has ", names);
    HIDET_REQUIRE(found->shape.size() == shape.size(), ErrorCode::usage, "", "--shapes: the input ",
                  found->text(), " has ", found->shape.size(), " dimensions, not ", shape.size());
    for (size_t d = 0; d < shape.size(); d++) {
      HIDET_REQUIRE(shape[d].is_const(), ErrorCode::usage, "", "--shapes: the size '",
                    shape[d].text(), "' of '", name, "' should be a number");
      if (found->shape[d].is_symbol()) {
        const auto [at, fresh] = symbols.emplace(found->shape[d].name(), shape[d].value());
        HIDET_REQUIRE(fresh || at->second == shape[d].value(), ErrorCode::usage, "",
                      "--shapes: the symbol '", at->first, "' is given the sizes ", at->second,
                      " and ", shape[d].value());
      } else
        HIDET_REQUIRE(!found->shape[d].is_const() || found->shape[d] == shape[d], ErrorCode::usage,
                      "", "--shapes: dimension ", d, " of the input ", found->text(), " is fixed; ",
                      shape[d].value(), " was given");
    }
  }
  for (const TensorSignature& s : signatures)
    for (const DimExpr& d : s.shape)
      for (const std::string& name : d.symbol_names())
        if (symbols.emplace(name, 1).second && !quiet)
          std::fprintf(stderr, "hidet: the symbol '%s' is taken as 1\n", name.c_str());
  return symbols;
}

Tensor generated(const TensorSignature& s, const Shape& shape, const InputOptions& options,
                 size_t index) {
  const std::vector<std::string> range = split(options.range, ',');
  HIDET_REQUIRE(range.empty() || range.size() == 2, ErrorCode::usage, "", "--val-range: '",
                options.range, "' should be LOW,HIGH");
  const uint64_t seed = options.seed * 1000 + index;
  const double low = range.empty() ? 0 : parse_number("--val-range", range[0]),
               high = range.empty() ? 2 : parse_number("--val-range", range[1]);
  HIDET_REQUIRE(low < high && std::fabs(low) < 0x1p53 && std::fabs(high) < 0x1p53, ErrorCode::usage,
                "", "--val-range: '", options.range, "' should be LOW,HIGH with LOW below HIGH");
  if (!s.dtype.is_float())
    return randint(shape, static_cast<int64_t>(low), static_cast<int64_t>(high), s.dtype, {}, seed);
  return range.empty() ? randn(shape, s.dtype, {}, seed)
                       : uniform(shape, low, high, s.dtype, {}, seed);
}

Tensor parse_values(const std::string& name, const std::string& text, const Shape& shape,
                    DType dtype) {
  std::vector<double> values;
  for (const std::string& v : split(text, ','))
    values.push_back(parse_number("--input " + name, v));
  HIDET_REQUIRE(static_cast<int64_t>(values.size()) == product(shape), ErrorCode::usage, "",
                "--input ", name, ": ", values.size(), " values were given for the shape ",
                shape_text(shape));
  return from_doubles(values, shape, dtype);
}

}  // namespace

std::vector<Tensor> make_inputs(const std::vector<TensorSignature>& signatures,
                                const InputOptions& options, Device device, bool quiet) {
  std::map<std::string, std::string> given;
  for (const std::string& entry : options.given) {
    const size_t equals = entry.find('=');
    HIDET_REQUIRE(equals != std::string::npos && equals > 0, ErrorCode::usage, "", "--input: '",
                  entry, "' should be NAME=@FILE.npy or NAME=1,2,3");
    given[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  const bool all_files = given.size() == signatures.size();
  const SymbolMap symbols = symbols_of(signatures, options, quiet || all_files);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < signatures.size(); i++) {
    const TensorSignature& s = signatures[i];
    Shape shape;
    for (const DimExpr& d : s.shape) shape.push_back(d.eval(symbols));
    auto it = given.find(s.name);
    Tensor t;
    if (it == given.end()) t = generated(s, shape, options, i);
    else if (!it->second.empty() && it->second[0] == '@') t = read_npy(it->second.substr(1));
    else t = parse_values(s.name, it->second, shape, s.dtype);
    if (it != given.end()) given.erase(it);
    inputs.push_back(t.to(device));
  }
  HIDET_REQUIRE(given.empty(), ErrorCode::usage, "", "--input: the model has no input '",
                given.begin()->first, "'");
  return inputs;
}

bool is_onnx(const std::string& file) {
  return file.size() > 5 && file.compare(file.size() - 5, 5, ".onnx") == 0;
}

FlowGraph gpu_graph(const std::string& file, int opt_level) {
  HIDET_REQUIRE(is_onnx(file), ErrorCode::usage, "", "the simulator takes a .onnx file, not '",
                file, "'");
  return optimize(graph::on_device(from_onnx(file), Device("cuda")), {.level = opt_level});
}

CompiledModel open_model(const std::string& file, const std::string& device, bool quiet,
                         double* load_ms) {
  const double start = now_seconds();
  CompiledModel model;
  if (is_onnx(file)) {
    Progress progress(quiet);
    BuildModelOptions o;
    o.progress = [&](const std::string& phase, int done, int total) {
      progress(phase, done, total);
    };
    OnnxOptions onnx;
    if (!device.empty()) onnx.device = Device(device);
    model = optimize(from_onnx(file, onnx)).build(o);
  } else {
    LoadOptions o;
    if (!device.empty()) o.device = Device(device);
    model = load_model(file, o);
  }
  if (load_ms) *load_ms = (now_seconds() - start) * 1e3;
  return model;
}

}  // namespace hidet::tools
