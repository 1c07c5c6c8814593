// window.cpp - windows over [n, c, h, w] (see window.h).
#include "core/window.h"

#include <algorithm>

namespace hidet::graph {

void Window::check(const std::string& op) const {
  const auto all = [](const std::vector<int64_t>& v, size_t n, int64_t least) {
    return v.size() == n && std::all_of(v.begin(), v.end(), [&](int64_t x) { return x >= least; });
  };
  HIDET_OP_REQUIRE(all(kernel, 2, 1), op, "the kernel ", shape_text(kernel),
                   " is not two sizes of 1 or more");
  HIDET_OP_REQUIRE(all(stride, 2, 1), op, "the stride ", shape_text(stride),
                   " is not two numbers of 1 or more");
  HIDET_OP_REQUIRE(all(dilation, 2, 1), op, "the dilation ", shape_text(dilation),
                   " is not two numbers of 1 or more");
  HIDET_OP_REQUIRE(all(pads, 4, 0), op, "the pads ", shape_text(pads),
                   " are not four numbers of 0 or more");
}

DimExpr Window::out_size(const std::string& op, int d, const DimExpr& extent) const {
  const int64_t around = pads[d] + pads[d + 2];
  const DimExpr room = extent + around - reach(d);
  HIDET_OP_REQUIRE(!room.is_const() || room.value() >= 0, op, "a window of ", reach(d),
                   " does not fit ", extent, " plus ", around, " of padding");
  if (!ceil_mode) return floordiv(room, stride[d]) + 1;
  const DimExpr size = ceildiv(room, stride[d]) + 1;
  // The last window starts inside the input or its leading padding.
  return min(size, floordiv(extent + pads[d] - 1, stride[d]) + 1);
}

bool Window::padded() const {
  return ceil_mode || std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
}

void Window::set_attrs(ir::Task& task) const {
  task.attrs.insert({{"kernel_h", kernel[0]},
                     {"kernel_w", kernel[1]},
                     {"stride_h", stride[0]},
                     {"stride_w", stride[1]},
                     {"pad_t", pads[0]},
                     {"pad_l", pads[1]},
                     {"pad_b", pads[2]},
                     {"pad_r", pads[3]},
                     {"dilation_h", dilation[0]},
                     {"dilation_w", dilation[1]}});
}

ir::Value inside(const ir::Value& h, const DimExpr& height, const ir::Value& w,
                 const DimExpr& width) {
  const ir::Value zero = index_value(0);
  return (h >= zero && h < index_value(height)) && (w >= zero && w < index_value(width));
}

}  // namespace hidet::graph
