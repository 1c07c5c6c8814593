// cpu.h - the CPU backend: C text to one shared object, through Clang in process or a C compiler.
// Needs: libhidet_clang.so beside libhidet.so (or at HIDET_CLANG_PLUGIN), else a C compiler in PATH.
// Leaves: bytes in memory; nothing in the working directory.
// Threading: thread-safe; units of one call compile in parallel, links take turns.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hidet/runtime/cpu_level.h"

namespace hidet::backends {

/// One translation unit. The text is all that counts: it has no #include and no paths, and declares
/// what it uses. Functions called hidet_* are exported from the shared object; others that are not
/// static are visible to the other units only.
struct Unit {
  std::string name;  ///< for people: errors, the cache's list; need not be unique
  std::string c_source;
};

struct CpuOptions {
  std::string target = "native";  ///< as CpuTarget::parse; "native" is default_target()
  bool fast_math =
      false;     ///< allow re-association, reciprocals and contraction; NaN and infinity stay
  int jobs = 0;  ///< threads (or child processes); 0: one per CPU
  bool use_cache = true;  ///< look in and fill BuildCache::process()
  /// Called on the calling thread after each unit; returning false stops with Error(cancelled).
  std::function<bool(int done, int total)> progress = {};
};

/// What a build did.
struct BuildStats {
  int units = 0;
  int cache_hits = 0;  ///< units whose object came from the cache (all when the library did)
  int compiled = 0;    ///< units compiled now
  bool library_cached = false;  ///< the linked library came from the cache
  double compile_ms = 0;        ///< wall time of all compiles together
  double link_ms = 0;
  double total_ms = 0;
};

/// Compiles every unit and links them once into a position-independent shared object that exports only
/// hidet_* functions. (To dlopen it from memory keep its descriptor open while it is loaded: dlopen takes two
/// libraries that were opened under one name, such as /proc/self/fd/7, for the same one.) The same units, options and compiler give the same bytes.
/// Throws Error(device) when no compiler is there, Error(internal) with the compiler's words when it
/// refuses the text, Error(cancelled) when progress says so.
std::vector<uint8_t> build_shared_object(std::span<const Unit> units,
                                         const CpuOptions& options = {},
                                         BuildStats* stats = nullptr);

/// The assembly text of one unit, as the compiler makes it for these options (never cached).
std::string emit_assembly(const std::string& c_source, const CpuOptions& options = {});

/// Which compiler build_shared_object uses now.
enum class CpuCompiler {
  none,    ///< nothing was found
  plugin,  ///< Clang and LLD in process
  clang,   ///< a clang driver as a child process
  cc,      ///< another C compiler as a child process: GNU C, at most x86-64-v3
};
CpuCompiler cpu_compiler();
/// Name, version and files of that compiler in one line: part of every cache key. Empty when there is none.
std::string compiler_identity();
/// What this CPU runs and the compiler can make: host_cpu_target(), without a clang at most x86-64-v3.
CpuTarget default_target();
/// Reads a target; "native" is default_target(). Throws Error(usage) for an unknown one and
/// Error(device) for one that the compiler at hand cannot make.
CpuTarget resolve_target(const std::string& text);

}  // namespace hidet::backends
