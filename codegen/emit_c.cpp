// emit_c.cpp - host code as C17 with GNU vectors: bodies, thunks and plain entries as abi.h says.
// A function that can fail takes the context and returns a status; its result goes through `hidet_out`.
#include "emitter.h"
#include "prelude.h"

#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <cmath>
#include <cstdio>

namespace hidet::codegen {
using namespace ir;

const std::string& abi_declarations() {
  static const std::string text = R"(typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef _Bool bool;
typedef struct hidet_ctx hidet_ctx;
typedef struct hidet_abi hidet_abi;
typedef union { int64_t i; double d; float f; void* p; } hidet_value;
typedef int32_t (*hidet_parallel_body)(hidet_ctx*, void*, int64_t, int64_t);
typedef struct { uint64_t size; const char* kernel; int64_t grid[3], block[3], cluster[3]; int64_t shared_bytes; void** args; int32_t index; } hidet_cuda_launch;
struct hidet_abi {
  uint64_t size;
  void* module;
  int32_t (*raise)(hidet_ctx*, int32_t, const char*);
  int32_t (*parallel_for)(hidet_ctx*, int64_t, int64_t, hidet_parallel_body, void*);
  void* (*scratch)(hidet_ctx*, int32_t, int64_t);
  int32_t (*cuda_launch)(hidet_ctx*, const hidet_cuda_launch*);
  int32_t (*print)(hidet_ctx*, const char*, ...);
  void* (*extern_function)(hidet_ctx*, int32_t);
  hidet_ctx* (*default_context)(const hidet_abi*);
  void* (*cuda_global)(hidet_ctx*, const char*);
  int32_t (*copy)(hidet_ctx*, int32_t, void*, const void*, int64_t);
  int32_t (*fill_zero)(hidet_ctx*, int32_t, void*, int64_t);
  int32_t (*tensor_map)(hidet_ctx*, void*, int32_t, int32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*, int32_t, int32_t, int32_t, int32_t);
  int64_t (*threads)(void);
};
#define HIDET_EXPORT __attribute__((visibility("default")))
)";
  return text;
}

const std::string& table_definition() {
  static const std::string text = R"(#define H hidet_table
__attribute__((visibility("hidden"))) const hidet_abi* hidet_table;
HIDET_EXPORT void hidet_module_init(const hidet_abi* table) { hidet_table = table; }
HIDET_EXPORT uint64_t hidet_abi_size(void) { return sizeof(hidet_abi); }
)";
  return text;
}

namespace {

/// In a unit that is one kernel of a program: the table is another unit's.
constexpr const char kTableReference[] = R"(#define H hidet_table
extern __attribute__((visibility("hidden"))) const hidet_abi* hidet_table;
)";

bool on_host(const Function& f) { return !is_cuda(f.kind); }

/// True where `body` has stores that other threads see after a fence alone.
bool passes_caches(const Stmt& body) {
  bool found = false;
  visit_all(body, [&](const Node& n) {
    const Prim* p = as<Prim>(&n);
    found = found || (p && p->name == "store_cs");
  });
  return found;
}

/// Functions that need the context: they assert, launch, print, run in parallel, take scratch memory,
/// call extern functions, or call such a function; public ones always.
std::set<std::string> fallible_functions(const Module& module) {
  std::set<std::string> fallible, externs;
  for (const ExternFunc& f : module.externs) externs.insert(f.name);
  std::map<std::string, std::set<std::string>> callees;
  for (const Function& f : module.functions) {
    if (!on_host(f)) continue;
    if (f.kind == FuncKind::public_) fallible.insert(f.name);
    visit_all(f.body, [&](const Node& n) {
      const For* loop = as<For>(&n);
      const Prim* p = as<Prim>(&n);
      if (n.kind == Kind::Assert || n.kind == Kind::Launch ||
          (loop && loop->how == LoopKind::parallel) ||
          (p && (p->name == "scratch" || p->name == "printf" || p->name == "refuse" ||
                 p->name == "tensor_map")))
        fallible.insert(f.name);
      if (const Call* c = as<Call>(&n)) {
        callees[f.name].insert(c->callee);
        if (externs.count(c->callee)) fallible.insert(f.name);
      }
    });
  }
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [caller, list] : callees)
      for (const std::string& callee : list)
        if (fallible.count(callee)) grew |= fallible.insert(caller).second;
  }
  return fallible;
}

