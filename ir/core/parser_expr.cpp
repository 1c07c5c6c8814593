// parser_expr.cpp - types, layouts, task mappings and expressions of the text form (see parser.h).
#include "core/parser.h"
#include "core/text.h"

#include <hidet/ir/fold.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace hidet::ir {
namespace {
constexpr int64_t kMostLanes = 4096;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

constexpr ReduceOp kReduceOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max,
                                   ReduceOp::min, ReduceOp::all,  ReduceOp::any};

/// The operator of two operands written as `mark` (infix) or, where `infix` is false, called by its name.
const BinaryOpInfo* find_operator(std::string_view text, bool infix, BinaryOp* op) {
  for (int i = 0; i <= static_cast<int>(BinaryOp::logical_or); i++) {
    const BinaryOpInfo& row = info(static_cast<BinaryOp>(i));
    if ((*row.c != 0) != infix || text != (infix ? row.c : row.name)) continue;
    *op = static_cast<BinaryOp>(i);
    return &row;
  }
  return nullptr;
}
}  // namespace

// --- types

DType Parser::dtype(const Token& t) {
  for (int code = 0; code < kNumDTypes; code++)
    if (const DType d(static_cast<DTypeCode>(code)); t.text == d.name()) return d;
  expected("a type", t);
}

Type Parser::type() {
  const Nested nested(*this);
  if (peek().kind != Token::Kind::name) expected("a type");
  return named_type(next());
}

Type Parser::named_type(const Token& t) {
  if (t.text == "void") return {};
  if (t.text == "string") return Type::string();
  if (t.text == "tensor") return tensor_type();
  if (t.text == "ptr") {
    expect("(");
    const Type pointee = type();
    expect(")");
    return Type::pointer(pointee);
  }
  const size_t x = t.text.rfind('x');
  if (x == std::string::npos) return dtype(t);
  Token scalar = t;
  scalar.text = t.text.substr(0, x);
  const std::string lanes = t.text.substr(x + 1);
  const bool digits = !lanes.empty() && lanes.size() <= 4 &&
                      lanes.find_first_not_of("0123456789") == std::string::npos;
  const int n = digits ? std::stoi(lanes) : 0;
  if (n < 2 || n > kMostLanes) expected("a type", t);
  return Type::vector(dtype(scalar), n);
}

Type Parser::tensor_type() {
  TensorInfo info;
  expect("(");
  info.dtype = dtype(next());
  expect(",");
  expect("[");
  info.shape = exprs("]");
  while (take(",")) {
    bool is_scope = false;
    for (const Scope s : {Scope::shared, Scope::dynamic_shared, Scope::registers})
      if (take(scope_name(s))) {
        info.scope = s;
        is_scope = true;
      }
    if (!is_scope) info.layout = layout();
  }
  expect(")");
  return Type::tensor(std::move(info));
}

Layout Parser::layout() {
  const Nested nested(*this);
  const Token t = next();
  if (t.text == "row_major") return {};
  if (t.text == "col_major") return Layout::col_major();
  if (t.text == "strided") {
    expect("(");
    return Layout::strided(exprs(")"));
  }
  const bool two = t.text == "composed" || t.text == "concat",
             one = t.text == "permuted" || t.text == "reshaped";
  if (t.text != "swizzle" && !one && !two) expected("a layout or a memory scope", t);
  expect("(");
  const Layout first = layout();
  expect(",");
  if (t.text == "swizzle") {
    const std::vector<int64_t> n = integers(")", 0, 31);
    if (n.size() != 3 || n[2] < n[0] || n[0] + n[1] + n[2] >= 32)
      fail(t, "a swizzle has bits, base and shift with bits <= shift and a sum below 32");
    return Layout::swizzled(first, n[0], n[1], n[2]);
  }
  const Layout inner = two ? layout() : first;
  if (two) expect(",");
  expect("[");
  std::vector<int64_t> tile = integers("]", t.text == "permuted" ? 0 : 1, kMax);
  expect(")");
  if (t.text == "concat") {
    if (tile.size() != 1) fail(t, "concat has one number of dimensions");
    return Layout::concat(first, tile[0], inner);
  }
  if (t.text == "reshaped") return Layout::reshaped(std::move(tile), inner);
  if (t.text != "permuted") return Layout::composed(first, inner, std::move(tile));
  std::vector<int64_t> sorted = tile;
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < sorted.size(); d++)
    if (sorted[d] != static_cast<int64_t>(d)) fail(t, "permuted has each dimension once");
  return Layout::permuted(std::move(tile), inner);
}

