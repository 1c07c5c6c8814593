// roofline.cpp - measures the CPU's limits with kernels written in the script language.
#include "roofline.h"

#include <hidet/hidet.h>
#include <hidet/runtime/cpu_level.h>

#include <algorithm>
#include <chrono>
#include <memory>

namespace hidet::tools {
namespace {

using namespace lang;

constexpr int kSteps = 1 << 15, kTasks = 32;
constexpr int64_t kFloats = int64_t{1} << 25;  // 128 MiB

int vector_lanes() { return host_cpu_target().name().find("v4") != std::string::npos ? 16 : 8; }

/// Chains of FMAs: more than latency times issue width of the units of today's cores, and no more than there are registers for beside the factor:
/// 16 of 32 with 64-byte vectors, 12 of 16 with shorter ones.
int chains(int lanes) { return lanes == 16 ? 16 : 12; }

/// Independent sums, each a vector.
class Sums {
 public:
  Sums(int count, int lanes) {
    for (int i = 0; i < count; i++)
      list_.emplace_back(new Var(var("sum" + std::to_string(i), Type::vector(hidet::f32, lanes),
                                     broadcast(Value(0.0f), lanes))));
  }
  const Var& operator[](int i) const { return *list_[static_cast<size_t>(i)]; }
  Value total() const {
    Value sum = *list_[0];
    for (size_t i = 1; i < list_.size(); i++) sum = sum + *list_[i];
    return sum;
  }

 private:
  std::vector<std::unique_ptr<Var>> list_;
};

ScriptModule kernels(int lanes) {
  ScriptModule m("roofline");
  m.public_func("peak", [lanes](Function& f) {
    auto out = f.arg("out", ptr(hidet::f32));
    for (auto task : parallel(kTasks, 1)) {
      const int count = chains(lanes);
      const Sums sums(count, lanes);
      auto x = let("x", load(out + task * lanes, lanes));
      for (auto step : range(kSteps)) {
        (void)step;
        for (int i = 0; i < count; i++) sums[i] = fma(x, sums[i], x);
      }
      store(out + task * lanes, sums.total());
    }
  });
  m.public_func("read", [lanes](Function& f) {
    auto in = f.arg("in", ptr(hidet::f32));
    auto out = f.arg("out", ptr(hidet::f32));
    for (auto task : parallel(kTasks, 1)) {
      constexpr int kStreams = 4;
      const int64_t part = kFloats / kTasks;
      const Sums sums(kStreams, lanes);
      for (auto at : range(part / lanes / kStreams))
        for (int i = 0; i < kStreams; i++)
          sums[i] += load(in + task * part + (at * kStreams + i) * lanes, lanes);
      store(out + task * lanes, sums.total());
    }
  });
  m.public_func("copy", [lanes](Function& f) {
    auto in = f.arg("in", ptr(hidet::f32));
    auto out = f.arg("out", ptr(hidet::f32));
    for (auto at : parallel(kFloats / lanes, 1 << 16))
      store(out + at * lanes, load(in + at * lanes, lanes));
  });
  return m;
}

/// The least of the times of `runs` calls, in seconds.
template <class F>
double least_seconds(int runs, const F& call) {
  double best = 1e30;
  for (int i = 0; i < runs; i++) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count());
  }
  return best;
}

}  // namespace

Roofline measure_roofline() {
  const int lanes = vector_lanes();
  const CompiledModule built = kernels(lanes).build();
  Tensor out = zeros({kTasks * lanes});
  const Tensor from = zeros({kFloats});
  Tensor to = zeros({kFloats});
  const double bytes = static_cast<double>(from.bytes());
  Roofline r;
  const double fma_ops = 2.0 * kTasks * lanes * chains(lanes) * kSteps;
  r.gflops = fma_ops / 1e9 / least_seconds(4, [&] { built["peak"](out); });
  r.read_gbps = bytes / 1e9 / least_seconds(3, [&] { built["read"](from, out); });
  r.copy_gbps = 2 * bytes / 1e9 / least_seconds(3, [&] { built["copy"](from, to); });
  return r;
}

}  // namespace hidet::tools
