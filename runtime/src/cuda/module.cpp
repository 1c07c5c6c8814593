// module.cpp - loads the best image of a program on one GPU and launches its kernels.
// Needs: a GPU. Leaves: a library that lives until the module is destroyed.
// Threading: thread-safe; a kernel's handle is looked up once, a race finds the same handle twice.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include <hidet/runtime/cuda_bundle.h>
#include <hidet/runtime/error.h>

#include "src/cuda/cuda_module.h"
#include "src/cuda/driver.h"

namespace hidet::runtime {
namespace {

using namespace cuda;

constexpr int64_t kMaxGridX = 2147483647, kMaxGridYZ = 65535, kMaxThreads = 1024;
constexpr int64_t kDefaultShared = 48 * 1024;  // what a kernel may have without asking
constexpr int64_t kPortableCluster = 8;
constexpr const char* kErrorWord = "hidet_error_word";

struct Kernel {
  std::atomic<CUkern_st*> handle{nullptr};
  std::atomic<int64_t> dynamic_shared{kDefaultShared};  // what has been asked for
  std::atomic<bool> large_cluster{false};
};

std::string triple(const int64_t v[3]) {
  return detail::concat("(", v[0], ", ", v[1], ", ", v[2], ")");
}

void check_sizes(const hidet_cuda_launch& launch, const CudaDeviceInfo& gpu) {
  const int64_t *g = launch.grid, *b = launch.block, *c = launch.cluster;
  HIDET_REQUIRE(g[0] <= kMaxGridX && g[1] <= kMaxGridYZ && g[2] <= kMaxGridYZ, ErrorCode::device,
                launch.kernel, "grid ", triple(g), " is too large: a GPU takes at most (",
                kMaxGridX, ", ", kMaxGridYZ, ", ", kMaxGridYZ, ")");
  HIDET_REQUIRE(b[0] > 0 && b[1] > 0 && b[2] > 0 && b[0] <= kMaxThreads && b[1] <= kMaxThreads &&
                    b[2] <= 64 && b[0] * b[1] * b[2] <= kMaxThreads,
                ErrorCode::device, launch.kernel, "block ", triple(b), " must have from 1 to ",
                kMaxThreads, " threads");
  HIDET_REQUIRE(launch.shared_bytes >= 0 && launch.shared_bytes <= gpu.shared_bytes,
                ErrorCode::device, launch.kernel, "the kernel asks for ", launch.shared_bytes,
                " bytes of shared memory a block; ", gpu.name, " has ", gpu.shared_bytes);
  if (!c[0]) return;
  HIDET_REQUIRE(
      c[0] > 0 && c[1] > 0 && c[2] > 0 && g[0] % c[0] == 0 && g[1] % c[1] == 0 && g[2] % c[2] == 0,
      ErrorCode::device, launch.kernel, "cluster ", triple(c), " must divide the grid ", triple(g));
  HIDET_REQUIRE(gpu.major >= 9, ErrorCode::device, launch.kernel,
                "a launch with clusters needs compute capability 9.0; ", gpu.name, " has ",
                gpu.major, ".", gpu.minor);
}

class Module final : public CudaModule {
 public:
  Module(DeviceState& state, std::string target, std::vector<std::string> names)
      : state_(state),
        target_(std::move(target)),
        names_(std::move(names)),
        kernels_(names_.size()) {}

  ~Module() override {
    for (CUlib_st* library : libraries_)
      if (library) driver().cuLibraryUnload(library);
  }

  void load(const CudaImage& image) {
    bind(device());
    const std::vector<CudaBundlePart> parts = read_cuda_bundle(image.bytes);
    const bool is_ptx = CudaTarget::parse(image.target).is_ptx;
    libraries_.resize(parts.size(), nullptr);
    for (size_t i = 0; i < parts.size(); ++i)
      for (const std::string& name : parts[i].kernels) part_of_.emplace(name, i);
    if (is_ptx) {
      load_texts(parts);
    } else {
      for (size_t i = 0; i < parts.size(); ++i) libraries_[i] = load_part(parts[i].code.data());
    }
    for (CUlib_st* library : libraries_) connect_error_word(library);
  }

