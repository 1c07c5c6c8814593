// resize.cpp - resampling along one axis: nearest, linear or cubic, with the coordinate rules of ONNX. Several axes
// are one operator each, which fuse. Coordinates are computed in f32 (f64 for f64 data); halves blend in f32.
#include <hidet/graph/ops.h>

#include <cmath>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
using ir::Value;
constexpr const char* kName = "resize";

/// One output place along the axis, in the coordinate's dtype.
struct Place {
  Value o;            ///< the output index
  Value scale;        ///< output size / input size, or as given
  Value in, out;      ///< sizes
  double begin, end;  ///< region of the input, as parts of it
  bool given;         ///< the scale is given
  Value one() const { return constant(1, o.dtype()); }
  Value num(double v) const { return constant(v, o.dtype()); }
  Value centred() const { return (o + num(0.5)) / scale; }
};

Value half_pixel(const Place& p) { return p.centred() - p.num(0.5); }
/// As half_pixel, around the middle of a size that a given scale does not hit.
Value half_pixel_symmetric(const Place& p) {
  const Value exact = p.scale * p.in;
  return p.in / p.num(2) * (p.one() - p.out / exact) + half_pixel(p);
}
Value pytorch_half_pixel(const Place& p) {
  return ir::select(p.out > p.one(), half_pixel(p), p.num(0));
}
Value align_corners(const Place& p) {
  const Value length = p.given ? p.scale * p.in : p.out;
  return ir::select(p.out > p.one(), p.o * (p.in - p.one()) / (length - p.one()), p.num(0));
}
Value asymmetric(const Place& p) { return p.o / p.scale; }
Value tf_half_pixel_for_nn(const Place& p) { return p.centred(); }
Value tf_crop_and_resize(const Place& p) {
  const Value last = p.in - p.one(), reach = p.num(p.end - p.begin) * last;
  return ir::select(p.out > p.one(), p.num(p.begin) * last + p.o * reach / (p.out - p.one()),
                    p.num(0.5 * (p.begin + p.end)) * last);
}

struct Rule {
  const char* name;
  Value (*coordinate)(const Place&);
};
constexpr Rule kRules[] = {
    {"half_pixel", half_pixel},
    {"half_pixel_symmetric", half_pixel_symmetric},
    {"pytorch_half_pixel", pytorch_half_pixel},
    {"align_corners", align_corners},
    {"asymmetric", asymmetric},
    {"tf_half_pixel_for_nn", tf_half_pixel_for_nn},
    {"tf_crop_and_resize", tf_crop_and_resize},
};
struct Rounding {
  const char* name;
  Value (*round)(const Value&);
};
constexpr Rounding kRoundings[] = {
    {"round_prefer_floor",
     [](const Value& x) { return math("ceil", x - constant(0.5, x.dtype())); }},
    {"round_prefer_ceil",
     [](const Value& x) { return math("floor", x + constant(0.5, x.dtype())); }},
    {"floor", [](const Value& x) { return math("floor", x); }},
    {"ceil", [](const Value& x) { return math("ceil", x); }},
};

template <class T, size_t N>
const T* named(const T (&rows)[N], const std::string& name) {
  for (const T& row : rows)
    if (name == row.name) return &row;
  return nullptr;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  op_inputs(kName, call, 1);
  const TensorSpec& x = call.inputs[0];
  const Attrs& a = call.attrs;
  const auto axis =
      static_cast<size_t>(op_axis(kName, a.integer("axis"), static_cast<int64_t>(x.shape.size())));
  const std::string& mode = a.text("mode");
  HIDET_OP_REQUIRE(mode == "nearest" || mode == "linear" || mode == "cubic", kName, "the mode is '",
                   mode, "', not nearest, linear or cubic");
  HIDET_OP_REQUIRE(mode == "nearest" || x.dtype.is_float(), kName, mode, " needs floats, not ",
                   x.dtype, shape_text(x.shape));
  HIDET_OP_REQUIRE(named(kRules, a.text("coordinates")), kName, "there are no coordinates '",
                   a.text("coordinates"), "'");
  HIDET_OP_REQUIRE(named(kRoundings, a.text("rounding")), kName, "there is no rounding '",
                   a.text("rounding"), "'");
  HIDET_OP_REQUIRE(a.dims("size").size() == 1 && a.number("scale") >= 0, kName,
                   "takes one size, and a scale of 0 or more");
  TensorSpec out = x;
  out.shape[axis] = a.dims("size")[0];
  HIDET_OP_REQUIRE(!x.shape[axis].is_const(0) || out.shape[axis].is_const(0), kName,
                   "there is nothing along axis ", axis, " of ", shape_text(x.shape));
  return {out};
}

