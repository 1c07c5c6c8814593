// parser.cpp - modules, functions and statements of the text form (see parser.h).
// Needs: any bytes. Leaves: a module, not verified, or Error(bad_file) with the place. Threading: pure.
#include "core/parser.h"
#include "core/text.h"

#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <set>

namespace hidet::ir {
namespace {
/// Bounds the stack that parsing, printing and the passes take; they run on 1 GiB.
constexpr int kMostNesting = 20000;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

/// A copy of `name` that lives as long as the process, as the places of nodes need.
const char* interned(const std::string& name) {
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;
  const std::scoped_lock lock(mutex);
  return names->insert(name).first->c_str();
}

constexpr FuncKind kKinds[] = {FuncKind::public_, FuncKind::cuda_kernel, FuncKind::cuda_internal,
                               FuncKind::cpu_kernel, FuncKind::cpu_internal};
}  // namespace

Parser::Parser(std::string_view text, const std::string& name)
    : name_(name), file_(interned(name)), tokens_(tokenize(text, name)) {}

// --- tokens

const Token& Parser::peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}
Token Parser::next() {
  Token t = peek();
  if (at_ + 1 < tokens_.size()) at_++;
  return t;
}
bool Parser::at(std::string_view text) const {
  const Token& t = peek();
  return (t.kind == Token::Kind::mark || t.kind == Token::Kind::name) && t.text == text;
}
bool Parser::take(std::string_view text) {
  if (!at(text)) return false;
  next();
  return true;
}
void Parser::expect(std::string_view text) {
  if (!take(text)) expected("'" + std::string(text) + "'");
}
void Parser::take_newlines() {
  while (peek().kind == Token::Kind::newline) next();
}
void Parser::end_of_line() {
  if (at("}")) return;
  if (peek().kind != Token::Kind::newline) expected("the end of the line");
  next();
}
void Parser::fail(const Token& t, const std::string& what) const {
  throw Error(ErrorCode::bad_file, what,
              name_ + ":" + std::to_string(t.line) + ":" + std::to_string(t.column));
}
void Parser::expected(const std::string& what, const Token& t) const {
  const std::string found = t.kind == Token::Kind::end       ? "the end of the text"
                            : t.kind == Token::Kind::newline ? "the end of the line"
                            : t.kind == Token::Kind::string  ? "a string"
                                                             : "'" + t.text + "'";
  fail(t, "expected " + what + ", not " + found);
}
SourceLoc Parser::loc(const Token& t) const {
  SourceLoc l;
  l.file = file_;
  l.line = static_cast<uint32_t>(t.line);
  return l;
}
std::string Parser::word(const char* what) {
  if (peek().kind != Token::Kind::name) expected(what);
  return next().text;
}
std::string Parser::name_or_string(const char* what) {
  if (peek().kind != Token::Kind::name && peek().kind != Token::Kind::string) expected(what);
  return next().text;
}
bool Parser::Number::fits(DType t) const {
  return negative ? t.is_signed() && signed_value() <= 0 && signed_value() >= t.min_int()
                  : size <= t.max_int();
}
Parser::Number Parser::whole_number(const char* what) {
  const Token t = peek();
  Number n;
  n.negative = take("-");
  if (peek().kind != Token::Kind::integer) expected(what);
  const std::string digits = next().text;
  errno = 0;
  char* end = nullptr;
  const bool hex = digits.find('x') != std::string::npos;
  n.size = std::strtoull(digits.c_str(), &end, hex ? 16 : 10);
  if (errno || *end || (n.negative && n.size > uint64_t{1} << 63))
    fail(t, "the number " + (n.negative ? "-" + digits : digits).substr(0, 40) +
                " does not fit 64 bits");
  n.negative = n.negative && n.size > 0;
  return n;
}
int64_t Parser::integer(const char* what, int64_t least, int64_t most) {
  const Token t = peek();
  const Number n = whole_number(what);
  if (!n.fits(i64)) fail(t, "the number " + n.text() + " does not fit 64 bits");
  const int64_t v = n.signed_value();
  if (v < least || v > most)
    fail(t, "expected " + std::string(what) + " from " + std::to_string(least) + " to " +
                std::to_string(most) + ", not " + std::to_string(v));
  return v;
}
double Parser::number() {
  const bool negative = take("-");
  const Token t = next();
  double v = 0;
  if (t.text == "inf") {
    v = std::numeric_limits<double>::infinity();
  } else if (t.text == "nan") {
    if (!take("(")) return std::numeric_limits<double>::quiet_NaN();
    const Token bits = next();
    errno = 0;
    v = std::bit_cast<double>(uint64_t{std::strtoull(bits.text.c_str(), nullptr, 16)});
    if (bits.kind != Token::Kind::integer || errno || v == v)
      fail(bits, "expected the bits of a NaN");
    expect(")");
    return v;
  } else if (t.kind == Token::Kind::integer || t.kind == Token::Kind::real) {
    v = std::strtod(t.text.c_str(), nullptr);
  } else {
    at_--;
    expected("a number");
  }
  return negative ? -v : v;
}
std::vector<int64_t> Parser::integers(std::string_view close, int64_t least, int64_t most) {
  std::vector<int64_t> out;
  list(close, [&] { out.push_back(integer("an integer", least, most)); });
  return out;
}
void Parser::list(std::string_view close, const std::function<void()>& element) {
  if (take(close)) return;
  do {
    element();
  } while (take(","));
  expect(close);
}

