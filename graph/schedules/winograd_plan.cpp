// winograd_plan.cpp - the sizes of a Winograd convolution's parts, and the choice between it and the direct kernel.
#include "schedules/winograd_plan.h"

#include "schedules/winograd.h"

namespace hidet::graph {
using namespace ir;

namespace {

/// Tiles that a strip has at most: one pass of the micro kernel over the weights.
constexpr int64_t kStrip = 14;
/// With at most so many tiles an image, and so many column blocks, tasks are column blocks and share the transformed inputs.
constexpr int64_t kFewTiles = 64, kColumnTasks = 4;
/// Input channels whose weights are transformed at once there, fewer where they are used for few tiles.
constexpr int64_t kDepth = 64, kDepthOfFew = 32;

bool window_fits(const Task& t) {
  const auto& at = t.attrs;
  for (const char* d : {"_h", "_w"})
    if (at.at(std::string("kernel") + d) != 3 || at.at(std::string("stride") + d) != 1 ||
        at.at(std::string("dilation") + d) != 1)
      return false;
  return constant_shape(t.inputs[0], 3);
}

}  // namespace

WinogradPlan::WinogradPlan(const FusedTask& task, const CpuTargetInfo& info, int64_t m)
    : fused(task), target(info), window(task), shape(tile_shape(info)), map{m} {
  fixed = constant_shape(task.anchor.inputs[0], 1) && constant_shape(task.anchor.outputs[0], 1);
  int64_t oh = 0, ow = 0;
  if (is_const_int(window.oh.expr(), &oh) && is_const_int(window.ow.expr(), &ow))
    tiles = (oh + m - 1) / m * ((ow + m - 1) / m);
  int64_t height = 0, width = 0;
  edges = !fixed || window.top > 0 || window.left > 0 ||
          !is_const_int(window.height.expr(), &height) ||
          !is_const_int(window.width.expr(), &width) || oh % m || ow % m ||
          oh + 2 - window.top > height || ow + 2 - window.left > width;
  strip = fixed ? kStrip : shape.rows;
  blocks = (window.n + shape.columns() - 1) / shape.columns();
  panels = (window.n + kPanelColumns - 1) / kPanelColumns;
  by_columns = fixed && tiles <= kFewTiles && blocks >= kColumnTasks;
  depth =
      by_columns ? equal_blocks(window.c, tiles <= kStrip / 2 ? kDepthOfFew : kDepth) : window.c;
  // Rows of the micro kernel must not fall into one set of the L1 cache.
  distance = window.c >= 512 || window.c * 4 % 4096 == 0 ? window.c + 16 : window.c;
  product_size = (depth + 1) * kPanelColumns;
  panel_size = map.products() * product_size;
}

int64_t winograd_outputs(const FusedTask& fused, const CpuTargetInfo& target) {
  if (!target.fewer_products || !window_fits(fused.anchor)) return 0;
  const int64_t m = fused.chosen("winograd", 0);
  return m == 0 ? winograd_outputs(fused.anchor, target.has_tiles) : m == 1 ? 0 : m;
}

int64_t winograd_outputs(const Task& t, bool on_tiles) {
  if (!window_fits(t)) return 0;
  const VarRef &x = t.inputs[0], &y = t.outputs[0];
  const WinogradCosts costs(extent_of(x, 3), t.attrs.at("n"));
  // Sizes at run time: where large images win.
  if (!constant_shape(x, 1) || !constant_shape(y, 1))
    return costs.tile({4}) < 16 * costs.pixel(false) ? 4 : 0;
  const int64_t oh = extent_of(y, 1), ow = extent_of(y, 2);
  int64_t best = oh * ow * costs.pixel(on_tiles), out = 0;
  for (int64_t m : {4, 2}) {
    const int64_t tiles = (oh + m - 1) / m * ((ow + m - 1) / m);
    const int64_t cycles = tiles * costs.tile({m}) + costs.weights({m});
    if (cycles < best) best = cycles, out = m;
  }
  return out;
}

}  // namespace hidet::graph
