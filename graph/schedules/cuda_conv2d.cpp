// cuda_conv2d.cpp - f32 convolutions as products (block_product.h): rows are output channels, columns the pixels of all
// images, the depth input channels times window. Each thread gathers the pixels of its own columns.
#include "schedules/block_product.h"

#include <hidet/ir/rewriter.h>

namespace hidet::graph {
using namespace ir;

namespace {

bool accepts(const Task& t) {
  if (t.name != "conv2d" || dtype_of(t.inputs[0]) != f32 || t.attrs.at("groups") != 1) return false;
  // Few channels leave most of a tile empty.
  return known_extent(t.inputs[1], 0) >= 8;
}

class Conv {
 public:
  explicit Conv(const FusedTask& fused)
      : fused_(fused),
        c_(fused.with_prologues(fused.anchor.computes[0])),
        out_(shape_of(c_.tensor)) {
    sum_ = as<Reduce>(c_.value);
    for (size_t d = 1; d < 4; d++) depth_ *= known_extent(weight(), d);
    image_ = size_of({out_[2], out_[3]});
    int64_t n = 0;
    whole_vectors_ = is_const_int(image_, &n) && n > 0 && n % 4 == 0;
  }

  Module run() {
    const bool point = is_point();
    BlockProduct p;
    p.rows = Value(out_[1]);
    p.columns = point ? Value(image_) : Value(size_of({out_[0], image_}));
    p.depth = number(depth_);
    if (point) p.batch = {out_[0]};
    p.a_vectors = depth_ > 0 && depth_ % 4 == 0;
    p.b_vectors = point && whole_vectors_;
    p.store_vectors = whole_vectors_;
    p.a = [this](std::vector<Stmt>& body, const std::vector<Value>&, const Value& i) {
      const VarRef w = view(body, weight(), {shape_of(weight())[0], index(depth_)});
      return [w, i](const Value& k) { return make_element(w, {i.expr(), k.expr()}); };
    };
    p.b = [this, point](std::vector<Stmt>& body, const std::vector<Value>& z, const Value& j) {
      return point ? plain_pixels(body, z[0], j) : window_pixels(body, j);
    };
    const VarRef axis = make_var("j", Type(i64));
    p.store = [&](std::vector<Stmt>& body, const std::vector<Value>& z, const Value& i,
                  const Value& base, const std::vector<Expr>& values) {
      std::vector<Value> at = point ? z : std::vector<Value>{};
      const Value j{Expr(axis)};
      if (!point) at.push_back(j / Value(image_));
      at.push_back(i);
      at.push_back(point ? j / Value(out_[3]) : j / Value(out_[3]) % Value(out_[2]));
      at.push_back(j % Value(out_[3]));
      store_lanes(fused_, c_, at, axis, base.expr(), values, body);
    };
    return block_product(fused_, p);
  }

 private:
  const VarRef& input() const { return fused_.anchor.inputs[0]; }
  const VarRef& weight() const { return fused_.anchor.inputs[1]; }

  /// A window of one pixel on every pixel: no gathering.
  bool is_point() const {
    const auto& at = fused_.anchor.attrs;
    for (const char* one : {"kernel_h", "kernel_w", "stride_h", "stride_w"})
      if (at.at(one) != 1) return false;
    for (const char* none : {"pad_t", "pad_l", "pad_b", "pad_r"})
      if (at.at(none) != 0) return false;
    return !fused_.prologues[0];
  }

  static VarRef view(std::vector<Stmt>& body, const VarRef& tensor, std::vector<Expr> shape) {
    const VarRef v = tensor_var(tensor->name, dtype_of(tensor), std::move(shape));
    const std::vector<Expr> first(shape_of(tensor).size(), index(0));
    body.push_back(make_stmt<DeclTensor>({}, v, make_address(tensor, first)));
    return v;
  }

  BlockProduct::Fetch plain_pixels(std::vector<Stmt>& body, const Value& n, const Value& j) const {
    const VarRef x = view(body, input(), {out_[0], shape_of(input())[1], image_});
    return [x, n, j](const Value& k) { return make_element(x, {n.expr(), k.expr(), j.expr()}); };
  }

  BlockProduct::Fetch window_pixels(std::vector<Stmt>& body, const Value& j) const {
    Substitution map;
    map.emplace(c_.axes[0].get(), declare(body, "n", j / Value(image_)).expr());
    map.emplace(c_.axes[2].get(), declare(body, "h", j / Value(out_[3]) % Value(out_[2])).expr());
    map.emplace(c_.axes[3].get(), declare(body, "w", j % Value(out_[3])).expr());
    const Expr pixel = substitute(as<Binary>(sum_->value)->a, map);
    return [this, pixel](const Value& k) {
      const auto& at = fused_.anchor.attrs;
      const Value kernel_h = small(at.at("kernel_h")), kernel_w = small(at.at("kernel_w"));
      const Value flat = cast(k, Type(i32));
      const Value parts[] = {flat / (kernel_h * kernel_w), flat / kernel_w % kernel_h,
                             flat % kernel_w};
      Substitution of_k;
      for (size_t d = 0; d < 3; d++)
        of_k.emplace(sum_->axes[d].get(), make_cast(parts[d].expr(), sum_->axes[d]->type));
      return substitute(pixel, of_k);
    };
  }

  const FusedTask& fused_;
  Compute c_;
  const std::vector<Expr>& out_;
  const Reduce* sum_;
  int64_t depth_ = 1;  ///< input channels times window
  Expr image_;         ///< pixels of an output image
  bool whole_vectors_ = false;
};

}  // namespace

CudaSchedule cuda_conv2d_schedule() {
  return {{"conv2d", accepts, true, true, false},
          [](const FusedTask& f) { return Conv(f).run(); },
          block_product_space()};
}

}  // namespace hidet::graph
