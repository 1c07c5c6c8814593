// cuda_runtime_gpu.cpp - the CUDA runtime on a GPU: memory, copies, streams, events, modules, launches, graphs,
// verdicts, errors; then what the calls cost. Plain program: prints PASS, FAIL or SKIP lines; exit status 1 after a FAIL.
// usage: cuda_runtime_gpu KERNEL_FOLDER   (made by cuda_gpu_kernels, on any machine)
// Needs: libhidet_runtime.so, a driver, a GPU.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hidet/runtime/cuda.h>
#include <hidet/runtime/device_api.h>
#include <hidet/runtime/error.h>

#include "checks.h"
#include "src/cuda/cuda_memory.h"
#include "src/cuda/cuda_module.h"

using namespace hidet;
using namespace hidet::runtime;

namespace {

std::vector<std::pair<std::string, std::string>> code;  // target, bytes
std::vector<CudaImage> images;
const std::vector<std::string> kNames = {"vector_add", "scale",      "reverse",      "spin",
                                         "checked",    "bad_access", "cluster_rank", "bulk_tile"};
std::shared_ptr<CudaModule> module;

void require(bool condition, const std::string& what) {
  if (!condition) throw Error(ErrorCode::mismatch, what);
}

// The error of `call`; fails when there is none.
template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  throw Error(ErrorCode::mismatch, "no error was thrown");
}

void expect_text(const Error& error, ErrorCode code, const std::string& part) {
  require(error.code() == code, std::string("wrong code of: ") + error.what());
  require(std::string(error.what()).find(part) != std::string::npos,
          "'" + part + "' is not in: " + error.what());
}

// GPU floats that go with the object.
struct Floats {
  float* data;
  int n;
  explicit Floats(int count)
      : data(static_cast<float*>(cuda_allocate(0, static_cast<size_t>(count) * 4))), n(count) {}
  explicit Floats(const std::vector<float>& values) : Floats(static_cast<int>(values.size())) {
    cuda_copy_async(0, nullptr, data, values.data(), values.size() * 4);
  }
  ~Floats() { cuda_free(0, data); }
  Floats(const Floats&) = delete;
  std::vector<float> host() const {
    std::vector<float> values(static_cast<size_t>(n));
    cuda_copy_async(0, nullptr, values.data(), data, values.size() * 4);
    cuda_synchronize(0);
    return values;
  }
};

std::vector<float> ramp(int n, float step) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i) * step;
  return values;
}

hidet_cuda_launch launch_of(const char* kernel, int64_t grid, int64_t block, void** args) {
  hidet_cuda_launch launch{};
  launch.size = sizeof(launch);
  launch.kernel = kernel;
  for (int i = 0; i < 3; ++i) launch.grid[i] = launch.block[i] = 1;
  launch.grid[0] = grid;
  launch.block[0] = block;
  launch.args = args;
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == kernel) launch.index = static_cast<int32_t>(i);
  return launch;
}

void add(CUstream_st* stream, const Floats& a, const Floats& b, const Floats& c) {
  int n = a.n;
  const void* pointers[] = {a.data, b.data, c.data};
  void* args[] = {&pointers[0], &pointers[1], &pointers[2], &n};
  module->launch(stream, launch_of("vector_add", (n + 255) / 256, 256, args));
}

void spin(CUstream_st* stream, int64_t microseconds) {
  int64_t nanoseconds = microseconds * 1000;
  void* args[] = {&nanoseconds};
  module->launch(stream, launch_of("spin", 1, 1, args));
}

void device_facts() {
  const CudaDeviceInfo& gpu = cuda_device_info(0);
  std::printf("     %s, compute capability %d.%d, %d multiprocessors, %lld bytes, driver %d\n",
              gpu.name.c_str(), gpu.major, gpu.minor, gpu.multiprocessors,
              static_cast<long long>(gpu.memory_bytes), gpu.driver_version);
  require(gpu.major >= 7 && gpu.multiprocessors > 0 && gpu.memory_bytes > 0 &&
              gpu.shared_bytes >= 48 * 1024,
          "a property is missing");
  expect_text(error_of([] { cuda_device_info(99); }), ErrorCode::device, "there is no GPU cuda:99");
}

