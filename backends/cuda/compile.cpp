// compile.cpp - units of CUDA text to one code object: cache, parallel compiles, bundle.
// Needs: NVRTC or nvcc for what the cache has not. Leaves: cache entries; with HIDET_KEEP the text that was refused.
// Threading: thread-safe; progress runs on the caller's thread.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hidet/backends/cache.h>
#include <hidet/backends/cuda.h>
#include <hidet/runtime/cuda_bundle.h>
#include <hidet/runtime/error.h>

#include "cuda/compilers.h"

namespace hidet::backends {
namespace {

namespace fs = std::filesystem;
using cuda::Outcome;

constexpr int kLogLines = 8;

struct Compiler {
  std::string identity;
  std::string headers;
  Outcome (*run)(const cuda::Job&);
};

Compiler choose_compiler(const std::string& wanted) {
  HIDET_REQUIRE(wanted.empty() || wanted == "nvrtc" || wanted == "nvcc", ErrorCode::usage, "", "'",
                wanted, "' is no CUDA compiler: write nvrtc or nvcc");
  if (wanted != "nvcc") {
    const cuda::Found& found = cuda::nvrtc();
    if (found.problem.empty()) return {found.identity, found.headers, cuda::run_nvrtc};
    HIDET_REQUIRE(wanted.empty(), ErrorCode::device, "", found.problem);
  }
  const cuda::Found found = cuda::nvcc();
  if (found.problem.empty()) return {found.identity, found.headers, cuda::run_nvcc};
  const std::string both = wanted.empty() ? cuda::nvrtc().problem + "; " : "";
  throw Error(ErrorCode::device, both + found.problem);
}

std::string first_lines(const std::string& text) {
  size_t end = 0;
  for (int line = 0; line < kLogLines && end != text.npos; ++line)
    end = text.find('\n', end ? end + 1 : 0);
  std::string head = text.substr(0, end);
  while (!head.empty() && (head.back() == '\n' || head.back() == ' ')) head.pop_back();
  return head;
}

// Where the text was kept, as a clause for the message; empty unless HIDET_KEEP is set.
std::string keep_source(const CudaUnit& unit) {
  const char* keep = std::getenv("HIDET_KEEP");
  if (!keep || !*keep) return "";
  // A path names the folder; any other value only switches it on.
  const fs::path folder = std::string(keep).find('/') != std::string::npos
                              ? fs::path(keep)
                              : fs::temp_directory_path() / "hidet-keep";
  std::string name = unit.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path file = folder / (name.substr(0, 100) + ".cu");
  std::ofstream out(file, std::ios::binary);
  out << unit.source;
  return out.flush().good() ? "; the text is in " + file.string()
                            : "; the text could not be written to " + file.string();
}

[[noreturn]] void refuse(const CudaUnit& unit, const CudaArch& arch, const Compiler& compiler,
                         const std::string& log) {
  const bool needs_headers = unit.source.find("#include <cuda_") != std::string::npos;
  HIDET_REQUIRE(!needs_headers || !compiler.headers.empty(), ErrorCode::device, unit.name,
                "the CUDA headers (cuda_fp16.h) were found neither beside NVRTC nor in "
                "HIDET_CUDA_ROOT, CUDA_HOME or /usr/local/cuda: "
                "install the CUDA toolkit or the Python packages nvidia-cuda-runtime, "
                "nvidia-cuda-crt and nvidia-cuda-cccl");
  // NVRTC's words and nvcc's for an architecture that they do not know.
  HIDET_REQUIRE(log.find("--gpu-architecture (-arch)") == std::string::npos &&
                    log.find("option 'gpu-architecture'") == std::string::npos,
                ErrorCode::usage, "", "'", arch.name, "' is no CUDA target of ", compiler.identity,
                "; known ones are ", fmt::format("{}", fmt::join(cuda_targets(), ", ")));
  throw Error(ErrorCode::internal,
              fmt::format("the CUDA compiler refuses the generated code for {}{}:\n{}", arch.name,
                          keep_source(unit), first_lines(log)),
              unit.name);
}

CacheKey key_of(const CudaUnit& unit, const CudaArch& arch, const CudaOptions& options,
                const Compiler& compiler) {
  CacheKey key(arch.is_ptx ? "ptx" : "cubin", unit.name);
  key.add("compiler", compiler.identity).add("target", arch.code);
  key.add("options", fmt::format("{}", fmt::join(cuda::common_options(arch, options), " ")));
  return key.add("source", unit.source);
}

// One compile of many units: what the workers and the caller share.
struct Batch {
  std::span<const CudaUnit> units;
  const CudaArch& arch;
  const CudaOptions& options;
  const Compiler& compiler;
  std::vector<std::vector<uint8_t>> code;
  std::vector<size_t> open = {};  // units that the cache has not
  std::atomic<size_t> next{0};
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  std::condition_variable changed;
  int done = 0, workers = 0;
  std::exception_ptr failure = nullptr;
  size_t failed_unit = SIZE_MAX;
  std::vector<std::string> reports = {};

