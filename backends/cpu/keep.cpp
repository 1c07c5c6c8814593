// keep.cpp - writes emitted text and libraries to the folder that HIDET_KEEP names.
// Names are numbers and what is harmless of a unit's name. Files of an earlier build of the same name
// are replaced. Threading: thread-safe between builds of differing names.
#include "cpu/keep.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hidet/runtime/error.h"
#include "hidet/runtime/log.h"

namespace hidet::backends::cpu {
namespace {

std::string harmless(const std::string& name) {
  std::string text;
  for (const char c : name.substr(0, 80)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    text += plain ? c : '_';
  }
  return text;
}

}  // namespace

void keep_for_people(std::span<const Unit> units, const Bytes& library) {
  const char* chosen = std::getenv("HIDET_KEEP");
  if (chosen == nullptr || *chosen == 0) return;
  const std::filesystem::path folder = chosen;
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  bool good = true;
  const auto write = [&](const std::string& name, const auto& bytes) {
    std::ofstream out(folder / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    out.close();
    good = good && out.good();
  };
  const std::string base = harmless(units[0].name);
  for (size_t i = 0; i < units.size(); ++i)
    write(detail::concat(base, "-", i, "-", harmless(units[i].name), ".c"), units[i].c_source);
  write(base + ".so", library);
  if (!good)
    log_once("keep", detail::concat("HIDET_KEEP: the folder '", chosen, "' cannot be written"));
}

}  // namespace hidet::backends::cpu
