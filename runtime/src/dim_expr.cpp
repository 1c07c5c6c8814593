// dim_expr.cpp - access, equality, evaluation and programs of DimExpr; helpers for shapes.
#include "hidet/runtime/dim_expr.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <set>

#include "hidet/runtime/error.h"
#include "src/dim_node.h"

namespace hidet {

using detail::apply;
using detail::DimNode;

namespace {

void collect(const DimExpr& e, std::set<std::string>& names) {
  if (e.is_symbol()) names.insert(e.name());
  for (const DimExpr& o : e.operands()) collect(o, names);
}

[[noreturn]] void no_value(const DimExpr& formula, const std::string& name,
                           const std::string& known) {
  throw Error(
      ErrorCode::usage,
      detail::concat("the size ", formula.text(), " needs a value for the symbol '", name, "'; ",
                     known.empty() ? "no symbol has one" : "there are values for " + known));
}

// An error inside a formula, with the formula.
[[noreturn]] void fail_in(const DimExpr& formula, const Error& e) {
  throw Error(e.code(),
              detail::concat("cannot evaluate the size ", formula.text(), ": ", e.what()));
}

int64_t evaluate(const DimExpr& e, const SymbolMap& symbols, const DimExpr& whole) {
  if (e.is_const()) return e.value();
  if (e.is_symbol()) {
    const auto at = symbols.find(e.name());
    if (at != symbols.end()) return at->second;
    std::string known;
    for (const auto& [name, value] : symbols) known += (known.empty() ? "" : ", ") + name;
    no_value(whole, e.name(), known);
  }
  const auto& operands = e.operands();
  int64_t value = evaluate(operands[0], symbols, whole);
  for (size_t i = 1; i < operands.size(); i++)
    value = apply(e.kind(), value, evaluate(operands[i], symbols, whole));
  return value;
}

// The operator that makes a node of this kind.
DimExpr combine(DimKind kind, const DimExpr& a, const DimExpr& b) {
  switch (kind) {
    case DimKind::add: return a + b;
    case DimKind::mul: return a * b;
    case DimKind::floordiv: return floordiv(a, b);
    case DimKind::mod: return mod(a, b);
    case DimKind::min: return min(a, b);
    case DimKind::max: return max(a, b);
    case DimKind::broadcast: return broadcast(a, b);
    case DimKind::constant:
    case DimKind::symbol: break;
  }
  HIDET_CHECK(false, dim_kind_name(kind), " has no operands");
}

}  // namespace

int64_t detail::checked_dim(uint64_t value) {
  HIDET_REQUIRE(value <= INT64_MAX, ErrorCode::usage, "", "the size ", value,
                " does not fit in 63 bits");
  return static_cast<int64_t>(value);
}

const char* dim_kind_name(DimKind kind) {
  constexpr std::array kNames = {"constant", "symbol", "add", "mul",      "floordiv",
                                 "mod",      "min",    "max", "broadcast"};
  return kNames.at(static_cast<size_t>(kind));
}

DimExpr::DimExpr(const std::string& symbol) {
  HIDET_REQUIRE(!symbol.empty(), ErrorCode::usage, "", "a symbol of a size needs a name");
  *this = DimNode::make(DimKind::symbol, {}, symbol);
}
DimExpr::DimExpr(const char* symbol) : DimExpr(std::string(symbol ? symbol : "")) {}

int64_t DimExpr::value() const {
  HIDET_REQUIRE(!node_, ErrorCode::usage, "", "the size ", text(), " is not a number");
  return value_;
}

const std::string& DimExpr::name() const {
  HIDET_REQUIRE(is_symbol(), ErrorCode::usage, "", "the size ", text(), " is not a symbol");
  return node_->name;
}

DimKind DimExpr::kind() const { return node_ ? node_->kind : DimKind::constant; }

const std::vector<DimExpr>& DimExpr::operands() const {
  static const std::vector<DimExpr> kNone;
  return node_ ? node_->operands : kNone;
}

std::vector<std::string> DimExpr::symbol_names() const {
  std::set<std::string> names;
  collect(*this, names);
  return {names.begin(), names.end()};
}

bool DimExpr::never_negative() const {
  const auto& all = operands();
  const auto proved = [](const DimExpr& e) { return e.never_negative(); };
  switch (kind()) {
    case DimKind::constant: return value_ >= 0;
    case DimKind::symbol: return true;
    case DimKind::mod: return proved(all[1]);
    case DimKind::max: return std::any_of(all.begin(), all.end(), proved);
    case DimKind::add:
    case DimKind::mul:
    case DimKind::floordiv:
    case DimKind::min:
    case DimKind::broadcast: return std::all_of(all.begin(), all.end(), proved);
  }
  return false;
}

size_t DimExpr::hash() const { return node_ ? node_->hash : std::hash<int64_t>()(value_); }

bool operator==(const DimExpr& a, const DimExpr& b) {
  if (a.is_const() || b.is_const()) return a.is_const() && b.is_const() && a.value_ == b.value_;
  return a.node_ == b.node_ || (a.node_->hash == b.node_->hash && detail::compare(a, b) == 0);
}

std::ostream& operator<<(std::ostream& out, const DimExpr& dim) { return out << dim.text(); }

int64_t DimExpr::eval(const SymbolMap& symbols) const {
  if (is_const()) return value_;
  try {
    return evaluate(*this, symbols, *this);
  } catch (const Error& e) {
    if (std::string_view(e.what()).starts_with("the size " + text() + " needs")) throw;
    fail_in(*this, e);
  }
}

DimExpr DimExpr::substitute(const std::map<std::string, DimExpr, std::less<>>& symbols) const {
  if (is_const()) return *this;
  if (is_symbol()) {
    const auto at = symbols.find(name());
    return at == symbols.end() ? *this : at->second;
  }
  const auto& all = operands();
  DimExpr result = all[0].substitute(symbols);
  for (size_t i = 1; i < all.size(); i++)
    result = combine(kind(), result, all[i].substitute(symbols));
  return result;
}

DimProgram DimExpr::compile(const std::vector<std::string>& symbol_order) const {
  DimProgram program;
  program.source_ = *this;
  program.emit(*this, symbol_order, 1);
  return program;
}

void DimProgram::emit(const DimExpr& e, const std::vector<std::string>& order, int depth) {
  depth_ = std::max(depth_, depth);
  if (e.is_const()) {
    steps_.push_back({DimKind::constant, e.value()});
  } else if (e.is_symbol()) {
    const auto at = std::find(order.begin(), order.end(), e.name());
    if (at == order.end()) {
      std::string known;
      for (const std::string& name : order) known += (known.empty() ? "" : ", ") + name;
      no_value(source_, e.name(), known);
    }
    steps_.push_back({DimKind::symbol, at - order.begin()});
  } else {
    const auto& operands = e.operands();
    emit(operands[0], order, depth);
    for (size_t i = 1; i < operands.size(); i++) {
      emit(operands[i], order, depth + 1);
      steps_.push_back({e.kind(), 0});
    }
  }
}

int64_t DimProgram::run_on(const int64_t* symbols, int64_t* stack) const {
  int64_t* top = stack;  // one past the topmost value
  for (const Step& step : steps_) {
    if (step.kind == DimKind::constant) {
      *top++ = step.value;
    } else if (step.kind == DimKind::symbol) {
      *top++ = symbols[step.value];
    } else {
      top--;
      top[-1] = apply(step.kind, top[-1], *top);
    }
  }
  return stack[0];
}

int64_t DimProgram::run(const int64_t* symbols) const {
  if (steps_.empty()) return 0;
  constexpr int kLocal = 16;
  try {
    if (depth_ <= kLocal) {
      int64_t stack[kLocal];
      return run_on(symbols, stack);
    }
    std::vector<int64_t> stack(static_cast<size_t>(depth_));
    return run_on(symbols, stack.data());
  } catch (const Error& e) {
    fail_in(source_, e);
  }
}

SymbolicShape to_symbolic(const Shape& shape) { return {shape.begin(), shape.end()}; }

bool is_concrete(const SymbolicShape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const DimExpr& d) { return d.is_const(); });
}

Shape to_concrete(const SymbolicShape& shape) {
  HIDET_REQUIRE(is_concrete(shape), ErrorCode::usage, "", "the shape ", shape_text(shape),
                " has symbolic sizes");
  Shape sizes;
  for (const DimExpr& d : shape) sizes.push_back(d.value());
  return sizes;
}

DimExpr product(const SymbolicShape& shape) {
  DimExpr count = 1;
  for (const DimExpr& d : shape) count *= d;
  return count;
}

int64_t product(const Shape& shape) {
  int64_t count = 1;
  bool fits = true;
  for (const int64_t d : shape) {
    HIDET_REQUIRE(d >= 0, ErrorCode::usage, "", "the shape ", shape_text(shape),
                  " has a negative size");
    if (d != 0 && __builtin_mul_overflow(count, d, &count)) fits = false;
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  HIDET_REQUIRE(fits, ErrorCode::usage, "", "the shape ", shape_text(shape),
                " has more elements than fit in 63 bits");
  return count;
}

std::string shape_text(const Shape& shape) { return shape_text(to_symbolic(shape)); }

std::string shape_text(const SymbolicShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); i++) text += (i ? ", " : "") + shape[i].text();
  return text + "]";
}

}  // namespace hidet
