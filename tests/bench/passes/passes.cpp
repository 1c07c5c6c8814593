// passes.cpp - how long our own part of a compile takes: schedule, passes and printing of one matmul kernel for CPU and GPU, and each
// pass on chains of 1,250 and 10,000 statements of four kinds (a pass whose time grows faster than the chain shows here).
// usage: passes_bench
// Threading: one thread.
#include <hidet/codegen/codegen.h>
#include <hidet/hidet.h>
#include <hidet/ir/passes.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>

#include "build/groups.h"
#include "build/split.h"

namespace {
using namespace hidet;

/// The least of several runs, in ms.
template <class F>
double least_ms(const F& run, int runs = 5) {
  double best = 1e30;
  for (int i = 0; i < runs; i++) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count());
  }
  return best;
}

void one_kernel(const char* title, bool cuda) {
  const Tensor x = symbol({"rows", 768}, f32, cuda ? Device("cuda") : Device(), "x");
  FlowGraph g;
  {
    graph::RecordScope record;
    g = optimize(
        trace_from(ops::gelu(ops::add(ops::matmul(x, randn({768, 3072})), randn({3072})))));
  }
  const graph::Parts parts = graph::split(g);
  const graph::Group group = graph::fuse(parts.run, g.output_tensors(), cuda).front();
  const graph::CpuTargetInfo target{"x86-64-v4", 64};
  const auto schedule = [&] {
    return cuda ? graph::find_cuda_schedule(group.fused.anchor)->make(group.fused)
                : graph::find_cpu_schedule(group.fused.anchor)->make(group.fused, target);
  };
  const ir::Module recorded = schedule();
  const auto passes = ir::lowering(cuda ? ir::Target::cuda : ir::Target::cpu);
  const ir::Module lowered = ir::run_passes(recorded, passes);
  const double make = least_ms(schedule), check = least_ms([&] { ir::verify(recorded); });
  const double lower = least_ms([&] { (void)ir::run_passes(recorded, passes); });
  const double print = least_ms([&] {
    (void)codegen::emit_c(lowered, {.kernel_unit = true});
    if (cuda) (void)codegen::emit_cuda(lowered);
  });
  std::printf("%s: schedule %.2f ms, verify %.2f, passes %.2f, printing %.2f, together %.2f\n",
              title, make, check, lower, print, make + check + lower + print);
}

/// One statement after the other, `count` of them, for element i.
struct Chain {
  const char* title;
  void (*record)(const lang::Handle& x, const lang::Handle& y, const ir::Value& i, int count);
};

void updates(const lang::Handle& x, const lang::Handle& y, const ir::Value& i, int count) {
  for (int k = 0; k < count; k++) y[i] = y[i] * (1.f + static_cast<float>(k)) + x[i + k];
}
void values(const lang::Handle& x, const lang::Handle& y, const ir::Value& i, int count) {
  ir::Value last = x[i];
  for (int k = 0; k < count; k++) last = lang::let("v", last * 0.5f + x[i + k]);
  y[i] = last;
}
void branches(const lang::Handle& x, const lang::Handle& y, const ir::Value& i, int count) {
  for (int k = 0; k < count; k++) {
    const ir::Value v = lang::let("v", x[i + k]);
    if (auto _ = lang::when(v > static_cast<float>(k))) y[i] = v;
  }
}
/// Each variable takes its successor's value: a pass that asks again until nothing changes needs a round for each.
void backwards(const lang::Handle& x, const lang::Handle& y, const ir::Value& i, int count) {
  std::deque<lang::Var> v;
  for (int k = 0; k < count; k++) v.emplace_back(lang::var("v", ir::Type(hidet::f32), 0.f).node());
  for (auto round : lang::range(3)) {
    y[i + round] = v[0];
    for (size_t k = 0; k + 1 < v.size(); k++) v[k] = v[k + 1] * 0.5f;
    v.back() = x[i];
  }
}
constexpr Chain kChains[] = {
    {"updates", updates}, {"values", values}, {"branches", branches}, {"backwards", backwards}};

ir::Module chain(const Chain& kind, bool cuda, int count) {
  using namespace lang;
  ScriptModule m("chain");
  const auto define = [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto y = f.arg("y", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i64);
    if (cuda) f.block_dim(128);
    if (cuda) f.grid_dim(n / 128);
    if (cuda) kind.record(x, y, blockIdx.x * 128 + threadIdx.x, count);
    else
      for (auto i : range(n)) kind.record(x, y, i, count);
  };
  if (cuda) m.cuda_kernel("chain", define);
  else m.public_func("launch", define);
  return m.module();
}

/// ms of each pass at 10,000 statements, and how often that is the time at an eighth of them: 8 is linear.
void chains(bool cuda) {
  constexpr int kSizes[] = {1250, 10000};
  std::printf("\nms for 10,000 statements, %s (times that of 1,250; 8 is linear)\n%-20s",
              cuda ? "GPU" : "CPU", "");
  std::vector<std::array<ir::Module, 2>> modules;
  for (const Chain& kind : kChains) {
    modules.push_back({chain(kind, cuda, kSizes[0]), chain(kind, cuda, kSizes[1])});
    std::printf(" %18s", kind.title);
  }
  std::vector<std::array<std::string, 2>> texts(modules.size());
  const auto row = [&](const char* name, const std::function<void(size_t, int)>& run) {
    std::printf("\n%-20s", name);
    for (size_t i = 0; i < modules.size(); i++) {
      // In turns, so that a busy moment of the machine meets both sizes alike.
      double ms[2] = {1e30, 1e30};
      for (int round = 0; round < 5; round++)
        for (int size = 0; size < 2; size++)
          ms[size] = std::min(ms[size], least_ms([&] { run(i, size); }, 1));
      std::printf(" %9.2f (%6.1f)", ms[1], ms[1] / ms[0]);
      std::fflush(stdout);
    }
  };
  row("verify", [&](size_t i, int size) { ir::verify(modules[i][size]); });
  for (const ir::Pass& pass : ir::lowering(cuda ? ir::Target::cuda : ir::Target::cpu)) {
    row(pass.name, [&](size_t i, int size) { (void)ir::run_passes(modules[i][size], {pass}); });
    for (auto& pair : modules)
      for (ir::Module& m : pair) m = ir::run_passes(m, {pass});
  }
  row("verify", [&](size_t i, int size) { ir::verify(modules[i][size], true); });
  row("print", [&](size_t i, int size) { texts[i][size] = ir::print(modules[i][size]); });
  row("parse", [&](size_t i, int size) { (void)ir::parse(texts[i][size]); });
  row(cuda ? "emit_cuda" : "emit_c", [&](size_t i, int size) {
    const ir::Module& m = modules[i][size];
    (void)(cuda ? codegen::emit_cuda(m) : codegen::emit_c(m));
  });
  std::printf("\n");
}

}  // namespace

int main() {
  one_kernel("128 x 768 x 3072 with bias and gelu, CPU", false);
  one_kernel("the same, GPU", true);
  chains(false);
  chains(true);
}
