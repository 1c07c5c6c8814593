// lanes.cpp - instructions on rows of registers: a table of the common ones, compiled for all lanes at once, and one
// function for each other kind.
#include "sim/lanes.h"

#include <cmath>

#include "sim/values.h"

namespace hidet::backends::sim {
namespace {
using ir::BinaryOp;
using D = DTypeCode;

template <auto F>
void int_row(const Inst&, Cell* d, const Cell* a, const Cell* b, const Cell*, Lanes lanes) {
  each(lanes, [=](int i) { d[i].i = F(a[i].i, b[i].i); });
}
template <auto F>
void f32_row(const Inst&, Cell* d, const Cell* a, const Cell* b, const Cell*, Lanes lanes) {
  each(lanes, [=](int i) { d[i].f = F(a[i].f, b[i].f); });
}
template <auto F>
void f32_test(const Inst&, Cell* d, const Cell* a, const Cell* b, const Cell*, Lanes lanes) {
  each(lanes, [=](int i) { d[i].i = F(a[i].f, b[i].f); });
}
template <auto F>
void f16_row(const Inst&, Cell* d, const Cell* a, const Cell* b, const Cell*, Lanes lanes) {
  each(lanes, [=](int i) { d[i].f = f16_to_f32(f32_to_f16(F(a[i].f, b[i].f))); });
}
template <auto F>
void convert_row(const Inst& in, Cell* d, const Cell* a, const Cell*, const Cell*, Lanes lanes) {
  const int n = in.lanes;
  for (int k = 0; k < n; k++, d += kWarp, a += kWarp) each(lanes, [=](int i) { d[i] = F(a[i]); });
}

// Sums and products wrap: in unsigned arithmetic.
constexpr auto add = [](int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
};
constexpr auto sub = [](int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
};
constexpr auto mul = [](int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
};
constexpr auto bit_and = [](int64_t a, int64_t b) { return a & b; };
constexpr auto bit_or = [](int64_t a, int64_t b) { return a | b; };
constexpr auto bit_xor = [](int64_t a, int64_t b) { return a ^ b; };
constexpr auto lt = [](auto a, auto b) { return a < b; };
constexpr auto le = [](auto a, auto b) { return a <= b; };
constexpr auto gt = [](auto a, auto b) { return a > b; };
constexpr auto ge = [](auto a, auto b) { return a >= b; };
constexpr auto eq = [](auto a, auto b) { return a == b; };
constexpr auto ne = [](auto a, auto b) { return a != b; };
constexpr auto least = [](int64_t a, int64_t b) { return a < b ? a : b; };
constexpr auto most = [](int64_t a, int64_t b) { return a > b ? a : b; };
constexpr auto fadd = [](float a, float b) { return a + b; };
constexpr auto fsub = [](float a, float b) { return a - b; };
constexpr auto fmul = [](float a, float b) { return a * b; };
constexpr auto fdiv = [](float a, float b) { return a / b; };
constexpr auto fmin = [](float a, float b) { return b < a || b != b ? b : a; };
constexpr auto fmax = [](float a, float b) { return b > a || b != b ? b : a; };
template <auto F>
constexpr auto in_i32 =
    [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<int32_t>(F(a, b))); };
// Lanes that are not there may hold anything: only the low halves count.
constexpr auto div_i32 = [](int64_t a, int64_t b) {
  const auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
  if (y == 0) return int64_t{0};
  return y == -1 ? int64_t{static_cast<int32_t>(0 - static_cast<uint32_t>(x))} : int64_t{x / y};
};
constexpr auto mod_i32 = [](int64_t a, int64_t b) {
  const auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
  return y == 0 || y == -1 ? int64_t{0} : int64_t{x % y};
};

struct BinaryRow {
  BinaryOp op;
  D type;
  LaneFn fn;
};
constexpr BinaryRow kBinary[] = {
    {BinaryOp::add, D::i32, int_row<in_i32<add>>},
    {BinaryOp::sub, D::i32, int_row<in_i32<sub>>},
    {BinaryOp::mul, D::i32, int_row<in_i32<mul>>},
    {BinaryOp::div, D::i32, int_row<div_i32>},
    {BinaryOp::mod, D::i32, int_row<mod_i32>},
    {BinaryOp::add, D::i64, int_row<add>},
    {BinaryOp::sub, D::i64, int_row<sub>},
    {BinaryOp::mul, D::i64, int_row<mul>},
    {BinaryOp::lt, D::i32, int_row<lt>},
    {BinaryOp::le, D::i32, int_row<le>},
    {BinaryOp::gt, D::i32, int_row<gt>},
    {BinaryOp::ge, D::i32, int_row<ge>},
    {BinaryOp::eq, D::i32, int_row<eq>},
    {BinaryOp::ne, D::i32, int_row<ne>},
    {BinaryOp::lt, D::i64, int_row<lt>},
    {BinaryOp::le, D::i64, int_row<le>},
    {BinaryOp::gt, D::i64, int_row<gt>},
    {BinaryOp::ge, D::i64, int_row<ge>},
    {BinaryOp::eq, D::i64, int_row<eq>},
    {BinaryOp::ne, D::i64, int_row<ne>},
    {BinaryOp::min, D::i32, int_row<least>},
    {BinaryOp::max, D::i32, int_row<most>},
    {BinaryOp::min, D::i64, int_row<least>},
    {BinaryOp::max, D::i64, int_row<most>},
    {BinaryOp::bit_and, D::i32, int_row<bit_and>},
    {BinaryOp::bit_or, D::i32, int_row<bit_or>},
    {BinaryOp::bit_xor, D::i32, int_row<bit_xor>},
    {BinaryOp::bit_and, D::i64, int_row<bit_and>},
    {BinaryOp::bit_or, D::i64, int_row<bit_or>},
    {BinaryOp::bit_xor, D::i64, int_row<bit_xor>},
    {BinaryOp::bit_and, D::u32, int_row<bit_and>},
    {BinaryOp::bit_or, D::u32, int_row<bit_or>},
    {BinaryOp::bit_xor, D::u32, int_row<bit_xor>},
    {BinaryOp::bit_and, D::boolean, int_row<bit_and>},
    {BinaryOp::bit_or, D::boolean, int_row<bit_or>},
    {BinaryOp::logical_and, D::boolean, int_row<bit_and>},
    {BinaryOp::logical_or, D::boolean, int_row<bit_or>},
    {BinaryOp::add, D::f32, f32_row<fadd>},
    {BinaryOp::sub, D::f32, f32_row<fsub>},
    {BinaryOp::mul, D::f32, f32_row<fmul>},
    {BinaryOp::div, D::f32, f32_row<fdiv>},
    {BinaryOp::min, D::f32, f32_row<fmin>},
    {BinaryOp::max, D::f32, f32_row<fmax>},
    {BinaryOp::lt, D::f32, f32_test<lt>},
    {BinaryOp::le, D::f32, f32_test<le>},
    {BinaryOp::gt, D::f32, f32_test<gt>},
    {BinaryOp::ge, D::f32, f32_test<ge>},
    {BinaryOp::eq, D::f32, f32_test<eq>},
    {BinaryOp::ne, D::f32, f32_test<ne>},
    {BinaryOp::add, D::f16, f16_row<fadd>},
    {BinaryOp::sub, D::f16, f16_row<fsub>},
    {BinaryOp::mul, D::f16, f16_row<fmul>},
};

constexpr auto to_i32 = [](Cell c) { return Cell{.i = static_cast<int32_t>(c.i)}; };
constexpr auto to_u32 = [](Cell c) { return Cell{.i = static_cast<uint32_t>(c.i)}; };
constexpr auto to_f32 = [](Cell c) {
  Cell out{.i = 0};
  out.f = static_cast<float>(c.i);
  return out;
};
constexpr auto to_f16 = [](Cell c) {
  Cell out{.i = 0};
  out.f = f16_to_f32(f32_to_f16(c.f));
  return out;
};
constexpr auto to_bf16 = [](Cell c) {
  Cell out{.i = 0};
  out.f = bf16_to_f32(f32_to_bf16(c.f));
  return out;
};
constexpr auto same = [](Cell c) { return c; };

struct CastRow {
  D from, to;
  LaneFn fn;
};
constexpr CastRow kCasts[] = {
    {D::i32, D::i64, convert_row<same>},     {D::u32, D::i64, convert_row<same>},
    {D::u32, D::u64, convert_row<same>},     {D::i64, D::u64, convert_row<same>},
    {D::u64, D::i64, convert_row<same>},     {D::boolean, D::i32, convert_row<same>},
    {D::boolean, D::i64, convert_row<same>}, {D::f16, D::f32, convert_row<same>},
    {D::bf16, D::f32, convert_row<same>},    {D::i64, D::i32, convert_row<to_i32>},
    {D::u32, D::i32, convert_row<to_i32>},   {D::i32, D::u32, convert_row<to_u32>},
    {D::i64, D::u32, convert_row<to_u32>},   {D::i32, D::f32, convert_row<to_f32>},
    {D::i64, D::f32, convert_row<to_f32>},   {D::f32, D::f16, convert_row<to_f16>},
    {D::f32, D::bf16, convert_row<to_bf16>},
};

void move_row(const Inst& in, Cell* d, const Cell* a, const Cell*, const Cell*, Lanes lanes) {
  if (lanes.full) std::memmove(d, a, sizeof(Cell) * kWarp * in.lanes);
  else convert_row<same>(in, d, a, nullptr, nullptr, lanes);
}

/// Any instruction, lane by lane and element by element. F(in, a, b, c).
template <auto F>
void general(const Inst& in, Cell* d, const Cell* a, const Cell* b, const Cell* c, Lanes lanes) {
  const DType type(in.type);
  for (int k = 0; k < in.lanes; k++, d += kWarp, a += kWarp, b += kWarp, c += kWarp)
    bits(lanes.mask, [&](int i) { d[i] = F(in, type, a[i], b[i], c[i]); });
}
constexpr auto any_binary = [](const Inst& in, DType t, Cell a, Cell b, Cell) {
  return binary(static_cast<BinaryOp>(in.sub), a, b, t);
};
constexpr auto any_unary = [](const Inst& in, DType t, Cell a, Cell, Cell) {
  return unary(static_cast<ir::UnaryOp>(in.sub), a, t);
};
constexpr auto any_cast = [](const Inst& in, DType t, Cell a, Cell, Cell) {
  return convert(a, DType(in.from), t);
};
constexpr auto any_abs = [](const Inst&, DType t, Cell a, Cell, Cell) { return absolute(a, t); };
constexpr auto any_math = [](const Inst& in, DType t, Cell a, Cell b, Cell c) {
  return math(in.sub, a, b, c, t);
};
constexpr auto any_select = [](const Inst&, DType, Cell a, Cell b, Cell c) { return c.i ? a : b; };
constexpr auto negate = [](float a, float) { return -a; };

void fma_f32(const Inst&, Cell* d, const Cell* a, const Cell* b, const Cell* c, Lanes lanes) {
  bits(lanes.mask, [=](int i) { d[i].f = std::fma(a[i].f, b[i].f, c[i].f); });
}
void math_f32(const Inst& in, Cell* d, const Cell* a, const Cell*, const Cell*, Lanes lanes) {
  const MathFnF f = kMath[in.sub].f;
  bits(lanes.mask, [=](int i) { d[i].f = f(a[i].f); });
}
LaneFn math_function(const Inst& in) {
  if (in.type != D::f32 || in.lanes != 1) return general<any_math>;
  return in.sub == 255 ? fma_f32 : in.sub < kMathRows ? math_f32 : general<any_math>;
}

LaneFn binary_function(const Inst& in) {
  if (in.lanes == 1)
    for (const BinaryRow& row : kBinary)
      if (row.op == static_cast<BinaryOp>(in.sub) && row.type == in.type) return row.fn;
  return general<any_binary>;
}
LaneFn cast_function(const Inst& in) {
  if (in.from == in.type) return move_row;
  for (const CastRow& row : kCasts)
    if (row.from == in.from && row.to == in.type) return row.fn;
  return general<any_cast>;
}

}  // namespace

LaneFn lane_function(const Inst& in) {
  switch (in.op) {
    case Op::move: return move_row;
    case Op::binary: return binary_function(in);
    case Op::unary:
      return in.type == D::f32 && in.lanes == 1 ? f32_row<negate> : general<any_unary>;
    case Op::cast: return cast_function(in);
    case Op::abs: return general<any_abs>;
    case Op::math: return math_function(in);
    case Op::select: return general<any_select>;
    default: return nullptr;
  }
}

}  // namespace hidet::backends::sim
