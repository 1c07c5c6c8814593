// model_costs.cpp - what a compiled model costs beside its kernels: loading, memory, saving, runs of almost nothing, many callers.
// usage: model_costs_bench MODEL.hidet [FOLDER]      FOLDER: where the file is saved again (default: the model's)
// Prints a table. Each load is in a process of its own whose pages of the file are warm.
#include <fcntl.h>
#include <hidet/hidet.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Anonymous memory of this process in bytes: what is not pages of files.
double anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("RssAnon:", 0) == 0) return 1024.0 * std::atof(line.c_str() + 8);
  return 0;
}

struct Loaded {
  double ms, anonymous;
};
/// Loads the file in a child, twice: the first in a fresh process, and again in the same one.
std::vector<Loaded> load_in_child(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    Loaded out[2];
    for (Loaded& l : out) {
      const double before = anonymous_bytes();
      const Clock::time_point start = Clock::now();
      const hidet::CompiledModel model = hidet::load_model(path);
      l.ms = ms_since(start);
      l.anonymous = anonymous_bytes() - before;
    }
    _exit(write(ends[1], out, sizeof out) == sizeof out ? 0 : 1);
  }
  close(ends[1]);
  Loaded out[2] = {};
  const bool fine = read(ends[0], out, sizeof out) == sizeof out;
  close(ends[0]);
  waitpid(pid, nullptr, 0);
  if (fine) return {out[0], out[1]};
  return {};
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void row(const char* what, const char* unit, std::vector<double> values, const char* wanted) {
  std::printf("| %s | %.3f | %.3f | %s | %s |\n", what,
              *std::min_element(values.begin(), values.end()), median(values), unit, wanted);
}

void loads(const std::string& path) {
  std::vector<double> first, again, memory;
  (void)load_in_child(path);  // the pages get warm
  for (int i = 0; i < 9; i++)
    if (const std::vector<Loaded> l = load_in_child(path); l.size() == 2) {
      first.push_back(l[0].ms);
      again.push_back(l[1].ms);
      memory.push_back(l[0].anonymous / (1 << 20));
    }
  row("load in a fresh process", "ms", first, "15");
  row("load again in that process", "ms", again, "");
  row("memory beyond the file's pages after the load", "MiB", memory, "64");
}

/// Writing and fsyncing as many bytes, the least that a save can cost.
double plain_write(const std::string& path, const std::vector<char>& bytes) {
  const Clock::time_point start = Clock::now();
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t done = write(fd, bytes.data() + at, bytes.size() - at);
    if (done <= 0) break;
    at += static_cast<size_t>(done);
  }
  fsync(fd);
  close(fd);
  return ms_since(start);
}

void saves(const std::string& path, const std::string& folder) {
  const hidet::CompiledModel model = hidet::load_model(path);
  const std::string out = folder + "/model_costs.hidet", plain = folder + "/model_costs.bytes";
  model.save(out);
  std::vector<char> bytes(std::filesystem::file_size(out));
  std::ifstream(out, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::vector<double> save, write, ratio;
  for (int i = 0; i < 5; i++) {  // in turns, so that both meet the same disk
    write.push_back(plain_write(plain, bytes));
    const Clock::time_point start = Clock::now();
    model.save(out);
    save.push_back(ms_since(start));
    ratio.push_back(save.back() / write.back());
  }
  std::filesystem::remove(out);
  std::filesystem::remove(plain);
  row("save", "ms", save, "");
  row("write and fsync of the same bytes", "ms", write, "");
  row("save / that, in turns", "times", ratio, "1.5");
}

using Chain = std::function<hidet::Tensor(hidet::Tensor)>;

/// Microseconds of one run of `count` operators on 4 x 8 values, `each` of them in one call of `part`.
std::vector<double> chain_us(int count, int each, const Chain& part) {
  using namespace hidet;
  const Tensor x = symbol({4, 8}, f32, {}, "x");
  Tensor y = x;
  for (int i = 0; i < count; i += each) y = part(y);
  const CompiledModel model = optimize(trace_from(y)).build();
  const Tensor in = randn({4, 8}, f32, {}, 3);
  const int runs = 4000 / count;
  std::vector<double> us;
  for (int round = 0; round < 50; round++) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < runs; i++) (void)model(in);
    us.push_back(ms_since(start) * 1e3 / runs);
  }
  return us;
}

void small_runs() {
  using namespace hidet;
  const Chain product = [](const Tensor& y) {
    return ops::matmul(y, randn({8, 8}, f32, {}, 1));  // products do not fuse
  };
  const Chain mixed = [](const Tensor& y) {
    const Tensor p = ops::softmax(ops::matmul(y, randn({8, 8}, f32, {}, 1)));
    const Tensor t = ops::transpose(p - ops::reduce_max(p, {1}, true), {1, 0});
    const Tensor n = ops::layer_norm(ops::matmul(t, randn({4, 4}, f32, {}, 2)),
                                     randn({4}, f32, {}, 3), randn({4}, f32, {}, 4));
    return ops::tanh(ops::slice(ops::concat({n, t}, 1), {0}, {4}, {0}, {1}));
  };
  row("one run of two small products", "us", chain_us(2, 1, product), "2");
  for (const auto& [what, each, part] :
       {std::tuple{"an operator in a run of 200 products, its work included", 1, product},
        std::tuple{"an operator in a run of 200 of ten kinds, its work included", 10, mixed}}) {
    std::vector<double> us = chain_us(200, each, part);
    for (double& one : us) one /= 200;
    row(what, "us", us, "0.3");
  }
}

/// Runs a second by one caller with all threads, and by eight callers of the same model at once.
void callers(const std::string& path) {
  using namespace hidet;
  const CompiledModel model = load_model(path);
  std::vector<Tensor> inputs;
  for (const TensorSignature& s : model.inputs()) {
    Shape shape;
    for (const DimExpr& d : s.shape) shape.push_back(d.is_const() ? d.value() : 1);
    inputs.push_back(s.dtype.is_float() ? randn(shape, s.dtype) : zeros(shape, s.dtype));
  }
  const auto rate = [&](int callers) {
    std::atomic<int> runs{0};
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < callers; i++)
      threads.emplace_back([&] {
        while (ms_since(start) < 2000) {
          (void)model.run(inputs);
          runs++;
        }
      });
    for (std::thread& t : threads) t.join();
    return 1e3 * runs / ms_since(start);
  };
  std::vector<double> one, eight, ratio;
  for (int i = 0; i < 3; i++) {
    one.push_back(rate(1));
    eight.push_back(rate(8));
    ratio.push_back(eight.back() / one.back());
  }
  row("runs a second, one caller with all threads", "1/s", one, "");
  row("runs a second, eight callers at once", "1/s", eight, "");
  row("eight callers / one", "times", ratio, "0.9");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s MODEL.hidet [FOLDER]\n", argv[0]);
    return 2;
  }
  try {
    const std::string path = argv[1];
    const std::string folder =
        argc == 3 ? argv[2] : std::filesystem::path(path).parent_path().string();
    std::printf("| %s, %.0f MB | least | median | unit | wanted |\n|---|---|---|---|---|\n",
                std::filesystem::path(path).filename().c_str(),
                static_cast<double>(std::filesystem::file_size(path)) / 1e6);
    loads(path);  // first: its children must not inherit threads or memory
    saves(path, folder.empty() ? "." : folder);
    small_runs();
    callers(path);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "model_costs_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
