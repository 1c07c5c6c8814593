// build.cpp - units to one shared object: cached objects, parallel compiles, one link.
// Needs: a compiler (choose.cpp). Leaves: entries in the build cache. Deterministic: objects are linked in
// the order of the units, whichever was compiled first.
// Threading: thread-safe.
#include <chrono>

#include "cpu/compiler.h"
#include "cpu/half.h"
#include "cpu/keep.h"
#include "cpu/workers.h"
#include "hidet/backends/cache.h"
#include "hidet/runtime/error.h"

namespace hidet::backends {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// One build with one compiler.
class Build {
 public:
  Build(std::span<const Unit> units, const CpuOptions& options, cpu::Compiler& compiler,
        BuildStats& stats)
      : units_(units),
        options_(options),
        compiler_(compiler),
        stats_(stats),
        target_(resolve_target(options.target)),
        cache_(options.use_cache ? &BuildCache::process() : nullptr) {}

  cpu::Bytes run() {
    CacheKey key = start_key("library", units_[0].name);
    for (const Unit& unit : units_) key.add("source", unit.c_source);
    key.add("half", cpu::half_support().c_source);
    if (auto found = look_up(key)) {
      stats_.library_cached = true;
      stats_.cache_hits = stats_.units;
      return std::move(*found);
    }
    compile_all();
    if (cpu::needs_half_support(objects_)) add_half_support();
    const auto start = Clock::now();
    cpu::Bytes library = compiler_.link(objects_);
    stats_.link_ms = ms_since(start);
    keep(key, library);
    return library;
  }

 private:
  CacheKey start_key(std::string_view kind, const std::string& label) const {
    return CacheKey(kind, label)
        .add("target", target_.name())
        .add("compiler", compiler_.identity())
        .add("options", compiler_.options_text(target_, options_.fast_math));
  }
  CacheKey object_key(const Unit& unit) const {
    return start_key("object", unit.name).add("source", unit.c_source);
  }

  std::optional<cpu::Bytes> look_up(const CacheKey& key) {
    return cache_ == nullptr ? std::nullopt : cache_->get(key);
  }
  void keep(const CacheKey& key, const cpu::Bytes& bytes) {
    if (cache_ != nullptr) cache_->put(key, bytes);
  }

  void add_half_support() {
    const Unit& unit = cpu::half_support();
    auto object = look_up(object_key(unit));
    if (!object) {
      cpu::run_on_workers(1, 1, [&](int) { object = compile_and_keep(unit); }, {});
    }
    objects_.push_back(std::move(*object));
  }

  cpu::Bytes compile_and_keep(const Unit& unit) {
    cpu::Bytes object = compiler_.compile(unit, target_, options_.fast_math, cpu::Output::object);
    keep(object_key(unit), object);
    return object;
  }

  void compile_all() {
    const auto start = Clock::now();
    objects_.resize(units_.size());
    std::vector<size_t> missing;
    for (size_t i = 0; i < units_.size(); ++i) {
      if (auto found = look_up(object_key(units_[i]))) objects_[i] = std::move(*found);
      else missing.push_back(i);
    }
    stats_.cache_hits = static_cast<int>(units_.size() - missing.size());
    cpu::run_on_workers(
        static_cast<int>(missing.size()), options_.jobs > 0 ? options_.jobs : available_cpus(),
        [&](int i) { objects_[missing[i]] = compile_and_keep(units_[missing[i]]); },
        [&](int done) {
          return !options_.progress || options_.progress(stats_.cache_hits + done, stats_.units);
        });
    stats_.compiled = static_cast<int>(missing.size());
    stats_.compile_ms = ms_since(start);
  }

  std::span<const Unit> units_;
  const CpuOptions& options_;
  cpu::Compiler& compiler_;
  BuildStats& stats_;
  CpuTarget target_;
  BuildCache* cache_;
  std::vector<cpu::Bytes> objects_;
};

/// Runs `work` with the compiler at hand, and once more with the next one when LLVM crashed.
template <class Work>
auto with_compiler(const Work& work) {
  const auto compiler = cpu::require_compiler();
  try {
    return work(*compiler);
  } catch (const cpu::CompilerCrashed& crash) {
    cpu::retire_plugin(crash.what());
  }
  return work(*cpu::require_compiler());
}

}  // namespace

std::vector<uint8_t> build_shared_object(std::span<const Unit> units, const CpuOptions& options,
                                         BuildStats* stats) {
  HIDET_CHECK(!units.empty(), "a shared object needs at least one unit");
  const auto start = Clock::now();
  cpu::keep_texts(units);
  BuildStats done;
  auto library = with_compiler([&](cpu::Compiler& compiler) {
    done = BuildStats{.units = static_cast<int>(units.size())};
    return Build(units, options, compiler, done).run();
  });
  done.total_ms = ms_since(start);
  cpu::keep_library(units, library);
  if (stats != nullptr) *stats = done;
  return library;
}

std::string emit_assembly(const std::string& c_source, const CpuOptions& options) {
  const auto bytes = with_compiler([&](cpu::Compiler& compiler) {
    const CpuTarget target = resolve_target(options.target);
    cpu::Bytes text;
    cpu::run_on_workers(1, 1,
                        [&](int) {
                          text = compiler.compile({"assembly", c_source}, target, options.fast_math,
                                                  cpu::Output::assembly);
                        },
                        {});
    return text;
  });
  return {bytes.begin(), bytes.end()};
}

}  // namespace hidet::backends
