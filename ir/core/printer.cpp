// printer.cpp - the canonical text form. Names are made unique in order of appearance (x, x_1 ...), so that
// equal modules print alike.
#include <hidet/ir/passes.h>
#include <hidet/ir/task.h>
#include <hidet/runtime/error.h>

#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

namespace hidet::ir {
namespace {

class Printer {
 public:
  std::string module(const Module& m) {
    out_ += "module " + quoted(m.name) + "\n";
    for (const GlobalVar& g : m.globals) {
      out_ += std::string(g.on_cuda ? "cuda_global " : "global ") + name(*g.var) + ": " +
              type(g.var->type);
      if (!g.init.empty()) {
        out_ += " = [";
        for (size_t i = 0; i < g.init.size(); i++) out_ += (i ? ", " : "") + number(g.init[i]);
        out_ += "]";
      }
      out_ += "\n";
    }
    for (const ExternFunc& e : m.externs) {
      out_ += "extern " + e.name + "(";
      for (size_t i = 0; i < e.params.size(); i++) out_ += (i ? ", " : "") + type(e.params[i]);
      out_ += ") -> " + type(e.returns) + "\n";
    }
    for (const Function& f : m.functions) function(f);
    return std::move(out_);
  }

  void function(const Function& f) {
    out_ += std::string(ir::name(f.kind)) + " " + f.name + "(";
    for (size_t i = 0; i < f.params.size(); i++)
      out_ += (i ? ", " : "") + name(*f.params[i]) + ": " + type(f.params[i]->type);
    out_ += ")";
    if (!f.returns.is_void()) out_ += " -> " + type(f.returns);
    const auto list = [&](const char* what, const std::vector<Expr>& values) {
      if (!values.empty()) out_ += std::string(" ") + what + "(" + join(values) + ")";
    };
    list("grid", f.launch.grid);
    list("block", f.launch.block);
    list("cluster", f.launch.cluster);
    if (f.launch.shared_bytes) out_ += " shared(" + expr(f.launch.shared_bytes) + ")";
    if (f.launch.min_blocks) out_ += " min_blocks(" + std::to_string(f.launch.min_blocks) + ")";
    if (f.no_alias) out_ += " no_alias";
    out_ += " {\n";
    body(f.body);
    out_ += "}\n";
  }

  void stmt(const Stmt& s) {
    switch (s->kind) {
      case Kind::Seq:
        for (const Stmt& child : as<Seq>(s)->body) stmt(child);
        return;
      case Kind::DeclVar: {
        const DeclVar& d = *as<DeclVar>(s);
        const std::string init = d.init ? " = " + expr(d.init) : "";
        line(std::string(d.var->is_mutable ? "var " : "let ") + name(*d.var) + ": " +
             type(d.var->type) + init);
        return;
      }
      case Kind::DeclTensor: {
        const DeclTensor& d = *as<DeclTensor>(s);
        const std::string data = d.data ? " = view(" + expr(d.data) + ")" : "";
        line("tensor " + name(*d.var) + ": " + type(d.var->type) + data);
        return;
      }
      case Kind::Assign:
        line(expr(as<Assign>(s)->var) + " = " + expr(as<Assign>(s)->value));
        return;
      case Kind::Store: {
        const Store& st = *as<Store>(s);
        line(atom(st.base) + "[" + expr(st.index) + "] = " + expr(st.value));
        return;
      }
      case Kind::ElementStore: {
        const ElementStore& st = *as<ElementStore>(s);
        line(atom(st.tensor) + (st.guarded ? ".write" : "") + "(" + join(st.indices) +
             ") = " + expr(st.value));
        return;
      }
      case Kind::For: {
        const For& f = *as<For>(s);
        const std::string how = f.how == LoopKind::serial ? "" : std::string(ir::name(f.how)) + " ";
        const std::string grain = f.grain > 1 ? " grain " + std::to_string(f.grain) : "";
        line(how + "for " + name(*f.var) + ": " + type(f.var->type) + " in range(" + expr(f.begin) +
             ", " + expr(f.end) + ", " + expr(f.step) + ")" + grain + " {");
        return closed(f.body);
      }
      case Kind::MappingFor: {
        const MappingFor& f = *as<MappingFor>(s);
        std::string vars;
        for (const VarRef& v : f.vars) vars += (vars.empty() ? "" : ", ") + name(*v);
        line("for " + vars + " in " + f.mapping.text() + ".on(" + expr(f.worker) + ") {");
        return closed(f.body);
      }
      case Kind::While:
        line("while " + expr(as<While>(s)->cond) + " {");
        return closed(as<While>(s)->body);
      case Kind::Break: line("break"); return;
      case Kind::Continue: line("continue"); return;
      case Kind::If: {
        const If& i = *as<If>(s);
        line("if " + expr(i.cond) + " {");
        body(i.then);
        if (i.otherwise) {
          line("} else {");
          body(i.otherwise);
        }
        line("}");
        return;
      }
      case Kind::Return:
        line(as<Return>(s)->value ? "return " + expr(as<Return>(s)->value) : "return");
        return;
      case Kind::Evaluate: line(expr(as<Evaluate>(s)->value)); return;
      case Kind::Assert:
        line("assert " + expr(as<Assert>(s)->cond) + ", " + quoted(as<Assert>(s)->message));
        return;
      case Kind::Launch: {
        const Launch& l = *as<Launch>(s);
        std::string more;
        if (!l.cluster.empty()) more += " cluster(" + join(l.cluster) + ")";
        if (l.shared_bytes) more += " shared(" + expr(l.shared_bytes) + ")";
        line("launch " + l.callee + " grid(" + join(l.grid) + ") block(" + join(l.block) + ")" +
             more + " args(" + join(l.args) + ")");
        return;
      }
      case Kind::Comment: line("comment " + quoted(as<Comment>(s)->text)); return;
      case Kind::Asm: {
        const Asm& a = *as<Asm>(s);
        line(std::string("asm ") + (a.is_volatile ? "volatile " : "") + quoted(a.text) + " (" +
             join(a.outputs) + ") (" + join(a.inputs) + ")");
        return;
      }
      default: break;
    }
    HIDET_CHECK(false, "the printer met the statement '", kind_name(s->kind), "'");
  }

