// script_gpu.cpp - the CUDA programs of docs/script.md on a GPU: each result is compared with a loop in f64 at sampled
// places; vector add and softmax are timed beside a device copy, the tensor-core product beside cuBLAS where it is found.
// usage: script_gpu [M N K]   sizes of the product; 4096 4096 4096 unless given
//        script_gpu check     each program once at a small size, nothing timed: for compute-sanitizer
// Needs: a GPU, NVRTC and a C compiler, no LLVM; without a GPU it prints SKIP. Exit status 1 when a result is wrong.
// Threading: one thread.
#include "../lang/guide.h"
#include "../lang/guide_matmul.h"
#include "../lang/guide_matmul_hopper.h"
#include "checks.h"

#include <hidet/runtime/cuda.h>
#include <hidet/runtime/device_api.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

using hidet::CompiledModule;
using hidet::Tensor;

namespace {

/// Median milliseconds of one call, timed with events in batches that fill about 20 ms.
double median_ms(const std::function<void()>& call) {
  hidet::CudaEvent start, end;
  const auto batch = [&](int n) {
    start.record(nullptr);
    for (int i = 0; i < n; i++) call();
    end.record(nullptr);
    return static_cast<double>(end.since(start)) / n;
  };
  batch(3);
  const int n = std::clamp(static_cast<int>(20 / batch(3)), 1, 200);
  std::vector<double> times;
  for (int round = 0; round < 9; round++) times.push_back(batch(n));
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  return times[4];
}

double copy_gbps() {
  const int64_t n = 256 << 20;
  const Tensor a = hidet::zeros({n}, hidet::f32, "cuda"), b = hidet::zeros({n}, hidet::f32, "cuda");
  const double ms = median_ms([&] {
    hidet::runtime::copy_bytes(b.data(), b.device(), a.data(), a.device(),
                               static_cast<size_t>(4 * n));
  });
  return 8e-6 * static_cast<double>(n) / ms;
}

void require(bool fine, const std::string& what) {
  if (!fine) throw std::runtime_error(what);
}

/// Compares `got` at 500 places; the tolerance is relative to the largest value expected there.
void compare(const Tensor& got, double tolerance, const std::function<double(int64_t)>& expected) {
  const std::vector<double> values = got.to_doubles();
  std::mt19937_64 random(7);
  double worst = 0, scale = 0;
  for (int i = 0; i < 500; i++) {
    const auto at = i == 0 ? 0 : static_cast<int64_t>(random() % values.size());
    const double e = expected(at), d = std::fabs(values[static_cast<size_t>(at)] - e);
    scale = std::max(scale, std::fabs(e));
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  require(worst <= tolerance * scale, "error " + std::to_string(worst / scale));
}

bool timed = true;

void report(const char* name, double bytes, double ms, double copy) {
  std::printf("  %-24s %9.4f ms %8.0f GB/s, %5.1f %% of a copy\n", name, ms, bytes / ms * 1e-6,
              100 * bytes / ms * 1e-6 / copy);
}

void vector_addition(double copy, int n) {
  const CompiledModule add = vector_add_cuda().build();
  const Tensor a = hidet::randn({n}), b = hidet::randn({n}),
               c = hidet::zeros({n}, hidet::f32, "cuda");
  const Tensor x = a.cuda(), y = b.cuda();
  const auto call = [&] { add(x, y, c, n); };
  call();
  const auto *p = static_cast<const float*>(a.data()), *q = static_cast<const float*>(b.data());
  compare(c.cpu(), 0, [&](int64_t i) { return p[i] + q[i]; });
  if (!timed) return;
  report("vector_add", 12.0 * n, median_ms(call), copy);
}

void row_softmax(double copy, int rows, int columns) {
  const CompiledModule softmax = softmax_cuda(columns).build();
  const Tensor a = hidet::randn({rows, columns}), x = a.cuda(),
               y = hidet::zeros({rows, columns}, hidet::f32, "cuda");
  const auto call = [&] { softmax(x, y, rows); };
  call();
  const auto* p = static_cast<const float*>(a.data());
  compare(y.cpu(), 1e-5, [&](int64_t i) {
    const float* row = p + i / columns * columns;
    double sum = 0;
    for (int j = 0; j < columns; j++) sum += std::exp(double(row[j]));
    return std::exp(double(row[i % columns])) / sum;
  });
  if (!timed) return;
  report(("softmax_" + std::to_string(rows) + "x" + std::to_string(columns)).c_str(),
         8.0 * rows * columns, median_ms(call), copy);
}

/// cuBLAS's product of row-major f16 matrices with f32 sums, opened where it is installed.
class Cublas {
 public:
  Cublas() {
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
      if (!library_) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library_) return;
    const auto create = reinterpret_cast<int (*)(void**)>(dlsym(library_, "cublasCreate_v2"));
    gemm_ = reinterpret_cast<Gemm>(dlsym(library_, "cublasGemmEx"));
    if (!create || !gemm_ || create(&handle_) != 0) handle_ = nullptr;
  }
  explicit operator bool() const { return handle_ != nullptr; }
  void operator()(const Tensor& a, const Tensor& b, const Tensor& c, int m, int n, int k) const {
    constexpr int kHalf = 2, kComputeF32 = 68, kDefault = -1;
    const float one = 1, zero = 0;
    require(gemm_(handle_, 0, 0, n, m, k, &one, b.data(), kHalf, n, a.data(), kHalf, k, &zero,
                  const_cast<void*>(static_cast<const void*>(c.data())), kHalf, n, kComputeF32,
                  kDefault) == 0,
            "cublasGemmEx failed");
  }

 private:
  using Gemm = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int,
                       const void*, int, int, const void*, void*, int, int, int, int);
  void *library_ = nullptr, *handle_ = nullptr;
  Gemm gemm_ = nullptr;
};

