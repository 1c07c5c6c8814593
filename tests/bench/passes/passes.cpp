// passes.cpp - how long our own part of a compile takes: schedule, passes and printing of one matmul kernel for CPU and GPU, and each
// pass on chains of ever more statements (a pass whose time grows faster than the chain shows here).
// usage: passes_bench
// Threading: one thread.
#include <hidet/codegen/codegen.h>
#include <hidet/hidet.h>
#include <hidet/ir/passes.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

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

/// y[i] = y[i] * c + x[i + k] for ever another c and k, `count` times, in a loop.
ir::Module chain(int count) {
  using namespace lang;
  ScriptModule m("chain");
  m.public_func("launch", [count](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto y = f.arg("y", ptr(hidet::f32));
    auto n = f.arg("n", hidet::i64);
    for (auto i : range(n))
      for (int k = 0; k < count; k++) y[i] = y[i] * (1.f + static_cast<float>(k)) + x[i + k];
  });
  return m.module();
}

void chains() {
  const std::vector<int> counts = {1250, 2500, 5000, 10000};
  std::vector<ir::Module> modules;
  std::printf("\nms for a chain of        ");
  for (const int count : counts) {
    modules.push_back(chain(count));
    std::printf(" %8d", count);
  }
  std::printf("  growth for 8 x the statements\n");
  const auto row = [&](const char* name, const std::function<void(size_t)>& run) {
    // In turns, so that a busy moment of the machine meets all sizes alike.
    std::vector<double> ms(modules.size(), 1e30);
    for (int round = 0; round < 7; round++)
      for (size_t i = 0; i < modules.size(); i++)
        ms[i] = std::min(ms[i], least_ms([&] { run(i); }, 1));
    std::printf("%-24s", name);
    for (const double t : ms) std::printf(" %8.2f", t);
    std::printf("  %5.1f\n", ms.back() / ms.front());
  };
  row("verify", [&](size_t i) { ir::verify(modules[i]); });
  for (const ir::Pass& pass : ir::lowering(ir::Target::cpu)) {
    row(pass.name, [&](size_t i) { (void)ir::run_passes(modules[i], {pass}); });
    for (ir::Module& m : modules) m = ir::run_passes(m, {pass});
  }
  std::vector<std::string> texts(modules.size());
  row("print", [&](size_t i) { texts[i] = ir::print(modules[i]); });
  row("parse", [&](size_t i) { (void)ir::parse(texts[i]); });
  row("emit_c", [&](size_t i) { (void)codegen::emit_c(modules[i]); });
}

}  // namespace

int main() {
  one_kernel("128 x 768 x 3072 with bias and gelu, CPU", false);
  one_kernel("the same, GPU", true);
  chains();
}
