// emit_cuda.cpp - device code as CUDA C++. Vectors are a small template with lane-wise operators; halves are
// __half and __nv_bfloat16, computed in float (widen-halves). An assert writes its id to the module's error word.
#include "emitter.h"
#include "multiples.h"

#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hidet::codegen {
using namespace ir;

namespace {

constexpr const char kTypes[] = R"(#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else
#include <cstdint>
#endif
__device__ int* hidet_error_word;
)";

// Meaning as ir/core/fold.h says. Quotients and remainders divide without a condition, by the same divisor, so that the compiler
// makes one division of both.
constexpr const char kHelpers[] =
    R"(template <class T> __device__ __forceinline__ T hidet_max(T a, T b) { return (b > a) | (b != b) ? b : a; }
template <class T> __device__ __forceinline__ T hidet_min(T a, T b) { return (b < a) | (b != b) ? b : a; }
template <class T> __device__ __forceinline__ T hidet_neg(T a) { return T(0ull - (unsigned long long)a); }
template <class T> __device__ __forceinline__ T hidet_divisor(T b) { return b == 0 || (T(-1) < T(0) && b == T(-1)) ? T(1) : b; }
template <class T> __device__ __forceinline__ T hidet_div(T a, T b) {
  T q = T(a / hidet_divisor(b));
  return b == 0 ? T(0) : T(-1) < T(0) && b == T(-1) ? hidet_neg(q) : q;
}
template <class T> __device__ __forceinline__ T hidet_mod(T a, T b) { return T(a % hidet_divisor(b)); }
template <class T> __device__ __forceinline__ T hidet_floordiv(T a, T b) {
  T q = hidet_div(a, b);
  return T(q - (hidet_mod(a, b) != 0 && (a < 0) != (b < 0)));
}
template <class T> __device__ __forceinline__ T hidet_floormod(T a, T b) {
  T r = hidet_mod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
}
template <class T> __device__ __forceinline__ T hidet_shl(T a, T b) { return b >= 0 && b < T(sizeof(T) * 8) ? T((unsigned long long)a << b) : T(0); }
template <class T> __device__ __forceinline__ T hidet_shr(T a, T b) { return b >= 0 && b < T(sizeof(T) * 8) ? T(a >> b) : a < 0 ? T(-1) : T(0); }
template <class T> __device__ __forceinline__ T hidet_pow(T a, T b) {
  if (b < 0) return a == T(1) ? T(1) : a == T(-1) ? (b % 2 ? T(-1) : T(1)) : T(0);
  unsigned long long r = 1, x = (unsigned long long)a;
  for (unsigned long long n = (unsigned long long)b; n; n >>= 1, x *= x)
    if (n & 1) r *= x;
  return T(r);
}
template <class T> __device__ __forceinline__ T hidet_abs(T a) { return a < 0 ? hidet_neg(a) : a; }
__device__ __forceinline__ float hidet_abs(float a) { return fabsf(a); }
__device__ __forceinline__ double hidet_abs(double a) { return fabs(a); }
template <class To, class From> __device__ __forceinline__ To hidet_saturate(From x, double low, double high, To min, To max) {
  return x != x ? To(0) : x >= From(high) ? max : x <= From(low) ? min : To(x);
}
__device__ __forceinline__ float hidet_floormod_f(float a, float b) { float r = fmodf(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
__device__ __forceinline__ double hidet_floormod_f(double a, double b) { double r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
)";

// The bits of a value as another type of the same size.
constexpr const char kBits[] =
    R"(template <class To, class From> __device__ __forceinline__ To hidet_bits(const From& x) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To r;
  memcpy(&r, &x, sizeof r);
  return r;
}
)";