  std::string expr(const Expr& e, int least = 0) {
    switch (e->kind) {
      case Kind::IntImm: return integer(*as<IntImm>(e));
      case Kind::FloatImm: return number(as<FloatImm>(e)->value) + suffix(e->type, f32);
      case Kind::StringImm: return quoted(as<StringImm>(e)->value);
      case Kind::Var: return name(*as<Var>(e));
      case Kind::DimSymbol: return "$" + symbol(as<DimSymbol>(e)->name);
      case Kind::Unary:
        return std::string(as<Unary>(e)->op == UnaryOp::neg       ? "-"
                           : as<Unary>(e)->op == UnaryOp::bit_not ? "~"
                                                                  : "!") +
               expr(as<Unary>(e)->a, 15);
      case Kind::Binary: return binary(*as<Binary>(e), least);
      case Kind::Select: {
        const Select& s = *as<Select>(e);
        return "select(" + expr(s.cond) + ", " + expr(s.a) + ", " + expr(s.b) + ")";
      }
      case Kind::Cast: {
        const Cast& c = *as<Cast>(e);
        static const char* const how[] = {"cast", "bitcast", "pointer_cast"};
        return std::string(how[static_cast<int>(c.how)]) + "(" + expr(c.a) + ", " + type(c.type) +
               ")";
      }
      case Kind::Call: return as<Call>(e)->callee + "(" + join(as<Call>(e)->args) + ")";
      case Kind::Prim: {
        const Prim& p = *as<Prim>(e);
        std::string attrs;
        for (int64_t a : p.attrs) attrs += (attrs.empty() ? "" : ", ") + std::to_string(a);
        return "@" + p.name + (attrs.empty() ? "" : "<" + attrs + ">") + "(" + join(p.args) + ")";
      }
      case Kind::Load: {
        const Load& l = *as<Load>(e);
        const std::string lanes = l.type.is_vector() ? ":" + std::to_string(l.type.lanes()) : "";
        return atom(l.base) + "[" + expr(l.index) + lanes + "]";
      }
      case Kind::Element: {
        const Element& t = *as<Element>(e);
        const std::string lanes = t.type.is_vector() ? ":" + std::to_string(t.type.lanes()) : "";
        return atom(t.tensor) + (t.guarded ? ".read" : "") + "(" + join(t.indices) + lanes + ")";
      }
      case Kind::AddressOf:
        return "&" + atom(as<AddressOf>(e)->tensor) + "(" + join(as<AddressOf>(e)->indices) + ")";
      case Kind::MakeVector: return "[" + join(as<MakeVector>(e)->lanes) + "]";
      case Kind::Broadcast:
        return "broadcast(" + expr(as<Broadcast>(e)->a) + ", " + std::to_string(e->type.lanes()) +
               ")";
      case Kind::Lane: return atom(as<Lane>(e)->vector) + ".lane(" + expr(as<Lane>(e)->index) + ")";
      case Kind::Reduce: {
        const Reduce& r = *as<Reduce>(e);
        std::string axes;
        for (size_t i = 0; i < r.axes.size(); i++)
          axes += (i ? ", " : "") + name(*r.axes[i]) + " < " + expr(r.extents[i]);
        return std::string("reduce_") + ir::name(r.op) + "([" + axes + "], " + expr(r.value) + ")";
      }
      case Kind::ArgReduce: {
        const ArgReduce& r = *as<ArgReduce>(e);
        return std::string(r.is_max ? "argmax" : "argmin") + (r.last ? "_last" : "") + "([" +
               name(*r.axis) + " < " + expr(r.extent) + "], " + expr(r.value) + ")";
      }
      default: break;
    }
    HIDET_CHECK(false, "the printer met the expression '", kind_name(e->kind), "'");
    return "";
  }

