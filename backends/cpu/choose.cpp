// choose.cpp - which compiler makes CPU code here, and which targets it can make.
// The in-process Clang comes first, then a C compiler as a child; that one is told once.
// Threading: thread-safe; the choice is made on first use.
#include <mutex>

#include "cpu/compiler.h"
#include "hidet/runtime/error.h"
#include "hidet/runtime/log.h"

namespace hidet::backends {
namespace cpu {
namespace {

struct Choice {
  std::mutex mutex;
  bool made = false;
  bool plugin_retired = false;
  std::string why_no_plugin;
  std::shared_ptr<Compiler> compiler;
};

Choice& choice() {
  static Choice* const c = new Choice;  // lives on: other threads may build while the process ends
  return *c;
}

void choose(Choice& c) {
  if (!c.plugin_retired) c.compiler = make_plugin_compiler(c.why_no_plugin);
  if (c.compiler == nullptr) {
    c.compiler = make_driver_compiler();
    if (c.compiler != nullptr)
      log_once("cpu compiler",
               detail::concat("CPU code is compiled by '", c.compiler->identity(),
                              "' as a child process, which is slower: ", c.why_no_plugin));
  }
  c.made = true;
}

}  // namespace

std::shared_ptr<Compiler> current_compiler() {
  Choice& c = choice();
  std::lock_guard lock(c.mutex);
  if (!c.made) choose(c);
  return c.compiler;
}

std::shared_ptr<Compiler> require_compiler() {
  auto compiler = current_compiler();
  HIDET_REQUIRE(compiler != nullptr, ErrorCode::device, "",
                "no compiler for CPU code was found: not libhidet_clang.so (",
                choice().why_no_plugin, "), and neither clang-19, cc, gcc nor clang in PATH");
  return compiler;
}

void retire_plugin(const std::string& reason) {
  Choice& c = choice();
  std::lock_guard lock(c.mutex);
  if (c.plugin_retired) return;
  c.plugin_retired = true;
  c.made = false;
  c.compiler = nullptr;
  c.why_no_plugin = reason;
}

}  // namespace cpu

CpuCompiler cpu_compiler() {
  const auto compiler = cpu::current_compiler();
  return compiler == nullptr ? CpuCompiler::none : compiler->kind();
}

std::string compiler_identity() {
  const auto compiler = cpu::current_compiler();
  return compiler == nullptr ? "" : compiler->identity();
}

CpuTarget default_target() {
  CpuTarget target = host_cpu_target();
  const auto compiler = cpu::current_compiler();
  if (compiler == nullptr || target.level <= compiler->max_level()) return target;
  CpuTarget lower{.level = compiler->max_level(), .features = 0};
  for (const CpuFeature& feature : cpu_features())
    if (feature.least_level <= lower.level && target.has(feature.name))
      lower = CpuTarget::parse(lower.name() + "+" + feature.name);
  return lower;
}

CpuTarget resolve_target(const std::string& text) {
  if (text == "native") return default_target();
  const CpuTarget target = CpuTarget::parse(text);
  const auto compiler = cpu::require_compiler();
  HIDET_REQUIRE(target.level <= compiler->max_level(), ErrorCode::device, "", "code for ",
                target.name(), " needs Clang 19 (libhidet_clang.so), and here is only '",
                compiler->identity(), "': ask for x86-64-v", compiler->max_level(), " or lower");
  return target;
}

}  // namespace hidet::backends