/// What is read along the axis, and how it is blended.
class Sampler {
 public:
  Sampler(const OpCall& call, const ir::VarRef& x, size_t axis)
      : attrs_(call.attrs),
        x_(x),
        axis_(axis),
        spec_(call.inputs[0]),
        extent_(spec_.shape[axis]),
        wide_(working_dtype(spec_.dtype)),
        real_(spec_.dtype == f64 ? f64 : f32) {}

  Value value(const Values& at) const {
    const std::string& mode = attrs_.text("mode");
    const auto whole = static_cast<int64_t>(attrs_.number("scale"));
    const bool repeats = mode == "nearest" && attrs_.text("coordinates") == "asymmetric" &&
                         attrs_.text("rounding") == "floor" && whole >= 1 &&
                         static_cast<double>(whole) == attrs_.number("scale");
    if (repeats) return read(at, at[axis_] / index_value(whole));
    const Place place = place_of(at[axis_]);
    const Value x = named(kRules, attrs_.text("coordinates"))->coordinate(place);
    const Value sampled = mode == "nearest"  ? read(at, index(nearest(x)))
                          : mode == "linear" ? narrow(linear(at, x))
                                             : narrow(cubic(at, x));
    if (attrs_.text("coordinates") != "tf_crop_and_resize") return sampled;
    const Value outside =
        ir::cast(ir::Value(constant(attrs_.number("outside"), f64)), ir::Type(spec_.dtype));
    return ir::select(x < place.num(0) || x > place.in - place.one(), outside, sampled);
  }

 private:
  Place place_of(const Value& o) const {
    const auto real = [&](const Value& v) { return ir::cast(v, ir::Type(real_)); };
    const Value in = real(index_value(extent_)), out = real(index_value(attrs_.dims("size")[0]));
    const double scale = attrs_.number("scale");
    return {real(o),
            scale > 0 ? constant(scale, real_) : out / in,
            in,
            out,
            attrs_.number("begin"),
            attrs_.number("end"),
            scale > 0};
  }
  Value nearest(const Value& x) const {
    return named(kRoundings, attrs_.text("rounding"))->round(x);
  }
  Value index(const Value& x) const { return ir::cast(x, ir::Type(i64)); }
  /// x at place `i` of the axis, at its nearest end where that is outside.
  Value read(const Values& at, const Value& i) const {
    Values from = at;
    const Value last = index_value(extent_) - index_value(1);
    from[axis_] = ir::max(ir::min(i, last), index_value(0));
    const Value v = element(x_, from);
    if (extent_.is_const()) return v;
    return ir::select(last >= index_value(0), v, constant(0, spec_.dtype));
  }
  Value tap(const Values& at, const Value& i) const {
    return ir::cast(read(at, i), ir::Type(wide_));
  }
  Value weight(const Value& v) const { return ir::cast(v, ir::Type(wide_)); }
  Value narrow(const Value& v) const { return ir::cast(v, ir::Type(spec_.dtype)); }

