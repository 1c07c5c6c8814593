// layout.h - maps a tensor's indices to an element offset.
// Threading: immutable values; thread-safe.
#pragma once
#include <hidet/ir/type.h>

namespace hidet::ir {

/// How indices become an offset in elements. Value type; default: row major.
/// swizzle: the offset of `inner` xor-ed: offset ^ (((offset >> (base + shift)) & mask) << base), which permutes
/// blocks of 2^base elements so that columns of shared memory meet different banks.
struct Layout {
  enum class Tag : uint8_t {
    row_major,
    col_major,
    strided,
    swizzled,
    composed,
    permuted,
    reshaped,
    concat
  };
  Tag tag = Tag::row_major;
  std::vector<Expr> strides;              ///< strided: one a dimension, in elements
  int64_t base = 0, bits = 0, shift = 0;  ///< swizzled: mask = 2^bits - 1
  std::shared_ptr<const Layout>
      inner;  ///< swizzled, permuted, reshaped: what is changed; composed: the
              ///< tile's layout; concat: that of the last dimensions
  std::shared_ptr<const Layout>
      outer;                  ///< composed: the layout of tiles; concat: of the first dimensions
  std::vector<int64_t> tile;  ///< composed: the tile's shape; permuted: the order; reshaped: the
                              ///< inner shape; concat: how many first dimensions

  static Layout row_major() { return {}; }
  static Layout col_major();
  static Layout strided(std::vector<Expr> strides);
  static Layout swizzled(Layout inner, int64_t bits, int64_t base, int64_t shift);
  /// Tiles of shape `tile`, each laid out by `inner`, one after the other in the order of `outer`.
  static Layout composed(Layout outer, Layout inner, std::vector<int64_t> tile);
  /// Dimension k of `inner` is dimension order[k] of the tensor.
  static Layout permuted(std::vector<int64_t> order, Layout inner);
  /// The tensor's elements, counted with the last index fastest, are those of a tensor of `shape` laid out by `inner`.
  static Layout reshaped(std::vector<int64_t> shape, Layout inner);
  /// The first `rank` dimensions are laid out by `outer`; each of their elements is a block of the rest, laid out by `inner`.
  static Layout concat(Layout outer, int64_t rank, Layout inner);

  /// Offset in elements of `indices` in a tensor of `shape`; index arithmetic in the indices' dtype.
  Expr offset(const std::vector<Expr>& shape, const std::vector<Expr>& indices) const;
  /// Elements that a tensor of `shape` spans.
  Expr span(const std::vector<Expr>& shape) const;
  std::string text() const;
  friend bool operator==(const Layout& a, const Layout& b);
};

/// What a tensor type says.
struct TensorInfo {
  DType dtype;
  std::vector<Expr> shape;  ///< integers, variables, dim symbols
  Layout layout;
  Scope scope = Scope::global;
};

}  // namespace hidet::ir
