// cuda_graph_gpu.cpp - CompiledModel::cuda_graph on a GPU against plain runs of the same model, bit by bit: inputs
// changed in place, sizes in turn, threads; then what both take. Plain program: prints PASS, FAIL or SKIP lines; exit
// status 1 after a FAIL.
// usage: cuda_graph_gpu FILE.hidet [SYMBOL=SIZE...]   a symbol without a size is 1, and 2, 3... in other runs
// Needs: libhidet_runtime.so, a driver, a GPU, a model with a program for it. Integers are 0 or 1.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <hidet/runtime/compiled_model.h>
#include <hidet/runtime/cuda.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/model_data.h>

#include "checks.h"

using namespace hidet;

namespace {

const Device kGpu(DeviceKind::cuda, 0);
CompiledModel model;
SymbolMap given;

Tensor random_tensor(const Shape& shape, DType dtype, uint64_t seed) {
  return dtype.is_float() ? randn(shape, dtype, {}, seed) : randint(shape, 0, 2, dtype, {}, seed);
}

/// Inputs on the CPU; symbols without a size are `other`.
std::vector<Tensor> inputs_of(int64_t other, uint64_t seed) {
  SymbolMap symbols = given;
  for (const SymbolRange& s : model.symbols()) symbols.emplace(s.name, other);
  std::vector<Tensor> list;
  for (const TensorSignature& s : model.inputs()) {
    Shape shape;
    for (const DimExpr& d : s.shape) shape.push_back(d.eval(symbols));
    list.push_back(random_tensor(shape, s.dtype, seed + list.size()));
  }
  return list;
}

std::vector<Tensor> on_gpu(const std::vector<Tensor>& list) {
  std::vector<Tensor> moved;
  for (const Tensor& t : list) moved.push_back(t.to(kGpu));
  return moved;
}

void require_equal(const std::vector<Tensor>& replay, const std::vector<Tensor>& plain) {
  HIDET_REQUIRE(replay.size() == plain.size(), ErrorCode::mismatch, "",
                "another number of outputs");
  for (size_t i = 0; i < plain.size(); ++i) {
    const Tensor a = replay[i].cpu(), b = plain[i].cpu();
    HIDET_REQUIRE(a.shape() == b.shape(), ErrorCode::mismatch, "", "output ", i, " has the shape ",
                  shape_text(a.shape()), ", not ", shape_text(b.shape()));
    HIDET_REQUIRE(
        a.bytes() == 0 || !std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())),
        ErrorCode::mismatch, "", "output ", i, " of a replay differs from a plain run");
  }
}

void changed_in_place() {
  const std::vector<Tensor> inputs = on_gpu(inputs_of(1, 1));
  std::vector<std::vector<Tensor>> kept;
  for (uint64_t round = 1; round <= 5; ++round) {
    const std::vector<Tensor> fresh = inputs_of(1, round * 100);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].copy_from(fresh[i]);
    kept.push_back(model.cuda_graph(inputs));
    require_equal(kept.back(), model.run(inputs));
  }
  for (uint64_t round = 1; round <= 5; ++round)  // later replays left earlier outputs alone
    require_equal(kept[round - 1], model.run(on_gpu(inputs_of(1, round * 100))));
}

void sizes_in_turn() {
  for (uint64_t round = 0; round < 3; ++round)
    for (int64_t size = 1; size <= 3; ++size) {
      const std::vector<Tensor> inputs = on_gpu(inputs_of(size, round * 100 + 7));
      require_equal(model.cuda_graph(inputs), model.run(inputs));
    }
}

/// Each thread has sizes of its own, so that recordings and plain runs of others happen at once.
void threads() {
  std::vector<std::string> problems(4);
  std::vector<std::thread> list;
  for (int t = 0; t < 4; ++t)
    list.emplace_back([&, t] {
      try {
        for (uint64_t round = 0; round < 10; ++round) {
          const std::vector<Tensor> inputs = on_gpu(inputs_of(4 + t, round * 10 + t));
          require_equal(model.cuda_graph(inputs), model.run(inputs));
        }
      } catch (const std::exception& error) {
        problems[t] = error.what();
      }
    });
  for (std::thread& thread : list) thread.join();
  for (const std::string& problem : problems)
    HIDET_REQUIRE(problem.empty(), ErrorCode::mismatch, "", problem);
}

void refusal() {
  try {
    model.cuda_graph(inputs_of(1, 1));
  } catch (const Error& error) {
    const std::string expected = "input '" + model.inputs()[0].name + "' is on the cpu";
    HIDET_REQUIRE(std::strstr(error.what(), expected.c_str()), ErrorCode::mismatch, "",
                  "another error: ", error.what());
    return;
  }
  throw Error(ErrorCode::mismatch, "tensors of the CPU were taken");
}

void costs() {
  const std::vector<Tensor> inputs = on_gpu(inputs_of(1, 1));
  const auto print = [&](const char* what, const std::function<void()>& body) {
    double least = 1e30;
    for (int i = 0; i < 100; ++i) {
      const auto start = std::chrono::steady_clock::now();
      body();
      cuda_synchronize(0);
      const auto end = std::chrono::steady_clock::now();
      least = std::min(least, std::chrono::duration<double, std::milli>(end - start).count());
    }
    std::printf("     %-24s %8.3f ms\n", what, least);
  };
  print("run, least of 100", [&] { (void)model.run(inputs); });
  print("cuda_graph, least of 100", [&] { (void)model.cuda_graph(inputs); });
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string problem = cuda_problem(); !problem.empty()) {
    std::printf("SKIP everything: %s\n", problem.c_str());
    return 0;
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: cuda_graph_gpu FILE.hidet [SYMBOL=SIZE...]\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = std::min(text.find('='), text.size() - 1);
    given[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
  }
  check("load", [&] { model = load_model(argv[1], {.device = kGpu}); });
  if (!model.defined()) return 1;
  check("changed_in_place", changed_in_place);
  check("sizes_in_turn", sizes_in_turn);
  check("threads", threads);
  check("refusal", refusal);
  check("costs", costs);
  std::printf(failures ? "FAILED %d\n" : "ALL PASSED\n", failures);
  return failures ? 1 : 0;
}