void memory_pool() {
  const CudaMemory before = cuda_memory(0);
  void* p = cuda_allocate(0, 100 << 20);
  void* q = cuda_allocate(0, 1);
  require(reinterpret_cast<uintptr_t>(p) % 256 == 0 && reinterpret_cast<uintptr_t>(q) % 256 == 0,
          "memory is not aligned to 256");
  const CudaMemory during = cuda_memory(0);
  require(during.used - before.used >= (100 << 20), "used does not count what was given out");
  cuda_free(0, p);
  cuda_free(0, q);
  cuda_synchronize(0);
  const CudaMemory after = cuda_memory(0);
  require(after.used == before.used, "used is not back at the start");
  require(after.peak >= during.used, "the peak is too small");
  require(after.reserved >= (100 << 20), "the pool gave its memory back at once");
  cuda_trim(0);
  require(cuda_memory(0).reserved < after.reserved, "trim gave nothing back");
  require(cuda_allocate(0, 0) == nullptr, "0 bytes are not null");
}

void flat_memory() {
  for (int i = 0; i < 64; ++i) Floats warm(1 << 20);
  cuda_synchronize(0);
  const int64_t start = cuda_memory(0).reserved;
  for (int i = 0; i < 2000; ++i) Floats block(1 + (i * 7919) % (1 << 20));
  cuda_synchronize(0);
  require(cuda_memory(0).reserved <= start + (64 << 20), "the pool grows with every new size");
}

void out_of_memory() {
  expect_text(error_of([] { cuda_allocate(0, size_t{1} << 46); }), ErrorCode::memory,
              "has no room for 70368744177664 bytes");
  Floats works(ramp(1000, 1));
  require(works.host()[999] == 999, "memory does not work after the error");
}

void copies() {
  const std::vector<float> values = ramp(1000003, 0.5F);
  Floats a(values), b(1000003);
  cuda_copy_async(0, nullptr, b.data, a.data, values.size() * 4);
  require(b.host() == values, "a copy on the GPU differs");
  cuda_clear_async(0, nullptr, b.data, values.size() * 4);
  require(b.host() == std::vector<float>(values.size(), 0.0F), "clear left something");
  CudaPinned pinned(4096);
  std::memcpy(pinned.data(), values.data(), 4096);
  CudaStream stream;
  cuda_copy_async(0, stream.handle(), b.data, pinned.data(), 4096);
  stream.synchronize();
  require(b.host()[1023] == values[1023], "a copy from pinned memory differs");
}

void device_api() {
  DeviceApi& api = cuda_device_api(0);
  const Device gpu(DeviceKind::cuda), cpu;
  const std::vector<float> values = ramp(12345, 0.25F);
  std::vector<float> back(values.size(), -1);
  const size_t bytes = values.size() * 4;
  void* p = api.allocate(bytes);
  void* q = api.allocate(bytes);
  api.copy(p, gpu, values.data(), cpu, bytes);
  api.copy(q, gpu, p, gpu, bytes);
  api.copy(back.data(), cpu, q, gpu, bytes);
  require(back == values, "a copy differs");
  api.fill_zero(q, bytes);
  api.copy(back.data(), cpu, q, gpu, bytes);
  require(back == std::vector<float>(values.size(), 0.0F), "fill_zero left something");
  api.free(p, bytes);
  api.free(q, bytes);
  api.synchronize();
  api.trim();
  require(api.allocate(0) == nullptr, "0 bytes are not null");
  expect_text(error_of([] { cuda_device_api(99); }), ErrorCode::device, "there is no GPU cuda:99");
}

void vector_adds() {
  for (int n : {1, 255, 256, 257, 1000003}) {
    Floats a(ramp(n, 1)), b(ramp(n, 2)), c(n);
    add(nullptr, a, b, c);
    const std::vector<float> result = c.host();
    for (int i = 0; i < n; ++i)
      require(result[static_cast<size_t>(i)] == static_cast<float>(i) + static_cast<float>(i) * 2,
              "wrong sum");
  }
}

void streams_and_events() {
  CudaStream first, second;
  CudaEvent start, end;
  start.record(first.handle());
  spin(first.handle(), 20000);
  end.record(first.handle());
  require(!first.done(), "the stream is done while its kernel spins");
  second.wait(end);
  Floats a(ramp(1000, 1)), b(ramp(1000, 1)), c(1000);
  add(second.handle(), a, b, c);
  second.synchronize();
  require(first.done(), "the second stream did not wait for the first");
  const float ms = end.since(start);
  require(ms > 19 && ms < 200,
          "an event time of " + std::to_string(ms) + " ms for a kernel of 20 ms");
  require(c.host()[999] == 1998, "wrong sum");
}

