// emitter.h - what the C and the CUDA emitter share: names, expressions, statements. A dialect says how
// types, operators with helpers, primitives and returns are written.
// Needs: modules lowered for their target.  Threading: one thread at a time per emitter.
#pragma once
#include <hidet/codegen/codegen.h>
#include <hidet/ir/names.h>
#include <hidet/ir/primitives.h>

#include <initializer_list>
#include <set>
#include <unordered_map>

namespace hidet::codegen {

/// `hint` as an identifier that is no reserved word of C, C++ or CUDA.
std::string identifier(const std::string& hint);

/// Unique, valid C identifiers for variables and functions.
class Names {
 public:
  /// A fresh name close to `hint`.
  std::string fresh(const std::string& hint) { return used_.fresh(identifier(hint)); }
  /// The name of a variable, made at first use.
  const std::string& of(const ir::Var& var);
  void reserve(const std::string& name) { used_.reserve(name); }

 private:
  ir::UniqueNames used_;
  std::unordered_map<const ir::Node*, std::string> names_;
  std::vector<ir::VarRef> keep_;
};
/// Text as a C string literal with quotes.
std::string c_string(const std::string& text);

/// The pieces one behind another. Pieces in braces are made in their order, operands of + in one that the C++ compiler chooses: the
/// types and names that they note down, and so the text, must not depend on it.
std::string cat(std::initializer_list<std::string> pieces);

class Emitter {
 public:
  Emitter(const ir::Module& module, const EmitOptions& options);
  virtual ~Emitter() = default;

 protected:
  /// Expression text and its precedence (C's, 16 = primary).
  struct Text {
    std::string text;
    int precedence;
  };
  std::string expr(const ir::Expr& e) { return emit(e).text; }
  std::string operand(const ir::Expr& e, int least);  ///< in parentheses where it binds looser
  void stmt(const ir::Stmt& s);
  void block(const ir::Stmt& s);  ///< "{ ... }" without the closing newline handled by the caller
  void line(const std::string& text);
  void open(const std::string& text) {
    line(text);
    indent_++;
  }
  void close(const std::string& text = "}") {
    indent_--;
    line(text);
  }

  // --- the dialect
  virtual std::string type(const ir::Type& t) = 0;
  virtual std::string declare(const ir::Type& t, const std::string& name) {
    return type(t) + " " + name;
  }
  virtual Text binary(const ir::Binary& b) = 0;
  virtual Text cast(const ir::Cast& c) = 0;
  virtual Text select(const ir::Select& s) = 0;
  virtual Text vector_load(const ir::Load& l) = 0;
  virtual std::string vector_store(const ir::Store& s) = 0;
  virtual Text broadcast(const ir::Broadcast& b) = 0;
  virtual Text make_vector(const ir::MakeVector& m) = 0;
  virtual Text lane(const ir::Lane& l) = 0;
  virtual Text unary(const ir::Unary& u) = 0;
  virtual Text call(const ir::Call& c) = 0;
  virtual Text prim(const ir::Prim& p) = 0;
  virtual Text float_imm(const ir::FloatImm& f) = 0;
  virtual void special(
      const ir::Stmt& s) = 0;  ///< Return, Assert, Launch, parallel For, DeclTensor

  std::string int_imm(int64_t value, DType dtype);
  /// The primitive's text with $0 ..., $t, $s, $k0 ... replaced.
  std::string expand(const char* pattern, const ir::Prim& p);
  const std::string& function_name(const std::string& ir_name);

  const ir::Module& module_;
  EmitOptions options_;
  Names names_;
  std::unordered_map<std::string, std::string> functions_;
  std::string out_;
  int indent_ = 0;

 private:
  Text emit(const ir::Expr& e);
  void emit_for(const ir::For& loop);
  void emit_if(const ir::If& branch);
  void emit_asm(const ir::Asm& node);
  void note_line(const ir::Stmt& s);
  ir::SourceLoc last_;
};

}  // namespace hidet::codegen