class CEmitter final : public Emitter {
 public:
  CEmitter(const Module& m, const EmitOptions& o)
      : Emitter(m, o), fallible_(fallible_functions(m)) {
    for (const GlobalVar& g : m.globals) (void)names_.of(*g.var);
  }

  std::string run() {
    for (const GlobalVar& g : module_.globals)
      if (!g.on_cuda) global(g);
    std::string prototypes, bodies;
    for (const Function& f : module_.functions)
      if (on_host(f)) {
        prototypes += signature(f) + ";\n";
        body(f);
      }
    bodies = std::move(out_);
    out_.clear();
    for (const Function& f : module_.functions)
      if (f.kind == FuncKind::public_) entries(f);
    return abi_declarations() +
           (options_.kernel_unit ? std::string(kTableReference) : table_definition()) +
           prelude_.text() + globals_ + prototypes + bodies + out_;
  }

 private:
  // --- types and declarations
  std::string type(const Type& t) override {
    switch (t.tag()) {
      case Type::Tag::none: return "void";
      case Type::Tag::pointer: return type(t.pointee()) + "*";
      case Type::Tag::tensor: return type(Type(t.dtype())) + "*";
      case Type::Tag::string: return "const char*";
      default: return prelude_.type(t);
    }
  }
  std::string parameters(const Function& f, bool with_context) {
    std::string out = with_context ? "hidet_ctx* ctx" : "";
    for (const VarRef& p : f.params) {
      const bool restricted = f.no_alias && p->type.is_pointer();
      out += (out.empty() ? "" : ", ") + type(p->type) + (restricted ? " restrict " : " ") +
             names_.of(*p);
    }
    return out;
  }
  std::string signature(const Function& f) {
    if (!fallible_.count(f.name)) {
      const std::string p = parameters(f, false);
      return "static " + type(f.returns) + " " + function_name(f.name) + "(" +
             (p.empty() ? "void" : p) + ")";
    }
    const std::string out = f.returns.is_void() ? "" : ", " + type(f.returns) + "* hidet_out";
    const bool shared = options_.kernel_unit && f.kind == FuncKind::public_;
    return (shared ? "int32_t " : "static int32_t ") + function_name(f.name) + "(" +
           parameters(f, true) + out + ")";
  }
  void body(const Function& f) {
    current_ = &f;
    const std::string before = std::move(out_);
    out_.clear();
    outlined_.clear();
    open(signature(f) + " {");
    if (f.body) fence_at_end(f.body);
    if (f.body) stmt(f.body);
    if (fallible_.count(f.name)) line("return 0;");
    close();
    out_ = before + outlined_ + out_;
  }
  /// Whatever way the function that begins here is left.
  void fence_at_end(const Stmt& body) {
    if (passes_caches(body))
      line("__attribute__((cleanup(" + prelude_.store_fence() + "))) const char hidet_left = 0;");
  }
  void global(const GlobalVar& g) {
    const Type& t = g.var->type;
    int64_t count = 1;
    if (t.is_tensor())
      for (const Expr& e : t.tensor_info().shape) {
        int64_t n = 0;
        HIDET_REQUIRE(is_const_int(e, &n), ErrorCode::usage, g.var->loc.text(), "global variable '",
                      g.var->name, "' needs a constant shape");
        count *= n;
      }
    std::string init;
    for (double v : g.init) init += (init.empty() ? "" : ", ") + expr(make_const(v, t.dtype()));
    globals_ += "static const " + type(Type(t.dtype())) + " " + names_.of(*g.var) +
                (t.is_tensor() ? "[" + std::to_string(std::max<int64_t>(count, 1)) + "]" : "") +
                " = {" + (init.empty() ? "0" : init) + "};\n";
  }