  void compile_one(size_t unit) {
    Outcome outcome = compiler.run({units[unit], arch, options, cancelled});
    if (!outcome.ok) refuse(units[unit], arch, compiler, outcome.log);
    if (options.use_cache)
      BuildCache::process().put(key_of(units[unit], arch, options, compiler), outcome.code);
    code[unit] = std::move(outcome.code);
    std::lock_guard lock(mutex);
    reports[unit] = std::move(outcome.log);
    ++done;
  }

  // Takes units until none is left or one has failed.
  void work() {
    for (size_t i = next++; i < open.size() && !cancelled; i = next++) {
      try {
        compile_one(open[i]);
      } catch (...) {
        std::lock_guard lock(mutex);
        // The first unit's error, whichever worker was faster.
        if (open[i] < failed_unit) {
          failed_unit = open[i];
          failure = std::current_exception();
        }
        cancelled = true;
      }
      changed.notify_one();
    }
    std::lock_guard lock(mutex);
    --workers;
    changed.notify_one();
  }
};

void look_in_cache(Batch& batch) {
  for (size_t i = 0; i < batch.units.size(); ++i) {
    if (batch.options.use_cache)
      if (auto found = BuildCache::process().get(
              key_of(batch.units[i], batch.arch, batch.options, batch.compiler))) {
        batch.code[i] = std::move(*found);
        continue;
      }
    batch.open.push_back(i);
  }
}

// Waits for the workers and tells progress; a refusal to go on cancels them.
void report_progress(Batch& batch, int cached) {
  const int total = static_cast<int>(batch.units.size());
  const auto& progress = batch.options.progress;
  bool stopped = progress && cached > 0 && !progress(cached, total);
  if (stopped) batch.cancelled = true;
  std::unique_lock lock(batch.mutex);
  int told = 0;
  while (batch.workers > 0 || (told < batch.done && !stopped)) {
    if (told < batch.done && !stopped && progress) {
      told = batch.done;
      lock.unlock();
      stopped = !progress(cached + told, total);
      if (stopped) batch.cancelled = true;
      lock.lock();
      continue;
    }
    told = batch.done;
    if (batch.workers > 0) batch.changed.wait(lock);
  }
  lock.unlock();
  HIDET_REQUIRE(!stopped, ErrorCode::cancelled, "", "the compile of CUDA code was cancelled");
}

void compile_open(Batch& batch) {
  const unsigned cpus = std::max(1U, std::thread::hardware_concurrency());
  const size_t wanted = batch.options.jobs > 0 ? static_cast<size_t>(batch.options.jobs) : cpus;
  batch.workers = static_cast<int>(std::min(wanted, batch.open.size()));
  std::vector<std::thread> threads;
  for (int i = batch.workers; i > 0; --i) threads.emplace_back([&] { batch.work(); });
  const auto join = [&] {
    for (std::thread& thread : threads) thread.join();
  };
  try {
    report_progress(batch, static_cast<int>(batch.units.size() - batch.open.size()));
  } catch (...) {
    batch.cancelled = true;
    join();
    throw;
  }
  join();
  if (batch.failure) std::rethrow_exception(batch.failure);
}

}  // namespace

namespace cuda {

std::vector<std::string> common_options(const CudaArch& arch, const CudaOptions& options) {
  std::vector<std::string> list = {"--gpu-architecture=" + arch.code, "--std=c++17",
                                   "--ptxas-options=-v"};
  if (options.fast_math) {
    list.push_back("--use_fast_math");
  } else {
    for (const char* exact : {"--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"})
      list.push_back(exact);
  }
  if (options.line_info) list.push_back("--generate-line-info");
  return list;
}

}  // namespace cuda

std::vector<uint8_t> compile_cuda(std::span<const CudaUnit> units, const CudaOptions& options,
                                  CudaStats* stats) {
  const auto start = std::chrono::steady_clock::now();
  const CudaArch arch = CudaArch::parse(options.target);
  const Compiler compiler = choose_compiler(options.compiler);
  Batch batch{.units = units, .arch = arch, .options = options, .compiler = compiler, .code = {}};
  batch.code.resize(units.size());
  batch.reports.resize(units.size());
  look_in_cache(batch);
  compile_open(batch);
  if (stats) {
    stats->units = static_cast<int>(units.size());
    stats->compiled = static_cast<int>(batch.open.size());
    stats->cache_hits = stats->units - stats->compiled;
    stats->compile_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    for (const std::string& report : batch.reports) stats->report += report;
  }
  if (units.size() == 1) return std::move(batch.code[0]);
  std::vector<runtime::CudaBundlePart> parts;
  for (size_t i = 0; i < units.size(); ++i)
    parts.push_back({units[i].kernels, std::as_bytes(std::span(batch.code[i]))});
  return runtime::write_cuda_bundle(parts);
}

std::string cuda_compiler_identity(const std::string& compiler) {
  try {
    return choose_compiler(compiler).identity;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device) throw;
    return "";
  }
}

}  // namespace hidet::backends
