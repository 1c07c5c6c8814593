// ops_resize.cpp - ONNX Resize and Upsample, axis by axis.
// Threading: thread-safe.
#include <hidet/graph/ops.h>

#include <array>
#include <cmath>
#include <numeric>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {
namespace {

using Outputs = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

/// floor(size * scale); a symbolic size needs a scale that is a fraction of small numbers.
DimExpr scaled(const NodeCall& call, const DimExpr& size, double scale) {
  if (size.is_const())
    return static_cast<int64_t>(std::floor(static_cast<double>(size.value()) * scale));
  for (int64_t below = 1; below <= 64; below++) {
    const double above = scale * static_cast<double>(below);
    if (std::fabs(above - std::round(above)) < 1e-6 * above)
      return floordiv(size * static_cast<int64_t>(std::round(above)), below);
  }
  call.unsupported("scales the symbolic size ", size, " by ", scale);
}

/// The numbers of constant input i; none where it is absent or empty.
std::vector<double> numbers(const NodeCall& call, size_t i, const char* what) {
  if (!call.has_input(i)) return {};
  const Tensor& tensor = call.input(i);
  if (tensor.is_symbolic()) call.unsupported(what, " is computed at run time");
  return tensor.to_doubles();
}

Ints resized_axes(const NodeCall& call) {
  Ints axes = call.attr_ints("axes");
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(call.rank(0)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& a : axes) a = call.axis(a, call.rank(0));
  return axes;
}

Tensor by_scales(const NodeCall& call, Tensor x, const std::vector<double>& scales,
                 const Ints& axes, const std::vector<ops::Resize>& how) {
  if (scales.size() != axes.size())
    call.fail("has ", scales.size(), " scales for ", axes.size(), " axes");
  for (size_t i = 0; i < axes.size(); i++) {
    if (!(scales[i] > 0)) call.fail("has the scale ", scales[i]);
    if (scales[i] == 1 && how[i].coordinates != "tf_crop_and_resize") continue;
    ops::Resize one = how[i];
    one.scale = scales[i];
    x = ops::resize(x, axes[i],
                    scaled(call, x.shape_expr()[static_cast<size_t>(axes[i])], scales[i]), one);
  }
  return x;
}

Tensor by_sizes(const NodeCall& call, Tensor x, const Ints& axes,
                const std::vector<ops::Resize>& how) {
  std::vector<DimExpr> sizes = call.dims_input(3, "sizes");
  if (sizes.size() != axes.size())
    call.fail("has ", sizes.size(), " sizes for ", axes.size(), " axes");
  const auto from = call.shape(0);
  const std::string policy = call.attr_string("keep_aspect_ratio_policy", "stretch");
  double kept = 0;
  for (size_t i = 0; policy != "stretch" && i < axes.size(); i++) {
    const DimExpr& old = from[static_cast<size_t>(axes[i])];
    if (!old.is_const() || !sizes[i].is_const())
      call.unsupported("keep_aspect_ratio_policy '", policy, "' with symbolic sizes");
    const double scale = static_cast<double>(sizes[i].value()) / static_cast<double>(old.value());
    kept = i == 0                   ? scale
           : policy == "not_larger" ? std::fmin(kept, scale)
                                    : std::fmax(kept, scale);
  }
  for (size_t i = 0; i < axes.size(); i++) {
    const DimExpr& old = from[static_cast<size_t>(axes[i])];
    ops::Resize one = how[i];
    one.scale = kept;
    if (kept > 0)
      sizes[i] = static_cast<int64_t>(std::floor(static_cast<double>(old.value()) * kept + 0.5));
    if (sizes[i] == old && one.coordinates != "tf_crop_and_resize") continue;
    x = ops::resize(x, axes[i], sizes[i], one);
  }
  return x;
}

// The opset 10 form has scales as input 1 and no attributes but the mode.
Outputs resize_10(const NodeCall& call) {
  const ops::Resize how{.mode = call.attr_string("mode", "nearest"),
                        .coordinates = "asymmetric",
                        .rounding = "floor"};
  std::vector<double> scales;
  for (float s : call.attr_floats("scales")) scales.push_back(static_cast<double>(s));
  if (scales.empty()) scales = numbers(call, 1, "scales");
  const Ints axes = resized_axes(call);
  return {by_scales(call, call.input(0), scales, axes, std::vector(axes.size(), how))};
}

Outputs resize(const NodeCall& call) {
  if (call.attr_int("antialias", 0) != 0) call.unsupported("antialias is set");
  const Ints axes = resized_axes(call);
  const ops::Resize common{
      .mode = call.attr_string("mode", "nearest"),
      .coordinates = call.attr_string("coordinate_transformation_mode", "half_pixel"),
      .rounding = call.attr_string("nearest_mode", "round_prefer_floor"),
      .cubic = call.attr_float("cubic_coeff_a", -0.75),
      .exclude_outside = call.attr_int("exclude_outside", 0) != 0,
      .outside = call.attr_float("extrapolation_value", 0)};
  std::vector<ops::Resize> how(axes.size(), common);
  if (common.coordinates == "tf_crop_and_resize") {
    const std::vector<double> region = numbers(call, 1, "roi");
    if (region.size() != 2 * axes.size())
      call.fail("roi has ", region.size(), " values for ", axes.size(), " axes");
    for (size_t i = 0; i < axes.size(); i++)
      how[i].begin = region[i], how[i].end = region[axes.size() + i];
  }
  const std::vector<double> scales = numbers(call, 2, "scales");
  if (!scales.empty()) return {by_scales(call, call.input(0), scales, axes, how)};
  if (!call.has_input(3)) call.fail("has neither scales nor sizes");
  return {by_sizes(call, call.input(0), axes, how)};
}

const std::array kRows = std::to_array<Converter>({
    {"Resize", 10, 10, resize_10},
    {"Resize", 11, kAnyOpset, resize},
    {"Upsample", 7, 10, resize_10},
});

}  // namespace

std::span<const Converter> resize_converters() { return kRows; }

}  // namespace hidet::graph::onnx
