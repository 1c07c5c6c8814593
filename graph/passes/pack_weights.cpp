// pack_weights.cpp - the CPU's inner form: convolutions and pools in NHWC, weights in panels. Elementwise operators
// between them run in NHWC too, so that transposes remain only at the borders of a network.
#include <hidet/graph/ops.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <set>

#include "passes/rebuild.h"

namespace hidet::graph {
namespace {

const std::vector<int64_t> kToNhwc{0, 2, 3, 1}, kToNchw{0, 3, 1, 2};

bool is_elementwise(const std::string& name) {
  static const std::set<std::string> names = {
      "add",      "sub",           "mul",         "div",        "mod",         "pow",
      "minimum",  "maximum",       "equal",       "not_equal",  "less",        "less_equal",
      "greater",  "greater_equal", "logical_and", "logical_or", "logical_xor", "where",
      "neg",      "exp",           "log",         "sqrt",       "rsqrt",       "tanh",
      "erf",      "sigmoid",       "sin",         "cos",        "floor",       "ceil",
      "round",    "abs",           "sign",        "reciprocal", "logical_not", "isnan",
      "isinf",    "relu",          "gelu",        "gelu_tanh",  "silu",        "softplus",
      "softsign", "hard_sigmoid",  "hard_swish",  "clip",       "leaky_relu",  "elu",
      "cast"};
  return names.count(name) != 0;
}

class Packer {
 public:
  std::vector<Tensor> rewrite(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    const std::string& name = n.op->def->name;
    if (name == "conv2d") return conv(n, in);
    if (name == "max_pool2d") return pool(n, in);
    if (name == "matmul") return matmul(n, in);
    if (name == "reduce_mean" && n.op->inputs[0].rank() == 4 && has_nhwc(in[0])) return mean(n, in);
    if (name.rfind("reduce_", 0) == 0) return reduction(n, in);
    if (is_elementwise(name)) return elementwise(n, in);
    return {};
  }

 private:
  /// The NHWC form of an NCHW tensor: known, or a transpose.
  Tensor nhwc(const Tensor& t) {
    const auto op = producer_of(t);
    if (op && op->def->name == "transpose" && op->attrs.integers("perm") == kToNchw)
      return op->inputs[0];
    auto [it, fresh] = nhwc_.emplace(t.id(), Tensor());
    if (fresh) {
      it->second = ops::transpose(t, kToNhwc);
      keep_.push_back(t);
    }
    return it->second;
  }
  static bool has_nhwc(const Tensor& t) {
    const auto op = producer_of(t);
    return op && op->def->name == "transpose" && op->attrs.integers("perm") == kToNchw;
  }
  static Tensor nchw(const Tensor& t) { return ops::transpose(t, kToNchw); }

  static Attrs window(const Attrs& a, std::vector<int64_t> kernel) {
    return {{"kernel", std::move(kernel)},
            {"stride", a.integers("stride")},
            {"dilation", a.integers("dilation")},
            {"pads", a.integers("pads")}};
  }
  /// The templates compute in f32 and take shorter ones as storage.
  static bool fits(const Tensor& t) {
    return t.dtype() == f32 || t.dtype() == f16 || t.dtype() == bf16;
  }
  static bool constant(const Tensor& t, size_t from) {
    const std::vector<DimExpr> s = t.shape_expr();
    for (size_t d = from; d < s.size(); d++)
      if (!s[d].is_const()) return false;
    return true;
  }

  std::vector<Tensor> conv(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    const int64_t groups = n.op->attrs.integer("groups");
    const Tensor& weight = in[1];
    if (!is_weight(weight) || !fits(in[0]) || !constant(weight, 0) ||
        !in[0].shape_expr()[1].is_const())
      return {};
    const std::vector<DimExpr> w = weight.shape_expr();
    Attrs a = window(n.op->attrs, {w[2].value(), w[3].value()});
    const int64_t channels = in[0].shape_expr()[1].value();
    if (groups == 1) {
      a.set("n", w[0].value());
      const Tensor packed = apply("pack_conv_weight", {weight})[0];
      return {nchw(apply("conv2d_nhwc", {nhwc(in[0]), packed}, a, n.op->name)[0])};
    }
    if (groups != channels || w[0].value() != channels) return {};
    const Tensor packed = apply("pack_depthwise_weight", {weight})[0];
    return {nchw(apply("depthwise_nhwc", {nhwc(in[0]), packed}, a, n.op->name)[0])};
  }

