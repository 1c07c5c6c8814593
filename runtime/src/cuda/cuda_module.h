// cuda_module.h - GPU code of a program: which image fits a GPU, loading it, launching its kernels.
// Needs: nothing to ask for a verdict; a driver and a GPU to load.
// Threading: cuda_verdict is a pure function; a CudaModule is thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hidet/runtime/abi.h>
#include <hidet/runtime/cuda.h>

namespace hidet::runtime {

/// GPU code for one target: "sm_80", "sm_90a" (cubin) or "ptx", "compute_80" (PTX text), plain or as a
/// bundle (cuda_bundle.h). Where only a verdict is wanted the bytes may be empty.
struct CudaImage {
  std::string target;
  std::span<const std::byte> bytes;
};

/// A target's name taken apart. Throws Error(usage) for a name that is none.
struct CudaTarget {
  int arch = 0;  ///< 80, 90, 120; 0 for "ptx" (the text says which)
  char variant =
      0;  ///< 'a': this chip only; 'f': this family; 0: this major version from this minor on
  bool is_ptx = false;
  static CudaTarget parse(std::string_view name);
  static bool is_cuda(std::string_view name);  ///< true for the names that parse takes
};

enum class CudaFit { no, jit, yes };
struct CudaVerdict {
  CudaFit fit = CudaFit::no;
  int image = -1;      ///< the best image's place in the list
  std::string reason;  ///< one sentence: which image and why, or what is missing
};
/// Which image would run on `gpu`, from the targets' names and the PTX header alone: the driver takes a
/// cubin of another architecture without complaint and fails at the first kernel.
CudaVerdict cuda_verdict(std::span<const CudaImage> images, const CudaDeviceInfo& gpu,
                         bool allow_jit = true);
/// The same for GPU number `device` of this machine; no driver or no GPU is a "no" with the reason.
CudaVerdict cuda_verdict(std::span<const CudaImage> images, int device, bool allow_jit = true);

/// A program's kernels, loaded on one GPU. Handles are looked up at the first launch of each.
class CudaModule {
 public:
  /// Load the image that fits best. `kernels`: their names, in the order of hidet_cuda_launch::index.
  /// The bytes are not used after the call. Throws Error(device) with the verdict's reason.
  static std::shared_ptr<CudaModule> load(std::span<const CudaImage> images,
                                          std::vector<std::string> kernels, int device,
                                          bool allow_jit = true);
  virtual ~CudaModule() = default;
  /// Queue a kernel. A grid with a 0 does nothing. Throws Error(device) that names the kernel.
  virtual void launch(CUstream_st* stream, const hidet_cuda_launch& launch) = 0;
  /// Device address of a global variable or constant; throws Error(device) where there is none.
  virtual void* global(const std::string& name, size_t* bytes = nullptr) = 0;
  /// The id that a failing assert of a kernel left since the last call (0: none). Ask after a synchronisation.
  /// Works through the module's variable `__device__ int* hidet_error_word`, which load points to host memory.
  virtual int32_t take_error() = 0;
  virtual int device() const = 0;
  virtual const std::string& target() const = 0;  ///< of the image that was loaded
};

/// Make the GPU's primary context current in this thread (retained at the first call, kept until the end).
void cuda_bind(int device);
/// After waiting for `stream`: throws Error(device) for a fault of an earlier kernel; `what` names the work.
void cuda_stream_synchronize(int device, CUstream_st* stream, const std::string& what);
/// Fill a CUtensorMap (128 bytes at `map`, 64-byte aligned); arguments as cuTensorMapEncodeTiled takes them.
void cuda_tensor_map(int device, void* map, int data_type, int rank, void* address,
                     const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                     const uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,
                     int oob_fill);
/// Copy or clear in stream order. Addresses may be of the host or of a GPU.
void cuda_copy_async(int device, CUstream_st* stream, void* to, const void* from, size_t bytes);
void cuda_clear_async(int device, CUstream_st* stream, void* to, size_t bytes);

}  // namespace hidet::runtime
