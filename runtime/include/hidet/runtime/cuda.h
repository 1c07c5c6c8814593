// cuda.h - GPUs as the runtime sees them: what is there, streams, events, pinned memory, graphs.
// Needs: nothing at build time; libcuda.so.1 is opened when one of these is first called. Where there
// is no driver or no GPU, cuda_device_count() is 0, cuda_problem() says why and the rest throws
// Error(device) with that sentence.
// Threading: the free functions are thread-safe; an object is used by one thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

// The driver's own handle types, so that a CUstream or cudaStream_t can be passed as it is.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace hidet {

/// What one GPU is.
struct CudaDeviceInfo {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  int64_t memory_bytes = 0;  ///< all of its memory
  int multiprocessors = 0;
  int64_t shared_bytes = 0;  ///< the most shared memory that one block can have
  int64_t l2_bytes = 0;
  int driver_version = 0;                          ///< 13000 for CUDA 13.0
  int arch() const { return major * 10 + minor; }  ///< 90 for compute capability 9.0
};

/// The number of GPUs; 0 where there is no GPU, no driver, or one that is too old.
int cuda_device_count();
/// Why there is no GPU, one sentence; empty where there is one.
std::string cuda_problem();
/// Throws Error(device) where the GPU is not there.
const CudaDeviceInfo& cuda_device_info(int index);
/// Wait for all work of the GPU.
void cuda_synchronize(int device = 0);

class CudaEvent;

/// An in-order queue of GPU work. Work of the device's default stream (handle null: copies, memory) and of
/// a CudaStream is ordered as CUDA's legacy rule says; a `capturing` stream stands outside that rule.
class CudaStream {
 public:
  explicit CudaStream(int device = 0, bool capturing = false);
  CudaStream(CudaStream&& other) noexcept;
  CudaStream& operator=(CudaStream&& other) noexcept;
  ~CudaStream();
  CUstream_st* handle() const { return handle_; }
  int device() const { return device_; }
  void synchronize() const;
  bool done() const;                        ///< all work queued so far has finished
  void wait(const CudaEvent& event) const;  ///< later work waits for the event

 private:
  CUstream_st* handle_ = nullptr;
  int device_ = 0;
};

/// A point in a stream, for waiting and for timing.
class CudaEvent {
 public:
  explicit CudaEvent(int device = 0);
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&& other) noexcept;
  ~CudaEvent();
  CUevent_st* handle() const { return handle_; }
  void record(CUstream_st* stream);
  void synchronize() const;
  /// Milliseconds from `start` to this event; both must have been recorded; waits for this one.
  float since(const CudaEvent& start) const;

 private:
  CUevent_st* handle_ = nullptr;
  int device_ = 0;
};

/// Host memory that the GPU copies from and to at full speed, and that it can read in place.
class CudaPinned {
 public:
  CudaPinned() = default;
  explicit CudaPinned(size_t bytes, int device = 0);
  CudaPinned(CudaPinned&& other) noexcept;
  CudaPinned& operator=(CudaPinned&& other) noexcept;
  ~CudaPinned();
  void* data() const { return data_; }
  void* device_address() const;  ///< where the GPU sees it
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  int device_ = 0;
};

/// GPU work recorded once and replayed with one call.
class CudaGraph {
 public:
  CudaGraph() = default;
  /// Record what `work` queues on the stream it is given (a capturing one, on `device`). `work` must not
  /// synchronise or allocate. The memory that it touches must outlive the graph.
  CudaGraph(int device, const std::function<void(CUstream_st*)>& work);
  CudaGraph(CudaGraph&& other) noexcept;
  CudaGraph& operator=(CudaGraph&& other) noexcept;
  ~CudaGraph();
  explicit operator bool() const { return handle_ != nullptr; }
  void launch(CUstream_st* stream) const;

 private:
  CUgraphExec_st* handle_ = nullptr;
  int device_ = 0;
};

}  // namespace hidet
