// search.cpp - finds the CUDA toolkit's pieces.
// Needs: nothing. Leaves: nothing; looks at names only, opens no library.
// Threading: pure functions of the environment and the file system.
#include "cuda/search.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace hidet::backends::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsual = "/usr/local/cuda";
// Newest first: a later NVRTC knows more GPUs.
constexpr const char* kNvrtcNames[] = {"libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12",
                                       "libnvrtc.so"};
constexpr const char* kLibraryFolders[] = {"lib", "lib64", "targets/x86_64-linux/lib"};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool present(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// A folder and the places inside it where Python packages put a toolkit's parts.
void add_root(std::vector<std::string>& roots, const fs::path& root) {
  if (!present(root)) return;
  roots.push_back(root);
  std::vector<fs::path> packages = {root / "nvidia"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "lib", error))
    if (entry.path().filename().string().starts_with("python"))
      packages.push_back(entry.path() / "site-packages" / "nvidia");
  for (const fs::path& package : packages) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(package, error)) found.push_back(entry.path());
    std::sort(found.rbegin(),
              found.rend());  // cu13 before cu12; the order does not depend on the file system
    roots.insert(roots.end(), found.begin(), found.end());
  }
}

}  // namespace

std::vector<std::string> toolkit_roots() {
  std::vector<std::string> roots;
  for (const char* name : {"HIDET_CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"})
    if (const std::string value = variable(name); !value.empty()) add_root(roots, value);
  add_root(roots, kUsual);
  return roots;
}

std::vector<std::string> nvrtc_candidates() {
  if (const std::string named = variable("HIDET_NVRTC"); !named.empty()) return {named};
  std::vector<std::string> candidates;
  const auto add_loader = [&] {
    candidates.insert(candidates.end(), std::begin(kNvrtcNames), std::end(kNvrtcNames));
  };
  bool loader_added = false;
  for (const std::string& root : toolkit_roots()) {
    if (root == kUsual && !loader_added) {
      add_loader();
      loader_added = true;
    }
    for (const char* folder : kLibraryFolders)
      for (const char* name : kNvrtcNames)
        if (const fs::path file = fs::path(root) / folder / name; present(file))
          candidates.push_back(file);
  }
  if (!loader_added) add_loader();
  return candidates;
}

std::string find_nvcc() {
  if (const std::string named = variable("HIDET_NVCC"); !named.empty())
    return access(named.c_str(), X_OK) == 0 ? named : "";
  std::vector<std::string> folders;
  for (const std::string& root : toolkit_roots())
    folders.push_back((fs::path(root) / "bin").string());
  // PATH comes before the usual place, which is the last root.
  std::string path = variable("PATH");
  std::vector<std::string> of_path;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    if (end > at) of_path.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  const bool has_usual = !folders.empty() && folders.back() == (fs::path(kUsual) / "bin").string();
  folders.insert(folders.end() - (has_usual ? 1 : 0), of_path.begin(), of_path.end());
  for (const std::string& folder : folders)
    if (const fs::path file = fs::path(folder) / "nvcc"; access(file.c_str(), X_OK) == 0)
      return file;
  return "";
}

std::string find_headers(const std::string& library) {
  std::vector<fs::path> folders;
  if (library.find('/') != std::string::npos) {
    std::error_code error;
    fs::path real = fs::canonical(library, error);
    const fs::path near = (error ? fs::path(library) : real).parent_path();
    // Beside lib/, beside targets/*/lib/, and where version 12's Python packages have them.
    folders = {near / "../include", near / "../../../include", near / "../../cuda_runtime/include"};
  }
  for (const std::string& root : toolkit_roots()) {
    folders.push_back(fs::path(root) / "include");
    folders.push_back(fs::path(root) / "targets/x86_64-linux/include");
  }
  folders.push_back("/usr/include");
  for (const fs::path& folder : folders)
    if (present(folder / "cuda_fp16.h")) return folder.lexically_normal();
  return "";
}

}  // namespace hidet::backends::cuda
