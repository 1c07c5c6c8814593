// winograd_plan.h - what a Winograd convolution (winograd.cpp) does with its sizes, and what it is predicted to cost. Private to
// graph/schedules.
#pragma once
#include "schedules/conv_window.h"
#include "schedules/winograd_transform.h"

namespace hidet::graph {

/// Predicted cycles of one vector, times 20: a multiplication one, about six for each value that a transform writes, four for a weight's.
struct WinogradCosts {
  int64_t c, panels, vectors;
  WinogradCosts(int64_t channels, int64_t n)
      : c(channels),
        panels((n + kPanelColumns - 1) / kPanelColumns),
        vectors((channels + kPanelColumns - 1) / kPanelColumns) {}
  int64_t tile(const WinogradTransform& t) const {
    return 23 * t.products() * (c * panels + 6 * (vectors + panels));
  }
  int64_t weights(const WinogradTransform& t) const { return 23 * t.products() * 4 * c * panels; }
  /// An output pixel of the direct kernel: the other must win by 15 %. On tile registers a product takes two thirds of the time.
  int64_t pixel(bool on_tiles) const { return (on_tiles ? 13 : 20) * 9 * c * panels; }
};

/// Sizes of an image and of its output: numbers, or values of the function that uses them.
struct WinogradSizes {
  ir::Value height, width, oh, ow;
};

/// Numbers that the functions of a convolution by F(m x m, 3 x 3) share.
struct WinogradPlan {
  WinogradPlan(const FusedTask& fused, const CpuTargetInfo& target, int64_t m);
  WinogradSizes sizes() const { return {window.height, window.width, window.oh, window.ow}; }

  const FusedTask& fused;
  const CpuTargetInfo& target;
  ConvWindow window;
  TileShape shape;
  WinogradTransform map;
  bool fixed = true;               ///< sizes of the image are known
  int64_t tiles = 0;               ///< of an image, where known
  int64_t strip = 0;               ///< most tiles of a strip
  int64_t blocks = 0, panels = 0;  ///< column blocks, panels of the weight
  bool edges = true;               ///< a tile of which some inputs lie outside the image exists
  bool by_columns = false;         ///< tasks are column blocks
  int64_t depth = 0;               ///< input channels whose weights are transformed at once
  int64_t distance = 0;            ///< elements from a tile's inputs to the next tile's
  int64_t product_size = 0, panel_size = 0;  ///< elements of transformed weights
};

}  // namespace hidet::graph