// Whole vectors where the address allows it.
constexpr const char kVectors[] = R"(template <class T, int N> struct hidet_vec { T v[N]; };
template <class T, int N> struct __align__(sizeof(T) * N) hidet_pack { T v[N]; };
template <class T, int N> __device__ __forceinline__ hidet_vec<T, N> hidet_load(const T* p, bool whole) {
  hidet_vec<T, N> r;
  if (whole) {
    hidet_pack<T, N> q = *(const hidet_pack<T, N>*)p;
    for (int i = 0; i < N; ++i) r.v[i] = q.v[i];
  } else {
    for (int i = 0; i < N; ++i) r.v[i] = p[i];
  }
  return r;
}
template <class T, int N> __device__ __forceinline__ void hidet_store(T* p, hidet_vec<T, N> x, bool whole) {
  if (whole) {
    hidet_pack<T, N> q;
    for (int i = 0; i < N; ++i) q.v[i] = x.v[i];
    *(hidet_pack<T, N>*)p = q;
  } else {
    for (int i = 0; i < N; ++i) p[i] = x.v[i];
  }
}
)";

std::string assert_text(const Assert& a) {
  return Error(ErrorCode::usage, a.message, a.loc.text()).what();
}

class CudaEmitter final : public Emitter {
 public:
  CudaEmitter(const Module& m, const EmitOptions& o)
      : Emitter(m, o), asserts_(assert_messages(m)) {}

  std::string run() {
    std::string prototypes;
    bool any = false;
    swizzles_ = uses_swizzled_tiles(module_);
    for (const GlobalVar& g : module_.globals)
      if (g.on_cuda) global(g);
    std::string globals = std::move(out_);
    out_.clear();
    for (const Function& f : module_.functions) {
      if (!is_cuda(f.kind)) continue;
      any = true;
      if (f.kind == FuncKind::cuda_internal) prototypes += signature(f) + ";\n";
      dynamic_offset_ = 0;
      exit_ = f.kind == FuncKind::cuda_internal ? "asm volatile(\"exit;\"); " : "";
      no_value_ = f.returns.is_void() ? "" : " " + type(f.returns) + "()";
      multiples_ = Multiples(f);
      open(signature(f) + " {");
      if (f.body) stmt(f.body);
      close();
    }
    if (!any) return "";
    std::string head = kTypes;
    if (halves_) head = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + head;
    head += kHelpers;
    if (vectors_ || !helpers_.empty()) head += vectors();
    if (bits_ || !helpers_.empty()) head += kBits;
    for (const std::string& helper : helpers_) head += helper;
    return head + lane_functions_ + globals + prototypes + out_;
  }

 private:
  /// The templates of vectors. An alignment is a power of two: vectors of other sizes are moved by elements.
  std::string vectors() const {
    std::string text = kVectors;
    const std::string whole = "__align__(sizeof(T) * N)";
    if (odd_vectors_)
      text.replace(text.find(whole), whole.size(),
                   "__align__(N & (N - 1) ? sizeof(T) : sizeof(T) * N)");
    return text;
  }
  std::string type(const Type& t) override {
    switch (t.tag()) {
      case Type::Tag::none: return "void";
      case Type::Tag::pointer: return type(t.pointee()) + "*";
      case Type::Tag::tensor: return type(Type(t.dtype())) + "*";
      case Type::Tag::string: return "const char*";
      case Type::Tag::vector:
        vectors_ = true;
        odd_vectors_ = odd_vectors_ || (t.lanes() & (t.lanes() - 1)) != 0;
        return "hidet_vec<" + type(Type(t.dtype())) + ", " + std::to_string(t.lanes()) + ">";
      case Type::Tag::scalar: break;
    }
    if (t.dtype() == f16 || t.dtype() == bf16) halves_ = true;
    return t.dtype() == f16 ? "__half" : t.dtype() == bf16 ? "__nv_bfloat16" : t.dtype().c_name();
  }
  std::string signature(const Function& f) {
    std::string params;
    for (const VarRef& p : f.params)
      params += (params.empty() ? "" : ", ") + parameter_type(f, p->type) +
                (f.no_alias && p->type.is_pointer() ? " __restrict__ " : " ") + names_.of(*p);
    if (f.kind == FuncKind::cuda_internal)
      return "static __device__ __forceinline__ " + type(f.returns) + " " + function_name(f.name) +
             "(" + params + ")";
    return "extern \"C\" __global__ void " + bounds(f) + function_name(f.name) + "(" + params + ")";
  }
  /// A tensor map stays where the launch put it: copies take its address.
  std::string parameter_type(const Function& f, const Type& t) {
    if (t != tensor_map_type()) return type(t);
    need(find_primitive("tma_load")->helper);
    return f.kind == FuncKind::cuda_kernel ? "const __grid_constant__ hidet_tensor_map"
                                           : "const hidet_tensor_map&";
  }
  static std::string bounds(const Function& f) {
    int64_t threads = 1;
    for (const Expr& e : f.launch.block) {
      int64_t n;
      if (!is_const_int(e, &n)) return "";
      threads *= n;
    }
    return "__launch_bounds__(" + std::to_string(threads) +
           (f.launch.min_blocks ? ", " + std::to_string(f.launch.min_blocks) : "") + ") ";
  }
  void global(const GlobalVar& g) {
    int64_t n = 1;
    if (g.var->type.is_tensor()) is_const_int(g.var->type.tensor_info().shape.at(0), &n);
    std::string init;
    const DType t = g.var->type.dtype();
    for (double v : g.init) init += (init.empty() ? "" : ", ") + initial(v, t);
    line("__device__ " + type(Type(g.var->type.dtype())) + " " + names_.of(*g.var) +
         (g.var->type.is_tensor() ? "[" + std::to_string(std::max<int64_t>(n, 1)) + "]" : "") +
         (init.empty() ? "" : " = {" + init + "}") + ";");
  }

