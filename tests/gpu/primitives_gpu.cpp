// primitives_gpu.cpp - each CUDA primitive on a GPU: the same kernels as in the simulator, all bytes compared.
// usage: primitives_gpu [PART [N]]   the cases whose names have PART; from number N on in this process
// Needs: a GPU of sm_90, NVRTC and a C compiler, no LLVM; else it prints SKIP. Exit status 1 where a result differs.
// Threading: kernels are compiled on all cores, the rest is one thread.
#include "primitive_cases.h"
#include "wgmma_cases.h"

#include <hidet/runtime/cuda.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>

using hidet::CompiledModule;
using hidet::Tensor;

namespace {

std::vector<PrimitiveCase> all_cases(const std::string& part) {
  std::vector<PrimitiveCase> all = primitive_cases(), out;
  for (PrimitiveCase& c : older_primitive_cases()) all.push_back(std::move(c));
  for (const WgmmaCase& c : wgmma_cases()) {
    const WgmmaData data(c);
    all.push_back(
        {c.name(), wgmma_module(c), {data.bytes_a(c), data.bytes_b(c), data.registers(c)}, {}});
  }
  for (PrimitiveCase& c : all)
    if (c.name.find(part) != std::string::npos) out.push_back(std::move(c));
  return out;
}

/// Compiled on all cores; why not, where that failed.
struct Built {
  std::optional<CompiledModule> module;
  std::string problem;
};
std::vector<Built> build_all(const std::vector<PrimitiveCase>& cases) {
  std::vector<Built> out(cases.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); i++)
    threads.emplace_back([&] {
      for (size_t c; (c = next++) < cases.size();) try {
          out[c].module = cases[c].module.build();
        } catch (const std::exception& e) {
          out[c].problem = e.what();
        }
    });
  for (std::thread& t : threads) t.join();
  return out;
}

void compare(const PrimitiveCase& c, const Built& built) {
  if (!built.module) throw std::runtime_error(built.problem);
  std::vector<Tensor> on_gpu, simulated;
  std::vector<hidet::CallArg> args;
  std::vector<hidet::lang::SimArg> sim_args;
  for (const Tensor& t : c.args) {
    on_gpu.push_back(t.cuda());
    simulated.push_back(t.clone());
    sim_args.emplace_back(simulated.back());
  }
  for (const Tensor& t : on_gpu) args.emplace_back(t);
  (*built.module)["launch"].call(args);
  hidet::lang::simulate_module(c.module.module(), "launch", sim_args);
  for (size_t i = 0; i < on_gpu.size(); i++) {
    const Tensor got = on_gpu[i].cpu();
    const auto *x = static_cast<const uint8_t*>(got.data()),
               *y = static_cast<const uint8_t*>(simulated[i].data());
    int64_t different = 0, first = -1;
    for (int64_t b = 0; b < got.bytes(); b++)
      if (x[b] != y[b]) {
        different++;
        if (first < 0) first = b;
      }
    if (different)
      throw std::runtime_error("argument " + std::to_string(i) + ": " + std::to_string(different) +
                               " of " + std::to_string(got.bytes()) +
                               " bytes differ from the simulator's, the first is byte " +
                               std::to_string(first));
  }
}

/// Cases from number `first` on, up to the first that fails: after an error of the GPU its process is of no more use.
/// Returns how many ran, the failing one included.
size_t run_from(const std::vector<PrimitiveCase>& cases, size_t first) {
  const std::vector<Built> built =
      build_all({cases.begin() + static_cast<long>(first), cases.end()});
  for (size_t i = first; i < cases.size(); i++) {
    try {
      compare(cases[i], built[i - first]);
      std::printf("PASS %s\n", cases[i].name.c_str());
    } catch (const std::exception& e) {
      std::printf("FAIL %s: %s\n", cases[i].name.c_str(), e.what());
      return i + 1 - first;
    }
  }
  return cases.size() - first;
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string problem = hidet::cuda_problem(); !problem.empty()) {
    std::printf("SKIP everything: %s\n", problem.c_str());
    return 0;
  }
  if (hidet::cuda_device_info(0).arch() != 90) {
    std::printf("SKIP everything: the GPU is not of sm_90\n");
    return 0;
  }
  const std::string part = argc > 1 ? argv[1] : "";
  const std::vector<PrimitiveCase> cases = all_cases(part);
  if (argc > 2) {
    (void)run_from(cases, static_cast<size_t>(std::atol(argv[2])));
    return 0;
  }
  size_t done = 0, passed = 0;
  while (done < cases.size()) {
    const std::string command = std::string(argv[0]) + " '" + part + "' " + std::to_string(done);
    FILE* child = popen(command.c_str(), "r");
    if (!child) throw std::runtime_error("no process for " + command);
    size_t ran = 0;
    char line[1024];
    while (std::fgets(line, sizeof line, child)) {
      const std::string text = line;
      if (text.rfind("PASS ", 0) == 0) passed++, ran++;
      if (text.rfind("FAIL ", 0) == 0) std::printf("%s", line), ran++;
    }
    const int status = pclose(child);
    if (ran == 0) {
      std::printf("FAIL %s: its process ends with status %d\n", cases[done].name.c_str(), status);
      ran = 1;
    }
    done += ran;
  }
  std::printf("%zu of %zu kernels give the simulator's bytes\n", passed, cases.size());
  return passed == cases.size() ? 0 : 1;
}
