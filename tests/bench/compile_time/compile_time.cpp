// compile_time.cpp - how long the CPU backend takes: one kernel, a program of 60 kernels with an empty
// cache, and a trivial module in a fresh process with an empty and with a filled cache.
// The kernels are register-tile matrix products like those that a convolution net compiles to.
// usage: compile_time_bench [kernels]
// Bounds (2 cores): 60 kernels 10 s; trivial module 80 ms, cached 5 ms. Exit status 1 when one is passed.
// Threading: one thread; the backend uses one per CPU.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "hidet/backends/cpu.h"

extern char** environ;

namespace {

using namespace hidet::backends;  // what is measured
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

const char* const kTrivial =
    "void hidet_launch(float* y, const float* x, int n) { for (int i = 0; i < n; ++i) y[i] = x[i] "
    "* 2; }\n";

/// A product of a packed panel of `rows` x k with one of k x (vectors * 16), unrolled as our lowering does.
std::string tile_kernel(int index, int rows, int vectors) {
  const std::string n = std::to_string(index);
  std::string text =
      "typedef float f32x16 __attribute__((vector_size(64), aligned(4)));\n"
      "static int body_" +
      n + "(const float* a, const float* b, float* c, long k, long stride) {\n";
  const auto acc = [](int r, int v) { return "c_" + std::to_string(r) + "_" + std::to_string(v); };
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) text += "  f32x16 " + acc(r, v) + " = {0};\n";
  text += "  for (long i = 0; i < k; ++i) {\n";
  for (int v = 0; v < vectors; ++v) {
    const std::string number = std::to_string(v);
    text += "    const f32x16 b_" + number + " = *(const f32x16*)(b + i * " +
            std::to_string(vectors * 16) + " + " + std::to_string(v * 16) + ");\n";
  }
  for (int r = 0; r < rows; ++r) {
    text += "    { const float s = a[i * " + std::to_string(rows) + " + " + std::to_string(r) +
            "];\n      const f32x16 x = (f32x16){0} + s;\n";
    for (int v = 0; v < vectors; ++v)
      text += "      " + acc(r, v) + " = __builtin_elementwise_fma(x, b_" + std::to_string(v) +
              ", " + acc(r, v) + ");\n";
    text += "    }\n";
  }
  text += "  }\n";
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      text += "  { f32x16* to = (f32x16*)(c + " + std::to_string(r) + " * stride + " +
              std::to_string(v * 16) + "); const f32x16 t = *to + " + acc(r, v) +
              "; *to = __builtin_elementwise_max(t, (f32x16){0} + " + n + "); }\n";
  text += "  return 0;\n}\n";
  text += "int hidet_kernel_" + n +
          "(const float* a, const float* b, float* c, long m, long n, long k) {\n"
          "  for (long i = 0; i + " +
          std::to_string(rows) + " <= m; i += " + std::to_string(rows) +
          ")\n"
          "    for (long j = 0; j + " +
          std::to_string(vectors * 16) + " <= n; j += " + std::to_string(vectors * 16) +
          ")\n"
          "      if (body_" +
          n +
          "(a + i * k, b + j * k, c + i * n + j, k, n)) return 1;\n"
          "  for (long i = m - m % " +
          std::to_string(rows) +
          "; i < m; ++i)\n"
          "    for (long j = 0; j < n; ++j) { float s = 0; for (long l = 0; l < k; ++l) s += a[i * "
          "k + l] * b[l * n + j]; c[i * n + j] = s; }\n"
          "  return 0;\n}\n";
  return text;
}

std::vector<Unit> program(int kernels) {
  std::vector<Unit> units;
  for (int i = 0; i < kernels; ++i)
    units.push_back({"kernel " + std::to_string(i), tile_kernel(i, 6 + i % 9, 1 + i % 2)});
  return units;
}

/// What a fresh process does: builds the trivial module, loads and calls it.
int trivial_main() {
  const Unit unit{"trivial", kTrivial};
  const auto bytes = build_shared_object({&unit, 1});
  const int fd = memfd_create("bench", MFD_CLOEXEC);
  if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return 1;
  void* library = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW);
  if (library == nullptr) return 1;
  float x[3] = {1, 2, 3}, y[3] = {};
  reinterpret_cast<void (*)(float*, const float*, int)>(dlsym(library, "hidet_launch"))(y, x, 3);
  return y[2] == 6 ? 0 : 1;
}

/// Wall time from start to end of this program run again with `argument`; -1 when it failed.
double fresh_process(const char* self, const char* argument) {
  const auto start = Clock::now();
  const char* arguments[] = {self, argument, nullptr};
  pid_t child = 0;
  int status = 1;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments),
                  environ) != 0)
    return -1;
  waitpid(child, &status, 0);
  return status == 0 ? ms_since(start) : -1;
}

/// The middle one of `count` fresh processes; the cache is cleared before each where `empty`.
double median_process(const char* self, const char* argument, const std::string& folder, bool empty,
                      int count = 15) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    if (empty) std::filesystem::remove_all(folder);
    times.push_back(fresh_process(self, argument));
  }
  std::sort(times.begin(), times.end());
  return times.front() < 0 ? -1 : times[times.size() / 2];
}

bool report(const char* what, double ms, double bound) {
  const bool good = ms >= 0 && ms <= bound;
  std::printf("%-58s %9.1f ms   bound %7.0f ms   %s\n", what, ms, bound,
              good ? "ok" : "PASSED OVER");
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "--trivial") return trivial_main();
  if (count > 1 && std::string(arguments[1]) == "--nothing") return 0;
  const int kernels = count > 1 ? std::max(1, atoi(arguments[1])) : 60;
  std::string folder = (std::filesystem::temp_directory_path() / "hidet-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 7;
  setenv("HIDET_CACHE_DIR", folder.c_str(), 1);

  const double nothing = median_process(arguments[0], "--nothing", folder, false);
  const double cold = median_process(arguments[0], "--trivial", folder, true);
  const double cached = median_process(arguments[0], "--trivial", folder, false);
  std::printf("compiler: %s, target %s, %d CPUs\n", compiler_identity().c_str(),
              default_target().name().c_str(), hidet::available_cpus());
  std::printf("%-58s %9.1f ms\n", "a process that does nothing (in the next two)", nothing);
  bool good = report("fresh process, trivial module, empty cache", cold, 80 + nothing);
  good &= report("fresh process, trivial module, cached", cached, 5 + nothing);

  const auto units = program(kernels);
  BuildStats stats;
  build_shared_object(units, {}, &stats);
  std::printf("%d kernels: compile %.1f ms, link %.1f ms, %.1f ms a kernel and CPU\n", kernels,
              stats.compile_ms, stats.link_ms,
              stats.compile_ms * std::min(hidet::available_cpus(), kernels) / kernels);
  good &= report("program of all kernels, empty cache", stats.total_ms, 10000.0 / 60 * kernels);
  build_shared_object(units, {}, &stats);
  std::printf("%-58s %9.1f ms\n", "program of all kernels, library cached", stats.total_ms);
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}