Parser::Nested::Nested(Parser& p) : parser(p), before(p.depth_) { deeper(); }
void Parser::Nested::deeper() {
  if (++parser.depth_ > kMostNesting)
    parser.fail(parser.peek(), "nested deeper than " + std::to_string(kMostNesting));
}
Parser::Visible::~Visible() {
  for (; parser.introduced_.size() > size; parser.introduced_.pop_back()) {
    auto it = parser.visible_.find(parser.introduced_.back());
    it->second.pop_back();
    if (it->second.empty()) parser.visible_.erase(it);
  }
}

// --- variables

VarRef Parser::definition(bool is_mutable) {
  is_mutable = take("var") || is_mutable;
  const Token t = peek();
  const std::string name = word("the name of a variable");
  if (is_reserved_word(name)) fail(t, "'" + name + "' cannot be the name of a variable");
  expect(":");
  const VarRef v = make_var(name, type(), is_mutable, loc(t));
  visible_[name].push_back(v);
  introduced_.push_back(name);
  return v;
}
std::vector<VarRef> Parser::definitions(std::string_view close) {
  std::vector<VarRef> out;
  list(close, [&] { out.push_back(definition()); });
  return out;
}

// --- statements

/// { statements }, without a scope of its own; false where it says `nothing`.
bool Parser::statements(std::vector<Stmt>& out) {
  const Nested nested(*this);
  expect("{");
  bool something = true;
  while (take_newlines(), !take("}")) {
    if (take("nothing")) something = false;
    else out.push_back(stmt());
    end_of_line();
  }
  return something;
}

/// The body of a loop, branch or function: one statement is no Seq.
Stmt Parser::block() {
  std::vector<Stmt> out;
  if (!statements(out)) return nullptr;
  return out.size() == 1 ? out[0] : Stmt(make_stmt<Seq>({}, std::move(out)));
}

Stmt Parser::body() {
  const Visible visible(*this);
  return block();
}

Stmt Parser::stmt() {
  const Token t = peek();
  if (t.kind == Token::Kind::mark && t.text == "{") {
    std::vector<Stmt> inner;
    statements(inner);
    return make_stmt<Seq>(loc(t), std::move(inner));
  }
  if (t.kind != Token::Kind::name || !is_reserved_word(t.text)) return effect(t);
  at_++;
  if (Stmt s = stmt_of(t.text, t)) return s;
  at_--;
  return effect(t);
}

