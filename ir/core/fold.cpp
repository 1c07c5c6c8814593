// fold.cpp - exact evaluation of operators on constants (see fold.h).
#include <hidet/ir/fold.h>

#include <hidet/runtime/error.h>

#include <cmath>
#include <limits>

namespace hidet::ir {

int64_t wrap_int(int64_t v, DType t) {
  if (t.is_boolean()) return v != 0;
  const int bits = t.bits();
  if (bits >= 64) return v;
  const uint64_t mask = (uint64_t{1} << bits) - 1, low = static_cast<uint64_t>(v) & mask;
  if (t.is_signed() && (low >> (bits - 1))) return static_cast<int64_t>(low | ~mask);
  return static_cast<int64_t>(low);
}

bool fits(int64_t v, DType t) {
  if (t == u64) return v >= 0;
  return wrap_int(v, t) == v;
}

bool fits(int64_t v, DType from, DType to) {
  return from == u64 && v < 0 ? to == u64 : fits(v, to);
}

std::string int_text(int64_t v, DType t) {
  return t == u64 ? std::to_string(static_cast<uint64_t>(v)) : std::to_string(v);
}

double round_to(double v, DType t) {
  switch (t.code()) {
    case DTypeCode::f16: return f16_to_f32(f64_to_f16(v));
    case DTypeCode::bf16: return bf16_to_f32(f64_to_bf16(v));
    case DTypeCode::f32:
    case DTypeCode::tf32: return static_cast<float>(v);
    default: return v;
  }
}

int64_t saturate(double v, DType t) {
  if (t.is_boolean()) return v != 0;  // NaN != 0, as in C
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  const double low = t.is_signed() ? -std::ldexp(1.0, t.bits() - 1) : 0.0;
  const double high = std::ldexp(1.0, t.is_signed() ? t.bits() - 1 : t.bits());
  if (v <= low) return t.min_int();
  if (v >= high) return static_cast<int64_t>(t.max_int());
  return t == u64 ? static_cast<int64_t>(static_cast<uint64_t>(v)) : static_cast<int64_t>(v);
}

double int_to_double(int64_t v, DType from) {
  return from == u64 ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
}

namespace {
bool compare(BinaryOp op, auto a, auto b) {
  switch (op) {
    case BinaryOp::lt: return a < b;
    case BinaryOp::le: return a <= b;
    case BinaryOp::gt: return a > b;
    case BinaryOp::ge: return a >= b;
    case BinaryOp::eq: return a == b;
    default: return a != b;
  }
}

int64_t pow_int(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, b = static_cast<uint64_t>(base);
  for (uint64_t n = static_cast<uint64_t>(exponent); n; n >>= 1, b *= b)
    if (n & 1) result *= b;
  return static_cast<int64_t>(result);
}

int64_t eval_unsigned(BinaryOp op, uint64_t a, uint64_t b, int bits) {
  switch (op) {
    case BinaryOp::div:
    case BinaryOp::floordiv: return static_cast<int64_t>(b ? a / b : 0);
    case BinaryOp::mod:
    case BinaryOp::floormod: return static_cast<int64_t>(b ? a % b : 0);
    case BinaryOp::min: return static_cast<int64_t>(a < b ? a : b);
    case BinaryOp::max: return static_cast<int64_t>(a > b ? a : b);
    default: return static_cast<int64_t>(b < static_cast<uint64_t>(bits) ? a >> b : 0);  // shr
  }
}

int64_t eval_signed(BinaryOp op, int64_t a, int64_t b, int bits) {
  const bool overflow = b == -1;  // a / -1 wraps instead of trapping
  switch (op) {
    case BinaryOp::div:
      return b == 0 ? 0 : overflow ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
    case BinaryOp::mod: return b == 0 || overflow ? 0 : a % b;
    case BinaryOp::floordiv: {
      if (b == 0) return 0;
      if (overflow) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
      return a / b - (a % b != 0 && (a < 0) != (b < 0));
    }
    case BinaryOp::floormod: {
      if (b == 0 || overflow) return 0;
      const int64_t r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case BinaryOp::min: return a < b ? a : b;
    case BinaryOp::max: return a > b ? a : b;
    default: return b >= 0 && b < bits ? a >> b : (a < 0 ? -1 : 0);  // shr
  }
}
}  // namespace

int64_t eval_int(BinaryOp op, int64_t a, int64_t b, DType t) {
  const BinaryOpInfo& row = info(op);
  const bool is_unsigned = t.is_integer() && !t.is_signed();
  if (row.comparison)
    return is_unsigned ? compare(op, static_cast<uint64_t>(a), static_cast<uint64_t>(b))
                       : compare(op, a, b);
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::add: return wrap_int(static_cast<int64_t>(x + y), t);
    case BinaryOp::sub: return wrap_int(static_cast<int64_t>(x - y), t);
    case BinaryOp::mul: return wrap_int(static_cast<int64_t>(x * y), t);
    case BinaryOp::bit_and: return wrap_int(a & b, t);
    case BinaryOp::bit_or: return wrap_int(a | b, t);
    case BinaryOp::bit_xor: return wrap_int(a ^ b, t);
    case BinaryOp::shl:
      return b >= 0 && b < t.bits() ? wrap_int(static_cast<int64_t>(x << y), t) : 0;
    case BinaryOp::pow: return wrap_int(pow_int(a, b), t);
    case BinaryOp::logical_and: return a && b;
    case BinaryOp::logical_or: return a || b;
    default:
      return wrap_int(
          is_unsigned ? eval_unsigned(op, x, y, t.bits()) : eval_signed(op, a, b, t.bits()), t);
  }
}

namespace {
template <class T>
T eval_typed(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: return a / b;
    case BinaryOp::mod: return std::fmod(a, b);
    case BinaryOp::floordiv: return std::floor(a / b);
    case BinaryOp::floormod: {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case BinaryOp::min: return b < a || b != b ? b : a;
    case BinaryOp::max: return b > a || b != b ? b : a;
    case BinaryOp::pow: return std::pow(a, b);
    default: break;
  }
  HIDET_CHECK(false, "'", info(op).name, "' of floats");
  return T{};
}
}  // namespace

double eval_float(BinaryOp op, double a, double b, DType t) {
  if (t == f64) return eval_typed<double>(op, a, b);
  return round_to(eval_typed<float>(op, static_cast<float>(a), static_cast<float>(b)), t);
}
bool eval_float_compare(BinaryOp op, double a, double b) { return compare(op, a, b); }

Expr fold_binary(BinaryOp op, const Expr& a, const Expr& b, SourceLoc loc) {
  const BinaryOpInfo& row = info(op);
  if (const IntImm *x = as<IntImm>(a), *y = as<IntImm>(b); x && y) {
    const int64_t v = eval_int(op, x->value, y->value, a->type.dtype());
    return row.comparison ? make_bool(v, loc) : make_int(v, a->type, loc);
  }
  if (const FloatImm *x = as<FloatImm>(a), *y = as<FloatImm>(b); x && y) {
    if (row.comparison) return make_bool(eval_float_compare(op, x->value, y->value), loc);
    if (op == BinaryOp::pow) return nullptr;  // the target's pow may round otherwise
    return make_float(eval_float(op, x->value, y->value, a->type.dtype()), a->type, loc);
  }
  return nullptr;
}

Expr fold_cast(const Expr& imm, DType to, SourceLoc loc) {
  if (const IntImm* i = as<IntImm>(imm)) {
    if (to.is_float()) {
      // One rounding: f32 from the 64-bit integer directly.
      const DType from = imm->type.dtype();
      const double v = to == f32
                           ? (from == u64 ? static_cast<float>(static_cast<uint64_t>(i->value))
                                          : static_cast<float>(i->value))
                           : int_to_double(i->value, from);
      return make_float(v, Type(to), loc);
    }
    return make_int(i->value, Type(to), loc);
  }
  const FloatImm* f = as<FloatImm>(imm);
  if (to.is_float()) return make_float(f->value, Type(to), loc);
  return make_int(saturate(f->value, to), Type(to), loc);
}

}  // namespace hidet::ir