void free_while_in_use() {
  CudaStream stream;
  std::vector<float> values = ramp(1 << 20, 1);
  Floats c(1 << 20);
  {
    Floats a(values), b(values);
    spin(stream.handle(), 10000);
    add(stream.handle(), a, b, c);
  }
  Floats other(std::vector<float>(1 << 20, -5.0F));  // takes the freed place, after the kernel
  stream.synchronize();
  require(c.host()[12345] == 24690, "freed memory was reused before the kernel that reads it ran");
}

void graph_replay() {
  Floats a(ramp(1000, 1)), b(ramp(1000, 2)), c(1000);
  cuda_synchronize(0);
  const CudaGraph graph(0, [&](CUstream_st* stream) {
    add(stream, a, b, c);
    add(stream, c, b, c);
  });
  require(c.host()[999] != 999 * 5, "a capture must not run the work");
  CudaStream stream;
  for (int round = 1; round <= 3; ++round) {
    std::vector<float> fresh = ramp(1000, static_cast<float>(round));
    cuda_copy_async(0, nullptr, a.data, fresh.data(), 4000);
    graph.launch(stream.handle());
    stream.synchronize();
    require(c.host()[999] == 999.0F * static_cast<float>(round + 4), "wrong result of a replay");
  }
  expect_text(error_of([] { CudaGraph().launch(nullptr); }), ErrorCode::usage, "empty");
  error_of([&] { CudaGraph broken(0, [](CUstream_st*) { throw Error("on purpose"); }); });
  add(nullptr, a, b, c);
  cuda_synchronize(0);
}

void many_threads() {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&wrong, t] {
      for (int round = 0; round < 50; ++round) {
        const int n = 1000 + t * 77 + round;
        CudaStream stream;
        Floats a(ramp(n, 1)), b(ramp(n, static_cast<float>(t))), c(n);
        add(stream.handle(), a, b, c);
        stream.synchronize();
        wrong[static_cast<size_t>(t)] +=
            c.host()[static_cast<size_t>(n - 1)] != static_cast<float>((n - 1) * (1 + t));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int count : wrong) require(count == 0, "a thread saw a wrong sum");
}

void shared_memory() {
  for (int n : {1000, 12288, 20000}) {  // 80,000 bytes need the attribute
    if (n * 4 > cuda_device_info(0).shared_bytes) continue;
    Floats a(ramp(n, 1));
    void* pointer = a.data;
    void* args[] = {&pointer, &n};
    hidet_cuda_launch launch = launch_of("reverse", 1, 256, args);
    launch.shared_bytes = n * 4;
    module->launch(nullptr, launch);
    require(a.host()[0] == static_cast<float>(n - 1), "wrong order");
    launch.shared_bytes = 1 << 20;
    expect_text(error_of([&] { module->launch(nullptr, launch); }), ErrorCode::device,
                "1048576 bytes of shared memory");
  }
}

void launch_sizes() {
  Floats a(ramp(4, 1)), b(ramp(4, 1)), c(ramp(4, 0));
  int n = 4;
  const void* pointers[] = {a.data, b.data, c.data};
  void* args[] = {&pointers[0], &pointers[1], &pointers[2], &n};
  module->launch(nullptr, launch_of("vector_add", 0, 256, args));
  require(c.host()[3] == 0, "an empty grid ran");
  hidet_cuda_launch launch = launch_of("vector_add", 1, 256, args);
  launch.grid[1] = 65536;
  expect_text(error_of([&] { module->launch(nullptr, launch); }), ErrorCode::device,
              "vector_add: error: grid (1, 65536, 1) is too large");
  launch = launch_of("vector_add", 1, 2048, args);
  expect_text(error_of([&] { module->launch(nullptr, launch); }), ErrorCode::device,
              "block (2048, 1, 1)");
  launch = launch_of("no_such_kernel", 1, 32, args);
  launch.index = -1;
  expect_text(error_of([&] { module->launch(nullptr, launch); }), ErrorCode::device,
              "no_such_kernel");
  launch = launch_of("vector_add", 2147483647, 32, args);
  n = 0;
  module->launch(nullptr, launch);
  cuda_synchronize(0);
}

void globals() {
  size_t bytes = 0;
  void* factor = module->global("factor", &bytes);
  require(bytes == 4, "wrong size");
  const float three = 3;
  cuda_copy_async(0, nullptr, factor, &three, 4);
  Floats a(ramp(10, 1));
  int n = 10;
  void* pointer = a.data;
  void* args[] = {&pointer, &n};
  module->launch(nullptr, launch_of("scale", 1, 32, args));
  require(a.host()[9] == 27, "the variable did not reach the kernel");
  expect_text(error_of([] { module->global("nothing"); }), ErrorCode::device,
              "the variable nothing");
}