  // --- entries of public functions
  void entries(const Function& f) {
    const std::string name = function_name(f.name);
    // After a prefix no name is a word of C: callers find the function as the script calls it.
    const std::string exported = is_plain(f.name) ? f.name : name;
    const bool returns = !f.returns.is_void();
    std::string call, thunk;
    for (size_t i = 0; i < f.params.size(); i++) {
      const Type& t = f.params[i]->type;
      call += ", " + names_.of(*f.params[i]);
      thunk += ", " + from_value(t, "hidet_args[" + std::to_string(i) + "]");
    }
    const std::string p = parameters(f, false);
    open("HIDET_EXPORT int32_t hidet_call_" + exported +
         "(hidet_ctx* ctx, hidet_value* hidet_args) {");
    if (f.params.empty() && !returns) line("(void)hidet_args;");
    if (returns) {
      line(type(f.returns) + " hidet_result;");
      line("int32_t hidet_status = " + name + "(ctx" + thunk + ", &hidet_result);");
      line("if (hidet_status) return hidet_status;");
      line("hidet_args[" + std::to_string(f.params.size()) + "]." + value_field(f.returns) +
           " = hidet_result;");
      line("return 0;");
    } else {
      line("return " + name + "(ctx" + thunk + ");");
    }
    close();
    if (options_.kernel_unit) return;
    open("HIDET_EXPORT " + type(f.returns) + " hidet_" + exported + "(" + (p.empty() ? "void" : p) +
         ") {");
    if (returns) line(type(f.returns) + " hidet_result = 0;");
    line("(void)" + name + "(H->default_context(H)" + call +
         (returns ? ", &hidet_result);" : ");"));
    if (returns) line("return hidet_result;");
    close();
  }
  static bool is_plain(const std::string& name) {
    return std::all_of(name.begin(), name.end(),
                       [](unsigned char c) { return c == '_' || (c < 128 && std::isalnum(c)); });
  }
  static const char* value_field(const Type& t) {
    if (t.is_pointer() || t.is_tensor()) return "p";
    return t.dtype() == f32 ? "f" : t.dtype() == f64 ? "d" : "i";
  }
  std::string from_value(const Type& t, const std::string& v) {
    const std::string field = v + "." + value_field(t);
    if (t.is_scalar() && t.dtype() == f16)
      return "((union { uint16_t u; _Float16 h; }){(uint16_t)" + field + "}).h";
    return t.is_pointer() || t.is_tensor() ? "(" + type(t) + ")" + field
                                           : "(" + type(t) + ")" + field;
  }

  // --- statements of the dialect
  void special(const Stmt& s) override {
    if (const Return* r = as<Return>(s)) return emit_return(*r);
    if (const Assert* a = as<Assert>(s))
      return line("if (!(" + expr(a->cond) + ")) return H->raise(ctx, 2, " + c_string(a->message) +
                  ");");
    if (const Launch* l = as<Launch>(s)) return emit_launch(*l);
    if (const For* loop = as<For>(s)) return emit_parallel(*loop);
    const DeclTensor& d = *as<DeclTensor>(s);
    int64_t n = 0;
    HIDET_CHECK(d.var->type.tensor_info().shape.size() == 1 &&
                    is_const_int(d.var->type.tensor_info().shape[0], &n),
                "tensor '", d.var->name, "' is not lowered");
    line(type(Type(d.var->type.dtype())) + " " + names_.of(*d.var) + "[" +
         std::to_string(std::max<int64_t>(n, 1)) + "] __attribute__((aligned(64)));");
  }
  void emit_return(const Return& r) {
    const bool fallible = in_parallel_ || fallible_.count(current_->name);
    if (!fallible) return line(r.value ? "return " + expr(r.value) + ";" : "return;");
    if (r.value) line("*hidet_out = " + expr(r.value) + ";");
    line("return 0;");
  }
  void emit_launch(const Launch& l) {
    const Function* kernel = module_.find(l.callee);
    HIDET_CHECK(kernel, "launch of the unknown kernel '", l.callee, "'");
    open("{");
    std::string addresses;
    for (size_t i = 0; i < l.args.size(); i++) {
      const std::string name = "hidet_a" + std::to_string(i);
      line(cat({type(kernel->params[i]->type), " ", name, " = ", expr(l.args[i]), ";"}));
      addresses += (i ? ", " : "") + std::string("&") + name;
    }
    line("void* hidet_pointers[] = {" + (addresses.empty() ? "0" : addresses) + "};");
    const auto extents = [&](const std::vector<Expr>& list, const char* rest) {
      std::string out;
      for (size_t i = 0; i < 3; i++)
        out += (i ? ", " : "") + (i < list.size() ? expr(list[i]) : std::string(rest));
      return "{" + out + "}";
    };
    const std::vector<std::string> kernels = kernel_names(module_);
    size_t index = 0;
    while (kernels[index] != function_name(l.callee)) index++;
    line("hidet_cuda_launch hidet_l = {sizeof(hidet_cuda_launch), " +
         c_string(function_name(l.callee)) + ", " + extents(l.grid, "1") + ", " +
         extents(l.block, "1") + ", " + extents(l.cluster, l.cluster.empty() ? "0" : "1") + ", " +
         (l.shared_bytes ? expr(l.shared_bytes) : "0") + ", hidet_pointers, " +
         std::to_string(index) + "};");
    line("int32_t hidet_status = H->cuda_launch(ctx, &hidet_l);");
    line("if (hidet_status) return hidet_status;");
    close();
  }