  /// Halves by their bits: a variable in device memory takes no call.
  std::string initial(double v, DType t) {
    const std::string raw = t == f16 ? "__half_raw{" : t == bf16 ? "__nv_bfloat16_raw{" : "";
    if (raw.empty()) return expr(make_const(v, t));
    return raw + std::to_string(t == f16 ? f64_to_f16(v) : f64_to_bf16(v)) + "}";
  }

  void special(const Stmt& s) override {
    if (const Return* r = as<Return>(s))
      return line(r->value ? "return " + expr(r->value) + ";" : "return;");
    if (const Assert* a = as<Assert>(s)) {
      const auto at = std::find(asserts_.begin(), asserts_.end(), assert_text(*a));
      return line("if (!(" + expr(a->cond) + ")) { *(volatile int*)hidet_error_word = " +
                  std::to_string(at - asserts_.begin() + 1) + "; " + exit_ + "return" + no_value_ +
                  "; }");
    }
    if (const DeclTensor* d = as<DeclTensor>(s)) return tensor(*d);
    throw Error(
        ErrorCode::usage,
        std::string("a '") + kind_name(s->kind) + "' statement is not available in CUDA functions",
        s->loc.text());
  }
  void tensor(const DeclTensor& d) {
    const TensorInfo& info = d.var->type.tensor_info();
    int64_t n = 0;
    const bool fixed = is_const_int(info.shape.at(0), &n);
    const std::string t = type(Type(info.dtype)), &name = names_.of(*d.var);
    if (info.scope == Scope::dynamic_shared) {
      line("extern __shared__ __align__(" + std::string(swizzles_ ? "1024" : "128") +
           ") unsigned char hidet_dynamic_shared[];");
      // One behind the other, each aligned to 128 bytes.
      line(t + "* " + name + " = (" + t + "*)(hidet_dynamic_shared + " +
           std::to_string(dynamic_offset_) + ");");
      dynamic_offset_ += (info.dtype.bytes_of(n) + 127) / 128 * 128;
      return;
    }
    HIDET_REQUIRE(fixed, ErrorCode::usage, d.loc.text(), "the tensor '", d.var->name, "' in ",
                  scope_name(info.scope), " memory needs a constant shape");
    const bool tile = swizzles_ && info.dtype.bytes_of(n) % kSwizzledTile == 0;
    const std::string align = info.scope != Scope::shared ? ""
                              : tile                      ? "__shared__ __align__(1024) "
                                                          : "__shared__ __align__(128) ";
    line(align + t + " " + name + "[" + std::to_string(std::max<int64_t>(n, 1)) + "];");
  }

