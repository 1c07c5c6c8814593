// sim_bench.cpp - CPU seconds that the simulator takes for the guide's tiled product of 256 x 256 x 256 f32, with all checks and
// without. HIDET_NUM_THREADS=1 gives the figures of one core.
// Threading: one thread at a time.
#include <hidet/backends/sim.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "guide.h"

namespace {

void measure(const char* what, bool checks) {
  constexpr int n = 256;
  const hidet::Tensor a = hidet::randn({n, n}, hidet::f32, {}, 1),
                      b = hidet::randn({n, n}, hidet::f32, {}, 2), c = hidet::zeros({n, n});
  const hidet::backends::SimArg args[] = {a, b, c};
  hidet::backends::SimOptions options;
  options.checks = checks;
  const ScriptModule m = matmul(n, n, n);
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  hidet::backends::simulate(m.module(), "launch", args, options);
  const double seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  std::printf("%-16s %6.2f s of CPU time, %6.2f s\n", what, seconds, wall.count());
}

}  // namespace

int main() {
  measure("with checks", true);
  measure("without checks", false);
  return 0;
}
