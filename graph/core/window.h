// window.h - windows over [n, c, h, w]: sizes and coordinates, shared by convolution and pooling.
// Threading: values; thread-safe.
#pragma once
#include "core/op_common.h"

namespace hidet::graph {

struct Window {
  std::vector<int64_t> kernel, stride, pads, dilation;  ///< pads: top, left, bottom, right
  bool ceil_mode = false;
  int64_t reach(int d) const { return (kernel[d] - 1) * dilation[d] + 1; }
  /// Input coordinate of output `o` and kernel position `k` along d; may lie in the padding.
  ir::Value coordinate(int d, const ir::Value& o, const ir::Value& k) const {
    return o * index_value(stride[d]) + k * index_value(dilation[d]) - index_value(pads[d]);
  }
  void check(const std::string& op) const;
  /// The output's size along d for an input of `extent`.
  DimExpr out_size(const std::string& op, int d, const DimExpr& extent) const;
  void set_attrs(ir::Task& task) const;
  bool padded() const;
};

/// 0 <= h < height and 0 <= w < width.
ir::Value inside(const ir::Value& h, const DimExpr& height, const ir::Value& w,
                 const DimExpr& width);

}  // namespace hidet::graph
