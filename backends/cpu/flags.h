// flags.h - what is asked of the compilers: one set of options in Clang's inner and in the drivers' spelling.
// Threading: pure functions.
#pragma once
#include <string>
#include <vector>

#include "hidet/runtime/cpu_level.h"

namespace hidet::backends::cpu {

using Arguments = std::vector<std::string>;

/// What a unit is compiled to.
enum class Output { object, assembly };

/// Arguments of `clang -cc1` for one unit, input and output left out.
Arguments cc1_arguments(const CpuTarget& target, bool fast_math, Output output);
/// Arguments of a driver (clang or gcc) for one unit, input and output left out.
Arguments driver_arguments(const CpuTarget& target, bool fast_math, Output output, bool is_clang);
/// Arguments of ld.lld, inputs and output left out.
Arguments lld_arguments();
/// Arguments with which a driver links, between the objects' names and the output.
Arguments driver_link_arguments();

/// What a shared object exports: functions called hidet_*.
inline constexpr const char* kVersionScript = "{ global: hidet_*; local: *; };\n";
/// Libraries that generated code may call beside libc.
inline constexpr const char* kNeededLibraries[] = {"libm.so.6"};

/// One line for cache keys and messages.
std::string joined(const Arguments& arguments);

}  // namespace hidet::backends::cpu
