// nvrtc.cpp - CUDA text to code in process, through NVRTC opened at run time.
// Needs: libnvrtc of CUDA 12 or later. Leaves: the library stays open.
// Threading: thread-safe; NVRTC compiles separate programs in parallel.
#include <dlfcn.h>

#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hidet/runtime/error.h>

#include "cuda/compilers.h"
#include "cuda/search.h"

struct _nvrtcProgram;

namespace hidet::backends::cuda {
namespace {

using Program = _nvrtcProgram*;

struct Calls {
  int (*nvrtcVersion)(int*, int*) = nullptr;
  const char* (*nvrtcGetErrorString)(int) = nullptr;
  int (*nvrtcCreateProgram)(Program*, const char*, const char*, int, const char* const*,
                            const char* const*) = nullptr;
  int (*nvrtcDestroyProgram)(Program*) = nullptr;
  int (*nvrtcCompileProgram)(Program, int, const char* const*) = nullptr;
  int (*nvrtcGetProgramLogSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetProgramLog)(Program, char*) = nullptr;
  int (*nvrtcGetCUBINSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetCUBIN)(Program, char*) = nullptr;
  int (*nvrtcGetPTXSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetPTX)(Program, char*) = nullptr;
};

struct Library {
  Found found;
  Calls calls;
};

template <class Call>
bool resolve(void* library, const char* name, Call& call) {
  call = reinterpret_cast<Call>(dlsym(library, name));
  return call != nullptr;
}

bool resolve_all(void* library, Calls& c) {
#define HIDET_NVRTC(name) resolve(library, #name, c.name)
  return HIDET_NVRTC(nvrtcVersion) && HIDET_NVRTC(nvrtcGetErrorString) &&
         HIDET_NVRTC(nvrtcCreateProgram) && HIDET_NVRTC(nvrtcDestroyProgram) &&
         HIDET_NVRTC(nvrtcCompileProgram) && HIDET_NVRTC(nvrtcGetProgramLogSize) &&
         HIDET_NVRTC(nvrtcGetProgramLog) && HIDET_NVRTC(nvrtcGetCUBINSize) &&
         HIDET_NVRTC(nvrtcGetCUBIN) && HIDET_NVRTC(nvrtcGetPTXSize) && HIDET_NVRTC(nvrtcGetPTX);
#undef HIDET_NVRTC
}

// The file that a name of dlopen led to.
std::string file_of(const void* symbol, const std::string& name) {
  Dl_info info;
  return dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : name;
}

std::string size_of(const std::string& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  return error ? "unknown" : std::to_string(bytes);
}

void describe(Library& library, const std::string& name) {
  Found& found = library.found;
  int major = 0, minor = 0;
  library.calls.nvrtcVersion(&major, &minor);
  found.path = file_of(reinterpret_cast<const void*>(library.calls.nvrtcVersion), name);
  found.version = fmt::format("{}.{}", major, minor);
  found.headers = find_headers(found.path);
  // Sizes tell builds of one version apart; paths would make the key differ between machines.
  found.identity =
      fmt::format("nvrtc {} ({} bytes, headers {})", found.version, size_of(found.path),
                  found.headers.empty() ? "none" : size_of(found.headers + "/cuda_fp16.h"));
}

Library open_nvrtc() {
  Library library;
  const std::vector<std::string> candidates = nvrtc_candidates();
  std::string why;
  for (const std::string& name : candidates) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      if (const char* text = dlerror(); text && why.empty()) why = text;
      continue;
    }
    if (resolve_all(handle, library.calls)) {
      describe(library, name);
      return library;
    }
    why = name + " lacks entry points of CUDA 12";
  }
  library.found.problem = fmt::format(
      "NVRTC cannot be opened (looked for {}; {}): install the CUDA toolkit or the Python package "
      "nvidia-cuda-nvrtc, "
      "and name its folder in HIDET_CUDA_ROOT",
      fmt::join(candidates, ", "), why);
  return library;
}

const Library& library() {
  static const Library* opened =
      new Library(open_nvrtc());  // kept to the end: other threads may compile
  return *opened;
}

std::string program_log(Program program) {
  const Calls& calls = library().calls;
  size_t size = 0;
  if (calls.nvrtcGetProgramLogSize(program, &size) != 0 || size <= 1) return "";
  std::string log(size, '\0');
  calls.nvrtcGetProgramLog(program, log.data());
  log.resize(size - 1);
  return log;
}

template <class Size, class Get>
std::vector<uint8_t> fetch(Program program, Size size_call, Get get_call) {
  size_t size = 0;
  std::vector<uint8_t> bytes;
  if (size_call(program, &size) != 0) return bytes;
  bytes.resize(size);
  if (get_call(program, reinterpret_cast<char*>(bytes.data())) != 0) bytes.clear();
  return bytes;
}

}  // namespace

const Found& nvrtc() { return library().found; }

Outcome run_nvrtc(const Job& job) {
  const Calls& calls = library().calls;
  std::vector<std::string> options = common_options(job.arch, job.options);
  if (const std::string& headers = library().found.headers; !headers.empty()) {
    options.push_back("--include-path=" + headers);
    options.push_back("--include-path=" + headers + "/cccl");  // where CUDA 13 has nv/target
  }
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  Program program = nullptr;
  // One name for all: the file's name gets into the code.
  int result = calls.nvrtcCreateProgram(&program, job.unit.source.c_str(), "kernels.cu", 0, nullptr,
                                        nullptr);
  HIDET_REQUIRE(result == 0, ErrorCode::device, job.unit.name,
                "NVRTC does not start: ", calls.nvrtcGetErrorString(result));
  const auto destroy = [&](Program* p) { calls.nvrtcDestroyProgram(p); };
  std::unique_ptr<Program, decltype(destroy)> guard(&program, destroy);
  result = calls.nvrtcCompileProgram(program, static_cast<int>(arguments.size()), arguments.data());
  Outcome outcome;
  outcome.log = program_log(program);
  if (result != 0) {
    if (outcome.log.empty()) outcome.log = calls.nvrtcGetErrorString(result);
    return outcome;
  }
  outcome.code = job.arch.is_ptx ? fetch(program, calls.nvrtcGetPTXSize, calls.nvrtcGetPTX)
                                 : fetch(program, calls.nvrtcGetCUBINSize, calls.nvrtcGetCUBIN);
  if (job.arch.is_ptx && !outcome.code.empty() && outcome.code.back() == 0) outcome.code.pop_back();
  outcome.ok = !outcome.code.empty();
  if (!outcome.ok) outcome.log += "NVRTC made no code";
  return outcome;
}

}  // namespace hidet::backends::cuda
