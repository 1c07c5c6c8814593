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

std::string chosen_folder() {
  const char* chosen = std::getenv("HIDET_KEEP");
  return chosen == nullptr ? "" : chosen;
}

template <class Bytes>
void write(const std::string& folder, const std::string& name, const Bytes& bytes) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::ofstream out(folder + "/" + name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out.good())
    log_once("keep", detail::concat("HIDET_KEEP: the folder '", folder, "' cannot be written"));
}

}  // namespace

void keep_texts(std::span<const Unit> units) {
  const std::string folder = chosen_folder();
  if (folder.empty()) return;
  const std::string base = harmless(units[0].name);
  for (size_t i = 0; i < units.size(); ++i)
    write(folder, detail::concat(base, "-", i, "-", harmless(units[i].name), ".c"),
          units[i].c_source);
}

void keep_library(std::span<const Unit> units, const Bytes& library) {
  const std::string folder = chosen_folder();
  if (!folder.empty()) write(folder, harmless(units[0].name) + ".so", library);
}

}  // namespace hidet::backends::cpu
