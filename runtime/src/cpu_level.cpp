// cpu_level.cpp - parses and prints CPU targets and asks the CPU what it runs.
// Needs: an x86-64 CPU. The levels and features also ask whether the operating system saves the
// registers (the compiler's cpu model does), so that "runs" means runs.
// Threading: thread-safe.
#include "hidet/runtime/cpu_level.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <thread>

#include "hidet/runtime/error.h"

namespace hidet {
namespace {

constexpr std::string_view kPrefix = "x86-64";

std::string known_text() {
  std::string text = "native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, followed by";
  for (const CpuFeature& feature : cpu_features()) text += detail::concat(" +", feature.name);
  return text;
}

/// Place of `name` in cpu_features(), or -1.
int feature_index(std::string_view name) {
  const auto& all = cpu_features();
  for (size_t i = 0; i < all.size(); ++i)
    if (name == all[i].name) return static_cast<int>(i);
  return -1;
}

int parse_level(std::string_view level, std::string_view text) {
  if (level == kPrefix || level == "x86-64-v1") return 1;
  if (level == "x86-64-v2") return 2;
  if (level == "x86-64-v3") return 3;
  if (level == "x86-64-v4") return 4;
  throw Error(ErrorCode::usage,
              detail::concat("unknown CPU target '", text, "': known are ", known_text()));
}

/// Tile registers with bf16 products, and the system lets this process use them: it must be asked, once for all threads (Linux 5.16;
/// it refuses where a thread's alternate signal stack is too small to hold them).
bool may_use_tiles() {
  constexpr unsigned bf16 = 1u << 22, tile = 1u << 24;  // of leaf 7, EDX
  constexpr long request = 0x1023, tile_data = 18;      // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return (d & bf16) && (d & tile) && syscall(SYS_arch_prctl, request, tile_data) == 0;
}

CpuTarget detect() {
  __builtin_cpu_init();
  CpuTarget host;
  if (__builtin_cpu_supports("x86-64-v2")) host.level = 2;
  if (__builtin_cpu_supports("x86-64-v3")) host.level = 3;
  if (__builtin_cpu_supports("x86-64-v4")) host.level = 4;
  // In the order of cpu_features(); the builtin takes literals only.
  const bool supported[] = {
      __builtin_cpu_supports("avxvnni") != 0,    __builtin_cpu_supports("avx512vbmi") != 0,
      __builtin_cpu_supports("avx512vnni") != 0, __builtin_cpu_supports("avx512bf16") != 0,
      __builtin_cpu_supports("avx512fp16") != 0, may_use_tiles(),
  };
  const auto& all = cpu_features();
  static_assert(std::size(supported) == 6);
  for (size_t i = 0; i < all.size(); ++i)
    if (supported[i] && host.level >= all[i].least_level) host.features |= 1u << i;
  return host;
}

}  // namespace

const std::vector<CpuFeature>& cpu_features() {
  static const std::vector<CpuFeature> all = {
      {"avxvnni", "avxvnni", 3}, {"vbmi", "avx512vbmi", 4}, {"vnni", "avx512vnni", 4},
      {"bf16", "avx512bf16", 4}, {"fp16", "avx512fp16", 4}, {"amx", "amx-bf16", 4},
  };
  return all;
}

CpuTarget CpuTarget::parse(std::string_view text) {
  if (text == "native") return host_cpu_target();
  CpuTarget target;
  size_t end = std::min(text.find('+'), text.size());
  target.level = parse_level(text.substr(0, end), text);
  while (end < text.size()) {
    const size_t begin = end + 1;
    end = std::min(text.find('+', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    const int index = feature_index(name);
    HIDET_REQUIRE(index >= 0, ErrorCode::usage, "", "unknown CPU feature '", name, "' in '", text,
                  "': known are ", known_text());
    HIDET_REQUIRE(target.level >= cpu_features()[index].least_level, ErrorCode::usage, "",
                  "CPU feature '", name, "' in '", text, "' needs at least x86-64-v",
                  cpu_features()[index].least_level);
    target.features |= 1u << index;
  }
  return target;
}

bool CpuTarget::is_cpu_target(std::string_view text) {
  return text == "native" || text.substr(0, kPrefix.size()) == kPrefix;
}

std::string CpuTarget::name() const {
  std::string text(kPrefix);
  if (level > 1) text += "-v" + std::to_string(level);
  for (size_t i = 0; i < cpu_features().size(); ++i)
    if (features & (1u << i)) text += std::string("+") + cpu_features()[i].name;
  return text;
}

bool CpuTarget::has(std::string_view feature) const {
  const int index = feature_index(feature);
  return index >= 0 && (features & (1u << index)) != 0;
}

std::string CpuTarget::why_not(const CpuTarget& host) const {
  if (runs_on(host)) return "";
  return detail::concat("the code is for ", name(), " and this CPU is ", host.name());
}

bool CpuTarget::better_than(const CpuTarget& other) const {
  if (level != other.level) return level > other.level;
  return std::popcount(features) > std::popcount(other.features);
}

const CpuTarget& host_cpu_target() {
  static const CpuTarget host = detect();
  return host;
}

std::string host_cpu_name() {
  uint32_t words[12] = {};
  for (uint32_t i = 0; i < 3; ++i)
    if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                     &words[4 * i + 3]))
      return "unknown CPU";
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string name(text);  // padded with spaces or zeros
  name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
  name.erase(name.find_last_not_of(' ') + 1);
  for (char& c : name)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return name.empty() ? "unknown CPU" : name;
}

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace hidet
