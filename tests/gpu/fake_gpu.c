/* fake_gpu.c - a libcuda with one GPU of compute capability 9.0 whose memory is the host's and whose one kernel,
 * scale_relu(x, w, y, n): y[i][j] = max(x[i][j] * w[j], 0) on n rows of 3, runs on the CPU. Captures record kernels,
 * copies and fills; a replay runs them. For tests of what the runtime queues, and when.
 * Leaves: fake_gpu_count, of kernels run, captures and replays. Threading: one thread at a time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kOk = 0, kInvalid = 1, kNotFound = 500, kWhileCapturing = 900 };

struct {
  int kernels, captures, replays;
} fake_gpu_count;

struct Work {
  enum { kKernel, kCopy, kFill } kind;
  float *x, *w, *y;
  int64_t n;
  void *to, *from;
  size_t bytes;
  unsigned char value;
};
struct Graph {
  int count;
  struct Work work[64];
};

static struct Graph* recording;
static void* recording_stream;

static void do_work(const struct Work* w) {
  if (w->kind == kCopy) memmove(w->to, w->from, w->bytes);
  if (w->kind == kFill) memset(w->to, w->value, w->bytes);
  if (w->kind != kKernel) return;
  ++fake_gpu_count.kernels;
  for (int64_t i = 0; i < w->n * 3; ++i) {
    const float v = w->x[i] * w->w[i % 3];
    w->y[i] = v > 0 ? v : 0;
  }
}

static int queue(void* stream, const struct Work* w) {
  if (!recording || stream != recording_stream) return do_work(w), kOk;
  if (recording->count == 64) return kInvalid;
  recording->work[recording->count++] = *w;
  return kOk;
}

int cuInit(unsigned flags) { return flags ? kInvalid : kOk; }
int cuDriverGetVersion(int* version) { return *version = 13000, kOk; }
int cuGetErrorName(int result, const char** name) {
  return (void)result, *name = "CUDA_ERROR_FAKE", kOk;
}
int cuGetErrorString(int result, const char** text) {
  return (void)result, *text = "of the fake GPU", kOk;
}
int cuDeviceGetCount(int* count) { return *count = 1, kOk; }
int cuDeviceGet(int* device, int index) { return *device = index, kOk; }
int cuDeviceGetName(char* name, int size, int device) {
  (void)device;
  strncpy(name, "Fake GPU", (size_t)size - 1);
  return kOk;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return (void)device, *bytes = (size_t)1 << 32, kOk;
}
int cuDeviceGetAttribute(int* value, int which, int device) {
  (void)device;
  *value = which == 75   ? 9
           : which == 97 ? 232448
           : which == 16 ? 4
                         : 0; /* major, shared, multiprocessors */
  return kOk;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return (void)device, *context = &fake_gpu_count, kOk;
}
int cuCtxSetCurrent(void* context) { return context ? kOk : kInvalid; }
int cuCtxSynchronize(void) { return recording ? kWhileCapturing : kOk; }

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  *address = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return kOk;
}
int cuMemFree_v2(uint64_t address) { return free((void*)(uintptr_t)address), kOk; }
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  return *free_bytes = *total = (size_t)1 << 32, kOk;
}
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  const struct Work w = {
      .kind = kCopy, .to = (void*)(uintptr_t)to, .from = (void*)(uintptr_t)from, .bytes = bytes};
  return queue(stream, &w);
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  const struct Work w = {.kind = kFill, .to = (void*)(uintptr_t)to, .bytes = bytes, .value = value};
  return queue(stream, &w);
}

int cuStreamCreate(void** stream, unsigned flags) {
  return (void)flags, (*stream = malloc(1)) ? kOk : kInvalid;
}
int cuStreamDestroy_v2(void* stream) { return free(stream), kOk; }
int cuStreamSynchronize(void* stream) {
  return recording && stream == recording_stream ? kWhileCapturing : kOk;
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  if (!stream || recording || mode != 2) return kInvalid; /* relaxed */
  recording = calloc(1, sizeof *recording);
  recording_stream = stream;
  ++fake_gpu_count.captures;
  return kOk;
}
int cuStreamEndCapture(void* stream, struct Graph** graph) {
  if (stream != recording_stream) return kInvalid;
  *graph = recording;
  recording = NULL;
  recording_stream = NULL;
  return kOk;
}
int cuGraphInstantiateWithFlags(struct Graph** exec, const struct Graph* graph,
                                unsigned long long flags) {
  *exec = malloc(sizeof **exec);
  **exec = *graph;
  return flags ? kInvalid : kOk;
}
int cuGraphLaunch(const struct Graph* exec, void* stream) {
  (void)stream;
  ++fake_gpu_count.replays;
  for (int i = 0; i < exec->count; ++i) do_work(&exec->work[i]);
  return kOk;
}
int cuGraphExecDestroy(struct Graph* exec) { return free(exec), kOk; }
int cuGraphDestroy(struct Graph* graph) { return free(graph), kOk; }

int cuLibraryLoadData(void** library, const void* code, int* keys, void** values, unsigned count,
                      int* more, void** more_values, unsigned more_count) {
  (void)keys, (void)values, (void)count, (void)more, (void)more_values, (void)more_count;
  return *library = (void*)code, kOk;
}
int cuLibraryUnload(void* library) { return library ? kOk : kInvalid; }
int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  *kernel = library;
  return strcmp(name, "scale_relu") == 0 ? kOk : kNotFound;
}
int cuLibraryGetGlobal(uint64_t* address, size_t* bytes, void* library, const char* name) {
  (void)address, (void)bytes, (void)library, (void)name;
  return kNotFound;
}
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  void* attributes;
  unsigned count;
};
int cuLaunchKernelEx(const struct LaunchConfig* config, void* kernel, void** args, void** extra) {
  const struct Work w = {.kind = kKernel,
                         .x = *(float**)args[0],
                         .w = *(float**)args[1],
                         .y = *(float**)args[2],
                         .n = *(int64_t*)args[3]};
  return kernel && !extra ? queue(config->stream, &w) : kInvalid;
}

/* What no test here reaches. */
#define UNUSED_CALL(name) \
  int name(void) { return kInvalid; }
UNUSED_CALL(cuMemPoolCreate)
UNUSED_CALL(cuMemPoolSetAttribute)
UNUSED_CALL(cuMemPoolGetAttribute)
UNUSED_CALL(cuMemPoolTrimTo)
UNUSED_CALL(cuMemAllocFromPoolAsync)
UNUSED_CALL(cuMemFreeAsync)
UNUSED_CALL(cuMemHostAlloc)
UNUSED_CALL(cuMemFreeHost)
UNUSED_CALL(cuMemHostGetDevicePointer_v2)
UNUSED_CALL(cuStreamQuery)
UNUSED_CALL(cuStreamWaitEvent)
UNUSED_CALL(cuEventCreate)
UNUSED_CALL(cuEventDestroy_v2)
UNUSED_CALL(cuEventRecord)
UNUSED_CALL(cuEventSynchronize)
UNUSED_CALL(cuEventElapsedTime)
UNUSED_CALL(cuKernelGetAttribute)
UNUSED_CALL(cuKernelSetAttribute)
UNUSED_CALL(cuTensorMapEncodeTiled)
