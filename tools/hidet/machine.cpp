// machine.cpp - hidet cache, hidet devices, hidet opt: the build cache, what this machine can do, the passes.
#include "command.h"

#include <hidet/backends/cache.h>
#include <hidet/backends/cpu.h>
#include <hidet/backends/cuda.h>
#include <hidet/ir/passes.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace hidet::tools {
namespace {

using Json = nlohmann::ordered_json;

int cache_list(const Common& common) {
  const auto& cache = backends::BuildCache::process();
  Json rows = Json::array();
  uint64_t total = 0;
  for (const backends::CacheEntry& e : cache.list()) {
    std::printf("%10llu  %-8s %-20s %s%s\n", static_cast<unsigned long long>(e.bytes),
                e.kind.c_str(), e.target.c_str(), e.label.c_str(), e.damaged ? "  (damaged)" : "");
    rows.push_back({{"file", e.file},
                    {"kind", e.kind},
                    {"target", e.target},
                    {"label", e.label},
                    {"bytes", e.bytes},
                    {"damaged", e.damaged}});
    total += e.bytes;
  }
  std::printf("%zu entries, %llu bytes in %s\n", rows.size(),
              static_cast<unsigned long long>(total),
              cache.enabled() ? cache.folder().c_str() : "(the cache is off)");
  write_json(common, {{"folder", cache.folder()}, {"bytes", total}, {"entries", rows}});
  return 0;
}

int cache_verify(const Common& common) {
  Json rows = Json::array();
  for (const backends::CacheEntry& e : backends::BuildCache::process().verify(true)) {
    std::printf("removed the damaged entry %s (%s)\n", e.file.c_str(), e.label.c_str());
    rows.push_back(e.file);
  }
  std::printf("%zu damaged entries\n", rows.size());
  write_json(common, {{"damaged", rows}});
  return 0;
}

int devices(const Common& common) {
  const CpuTarget host = host_cpu_target();
  static const char* const compilers[] = {"none", "Clang in process", "clang", "cc"};
  const char* compiler = compilers[static_cast<int>(backends::cpu_compiler())];
  std::printf("cpu      %s, %d cores; compiler: %s\n", host.name().c_str(), available_cpus(),
              compiler);
  Json rows = Json::array();
  for (const backends::CudaToolRow& r : backends::cuda_tool_rows()) {
    std::printf("%-8s %s%s%s; %s\n", r.kind.c_str(), r.name.c_str(), r.version.empty() ? "" : " ",
                r.version.c_str(), r.detail.c_str());
    rows.push_back({{"kind", r.kind},
                    {"name", r.name},
                    {"version", r.version},
                    {"detail", r.detail},
                    {"usable", r.usable}});
  }
  write_json(common, {{"cpu",
                       {{"target", host.name()},
                        {"cores", available_cpus()},
                        {"compiler", compiler},
                        {"identity", backends::compiler_identity()}}},
                      {"cuda", rows}});
  return 0;
}

struct OptOptions {
  std::string file;
  std::vector<std::string> passes;
  bool list = false, dump = false;
};

/// The module of a .hir file; of a golden file what stands before the line ---.
ir::Module read_module(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  HIDET_REQUIRE(in && text, ErrorCode::bad_file, "", "cannot read the IR file '", file, "'");
  const std::string all = text.str();
  const size_t end = all.find("\n---\n");
  ir::Module module = ir::parse(all.substr(0, end == std::string::npos ? end : end + 1), file);
  ir::verify(module);
  return module;
}

int opt(const OptOptions& options) {
  const std::vector<ir::Pass> all = ir::all_passes();
  if (options.list) {
    for (const ir::Pass& p : all) std::printf("%s\n", p.name);
    return 0;
  }
  HIDET_REQUIRE(!options.file.empty(), ErrorCode::usage, "",
                "hidet opt takes a file of IR text, or --list");
  ir::Module module = read_module(options.file);
  for (const std::string& name : options.passes) {
    const auto pass =
        std::find_if(all.begin(), all.end(), [&](const ir::Pass& p) { return p.name == name; });
    HIDET_REQUIRE(pass != all.end(), ErrorCode::usage, "", "there is no pass '", name,
                  "'; hidet opt --list names them all");
    module = ir::run_passes(std::move(module), {*pass});
    if (options.dump) std::printf("// after %s\n%s", pass->name, ir::print(module).c_str());
  }
  if (!options.dump) std::printf("%s", ir::print(module).c_str());
  return 0;
}

}  // namespace

Command add_cache(CLI::App& root) {
  auto common = std::make_shared<Common>();
  auto label = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand(
      "cache", "the build cache: list, clear, check, say why something was a miss");
  app->require_subcommand(1);
  app->group("Machine");
  CLI::App* ls = app->add_subcommand("ls", "list the entries");
  CLI::App* clear = app->add_subcommand("clear", "remove all entries");
  CLI::App* verify = app->add_subcommand("verify", "check all entries and remove damaged ones");
  CLI::App* why = app->add_subcommand("why", "how entries of one kernel differ");
  why->add_option("kernel", *label, "the kernel's name")->required();
  for (CLI::App* sub : {ls, clear, verify, why}) common->add_to(*sub);
  return {app, [=] {
            auto& cache = backends::BuildCache::process();
            if (ls->parsed()) return cache_list(*common);
            if (verify->parsed()) return cache_verify(*common);
            if (why->parsed()) return std::printf("%s\n", cache.why_label(*label).c_str()), 0;
            const uint64_t freed = cache.clear();
            std::printf("freed %llu bytes\n", static_cast<unsigned long long>(freed));
            write_json(*common, {{"freed_bytes", freed}});
            return 0;
          }};
}

Command add_devices(CLI::App& root) {
  auto common = std::make_shared<Common>();
  CLI::App* app =
      root.add_subcommand("devices", "CPU levels, GPUs, drivers and compilers of this machine");
  app->group("Machine");
  common->add_to(*app);
  return {app, [common] { return devices(*common); }};
}

Command add_opt(CLI::App& root) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* app = root.add_subcommand("opt", "runs IR passes on the text form of a module");
  app->group("Compiler");
  app->add_option("FILE", options->file, "a .hir file; text after a line --- is left out");
  app->add_option("--passes", options->passes, "names of passes, in order: a,b")->delimiter(',');
  app->add_flag("--list", options->list, "names of all passes");
  app->add_flag("--dump-after", options->dump, "print the module after each pass");
  return {app, [options] { return opt(*options); }};
}

}  // namespace hidet::tools
