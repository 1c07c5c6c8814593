// prelude.cpp - texts of the helpers of the emitted C. Vector booleans are int8 vectors of 0 and -1.
#include "prelude.h"

#include <hidet/runtime/error.h>

namespace hidet::codegen {
using namespace ir;

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

namespace {
std::string lanes_suffix(int lanes) { return lanes > 1 ? "x" + std::to_string(lanes) : ""; }
std::string suffix(const Type& t) { return t.dtype().name() + lanes_suffix(t.lanes()); }
/// Integer dtype of the same width, for masks.
DType int_of_width(int bits) { return bits == 8 ? i8 : bits == 16 ? i16 : bits == 32 ? i32 : i64; }
DType unsigned_of(DType t) {
  return t == i8 ? u8 : t == i16 ? u16 : t == i32 ? u32 : t == i64 ? u64 : t;
}
}  // namespace

std::string Prelude::type(const Type& t) {
  if (!t.is_vector()) return t.dtype().c_name();
  const std::string name = t.dtype().is_boolean() ? "b8" + lanes_suffix(t.lanes()) : suffix(t);
  if (once("type " + name)) {
    const std::string element = t.dtype().is_boolean() ? "int8_t" : t.dtype().c_name();
    const size_t bytes =
        (t.dtype().is_boolean() ? 1 : t.dtype().bytes()) * static_cast<size_t>(t.lanes());
    add("typedef " + element + " " + name + " __attribute__((vector_size(" + std::to_string(bytes) +
        ")));\n");
  }
  return name;
}

std::string Prelude::unaligned(const Type& t) {
  const std::string name = suffix(t) + "_u";
  if (once("type " + name)) {
    const std::string element = t.dtype().is_boolean() ? "int8_t" : t.dtype().c_name();
    const size_t size = t.dtype().is_boolean() ? 1 : t.dtype().bytes();
    add("typedef " + element + " " + name + " __attribute__((vector_size(" +
        std::to_string(size * static_cast<size_t>(t.lanes())) + "), aligned(" +
        std::to_string(size) + "), may_alias));\n");
  }
  return name;
}

std::string Prelude::mask(const Type& t) { return type(Type::vector(boolean, t.lanes())); }

std::string Prelude::int_binary(BinaryOp op, DType t) {
  const std::string name = std::string("hidet_") + info(op).name + "_" + t.name();
  if (!once(name)) return name;
  const std::string T = t.c_name();
  std::string body;
  const bool is_signed = t.is_signed();
  // Quotients and remainders divide without a condition, by the same divisor: the compiler makes one division of both.
  const std::string divide =
      T + " d = " + (is_signed ? "b == 0 || b == -1 ? 1 : b; " : "b == 0 ? 1 : b; ");
  const std::string quotient =
      divide + T + " q = (" + T + ")(a / d); q = b == 0 ? 0 : " +
      (is_signed ? "b == -1 ? (" + T + ")(0 - (" + unsigned_of(t).c_name() + ")q) : q; " : "q; ");
  const std::string rest = divide + T + " r = (" + T + ")(a % d); ";
  switch (op) {
    case BinaryOp::div: body = quotient + "return q;"; break;
    case BinaryOp::mod: body = rest + "return r;"; break;
    case BinaryOp::floordiv:
      body = quotient + (is_signed ? "return (" + T + ")(q - (a % d != 0 && (a < 0) != (b < 0)));"
                                   : "return q;");
      break;
    case BinaryOp::floormod:
      body = rest + (is_signed ? "return r != 0 && (r < 0) != (b < 0) ? (" + T + ")(r + b) : r;"
                               : "return r;");
      break;
    case BinaryOp::shl:
      body = "return b >= 0 && b < " + std::to_string(t.bits()) + " ? (" + T + ")((" +
             unsigned_of(t).c_name() + ")a << b) : 0;";
      break;
    case BinaryOp::shr:
      body = "return b >= 0 && b < " + std::to_string(t.bits()) + " ? (" + T +
             ")(a >> b) : " + (is_signed ? "(" + T + ")(a < 0 ? -1 : 0);" : "0;");
      break;
    case BinaryOp::pow:
      body = "if (b < 0) return (" + T +
             ")(a == 1 ? 1 : " + (is_signed ? "a == -1 ? (b % 2 ? -1 : 1) : 0" : "0") +
             "); uint64_t r = 1, x = (uint64_t)a; for (uint64_t n = (uint64_t)b; n; n >>= 1, x *= "
             "x) if (n & 1) r *= x; return (" +
             T + ")r;";
      break;
    default: HIDET_CHECK(false, "no integer helper for '", info(op).name, "'");
  }
  add("static inline " + T + " " + name + "(" + T + " a, " + T + " b) { " + body + " }\n");
  return name;
}

std::string Prelude::per_lane(const std::string& name, const Type& result, const Type& arg,
                              int arity, const std::string& scalar) {
  if (!once(name)) return name;
  const std::string R = type(result), A = type(arg);
  std::string params, call;
  for (int i = 0; i < arity; i++) {
    const std::string p(1, static_cast<char>('a' + i));
    params += (i ? ", " : "") + A + " " + p;
    call += (i ? ", " : "") + p + "[i]";
  }
  const std::string value = result.dtype().is_boolean() ? "-(int8_t)" + scalar + "(" + call + ")"
                                                        : scalar + "(" + call + ")";
  add("static inline " + R + " " + name + "(" + params + ") { " + R + " r; for (int i = 0; i < " +
      std::to_string(arg.lanes()) + "; ++i) r[i] = " + value + "; return r; }\n");
  return name;
}

std::string Prelude::lanewise(BinaryOp op, const Type& t) {
  const std::string scalar = int_binary(op, t.dtype());
  return t.is_vector() ? per_lane(scalar + lanes_suffix(t.lanes()), t, t, 2, scalar) : scalar;
}

std::string Prelude::min_max(BinaryOp op, const Type& t) {
  const std::string name = std::string("hidet_") + info(op).name + "_" + suffix(t);
  if (!once(name)) return name;
  const std::string T = type(t), cmp = op == BinaryOp::max ? ">" : "<";
  // NaN in either operand is the result: b's is taken by b != b, a's by the failed comparison. Of two equal ones a is: so
  // that with a constant b, where b != b folds away, this is one x86 instruction.
  const std::string take_b =
      t.dtype().is_float() ? "(b " + cmp + " a) | (b != b)" : "b " + cmp + " a";
  if (!t.is_vector()) {
    add("static inline " + T + " " + name + "(" + T + " a, " + T + " b) { return " + take_b +
        " ? b : a; }\n");
    return name;
  }
  const std::string I = type(Type::vector(int_of_width(t.dtype().bits()), t.lanes()));
  add("static inline " + T + " " + name + "(" + T + " a, " + T + " b) { " + I + " m = (" + I +
      ")(" + take_b + "); return (" + T + ")((m & (" + I + ")b) | (~m & (" + I + ")a)); }\n");
  return name;
}

std::string Prelude::select(const Type& t) {
  const std::string name = "hidet_select_" + suffix(t);
  if (!once(name)) return name;
  const std::string T = type(t), M = mask(t);
  const DType wide = t.dtype().is_boolean() ? i8 : int_of_width(t.dtype().bits());
  const std::string I = type(Type::vector(wide, t.lanes()));
  add("static inline " + T + " " + name + "(" + M + " c, " + T + " a, " + T + " b) { " + I +
      " m = __builtin_convertvector(c, " + I + "); return (" + T + ")((m & (" + I +
      ")a) | (~m & (" + I + ")b)); }\n");
  return name;
}

void Prelude::widen_half(const std::string& name, const Type& from, const Type& to) {
  const std::string F = type(from), T = type(to), bytes = std::to_string(4 * to.lanes());
  // Clang narrows comparisons of widened halves to comparisons of halves, which x86 does lane by lane: the empty asm hides where
  // the value came from. Its operand must fit a register.
  if (once("native vectors"))
    add("#if defined __clang__ && defined __x86_64__\n"
        "#if defined __AVX512F__\n#define HIDET_NATIVE 64\n"
        "#elif defined __AVX__\n#define HIDET_NATIVE 32\n"
        "#else\n#define HIDET_NATIVE 16\n#endif\n"
        "typedef float hidet_native __attribute__((vector_size(HIDET_NATIVE)));\n#endif\n");
  const std::string head = "static inline " + T + " " + name + "(" + F + " x) { ",
                    value = "__builtin_convertvector(x, " + T + ")";
  std::string text = "#ifndef HIDET_NATIVE\n" + head + "return " + value + "; }\n";
  const bool fills = to.lanes() >= 4 && (to.lanes() & (to.lanes() - 1)) == 0;
  if (fills)
    text += "#elif " + bytes + " > HIDET_NATIVE\n" + head + "union { " + T +
            " all; hidet_native parts[" + bytes + " / HIDET_NATIVE]; } u = {" + value +
            "}; for (int i = 0; i < " + bytes +
            " / HIDET_NATIVE; ++i) __asm__(\"\" : \"+v\"(u.parts[i])); return u.all; }\n#else\n" +
            head + T + " y = " + value + "; __asm__(\"\" : \"+v\"(y)); return y; }\n";
  else text += "#else\n" + head + "return " + value + "; }\n";
  add(text + "#endif\n");
}

std::string Prelude::convert(const Type& from, const Type& to) {
  const std::string name = "hidet_cast_" + suffix(from) + "_" + suffix(to);
  if (from.is_vector()) {
    const bool f32_bf16 = from.dtype() == f32 && to.dtype() == bf16,
               bf16_f32 = from.dtype() == bf16 && to.dtype() == f32;
    if (bf16_f32 && once(name)) {
      const std::string U = type(Type::vector(u32, to.lanes())), F = type(to), B = type(from);
      add("static inline " + F + " " + name + "(" + B + " x) { return (" + F +
          ")(__builtin_convertvector(x, " + U + ") << 16); }\n");
    }
    if (f32_bf16 && once(name)) {
      const std::string U = type(Type::vector(u32, to.lanes())), F = type(from), B = type(to);
      add("static inline " + B + " " + name + "(" + F + " x) { " + U + " u = (" + U + ")x, n = (" +
          U +
          ")(x != x), r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16; return "
          "__builtin_convertvector((n & ((u >> 16) | 0x40u)) | (~n & r), " +
          B + "); }\n");
    }
    const bool f16_f32 = from.dtype() == f16 && to.dtype() == f32;
    if (f16_f32 && once(name)) widen_half(name, from, to);
    if (f32_bf16 || bf16_f32 || f16_f32) return name;
    return per_lane(name, to, from, 1, convert(Type(from.dtype()), Type(to.dtype())));
  }
  if (!once(name)) return name;
  const std::string F = type(from), T = type(to);
  const std::string head = "static inline " + T + " " + name + "(" + F + " x) { ";
  if (from.dtype() == bf16) {
    HIDET_CHECK(to.dtype() == f32, "bf16 converts through f32, not to ", to.text());
    add(head + "union { uint32_t u; float f; } v; v.u = (uint32_t)x << 16; return v.f; }\n");
  } else if (to.dtype() == bf16) {
    HIDET_CHECK(from.dtype() == f32, "bf16 is made from f32, not from ", from.text());
    add(head +
        "union { float f; uint32_t u; } v; v.f = x; if (x != x) return (uint16_t)((v.u >> 16) | "
        "0x40u); "
        "return (uint16_t)((v.u + 0x7fffu + ((v.u >> 16) & 1u)) >> 16); }\n");
  } else if (from.dtype().is_float() && to.dtype().is_integer()) {
    const DType t = to.dtype();
    const std::string high = "0x1p" + std::to_string(t.is_signed() ? t.bits() - 1 : t.bits());
    const std::string low = t.is_signed() ? "-0x1p" + std::to_string(t.bits() - 1) : "0.0";
    const std::string max = t == u64   ? "18446744073709551615ull"
                            : t == i64 ? "9223372036854775807ll"
                                       : std::to_string(t.max_int());
    const std::string min = t == i64   ? "(-9223372036854775807ll - 1)"
                            : t == i32 ? "(-2147483647 - 1)"
                                       : std::to_string(t.min_int());
    const std::string f = from.dtype() == f64 ? "" : "f";
    const std::string x = from.dtype() == f16 ? "(float)x" : "x";
    add(head + "return x != x ? 0 : " + x + " >= " + high + f + " ? (" + T + ")" + max + " : " + x +
        " <= " + low + f + " ? (" + T + ")" + min + " : (" + T + ")x; }\n");
  } else {
    add(head + "return (" + T + ")x; }\n");
  }
  return name;
}

std::string Prelude::float_binary(BinaryOp op, const Type& t) {
  const std::string scalar = std::string("hidet_") + info(op).name + "_" + t.dtype().name();
  if (once(scalar)) {
    const std::string T = t.dtype().c_name(), f = t.dtype() == f64 ? "" : "f";
    std::string body;
    if (op == BinaryOp::pow) body = "return __builtin_pow" + f + "(a, b);";
    else if (op == BinaryOp::mod) body = "return __builtin_fmod" + f + "(a, b);";
    else if (op == BinaryOp::floordiv) body = "return __builtin_floor" + f + "(a / b);";
    else
      body = T + " r = __builtin_fmod" + f +
             "(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r;";
    add("static inline " + T + " " + scalar + "(" + T + " a, " + T + " b) { " + body + " }\n");
  }
  return t.is_vector() ? per_lane(scalar + lanes_suffix(t.lanes()), t, t, 2, scalar) : scalar;
}

namespace {
/// Scalar text of a primitive whose lanes go through the C library: "x", "a", "b", "c" are arguments.
std::string scalar_math(const std::string& name, const std::string& f) {
  if (name == "rsqrt") return "1.0" + f + " / __builtin_sqrt" + f + "(a)";
  if (name == "sigmoid") return "1.0" + f + " / (1.0" + f + " + __builtin_exp" + f + "(-a))";
  if (name == "round") return "__builtin_rint" + f + "(a)";
  if (name == "abs") return "__builtin_fabs" + f + "(a)";
  if (name == "isnan") return "a != a";
  if (name == "isinf") return "__builtin_isinf(a) != 0";
  // The C library's float version is off by 2.0002 places at 0x1.01cb98p+0.
  if (name == "acosh" && f == "f") return "(float)__builtin_acosh(a)";
  if (name == "fma") return "__builtin_fma" + f + "(a, b, c)";
  return "__builtin_" + name + f + "(a)";
}
/// Vector text where the compiler has one, with $V and $L; else null.
const char* clang_vector(const std::string& name) {
  if (name == "sqrt") return "__builtin_elementwise_sqrt(a)";
  if (name == "floor") return "__builtin_elementwise_floor(a)";
  if (name == "ceil") return "__builtin_elementwise_ceil(a)";
  if (name == "trunc") return "__builtin_elementwise_trunc(a)";
  if (name == "round") return "__builtin_elementwise_roundeven(a)";
  if (name == "abs") return "__builtin_elementwise_abs(a)";
  if (name == "fma") return "__builtin_elementwise_fma(a, b, c)";
  if (name == "rsqrt") return "1.0f / __builtin_elementwise_sqrt(a)";
  return nullptr;
}
}  // namespace

std::string Prelude::algorithm(const std::string& name, int lanes) {
  const std::string count = std::to_string(lanes), V = "f32x" + count, I = "i32x" + count,
                    full = "hidet_" + name + "_" + V;
  if (!once(full)) return full;
  if (lanes > 1) type(Type::vector(i32, lanes));
  else if (once("type f32x1"))
    add("typedef float f32x1 __attribute__((vector_size(4)));\ntypedef int32_t i32x1 "
        "__attribute__((vector_size(4)));\n"
        "static inline f32x1 hidet_fma_f32x1(f32x1 a, f32x1 b, f32x1 c) { f32x1 r = "
        "{__builtin_fmaf(a[0], b[0], c[0])}; return r; }\n");
  const char* wide = lanes % 16 == 0 ? vector_math(name + " of 16s") : nullptr;
  std::string body = wide ? wide : vector_math(name);
  for (const char* inner : {"exp", "clamp", "scale"}) {
    const std::string call = std::string("$") + inner + "(";
    if (body.find(call) != std::string::npos)
      body = replace_all(body, call, algorithm(inner, lanes) + "(");
  }
  body = replace_all(replace_all(body, "$V", V), "$I", I);
  body = replace_all(body, "$fma", "hidet_fma_" + V);
  const std::string rest = name == "clamp"   ? ", float low, float high"
                           : name == "scale" ? ", " + V + " t"
                                             : "";
  add("static inline " + V + " " + full + "(" + V + " x" + rest + ") {\n" + body + "}\n");
  return full;
}

std::string Prelude::math(const std::string& name, const Type& t) {
  const std::string full = "hidet_" + name + "_" + suffix(t);
  const DType d = t.dtype();
  const int arity = name == "fma" ? 3 : 1;
  const bool to_bool = name == "isnan" || name == "isinf";
  if (d.is_integer()) {
    HIDET_CHECK(name == "abs", "'", name, "' of ", t.text());
    const std::string scalar = "hidet_abs_" + std::string(d.name());
    if (once(scalar))
      add(std::string("static inline ") + d.c_name() + " " + scalar + "(" + d.c_name() +
          " a) { return " +
          (d.is_signed() ? std::string("a < 0 ? (") + d.c_name() + ")(0 - (" +
                               unsigned_of(d).c_name() + ")a) : a"
                         : "a") +
          "; }\n");
    return t.is_vector() ? per_lane(full, t, t, 1, scalar) : scalar;
  }
  if (d == f32 && vector_math(name)) {
    if (t.is_vector()) {
      type(t);
      math("fma", t);
      return algorithm(name, t.lanes());
    }
    // One algorithm for vectors and scalars: equal bits whether vectorised or not.
    const std::string one = algorithm(name, 1);
    if (once(full))
      add("static inline float " + full + "(float a) { f32x1 v = {a}; return " + one +
          "(v)[0]; }\n");
    return full;
  }
  const std::string scalar = "hidet_" + name + "_" + d.name();
  const std::string T = d.c_name(), R = to_bool ? "bool" : T;
  if (once(scalar)) {
    std::string params;
    for (int i = 0; i < arity; i++)
      params += (i ? ", " : "") + T + " " + std::string(1, static_cast<char>('a' + i));
    add("static inline " + R + " " + scalar + "(" + params + ") { return " +
        scalar_math(name, d == f64 ? "" : "f") + "; }\n");
  }
  if (!t.is_vector()) return scalar;
  const Type result = to_bool ? Type::vector(boolean, t.lanes()) : t;
  const char* direct = clang_vector(name);
  if (!direct || d == f16) return per_lane(full, result, t, arity, scalar);
  if (once(full)) {
    const std::string V = type(t);
    std::string params, lanes;
    for (int i = 0; i < arity; i++) {
      const std::string p(1, static_cast<char>('a' + i));
      params += (i ? ", " : "") + V + " " + p;
      lanes += (i ? ", " : "") + p + "[i]";
    }
    const std::string head = "static inline " + V + " " + full + "(" + params + ") { ";
    add("#ifdef __clang__\n" + head + "return " + direct + "; }\n#else\n" + head + V +
        " r; for (int i = 0; i < " + std::to_string(t.lanes()) + "; ++i) r[i] = " + scalar + "(" +
        lanes + "); return r; }\n#endif\n");
  }
  return full;
}

}  // namespace hidet::codegen
