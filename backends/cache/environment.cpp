// environment.cpp - where the process's build cache is: HIDET_CACHE, HIDET_CACHE_DIR, HIDET_CACHE_SIZE.
// Threading: thread-safe (the environment is read, never written).
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string>

#include "hidet/backends/cache.h"
#include "hidet/runtime/error.h"
#include "hidet/runtime/log.h"

namespace hidet::backends {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Independent of later changes of the working directory.
std::string absolute(const std::string& folder) {
  if (folder.empty() || folder[0] == '/') return folder;
  char* here = get_current_dir_name();
  const std::string result = here == nullptr ? "" : here + ("/" + folder);
  std::free(here);
  return result;
}

uint64_t parse_size(const std::string& text) {
  uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const std::string unit(end, last);
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  HIDET_REQUIRE(error == std::errc() && shift >= 0 && value <= (UINT64_MAX >> shift),
                ErrorCode::usage, "", "HIDET_CACHE_SIZE is '", text,
                "' and should be a number of bytes, or one with K, M or G");
  return value << shift;
}

bool switched_off() {
  const std::string text = environment("HIDET_CACHE");
  return text == "off" || text == "0";
}

}  // namespace

CacheOptions BuildCache::options_from_environment() {
  CacheOptions options;
  if (switched_off()) return options;
  if (const std::string size = environment("HIDET_CACHE_SIZE"); !size.empty())
    options.max_bytes = parse_size(size);
  options.folder = absolute(environment("HIDET_CACHE_DIR"));
  if (!options.folder.empty()) return options;
  const std::string xdg = environment("XDG_CACHE_HOME"), home = environment("HOME");
  if (!xdg.empty() && xdg[0] == '/') options.folder = xdg + "/hidet";
  else if (!home.empty() && home[0] == '/') options.folder = home + "/.cache/hidet";
  return options;
}

BuildCache& BuildCache::process() {
  static BuildCache* const cache = [] {
    CacheOptions options = options_from_environment();
    if (options.folder.empty() && !switched_off())
      log_once(
          "build cache",
          "there is no folder for the build cache (set HOME or HIDET_CACHE_DIR): what is compiled "
          "now is not kept");
    return new BuildCache(
        std::move(options));  // lives on: other threads may build while the process ends
  }();
  return *cache;
}

}  // namespace hidet::backends
