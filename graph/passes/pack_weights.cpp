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

bool is_reshape(const std::string& name) {
  return name == "reshape" || name == "squeeze" || name == "unsqueeze" || name == "flatten";
}

class Packer {
 public:
  std::vector<Tensor> rewrite(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    const std::string& name = n.op->def->name;
    if (name == "conv2d") return conv(n, in);
    if (name == "max_pool2d" || name == "avg_pool2d") return pool(n, in);
    if (name == "concat" || name == "slice" || name == "resize") return along_axes(n, in);
    if (name == "matmul") return matmul(n, in);
    if (name == "reduce_mean" && n.op->inputs[0].rank() == 4 && has_nhwc(in[0])) return mean(n, in);
    if (name.rfind("reduce_", 0) == 0) return reduction(n, in);
    if (name == "layer_norm") return norm(n, in);
    if (is_reshape(name)) return reshape(n, in);
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
    const std::vector<int64_t>&kernel = a.integers("kernel"), &pads = a.integers("pads");
    const auto made = [&](const char* op) {
      return apply(op, {nhwc(in[0])}, window(a, kernel), n.op->name)[0];
    };
    if (n.op->def->name == "max_pool2d") return {nchw(made("max_pool_nhwc"))};
    // A mean of as many values everywhere.
    const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
    if (in[0].dtype() != f32 || (padded && !a.integer("count_pads"))) return {};
    const Tensor sums = made("sum_pool_nhwc");
    const auto count = static_cast<double>(kernel[0] * kernel[1]);
    return {nchw(ops::div(sums, ops::scalar_like(sums, count)))};
  }