  void launch(CUstream_st* stream, const hidet_cuda_launch& launch) override {
    const int64_t* g = launch.grid;
    if (g[0] == 0 || g[1] == 0 || g[2] == 0) return;
    HIDET_REQUIRE(g[0] > 0 && g[1] > 0 && g[2] > 0, ErrorCode::device, launch.kernel, "grid ",
                  triple(g), " has a negative size");
    bind(device());
    check_sizes(launch, state_.info);
    Kernel& kernel = find(launch);
    CUkern_st* handle = prepared(kernel, launch);
    LaunchAttribute cluster;
    LaunchConfig config{};
    for (int i = 0; i < 3; ++i) {
      config.grid[i] = static_cast<unsigned>(g[i]);
      config.block[i] = static_cast<unsigned>(launch.block[i]);
      cluster.value[i] = static_cast<uint32_t>(launch.cluster[i]);
    }
    config.shared_bytes = static_cast<unsigned>(launch.shared_bytes);
    config.stream = stream;
    if (launch.cluster[0]) {
      cluster.id = kLaunchClusterDimension;
      config.attributes = &cluster;
      config.attribute_count = 1;
    }
    const int result = driver().cuLaunchKernelEx(&config, handle, launch.args, nullptr);
    if (result != kOk) [[unlikely]]
      fail(result, "cuLaunchKernelEx",
           detail::concat("kernel ", launch.kernel, " (grid ", triple(g), ", block ",
                          triple(launch.block), ")"));
  }

  void* global(const std::string& name, size_t* bytes) override {
    bind(device());
    DevicePtr address = 0;
    size_t size = 0;
    int result = kNotFound;
    for (CUlib_st* library : libraries_) {
      result = driver().cuLibraryGetGlobal(&address, &size, library, name.c_str());
      if (result != kNotFound) break;
    }
    check(result, "cuLibraryGetGlobal",
          detail::concat("the variable ", name, " of the code for ", target_));
    if (bytes) *bytes = size;
    return as_host(address);
  }

  int32_t take_error() override {
    if (!error_word_.data()) return 0;
    return std::atomic_ref<int32_t>(*static_cast<int32_t*>(error_word_.data())).exchange(0);
  }

  int device() const override { return state_.info.index; }
  const std::string& target() const override { return target_; }

 private:
  Kernel& find(const hidet_cuda_launch& launch) {
    const auto index = static_cast<size_t>(launch.index);
    if (launch.index >= 0 && index < names_.size() && names_[index] == launch.kernel)
      return kernels_[index];
    std::lock_guard lock(by_name_mutex_);
    return by_name_[launch.kernel];
  }

  CUlib_st* load_part(const void* code) {
    char log[4096] = "";
    const int keys[] = {kJitErrorLog, kJitErrorLogSize};
    void* values[] = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
    CUlib_st* library = nullptr;
    const int result =
        driver().cuLibraryLoadData(&library, code, keys, values, 2, nullptr, nullptr, 0);
    if (result != kOk)
      fail(result, "cuLibraryLoadData",
           detail::concat("the code for ", target_, *log ? ": " : "", log));
    return library;
  }

