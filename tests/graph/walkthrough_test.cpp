// docs/walkthrough.md shows what each stage prints: every block behind a line `<!-- printed: name -->` is made here, and the
// document must hold it word for word. HIDET_UPDATE_GOLDEN=1 rewrites the blocks.
#include <gtest/gtest.h>
#include <hidet/codegen/codegen.h>
#include <hidet/graph/op.h>
#include <hidet/graph/ops.h>
#include <hidet/ir/passes.h>
#include <hidet/lang.h>
#include <hidet/runtime/error.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "build/plan.h"

namespace hidet {
namespace {

using Blocks = std::map<std::string, std::string>;

std::string read(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

/// The text from the first line that holds `begin` to the closing brace of what it opens.
std::string function_of(const std::string& text, const std::string& begin) {
  const size_t at = text.find(begin);
  HIDET_CHECK(at != std::string::npos, "no '", begin, "' in\n", text);
  const size_t start = text.rfind('\n', at) + 1;
  return text.substr(start, text.find("\n}\n", at) + 3 - start);
}

/// The module before the passes, and after each pass that changes it.
void add_stages(Blocks& blocks, const std::string& name, ir::Module module, ir::Target target) {
  blocks[name + " recorded"] = ir::print(module);
  for (const ir::Pass& pass : ir::lowering(target)) {
    const ir::Module next = ir::run_passes(module, {pass});
    if (!equal(next, module)) blocks[name + " " + pass.name] = ir::print(next);
    module = next;
  }
}

/// The one kernel of the run program: what does not depend on weights alone.
graph::PlanKernel kernel_of(const FlowGraph& graph) {
  std::vector<const FlowGraph::Node*> nodes;
  for (const FlowGraph::Node& n : graph.nodes())
    if (!graph::is_weight(n.outputs[0])) nodes.push_back(&n);
  graph::KernelStore kernels({"x86-64-v3", 32});
  for (const graph::Group& g : graph::fuse(nodes, graph.output_tensors()))
    if (!g.is_view) (void)kernels.add(g);
  kernels.finish();
  HIDET_CHECK(kernels.kernels().size() == 1, kernels.kernels().size(), " kernels");
  return kernels.kernels()[0];
}

void add_matmul(Blocks& blocks) {
  const Tensor x = symbol({2, 3}, f32);
  const Tensor w = arange(12, f32).reshape({3, 4});
  const FlowGraph traced = trace_from(ops::relu(ops::matmul(x, w)));
  const FlowGraph graph = optimize(traced);
  const graph::PlanKernel kernel = kernel_of(graph);
  blocks["matmul traced"] = traced.text();
  blocks["matmul optimized"] = graph.text();
  blocks["matmul recorded"] = ir::print(kernel.recorded);
  blocks["matmul lowered"] = ir::print(kernel.module);
  blocks["matmul c"] = kernel.text.substr(kernel.text.find("k_"));
}

void add_script(Blocks& blocks) {
  using namespace lang;
  ScriptModule m("add");
  m.cuda_kernel("add", [](Function& f) {
    auto x = f.arg("x", tensor(hidet::f32, {4, 100}));
    auto y = f.arg("y", tensor(hidet::f32, {4, 100}));
    f.grid_dim(2);
    f.block_dim(256);
    for (auto [i, j] : repeat(1, 1).spatial(2, 128).on(threadIdx.x))
      y.write({blockIdx.x * 2 + i, j}, x.read({blockIdx.x * 2 + i, j}) + 1);
  });
  const ir::Module module = m.module();
  add_stages(blocks, "script", module, ir::Target::cuda);
  const ir::Module lowered = ir::run_passes(module, ir::lowering(ir::Target::cuda));
  blocks["script cuda"] = function_of(codegen::emit_cuda(lowered), "__global__");
  blocks["script c"] = function_of(codegen::emit_c(lowered), "launch(");
}

/// `document` with the blocks behind `<!-- printed: name -->` replaced; names each block that the document lacks.
std::string with_blocks(const std::string& document, const Blocks& blocks) {
  std::string out;
  size_t at = 0;
  const std::string mark = "<!-- printed: ", fence = "```text\n";
  std::map<std::string, int> used;
  for (size_t next; (next = document.find(mark, at)) != std::string::npos;) {
    const size_t name_at = next + mark.size(), name_end = document.find(" -->\n", name_at);
    const std::string name = document.substr(name_at, name_end - name_at);
    const size_t begin = name_end + 5, end = document.find("\n```\n", begin);
    EXPECT_EQ(document.compare(begin, fence.size(), fence), 0) << "no block behind " << name;
    EXPECT_TRUE(blocks.count(name)) << "nothing prints " << name;
    if (!blocks.count(name) || end == std::string::npos) return document;
    out += document.substr(at, begin - at) + fence + blocks.at(name);
    used[name]++;
    at = end + 1;
  }
  for (const auto& [name, text] : blocks) EXPECT_EQ(used[name], 1) << name << " prints\n" << text;
  return out + document.substr(at);
}

TEST(Walkthrough, TheDocumentShowsWhatIsPrinted) {
  Blocks blocks;
  add_matmul(blocks);
  add_script(blocks);
  const std::string path = std::string(HIDET_SOURCE_DIR) + "/docs/walkthrough.md",
                    document = read(path);
  const std::string printed = with_blocks(document, blocks);
  if (std::getenv("HIDET_UPDATE_GOLDEN")) std::ofstream(path) << printed;
  else EXPECT_EQ(printed, document) << "HIDET_UPDATE_GOLDEN=1 rewrites the document";
}

}  // namespace
}  // namespace hidet
