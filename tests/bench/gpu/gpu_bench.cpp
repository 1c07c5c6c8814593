// gpu_bench.cpp - what the default GPU kernels reach: elementwise chains, row softmax, layer norm and reductions
// against a device-to-device copy, matrix products and convolutions in TFLOP/s. Every case is compared with a plain
// loop in f64 at sampled places. torch_cases.py measures the same cases with PyTorch.
// usage: gpu_bench [PREFIX...]   cases whose names begin with one of these; all without
// Needs: a GPU, NVRTC or nvcc. Exit status 1 when a result is wrong.
// Threading: one thread.
#include <hidet/hidet.h>
#include <hidet/runtime/cuda.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace hidet;

namespace {

using Values = std::vector<std::span<const float>>;

struct Case {
  std::string name;
  std::vector<Shape> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> graph;
  double flops = 0;  ///< 0: memory bound, measured in bytes
  /// Expected value of output element `i`; inputs, output shape.
  std::function<double(const Values&, int64_t)> expected;
};

int64_t count(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Case chain(int64_t n) {
  return {"chain",
          {{n}},
          [](const std::vector<Tensor>& x) {
            const Tensor half = ops::scalar_like(x[0], 0.5), one = ops::scalar_like(x[0], 1);
            return ops::relu(ops::add(ops::mul(x[0], half), one));
          },
          0,
          [](const Values& x, int64_t i) { return std::max(0.0, x[0][i] * 0.5 + 1); }};
}

Case gelu_bias(int64_t rows, int64_t columns) {
  return {"gelu_bias",
          {{rows, columns}, {columns}},
          [](const std::vector<Tensor>& x) { return ops::gelu(ops::add(x[0], x[1])); },
          0,
          [columns](const Values& x, int64_t i) {
            const double v = static_cast<double>(x[0][i]) + x[1][i % columns];
            return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
          }};
}

std::string sizes(const Shape& shape) {
  std::string text;
  for (int64_t d : shape) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text;
}

Case softmax(int64_t rows, int64_t columns) {
  return {"softmax_" + sizes({rows, columns}),
          {{rows, columns}},
          [](const std::vector<Tensor>& x) { return ops::softmax(x[0]); },
          0,
          [columns](const Values& x, int64_t i) {
            const float* row = x[0].data() + i / columns * columns;
            double most = row[0], sum = 0;
            for (int64_t c = 0; c < columns; c++) most = std::max(most, double(row[c]));
            for (int64_t c = 0; c < columns; c++) sum += std::exp(row[c] - most);
            return std::exp(row[i % columns] - most) / sum;
          }};
}

Case layer_norm(int64_t rows, int64_t columns) {
  return {"layer_norm_" + sizes({rows, columns}),
          {{rows, columns}, {columns}, {columns}},
          [](const std::vector<Tensor>& x) { return ops::layer_norm(x[0], x[1], x[2]); },
          0,
          [columns](const Values& x, int64_t i) {
            const float* row = x[0].data() + i / columns * columns;
            double sum = 0, squares = 0;
            for (int64_t c = 0; c < columns; c++) sum += row[c];
            const double mean = sum / double(columns);
            for (int64_t c = 0; c < columns; c++) squares += (row[c] - mean) * (row[c] - mean);
            const int64_t at = i % columns;
            return (row[at] - mean) / std::sqrt(squares / double(columns) + 1e-5) * x[1][at] +
                   x[2][at];
          }};
}

Case row_sum(int64_t rows, int64_t columns) {
  return {"row_sum_" + sizes({rows, columns}),
          {{rows, columns}},
          [](const std::vector<Tensor>& x) { return ops::reduce_sum(x[0], {1}); },
          0,
          [columns](const Values& x, int64_t i) {
            double sum = 0;
            for (int64_t c = 0; c < columns; c++) sum += x[0][i * columns + c];
            return sum;
          }};
}

Case matmul(int64_t batch, int64_t m, int64_t n, int64_t k) {
  const Shape a = batch > 1 ? Shape{batch, m, k} : Shape{m, k};
  const Shape b = batch > 1 ? Shape{batch, k, n} : Shape{k, n};
  return {"matmul_" + sizes(batch > 1 ? Shape{batch, m, n, k} : Shape{m, n, k}),
          {a, b},
          [](const std::vector<Tensor>& x) { return ops::matmul(x[0], x[1]); },
          2.0 * double(batch) * double(m) * double(n) * double(k),
          [=](const Values& x, int64_t i) {
            const int64_t s = i / (m * n), r = i / n % m, c = i % n;
            double sum = 0;
            for (int64_t j = 0; j < k; j++)
              sum += double(x[0][(s * m + r) * k + j]) * x[1][(s * k + j) * n + c];
            return sum;
          }};
}

Case conv(int64_t batch, int64_t channels, int64_t size, int64_t out, int64_t kernel,
          int64_t stride) {
  const int64_t pad = kernel / 2, to = (size + 2 * pad - kernel) / stride + 1;
  return {"conv_" + sizes({batch, channels, size, out, kernel, stride}),
          {{batch, channels, size, size}, {out, channels, kernel, kernel}},
          [=](const std::vector<Tensor>& x) {
            return ops::conv2d(x[0], x[1], {stride, stride}, {pad, pad, pad, pad});
          },
          2.0 * double(batch * out * to * to) * double(channels * kernel * kernel),
          [=](const Values& x, int64_t i) {
            const int64_t w = i % to, h = i / to % to, o = i / (to * to) % out,
                          b = i / (to * to * out);
            double sum = 0;
            for (int64_t c = 0; c < channels; c++)
              for (int64_t y = 0; y < kernel; y++)
                for (int64_t z = 0; z < kernel; z++) {
                  const int64_t yy = h * stride + y - pad, zz = w * stride + z - pad;
                  if (yy < 0 || zz < 0 || yy >= size || zz >= size) continue;
                  sum += double(x[0][((b * channels + c) * size + yy) * size + zz]) *
                         x[1][((o * channels + c) * kernel + y) * kernel + z];
                }
            return sum;
          }};
}

std::vector<Case> cases() {
  return {chain(64 << 20),
          gelu_bias(32768, 2048),
          softmax(16384, 4096),
          softmax(65536, 1000),
          softmax(524288, 128),
          softmax(2048, 32768),
          layer_norm(16384, 4096),
          layer_norm(65536, 768),
          row_sum(16384, 4096),
          matmul(1, 1024, 1024, 1024),
          matmul(1, 2048, 2048, 2048),
          matmul(1, 4096, 4096, 4096),
          matmul(1, 1000, 1003, 999),
          matmul(1, 128, 3072, 768),
          matmul(1, 1, 3072, 768),
          matmul(96, 128, 128, 64),
          conv(1, 64, 56, 64, 3, 1),
          conv(1, 256, 56, 64, 1, 1),
          conv(1, 256, 14, 256, 3, 1),
          conv(1, 3, 224, 64, 7, 2),
          conv(16, 128, 28, 128, 3, 1)};
}

/// Median milliseconds of one call, timed with events in batches that fill about 20 ms.
double median_ms(const std::function<void(CUstream_st*)>& call) {
  CudaStream stream;
  CudaEvent start, end;
  const auto batch = [&](int n) {
    start.record(stream.handle());
    for (int i = 0; i < n; i++) call(stream.handle());
    end.record(stream.handle());
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
  const Tensor a = zeros({n}, f32, "cuda"), b = zeros({n}, f32, "cuda");
  CudaEvent start, end;
  std::vector<double> times;
  for (int round = 0; round < 9; round++) {
    start.record(nullptr);
    for (int i = 0; i < 4; i++)
      runtime::copy_bytes(b.data(), b.device(), a.data(), a.device(), static_cast<size_t>(4 * n));
    end.record(nullptr);
    times.push_back(static_cast<double>(end.since(start)) / 4);
  }
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  return 2 * 4e-6 * static_cast<double>(n) / times[4];
}

/// Largest error at 500 places, relative to the largest value there.
double worst_error(const Case& c, const std::vector<Tensor>& inputs, const Tensor& output) {
  Values values;
  for (const Tensor& t : inputs)
    values.emplace_back(static_cast<const float*>(t.data()), static_cast<size_t>(count(t.shape())));
  const Tensor host = output.cpu();
  const auto* got = static_cast<const float*>(host.data());
  std::mt19937_64 random(7);
  const int64_t n = count(host.shape());
  double worst = 0, scale = 0;
  for (int i = 0; i < 500; i++) {
    const int64_t at = i == 0   ? 0
                       : i == 1 ? n - 1
                                : static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    const double e = c.expected(values, at);
    scale = std::max(scale, std::fabs(e));
    const double d = std::fabs(got[at] - e);
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  return worst / scale;
}

bool measure(const Case& c, double copy) {
  std::vector<Tensor> symbols, host, inputs;
  double bytes = 0;
  for (size_t i = 0; i < c.inputs.size(); i++) {
    std::vector<DimExpr> shape(c.inputs[i].begin(), c.inputs[i].end());
    symbols.push_back(symbol(shape, f32, "cuda"));
    host.push_back(randn(c.inputs[i], f32));
    inputs.push_back(host.back().cuda());
    bytes += 4 * static_cast<double>(count(c.inputs[i]));
  }
  const CompiledModel model =
      optimize(trace_from({c.graph(symbols)}, symbols)).build({.name = c.name});
  const Tensor output = model.run(inputs)[0];
  bytes += 4 * static_cast<double>(count(output.shape()));
  const double error = worst_error(c, host, output);
  const double ms = median_ms([&](CUstream_st* s) { (void)model.run_async(inputs, s); });
  const bool ok = error < 1e-5;
  std::printf("%-4s %-28s %9.4f ms", ok ? "ok" : "BAD", c.name.c_str(), ms);
  if (c.flops > 0) std::printf(" %8.2f TFLOP/s       ", c.flops / ms * 1e-9);
  else std::printf(" %8.0f GB/s %5.1f %%", bytes / ms * 1e-6, 100 * bytes / ms * 1e-6 / copy);
  std::printf("  error %.1e  %zu kernels\n", error, model.execution().instructions.size());
  std::fflush(stdout);
  return ok;
}

/// An input that begins at 4 bytes past a multiple of 16 gives the same results.
bool run_unaligned() {
  const Tensor x = symbol({1000}, f32, "cuda");
  const CompiledModel model =
      optimize(trace_from({ops::relu(x)}, {x})).build({.name = "unaligned"});
  const Tensor host = randn({1001}, f32), whole = host.cuda();
  const std::vector<float> got = model.run({whole.view_at(4, {1000}, f32)})[0].to_vector<float>(),
                           all = host.to_vector<float>();
  bool ok = true;
  for (size_t i = 0; i < got.size(); i++) ok = ok && got[i] == std::max(all[i + 1], 0.0f);
  std::printf("%-4s unaligned input\n", ok ? "ok" : "BAD");
  return ok;
}

}  // namespace

int main(int argc, char** argv) try {
  const double copy = copy_gbps();
  std::printf("%s, copy %.0f GB/s\n", cuda_device_info(0).name.c_str(), copy);
  bool ok = run_unaligned();
  for (const Case& c : cases()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; i++) wanted = wanted || c.name.starts_with(argv[i]);
    if (wanted) ok = measure(c, copy) && ok;
  }
  return ok ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "gpu_bench: %s\n", error.what());
  return static_cast<int>(error.code());
}
