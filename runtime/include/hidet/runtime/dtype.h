// dtype.h - scalar data types: one table of names, sizes and kinds.
// Threading: values; thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace hidet {

/// The scalar kinds. The numbers are stable: they appear in files and in the C API.
enum class DTypeCode : uint8_t {
  boolean = 0,
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  u8 = 5,
  u16 = 6,
  u32 = 7,
  u64 = 8,
  f16 = 9,
  bf16 = 10,
  f32 = 11,
  f64 = 12,
  tf32 = 13,
  f8e4m3 = 14,
  f8e5m2 = 15,
  i4 = 16,
  u4 = 17,
};
inline constexpr int kNumDTypes = 18;

/// A scalar type. A value type: compare with ==, print with name().
class DType {
 public:
  constexpr DType() : code_(DTypeCode::f32) {}
  constexpr explicit DType(DTypeCode code) : code_(code) {}
  constexpr DTypeCode code() const { return code_; }
  const char* name() const;  ///< "f32", "boolean", "i64" ...
  const char* c_name()
      const;  ///< C17 spelling: "float", "bool", "int64_t", "_Float16", "uint16_t" (bf16)
  const char* numpy_name() const;  ///< "<f4", "|b1" ...; "|V2" for what numpy lacks
  int bits() const;
  size_t bytes() const { return static_cast<size_t>(bits() + 7) / 8; }
  /// Bytes of `count` values; packed 4-bit types take half a byte each.
  int64_t bytes_of(int64_t count) const { return (count * bits() + 7) / 8; }
  bool is_float() const;    ///< f16, bf16, f32, f64, tf32, f8
  bool is_integer() const;  ///< signed and unsigned integers, not boolean
  bool is_signed() const;   ///< signed integers and floats
  bool is_boolean() const { return code_ == DTypeCode::boolean; }
  int64_t min_int() const;   ///< least integer value (integers and boolean only)
  uint64_t max_int() const;  ///< largest integer value (integers and boolean only)
  friend constexpr bool operator==(DType a, DType b) { return a.code_ == b.code_; }
  friend constexpr bool operator<(DType a, DType b) { return a.code_ < b.code_; }

  /// The type called `name`, also numpy's and ONNX's usual names ("float32", "bool", "int64").
  /// Throws Error(usage) that lists the names.
  static DType parse(std::string_view name);

 private:
  DTypeCode code_;
};
std::ostream& operator<<(std::ostream& out, DType dtype);

inline constexpr DType boolean{DTypeCode::boolean};
inline constexpr DType i8{DTypeCode::i8}, i16{DTypeCode::i16}, i32{DTypeCode::i32},
    i64{DTypeCode::i64};
inline constexpr DType u8{DTypeCode::u8}, u16{DTypeCode::u16}, u32{DTypeCode::u32},
    u64{DTypeCode::u64};
inline constexpr DType f16{DTypeCode::f16}, bf16{DTypeCode::bf16}, f32{DTypeCode::f32},
    f64{DTypeCode::f64};
inline constexpr DType tf32{DTypeCode::tf32}, f8e4m3{DTypeCode::f8e4m3}, f8e5m2{DTypeCode::f8e5m2};
inline constexpr DType i4{DTypeCode::i4}, u4{DTypeCode::u4};

/// The DType of a C++ type: dtype_of<float>() == f32.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<bool>() {
  return boolean;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return i8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return i16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return i64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return u8;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return u16;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return u32;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return u64;
}
template <>
constexpr DType dtype_of<float>() {
  return f32;
}
template <>
constexpr DType dtype_of<double>() {
  return f64;
}

// Bit conversions, round to nearest even; NaN stays NaN, overflow gives infinity.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
uint16_t f64_to_f16(double value);  ///< one rounding, not two
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
uint16_t f64_to_bf16(double value);

}  // namespace hidet
