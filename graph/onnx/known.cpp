// known.cpp - known integers; see known.h.
#include "onnx/known.h"

#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph::onnx {

bool Known::is_constant() const { return std::all_of(elems.begin(), elems.end(), is_int); }

std::vector<int64_t> Known::ints() const { return ints_of(elems); }

bool is_int(const DimExpr& dim) { return dim.is_const(); }

std::optional<int64_t> small_count(const std::vector<DimExpr>& shape) {
  int64_t count = 1;
  for (const DimExpr& d : shape) {
    if (!d.is_const() || d.value() < 0 || d.value() > Known::kMaxCount) return std::nullopt;
    count = std::min(count * d.value(), Known::kMaxCount + 1);
  }
  if (count > Known::kMaxCount) return std::nullopt;
  return count;
}

std::vector<int64_t> ints_of(const std::vector<DimExpr>& shape) {
  std::vector<int64_t> out;
  out.reserve(shape.size());
  for (const DimExpr& d : shape) out.push_back(d.value());
  return out;
}

DimExpr divide_exactly(const std::vector<DimExpr>& numerator,
                       const std::vector<DimExpr>& denominator) {
  const auto factors = [](const std::vector<DimExpr>& list) {
    std::vector<DimExpr> out;
    for (const DimExpr& d : list) {
      if (d.kind() == DimKind::mul) out.insert(out.end(), d.operands().begin(), d.operands().end());
      else out.push_back(d);
    }
    return out;
  };
  std::vector<DimExpr> top = factors(numerator);
  DimExpr above(1), below(1);
  for (const DimExpr& d : factors(denominator)) {
    const auto same = d.is_const() ? top.end() : std::find(top.begin(), top.end(), d);
    if (same == top.end()) below = below * d;
    else top.erase(same);
  }
  for (const DimExpr& d : top) above = above * d;
  return below.is_const(1) ? above : floordiv(above, below);
}

int64_t wrap_to(int64_t value, DType dtype) {
  switch (dtype.code()) {
    case DTypeCode::boolean: return value != 0;
    case DTypeCode::i8: return static_cast<int8_t>(value);
    case DTypeCode::i16: return static_cast<int16_t>(value);
    case DTypeCode::i32: return static_cast<int32_t>(value);
    case DTypeCode::u8: return static_cast<uint8_t>(value);
    case DTypeCode::u16: return static_cast<uint16_t>(value);
    case DTypeCode::u32: return static_cast<uint32_t>(value);
    default: return value;
  }
}

}  // namespace hidet::graph::onnx
