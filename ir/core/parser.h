// parser.h - reads the text form of modules by recursive descent. Private to ir/core: parser.cpp has
// modules and statements, parser_expr.cpp types and expressions.
// Nodes are built as the text says, without folding; what no node can be is refused here, what is ill typed by
// verify. Nesting is bounded, so that no text can exhaust the stack.
// Threading: one thread at a time.
#pragma once
#include "core/lexer.h"

#include <hidet/ir/passes.h>

#include <functional>
#include <unordered_map>

namespace hidet::ir {

class Parser {
 public:
  Parser(std::string_view text, const std::string& name);
  Module module();

 private:
  // --- tokens
  const Token& peek(size_t ahead = 0) const;
  Token next();
  bool at(std::string_view mark_or_word) const;
  bool take(std::string_view mark_or_word);
  void expect(std::string_view mark_or_word);
  void take_newlines();
  void end_of_line();
  [[noreturn]] void fail(const Token& at, const std::string& what) const;
  [[noreturn]] void expected(const std::string& what, const Token& instead) const;
  [[noreturn]] void expected(const std::string& what) const { expected(what, peek()); }
  SourceLoc loc(const Token& t) const;
  std::string word(const char* what);  ///< a plain name
  std::string name_or_string(const char* what);
  /// A whole number as the text says it.
  struct Number {
    bool negative = false;
    uint64_t size = 0;
    int64_t signed_value() const { return static_cast<int64_t>(negative ? 0 - size : size); }
    bool fits(DType t) const;
    std::string text() const { return (negative ? "-" : "") + std::to_string(size); }
  };
  Number whole_number(const char* what);
  int64_t integer(const char* what, int64_t least, int64_t most);
  double number();
  std::vector<int64_t> integers(std::string_view close, int64_t least, int64_t most);
  /// Elements separated by commas up to `close`, which is taken.
  void list(std::string_view close, const std::function<void()>& element);

  // --- types
  Type type();
  Type named_type(const Token& word);
  Type tensor_type();
  Layout layout();
  DType dtype(const Token& word);
  TaskMapping mapping();
  TaskMapping::Item mapping_item();

  // --- expressions
  Expr expr(int least = 0);
  std::vector<Expr> exprs(std::string_view close);
  Expr prefix();
  Expr postfix();
  Expr suffixed(Expr e);
  Expr primary();
  Expr named(const Token& t);
  Expr literal();
  Expr address();
  Expr primitive();
  Expr element(Expr tensor, bool guarded, const Token& t);
  Expr reduce(ReduceOp op, const Token& t);
  Expr arg_reduce(const std::string& which, const Token& t);
  Expr with_type(Expr e, const Token& at);
  template <class T, class... Args>
  Expr node(const Token& t, Args&&... args);

  // --- variables
  VarRef definition(bool is_mutable = false);
  std::vector<VarRef> definitions(std::string_view close);

  // --- statements
  bool statements(std::vector<Stmt>& out);
  Stmt block();
  Stmt body();
  Stmt stmt();
  Stmt stmt_of(const std::string& word, const Token& t);
  Stmt effect(const Token& t);
  Stmt declare(const Token& t, bool is_mutable);
  Stmt declare_tensor(const Token& t);
  Stmt loop(const Token& t, LoopKind how);
  Stmt branch(const Token& t);
  Stmt launch(const Token& t);
  Stmt assembly(const Token& t);

  // --- module
  GlobalVar global(bool on_cuda);
  ExternFunc extern_func();
  Function function(FuncKind kind, const Token& t);
  void attributes(Function& f);

  /// Counts what is nested while it lives.
  struct Nested {
    explicit Nested(Parser& p);
    ~Nested() { parser.depth_ = before; }
    Nested(const Nested&) = delete;
    void deeper();
    Parser& parser;
    int before;
  };
  /// Forgets the variables that are introduced while it lives.
  struct Visible {
    explicit Visible(Parser& p) : parser(p), size(p.introduced_.size()) {}
    ~Visible();
    Visible(const Visible&) = delete;
    Parser& parser;
    size_t size;
  };

  std::string name_;
  const char* file_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::unordered_map<std::string, std::vector<VarRef>> visible_;  ///< innermost last
  std::vector<std::string> introduced_;
};

}  // namespace hidet::ir