Stmt Parser::stmt_of(const std::string& w, const Token& t) {
  if (w == "let" || w == "var") return declare(t, w == "var");
  if (w == "tensor") return declare_tensor(t);
  for (const LoopKind how : {LoopKind::parallel, LoopKind::unroll, LoopKind::vectorize})
    if (w == ir::name(how)) {
      expect("for");
      return loop(t, how);
    }
  if (w == "for") return loop(t, LoopKind::serial);
  if (w == "while") {
    const Expr cond = expr();
    return make_stmt<While>(loc(t), cond, body());
  }
  if (w == "break") return make_stmt<Break>(loc(t));
  if (w == "continue") return make_stmt<Continue>(loc(t));
  if (w == "if") return branch(t);
  if (w == "return") {
    const bool bare = peek().kind == Token::Kind::newline || at("}");
    return make_stmt<Return>(loc(t), bare ? Expr() : expr());
  }
  if (w == "assert") {
    const Expr cond = expr();
    expect(",");
    if (peek().kind != Token::Kind::string) expected("a message");
    return make_stmt<Assert>(loc(t), cond, next().text);
  }
  if (w == "launch") return launch(t);
  if (w == "comment") {
    if (peek().kind != Token::Kind::string) expected("a text");
    return make_stmt<Comment>(loc(t), next().text);
  }
  return w == "asm" ? assembly(t) : nullptr;
}

/// A store, an assignment or an expression that is evaluated.
Stmt Parser::effect(const Token& t) {
  const Expr target = expr();
  if (!take("=")) return make_stmt<Evaluate>(loc(t), target);
  const Expr value = expr();
  if (const Load* l = as<Load>(target)) return make_stmt<Store>(loc(t), l->base, l->index, value);
  if (const Element* e = as<Element>(target))
    return make_stmt<ElementStore>(loc(t), e->tensor, e->indices, value, e->guarded);
  if (target->kind != Kind::Var) fail(t, "only variables and elements can be assigned");
  return make_stmt<Assign>(loc(t), target, value);
}

Stmt Parser::declare(const Token& t, bool is_mutable) {
  const VarRef v = definition(is_mutable);
  return make_stmt<DeclVar>(loc(t), v, take("=") ? expr() : Expr());
}

Stmt Parser::declare_tensor(const Token& t) {
  const Token at = peek();
  const VarRef v = definition();
  if (!v->type.is_tensor()) fail(at, "'" + v->name + "' is no tensor");
  Expr data;
  if (take("=")) {
    expect("view");
    expect("(");
    data = expr();
    expect(")");
  }
  return make_stmt<DeclTensor>(loc(t), v, data);
}

Stmt Parser::loop(const Token& t, LoopKind how) {
  const Visible visible(*this);
  std::vector<VarRef> vars;
  if (!at("in")) do
      vars.push_back(definition());
    while (take(","));
  expect("in");
  if (!take("range")) {
    if (how != LoopKind::serial) expected("'range'");
    const Token place = peek();
    TaskMapping m = mapping();
    if (static_cast<size_t>(m.rank()) != vars.size())
      fail(place, "a mapping of rank " + std::to_string(m.rank()) + " has " +
                      std::to_string(vars.size()) + " variables");
    expect("on");
    expect("(");
    const Expr worker = expr();
    expect(")");
    return make_stmt<MappingFor>(loc(t), vars, std::move(m), worker, block());
  }
  if (vars.size() != 1) fail(t, "a range has one variable");
  expect("(");
  const Expr begin = expr();
  expect(",");
  const Expr end = expr();
  expect(",");
  const Expr step = expr();
  expect(")");
  const int64_t grain =
      take("grain") ? integer("a grain", std::numeric_limits<int64_t>::min(), kMax) : 1;
  return make_stmt<For>(loc(t), vars[0], begin, end, step, how, grain, block());
}

Stmt Parser::branch(const Token& t) {
  const Expr cond = expr();
  const Stmt then = body();
  return make_stmt<If>(loc(t), cond, then, take("else") ? body() : Stmt());
}