void error_word() {
  std::vector<float> values = ramp(1000, 1);
  Floats good(values);
  values[777] = NAN;
  Floats bad(values);
  for (const Floats* data : {&good, &bad}) {
    int n = 1000;
    void* pointer = data->data;
    void* args[] = {&pointer, &n};
    module->launch(nullptr, launch_of("checked", 4, 256, args));
    cuda_synchronize(0);
    require(module->take_error() == (data == &bad ? 17 : 0), "wrong id");
    require(module->take_error() == 0, "the id was not taken");
  }
}

void cluster_launch() {
  Floats out(16);
  void* pointer = out.data;
  void* args[] = {&pointer};
  for (int size : {1, 2, 8, 16}) {
    hidet_cuda_launch launch = launch_of("cluster_rank", 16, 32, args);
    launch.cluster[0] = size;
    launch.cluster[1] = launch.cluster[2] = 1;
    module->launch(nullptr, launch);
    const std::vector<float> raw = out.host();
    for (int i = 0; i < 16; ++i) {
      int value;
      std::memcpy(&value, &raw[static_cast<size_t>(i)], 4);
      require(value == (i % size) * 100 + size,
              "wrong rank in a cluster of " + std::to_string(size));
    }
  }
  hidet_cuda_launch launch = launch_of("cluster_rank", 15, 32, args);
  launch.cluster[0] = 2;
  launch.cluster[1] = launch.cluster[2] = 1;
  expect_text(error_of([&] { module->launch(nullptr, launch); }), ErrorCode::device,
              "must divide the grid");
}

void tensor_map() {
  constexpr int kRows = 21, kColumns = 40;  // neither divides the tile of 8 x 32
  Floats source(ramp(kRows * kColumns, 1)), out(8 * 32);
  alignas(64) unsigned char map[128];
  const uint64_t dims[] = {kColumns, kRows}, strides[] = {kColumns * 4};
  const uint32_t box[] = {32, 8}, steps[] = {1, 1};
  constexpr int kFloat32 = 7;
  cuda_tensor_map(0, map, kFloat32, 2, source.data, dims, strides, box, steps, 0, 0, 0, 0);
  int x = 16, y = 16;
  void* pointer = out.data;
  void* args[] = {map, &pointer, &x, &y};
  module->launch(nullptr, launch_of("bulk_tile", 1, 128, args));
  const std::vector<float> tile = out.host();
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 32; ++c) {
      const bool inside = y + r < kRows && x + c < kColumns;
      require(tile[static_cast<size_t>(r * 32 + c)] ==
                  (inside ? static_cast<float>((y + r) * kColumns + x + c) : 0.0F),
              "wrong tile");
    }
}

void verdicts() {
  const CudaDeviceInfo& gpu = cuda_device_info(0);
  for (const CudaImage& image : images) {
    const CudaVerdict verdict = cuda_verdict({&image, 1}, 0);
    std::printf("     %s\n", verdict.reason.c_str());
    if (verdict.fit == CudaFit::no) {
      expect_text(error_of([&] { CudaModule::load({&image, 1}, kNames, 0); }), ErrorCode::device,
                  "none of which runs on " + gpu.name);
      continue;
    }
    auto saved = std::exchange(module, CudaModule::load({&image, 1}, kNames, 0));
    vector_adds();
    module = saved;
  }
  std::string damaged = code[0].second;
  damaged.resize(damaged.size() / 2);
  const CudaImage image{"sm_" + std::to_string(gpu.arch()), std::as_bytes(std::span(damaged))};
  error_of([&] { CudaModule::load({&image, 1}, kNames, 0); });
  const std::string text = ".version 8.0\n.target sm_80\n.address_size 64\nnonsense\n";
  const CudaImage ptx{"ptx", std::as_bytes(std::span(text))};
  expect_text(error_of([&] { CudaModule::load({&ptx, 1}, kNames, 0); }), ErrorCode::device,
              "the code for ptx");
}

double microseconds(int count, const std::function<void()>& body) {
  body();
  cuda_synchronize(0);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) body();
  const auto end = std::chrono::steady_clock::now();
  cuda_synchronize(0);
  return std::chrono::duration<double, std::micro>(end - start).count() / count;
}

