// primitives_gpu.cpp - every row of the table of primitives on a GPU: the kernels that primitives_test runs in the simulator, all
// bytes compared with the simulator's (numbers, where a case has a tolerance). Then what a module does on a GPU only: the
// message of an assert in a kernel, tuning, times of launches.
// usage: primitives_gpu [PART [N]]   the cases whose names have PART; from number N on in this process, to the first that the
// GPU does not run
// Needs: a GPU, NVRTC and a C compiler, no LLVM; without a GPU it prints SKIP. It goes on where a result differs, prints how many
// are equal and how many differ, and ends with status 1 where any does.
// Threading: kernels are compiled and loaded on HIDET_NUM_THREADS threads, the rest is one thread.
#include "primitives/cases.h"

#include <hidet/ir/primitives.h>
#include <hidet/runtime/cuda.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/thread_pool.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

using namespace hidet;
using namespace hidet::primitives;

namespace {

/// Those that this GPU can run; how many it cannot.
Cases cases_for(const std::string& part, int arch, int* refused) {
  Cases out;
  for (Case& c : all_cases()) {
    if (c.name.find(part) == std::string::npos) continue;
    const int least = least_arch(c);
    if (least == ir::kHopperOnly ? arch == 90 : least <= arch) out.push_back(std::move(c));
    else ++*refused;
  }
  return out;
}

/// Compiled and loaded; why not, where that failed.
struct Built {
  std::optional<CompiledModule> module;
  std::string problem;
};
std::vector<Built> build_all(const Cases& cases, size_t first) {
  std::vector<Built> out(cases.size() - first);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads(); i++)
    threads.emplace_back([&] {
      for (size_t c; (c = next++) < out.size();) try {
          out[c].module = cases[first + c].cuda.build();
        } catch (const std::exception& e) {
          out[c].problem = e.what();
        }
    });
  for (std::thread& t : threads) t.join();
  return out;
}

/// "" where the numbers are near enough, or all bytes equal.
std::string difference(const Tensor& got, const Tensor& wanted, const Tolerance& t) {
  if (t.relative > 0 || t.absolute > 0) {
    const std::vector<double> x = got.to_doubles(), y = wanted.to_doubles();
    for (size_t i = 0; i < x.size(); i++)
      if (!t.fits(x[i], y[i]))
        return "element " + std::to_string(i) + ": GPU " + std::to_string(x[i]) + ", simulator " +
               std::to_string(y[i]);
    return "";
  }
  const auto *x = static_cast<const uint8_t*>(got.data()),
             *y = static_cast<const uint8_t*>(wanted.data());
  // NaN is NaN: its other bits are each machine's own.
  std::vector<double> a, b;
  if (got.dtype().is_float()) a = got.to_doubles(), b = wanted.to_doubles();
  const auto size = static_cast<int64_t>(got.dtype().bytes());
  int64_t different = 0, first = -1;
  for (int64_t i = 0; i < got.bytes(); i++) {
    const auto e = static_cast<size_t>(i / size);
    const bool nans = !a.empty() && std::isnan(a[e]) && std::isnan(b[e]);
    if (x[i] != y[i] && !nans && ++different == 1) first = i;
  }
  if (!different) return "";
  return std::to_string(different) + " of " + std::to_string(got.bytes()) +
         " bytes differ, the first is byte " + std::to_string(first);
}

/// How the GPU's results differ from the simulator's; "" where they do not.
std::string compare(const Case& c, const Built& built) {
  std::vector<Tensor> on_gpu;
  for (const Tensor& t : c.inputs) on_gpu.push_back(t.cuda());
  on_gpu.push_back(c.output.cuda());
  const std::vector<CallArg> args(on_gpu.begin(), on_gpu.end());
  built.module->call(args);
  built.module->synchronize();
  const std::vector<Tensor> wanted = simulated(c);
  for (size_t i = 0; i < on_gpu.size(); i++) {
    const std::string problem = difference(on_gpu[i].cpu(), wanted[i], c.gpu);
    if (!problem.empty()) return "argument " + std::to_string(i) + ": " + problem;
  }
  return "";
}

