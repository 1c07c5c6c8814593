// roofline.h - what this machine can do at most: measured, not looked up.
// Threading: one thread; the measuring runs on the process's pool.
#pragma once
#include <string>

namespace hidet::tools {

/// Limits of the CPU with the threads set now.
struct Roofline {
  double gflops = 0;  ///< f32 fused multiply-adds in registers, two operations each
  double read_gbps = 0,
         copy_gbps = 0;  ///< far larger than the caches; a copy counts bytes read and written
};
/// Compiles three small kernels and runs them for about a third of a second.
/// Throws Error(device) where there is no compiler.
Roofline measure_roofline();

}  // namespace hidet::tools