struct Problem {
  int m, n, k;
  Tensor host_a, host_b, a, b, c;
  double flops() const { return 2.0 * m * n * k; }
};

void product(const Problem& p, const CompiledModule& matmul, const std::string& name,
             double cublas_ms) {
  const auto call = [&] { matmul(p.a, p.b, p.c, p.m, p.n, p.k); };
  call();
  const auto *x = static_cast<const uint16_t*>(p.host_a.data()),
             *y = static_cast<const uint16_t*>(p.host_b.data());
  compare(p.c.cpu(), 2e-3, [&](int64_t at) {
    double sum = 0;
    for (int i = 0; i < p.k; i++)
      sum += double(hidet::f16_to_f32(x[at / p.n * p.k + i])) *
             hidet::f16_to_f32(y[int64_t{i} * p.n + at % p.n]);
    return sum;
  });
  if (!timed) return;
  const double ms = median_ms(call);
  std::printf("  %s, %dx%dx%d: %.4f ms, %.1f TFLOP/s", name.c_str(), p.m, p.n, p.k, ms,
              p.flops() / ms * 1e-9);
  if (cublas_ms > 0) std::printf(", %.1f %% of cuBLAS", 100 * cublas_ms / ms);
  std::printf("\n");
}

std::string name_of(const Tiles& t) {
  char text[128];
  std::snprintf(text, sizeof text, "tensor_core_matmul %dx%dx%d, %d stages, %dx%d warps", t.m, t.n,
                t.k, t.stages, t.warps_m, t.warps_n);
  return text;
}
std::string name_of(const HopperTiles& t) {
  char text[128];
  std::snprintf(text, sizeof text, "hopper_matmul %dx%d, %d stages", t.m, t.n, t.stages);
  return text;
}

void products(int m, int n, int k) {
  const Tensor a = hidet::randn({m, k}, hidet::f16, {}, 1),
               b = hidet::randn({k, n}, hidet::f16, {}, 2);
  const Problem p{m, n, k, a, b, a.cuda(), b.cuda(), hidet::zeros({m, n}, hidet::f16, "cuda")};
  double cublas_ms = 0;
  const std::optional<Cublas> opened = timed ? std::optional<Cublas>(std::in_place) : std::nullopt;
  if (opened && *opened) {
    const Cublas& cublas = *opened;
    cublas_ms = median_ms([&] { cublas(p.a, p.b, p.c, m, n, k); });
    std::printf("  cuBLAS %.4f ms, %.1f TFLOP/s\n", cublas_ms, p.flops() / cublas_ms * 1e-9);
  } else if (timed) {
    std::printf("  cuBLAS is not here\n");
  }
  const Tiles choices[] = {{},
                           {.k = 64, .stages = 3},
                           {.m = 256, .n = 128, .warps_m = 4, .warps_n = 2},
                           {.n = 128, .warps_m = 2, .warps_n = 2},
                           {.n = 128, .k = 64, .stages = 3, .warps_m = 2, .warps_n = 2},
                           {.n = 128, .warps_m = 2, .warps_n = 4}};
  for (const Tiles& t : choices)
    check("tensor_core_matmul",
          [&] { product(p, tensor_core_matmul(t).build(), name_of(t), cublas_ms); });
  if (hidet::cuda_device_info(0).arch() != 90) return;
  const HopperTiles tiles[] = {{}, {.stages = 3}, {.n = 128, .stages = 6}};
  for (const HopperTiles& t : tiles)
    check("hopper_matmul", [&] { product(p, hopper_matmul(t).build(), name_of(t), cublas_ms); });
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string problem = hidet::cuda_problem(); !problem.empty()) {
    std::printf("SKIP everything: %s\n", problem.c_str());
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "check") {
    timed = false;
    check("vector_add", [&] { vector_addition(0, 4099); });
    check("softmax", [&] { row_softmax(0, 33, 1024); });
    check("softmax", [&] { row_softmax(0, 33, 256); });
    products(256, 512, 256);
    return failures ? 1 : 0;
  }
  const double copy = copy_gbps();
  std::printf("%s, copy %.0f GB/s\n", hidet::cuda_device_info(0).name.c_str(), copy);
  check("vector_add", [&] { vector_addition(copy, (64 << 20) + 3); });
  check("softmax", [&] { row_softmax(copy, 65536, 1024); });
  check("softmax", [&] { row_softmax(copy, 262144, 256); });
  const auto size = [&](int i) { return argc > i ? std::atoi(argv[i]) : 4096; };
  products(size(1), size(2), size(3));
  return failures ? 1 : 0;
}
