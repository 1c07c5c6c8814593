// cases.h - a small kernel for each row of the table of primitives, with its arguments and what it must give. primitives_test runs
// them in the simulator and compiles them for the least architecture; tests/gpu/primitives_gpu.cpp runs them on a GPU and
// compares with the simulator.
// Adding a primitive: a call of one of the builders below in one of the files cases_*.cpp; a new file is a line in cases.cpp.
// A row that no case's kernel has, and that is not in kElsewhere (primitives_test.cpp), fails Primitives.EveryRowHasACase.
// Threading: plain values; recording is on one thread.
#pragma once
#include <hidet/lang.h>
#include <hidet/runtime/tensor.h>

#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hidet::primitives {

using lang::Function;
using lang::Handle;
using lang::ScriptModule;
using lang::Value;

/// How far a number may be from another: by `relative` of it, or by `absolute`. Both 0: the same; NaN equals NaN.
struct Tolerance {
  double relative = 0, absolute = 0;
  bool fits(double got, double wanted) const {
    if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
    if (got == wanted) return true;
    return std::fabs(got - wanted) <= relative * std::fabs(wanted) + absolute;
  }
};

struct Case {
  std::string row;                  ///< of the table
  std::string name;                 ///< the row, and what else says which case it is
  ScriptModule cuda;                ///< one kernel: its arguments are `inputs`, then the output
  std::optional<ScriptModule> cpu;  ///< the same for the CPU, where the row has C text
  std::vector<Tensor> inputs;
  Tensor output;  ///< before the run
  std::vector<double>
      expected;     ///< of the output after it, found without the simulator; empty: see `elsewhere`
  Tolerance value;  ///< simulator and CPU against `expected`
  Tolerance gpu;    ///< GPU against the simulator
  std::string elsewhere = {};  ///< without `expected`: the test that knows the value
  bool compiled = true;  ///< by primitives_test, too: not where many cases differ in a number only
};
using Cases = std::vector<Case>;

/// All of them, in the order of the files.
Cases all_cases();
/// The rows of the table that the case's CUDA module has.
std::set<std::string> rows_of(const Case& c);
/// The least architecture of all of them: 80, 90, ir::kHopperOnly; and as build() takes it.
int least_arch(const Case& c);
std::string arch_name(int arch);
/// What the case's module makes of copies of its arguments, in the simulator; the last is the output.
std::vector<Tensor> simulated(const Case& c);

// --- builders

/// Records from values (a scalar, or a vector of `lanes`) of each input.
using Record = std::function<Value(const std::vector<Value>&)>;
using Expect = std::function<double(const std::vector<double>&)>;
struct Elementwise {
  std::string row, name = {};
  DType out;
  std::vector<Tensor> inputs;  ///< of equal length
  Record record;
  Expect expect;  ///< of one element
  int lanes = 1;  ///< elements that a thread takes as a vector
  Tolerance value = {}, gpu = {};
};
/// out[i] = f(inputs[i]); on the CPU, too, where the row has C text.
Case elementwise(const Elementwise& e);

struct Kernel {
  std::string row, name = {};
  int blocks = 1, threads = 32;
  std::vector<Tensor> inputs = {};
  Tensor output;
  /// The body: the function, pointers to the inputs, pointer to the output.
  std::function<void(Function&, const std::vector<Handle>&, const Handle&)> body;
  std::vector<double> expected;
  Tolerance value = {}, gpu = {};
  std::string elsewhere = {};
};
Case kernel(const Kernel& k);
/// A module whose `launch` takes the inputs, then the output.
Case whole(const std::string& row, const std::string& name, const ScriptModule& module,
           const std::vector<Tensor>& inputs, const Tensor& output,
           const std::vector<double>& expected);

/// A 1-D tensor of these numbers.
Tensor numbers(DType t, const std::vector<double>& values);
/// `n` numbers, f(0), f(1) ...
template <class F>
std::vector<double> sequence(int n, F f) {
  std::vector<double> out;
  for (int i = 0; i < n; i++) out.push_back(static_cast<double>(f(i)));
  return out;
}

// --- the files
void add_math(Cases& cases);
void add_arith(Cases& cases);
void add_memory(Cases& cases);
void add_threads(Cases& cases);
void add_warp(Cases& cases);
void add_hopper(Cases& cases);
void add_bulk(Cases& cases);
void add_mbarriers(Cases& cases);
void add_wgmma(Cases& cases);

}  // namespace hidet::primitives
