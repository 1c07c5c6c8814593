// primitive_table_gpu.cpp - every primitive's kernel on a GPU, against the simulator: prints how many agree, and each that does not.
// Then what a module does on a GPU only: the message of an assert in a kernel, tuning, times of launches.
// usage: primitive_table_gpu [NAME]   only cases whose name begins with NAME
// Needs: a GPU, NVRTC and a C compiler, no LLVM; without a GPU it prints SKIP. Exit status 1 where one differs.
// Threading: one thread.
#include "primitives/cases.h"

#include <hidet/ir/primitives.h>
#include <hidet/runtime/cuda.h>
#include <hidet/runtime/error.h>

#include <cstdio>
#include <set>

using namespace hidet;
using namespace hidet::primitives;

namespace {

/// "" where GPU and simulator agree.
std::string difference(const Case& c) {
  const CompiledModule built = c.cuda.build();
  std::vector<Tensor> tensors;
  for (const Tensor& t : c.inputs) tensors.push_back(t.cuda());
  tensors.push_back(c.output.cuda());
  const std::vector<CallArg> args(tensors.begin(), tensors.end());
  built.call(args);
  built.synchronize();
  const std::vector<double> got = tensors.back().to_doubles(), wanted = simulated(c).to_doubles();
  for (size_t i = 0; i < got.size(); i++)
    if (!c.gpu.fits(got[i], wanted[i]))
      return "element " + std::to_string(i) + ": GPU " + std::to_string(got[i]) + ", simulator " +
             std::to_string(wanted[i]);
  return "";
}

struct Counts {
  int agree = 0, differ = 0, refused = 0;
};

void check(const Case& c, int arch, Counts& counts) {
  const int least = ir::find_primitive(c.row)->min_arch;
  if (least == ir::kHopperOnly ? arch != 90 : least > arch) {
    counts.refused++;
    return;
  }
  std::string problem;
  try {
    problem = difference(c);
  } catch (const Error& e) {
    problem = e.what();
  }
  (problem.empty() ? counts.agree : counts.differ)++;
  if (!problem.empty()) std::printf("  %s: %s\n", c.name.c_str(), problem.substr(0, 400).c_str());
}

bool report(const char* what, bool fine) {
  std::printf("%s: %s\n", what, fine ? "ok" : "WRONG");
  return fine;
}

lang::ScriptModule asserting() {
  using namespace lang;
  ScriptModule m("asserting");
  m.cuda_kernel("k", [](Function& f) {
    auto y = f.arg("y", ptr(f32));
    auto n = f.arg("n", i32);
    f.grid_dim(1);
    f.block_dim(32);
    assert_(threadIdx.x < n, "more threads than numbers");
    y[threadIdx.x] = 1.f;
  });
  return m;
}

bool asserts() {
  const CompiledModule built = asserting().build();
  const Tensor y = zeros({32}, f32, "cuda");
  built(y, 32);
  built.synchronize();
  built(y, 5);
  try {
    built.synchronize();
  } catch (const Error& e) {
    const std::string text = e.what();
    std::printf("  %s\n", e.what());
    return text.find("primitive_table_gpu.cpp:") == 0 &&
           text.find("more threads than numbers") != std::string::npos;
  }
  return false;
}

bool tuning() {
  using namespace lang;
  ScriptModule m("space");
  m.space({{"threads", {32, 256, 2048}}}, [](ScriptModule& s, const Params& p) {
    s.cuda_kernel("k", [&](Function& f) {
      auto x = f.arg("x", ptr(f32));
      auto n = f.arg("n", i32);
      f.grid_dim((n + p["threads"] - 1) / p["threads"]);
      f.block_dim(p["threads"]);
      auto i = let("i", blockIdx.x * cast(Value(p["threads"]), i32) + threadIdx.x);
      if (auto _ = when(i < n)) x[i] = x[i] * 2.f + 1.f;
    });
  });
  const CompiledModule built = m.build();
  const int n = 16 << 20;
  const Tensor x = full({n}, 3, f32, "cuda");
  const TuneReport r = built.tune({.budget = 5}, x, n);
  for (const CandidateTime& c : r.candidates)
    std::printf("  %s: %.4f ms, %d times %s\n", c.name.c_str(), c.milliseconds, c.measured,
                c.note.c_str());
  const Profile profile = built.profile(x, n);
  std::fputs(profile.text().c_str(), stdout);
  return r.best == "threads=256" && x.cpu().data<float>()[n - 1] == 3 &&
         profile.operators.size() == 1 && profile.operators[0].kernel == "k" &&
         profile.operators[0].milliseconds > 0.01 && profile.operators[0].candidate == r.best;
}

}  // namespace

int main(int argc, char** argv) {
  if (cuda_device_count() == 0) {
    std::printf("SKIP everything: %s\n", cuda_problem().c_str());
    return 0;
  }
  const std::string prefix = argc > 1 ? argv[1] : "";
  const int arch = cuda_device_info(0).arch();
  Counts counts;
  std::set<std::string> rows;
  for (const Case& c : all_cases())
    if (c.name.starts_with(prefix)) check(c, arch, counts), rows.insert(c.row);
  std::printf(
      "%s: %d cases of %zu primitives agree with the simulator, %d differ, %d need another GPU\n",
      cuda_device_info(0).name.c_str(), counts.agree, rows.size(), counts.differ, counts.refused);
  bool fine = counts.differ == 0;
  if (prefix.empty()) {
    fine = report("assert in a kernel", asserts()) && fine;
    fine = report("tune and profile", tuning()) && fine;
  }
  return fine ? 0 : 1;
}
