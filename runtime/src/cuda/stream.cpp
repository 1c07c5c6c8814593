// stream.cpp - streams, events, pinned memory and graphs over the driver.
// Needs: a GPU. Leaves: nothing; destructors ignore failures, since the driver may be gone at exit.
// Threading: one thread at a time per object.
#include <utility>

#include <hidet/runtime/cuda.h>
#include <hidet/runtime/error.h>

#include "src/cuda/cuda_module.h"
#include "src/cuda/driver.h"

namespace hidet {

using namespace runtime::cuda;

// Moves by swapping: the moved-from object destroys what the other had.
#define HIDET_CUDA_MOVES(Type, member)                                          \
  Type::Type(Type&& other) noexcept                                             \
      : member(std::exchange(other.member, nullptr)), device_(other.device_) {} \
  Type& Type::operator=(Type&& other) noexcept {                                \
    std::swap(member, other.member);                                            \
    std::swap(device_, other.device_);                                          \
    return *this;                                                               \
  }
HIDET_CUDA_MOVES(CudaStream, handle_)
HIDET_CUDA_MOVES(CudaEvent, handle_)
HIDET_CUDA_MOVES(CudaGraph, handle_)
#undef HIDET_CUDA_MOVES

CudaStream::CudaStream(int device, bool capturing) : device_(device) {
  bind(device);
  HIDET_CU(cuStreamCreate, &handle_, capturing ? kStreamNonBlocking : kStreamDefault);
}

CudaStream::~CudaStream() {
  if (handle_) driver().cuStreamDestroy(handle_);
}

void CudaStream::synchronize() const { runtime::cuda_stream_synchronize(device_, handle_, ""); }

bool CudaStream::done() const {
  bind(device_);
  const int result = driver().cuStreamQuery(handle_);
  if (result == kNotReady) return false;
  check(result, "cuStreamQuery");
  return true;
}

void CudaStream::wait(const CudaEvent& event) const {
  bind(device_);
  HIDET_CU(cuStreamWaitEvent, handle_, event.handle(), 0U);
}

CudaEvent::CudaEvent(int device) : device_(device) {
  bind(device);
  HIDET_CU(cuEventCreate, &handle_, 0U);
}

CudaEvent::~CudaEvent() {
  if (handle_) driver().cuEventDestroy(handle_);
}

void CudaEvent::record(CUstream_st* stream) {
  bind(device_);
  HIDET_CU(cuEventRecord, handle_, stream);
}

void CudaEvent::synchronize() const {
  bind(device_);
  HIDET_CU(cuEventSynchronize, handle_);
}

float CudaEvent::since(const CudaEvent& start) const {
  synchronize();
  float milliseconds = 0;
  HIDET_CU(cuEventElapsedTime, &milliseconds, start.handle_, handle_);
  return milliseconds;
}

CudaPinned::CudaPinned(size_t bytes, int device) : bytes_(bytes), device_(device) {
  bind(device);
  if (bytes) HIDET_CU(cuMemHostAlloc, &data_, bytes, kHostPortable | kHostMapped);
}

CudaPinned::CudaPinned(CudaPinned&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      device_(other.device_) {}

CudaPinned& CudaPinned::operator=(CudaPinned&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  return *this;
}

CudaPinned::~CudaPinned() {
  if (data_) driver().cuMemFreeHost(data_);
}

void* CudaPinned::device_address() const {
  if (!data_) return nullptr;
  bind(device_);
  DevicePtr address = 0;
  HIDET_CU(cuMemHostGetDevicePointer, &address, data_, 0U);
  return as_host(address);
}

CudaGraph::CudaGraph(int device, const std::function<void(CUstream_st*)>& work) : device_(device) {
  CudaStream stream(device, true);
  CUgraph_st* graph = nullptr;
  // Relaxed: a kernel's first use loads its code, which the stricter modes forbid during a capture.
  HIDET_CU(cuStreamBeginCapture, stream.handle(), static_cast<int>(kCaptureRelaxed));
  try {
    work(stream.handle());
  } catch (...) {
    if (driver().cuStreamEndCapture(stream.handle(), &graph) == kOk && graph)
      driver().cuGraphDestroy(graph);
    throw;
  }
  HIDET_CU(cuStreamEndCapture, stream.handle(), &graph);
  const int result = driver().cuGraphInstantiateWithFlags(&handle_, graph, 0);
  driver().cuGraphDestroy(graph);
  check(result, "cuGraphInstantiateWithFlags");
}

CudaGraph::~CudaGraph() {
  if (handle_) driver().cuGraphExecDestroy(handle_);
}

void CudaGraph::launch(CUstream_st* stream) const {
  HIDET_REQUIRE(handle_, ErrorCode::usage, "",
                "this CudaGraph is empty: construct it with the work to record");
  bind(device_);
  HIDET_CU(cuGraphLaunch, handle_, stream);
}

}  // namespace hidet

namespace hidet::runtime {

void cuda_bind(int device) { cuda::bind(device); }

void cuda_stream_synchronize(int device, CUstream_st* stream, const std::string& what) {
  cuda::bind(device);
  cuda::check(cuda::driver().cuStreamSynchronize(stream), "cuStreamSynchronize", what);
}

void cuda_copy_async(int device, CUstream_st* stream, void* to, const void* from, size_t bytes) {
  if (!bytes) return;
  cuda::bind(device);
  HIDET_CU(cuMemcpyAsync, cuda::as_device(to), cuda::as_device(from), bytes, stream);
}

void cuda_clear_async(int device, CUstream_st* stream, void* to, size_t bytes) {
  if (!bytes) return;
  cuda::bind(device);
  HIDET_CU(cuMemsetD8Async, cuda::as_device(to), static_cast<unsigned char>(0), bytes, stream);
}

void cuda_tensor_map(int device, void* map, int data_type, int rank, void* address,
                     const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                     const uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,
                     int oob_fill) {
  cuda::bind(device);
  HIDET_REQUIRE(reinterpret_cast<uintptr_t>(map) % 64 == 0, ErrorCode::internal, "",
                "a tensor map must be 64-byte aligned");
  HIDET_CU(cuTensorMapEncodeTiled, map, data_type, static_cast<uint32_t>(rank), address, dims,
           strides, box, element_strides, interleave, swizzle, l2_promotion, oob_fill);
}

}  // namespace hidet::runtime
