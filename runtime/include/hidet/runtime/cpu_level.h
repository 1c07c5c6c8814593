// cpu_level.h - CPU targets: an x86-64 level plus features, their text form, and what this CPU runs.
// Threading: values and pure functions; thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hidet {

/// A CPU that code is compiled for: "x86-64", "x86-64-v3", "x86-64-v4+vnni+bf16".
struct CpuTarget {
  int level = 1;          ///< 1..4: x86-64, x86-64-v2, x86-64-v3 (AVX2), x86-64-v4 (AVX-512)
  uint32_t features = 0;  ///< bits of cpu_features(), by place in that list

  /// Reads the text form; "native" is host_cpu_target(). Throws Error(usage) that lists what is known.
  static CpuTarget parse(std::string_view text);
  /// True when `text` has the form of a CPU target, known or not ("native", "x86-64...").
  static bool is_cpu_target(std::string_view text);

  std::string name() const;                  ///< canonical text: features in the list's order
  bool has(std::string_view feature) const;  ///< "vnni", "bf16" ...; false for an unknown name
  int vector_bytes() const { return level >= 4 ? 64 : level == 3 ? 32 : 16; }
  int vector_registers() const { return level >= 4 ? 32 : 16; }

  /// True when a CPU described by `host` runs code made for this target.
  bool runs_on(const CpuTarget& host) const {
    return level <= host.level && (features & ~host.features) == 0;
  }
  /// Why it does not run on `host`: one sentence, empty when it does.
  std::string why_not(const CpuTarget& host) const;
  /// True when this one asks for more than `other`: of several that run, take the greatest.
  bool better_than(const CpuTarget& other) const;

  friend bool operator==(const CpuTarget&, const CpuTarget&) = default;
};

/// One feature that may follow a level.
struct CpuFeature {
  const char* name;  ///< in a target's text: "vnni"
  const char*
      flag;  ///< what compilers call it, without the sign: "avx512vnni" (for -m or a target feature)
  int least_level;  ///< the least level that it goes with
};
/// Every feature, in canonical order.
const std::vector<CpuFeature>& cpu_features();

/// The best target that this CPU and its operating system run; found once.
const CpuTarget& host_cpu_target();

/// What the maker calls this CPU: "AMD EPYC 9B14"; "unknown CPU" where it does not say.
std::string host_cpu_name();

/// Number of CPUs this process may run on (affinity mask), at least 1.
int available_cpus();

}  // namespace hidet
