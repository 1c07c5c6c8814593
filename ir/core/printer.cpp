// printer.cpp - the canonical text form; parse() reads it back. Names are made unique in order of appearance
// (x, x_1 ...), so that equal modules print alike. A node says its type where its operands do not (text.h).
// Needs: any module. Leaves: text without places in the user's program. Threading: thread-safe.
#include "core/text.h"

#include <hidet/ir/fold.h>
#include <hidet/ir/names.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/rewriter.h>
#include <hidet/ir/task.h>
#include <hidet/runtime/error.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <unordered_map>

namespace hidet::ir {
namespace {

class Printer {
 public:
  std::string module(const Module& m) {
    for (const Function& f : m.functions) used_.reserve(f.name);
    for (const ExternFunc& e : m.externs) used_.reserve(e.name);
    out_ += "module " + quoted(m.name) + "\n";
    for (const GlobalVar& g : m.globals) {
      out_ += std::string(g.on_cuda ? "cuda_global " : "global ") + definition(*g.var);
      if (!g.init.empty()) {
        out_ += " = [";
        for (size_t i = 0; i < g.init.size(); i++) out_ += (i ? ", " : "") + number(g.init[i]);
        out_ += "]";
      }
      out_ += "\n";
    }
    for (const ExternFunc& e : m.externs) {
      out_ += "extern " + symbol(e.name) + "(";
      for (size_t i = 0; i < e.params.size(); i++) out_ += (i ? ", " : "") + type(e.params[i]);
      out_ += ") -> " + type(e.returns) + "\n";
    }
    // Each function counts its names from the start.
    const auto used = used_;
    const auto names = names_;
    for (const Function& f : m.functions) {
      used_ = used;
      names_ = names;
      function(f);
    }
    return std::move(out_);
  }

  void function(const Function& f) {
    out_ +=
        std::string(ir::name(f.kind)) + " " + symbol(f.name) + "(" + definitions(f.params) + ")";
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
      case Kind::Seq:  // inside a body: one that is not flattened
        line("{");
        for (indent_++; const Stmt& child : as<Seq>(s)->body) stmt(child);
        indent_--;
        line("}");
        return;
      case Kind::DeclVar: {
        const DeclVar& d = *as<DeclVar>(s);
        const std::string init = d.init ? " = " + expr(d.init) : "";
        line((d.var->is_mutable ? "" : "let ") + definition(*d.var) + init);
        return;
      }
      case Kind::DeclTensor: {
        const DeclTensor& d = *as<DeclTensor>(s);
        const std::string data = d.data ? " = view(" + expr(d.data) + ")" : "";
        line("tensor " + definition(*d.var) + data);
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
        const std::string grain = f.grain != 1 ? " grain " + std::to_string(f.grain) : "";
        const std::string range =
            " in range(" + expr(f.begin) + ", " + expr(f.end) + ", " + expr(f.step) + ")";
        line(how + "for " + definition(*f.var) + range + grain + " {");
        return closed(f.body);
      }
      case Kind::MappingFor: {
        const MappingFor& f = *as<MappingFor>(s);
        const std::string worker = expr(f.worker);
        line("for " + definitions(f.vars) + " in " + f.mapping.text() + ".on(" + worker + ") {");
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
        line("launch " + symbol(l.callee) + " grid(" + join(l.grid) + ") block(" + join(l.block) +
             ")" + more + " args(" + join(l.args) + ")");
        return;
      }
      case Kind::Comment: line("comment " + quoted(as<Comment>(s)->text)); return;
      case Kind::Asm: {
        const Asm& a = *as<Asm>(s);
        line(std::string("asm ") + (a.is_volatile ? "volatile " : "") + quoted(a.text) + " (" +
             operands(a.output_constraints, a.outputs) + ") (" +
             operands(a.input_constraints, a.inputs) + ") (" + operands(a.clobbers, {}) + ")");
        return;
      }
      default: break;
    }
    HIDET_CHECK(false, "the printer met the statement '", kind_name(s->kind), "'");
  }

  /// `least`: operators that bind less are put into parentheses.
  std::string expr(const Expr& e, int least = 0) {
    if (e->type == natural_type(*e)) return form(e, least);
    const bool infix = e->kind == Kind::Binary || e->kind == Kind::Unary;
    return (infix ? "(" + form(e, 0) + ")" : form(e, 0)) + ":" + type(e->type);
  }

