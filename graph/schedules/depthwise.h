// depthwise.h - what the depthwise convolutions share: a group of output pixels in some channels, accumulators in registers.
// Private to graph/schedules.
#pragma once
#include "schedules/conv_window.h"

namespace hidet::graph {

/// Most pixels of a group.
constexpr int64_t kDepthwiseGroup = 7;

/// Neighbouring output pixels of a row in `width` channels. Each input column is loaded once.
struct DepthwiseGroup {
  const ConvWindow& window;  ///< `pixel`: elements from an input pixel to the next
  int64_t pixels = 0;
  int width = 0;
  ir::Value weights;  ///< pointer to tap 0 of the first channel
  /// Pointer to the first column of kernel row r, at the first channel.
  std::function<ir::Value(const ir::Value& r)> line;
  /// Where given: true where kernel row r is inside the image.
  std::function<ir::Value(const ir::Value& r)> row_inside;
  /// Where given: false for a column that is outside, never to be read.
  std::function<bool(int64_t column)> reads;
  /// Where given: true where a column is inside the image.
  std::function<ir::Value(int64_t column)> column_inside;
  /// The statement that stores pixel p; `lane` counts from the first channel.
  std::function<ir::Stmt(int64_t p, const ir::Value& lane, const ir::Value& value)> store;
};
ir::Stmt depthwise_group(const DepthwiseGroup& g);

/// body(first channel, width) for `count` channels in vectors, the rest in shorter ones.
ir::Stmt in_channel_vectors(int64_t count, int lanes,
                            const std::function<ir::Stmt(const ir::Value& c, int width)>& body);

}  // namespace hidet::graph
