// assembly_test.cpp - the assembly of the CPU templates' main loops, and of the recurrence's: vectors as wide as the level has, nothing
// spilled, halves widened by vectors.
#include <gmock/gmock.h>
#include <hidet/backends/cpu.h>
#include <hidet/graph/op.h>
#include <hidet/hidet.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "build/plan.h"
#include "build/split.h"

namespace hidet::test {
namespace {

/// The loops of an assembly text that have no loop inside: the lines from a label to a jump back to it.
std::vector<std::vector<std::string>> inner_loops(const std::string& assembly) {
  std::vector<std::string> lines;
  std::map<std::string, size_t> labels;
  std::vector<std::vector<std::string>> loops;
  size_t end_of_last = 0;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (line.rfind(".LBB", 0) == 0) labels[line.substr(0, line.find(':'))] = lines.size() - 1;
    const size_t target = line.find(".LBB");
    if (line.rfind("\tj", 0) != 0 || target == std::string::npos) continue;
    const auto label =
        labels.find(line.substr(target, line.find_first_of(" \t#", target) - target));
    if (label == labels.end() || label->second < end_of_last) continue;
    loops.emplace_back(lines.begin() + static_cast<long>(label->second), lines.end());
    end_of_last = lines.size();
  }
  return loops;
}

size_t count(const std::vector<std::string>& loop, const std::string& a,
             const std::string& b = "") {
  return static_cast<size_t>(std::count_if(loop.begin(), loop.end(), [&](const std::string& line) {
    return line.find(a) != std::string::npos && line.find(b) != std::string::npos;
  }));
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

/// The texts of the kernels of a graph's run part.
std::vector<std::string> texts_of(const FlowGraph& g, const graph::CpuTargetInfo& target) {
  const graph::Parts parts = graph::split(g);
  graph::KernelStore kernels(target);
  for (const graph::Group& group : graph::fuse(parts.run, g.output_tensors()))
    if (!group.is_view) (void)kernels.add(group);
  kernels.finish();
  std::vector<std::string> texts;
  for (const graph::PlanKernel& k : kernels.kernels()) texts.push_back(k.text);
  return texts;
}

struct Level {
  const char* target;
  int vector_bytes;
  const char* wide;
};

/// The loop writes vectors to other places than the stack.
bool writes(const std::vector<std::string>& loop) {
  static const std::regex store(R"(vmov[ua]p[sd]\s+%[yz]mm[0-9]+, *[^%]*\(%r(?!sp|bp))");
  return std::any_of(loop.begin(), loop.end(),
                     [](const std::string& line) { return std::regex_search(line, store); });
}

/// Vector operands on the stack. %rbp is a frame where a function makes it one, and a pointer like others where not.
size_t spills(const std::vector<std::string>& loop, bool frames, const char* wide) {
  static const std::regex frame(R"(-[0-9]+\(%rbp\))");
  return static_cast<size_t>(std::count_if(loop.begin(), loop.end(), [&](const std::string& line) {
    return line.find(wide) != std::string::npos &&
           (line.find("(%rsp)") != std::string::npos || (frames && std::regex_search(line, frame)));
  }));
}

/// What the main loops of a kernel are known by, and what they must have.
struct Wanted {
  const char* instruction = "vfmadd";
  size_t least = 8;             ///< of them in a main loop; all of them in whole vectors
  size_t in_one[2] = {24, 12};  ///< in the largest main loop, at v4 and v3
  bool skips_writing = false;   ///< loops that write vectors are none: Winograd's transforms, gates
  const char* with = "";        ///< an instruction that each main loop has, too
};

void expect_clean_loops(const FlowGraph& g, const Wanted& wanted) {
  for (const Level& level : {Level{"x86-64-v4", 64, "%zmm"}, Level{"x86-64-v3", 32, "%ymm"}}) {
    size_t most = 0;
    for (const std::string& text : texts_of(g, {level.target, level.vector_bytes})) {
      const std::string assembly = backends::emit_assembly(text, {.target = level.target});
      const bool frames = assembly.find("%rsp, %rbp") != std::string::npos;
      for (const auto& loop : inner_loops(assembly)) {
        if (wanted.skips_writing && writes(loop)) continue;
        const size_t wide = count(loop, wanted.instruction, level.wide);
        most = std::max(most, wide);
        if (wide < wanted.least) continue;  // not a main loop
        const std::string where = level.target + std::string(", in\n") + joined(loop);
        EXPECT_EQ(wide, count(loop, wanted.instruction)) << where;
        EXPECT_EQ(spills(loop, frames, level.wide), 0u) << "spills: " << where;
        EXPECT_GT(count(loop, wanted.with), 0u) << "no " << wanted.with << ": " << where;
      }
    }
    EXPECT_GE(most, wanted.in_one[level.vector_bytes == 64 ? 0 : 1]) << level.target;
  }
}

TEST(TemplateAssembly, PackedMatmulAndStrassen) {
  const Tensor x = symbol({128, 768}, f32, {}, "x");
  expect_clean_loops(optimize(trace_from(ops::matmul(x, randn({768, 3072})))), {});
}

/// Tile registers: per step of K 6 products of 4 tiles, 14 loads of tiles, and vectors between them that stay in registers.
TEST(TemplateAssembly, SplitProduct) {
  const Tensor x = symbol({128, 768}, f32, {}, "x");
  const FlowGraph g = optimize(trace_from(ops::matmul(x, randn({768, 3072}))));
  const char* const target = "x86-64-v4+amx";
  for (const std::string& text :
       texts_of(g, {.target = target, .vector_bytes = 64, .has_tiles = true})) {
    const std::string assembly = backends::emit_assembly(text, {.target = target});
    const size_t begin = assembly.find("tileloadd"), end = assembly.rfind("tdpbf16ps");
    ASSERT_NE(begin, std::string::npos);
    std::vector<std::string> lines;
    std::istringstream in(assembly.substr(begin, end - begin));
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    const bool frames = assembly.find("%rsp, %rbp") != std::string::npos;
    EXPECT_EQ(spills(lines, frames, "%zmm"), 0u) << joined(lines);
    EXPECT_GE(count(lines, "tdpbf16ps") + 1, 24u + 12u);
    EXPECT_EQ((count(lines, "tdpbf16ps") + 1) % 36, 0u) << "two forms, or copies of both";
  }
}

TEST(TemplateAssembly, HalvesAreWidenedInRegisters) {
  for (const auto& [t, widens] : {std::pair{f16, "vcvtph2ps"}, std::pair{bf16, "vpmovzxwd"}}) {
    const Tensor x = symbol({128, 768}, t, {}, "x");
    expect_clean_loops(optimize(trace_from(ops::matmul(x, randn({768, 96}, t)))), {.with = widens});
  }
}

TEST(TemplateAssembly, BatchMatmul) {
  const Tensor a = symbol({12, "n", 64}, f32, {}, "a"), b = symbol({12, 64, "n"}, f32, {}, "b");
  expect_clean_loops(optimize(trace_from({ops::matmul(a, b)}, {a, b})), {});
}

TEST(TemplateAssembly, Attention) {
  std::vector<Tensor> in;
  for (const char* name : {"q", "k", "v"}) in.push_back(symbol({1, 12, "n", 64}, f32, {}, name));
  const Tensor scores = ops::matmul(in[0], ops::transpose(in[1], {0, 1, 3, 2})) * 0.125;
  const FlowGraph g = optimize(trace_from({ops::matmul(ops::softmax(scores), in[2])}, in));
  ASSERT_EQ(g.nodes().back().op->def->name, "attention");
  expect_clean_loops(g, {});
}

TEST(TemplateAssembly, ConvolutionOfPointsAndWinograd) {
  const Tensor x = symbol({1, 64, 56, 56}, f32, {}, "x");
  for (const int64_t kernel : {1, 3})
    expect_clean_loops(
        optimize(trace_from(ops::conv2d(x, randn({64, 64, kernel, kernel}), {1, 1},
                                        {kernel / 2, kernel / 2, kernel / 2, kernel / 2}))),
        {.skips_writing = true});
}

TEST(TemplateAssembly, DirectConvolution) {
  const Tensor x = symbol({1, 64, 56, 56}, f32, {}, "x");
  expect_clean_loops(
      optimize(trace_from(ops::conv2d(x, randn({64, 64, 3, 3}), {2, 2}, {1, 1, 1, 1}))), {});
}

TEST(TemplateAssembly, DepthwiseConvolution) {
  const Tensor x = symbol({1, 64, 56, 56}, f32, {}, "x");
  expect_clean_loops(
      optimize(trace_from(ops::conv2d(x, randn({64, 1, 3, 3}), {1, 1}, {1, 1, 1, 1}, {1, 1}, 64))),
      {.in_one = {9, 9}});
}

TEST(TemplateAssembly, Pools) {
  const Tensor x = symbol({1, 64, 64, 64}, f32, {}, "x");
  const std::vector<int64_t> kernel{3, 3}, stride{1, 1}, pads{1, 1, 1, 1};
  expect_clean_loops(optimize(trace_from(ops::max_pool2d(x, kernel, stride, pads))),
                     {.instruction = "vcmpnlt", .least = 6, .in_one = {8, 16}});
  expect_clean_loops(optimize(trace_from(ops::avg_pool2d(x, kernel, stride, pads))),
                     {.instruction = "vadd", .least = 6, .in_one = {8, 16}});
}

TEST(TemplateAssembly, Recurrence) {
  std::vector<Tensor> in{symbol({"t", 1, 2, 1024}), symbol({2, 16, 256, 4, 16}),
                         symbol({2, 1, 256}), symbol({2, 1, 256})};
  const graph::Attrs attrs{{"cell", std::string("lstm")},
                           {"direction", std::string("bidirectional")},
                           {"activations", std::string("sigmoid,tanh,tanh")},
                           {"clip", 0.0},
                           {"linear_before_reset", int64_t{0}},
                           {"peepholes", int64_t{0}},
                           {"lengths", int64_t{0}}};
  expect_clean_loops(trace_from(graph::apply("recurrence", in, attrs), in),
                     {.least = 4, .in_one = {4, 8}, .skips_writing = true});
}

}  // namespace
}  // namespace hidet::test
