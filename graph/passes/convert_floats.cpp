// convert_floats.cpp - f32 graphs in f16 or bf16 (see convert.h).
#include <hidet/graph/convert.h>
#include <hidet/graph/ops.h>
#include <hidet/runtime/error.h>

#include <cmath>
#include <set>

#include "passes/rebuild.h"

namespace hidet::graph {
namespace {

constexpr double kLargestF16 = 65504;

/// Operators that are left in f32.
bool stays_wide(const Operator& op) {
  static const std::set<std::string> names{"pow",      "exp",        "log",         "sqrt",
                                           "rsqrt",    "reciprocal", "sinh",        "cosh",
                                           "softplus", "reduce_sum", "reduce_mean", "reduce_prod",
                                           "softmax",  "layer_norm", "batch_norm",  "avg_pool2d",
                                           "cumsum",   "recurrence", "resize"};
  return op.custom || names.count(op.def->name) != 0;
}

/// True for a weight with finite values that f16 would turn into infinities.
bool passes_f16(const Tensor& t) {
  if (t.is_symbolic()) return false;
  const Tensor here = t.cpu();
  const auto* values = static_cast<const float*>(here.data());
  bool passes = false;
  for (int64_t i = 0; i < here.num_elements(); i++)
    passes = passes || (std::fabs(values[i]) > kLargestF16 && std::isfinite(values[i]));
  return passes;
}

class Converter {
 public:
  explicit Converter(DType to) : to_(to) {}

  Tensor narrow(const Tensor& t) {
    if (t.dtype() != f32) return t;
    const auto [at, fresh] = narrowed_.try_emplace(t.id(), t);
    if (fresh)
      at->second =
          ops::cast(to_ == f16 && passes_f16(t) ? ops::clip(t, -kLargestF16, kLargestF16) : t, to_);
    return at->second;
  }
  Tensor widen(const Tensor& t) {
    if (t.dtype() != to_) return t;
    const auto [at, fresh] = widened_.try_emplace(t.id(), t);
    if (fresh) at->second = ops::cast(t, f32);
    return at->second;
  }

 private:
  DType to_;
  TensorMap narrowed_, widened_;
};

}  // namespace

FlowGraph convert_floats(const FlowGraph& g, DType to) {
  HIDET_REQUIRE(to == f16 || to == bf16, ErrorCode::usage, "",
                "a graph is converted to f16 or bf16, not ", to.name());
  RecordScope record;
  Converter converter(to);
  TensorMap map;
  const auto mapped = [&](const Tensor& t) {
    auto it = map.find(t.id());
    return it == map.end() ? t : it->second;
  };
  for (const FlowGraph::Node& n : g.nodes()) {
    const NameScope name(n.op->name);
    const bool wide = stays_wide(*n.op);
    std::vector<Tensor> inputs;
    for (const Tensor& t : n.op->inputs) {
      // Values that were of this dtype before stay so.
      const Tensor now = mapped(t);
      const bool ours = t.dtype() == f32;
      inputs.push_back(!ours ? now : wide ? converter.widen(now) : converter.narrow(now));
    }
    const std::vector<Tensor> made = same_node(n, inputs);
    for (size_t i = 0; i < made.size(); i++) map[n.outputs[i].id()] = made[i];
  }
  std::vector<Tensor> outputs;
  for (const Tensor& t : g.output_tensors()) {
    const Tensor now = mapped(t);
    outputs.push_back(t.dtype() == f32 ? converter.widen(now) : now);
  }
  return FlowGraph(g.input_tensors(), outputs, g.name()).with_names_of(g);
}

}  // namespace hidet::graph