  Text float_imm(const FloatImm& f) override {
    const DType t = f.type.dtype();
    const std::string s = t == f64 ? "" : "f";
    std::string out;
    char text[64];
    if (std::isnan(f.value))
      out = t == f64 ? "__longlong_as_double(0x7ff8000000000000ll)" : "__int_as_float(0x7fffffff)";
    else if (std::isinf(f.value))
      out = t == f64 ? (f.value < 0 ? "__longlong_as_double(0xfff0000000000000ull)"
                                    : "__longlong_as_double(0x7ff0000000000000ll)")
                     : (f.value < 0 ? "__int_as_float(0xff800000u)" : "__int_as_float(0x7f800000)");
    else {
      std::snprintf(text, sizeof text, "%a", f.value);
      out = text + s;
      if (std::signbit(f.value)) out = "(" + out + ")";
    }
    if (t == f16) return {"__float2half_rn(" + out + ")", 15};
    if (t == bf16) return {"__float2bfloat16_rn(" + out + ")", 15};
    return {out, 16};
  }

  /// A function that applies scalar text lane by lane; returns its call. $x0, $x1 ... are lanes of the arguments.
  Text lanewise(const Type& result, const std::vector<Expr>& args, const std::string& scalar) {
    vectors_ = true;
    const std::string name = "hidet_lanes_" + std::to_string(lane_count_++);
    std::string params, call;
    for (size_t i = 0; i < args.size(); i++) {
      params += (i ? ", " : "") + type(args[i]->type) + " a" + std::to_string(i);
      call += (i ? ", " : "") + expr(args[i]);
    }
    std::string body = scalar;
    for (size_t i = 0; i < args.size(); i++) {
      const std::string from = "$x" + std::to_string(i),
                        to = "a" + std::to_string(i) + (args[i]->type.is_vector() ? ".v[i]" : "");
      for (size_t at = 0; (at = body.find(from, at)) != std::string::npos; at += to.size())
        body.replace(at, from.size(), to);
    }
    const std::string key = type(result) + "|" + params + "|" + body;
    auto [it, fresh] = lane_names_.emplace(key, name);
    if (fresh)
      lane_functions_ +=
          "static __device__ __forceinline__ " + type(result) + " " + name + "(" + params +
          ") {\n  " + type(result) + " r;\n#pragma unroll\n  for (int i = 0; i < " +
          std::to_string(result.lanes()) + "; ++i) r.v[i] = " + body + ";\n  return r;\n}\n";
    return {it->second + "(" + call + ")", 15};
  }