  /// The loop's body becomes a function of its own; what it uses from outside travels in a struct.
  void emit_parallel(const For& loop) {
    const std::vector<VarRef> captured = free_variables(loop);
    const std::string base = names_.fresh(function_name(current_->name) + "_loop");
    const std::string closure = "struct " + base + "_closure", v = names_.of(*loop.var),
                      t = type(loop.var->type);
    const std::string begin = names_.fresh("first"), step = names_.fresh("step");
    std::string fields = t + " " + begin + ", " + step + "; ",
                values =
                    "." + begin + " = " + expr(loop.begin) + ", ." + step + " = " + expr(loop.step);
    for (const VarRef& c : captured) {
      fields += type(c->type) + " " + names_.of(*c) + "; ";
      values += ", ." + names_.of(*c) + " = " + names_.of(*c);
    }
    // The body, in a buffer of its own.
    std::string outer = std::move(out_);
    const int outer_indent = std::exchange(indent_, 0);
    const bool outer_parallel = std::exchange(in_parallel_, true);
    out_.clear();
    open("static int32_t " + base +
         "(hidet_ctx* ctx, void* hidet_closure, int64_t hidet_begin, int64_t hidet_end) {");
    line("const " + closure + "* hidet_c = hidet_closure;");
    line("(void)ctx;");
    fence_at_end(loop.body);
    for (const VarRef& c : captured) {
      const bool restricted = current_->no_alias && c->type.is_pointer();
      line(type(c->type) + (restricted ? " restrict " : " ") + names_.of(*c) + " = hidet_c->" +
           names_.of(*c) + ";");
    }
    open("for (int64_t hidet_i = hidet_begin; hidet_i < hidet_end; ++hidet_i) {");
    line(t + " " + v + " = (" + t + ")(hidet_c->" + begin + " + (" + t + ")hidet_i * hidet_c->" +
         step + ");");
    stmt(loop.body);
    close();
    line("return 0;");
    close();
    outlined_ += closure + " { " + fields + "};\n" + out_;
    out_ = std::move(outer);
    indent_ = outer_indent;
    in_parallel_ = outer_parallel;
    open("{");
    // The loop may read what this thread has stored.
    if (passes_caches(current_->body)) line(prelude_.store_fence() + "(0);");
    line(closure + " hidet_c = {" + values + "};");
    const std::string end = operand(loop.end, 13);
    line("int64_t hidet_n = (int64_t)" + end + " - (int64_t)hidet_c." + begin + ";");
    line("hidet_n = hidet_n > 0 ? (hidet_n + hidet_c." + step + " - 1) / hidet_c." + step +
         " : 0;");
    line("int32_t hidet_status = H->parallel_for(ctx, hidet_n, " +
         std::to_string(std::max<int64_t>(loop.grain, 1)) + ", " + base + ", &hidet_c);");
    line("if (hidet_status) return hidet_status;");
    close();
  }
  /// Variables used in the loop's body and defined outside it, in order of first use.
  std::vector<VarRef> free_variables(const For& loop) {
    std::vector<VarRef> used;
    std::set<const Node*> defined{loop.var.get()}, seen;
    for (const GlobalVar& g : module_.globals) defined.insert(g.var.get());
    visit_all(loop.body, [&](const Node& n) {
      if (const DeclVar* d = as<DeclVar>(&n)) defined.insert(d->var.get());
      if (const DeclTensor* d = as<DeclTensor>(&n)) defined.insert(d->var.get());
      if (const For* f = as<For>(&n)) defined.insert(f->var.get());
    });
    visit_all(loop.body, [&](const Node& n) {
      if (const Var* v = as<Var>(&n); v && !defined.count(v) && seen.insert(v).second)
        used.push_back(ref(*v));
    });
    return used;
  }

