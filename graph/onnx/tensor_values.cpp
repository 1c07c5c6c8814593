// tensor_values.cpp - unpacks TensorProto values; see tensor_values.h.
#include "onnx/tensor_values.h"

#include <cstring>
#include <iterator>

#include "onnx/wire.h"

namespace hidet::graph::onnx {
namespace {

struct ElemType {
  const char* name;
  bool supported;
  DType dtype;
};

// Indexed by ONNX's numbers (TensorProto.DataType).
constexpr ElemType kElemTypes[] = {
    {"undefined", false, f32},
    {"float", true, f32},
    {"uint8", true, u8},
    {"int8", true, i8},
    {"uint16", true, u16},
    {"int16", true, i16},
    {"int32", true, i32},
    {"int64", true, i64},
    {"string", false, f32},
    {"bool", true, boolean},
    {"float16", true, f16},
    {"double", true, f64},
    {"uint32", true, u32},
    {"uint64", true, u64},
    {"complex64", false, f32},
    {"complex128", false, f32},
    {"bfloat16", true, bf16},
    {"float8e4m3fn", true, f8e4m3},
    {"float8e4m3fnuz", false, f32},
    {"float8e5m2", true, f8e5m2},
    {"float8e5m2fnuz", false, f32},
    {"uint4", true, u4},
    {"int4", true, i4},
    {"float4e2m1", false, f32},
    {"float8e8m0", false, f32},
    {"uint2", false, f32},
    {"int2", false, f32},
};

// The number of values; throws where a dim is negative or their product too large.
int64_t checked_count(const TensorProto& tensor, const std::string& where,
                      const std::string& what) {
  constexpr int64_t kMost = INT64_MAX / 16;
  int64_t count = 1;
  bool empty = false;
  for (int64_t d : tensor.dims) {
    HIDET_REQUIRE(d >= 0, ErrorCode::bad_file, where, what, " has the negative size ", d);
    empty |= d == 0;
  }
  if (empty) return 0;
  for (int64_t d : tensor.dims) {
    HIDET_REQUIRE(count <= kMost / d, ErrorCode::bad_file, where, what,
                  " has more values than can be addressed");
    count *= d;
  }
  return count;
}

template <class Out, class In>
std::shared_ptr<const void> narrow(const std::vector<In>& in) {
  auto out = std::shared_ptr<Out[]>(new Out[in.size() + 1]);
  for (size_t i = 0; i < in.size(); i++) out[i] = static_cast<Out>(in[i]);
  return out;
}

// Each int32 holds one value, of 4-bit types a byte of two values (the low half first).
std::shared_ptr<const void> from_int32s(DType dtype, const std::vector<int32_t>& in) {
  switch (dtype.bytes()) {
    case 1: return dtype.is_boolean() ? narrow<bool>(in) : narrow<uint8_t>(in);
    case 2: return narrow<uint16_t>(in);
    default: return narrow<int32_t>(in);
  }
}

// The typed list that ONNX keeps values of `dtype` in, as bytes of that dtype.
std::shared_ptr<const void> from_lists(const TensorProto& tensor, DType dtype, int64_t count,
                                       const std::string& where, const std::string& what) {
  size_t have = 0;
  std::shared_ptr<const void> out;
  if (dtype == f32) {
    have = tensor.floats.size(), out = narrow<float>(tensor.floats);
  } else if (dtype == f64) {
    have = tensor.doubles.size(), out = narrow<double>(tensor.doubles);
  } else if (dtype == i64) {
    have = tensor.int64s.size(), out = narrow<int64_t>(tensor.int64s);
  } else if (dtype == u64) {
    have = tensor.uint64s.size(), out = narrow<uint64_t>(tensor.uint64s);
  } else if (dtype == u32) {
    have = tensor.uint64s.size(), out = narrow<uint32_t>(tensor.uint64s);
  } else {
    have = tensor.int32s.size(), out = from_int32s(dtype, tensor.int32s);
  }
  const int64_t expected = dtype.bits() == 4 ? (count + 1) / 2 : count;
  HIDET_REQUIRE(static_cast<int64_t>(have) == expected, ErrorCode::bad_file, where, what,
                " stores ", have, " values where its dims need ", expected);
  return out;
}

// Values that are not aligned for the dtype are copied; so are booleans, of which a file may hold
// bytes that are neither 0 nor 1.
void adopt(TensorValues& out, std::string_view bytes, std::shared_ptr<const void> owner) {
  const size_t align = out.dtype.bytes();
  if (!out.dtype.is_boolean() && reinterpret_cast<uintptr_t>(bytes.data()) % align == 0) {
    out.data = bytes.data();
    out.owner = std::move(owner);
    return;
  }
  auto copy = std::shared_ptr<char[]>(new char[bytes.size() + 1]);
  if (out.dtype.is_boolean())
    for (size_t i = 0; i < bytes.size(); i++) copy[i] = bytes[i] != 0;
  else if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  out.data = copy.get();
  out.owner = std::move(copy);
}

}  // namespace

DType dtype_of_onnx(int32_t elem_type, const std::string& where, const std::string& what) {
  HIDET_REQUIRE(elem_type > 0 && elem_type < static_cast<int32_t>(std::size(kElemTypes)),
                ErrorCode::bad_file, where, what, " has ",
                elem_type == 0 ? "no element type" : "an unknown element type");
  const ElemType& row = kElemTypes[elem_type];
  HIDET_REQUIRE(row.supported, ErrorCode::unsupported, where, what, " has the element type ",
                row.name, ", which is not supported");
  return row.dtype;
}

int32_t onnx_type_of(DType dtype) {
  for (size_t i = 1; i < std::size(kElemTypes); i++)
    if (kElemTypes[i].supported && kElemTypes[i].dtype == dtype) return static_cast<int32_t>(i);
  throw Error(ErrorCode::unsupported,
              detail::concat("ONNX has no element type for ", dtype.name()));
}

TensorValues load_values(const TensorProto& tensor, ModelFile& file, const std::string& what) {
  const std::string& where = file.name();
  TensorValues out;
  out.dtype = dtype_of_onnx(tensor.data_type, where, what);
  out.dims = tensor.dims;
  out.count = checked_count(tensor, where, what);
  const auto needed = static_cast<uint64_t>(out.dtype.bytes_of(out.count));
  if (tensor.external) {
    ModelFile::View view = file.external(tensor, needed, what);
    adopt(out, view.bytes, view.owner);
  } else if (tensor.has_raw) {
    HIDET_REQUIRE(tensor.raw.size() == needed, ErrorCode::bad_file, where, what, " stores ",
                  tensor.raw.size(), " bytes where its dims need ", needed);
    adopt(out, tensor.raw, file.mapping());
  } else {
    out.owner = from_lists(tensor, out.dtype, out.count, where, what);
    out.data = out.owner.get();
  }
  return out;
}

std::vector<int64_t> to_int64s(const TensorValues& values) {
  const auto widen = [&](auto zero) {
    const auto* in = static_cast<const decltype(zero)*>(values.data);
    return std::vector<int64_t>(in, in + values.count);
  };
  switch (values.dtype.code()) {
    case DTypeCode::boolean: return widen(false);
    case DTypeCode::i8: return widen(int8_t{});
    case DTypeCode::i16: return widen(int16_t{});
    case DTypeCode::i32: return widen(int32_t{});
    case DTypeCode::i64: return widen(int64_t{});
    case DTypeCode::u8: return widen(uint8_t{});
    case DTypeCode::u16: return widen(uint16_t{});
    case DTypeCode::u32: return widen(uint32_t{});
    case DTypeCode::u64: return widen(uint64_t{});
    default: break;
  }
  HIDET_CHECK(false, "to_int64s of ", values.dtype.name());
}

}  // namespace hidet::graph::onnx