  /// An expression without its type.
  std::string form(const Expr& e, int least) {
    switch (e->kind) {
      case Kind::IntImm:
        if (e->type.dtype().is_boolean()) return as<IntImm>(e)->value ? "true" : "false";
        return int_text(as<IntImm>(e)->value, e->type.dtype());
      case Kind::FloatImm: return number(as<FloatImm>(e)->value);
      case Kind::StringImm: return quoted(as<StringImm>(e)->value);
      case Kind::Var: return name(*as<Var>(e));
      case Kind::DimSymbol: return "$" + symbol(as<DimSymbol>(e)->name);
      case Kind::Unary:
        return std::string(as<Unary>(e)->op == UnaryOp::neg       ? "-"
                           : as<Unary>(e)->op == UnaryOp::bit_not ? "~"
                                                                  : "!") +
               operand(as<Unary>(e)->a);
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
      case Kind::Call: {
        const Call& c = *as<Call>(e);
        return (is_reserved_word(c.callee) ? quoted(c.callee) : symbol(c.callee)) + "(" +
               join(c.args) + ")";
      }
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
          axes += (i ? ", " : "") + definition(*r.axes[i]) + " < " + expr(r.extents[i]);
        return std::string("reduce_") + ir::name(r.op) + "([" + axes + "], " + expr(r.value) + ")";
      }
      case Kind::ArgReduce: {
        const ArgReduce& r = *as<ArgReduce>(e);
        return std::string(r.is_max ? "argmax" : "argmin") + (r.last ? "_last" : "") + "([" +
               definition(*r.axis) + " < " + expr(r.extent) + "], " + expr(r.value) + ")";
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
    if (info.layout.tag != Layout::Tag::row_major) out += ", " + layout(info.layout);
    if (info.scope != Scope::global) out += std::string(", ") + scope_name(info.scope);
    return out + ")";
  }
  std::string layout(const Layout& l) {
    const auto list = [](std::initializer_list<int64_t> values) {
      std::string out;
      for (int64_t v : values) out += ", " + std::to_string(v);
      return out;
    };
    switch (l.tag) {
      case Layout::Tag::row_major: return "row_major";
      case Layout::Tag::col_major: return "col_major";
      case Layout::Tag::strided: return "strided(" + join(l.strides) + ")";
      case Layout::Tag::swizzled:
        return "swizzle(" + layout(*l.inner) + list({l.bits, l.base, l.shift}) + ")";
      default: break;
    }
    std::string tile;
    for (int64_t n : l.tile) tile += (tile.empty() ? "" : ", ") + std::to_string(n);
    const char* name = l.tag == Layout::Tag::permuted   ? "permuted("
                       : l.tag == Layout::Tag::reshaped ? "reshaped("
                       : l.tag == Layout::Tag::concat   ? "concat("
                                                        : "composed(";
    return name + (l.outer ? layout(*l.outer) + ", " : "") + layout(*l.inner) + ", [" + tile + "])";
  }
  /// What stands between braces. A Seq of one statement is not that statement.
  void statements(const Stmt& s) {
    const Seq* seq = as<Seq>(s);
    if (!s) line("nothing");
    else if (!seq || seq->body.size() == 1) stmt(s);
    else
      for (const Stmt& child : seq->body) stmt(child);
  }
  std::string take() { return std::move(out_); }

 private:
  void line(const std::string& text) {
    out_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + text + "\n";
  }
  void body(const Stmt& s) {
    indent_++;
    statements(s);
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
  /// The operand of a prefix operator: a minus before a number would be the number's own.
  std::string operand(const Expr& e) {
    const bool constant = e->kind == Kind::IntImm || e->kind == Kind::FloatImm;
    return constant ? "(" + expr(e) + ")" : expr(e, 15);
  }
  std::string operands(const std::vector<std::string>& constraints,
                       const std::vector<Expr>& values) {
    std::string out;
    for (size_t i = 0; i < constraints.size(); i++) {
      out += (i ? ", " : "") + quoted(constraints[i]);
      if (i < values.size()) out += " " + expr(values[i]);
    }
    return out;
  }
  /// "x: f32", "var x: f32": how a variable is introduced.
  std::string definition(const Var& v) {
    const std::string text = type(v.type);  // its shape may name others, which come first
    return (v.is_mutable ? "var " : "") + name(v) + ": " + text;
  }
  std::string definitions(const std::vector<VarRef>& vars) {
    std::string out;
    for (const VarRef& v : vars) out += (out.empty() ? "" : ", ") + definition(*v);
    return out;
  }
  static std::string number(double v) {
    if (std::isnan(v)) {
      const auto bits = std::bit_cast<uint64_t>(v);
      if (bits == std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN())) return "nan";
      char text[32];
      std::snprintf(text, sizeof text, "nan(0x%016llx)", static_cast<unsigned long long>(bits));
      return text;
    }
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
  static std::string symbol(const std::string& s) { return is_plain_name(s) ? s : quoted(s); }
  const std::string& name(const Var& v) {
    auto it = names_.find(&v);
    if (it != names_.end()) return it->second;
    const std::string base = is_plain_name(v.name) ? v.name : "v";
    if (is_reserved_word(base)) used_.reserve(base);
    return names_.emplace(&v, used_.fresh(base)).first->second;
  }

  std::string out_;
  int indent_ = 0;
  std::unordered_map<const Node*, std::string> names_;
  UniqueNames used_;
};

}  // namespace

std::string print(const Module& module) {
  std::string text;
  with_large_stack([&] { text = Printer().module(module); });
  return text;
}
std::string print(const Function& function) {
  Printer p;
  p.function(function);
  return p.take();
}
std::string print(const Stmt& s) {
  Printer p;
  p.statements(s);
  return p.take();
}
std::string print(const Expr& e) { return Printer().expr(e); }
std::string print(const Type& t) { return Printer().type(t); }
std::string Layout::text() const { return Printer().layout(*this); }

}  // namespace hidet::ir