  // --- expressions of the dialect
  Text float_imm(const FloatImm& f) override {
    const DType t = f.type.dtype();
    char text[64];
    if (t == bf16) return {std::to_string(f32_to_bf16(static_cast<float>(f.value))), 16};
    const std::string s = t == f64 ? "" : "f";
    std::string out;
    if (std::isnan(f.value)) out = "__builtin_nan" + s + "(\"\")";
    else if (std::isinf(f.value))
      out = (f.value < 0 ? "(-__builtin_inf" : "(__builtin_inf") + s + "())";
    else {
      std::snprintf(text, sizeof text, "%a", f.value);
      out = text + s;
      if (std::signbit(f.value)) out = "(" + out + ")";
    }
    return {t == f16 ? "(_Float16)" + out : out, t == f16 ? 14 : 16};
  }
  Text unary(const Unary& u) override {
    const DType t = u.type.dtype();
    const bool vector = u.type.is_vector();
    if (u.op == UnaryOp::logical_not) return {(vector ? "~" : "!") + operand(u.a, 14), 14};
    const std::string text = (u.op == UnaryOp::neg ? "-" : "~") + operand(u.a, 15);
    if (!vector && t.is_integer() && t.bits() < 32)
      return {"(" + type(u.type) + ")(" + text + ")", 14};
    return {text, 14};
  }
  Text infix(const Binary& b, const std::string& c, int precedence) {
    return {cat({operand(b.a, precedence), " ", c, " ", operand(b.b, precedence + 1)}), precedence};
  }
  Text function(const std::string& f, std::initializer_list<Expr> args) {
    std::string out;
    for (const Expr& a : args) out += (out.empty() ? "" : ", ") + expr(a);
    return {f + "(" + out + ")", 15};
  }
  Text binary(const Binary& b) override {
    const BinaryOpInfo& row = info(b.op);
    const Type& t = b.a->type;
    const DType d = t.dtype();
    if (t.is_pointer()) return infix(b, row.c, row.precedence);
    if (row.comparison) {
      if (!t.is_vector()) return infix(b, row.c, row.precedence);
      return {"__builtin_convertvector(" + infix(b, row.c, row.precedence).text + ", " +
                  prelude_.mask(t) + ")",
              15};
    }
    if (row.logical)
      return t.is_vector() ? infix(b, b.op == BinaryOp::logical_and ? "&" : "|",
                                   b.op == BinaryOp::logical_and ? 8 : 6)
                           : infix(b, row.c, row.precedence);
    if (b.op == BinaryOp::min || b.op == BinaryOp::max)
      return function(prelude_.min_max(b.op, t), {b.a, b.b});
    if (d.is_float()) {
      if (b.op <= BinaryOp::div) return infix(b, row.c, row.precedence);
      return function(prelude_.float_binary(b.op, t), {b.a, b.b});
    }
    int64_t right = 0;
    const bool constant = is_const_int(b.b, &right);
    bool plain = b.op <= BinaryOp::mul || (b.op >= BinaryOp::bit_and && b.op <= BinaryOp::bit_xor);
    if (b.op == BinaryOp::div || b.op == BinaryOp::mod)
      plain = constant && right != 0 && right != -1;
    if (b.op == BinaryOp::shl || b.op == BinaryOp::shr)
      plain = constant && right >= 0 && right < d.bits();
    if (!plain) return function(prelude_.lanewise(b.op, t), {b.a, b.b});
    Text text = infix(b, row.c, row.precedence);
    if (!t.is_vector() && d.is_integer() && d.bits() < 32)
      return {"(" + type(t) + ")(" + text.text + ")", 14};
    if (b.op == BinaryOp::shl && !t.is_vector() && d.is_signed()) {
      const std::string u = d == i64 ? "uint64_t" : "uint32_t";
      return {cat({"(", type(t), ")((", u, ")", operand(b.a, 14), " << ", operand(b.b, 12), ")"}),
              14};
    }
    return text;
  }
  Text select(const Select& s) override {
    if (!s.type.is_vector())
      return {cat({operand(s.cond, 4), " ? ", operand(s.a, 3), " : ", operand(s.b, 3)}), 3};
    if (s.cond->type.is_vector()) return function(prelude_.select(s.type), {s.cond, s.a, s.b});
    return {cat({operand(s.cond, 4), " ? ", operand(s.a, 3), " : ", operand(s.b, 3)}), 3};
  }
  Text cast(const Cast& c) override {
    const Type &from = c.a->type, &to = c.type;
    if (c.how == CastKind::pointer) return {cat({"(", type(to), ")", operand(c.a, 14)}), 14};
    if (c.how == CastKind::bits) {
      if (from.is_vector() && to.is_vector())
        return {cat({"(", type(to), ")", operand(c.a, 14)}), 14};
      return {cat({"((union { ", type(from), " hidet_from; ", type(to), " hidet_to; }){", expr(c.a),
                   "}).hidet_to"}),
              15};
    }
    return from.is_vector() ? vector_cast(c) : scalar_cast(c);
  }
  Text scalar_cast(const Cast& c) {
    const DType from = c.a->type.dtype(), to = c.type.dtype();
    if (to.is_boolean()) return {operand(through_f32(c.a), 10) + " != 0", 9};
    if (from == bf16 && to != f32) return scalar_text(make_cast(make_cast(c.a, Type(f32)), c.type));
    if (to == bf16 && from != f32) return scalar_text(make_cast(make_cast(c.a, Type(f32)), c.type));
    if (from == bf16 || to == bf16 || (from.is_float() && to.is_integer()))
      return function(prelude_.convert(c.a->type, c.type), {c.a});
    return {cat({"(", type(c.type), ")", operand(c.a, 14)}), 14};
  }
  Text scalar_text(const Expr& e) { return {expr(e), 1}; }
  static Expr through_f32(const Expr& e) {
    return e->type.dtype() == bf16 ? make_cast(e, Type(f32)) : e;
  }
  Text vector_cast(const Cast& c) {
    const DType from = c.a->type.dtype(), to = c.type.dtype();
    if (to.is_boolean()) {
      if (from.is_boolean()) return {expr(c.a), 1};
      const bool half = from == bf16 || from == f16;
      const Expr a = half ? make_cast(c.a, c.a->type.with_dtype(f32)) : c.a;
      return {
          cat({"__builtin_convertvector(", operand(a, 10), " != 0, ", prelude_.mask(c.type), ")"}),
          15};
    }
    if ((from == bf16 && to != f32) || (to == bf16 && from != f32))
      return {expr(make_cast(make_cast(c.a, c.a->type.with_dtype(f32)), c.type)), 1};
    if (from == bf16 || to == bf16 || (from == f16 && to == f32) ||
        (from.is_float() && to.is_integer()))
      return function(prelude_.convert(c.a->type, c.type), {c.a});
    return {
        cat({"__builtin_convertvector(", (from.is_boolean() ? operand(c.a, 8) + " & 1" : expr(c.a)),
             ", ", type(c.type), ")"}),
        15};
  }
  Text vector_load(const Load& l) override {
    const std::string at = cat({"*(const ", prelude_.unaligned(l.type), "*)(", operand(l.base, 12),
                                " + ", operand(l.index, 13), ")"});
    // Booleans lie in memory as 0 and 1, in vectors as 0 and -1.
    if (l.type.dtype().is_boolean()) return {"(" + type(l.type) + ")(-(" + at + "))", 14};
    return {"(" + type(l.type) + ")" + at, 14};
  }
  std::string vector_store(const Store& s) override {
    const std::string value =
        s.value->type.dtype().is_boolean() ? "-(" + expr(s.value) + ")" : expr(s.value);
    return cat({"*(", prelude_.unaligned(s.value->type), "*)(", operand(s.base, 12), " + ",
                operand(s.index, 13), ") = ", value, ";"});
  }
  Text broadcast(const Broadcast& b) override {
    if (b.type.dtype().is_boolean())
      return {cat({"((", type(b.type), "){} - (int8_t)", operand(b.a, 14), ")"}), 16};
    // -0.0f + x keeps the sign of zero; the compiler folds it into a broadcast.
    const std::string lanes = std::to_string(b.type.lanes());
    const std::string name = splat(b.type);
    return {name + "(" + expr(b.a) + ")", 15};
  }
  std::string splat(const Type& t) {
    const std::string T = type(t), name = "hidet_splat_" + T;
    if (splats_.insert(name).second) {
      std::string lanes;
      for (int i = 0; i < t.lanes(); i++) lanes += (i ? ", x" : "x");
      globals_ += "static inline " + T + " " + name + "(" + type(Type(t.dtype())) +
                  " x) { return (" + T + "){" + lanes + "}; }\n";
    }
    return name;
  }
  /// Lanes of at most two vector variables by number: C compilers see a shuffle in it, in a list of lanes not always.
  std::optional<Text> shuffle(const MakeVector& m) {
    const size_t n = m.lanes.size();
    if (m.type.dtype().is_boolean() || (n & (n - 1)) != 0) return std::nullopt;
    Expr a, b;
    std::string numbers;
    for (const Expr& e : m.lanes) {
      const Lane* l = as<Lane>(e);
      int64_t at = 0;
      if (!l || l->vector->kind != Kind::Var || !is_const_int(l->index, &at)) return std::nullopt;
      if (!a) a = l->vector;
      if (!same(l->vector, a) && !b) b = l->vector;
      if (!same(l->vector, a) && !same(l->vector, b)) return std::nullopt;
      if (l->vector->type != a->type) return std::nullopt;
      numbers += ", " + std::to_string(same(l->vector, a) ? at : at + a->type.lanes());
    }
    return Text{"__builtin_shufflevector(" + expr(a) + ", " + expr(b ? b : a) + numbers + ")", 15};
  }
  Text make_vector(const MakeVector& m) override {
    if (std::optional<Text> text = shuffle(m)) return *text;
    std::string lanes;
    const bool boolean = m.type.dtype().is_boolean();
    for (const Expr& e : m.lanes)
      lanes += (lanes.empty() ? "" : ", ") + (boolean ? "-(int8_t)" + operand(e, 14) : expr(e));
    return {"((" + type(m.type) + "){" + lanes + "})", 16};
  }
  Text lane(const Lane& l) override {
    const std::string at = cat({operand(l.vector, 15), "[", expr(l.index), "]"});
    return l.type.dtype().is_boolean() ? Text{"(" + at + " != 0)", 16} : Text{at, 15};
  }
  Text call(const Call& c) override {
    std::string args;
    for (const Expr& a : c.args) args += (args.empty() ? "" : ", ") + expr(a);
    for (size_t i = 0; i < module_.externs.size(); i++)
      if (module_.externs[i].name == c.callee) return extern_call(i, args);
    const std::string& name = function_name(c.callee);
    if (!fallible_.count(c.callee)) return {name + "(" + args + ")", 15};
    const std::string full = "ctx" + (args.empty() ? "" : ", " + args);
    if (c.type.is_void())
      return {"({ int32_t hidet_s = " + name + "(" + full + "); if (hidet_s) return hidet_s; })",
              16};
    return {"({ " + type(c.type) + " hidet_r; int32_t hidet_s = " + name + "(" + full +
                ", &hidet_r); if (hidet_s) return hidet_s; hidet_r; })",
            16};
  }
  Text extern_call(size_t index, const std::string& args) {
    const ExternFunc& f = module_.externs[index];
    std::string params;
    for (const Type& t : f.params) params += (params.empty() ? "" : ", ") + type(t);
    return {"((" + type(f.returns) + " (*)(" + (params.empty() ? "void" : params) +
                "))H->extern_function(ctx, " + std::to_string(index) + "))(" + args + ")",
            15};
  }
  Text prim(const Prim& p) override {
    if (p.name == "printf") return print(p);
    if (p.name == "refuse") return refuse(p);
    if (p.name == "tensor_map") return tensor_map(p);
    if (p.name == "scratch")
      return {cat({"({ void* hidet_m = H->scratch(ctx, ", expr(p.args[0]), ", ", expr(p.args[1]),
                   "); if (!hidet_m) return 6; (", type(p.type), ")hidet_m; })"}),
              16};
    const Primitive* row = find_primitive(p.name);
    HIDET_REQUIRE(row && row->c, ErrorCode::usage, p.loc.text(), "the primitive '", p.name,
                  "' is not available on the CPU");
    if (std::string(row->c) != "@") return {expand(row->c, p), 15};
    std::string args;
    for (const Expr& a : p.args) args += (args.empty() ? "" : ", ") + expr(a);
    return {helper(p) + "(" + args + ")", 15};
  }
  /// The helper that a row "@" calls.
  std::string helper(const Prim& p) {
    const Type& first = p.args.at(0)->type;
    if (p.name.starts_with("atomic_")) return prelude_.atomic(p.name, first.pointee().dtype());
    if (p.name == "masked_load") return prelude_.masked(p.name, p.type);
    if (p.name == "store_cs") return prelude_.store_cs(p.args.at(1)->type);
    if (p.name == "masked_store") return prelude_.masked(p.name, p.args.at(1)->type);
    return prelude_.math(p.name, first);
  }
  Text tensor_map(const Prim& p) {
    const auto rank = static_cast<size_t>(p.attrs.at(1));
    const auto list = [&](const char* element, size_t first, size_t count) {
      std::string out;
      for (size_t i = first; i < first + count; i++)
        out += (i > first ? ", " : "") + expr(p.args[i]);
      return std::string("(const ") + element + "[]){" + (out.empty() ? "0" : out) + "}";
    };
    std::string box, steps;
    for (size_t d = 0; d < rank; d++) {
      box += (d ? ", " : "") + std::to_string(p.attrs.at(3 + d));
      steps += d ? ", 1" : "1";
    }
    const int64_t swizzle = p.attrs[2];
    const int code = swizzle == 128 ? 3 : swizzle == 64 ? 2 : swizzle == 32 ? 1 : 0;
    return {cat({"({ ", type(p.type), " hidet_m; int32_t hidet_s = H->tensor_map(ctx, &hidet_m, ",
                 std::to_string(map_code(DType(static_cast<DTypeCode>(p.attrs[0])))), ", ",
                 std::to_string(rank), ", (void*)", operand(p.args.at(0), 14), ", ",
                 list("uint64_t", 1, rank), ", ", list("uint64_t", 1 + rank, rank - 1),
                 ", (const uint32_t[]){", box, "}, (const uint32_t[]){", steps, "}, 0, ",
                 std::to_string(code), ", 2, 0); if (hidet_s) return hidet_s; hidet_m; })"}),
            16};
  }
  /// CUtensorMapDataType of a dtype; types of 8 bits without a number of their own travel as bytes.
  static int map_code(DType t) {
    return t == f16         ? 6
           : t == bf16      ? 9
           : t == f32       ? 7
           : t == tf32      ? 11
           : t == f64       ? 8
           : t == i32       ? 3
           : t == u32       ? 2
           : t == i64       ? 5
           : t == u64       ? 4
           : t.bytes() == 2 ? 1
                            : 0;
  }
  /// Arguments of a format, promoted as C's variable arguments are.
  std::string format_arguments(const Prim& p) {
    std::string args;
    for (const Expr& a : p.args) {
      const std::string text = operand(through_f32(a), 14);
      const bool wide =
          a->type.is_scalar() && a->type.dtype().is_integer() && a->type.dtype().bits() == 64;
      const bool number = a->type.is_scalar() && !wide;
      args += (args.empty() ? "" : ", ") +
              std::string(wide     ? "(long long)"
                          : number ? (a->type.dtype().is_float() ? "(double)" : "(int)")
                                   : "") +
              text;
    }
    return args;
  }
  Text print(const Prim& p) {
    return {"({ int32_t hidet_s = H->print(ctx, " + format_arguments(p) +
                "); if (hidet_s) return hidet_s; })",
            16};
  }
  Text refuse(const Prim& p) {
    return {"({ char hidet_m[512]; __builtin_snprintf(hidet_m, sizeof hidet_m, " +
                format_arguments(p) + "); return H->raise(ctx, 2, hidet_m); })",
            16};
  }

  std::set<std::string> fallible_, splats_;
  Prelude prelude_;
  std::string globals_, outlined_;
  const Function* current_ = nullptr;
  bool in_parallel_ = false;
};

}  // namespace

std::string emit_c(const Module& module, const EmitOptions& options) {
  std::string text;
  with_large_stack([&] { text = CEmitter(module, options).run(); });
  return text;
}

}  // namespace hidet::codegen
