// attention.cpp - softmax(q k * scale + mask) v, as exporters write it, becomes one operator, whose kernel keeps no scores
// in memory. The scale is multiplied into q, and the transpose of k goes, or is undone by another. In graphs of f16 and bf16 the softmax may be in f32, between casts. CPU.
#include <hidet/graph/ops.h>

#include <numeric>
#include <optional>
#include <string>

#include "passes/rebuild.h"

namespace hidet::graph {
namespace {

/// The kernel holds a tile of q and of the result of at most this width, and pays from this many rows on.
constexpr int64_t kMostWidth = 256, kLeastRows = 8;

bool is_scalar(const Tensor& t) { return product(t.shape_expr()).is_const(1); }

/// The parts of one attention, as values of the old graph.
struct Parts {
  Tensor q, k, v;
  Tensor mask, scale;   ///< undefined: none
  bool divide = false;  ///< the scale divides
};

/// The transpose of the matrices of `columns`. A transpose that was there before and this one become one that often is none (clean_moves), so
/// it goes past a factor and a change of the batch dims.
Tensor rows_of(const Tensor& columns) {
  std::vector<DimExpr> shape = columns.shape_expr();
  const auto op = producer_of(columns);
  if (op && op->def->name == "mul")
    for (size_t k = 0; k < 2; k++)
      if (is_scalar(op->inputs[1 - k]) && op->inputs[k].shape_expr() == shape)
        return ops::mul(rows_of(op->inputs[k]), op->inputs[1 - k]);
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 2], axes.back());
  std::swap(shape[shape.size() - 2], shape.back());
  if (op && op->def->name == "reshape" && op->inputs[0].rank() >= 2) {
    const std::vector<DimExpr> from = op->inputs[0].shape_expr();
    if (from.back() == shape[shape.size() - 2] && from[from.size() - 2] == shape.back())
      return ops::reshape(rows_of(op->inputs[0]), shape);
  }
  return ops::transpose(columns, axes);
}

/// The batch dims of every part are the output's, or 1.
bool batch_fits(const Tensor& t, const std::vector<DimExpr>& y) {
  const std::vector<DimExpr> s = t.shape_expr();
  for (size_t d = 0; d + 2 < s.size(); d++)
    if (!s[d].is_const(1) && !(s[d] == y[d + y.size() - s.size()])) return false;
  return true;
}

bool shapes_fit(const Parts& p, const Tensor& y) {
  const std::vector<DimExpr> q = p.q.shape_expr(), v = p.v.shape_expr(), out = y.shape_expr();
  const DimExpr &rows = q[q.size() - 2], &depth = q.back(), &width = v.back();
  const auto narrow = [](const DimExpr& n) {
    return n.is_const() && n.value() >= 1 && n.value() <= kMostWidth;
  };
  const DType t = p.q.dtype();
  if (p.mask.defined() && p.mask.dtype() != t) return false;
  return (t == f32 || t == f16 || t == bf16) && t == p.v.dtype() && narrow(depth) &&
         narrow(width) && !(rows.is_const() && rows.value() < kLeastRows) && batch_fits(p.q, out) &&
         batch_fits(p.k, out) && batch_fits(p.v, out);
}

/// Finds attention behind its last product. With a graph, every value inside must have one reader there.
class Matcher {
 public:
  explicit Matcher(const FlowGraph* readers) : readers_(readers) {}

  std::optional<Parts> match(const Tensor& shares, const Tensor& v) const {
    const auto softmax = made_by(before_cast(shares), "softmax");
    if (!softmax || v.rank() < 2) return {};
    const Tensor x = before_cast(softmax->inputs[0]);
    const int64_t axis = softmax->attrs.integer("axis");
    if (axis != -1 && axis != x.rank() - 1) return {};
    if (std::optional<Parts> p = scores(x, v)) return p;
    const auto add = made_by(x, "add");
    for (size_t k = 0; add && k < 2; k++)
      if (std::optional<Parts> p = scores(add->inputs[k], v);
          p && add->inputs[k].shape_expr() == x.shape_expr()) {
        p->mask = add->inputs[1 - k];
        return p;
      }
    return {};
  }

 private:
  /// What a cast between f32 and a shorter float made `t` of; t where none did.
  Tensor before_cast(const Tensor& t) const {
    const auto cast = made_by(t, "cast");
    const auto is_float = [](DType d) { return d == f32 || d == f16 || d == bf16; };
    return cast && is_float(t.dtype()) && is_float(cast->inputs[0].dtype()) ? cast->inputs[0] : t;
  }

  std::shared_ptr<const Operator> made_by(const Tensor& t, const char* name) const {
    const auto op = producer_of(t);
    const bool fits = op && op->def->name == name && (!readers_ || uses_of(*readers_, t) == 1);
    return fits ? op : nullptr;
  }

  /// `t` as a product, perhaps scaled.
  std::optional<Parts> scores(const Tensor& t, const Tensor& v) const {
    Parts p;
    p.v = v;
    Tensor product = t;
    for (const char* name : {"mul", "div"})
      if (const auto op = made_by(t, name)) {
        const size_t scale = is_scalar(op->inputs[1]) ? 1 : 0;
        p.divide = std::string(name) == "div";
        const Tensor& factor = op->inputs[scale];
        if (!is_scalar(factor) || factor.rank() > op->inputs[1 - scale].rank() ||
            (p.divide && scale == 0))
          return {};
        p.scale = factor;
        product = op->inputs[1 - scale];
      }
    const auto op = made_by(product, "matmul");
    if (!op || op->inputs[0].rank() < 2 || op->inputs[1].rank() < 2) return {};
    p.q = op->inputs[0];
    p.k = op->inputs[1];
    return p;
  }

  const FlowGraph* readers_;
};

}  // namespace

FlowGraph fuse_attention(const FlowGraph& g) {
  return rebuild(
      g, [&](const FlowGraph::Node& n, const std::vector<Tensor>& in) -> std::vector<Tensor> {
        if (n.op->def->name != "matmul") return {};
        const std::optional<Parts> old = Matcher(&g).match(n.op->inputs[0], n.op->inputs[1]);
        if (!old || !shapes_fit(*old, n.outputs[0])) return {};
        const Parts p = *Matcher(nullptr).match(in[0], in[1]);  // the same operators, on new inputs
        Tensor q = p.q;
        if (p.scale.defined()) q = p.divide ? ops::div(q, p.scale) : ops::mul(q, p.scale);
        std::vector<Tensor> inputs{q, rows_of(p.k), p.v};
        if (p.mask.defined()) inputs.push_back(p.mask);
        return apply("attention", inputs, {}, n.op->name);
      });
}

}  // namespace hidet::graph
