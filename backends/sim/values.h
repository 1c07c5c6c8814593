// values.h - what registers mean: conversion, arithmetic by dtype, bytes in memory.
// Threading: pure functions; thread-safe.
#pragma once
#include <cstring>

#include <hidet/ir/bulk.h>

#include "sim/program.h"

namespace hidet::backends::sim {

inline double to_double(Cell c, DType t) { return t == f64 ? c.d : static_cast<double>(c.f); }
Cell from_double(double v, DType t);
Cell convert(Cell c, DType from, DType to);
Cell binary(ir::BinaryOp op, Cell a, Cell b, DType t);
Cell unary(ir::UnaryOp op, Cell a, DType t);
Cell absolute(Cell a, DType t);
/// What an atomic or a bulk reduction leaves.
Cell combined(ir::Combine op, Cell old, Cell v, DType t);
/// Inst::sub of atomics: an ir::Combine, or one of these.
inline constexpr uint8_t kExchange = 16, kCompare = 17;
/// Row `row` of kMath; 255: a * b + c, 254: isnan, 253: isinf, 252: isfinite; from kArith on: a row of arith.cpp.
Cell math(uint8_t row, Cell a, Cell b, Cell c, DType t);
inline constexpr int kArith = 128;
/// The row of a primitive of arith.cpp, from kArith on; -1: it has none.
int arith_row(const std::string& primitive);
Cell arith(int row, Cell a, Cell b, Cell c, DType t);

/// A number as matrices hold it: f8, tf32 without its low bits, and the rest.
double matrix_number(const uint8_t* p, DType t);

template <class T>
T raw(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline Cell read_cell(const uint8_t* p, DTypeCode t) {
  Cell c{.i = 0};
  switch (t) {
    case DTypeCode::boolean:
    case DTypeCode::u8: c.i = *p; break;
    case DTypeCode::i8: c.i = raw<int8_t>(p); break;
    case DTypeCode::i16: c.i = raw<int16_t>(p); break;
    case DTypeCode::u16: c.i = raw<uint16_t>(p); break;
    case DTypeCode::i32: c.i = raw<int32_t>(p); break;
    case DTypeCode::u32: c.i = raw<uint32_t>(p); break;
    case DTypeCode::f16: c.f = f16_to_f32(raw<uint16_t>(p)); break;
    case DTypeCode::bf16: c.f = bf16_to_f32(raw<uint16_t>(p)); break;
    case DTypeCode::f32:
    case DTypeCode::tf32: c.f = raw<float>(p); break;
    default: c.i = raw<int64_t>(p); break;  // i64, u64, the bits of f64
  }
  return c;
}

inline void write_cell(uint8_t* p, DTypeCode t, Cell c) {
  const auto put = [p](auto v) { std::memcpy(p, &v, sizeof v); };
  switch (t) {
    case DTypeCode::boolean:
    case DTypeCode::u8:
    case DTypeCode::i8: put(static_cast<uint8_t>(c.i)); break;
    case DTypeCode::i16:
    case DTypeCode::u16: put(static_cast<uint16_t>(c.i)); break;
    case DTypeCode::i32:
    case DTypeCode::u32: put(static_cast<uint32_t>(c.i)); break;
    case DTypeCode::f16: put(f32_to_f16(c.f)); break;
    case DTypeCode::bf16: put(f32_to_bf16(c.f)); break;
    case DTypeCode::f32:
    case DTypeCode::tf32: put(c.f); break;
    default: put(c.i); break;
  }
}

}  // namespace hidet::backends::sim