  Value linear(const Values& at, const Value& x) const {
    const Value low = math("floor", x), part = weight(x - low), i = index(low);
    return tap(at, i) * (constant(1, wide_) - part) + tap(at, i + index_value(1)) * part;
  }
  /// Keys' kernel at distance d, |d| <= 2; `inner`: |d| <= 1.
  Value keys(const Value& d, bool inner) const {
    const double a = attrs_.number("cubic");
    const auto num = [&](double v) { return constant(v, d.dtype()); };
    if (inner) return (num(a + 2) * d - num(a + 3)) * d * d + num(1);
    return ((num(a) * d - num(5 * a)) * d + num(8 * a)) * d - num(4 * a);
  }
  Value cubic(const Values& at, const Value& x) const {
    const Value low = math("floor", x), part = x - low, i = index(low);
    const bool exclude = attrs_.integer("exclude_outside") != 0;
    const Value one = constant(1, real_), two = constant(2, real_), none = constant(0, real_);
    const Value distance[4] = {part + one, part, one - part, two - part};
    Value sum = constant(0, wide_), total = none;
    for (int k = 0; k < 4; k++) {
      const Value place = i + index_value(k - 1);
      Value w = keys(distance[k], k == 1 || k == 2);
      if (exclude) w = ir::select(place >= index_value(0) && place < index_value(extent_), w, none);
      total = total + w;
      sum = sum + tap(at, place) * weight(w);
    }
    return exclude ? sum / weight(total) : sum;
  }

  const Attrs& attrs_;
  ir::VarRef x_;
  size_t axis_;
  TensorSpec spec_;
  DimExpr extent_;
  DType wide_, real_;
};

ir::Task compute(const OpCall& call) {
  const TensorSpec out = infer(call)[0];
  const auto axis = static_cast<size_t>(
      op_axis(kName, call.attrs.integer("axis"), static_cast<int64_t>(out.shape.size())));
  ir::Task task = new_task(kName, call);
  const Sampler sampler(call, task.inputs[0], axis);
  task.outputs = {add_compute(task, "y", out, [&](const Values& at) { return sampler.value(at); })};
  return task;
}

Attrs attrs_of(const ops::Resize& r, int64_t axis, const DimExpr& size) {
  return {{"axis", axis},           {"size", Dims{size}},
          {"mode", r.mode},         {"coordinates", r.coordinates},
          {"rounding", r.rounding}, {"scale", r.scale},
          {"cubic", r.cubic},       {"exclude_outside", int64_t{r.exclude_outside}},
          {"begin", r.begin},       {"end", r.end},
          {"outside", r.outside}};
}

std::vector<OpSample> samples() {
  std::vector<OpSample> out;
  for (const Rule& rule : kRules)
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      ops::Resize r{.mode = mode, .coordinates = rule.name};
      out.push_back({{{f32, {2, 5}}}, attrs_of(r, 1, 8)});
      r.exclude_outside = true;
      out.push_back({{{f64, {7, 2}}}, attrs_of(r, 0, 3)});
    }
  for (const Rounding& rounding : kRoundings)
    out.push_back({{{i32, {3, 4}}},
                   attrs_of({.mode = "nearest",
                             .coordinates = "asymmetric",
                             .rounding = rounding.name,
                             .scale = 2},
                            1, 8)});
  out.push_back({{{f16, {2, 5}}}, attrs_of({.mode = "linear"}, 1, 7)});
  out.push_back({{{bf16, {2, 5}}}, attrs_of({.mode = "cubic"}, 1, 7)});
  out.push_back({{{f32, {2, "n", 3}}}, attrs_of({.mode = "linear"}, 1, 6)});
  out.push_back({{{f32, {"n", 4, 3}}}, attrs_of({.mode = "nearest"}, -2, 3)});
  out.push_back({{{f32, {0, 4}}}, attrs_of({.mode = "linear"}, 1, 2)});
  out.push_back(
      {{{f32, {3, 1}}}, attrs_of({.mode = "linear", .coordinates = "align_corners"}, 1, 1)});
  out.push_back(
      {{{f32, {3, 4}}},
       attrs_of({.coordinates = "tf_crop_and_resize", .begin = 0.2, .end = 1.4, .outside = 7}, 1,
                5)});
  return out;
}
}  // namespace

void register_resize(OpRegistry& ops) {
  ops.add({.name = kName,
           .doc = "resampling along one axis: nearest, linear or cubic",
           .infer = infer,
           .compute = compute,
           .samples = samples()});
}

}  // namespace hidet::graph

namespace hidet::ops {
Tensor resize(const Tensor& x, int64_t axis, const DimExpr& size, const Resize& how) {
  return graph::apply("resize", {x}, graph::attrs_of(how, axis, size))[0];
}
}  // namespace hidet::ops