  // PTX takes tens of milliseconds a piece to compile, so the pieces are shared among threads.
  void load_texts(const std::vector<CudaBundlePart>& parts) {
    std::atomic<size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    auto work = [&] {
      try {
        bind(device());
        for (size_t i = next++; i < parts.size(); i = next++) {
          // The driver reads text to the first NUL, which a mapped file does not have.
          const std::string text(reinterpret_cast<const char*>(parts[i].code.data()),
                                 parts[i].code.size());
          libraries_[i] = load_part(text.c_str());
        }
      } catch (...) {
        std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    };
    std::vector<std::thread> helpers;
    const size_t count = std::min<size_t>({parts.size(), std::thread::hardware_concurrency(), 8});
    for (size_t i = 1; i < count; ++i) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
  }

  CUlib_st* library_of(const char* kernel) const {
    const auto at = part_of_.find(kernel);
    HIDET_REQUIRE(at != part_of_.end() || (part_of_.empty() && !libraries_.empty()),
                  ErrorCode::device, kernel, "the code for ", target_, " has no such kernel");
    return libraries_[at == part_of_.end() ? 0 : at->second];
  }

  // The kernel's handle, allowed the shared memory and cluster of this launch.
  CUkern_st* prepared(Kernel& kernel, const hidet_cuda_launch& launch) {
    CUkern_st* handle = kernel.handle.load(std::memory_order_acquire);
    if (!handle) {
      check(driver().cuLibraryGetKernel(&handle, library_of(launch.kernel), launch.kernel),
            "cuLibraryGetKernel",
            detail::concat("kernel ", launch.kernel, " of the code for ", target_));
      kernel.handle.store(handle, std::memory_order_release);
    }
    if (launch.shared_bytes > kernel.dynamic_shared.load(std::memory_order_acquire))
      raise_shared(kernel, handle, launch);
    const int64_t blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
    if (blocks > kPortableCluster && !kernel.large_cluster.load(std::memory_order_acquire)) {
      check(driver().cuKernelSetAttribute(kFuncNonPortableCluster, 1, handle, state_.handle),
            "cuKernelSetAttribute",
            detail::concat("a cluster of ", blocks, " blocks of kernel ", launch.kernel));
      kernel.large_cluster.store(true, std::memory_order_release);
    }
    return handle;
  }

  void raise_shared(Kernel& kernel, CUkern_st* handle, const hidet_cuda_launch& launch) {
    std::lock_guard lock(attribute_mutex_);  // or a smaller request could overwrite a larger one
    if (launch.shared_bytes <= kernel.dynamic_shared.load(std::memory_order_acquire)) return;
    check(driver().cuKernelSetAttribute(
              kFuncMaxDynamicShared, static_cast<int>(launch.shared_bytes), handle, state_.handle),
          "cuKernelSetAttribute",
          detail::concat(launch.shared_bytes, " bytes of shared memory of kernel ", launch.kernel));
    kernel.dynamic_shared.store(launch.shared_bytes, std::memory_order_release);
  }

  // Host memory that kernels can write, its address put into the module's variable where it has one.
  void connect_error_word(CUlib_st* library) {
    DevicePtr variable = 0;
    size_t bytes = 0;
    const int result = driver().cuLibraryGetGlobal(&variable, &bytes, library, kErrorWord);
    if (result == kNotFound) return;
    // Code is loaded lazily: this is where a damaged one shows.
    check(result, "cuLibraryGetGlobal",
          detail::concat("the variable ", kErrorWord, " of the code for ", target_));
    HIDET_REQUIRE(bytes == sizeof(void*), ErrorCode::bad_file, "", "the GPU code's ", kErrorWord,
                  " is no pointer");
    if (!error_word_.data()) {
      error_word_ = CudaPinned(sizeof(int32_t), device());
      std::memset(error_word_.data(), 0, sizeof(int32_t));
    }
    void* address = error_word_.device_address();
    HIDET_CU(cuMemcpyAsync, variable, as_device(&address), sizeof(address), nullptr);
    HIDET_CU(cuStreamSynchronize, nullptr);
  }

  DeviceState& state_;
  std::string target_;
  std::vector<std::string> names_;
  std::vector<Kernel> kernels_;
  std::vector<CUlib_st*> libraries_;  // one for each piece of a bundle
  std::unordered_map<std::string, size_t>
      part_of_;  // kernel -> place in libraries_; empty: one piece has all
  CudaPinned error_word_;
  std::mutex by_name_mutex_, attribute_mutex_;
  std::unordered_map<std::string, Kernel> by_name_;
};

}  // namespace

std::shared_ptr<CudaModule> CudaModule::load(std::span<const CudaImage> images,
                                             std::vector<std::string> kernels, int device,
                                             bool allow_jit) {
  const CudaVerdict verdict = cuda_verdict(images, device, allow_jit);
  HIDET_REQUIRE(verdict.fit != CudaFit::no, ErrorCode::device, "", verdict.reason);
  const CudaImage& image = images[static_cast<size_t>(verdict.image)];
  HIDET_REQUIRE(!image.bytes.empty(), ErrorCode::bad_file, "", "the GPU code for ", image.target,
                " is empty");
  auto module =
      std::make_shared<Module>(cuda::device_state(device), image.target, std::move(kernels));
  module->load(image);
  return module;
}

}  // namespace hidet::runtime