  /// Operators that name axes, of images that all exist in NHWC.
  std::vector<Tensor> along_axes(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    if (n.outputs[0].rank() != 4 || !std::all_of(in.begin(), in.end(), has_nhwc)) return {};
    const auto moved = [](int64_t axis) {
      static constexpr int64_t kPlace[] = {0, 3, 1, 2};
      return kPlace[axis < 0 ? axis + 4 : axis];
    };
    Attrs a = n.op->attrs;
    if (a.has("axis")) a.set("axis", moved(a.integer("axis")));
    if (a.has("axes")) {
      std::vector<int64_t> axes = a.integers("axes");
      for (int64_t& d : axes) d = moved(d);
      a.set("axes", axes);
    }
    std::vector<Tensor> images;
    for (const Tensor& t : in) images.push_back(nhwc(t));
    return {nchw(apply(n.op->def->name, images, a, n.op->name)[0])};
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

  /// The image [n, c, h, w] that exists in NHWC and that a reshape made `t` of, as [n, c, h w] or [n, groups, c / groups, h w].
  static Tensor image_of(const Tensor& t) {
    const auto op = producer_of(t);
    if (!op || !is_reshape(op->def->name) || !has_nhwc(op->inputs[0])) return {};
    const std::vector<DimExpr> image = op->inputs[0].shape_expr(), rows = t.shape_expr();
    const size_t last = rows.size() - 1;
    if ((last != 2 && last != 3) || !(rows[0] == image[0]) || !image[1].is_const() ||
        !rows[1].is_const() || !(rows[last] == image[2] * image[3]))
      return {};
    const DimExpr channels = last == 2 ? rows[1] : rows[1] * rows[2];
    return channels == image[1] ? op->inputs[0] : Tensor();
  }
  static bool is_one(const Tensor& t) {
    const auto op = producer_of(t);
    return op && op->def->name == "full" && product(t.shape_expr()).is_const(1) &&
           op->attrs.number("value") == 1;
  }
  static Tensor in_rows(const Tensor& nhwc, const Tensor& like) {
    return ops::reshape(nchw(nhwc), like.shape_expr());
  }

  /// A norm of groups of channels of an image.
  std::vector<Tensor> norm(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    const int64_t axis = n.op->attrs.integer("axis"), rank = in[0].rank();
    const Tensor image = image_of(in[0]), &scale = in[1];
    const bool plain =
        in.size() == 2 && (axis < 0 ? axis + rank : axis) == 2 && fits(in[0]) && is_one(scale);
    if (!plain || !image.defined()) return {};
    const Attrs a{{"groups", in[0].shape_expr()[1].value()},
                  {"epsilon", n.op->attrs.number("epsilon")}};
    return {in_rows(apply("group_norm_nhwc", {nhwc(image)}, a, n.op->name)[0], in[0])};
  }

  /// Channels that become blocks of pixels: [n, a b c, h, w] as [n, a, b, c, h, w], moved to [n, c, h, a, w, b] and joined.
  static std::vector<Tensor> blocks_of_pixels(const Tensor& t, const std::vector<DimExpr>& to) {
    const auto move = producer_of(t);
    if (!move || move->def->name != "transpose" ||
        move->attrs.integers("perm") != std::vector<int64_t>{0, 3, 4, 1, 5, 2})
      return {};
    const Tensor& split = move->inputs[0];
    const auto from = producer_of(split);
    if (!from || !is_reshape(from->def->name) || !has_nhwc(from->inputs[0])) return {};
    const std::vector<DimExpr> s = split.shape_expr(), image = from->inputs[0].shape_expr();
    const bool in_place =
        s[0] == image[0] && s[1] * s[2] * s[3] == image[1] && s[4] == image[2] && s[5] == image[3];
    const std::vector<DimExpr> want{s[0], s[3], s[4] * s[1], s[5] * s[2]};
    if (!in_place || to != want) return {};
    const Tensor inner = producer_of(from->inputs[0])->inputs[0],
                 parts = ops::reshape(inner, {s[0], s[4], s[5], s[1], s[2], s[3]});
    const Tensor moved = ops::transpose(parts, {0, 1, 3, 2, 4, 5});
    return {nchw(ops::reshape(moved, {want[0], want[2], want[3], want[1]}))};
  }

  /// Back to the image that rows were made of.
  std::vector<Tensor> reshape(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    std::vector<Tensor> blocks = blocks_of_pixels(in[0], n.outputs[0].shape_expr());
    if (!blocks.empty()) return blocks;
    Tensor t = in[0];
    for (auto op = producer_of(t); op && is_reshape(op->def->name); op = producer_of(t)) {
      t = op->inputs[0];
      if (has_nhwc(t) && t.shape_expr() == n.outputs[0].shape_expr()) return {t};
    }
    return {};
  }

  /// Of rows of an image with what is the same for a channel or for a group: in NHWC.
  std::vector<Tensor> elementwise_of_rows(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    const std::vector<DimExpr> rows = n.outputs[0].shape_expr();
    std::vector<Tensor> moved;
    for (const Tensor& t : in) {
      const Tensor image = image_of(t);
      if (image.defined() && t.shape_expr() == rows) {
        moved.push_back(nhwc(image));
        continue;
      }
      std::vector<DimExpr> shape = t.shape_expr();
      if (product(shape).is_const(1)) {
        moved.push_back(ops::reshape(t, {}));
        continue;
      }
      const size_t rank = rows.size();
      if (shape.size() > rank || !shape.back().is_const(1)) return {};
      shape.insert(shape.begin(), rank - shape.size(), DimExpr(1));
      if (!shape[0].is_const(1)) return {};
      std::vector<DimExpr> channels(rows.begin() + 1, rows.end() - 1);
      shape = {shape.begin() + 1, shape.end() - 1};
      const Tensor all = ops::expand(ops::reshape(t, shape), channels);
      moved.push_back(ops::reshape(all, {1, 1, 1, product(channels)}));
    }
    return {in_rows(same_node(n, moved)[0], n.outputs[0])};
  }

  /// In NHWC where an input is; weights and small tensors are moved to match.
  std::vector<Tensor> elementwise(const FlowGraph::Node& n, const std::vector<Tensor>& in) {
    bool any = false, rows = false;
    for (const Tensor& t : in) {
      any = any || has_nhwc(t);
      rows = rows || (t.shape_expr() == n.outputs[0].shape_expr() && image_of(t).defined());
    }
    if (rows) return elementwise_of_rows(n, in);
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