  Text unary(const Unary& u) override {
    const std::string c = u.op == UnaryOp::neg ? "-" : u.op == UnaryOp::bit_not ? "~" : "!";
    if (u.type.is_vector()) {
      const bool negates = u.op == UnaryOp::neg && u.type.dtype().is_integer();
      return lanewise(u.type, {u.a}, negates ? "hidet_neg($x0)" : c + "$x0");
    }
    const Text text{c + operand(u.a, 15), 14};
    if (u.type.dtype().is_integer() && u.type.dtype().bits() < 32)
      return {"(" + type(u.type) + ")(" + text.text + ")", 14};
    return text;
  }
  Text binary(const Binary& b) override {
    if (b.a->type.is_vector() || b.b->type.is_vector()) {
      const std::string op =
          operator_text(b.op, b.a->type.dtype(), type(b.type.with_lanes(1)), "$x0", "$x1");
      return lanewise(b.type, {b.a, b.b}, op);
    }
    const BinaryOpInfo& row = info(b.op);
    if (b.a->type.is_pointer() || row.comparison || row.logical) return infix(b, row);
    int64_t right;
    const bool constant = is_const_int(b.b, &right);
    const DType d = b.type.dtype();
    bool plain = b.op <= BinaryOp::mul || (b.op == BinaryOp::div && d.is_float()) ||
                 (b.op >= BinaryOp::bit_and && b.op <= BinaryOp::bit_xor);
    if (!d.is_float() && (b.op == BinaryOp::div || b.op == BinaryOp::mod))
      plain = constant && right != 0 && right != -1;
    if (b.op == BinaryOp::shl || b.op == BinaryOp::shr)
      plain = constant && right >= 0 && right < d.bits();
    if (plain && ((b.op == BinaryOp::shl && d.is_signed()) || (b.op == BinaryOp::mul && d == u16)))
      return {as_unsigned(b.op, d, type(b.type), expr(b.a), expr(b.b)), 15};
    if (plain) {
      const Text t = infix(b, row);
      if (d.is_integer() && d.bits() < 32) return {"(" + type(b.type) + ")(" + t.text + ")", 14};
      return t;
    }
    return {operator_text(b.op, d, type(b.type), expr(b.a), expr(b.b)), 15};
  }
  Text infix(const Binary& b, const BinaryOpInfo& row) {
    return {cat({operand(b.a, row.precedence), " ", row.c, " ", operand(b.b, row.precedence + 1)}),
            row.precedence};
  }
  /// Without signs, since C++ gives signed overflow no meaning; u16 it multiplies as int. Sums, differences and products of scalars
  /// come unsigned where they may pass their type (wrap-integers).
  static std::string as_unsigned(BinaryOp op, DType d, const std::string& t, const std::string& x,
                                 const std::string& y) {
    const std::string u = d.bits() == 64 ? "(uint64_t)(" : "(uint32_t)(";
    return "((" + t + ")(" + u + x + ") " + info(op).c + " " + u + y + ")))";
  }
  static std::string operator_text(BinaryOp op, DType d, const std::string& t, const std::string& x,
                                   const std::string& y) {
    const BinaryOpInfo& row = info(op);
    const std::string f = d == f64 ? "" : "f", args = "(" + x + ", " + y + ")";
    if (d.is_integer() && op <= BinaryOp::mul) return as_unsigned(op, d, t, x, y);
    if (row.comparison || row.logical || op <= BinaryOp::mul ||
        (op >= BinaryOp::bit_and && op <= BinaryOp::bit_xor))
      return "(" + t + ")(" + x + " " + row.c + " " + y + ")";
    if (d.is_float()) {
      if (op == BinaryOp::div) return "(" + x + " / " + y + ")";
      if (op == BinaryOp::pow) return "pow" + f + args;
      if (op == BinaryOp::mod) return "fmod" + f + args;
      if (op == BinaryOp::floordiv) return "floor" + f + "(" + x + " / " + y + ")";
      if (op == BinaryOp::floormod) return "hidet_floormod_f" + args;
    }
    return std::string("hidet_") + row.name + "<" + t + ">" + args;
  }
  Text select(const Select& s) override {
    // One condition for all lanes: only the side taken may read memory.
    if (s.cond->type.is_vector()) return lanewise(s.type, {s.cond, s.a, s.b}, "$x0 ? $x1 : $x2");
    return {cat({operand(s.cond, 4), " ? ", operand(s.a, 3), " : ", operand(s.b, 3)}), 3};
  }
  Text cast(const Cast& c) override {
    if (c.how == CastKind::pointer) return {cat({"(", type(c.type), ")", operand(c.a, 14)}), 14};
    if (c.how == CastKind::bits) {
      bits_ = true;
      return {cat({"hidet_bits<", type(c.type), ">(", expr(c.a), ")"}), 15};
    }
    if (c.type.is_vector())
      return lanewise(c.type, {c.a}, convert(c.a->type.dtype(), c.type.dtype(), "$x0"));
    return {convert(c.a->type.dtype(), c.type.dtype(), expr(c.a)), 15};
  }
  std::string convert(DType from, DType to, const std::string& x) {
    const auto half = [](DType t) { return t == f16 || t == bf16; };
    if (half(from)) {
      halves_ = true;
      const std::string wide = (from == f16 ? "__half2float(" : "__bfloat162float(") + x + ")";
      return to == f32 ? wide : convert(f32, to, wide);
    }
    if (half(to)) {
      halves_ = true;
      if (from == f64) return (to == f16 ? "__double2half(" : "__double2bfloat16(") + x + ")";
      const std::string narrow = from == f32 ? x : "(float)(" + x + ")";
      return (to == f16 ? "__float2half_rn(" : "__float2bfloat16_rn(") + narrow + ")";
    }
    const std::string t = type(Type(to));
    if (to.is_boolean()) return "((" + x + ") != 0)";
    if (from.is_float() && to.is_integer()) {
      const std::string high = "0x1p" + std::to_string(to.is_signed() ? to.bits() - 1 : to.bits());
      const std::string low = to.is_signed() ? "-0x1p" + std::to_string(to.bits() - 1) : "0.0";
      return "hidet_saturate<" + t + ">(" + x + ", " + low + ", " + high + ", (" + t + ")" +
             int_imm(to.min_int(), to) + ", (" + t + ")" +
             int_imm(static_cast<int64_t>(to.max_int()), to) + ")";
    }
    return "((" + t + ")(" + x + "))";
  }
  /// Whether `lanes` elements from there on are aligned as a whole: true, or the check at run time.
  std::string is_whole(const Expr& base, const Expr& index, const Type& t, const std::string& at) {
    const auto bytes = static_cast<int64_t>(t.dtype().bytes());
    if (std::min(multiples_.of_address(base), multiples_.of(index) * bytes) % (bytes * t.lanes()) ==
        0)
      return "true";
    return "(unsigned long long)(" + at + ") % " + std::to_string(bytes * t.lanes()) + " == 0";
  }
  /// Registers have no addresses: their vectors are written lane by lane.
  static bool in_registers(const Expr& base) {
    const AddressOf* a = as<AddressOf>(base);
    return a && a->tensor->type.tensor_info().scope == Scope::registers;
  }
  /// The first lane of a vector: of consecutive elements, or of one behind a pointer to vectors.
  std::string lanes_at(const Expr& base, const Expr& index) {
    const std::string at = cat({operand(base, 12), " + ", operand(index, 13)});
    const bool of_vectors = base->type.is_pointer() && base->type.pointee().is_vector();
    return of_vectors ? "(" + type(Type(base->type.pointee().dtype())) + "*)(" + at + ")" : at;
  }
  Text vector_load(const Load& l) override {
    vectors_ = true;
    if (in_registers(l.base)) {
      std::string lanes;
      for (int i = 0; i < l.type.lanes(); i++)
        lanes += cat({(i ? ", " : ""), operand(l.base, 15), "[", operand(l.index, 13), " + ",
                      std::to_string(i), "]"});
      return {type(l.type) + "{{" + lanes + "}}", 15};
    }
    const std::string at = lanes_at(l.base, l.index);
    return {"hidet_load<" + type(l.type.with_lanes(1)) + ", " + std::to_string(l.type.lanes()) +
                ">(" + at + ", " + is_whole(l.base, l.index, l.type, at) + ")",
            15};
  }
  std::string vector_store(const Store& s) override {
    vectors_ = true;
    const Type& t = s.value->type;
    if (in_registers(s.base)) {
      const std::string x = names_.fresh("lanes");
      std::string lanes = cat({"{ const ", type(t), " ", x, " = ", expr(s.value), ";"});
      for (int i = 0; i < t.lanes(); i++)
        lanes += cat({" ", operand(s.base, 15), "[", operand(s.index, 13), " + ", std::to_string(i),
                      "] = ", x, ".v[", std::to_string(i), "];"});
      return lanes + " }";
    }
    const std::string at = lanes_at(s.base, s.index);
    return cat({"hidet_store<", type(t.with_lanes(1)), ", ", std::to_string(t.lanes()), ">(", at,
                ", ", expr(s.value), ", ", is_whole(s.base, s.index, t, at), ");"});
  }
  Text broadcast(const Broadcast& b) override { return lanewise(b.type, {b.a}, "$x0"); }
  Text make_vector(const MakeVector& m) override {
    std::string lanes;
    for (const Expr& e : m.lanes) lanes += (lanes.empty() ? "" : ", ") + expr(e);
    return {type(m.type) + "{{" + lanes + "}}", 15};
  }
  Text lane(const Lane& l) override {
    return {cat({operand(l.vector, 15), ".v[", expr(l.index), "]"}), 15};
  }
  Text call(const Call& c) override {
    std::string args;
    for (const Expr& a : c.args) args += (args.empty() ? "" : ", ") + expr(a);
    return {function_name(c.callee) + "(" + args + ")", 15};
  }
  Text prim(const Prim& p) override {
    std::string args;
    for (const Expr& a : p.args) {
      const bool wide = p.name == "printf" && a->type.is_scalar() && a->type.dtype().is_integer() &&
                        a->type.dtype().bits() == 64;
      args += (args.empty() ? "" : ", ") + std::string(wide ? "(long long)" : "") + expr(a);
    }
    if (p.name == "printf") return {"printf(" + args + ")", 15};
    const Primitive* row = find_primitive(p.name);
    HIDET_REQUIRE(row && row->cuda, ErrorCode::usage, p.loc.text(), "the primitive '", p.name,
                  "' is not available on CUDA");
    if (row->helper) need(row->helper);
    if (row->generate) need(row->generate(p.attrs));
    if (p.type.is_vector() && !row->helper) return vector_prim(p, *row);
    if (p.name == "abs") return {"hidet_abs(" + args + ")", 15};
    return {expand(row->cuda, p), 15};
  }
  void need(const std::string& helper) {
    if (std::find(helpers_.begin(), helpers_.end(), helper) == helpers_.end())
      helpers_.push_back(helper);
  }
  Text vector_prim(const Prim& p, const Primitive& row) {
    std::string text = p.name == "abs" ? "hidet_abs($x0)" : row.cuda;
    const std::string s = p.args[0]->type.dtype() == f64 ? "" : "f";
    for (size_t at = 0; (at = text.find("$s", at)) != std::string::npos;) text.replace(at, 2, s);
    for (size_t i = 0; i < p.args.size(); i++) {
      const std::string from = "$" + std::to_string(i), to = "$x" + std::to_string(i);
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    }
    return lanewise(p.type, p.args, text);
  }
  std::string lane_functions_;
  std::map<std::string, std::string> lane_names_;
  int lane_count_ = 0;
  const std::vector<std::string> asserts_;  ///< messages, by number less 1
  std::string no_value_;                    ///< what a failed assert of the function returns
  std::string exit_;            ///< ends the thread there, where return would go on in a caller
  int64_t dynamic_offset_ = 0;  ///< bytes of dynamic shared memory that the function has declared
  std::vector<std::string> helpers_;  ///< of the primitives used
  bool swizzles_ = false;             ///< copies and products swizzle addresses: tiles of 1 KiB
  bool halves_ = false, vectors_ = false, odd_vectors_ = false, bits_ = false;
  Multiples multiples_;  ///< of the function that is written
};

}  // namespace

std::vector<std::string> assert_messages(const Module& module) {
  std::vector<std::string> texts;
  for (const Function& f : module.functions)
    if (is_cuda(f.kind) && f.body)
      visit_all(f.body, [&](const Node& n) {
        const Assert* a = as<Assert>(&n);
        if (a && std::find(texts.begin(), texts.end(), assert_text(*a)) == texts.end())
          texts.push_back(assert_text(*a));
      });
  return texts;
}

std::string emit_cuda(const Module& module, const EmitOptions& options) {
  std::string text;
  with_large_stack([&] { text = CudaEmitter(module, options).run(); });
  return text;
}

}  // namespace hidet::codegen
