// types.h - types of arguments, variables and tensors; layouts; lists of types.
// Threading: values; thread-safe.
#pragma once
#include <hidet/lang/handle.h>

namespace hidet::lang {

/// A pointer to scalars, vectors or pointers.
inline Type ptr(const Type& pointee) { return Type::pointer(pointee); }
/// An opaque pointer.
inline Type void_ptr() { return Type::pointer(Type()); }
/// `lanes` values of one dtype.
inline Type vec(DType dtype, int lanes) { return Type::vector(dtype, lanes); }
/// A tensor behind a pointer. Extents are C++ integers, DimExprs, arguments or lets.
Type tensor(DType dtype, const std::vector<Value>& shape, const Layout& layout = {});

/// A vector type by name: f32x8 is vec(f32, 8).
struct VectorName {
  DType dtype;
  int lanes;
  operator Type() const { return Type::vector(dtype, lanes); }
};
inline constexpr VectorName f32x2{f32, 2}, f32x4{f32, 4}, f32x8{f32, 8}, f32x16{f32, 16};
inline constexpr VectorName f64x2{f64, 2}, f64x4{f64, 4}, f64x8{f64, 8};
inline constexpr VectorName f16x2{f16, 2}, f16x4{f16, 4}, f16x8{f16, 8}, f16x16{f16, 16},
    f16x32{f16, 32};
inline constexpr VectorName bf16x2{bf16, 2}, bf16x4{bf16, 4}, bf16x8{bf16, 8}, bf16x16{bf16, 16},
    bf16x32{bf16, 32};
inline constexpr VectorName i32x2{i32, 2}, i32x4{i32, 4}, i32x8{i32, 8}, i32x16{i32, 16};
inline constexpr VectorName u32x4{u32, 4}, i64x2{i64, 2}, i64x4{i64, 4}, i64x8{i64, 8};
inline constexpr VectorName i8x16{i8, 16}, i8x32{i8, 32}, i8x64{i8, 64}, u8x16{u8, 16},
    u8x32{u8, 32}, u8x64{u8, 64};

/// Layouts.
inline Layout row_major() { return Layout::row_major(); }
inline Layout col_major() { return Layout::col_major(); }
Layout strided(const std::vector<Value>& strides);
/// offset ^ (((offset >> (base + shift)) & (2^bits - 1)) << base), applied to `inner`'s offset.
inline Layout swizzle(int64_t bits, int64_t base, int64_t shift, Layout inner = {}) {
  return Layout::swizzled(std::move(inner), bits, base, shift);
}
/// Tiles of shape `tile`, each laid out by `inner`, one after the other in the order of `outer`.
inline Layout composition(Layout outer, Layout inner, std::vector<int64_t> tile) {
  return Layout::composed(std::move(outer), std::move(inner), std::move(tile));
}
/// Dimension k of `inner` is dimension order[k]: permute({1, 0}) is the column major of a matrix.
inline Layout permute(std::vector<int64_t> order, Layout inner = {}) {
  return Layout::permuted(std::move(order), std::move(inner));
}
/// The elements, counted with the last index fastest, are those of a tensor of `shape` laid out by `inner`.
inline Layout reshape(std::vector<int64_t> shape, Layout inner = {}) {
  return Layout::reshaped(std::move(shape), std::move(inner));
}
/// The first `rank` dimensions by `outer`, the rest, a block for each of their elements, by `inner`.
inline Layout concat(Layout outer, int64_t rank, Layout inner) {
  return Layout::concat(std::move(outer), rank, std::move(inner));
}

namespace meta {
/// A list of types, for Function::args: meta::types({i32, boolean, ptr(f32)}).
struct Types {
  std::vector<Type> list;
};
inline Types types(std::vector<Type> list) { return {std::move(list)}; }
}  // namespace meta

}  // namespace hidet::lang
