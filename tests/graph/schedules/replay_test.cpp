// replay_test.cpp - the emitted text of a fixed set of kernels: schedules on fixed shapes for two CPU levels and for CUDA, and the
// programs of the guide. replay.txt has a hash for each, so that a change that should move no kernel is seen to move none.
// HIDET_UPDATE_GOLDEN=1 rewrites it. Texts are kept in <build>/replay, named after their hash.
#include <hidet/codegen/codegen.h>
#include <hidet/ir/passes.h>
#include <hidet/lang.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "build/plan.h"
#include "build/split.h"
#include "graph/core/samples.h"
#include "lang/guide.h"
#include "lang/guide_matmul.h"
#include "lang/guide_matmul_hopper.h"

namespace hidet::test {
namespace {
namespace fs = std::filesystem;
using namespace graph;

const fs::path kHashes = fs::path(HIDET_SOURCE_DIR) / "tests/graph/schedules/replay.txt";
const fs::path kTexts = fs::path(HIDET_BINARY_DIR) / "replay";

struct Case {
  const char* name;
  std::vector<std::vector<DimExpr>> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> graph;
};
using In = std::vector<Tensor>;

Tensor weight(const Shape& shape) { return randn(shape, f32, {}, 1); }
Tensor conv(const Tensor& x, const Shape& w, int64_t stride, int64_t pad, int64_t groups = 1) {
  return ops::conv2d(x, weight(w), {stride, stride}, {pad, pad, pad, pad}, {1, 1}, groups);
}

std::vector<Case> cases() {
  return {
      {"elementwise", {{5, 24}, {24}}, [](const In& x) { return ops::relu(x[0] + x[1]); }},
      {"elementwise_odd", {{"n", 7}}, [](const In& x) { return ops::tanh(x[0] * 0.5); }},
      {"transpose", {{6, 40}}, [](const In& x) { return ops::relu(ops::transpose(x[0], {1, 0})); }},
      {"softmax", {{37, 768}}, [](const In& x) { return ops::softmax(x[0]); }},
      {"softmax_symbolic", {{3, "n"}}, [](const In& x) { return ops::softmax(x[0]); }},
      {"attention",
       {{1, 4, 20, 16}, {1, 4, 16, 20}, {1, 4, 20, 16}},
       [](const In& x) { return ops::matmul(ops::softmax(ops::matmul(x[0], x[1])), x[2]); }},
      {"layer_norm",
       {{5, 768}, {768}, {768}},
       [](const In& x) { return ops::layer_norm(x[0], x[1], x[2]); }},
      {"reduce_inner", {{9, 100}}, [](const In& x) { return ops::reduce_sum(x[0], {1}); }},
      {"reduce_outer", {{100, 9}}, [](const In& x) { return ops::reduce_max(x[0], {0}); }},
      {"product", {{33, 40}, {40, 70}}, [](const In& x) { return ops::matmul(x[0], x[1]); }},
      {"product_batches",
       {{2, 3, "s", 17}, {2, 3, 17, "s"}},
       [](const In& x) { return ops::matmul(x[0], x[1]); }},
      {"product_of_weights",
       {{"n", 768}},
       [](const In& x) { return ops::gelu(ops::matmul(x[0], weight({768, 96})) + weight({96})); }},
      {"conv_window",
       {{1, 16, 14, 14}},
       [](const In& x) { return ops::relu(conv(x[0], {32, 16, 3, 3}, 1, 1)); }},
      {"conv_direct",
       {{1, 16, 15, 15}},
       [](const In& x) { return ops::relu(conv(x[0], {32, 16, 3, 3}, 2, 1)); }},
      {"conv_direct_5x5",
       {{1, 16, 14, 14}},
       [](const In& x) { return conv(x[0], {32, 16, 5, 5}, 1, 2); }},
      {"conv_stride",
       {{1, 3, 32, 32}},
       [](const In& x) { return conv(x[0], {16, 3, 7, 7}, 2, 3); }},
      {"conv_point", {{2, 32, 7, 7}}, [](const In& x) { return conv(x[0], {48, 32, 1, 1}, 1, 0); }},
      {"conv_chain",
       {{2, 32, 30, 30}},
       [](const In& x) {
         const Tensor y = conv(conv(x[0], {96, 32, 1, 1}, 1, 0), {256, 96, 3, 3}, 2, 1);
         return conv(y, {8, 256, 1, 1}, 1, 0);
       }},
      {"conv_depthwise",
       {{1, 32, 14, 14}},
       [](const In& x) { return conv(x[0], {32, 1, 3, 3}, 1, 1, 32); }},
      {"group_norm",
       {{2, 5, "w", 24}},
       [](const In& x) {
         return ops::relu(graph::apply("group_norm_nhwc", {x[0]},
                                       {{"groups", int64_t{4}}, {"epsilon", 1e-5}})[0]);
       }},
  };
}

using Texts = std::map<std::string, std::string>;

/// The graph of a case, its weights recorded, not evaluated.
FlowGraph graph_of(const Case& c, const Device& device) {
  const RecordScope record;
  In inputs;
  for (size_t i = 0; i < c.inputs.size(); i++)
    inputs.push_back(symbol(c.inputs[i], f32, device, "x" + std::to_string(i)));
  return optimize(trace_from({c.graph(inputs)}, inputs));
}
void add_kernels(const FlowGraph& g, KernelStore store, const std::string& name, Texts& out) {
  const Parts parts = split(g);
  for (const Group& group : fuse(parts.run, g.output_tensors(), store.cuda()))
    if (!group.is_view) store.add(group);
  store.finish();
  for (size_t i = 0; i < store.kernels().size(); i++) {
    const PlanKernel& k = store.kernels()[i];
    out[name + "/" + std::to_string(i)] = k.text + k.cuda_text;
  }
}
void add_script(const char* name, lang::ScriptModule m, Texts& out) {
  const ir::Module module = m.module();
  out[std::string("guide/") + name] =
      codegen::emit_c(ir::run_passes(module, ir::lowering(ir::Target::cpu))) +
      codegen::emit_cuda(ir::run_passes(module, ir::lowering(ir::Target::cuda)));
}

Texts all_texts() {
  Texts out;
  for (const Case& c : cases()) {
    const std::string name = c.name;
    const FlowGraph cpu = graph_of(c, {});
    add_kernels(cpu, KernelStore({"x86-64-v3", 32}), "x86-64-v3/" + name, out);
    add_kernels(cpu, KernelStore({"x86-64-v4", 64}), "x86-64-v4/" + name, out);
    add_kernels(graph_of(c, Device("cuda")), KernelStore({}, true), "cuda/" + name, out);
  }
  add_script("hello", hello(), out);
  add_script("vector_add", vector_add(), out);
  add_script("vector_add_cuda", vector_add_cuda(), out);
  add_script("sum_of_squares", sum_of_squares(), out);
  add_script("softmax", softmax(5, 37), out);
  add_script("softmax_cuda", softmax_cuda(300), out);
  add_script("matmul", matmul(64, 96, 128), out);
  add_script("tensor_core_matmul", tensor_core_matmul({}), out);
  add_script("hopper_matmul", hopper_matmul({}), out);
  return out;
}

/// FNV-1a, 64 bits.
std::string hash_of(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(h));
  return out;
}
fs::path text_file(std::string name, const std::string& hash) {
  std::replace(name.begin(), name.end(), '/', '.');
  return kTexts / (name + "." + hash + ".txt");
}

TEST(Replay, TheEmittedTextOfEveryKernelIsAsBefore) {
  fs::create_directories(kTexts);
  const Texts texts = all_texts();
  ASSERT_GE(texts.size(), 50u);
  std::map<std::string, std::string> expected;
  std::ifstream in(kHashes);
  for (std::string name, hash; in >> name >> hash;) expected[name] = hash;
  std::string found, changed;
  for (const auto& [name, text] : texts) {
    const std::string hash = hash_of(text);
    found += name + " " + hash + "\n";
    std::ofstream(text_file(name, hash)) << text;
    const std::string& was = expected[name];
    if (was == hash) continue;
    const fs::path before = text_file(name, was);
    changed += "  " + name + (was.empty() ? " is new" : " changed") + "\n    now    " +
               text_file(name, hash).string() +
               (was.empty()          ? ""
                : fs::exists(before) ? "\n    before " + before.string()
                                     : "\n    before: run this test at the former commit, which "
                                       "leaves " +
                                           before.string()) +
               "\n";
  }
  for (const auto& [name, hash] : expected)
    if (!texts.count(name)) changed += "  " + name + " is gone\n";
  if (std::getenv("HIDET_UPDATE_GOLDEN")) {
    std::ofstream(kHashes) << found;
    return;
  }
  EXPECT_TRUE(changed.empty()) << "the text of kernels changed; where that is meant, "
                                  "HIDET_UPDATE_GOLDEN=1 writes replay.txt anew\n"
                               << changed;
}

// Scheduling and lowering depend on nothing but the graph: not on addresses, threads or what ran before.
TEST(Replay, MadeTwiceTheTextsAreEqual) { EXPECT_EQ(all_texts(), all_texts()); }

}  // namespace
}  // namespace hidet::test