TaskMapping Parser::mapping() {
  TaskMapping m;
  while (!at("on")) {
    const Token t = peek();
    m.items.push_back(mapping_item());
    if (m.items.back().shape.size() != m.items.front().shape.size())
      fail(t, "the parts of a mapping have one rank");
    expect(".");
  }
  if (m.items.empty()) expected("'spatial' or 'repeat'");
  return m;
}

TaskMapping::Item Parser::mapping_item() {
  TaskMapping::Item item;
  item.is_spatial = at("spatial");
  if (!item.is_spatial && !at("repeat")) expected("'spatial', 'repeat' or 'on'");
  const Token t = next();
  expect("(");
  int64_t total = 1;
  for (bool more = true; more; more = take(",")) {
    item.shape.push_back(integer("an extent", 1, int64_t{1} << 31));
    total *= item.shape.back();
    if (total > (int64_t{1} << 31)) fail(t, "a mapping of more than 2^31 tasks");
  }
  if (take(";")) {
    expect("order");
    for (bool more = true; more; more = take(","))
      item.order.push_back(static_cast<int>(integer("a dimension", 0, kMostLanes)));
    std::vector<int> sorted = item.order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t d = 0; d < sorted.size(); d++)
      if (sorted[d] != static_cast<int>(d)) fail(t, "an order names each dimension once");
    if (sorted.size() != item.shape.size()) fail(t, "an order names each dimension once");
  }
  expect(")");
  return item;
}

// --- expressions

template <class T, class... Args>
Expr Parser::node(const Token& t, Args&&... args) {
  T* n = new T(std::forward<Args>(args)..., Type());
  n->loc = loc(t);
  const Expr e(n);
  n->type = natural_type(*n);
  return e;
}

Expr Parser::expr(int least) {
  Nested nested(*this);
  Expr left = prefix();
  while (peek().kind == Token::Kind::mark) {
    BinaryOp op{};
    const BinaryOpInfo* row = find_operator(peek().text, true, &op);
    if (!row || row->precedence < least) break;
    nested.deeper();  // a chain is as deep as it is long
    const Token t = next();
    const Expr right = expr(row->precedence + 1);
    left = node<Binary>(t, op, left, right);
  }
  return left;
}

std::vector<Expr> Parser::exprs(std::string_view close) {
  std::vector<Expr> out;
  list(close, [&] { out.push_back(expr()); });
  return out;
}

Expr Parser::prefix() {
  const Nested nested(*this);
  const Token t = peek();
  const Token& after = peek(1);
  const bool number =
      after.kind == Token::Kind::integer || after.kind == Token::Kind::real || after.text == "inf";
  if (t.text == "-" && t.kind == Token::Kind::mark && number && !after.spaced) return postfix();
  for (const auto& [mark, op] : {std::pair("-", UnaryOp::neg), std::pair("~", UnaryOp::bit_not),
                                 std::pair("!", UnaryOp::logical_not)})
    if (t.kind == Token::Kind::mark && take(mark)) {
      const Expr a = prefix();
      return node<Unary>(t, op, a);
    }
  return postfix();
}

