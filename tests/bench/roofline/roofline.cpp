// roofline.cpp - prints what this CPU can do at most, on one thread and on all.
// usage: roofline_bench
#include "roofline.h"

#include <hidet/runtime/cpu_level.h>
#include <hidet/runtime/thread_pool.h>

#include <cstdio>

int main() {
  using namespace hidet;
  std::printf("%s\nthreads   GFLOP/s  read GB/s  copy GB/s\n", host_cpu_target().name().c_str());
  for (int threads = 1;; threads = available_cpus()) {
    set_num_threads(threads);
    const tools::Roofline r = tools::measure_roofline();
    std::printf("%7d  %8.1f  %9.1f  %9.1f\n", threads, r.gflops, r.read_gbps, r.copy_gbps);
    if (threads == available_cpus()) return 0;
  }
}
