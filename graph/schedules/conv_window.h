// conv_window.h - what the convolution templates share: the window over an NHWC image, the copy of the input pixels that a block of
// outputs reads, and the taps of the micro kernel. Sizes of the image are values: numbers, or known at run time only.
// Private to graph/schedules.
#pragma once
#include "schedules/tile.h"

namespace hidet::graph {

/// Weights up to this size stay in the L2 cache while pixels pass.
constexpr int64_t kSmallWeight = 400 * 1024;
/// Pixels of a block with small and with large weights; tasks that an image should have, at least.
constexpr int64_t kPixels = 112, kPixelsLarge = 196, kTasks = 16;

/// The register tile for pixels of `c` channels read in place. Three panels and nine rows load least a multiplication. They are taken where
/// rows a multiple of a page apart share one set of the L1 cache, which holds 12 lines, and for `flat_n` columns of flat pixels where these
/// are a multiple of three panels; 0: pixels are not flat.
TileShape shape_in_place(const CpuTargetInfo& target, int64_t c, int64_t flat_n = 0);

struct ConvWindow {
  DType dtype;           ///< of image and weight
  int64_t c = 0, n = 0;  ///< input and output channels
  int64_t r = 1, s = 1, sh = 1, sw = 1, dh = 1, dw = 1, top = 0, left = 0, bottom = 0, right = 0;
  ir::Value height, width, oh, ow;
  /// Elements of the copy (or of the image, where it is read in place) from a pixel and from a row to the next.
  int64_t pixel = 0;
  ir::Value row;

  explicit ConvWindow(const FusedTask& fused);
  bool is_point() const { return r == 1 && s == 1; }
  /// Sets `pixel` and `row` for a copy of what is read, in f32.
  void set_copied();
  /// Bytes of the packed weight with column blocks of `columns`.
  int64_t weight_bytes(int64_t columns) const;
  /// Sets the loops over taps and the run of K.
  void set_taps(TileKernel& t) const;
  /// Points of a strided 1 x 1: `count` flat output pixels from `first` on, one behind the other; `most`: their largest number.
  ir::Value gather(std::vector<ir::Stmt>& in, const ir::Value& source, const ir::Value& first,
                   const ir::Value& count, const ir::Value& most, int lanes) const;
  /// The input rows that `count` output rows from `first` on read, zeros where the kernel leaves the image.
  ir::Value strip(std::vector<ir::Stmt>& in, const ir::Value& source, const ir::Value& first,
                  const ir::Value& count, const ir::Value& most, int lanes) const;
};

/// Reads of one epilogue that are as large as the output (a residual), fetched ahead of their use: the statements for `indices`.
std::vector<ir::Stmt> prefetch_residuals(const FusedTask& fused,
                                         const std::vector<ir::Value>& indices);

/// True where the output's memory order is along the columns of an image, not along channels (NCHW after the epilogue).
bool stores_along_pixels(const FusedTask& fused);
/// The convolution whose blocks and tiles are counted at run time (cpu_conv2d_any.cpp).
ir::Module conv_of_any_size(const FusedTask& fused, const CpuTargetInfo& target);

}  // namespace hidet::graph