  std::vector<Tensor> pool(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    const Attrs& a = n.op->attrs;
    if (!has_nhwc(in[0]) || (a.has("ceil_mode") && a.integer("ceil_mode"))) return {};
    return {nchw(
        apply("max_pool_nhwc", {nhwc(in[0])}, window(a, a.integers("kernel")), n.op->name)[0])};
  }

  static std::vector<int64_t> axes_of(const FlowGraph::Node& n) {
    std::vector<int64_t> axes = n.op->attrs.integers("axes");
    const int64_t rank = n.op->inputs[0].rank();
    for (int64_t d = 0; n.op->attrs.integers("axes").empty() && d < rank; d++) axes.push_back(d);
    for (int64_t& d : axes) d = d < 0 ? d + rank : d;
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  /// Over several last dims: as one, whose values are read in whole vectors.
  std::vector<Tensor> reduction(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    const std::vector<int64_t> axes = axes_of(n);
    const std::vector<DimExpr> shape = in[0].shape_expr();
    const int64_t first = static_cast<int64_t>(shape.size() - axes.size());
    if (axes.size() < 2 || axes.front() != first) return {};
    std::vector<DimExpr> rows(shape.begin(), shape.begin() + first);
    rows.push_back(product(std::vector<DimExpr>(shape.begin() + first, shape.end())));
    Attrs a = n.op->attrs;
    a.set("axes", std::vector<int64_t>{first});
    a.set("keep_dims", int64_t{0});
    const Tensor y = apply(n.op->def->name, {ops::reshape(in[0], rows)}, a, n.op->name)[0];
    if (n.op->attrs.integer("keep_dims") == 0) return {y};
    return {ops::reshape(y, n.outputs[0].shape_expr())};
  }

  /// A mean over the image of a tensor that exists in NHWC.
  std::vector<Tensor> mean(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    std::vector<int64_t> axes = axes_of(n);
    if (axes != std::vector<int64_t>{2, 3}) return {};
    const bool keep = n.op->attrs.integer("keep_dims") != 0;
    const Tensor y = ops::reduce_mean(nhwc(in[0]), {1, 2}, keep);
    return {keep ? nchw(y) : y};
  }

  std::vector<Tensor> matmul(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    const Tensor& b = in[1];
    if (!is_weight(b) || b.rank() != 2 || in[0].rank() < 2 || !fits(in[0]) || !constant(b, 0))
      return {};
    const int64_t columns = b.shape_expr()[1].value();
    if (columns == 0 || b.shape_expr()[0].is_const(0)) return {};
    const Tensor packed = apply("pack_matmul_weight", {b})[0];
    return apply("matmul_packed", {in[0], packed}, {{"n", columns}}, n.op->name);
  }

  /// In NHWC where an input is; weights and small tensors are moved to match.
  std::vector<Tensor> elementwise(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    bool any = false;
    for (const Tensor& t : in) any = any || has_nhwc(t);
    if (!any || n.outputs[0].rank() != 4) return {};
    std::vector<Tensor> moved;
    for (const Tensor& t : in) {
      if (t.rank() == 0 || product(t.shape_expr()).is_const(1)) {
        moved.push_back(t);
        continue;
      }
      std::vector<DimExpr> shape = t.shape_expr();
      if (shape.size() < 4) shape.insert(shape.begin(), 4 - shape.size(), DimExpr(1));
      moved.push_back(nhwc(t.rank() == 4 ? t : ops::reshape(t, shape)));
    }
    return {nchw(same_node(n, moved)[0])};
  }

  TensorMap nhwc_;
  std::vector<Tensor> keep_;
};

}  // namespace

FlowGraph pack_weights(const FlowGraph& g) {
  Packer p;
  return rebuild(
      g, [&](const FlowGraph::Node& n, const std::vector<Tensor>& in) { return p.rewrite(n, in); });
}

}  // namespace hidet::graph