void costs() {
  CudaStream stream;
  Floats a(ramp(256, 1)), b(ramp(256, 1)), c(256);
  const CudaGraph graph(0, [&](CUstream_st* s) {
    for (int i = 0; i < 20; ++i) add(s, a, b, c);
  });
  const auto print = [](const char* what, double us) {
    std::printf("     %-58s %8.2f us\n", what, us);
  };
  print("launch, default stream", microseconds(2000, [&] { add(nullptr, a, b, c); }));
  print("launch, own stream", microseconds(2000, [&] { add(stream.handle(), a, b, c); }));
  print("allocate and free 1 MB",
        microseconds(2000, [] { cuda_free(0, cuda_allocate(0, 1 << 20)); }));
  print("allocate, launch in default stream, free", microseconds(2000, [&] {
          Floats t(1 << 18);
          add(nullptr, a, b, c);
        }));
  print("allocate, launch in own stream, free", microseconds(2000, [&] {
          Floats t(1 << 18);
          add(stream.handle(), a, b, c);
        }));
  print("allocate, 20 launches, synchronise, free: default stream", microseconds(200, [&] {
          Floats t(1 << 18);
          for (int i = 0; i < 20; ++i) add(nullptr, a, b, c);
          cuda_stream_synchronize(0, nullptr, "");
        }));
  print("allocate, 20 launches, synchronise, free: own stream", microseconds(200, [&] {
          Floats t(1 << 18);
          for (int i = 0; i < 20; ++i) add(stream.handle(), a, b, c);
          stream.synchronize();
        }));
  print("graph of 20 kernels, launch and synchronise", microseconds(200, [&] {
          graph.launch(stream.handle());
          stream.synchronize();
        }));
  for (const CudaImage& image : images)
    if (cuda_verdict({&image, 1}, 0).fit != CudaFit::no)
      print(("load " + image.target + ", then one kernel").c_str(), microseconds(10, [&] {
              auto loaded = CudaModule::load({&image, 1}, kNames, 0);
              std::swap(loaded, module);
              add(nullptr, a, b, c);
              std::swap(loaded, module);
            }));
}

// Last, since the context does not survive it.
void bad_access() {
  void* pointer = reinterpret_cast<void*>(16);
  void* args[] = {&pointer};
  module->launch(nullptr, launch_of("bad_access", 1, 32, args));
  expect_text(error_of([] { cuda_stream_synchronize(0, nullptr, "kernel bad_access"); }),
              ErrorCode::device, "kernel bad_access");
  error_of([] { cuda_synchronize(0); });
}

void read_code(const std::string& folder) {
  code.reserve(8);
  for (const char* name : {"sm_80.cubin", "sm_90a.cubin", "sm_120.cubin", "ptx.ptx"}) {
    std::ifstream in(folder + "/" + name, std::ios::binary);
    if (!in) continue;
    const std::string target = std::string(name).substr(0, std::string(name).find('.'));
    code.emplace_back(target, std::string(std::istreambuf_iterator<char>(in), {}));
    images.push_back({target, std::as_bytes(std::span(code.back().second))});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string problem = cuda_problem(); !problem.empty()) {
    std::printf("SKIP everything: %s\n", problem.c_str());
    return 0;
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: cuda_runtime_gpu KERNEL_FOLDER\n");
    return 2;
  }
  read_code(argv[1]);
  if (images.empty()) {
    std::printf("SKIP everything: there is no kernel in %s\n", argv[1]);
    return 0;
  }
  check("device_facts", device_facts);
  const auto start = std::chrono::steady_clock::now();
  check("load", [] { module = CudaModule::load(images, kNames, 0); });
  std::printf(
      "     context and load %.1f ms\n",
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  if (!module) return 1;
  const bool hopper = module->target() == "sm_90a";
  const std::pair<const char*, void (*)()> checks[] = {{"memory_pool", memory_pool},
                                                       {"flat_memory", flat_memory},
                                                       {"out_of_memory", out_of_memory},
                                                       {"copies", copies},
                                                       {"device_api", device_api},
                                                       {"vector_adds", vector_adds},
                                                       {"streams_and_events", streams_and_events},
                                                       {"free_while_in_use", free_while_in_use},
                                                       {"graph_replay", graph_replay},
                                                       {"many_threads", many_threads},
                                                       {"shared_memory", shared_memory},
                                                       {"launch_sizes", launch_sizes},
                                                       {"globals", globals},
                                                       {"error_word", error_word},
                                                       {"verdicts", verdicts}};
  for (const auto& [name, body] : checks) check(name, body);
  if (hopper) {
    check("cluster_launch", cluster_launch);
    check("tensor_map", tensor_map);
  } else {
    std::printf("SKIP cluster_launch, tensor_map: they need compute capability 9.0\n");
  }
  check("costs", costs);
  check("bad_access", bad_access);
  std::printf(failures ? "FAILED %d\n" : "ALL PASSED\n", failures);
  return failures ? 1 : 0;
}