Expr Parser::postfix() {
  Nested nested(*this);
  Expr e = primary();
  for (;;) {
    const Token t = peek();
    if (t.kind != Token::Kind::mark) return e;
    if (t.text == ":") {
      if (peek(1).kind != Token::Kind::name) return e;
      e = with_type(e, next());
    } else if (t.text == "(" || t.text == "[" || t.text == ".") {
      e = suffixed(e);
    } else {
      return e;
    }
    nested.deeper();
  }
}

Expr Parser::suffixed(Expr e) {
  const Token t = next();
  if (t.text == "(") return element(e, false, t);
  if (t.text == ".") {
    const Token what = next();
    if (what.text == "read" || what.text == "write") {
      expect("(");
      return element(e, true, what);
    }
    if (what.text != "lane") expected("'read', 'write' or 'lane'", what);
    expect("(");
    const Expr index = expr();
    expect(")");
    return node<Lane>(t, e, index);
  }
  if (!e->type.is_pointer()) fail(t, "[] takes a pointer, not " + e->type.text());
  const Expr index = expr();
  Type type = e->type.pointee();
  if (take(":")) type = type.with_lanes(static_cast<int>(integer("a lane count", 2, kMostLanes)));
  expect("]");
  Load* load = new Load(e, index, type);
  load->loc = loc(t);
  return Expr(load);
}

Expr Parser::element(Expr tensor, bool guarded, const Token& t) {
  if (!tensor->type.is_tensor()) fail(t, "() takes a tensor, not " + tensor->type.text());
  std::vector<Expr> indices;
  int lanes = 1;
  list(")", [&] {
    indices.push_back(expr());
    if (take(":")) lanes = static_cast<int>(integer("a lane count", 2, kMostLanes));
  });
  Element* e =
      new Element(tensor, std::move(indices), guarded, Type::vector(tensor->type.dtype(), lanes));
  e->loc = loc(t);
  return Expr(e);
}

Expr Parser::primary() {
  const Token t = peek();
  if (t.kind == Token::Kind::string) {
    next();
    if (at("(")) return named(t);
    auto* s = new StringImm(t.text);
    s->loc = loc(t);
    return Expr(s);
  }
  if (t.kind == Token::Kind::name) {
    if (t.text == "inf" || t.text == "nan") return literal();
    next();
    return named(t);
  }
  if (t.kind != Token::Kind::mark || t.text == "-") return literal();
  if (take("(")) {
    const Expr e = expr();
    expect(")");
    return e;
  }
  if (take("[")) {
    std::vector<Expr> lanes = exprs("]");
    if (lanes.empty() || lanes.size() > kMostLanes) fail(t, "a vector has 1 to 4096 lanes");
    return node<MakeVector>(t, std::move(lanes));
  }
  if (take("&")) return address();
  if (take("@")) return primitive();
  if (!take("$")) expected("an expression");
  auto* s = new DimSymbol(name_or_string("the name of a dimension"));
  s->loc = loc(t);
  return Expr(s);
}

Expr Parser::literal() {
  const Token t = peek();
  const bool negative = take("-");
  const Token n = next();
  const bool real = n.kind == Token::Kind::real || n.text == "inf" || n.text == "nan";
  if (!real && n.kind != Token::Kind::integer) expected("an expression", n);
  at_ -= 1;
  double value = 0;
  Number whole;
  if (real) value = negative ? -number() : number();
  else {
    if (negative) at_ -= 1;
    whole = whole_number("an integer");
  }
  Type type(real ? f32 : i32);
  const Token colon = peek();
  if (at(":") && peek(1).kind == Token::Kind::name) {
    next();
    type = this->type();
    if (!type.is_scalar() || type.dtype().is_float() != real || type.dtype().is_boolean())
      fail(colon,
           std::string(real ? "a number with a point" : "an integer") + " is no " + type.text());
  }
  const DType dtype = type.dtype();
  if (real) return make_float(value, type, loc(t));
  if (!whole.fits(dtype)) fail(t, whole.text() + " is no value of " + dtype.name());
  return make_int(whole.signed_value(), type, loc(t));
}

