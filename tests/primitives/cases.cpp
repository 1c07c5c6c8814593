// cases.cpp - the builders of cases, and the list of files.
#include "primitives/cases.h"

#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>

namespace hidet::primitives {
using namespace lang;

Cases all_cases() {
  Cases cases;
  for (const auto& add : {add_math, add_arith, add_memory, add_threads, add_warp, add_hopper,
                          add_bulk, add_mbarriers, add_wgmma})
    add(cases);
  return cases;
}

std::set<std::string> rows_of(const Case& c) {
  std::set<std::string> rows;
  for (const ir::Function& f : c.cuda.module().functions)
    ir::visit_all(f.body, [&](const ir::Node& n) {
      if (const ir::Prim* p = ir::as<ir::Prim>(&n)) rows.insert(p->name);
    });
  return rows;
}

int least_arch(const Case& c) {
  int least = 80;
  for (const std::string& row : rows_of(c))
    least = std::max(least, ir::find_primitive(row)->min_arch);
  return least;
}
std::string arch_name(int arch) {
  return arch == ir::kHopperOnly ? "sm_90a" : "sm_" + std::to_string(arch);
}

std::vector<Tensor> simulated(const Case& c) {
  std::vector<Tensor> tensors;
  for (const Tensor& t : c.inputs) tensors.push_back(t.clone());
  tensors.push_back(c.output.clone());
  simulate_module(c.cuda.module(), "launch", {tensors.begin(), tensors.end()});
  return tensors;
}

Case whole(const std::string& row, const std::string& name, const ScriptModule& module,
           const std::vector<Tensor>& inputs, const Tensor& output,
           const std::vector<double>& expected) {
  return {row, name.empty() ? row : row + " " + name, module, {}, inputs, output, expected, {}, {}};
}

Tensor numbers(DType t, const std::vector<double>& values) {
  return from_doubles(values, {static_cast<int64_t>(values.size())}, t);
}

Case elementwise(const Elementwise& e) {
  const std::string name = e.name.empty() ? e.row : e.row + " " + e.name;
  const int64_t n = e.inputs.at(0).shape(0) / e.lanes;
  const auto declare = [&](Function& f) {
    std::vector<Handle> pointers;
    for (size_t i = 0; i < e.inputs.size(); i++)
      pointers.push_back(f.arg("in" + std::to_string(i), ptr(e.inputs[i].dtype())));
    pointers.push_back(f.arg("out", ptr(e.out)));
    return pointers;
  };
  const auto element = [&](const std::vector<Handle>& pointers, const Value& i) {
    std::vector<Value> values;
    for (size_t k = 0; k + 1 < pointers.size(); k++)
      values.push_back(e.lanes == 1 ? let("v", pointers[k][i])
                                    : let("v", load(pointers[k] + i * e.lanes, e.lanes)));
    store(pointers.back() + i * e.lanes, e.record(values));
  };
  ScriptModule cuda("primitive");
  cuda.cuda_kernel("k", [&](Function& f) {
    const std::vector<Handle> pointers = declare(f);
    f.grid_dim((n + 31) / 32);
    f.block_dim(32);
    auto i = let("i", blockIdx.x * 32 + threadIdx.x);
    if (auto _ = when(i < n)) element(pointers, i);
  });
  Case c{e.row, name, cuda, {}, e.inputs, {}, {}, e.value, e.gpu};
  if (ir::find_primitive(e.row)->c) {
    c.cpu.emplace("primitive");
    c.cpu->public_func("launch", [&](Function& f) {
      const std::vector<Handle> pointers = declare(f);
      for (auto i : range(n)) element(pointers, i);
    });
  }
  std::vector<std::vector<double>> in;
  for (const Tensor& t : e.inputs) in.push_back(t.to_doubles());
  for (size_t i = 0; i < in[0].size(); i++) {
    std::vector<double> values;
    for (const auto& v : in) values.push_back(v[i]);
    c.expected.push_back(e.expect(values));
  }
  c.output = zeros({static_cast<int64_t>(in[0].size())}, e.out);
  return c;
}

Case kernel(const Kernel& k) {
  const std::string name = k.name.empty() ? k.row : k.row + " " + k.name;
  ScriptModule cuda("primitive");
  cuda.cuda_kernel("k", [&](Function& f) {
    std::vector<Handle> in;
    for (size_t i = 0; i < k.inputs.size(); i++)
      in.push_back(f.arg("in" + std::to_string(i), ptr(k.inputs[i].dtype())));
    const Handle out = f.arg("out", ptr(k.output.dtype()));
    f.grid_dim(k.blocks);
    f.block_dim(k.threads);
    k.body(f, in, out);
  });
  return {k.row, name, cuda, {}, k.inputs, k.output, k.expected, k.value, k.gpu, k.elsewhere};
}

}  // namespace hidet::primitives
