// driver.cpp - opens libcuda, finds the GPUs, and turns the driver's answers into errors.
// Needs: libcuda.so.1 at run time (HIDET_LIBCUDA names another file). Leaves: one Found per process.
// Threading: thread-safe; the first call does the work.
#include "src/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include <hidet/runtime/error.h>

namespace hidet::runtime::cuda {
namespace {

constexpr int kLeastVersion = 12000;  // cuLibraryLoadData and cuLaunchKernelEx with clusters

std::string version_text(int version) {
  return detail::concat(version / 1000, ".", version % 1000 / 10);
}

// Fills the table; returns the first name that the library lacks, or empty.
std::string resolve(void* library, Driver& calls) {
  std::string missing;
#define CALL(name, symbol, ...)                                                 \
  calls.name = reinterpret_cast<int (*)(__VA_ARGS__)>(dlsym(library, #symbol)); \
  if (!calls.name && missing.empty()) missing = #symbol;
#include "src/cuda/driver_calls.inc"
#undef CALL
  return missing;
}

int attribute(const Driver& calls, int which, int handle) {
  int value = 0;
  return calls.cuDeviceGetAttribute(&value, which, handle) == kOk ? value : 0;
}

std::string describe(const Driver& calls, int index, int version, DeviceState& state) {
  char name[256] = "";
  size_t bytes = 0;
  int result = calls.cuDeviceGet(&state.handle, index);
  if (result == kOk) result = calls.cuDeviceGetName(name, sizeof(name) - 1, state.handle);
  if (result == kOk) result = calls.cuDeviceTotalMem(&bytes, state.handle);
  if (result != kOk)
    return detail::concat("the GPU driver does not describe GPU ", index, ": error ", result);
  CudaDeviceInfo& info = state.info;
  info.index = index;
  info.name = name;
  info.memory_bytes = static_cast<int64_t>(bytes);
  info.major = attribute(calls, kAttrMajor, state.handle);
  info.minor = attribute(calls, kAttrMinor, state.handle);
  info.multiprocessors = attribute(calls, kAttrMultiprocessors, state.handle);
  info.shared_bytes = attribute(calls, kAttrSharedOptin, state.handle);
  info.l2_bytes = attribute(calls, kAttrL2, state.handle);
  info.driver_version = version;
  state.has_pools = attribute(calls, kAttrPools, state.handle) != 0;
  return "";
}

// What an answer of cuInit other than 0 means for the user.
std::string init_problem(const std::string& library, int result, const Driver& calls) {
  if (result == kStubLibrary)
    return detail::concat(
        library,
        " is the CUDA toolkit's stub, not a driver (error 34): install NVIDIA's driver, or take "
        "the toolkit's stubs folder out of the library path");
  if (result == kNoDevice)
    return "the GPU driver finds no GPU (CUDA_ERROR_NO_DEVICE; CUDA_VISIBLE_DEVICES may hide it)";
  const char* name = nullptr;
  if (calls.cuGetErrorName) calls.cuGetErrorName(result, &name);
  return detail::concat("the GPU driver does not start: cuInit answers ", name ? name : "error",
                        " (", result, ")");
}

std::string open_driver(Found& all) {
  const char* named = std::getenv("HIDET_LIBCUDA");
  all.library = named && *named ? named : "libcuda.so.1";
  void* library = dlopen(all.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return detail::concat("there is no GPU driver: ", all.library, " cannot be opened (",
                          why ? why : "no reason given", ")");
  }
  const std::string missing = resolve(library, all.calls);
  if (all.calls.cuDriverGetVersion) all.calls.cuDriverGetVersion(&all.version);
  if (!all.calls.cuInit) return detail::concat(all.library, " is no GPU driver: it has no cuInit");
  const int result = all.calls.cuInit(0);
  if (result != kOk) return init_problem(all.library, result, all.calls);
  if (!missing.empty() || all.version < kLeastVersion)
    return detail::concat("the GPU driver is too old: it is for CUDA ", version_text(all.version),
                          missing.empty() ? "" : " and lacks ", missing,
                          "; CUDA 12.0 or later is needed");
  int count = 0;
  if (all.calls.cuDeviceGetCount(&count) != kOk || count <= 0)
    return "the GPU driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)";
  for (int i = 0; i < count; ++i) {
    all.devices.push_back(std::make_unique<DeviceState>());
    std::string problem = describe(all.calls, i, all.version, *all.devices.back());
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace

const Found& found() {
  // Never destroyed: tensors may be freed while the process ends.
  static const Found* all = [] {
    auto* made = new Found;
    made->problem = open_driver(*made);
    if (!made->problem.empty()) made->devices.clear();
    return made;
  }();
  return *all;
}

const Driver& driver() {
  const Found& all = found();
  HIDET_REQUIRE(all.problem.empty(), ErrorCode::device, "", all.problem);
  return all.calls;
}

DeviceState& device_state(int index) {
  driver();
  const Found& all = found();
  HIDET_REQUIRE(index >= 0 && index < static_cast<int>(all.devices.size()), ErrorCode::device, "",
                "there is no GPU cuda:", index, "; this machine has ", all.devices.size(),
                " (cuda:0 to cuda:", all.devices.size() - 1, ")");
  return *all.devices[static_cast<size_t>(index)];
}

std::string error_text(int result) {
  const Driver& calls = found().calls;
  const char *name = nullptr, *text = nullptr;
  if (calls.cuGetErrorName) calls.cuGetErrorName(result, &name);
  if (calls.cuGetErrorString) calls.cuGetErrorString(result, &text);
  if (!name) return detail::concat("error ", result);
  return text ? detail::concat(name, " (", text, ")") : std::string(name);
}

void fail(int result, const char* call, const std::string& what) {
  const ErrorCode code = result == kOutOfMemory ? ErrorCode::memory : ErrorCode::device;
  throw Error(code, detail::concat(call, " answers ", error_text(result),
                                   what.empty() ? "" : " for ", what));
}

void check(int result, const char* call, const std::string& what) {
  if (result != kOk) [[unlikely]]
    fail(result, call, what);
}

DeviceState& bind(int device) {
  DeviceState& state = device_state(device);
  std::call_once(state.context_once, [&] {
    check(driver().cuDevicePrimaryCtxRetain(&state.context, state.handle),
          "cuDevicePrimaryCtxRetain", detail::concat("cuda:", device));
  });
  HIDET_CU(cuCtxSetCurrent, state.context);
  return state;
}

}  // namespace hidet::runtime::cuda

namespace hidet {

int cuda_device_count() { return static_cast<int>(runtime::cuda::found().devices.size()); }
std::string cuda_problem() { return runtime::cuda::found().problem; }
const CudaDeviceInfo& cuda_device_info(int index) {
  return runtime::cuda::device_state(index).info;
}

void cuda_synchronize(int device) {
  runtime::cuda::bind(device);
  HIDET_CU(cuCtxSynchronize);
}

}  // namespace hidet
