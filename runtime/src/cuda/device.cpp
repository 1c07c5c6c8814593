// device.cpp - a GPU as a DeviceApi: what Tensor and workspaces use.
// Needs: a GPU. Leaves: nothing; one object per GPU for the whole process.
// Threading: thread-safe.
#include <hidet/runtime/device_api.h>
#include <hidet/runtime/error.h>

#include <memory>
#include <vector>

#include "src/cuda/cuda_memory.h"
#include "src/cuda/cuda_module.h"
#include "src/cuda/driver.h"

namespace hidet::runtime {
namespace {

class CudaDeviceApi final : public DeviceApi {
 public:
  explicit CudaDeviceApi(int index) : index_(index) {}

  void* allocate(size_t bytes) override { return cuda_allocate(index_, bytes); }
  void free(void* ptr, size_t) noexcept override { cuda_free(index_, ptr); }

  void copy(void* to, Device to_device, const void* from, Device from_device,
            size_t bytes) override {
    cuda_copy_async(index_, nullptr, to, from, bytes);
    // Between GPUs the default stream's order is enough; the host needs to wait.
    if (bytes && (to_device.is_cpu() || from_device.is_cpu()))
      cuda_stream_synchronize(index_, nullptr, "a copy");
  }

  void fill_zero(void* to, size_t bytes) override { cuda_clear_async(index_, nullptr, to, bytes); }
  void synchronize() override { cuda_synchronize(index_); }
  void trim() override { cuda_trim(index_); }

  int64_t cached_bytes() override {
    const CudaMemory memory = cuda_memory(index_);
    return memory.reserved - memory.used;
  }

 private:
  int index_;
};

}  // namespace

DeviceApi& cuda_device_api(int index) {
  cuda::device_state(index);  // or the sentence that says why not
  // Never destroyed: tensors may be freed while the process ends.
  static const auto* all = [] {
    auto* made = new std::vector<std::unique_ptr<CudaDeviceApi>>;
    for (int i = 0; i < cuda_device_count(); ++i)
      made->push_back(std::make_unique<CudaDeviceApi>(i));
    return made;
  }();
  return *(*all)[static_cast<size_t>(index)];
}

}  // namespace hidet::runtime