Expr Parser::address() {
  const Token t = peek();
  Expr tensor;
  if (take("(")) {
    tensor = expr();
    expect(")");
  } else {
    const Token v = next();
    auto it = visible_.find(v.text);
    if (v.kind != Token::Kind::name || it == visible_.end()) fail(v, "expected a tensor after '&'");
    tensor = it->second.back();
  }
  if (!tensor->type.is_tensor()) fail(t, "& takes a tensor, not " + tensor->type.text());
  expect("(");
  return node<AddressOf>(t, tensor, exprs(")"));
}

Expr Parser::primitive() {
  const Token t = peek();
  std::string name = word("the name of a primitive");
  std::vector<int64_t> attrs;
  if (take("<")) attrs = integers(">", kMin, kMax);
  expect("(");
  std::vector<Expr> args = exprs(")");
  return node<Prim>(t, std::move(name), std::move(args), std::move(attrs));
}

Expr Parser::reduce(ReduceOp op, const Token& t) {
  const Visible visible(*this);
  std::vector<VarRef> axes;
  std::vector<Expr> extents;
  expect("[");
  list("]", [&] {
    axes.push_back(definition());
    expect("<");
    extents.push_back(expr());
  });
  expect(",");
  const Expr value = expr();
  expect(")");
  return node<Reduce>(t, op, std::move(axes), std::move(extents), value);
}

Expr Parser::arg_reduce(const std::string& which, const Token& t) {
  const Visible visible(*this);
  expect("[");
  const VarRef axis = definition();
  expect("<");
  const Expr extent = expr();
  expect("]");
  expect(",");
  const Expr value = expr();
  expect(")");
  return node<ArgReduce>(t, which.rfind("argmax", 0) == 0, which.ends_with("_last"), axis, extent,
                         value);
}

Expr Parser::named(const Token& t) {
  const std::string& w = t.text;
  const bool quoted = t.kind == Token::Kind::string;
  if (!quoted && (w == "true" || w == "false")) return make_bool(w == "true", loc(t));
  if (!quoted && !is_reserved_word(w))
    if (auto it = visible_.find(w); it != visible_.end()) return it->second.back();
  if (!at("(")) {
    if (is_reserved_word(w)) expected("an expression", t);
    fail(t, "the variable '" + w + "' is not defined here");
  }
  next();
  if (quoted || !is_reserved_word(w)) return node<Call>(t, w, exprs(")"));
  for (const ReduceOp op : kReduceOps)
    if (w == std::string("reduce_") + ir::name(op)) return reduce(op, t);
  if (w.rfind("argm", 0) == 0) return arg_reduce(w, t);
  const Expr a = expr();
  expect(",");
  BinaryOp op{};
  Expr out;
  if (w == "select") {
    const Expr b = expr();
    expect(",");
    const Expr c = expr();
    out = node<Select>(t, a, b, c);
  } else if (find_operator(w, false, &op)) {
    const Expr b = expr();
    out = node<Binary>(t, op, a, b);
  } else if (w == "broadcast") {
    const auto lanes = static_cast<int>(integer("a lane count", 2, kMostLanes));
    auto* b = new Broadcast(a, a->type.with_lanes(lanes));
    b->loc = loc(t);
    out = Expr(b);
  } else {
    const CastKind how = w == "cast"      ? CastKind::value
                         : w == "bitcast" ? CastKind::bits
                                          : CastKind::pointer;
    if (how == CastKind::pointer && w != "pointer_cast") expected("an expression", t);
    auto* c = new Cast(how, a, type());
    c->loc = loc(t);
    out = Expr(c);
  }
  expect(")");
  return out;
}

Expr Parser::with_type(Expr e, const Token& colon) {
  if (e->kind == Kind::Var || e->kind == Kind::IntImm || e->kind == Kind::FloatImm)
    fail(colon, "a type follows a call or an operator only");
  // The node was made above and nobody else holds it.
  const_cast<ExprNode&>(*e).type = type();
  return e;
}

}  // namespace hidet::ir
