// emitter.cpp - names, expressions and statements that C and CUDA write alike.
#include "emitter.h"

#include <hidet/runtime/error.h>

#include <cstdio>
#include <limits>
#include <unordered_set>

namespace hidet::codegen {
using namespace ir;

namespace {
const std::unordered_set<std::string>& reserved_words() {
  static const std::unordered_set<std::string> words = {
      // C and C++
      "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class",
      "const", "constexpr", "continue", "default", "delete", "do", "double", "else", "enum",
      "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
      "int", "long", "mutable", "namespace", "new", "noexcept", "not", "nullptr", "operator", "or",
      "private", "protected", "public", "register", "restrict", "return", "short", "signed",
      "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
      "typeid", "typename", "typeof", "union", "unsigned", "using", "virtual", "void", "volatile",
      "wchar_t", "while", "xor", "main", "NULL", "errno", "concept", "requires", "compl", "bitand",
      "bitor",
      // types and library functions that the text uses
      "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
      "size_t", "half", "exp", "log", "sin", "cos", "tan", "pow", "fma", "floor", "ceil", "round",
      "trunc", "rint", "sqrt", "abs", "min", "max", "fmod", "erf", "tanh", "j0", "j1", "y0", "y1",
      "gamma", "index", "printf", "memcpy", "memset",
      // names of the emitted text
      "H", "ctx", "args", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"};
  return words;
}
bool is_reserved_name(const std::string& s) {
  // "args" is the thunk's parameter only; scripts may use it.
  return s != "args" &&
         (reserved_words().count(s) || s.rfind("hidet_", 0) == 0 || s.rfind("__", 0) == 0);
}
}  // namespace

std::string identifier(const std::string& hint) {
  std::string out;
  for (unsigned char c : hint) {
    const bool fine =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += fine ? static_cast<char>(c) : '_';
  }
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out = "v" + out;
  if (is_reserved_name(out)) out = (out[0] == '_' ? "v" : "") + out + "_";
  if (out.rfind("hidet_", 0) == 0) out = "v_" + out;
  return out;
}

std::string c_string(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    char code[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 32 || c >= 127 || c == '?') {
      std::snprintf(code, sizeof code, "\\%03o", c);
      out += code;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

std::string cat(std::initializer_list<std::string> pieces) {
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

const std::string& Names::of(const Var& var) {
  auto it = names_.find(&var);
  if (it != names_.end()) return it->second;
  keep_.push_back(ref(var));
  return names_.emplace(&var, fresh(var.name)).first->second;
}

Emitter::Emitter(const Module& module, const EmitOptions& options)
    : module_(module), options_(options) {
  Names functions;
  for (const Function& f : module.functions) functions_[f.name] = functions.fresh(f.name);
  for (const auto& [ir_name, text] : functions_) names_.reserve(text);
}

const std::string& Emitter::function_name(const std::string& ir_name) {
  auto it = functions_.find(ir_name);
  HIDET_CHECK(it != functions_.end(), "the module '", module_.name, "' has no function '", ir_name,
              "'");
  return it->second;
}

std::string emitted_name(const Module& module, const std::string& function) {
  Names functions;
  for (const Function& f : module.functions) {
    const std::string name = functions.fresh(f.name);
    if (f.name == function) return name;
  }
  throw Error(ErrorCode::internal,
              "the module '" + module.name + "' has no function '" + function + "'");
}

std::vector<std::string> kernel_names(const Module& module) {
  std::vector<std::string> names;
  for (const Function& f : module.functions)
    if (f.kind == FuncKind::cuda_kernel) names.push_back(emitted_name(module, f.name));
  return names;
}

void Emitter::line(const std::string& text) {
  out_.append(static_cast<size_t>(indent_) * 2, ' ');
  out_ += text;
  out_ += '\n';
}

std::string Emitter::operand(const Expr& e, int least) {
  Text t = emit(e);
  return t.precedence < least ? "(" + t.text + ")" : std::move(t.text);
}

std::string Emitter::int_imm(int64_t v, DType t) {
  if (t.is_boolean()) return v ? "1" : "0";
  if (t == u64) return std::to_string(static_cast<uint64_t>(v)) + "ull";
  if (t == u32) return std::to_string(v) + "u";
  if (t == i64)
    return v == std::numeric_limits<int64_t>::min() ? "(-9223372036854775807ll - 1)"
                                                    : std::to_string(v) + "ll";
  return v == std::numeric_limits<int32_t>::min() ? "(-2147483647 - 1)" : std::to_string(v);
}

std::string Emitter::expand(const char* pattern, const Prim& p) {
  std::string out;
  for (const char* c = pattern; *c; c++) {
    if (*c != '$') {
      out += *c;
      continue;
    }
    c++;
    if (*c == 't') out += type(p.type);
    else if (*c == '*')
      for (size_t i = 0; i < p.args.size(); i++) out += (i ? ", " : "") + expr(p.args[i]);
    else if (*c == 's') out += p.args.at(0)->type.dtype() == f64 ? "" : "f";
    else if (*c == 'k') out += std::to_string(p.attrs.at(static_cast<size_t>(*++c - '0')));
    else out += operand(p.args.at(static_cast<size_t>(*c - '0')), 3);
  }
  return out;
}

Emitter::Text Emitter::emit(const Expr& e) {
  switch (e->kind) {
    case Kind::IntImm: {
      const int64_t v = as<IntImm>(e)->value;
      return {int_imm(v, e->type.dtype()), v < 0 ? 14 : 16};
    }
    case Kind::FloatImm: return float_imm(*as<FloatImm>(e));
    case Kind::StringImm: return {c_string(as<StringImm>(e)->value), 16};
    case Kind::Var: return {names_.of(*as<Var>(e)), 16};
    case Kind::Unary: return unary(*as<Unary>(e));
    case Kind::Binary: return binary(*as<Binary>(e));
    case Kind::Select: return select(*as<Select>(e));
    case Kind::Cast: return cast(*as<Cast>(e));
    case Kind::Call: return call(*as<Call>(e));
    case Kind::Prim: return prim(*as<Prim>(e));
    case Kind::Load: {
      const Load& l = *as<Load>(e);
      if (l.type.is_vector()) return vector_load(l);
      return {cat({operand(l.base, 15), "[", expr(l.index), "]"}), 15};
    }
    case Kind::AddressOf: {
      // Lowered tensors are flat arrays.
      const AddressOf& a = *as<AddressOf>(e);
      int64_t at;
      if (is_const_int(a.indices.at(0), &at) && at == 0) return emit(a.tensor);
      return {cat({operand(a.tensor, 12), " + ", operand(a.indices[0], 13)}), 12};
    }
    case Kind::MakeVector: return make_vector(*as<MakeVector>(e));
    case Kind::Broadcast: return broadcast(*as<Broadcast>(e));
    case Kind::Lane: return lane(*as<Lane>(e));
    default: break;
  }
  HIDET_CHECK(false, "the emitter met '", kind_name(e->kind), "' in '", module_.name,
              "'; it should have been lowered");
  return {};
}

void Emitter::note_line(const Stmt& s) {
  if (!options_.lines || !s->loc.file) return;
  if (s->loc.file == last_.file && s->loc.line == last_.line) return;
  last_ = s->loc;
  line("// " + s->loc.text());
}

void Emitter::block(const Stmt& s) {
  indent_++;
  if (s) stmt(s);
  indent_--;
}

void Emitter::emit_for(const For& loop) {
  const std::string t = type(loop.var->type), &v = names_.of(*loop.var);
  int64_t step;
  const bool one = is_const_int(loop.step, &step) && step == 1;
  line(cat({"for (", t, " ", v, " = ", expr(loop.begin), "; ", v, " < ", operand(loop.end, 11),
            "; ", (one ? "++" + v : v + " += " + expr(loop.step)), ") {"}));
  block(loop.body);
  line("}");
}

void Emitter::emit_if(const If& branch) {
  line("if (" + expr(branch.cond) + ") {");
  block(branch.then);
  if (branch.otherwise) {
    line("} else {");
    block(branch.otherwise);
  }
  line("}");
}

void Emitter::emit_asm(const Asm& node) {
  const auto list = [&](const std::vector<std::string>& constraints,
                        const std::vector<Expr>& values) {
    std::string out;
    for (size_t i = 0; i < values.size(); i++)
      out += (i ? ", " : "") + c_string(constraints[i]) + "(" + expr(values[i]) + ")";
    return out;
  };
  std::string clobbers;
  for (const std::string& c : node.clobbers)
    clobbers += (clobbers.empty() ? "" : ", ") + c_string(c);
  line(std::string("asm ") + (node.is_volatile ? "volatile " : "") + "(" + c_string(node.text) +
       " : " + list(node.output_constraints, node.outputs) + " : " +
       list(node.input_constraints, node.inputs) + " : " + clobbers + ");");
}

void Emitter::stmt(const Stmt& s) {
  if (s->kind != Kind::Seq) note_line(s);
  switch (s->kind) {
    case Kind::Seq:
      for (const Stmt& child : as<Seq>(s)->body) stmt(child);
      return;
    case Kind::DeclVar: {
      const DeclVar& d = *as<DeclVar>(s);
      const std::string init = d.init ? " = " + expr(d.init) : "";
      line(declare(d.var->type, names_.of(*d.var)) + init + ";");
      return;
    }
    case Kind::Assign:
      line(cat({expr(as<Assign>(s)->var), " = ", expr(as<Assign>(s)->value), ";"}));
      return;
    case Kind::Store: {
      const Store& st = *as<Store>(s);
      if (st.value->type.is_vector()) line(vector_store(st));
      else line(cat({operand(st.base, 15), "[", expr(st.index), "] = ", expr(st.value), ";"}));
      return;
    }
    case Kind::For:
      if (as<For>(s)->how == LoopKind::parallel) special(s);
      else emit_for(*as<For>(s));
      return;
    case Kind::While:
      line("while (" + expr(as<While>(s)->cond) + ") {");
      block(as<While>(s)->body);
      line("}");
      return;
    case Kind::Break: line("break;"); return;
    case Kind::Continue: line("continue;"); return;
    case Kind::If: emit_if(*as<If>(s)); return;
    case Kind::Evaluate: line(expr(as<Evaluate>(s)->value) + ";"); return;
    case Kind::Comment: {
      std::string text;
      for (char c : as<Comment>(s)->text)
        text += c == '\n' || c == '\r' || c == '*' || c == '\\' || c == '?' ? ' ' : c;
      line("/* " + text + " */");
      return;
    }
    case Kind::Asm: emit_asm(*as<Asm>(s)); return;
    case Kind::Return:
    case Kind::Assert:
    case Kind::Launch:
    case Kind::DeclTensor: special(s); return;
    default: break;
  }
  HIDET_CHECK(false, "the emitter met '", kind_name(s->kind), "' in '", module_.name,
              "'; it should have been lowered");
}

}  // namespace hidet::codegen