  std::string type(const Type& t) {
    if (t.is_pointer()) return "ptr(" + type(t.pointee()) + ")";
    if (!t.is_tensor()) return t.text();
    const TensorInfo& info = t.tensor_info();
    std::string out = std::string("tensor(") + info.dtype.name() + ", [" + join(info.shape) + "]";
    if (info.layout.tag != Layout::Tag::row_major) out += ", " + info.layout.text();
    if (info.scope != Scope::global) out += std::string(", ") + scope_name(info.scope);
    return out + ")";
  }
  std::string take() { return std::move(out_); }

 private:
  void line(const std::string& text) {
    out_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + text + "\n";
  }
  void body(const Stmt& s) {
    indent_++;
    if (s) stmt(s);
    indent_--;
  }
  void closed(const Stmt& s) {
    body(s);
    line("}");
  }
  std::string join(const std::vector<Expr>& list) {
    std::string out;
    for (size_t i = 0; i < list.size(); i++) out += (i ? ", " : "") + expr(list[i]);
    return out;
  }
  /// An operand of a postfix form.
  std::string atom(const Expr& e) { return e->kind == Kind::Var ? expr(e) : "(" + expr(e) + ")"; }
  std::string binary(const Binary& b, int least) {
    const BinaryOpInfo& row = info(b.op);
    if (!*row.c) return std::string(row.name) + "(" + expr(b.a) + ", " + expr(b.b) + ")";
    const std::string text =
        expr(b.a, row.precedence) + " " + row.c + " " + expr(b.b, row.precedence + 1);
    return row.precedence < least ? "(" + text + ")" : text;
  }
  static std::string suffix(const Type& t, DType plain) {
    return t.dtype() == plain ? "" : std::string(":") + t.dtype().name();
  }
  static std::string integer(const IntImm& i) {
    if (i.type.dtype().is_boolean()) return i.value ? "true" : "false";
    return std::to_string(i.value) + suffix(i.type, i32);
  }
  static std::string number(double v) {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
      std::snprintf(text, sizeof text, "%.*g", digits, v);
      if (std::strtod(text, nullptr) == v) break;
    }
    const std::string s = text;
    return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
  }
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (unsigned char c : text) {
      char code[8];
      if (c == '"' || c == '\\') out += std::string("\\") + static_cast<char>(c);
      else if (c < 32 || c >= 127) std::snprintf(code, sizeof code, "\\x%02x", c), out += code;
      else out += static_cast<char>(c);
    }
    return out + "\"";
  }
  static bool plain(const std::string& s) {
    for (unsigned char c : s)
      if (!(std::isalnum(c) || c == '_')) return false;
    return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0]));
  }
  static std::string symbol(const std::string& s) { return plain(s) ? s : quoted(s); }
  const std::string& name(const Var& v) {
    auto it = names_.find(&v);
    if (it != names_.end()) return it->second;
    const std::string base = plain(v.name) ? v.name : "v";
    std::string unique = base;
    for (int n = 1; !used_.insert(unique).second; n++) unique = base + "_" + std::to_string(n);
    return names_.emplace(&v, unique).first->second;
  }

  std::string out_;
  int indent_ = 0;
  std::unordered_map<const Node*, std::string> names_;
  std::unordered_set<std::string> used_;
};

}  // namespace

std::string print(const Module& module) { return Printer().module(module); }
std::string print(const Function& function) {
  Printer p;
  p.function(function);
  return p.take();
}
std::string print(const Stmt& s) {
  Printer p;
  p.stmt(s);
  return p.take();
}
std::string print(const Expr& e) { return Printer().expr(e); }

}  // namespace hidet::ir