/// Cases from number `first` on, up to the first that the GPU does not run: its process is of no more use then.
void run_from(const Cases& cases, size_t first) {
  std::setvbuf(stdout, nullptr, _IOLBF, 4096);
  const std::vector<Built> built = build_all(cases, first);
  for (size_t i = first; i < cases.size(); i++) {
    const char* const name = cases[i].name.c_str();
    const Built& b = built[i - first];
    try {
      const std::string problem = b.module ? compare(cases[i], b) : b.problem;
      if (problem.empty()) std::printf("PASS %s\n", name);
      else std::printf("%s %s: %.400s\n", b.module ? "DIFFER" : "FAIL", name, problem.c_str());
    } catch (const std::exception& e) {
      std::printf("FAIL %s: %.400s\n", name, e.what());
      return;
    }
  }
}

struct Counts {
  size_t equal = 0, different = 0, failed = 0;
};
/// All cases, in processes of their own; prints those that are not equal.
Counts run_in_children(const std::string& program, const std::string& part, const Cases& cases) {
  Counts counts;
  size_t done = 0;
  while (done < cases.size()) {
    const std::string command = program + " '" + part + "' " + std::to_string(done);
    FILE* child = popen(command.c_str(), "r");
    if (!child) throw std::runtime_error("no process for " + command);
    size_t ran = 0;
    char line[1024];
    while (std::fgets(line, sizeof line, child)) {
      const std::string text = line;
      const bool equal = text.rfind("PASS ", 0) == 0, differs = text.rfind("DIFFER ", 0) == 0,
                 fails = text.rfind("FAIL ", 0) == 0;
      counts.equal += equal, counts.different += differs, counts.failed += fails;
      ran += equal || differs || fails;
      if (differs || fails) std::printf("%s", line);
    }
    const int status = pclose(child);
    if (ran == 0) {
      std::printf("FAIL %s: its process ends with status %d\n", cases[done].name.c_str(), status);
      counts.failed++, ran = 1;
    }
    done += ran;
  }
  return counts;
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
    return text.find("primitives_gpu.cpp:") == 0 &&
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

/// Number N of the command line.
size_t number_of(const char* text, size_t count) {
  char* end = nullptr;
  const unsigned long long n = std::strtoull(text, &end, 10);
  HIDET_REQUIRE(*text >= '0' && *text <= '9' && !*end && n <= count, ErrorCode::usage, "", "'",
                text, "' is no number of a case: there are ", count);
  return n;
}

int run(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  int refused = 0;
  const Cases cases = cases_for(part, cuda_device_info(0).arch(), &refused);
  HIDET_REQUIRE(!cases.empty() || refused, ErrorCode::usage, "", "no case's name has '", part, "'");
  if (argc > 2) {
    run_from(cases, number_of(argv[2], cases.size()));
    return 0;
  }
  std::set<std::string> rows;
  for (const Case& c : cases) rows.merge(rows_of(c));
  const Counts counts = run_in_children(argv[0], part, cases);
  std::printf(
      "%s, %zu kernels of %zu primitives beside the simulator: %zu equal, %zu differ, %zu do not "
      "run; %d need another GPU\n",
      cuda_device_info(0).name.c_str(), cases.size(), rows.size(), counts.equal, counts.different,
      counts.failed, refused);
  bool fine = counts.equal == cases.size();
  if (part.empty()) {
    fine = report("assert in a kernel", asserts()) && fine;
    fine = report("tune and profile", tuning()) && fine;
  }
  return fine ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (cuda_device_count() == 0) {
    std::printf("SKIP everything: %s\n", cuda_problem().c_str());
    return 0;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::printf("FAIL everything: %s\n", e.what());
    return 1;
  }
}