Stmt Parser::launch(const Token& t) {
  const std::string callee = name_or_string("the name of a kernel");
  std::vector<Expr> grid, block, cluster, args;
  Expr shared_bytes;
  const auto extents = [&](const char* what, std::vector<Expr>& out) {
    const Token at = peek();
    expect(what);
    expect("(");
    out = exprs(")");
    if (out.size() > 3) fail(at, std::string(what) + " has up to three extents");
  };
  extents("grid", grid);
  extents("block", block);
  if (at("cluster")) extents("cluster", cluster);
  if (take("shared")) {
    expect("(");
    shared_bytes = expr();
    expect(")");
  }
  expect("args");
  expect("(");
  args = exprs(")");
  return make_stmt<Launch>(loc(t), callee, grid, block, cluster, shared_bytes, args);
}

Stmt Parser::assembly(const Token& t) {
  const bool is_volatile = take("volatile");
  if (peek().kind != Token::Kind::string) expected("the text of the assembly");
  const std::string text = next().text;
  std::vector<std::string> out, in, clobbers;
  std::vector<Expr> outputs, inputs;
  const auto operands = [&](std::vector<std::string>& constraints, std::vector<Expr>* values) {
    expect("(");
    list(")", [&] {
      if (peek().kind != Token::Kind::string) expected("a constraint");
      constraints.push_back(next().text);
      if (values) values->push_back(expr());
    });
  };
  operands(out, &outputs);
  operands(in, &inputs);
  operands(clobbers, nullptr);
  return make_stmt<Asm>(loc(t), text, out, outputs, in, inputs, clobbers, is_volatile);
}

// --- module

GlobalVar Parser::global(bool on_cuda) {
  GlobalVar g;
  g.on_cuda = on_cuda;
  g.var = definition();
  if (take("=")) {
    expect("[");
    list("]", [&] { g.init.push_back(number()); });
  }
  return g;
}

ExternFunc Parser::extern_func() {
  ExternFunc e;
  e.name = name_or_string("the name of a function");
  expect("(");
  list(")", [&] { e.params.push_back(type()); });
  expect("->");
  e.returns = type();
  return e;
}

Function Parser::function(FuncKind kind, const Token& t) {
  const Visible visible(*this);
  Function f;
  f.kind = kind;
  f.loc = loc(t);
  f.name = name_or_string("the name of a function");
  expect("(");
  f.params = definitions(")");
  if (take("->")) f.returns = type();
  attributes(f);
  f.body = block();
  return f;
}

void Parser::attributes(Function& f) {
  const auto extents = [&](const char* what, std::vector<Expr>& out) {
    if (!at(what)) return;
    const Token t = next();
    expect("(");
    out = exprs(")");
    if (out.size() > 3) fail(t, std::string(what) + " has up to three extents");
  };
  extents("grid", f.launch.grid);
  extents("block", f.launch.block);
  extents("cluster", f.launch.cluster);
  if (take("shared")) {
    expect("(");
    f.launch.shared_bytes = expr();
    expect(")");
  }
  if (take("min_blocks")) {
    expect("(");
    f.launch.min_blocks = integer("a number of blocks", 0, 1 << 16);
    expect(")");
  }
  f.no_alias = take("no_alias");
}

Module Parser::module() {
  Module m;
  take_newlines();
  expect("module");
  m.name = name_or_string("the name of the module");
  end_of_line();
  while (take_newlines(), peek().kind != Token::Kind::end) {
    const Token t = peek();
    const FuncKind* kind = nullptr;
    for (const FuncKind& k : kKinds)
      if (!kind && take(ir::name(k))) kind = &k;
    if (kind) m.functions.push_back(function(*kind, t));
    else if (take("extern")) m.externs.push_back(extern_func());
    else if (take("global")) m.globals.push_back(global(false));
    else if (take("cuda_global")) m.globals.push_back(global(true));
    else expected("a function, 'global', 'cuda_global' or 'extern'");
    end_of_line();
  }
  return m;
}

Module parse(std::string_view text, const std::string& name) {
  Module m;
  with_large_stack([&] { m = Parser(text, name).module(); });
  return m;
}

}  // namespace hidet::ir
