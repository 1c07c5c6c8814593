// dim_text.cpp - the text form of DimExpr: printer and recursive-descent parser.
// The parser also reads formulas of damaged files: length, depth and operands are bounded.
#include <algorithm>
#include <charconv>

#include "hidet/runtime/error.h"
#include "src/dim_node.h"

namespace hidet {
namespace {

using detail::concat;
using detail::Polynomial;

constexpr size_t kMostText = 64 * 1024;
constexpr int kMostDepth = 200;
constexpr size_t kMostOperands = 1024;  // of one function or product

using Function = DimExpr (*)(const DimExpr&, const DimExpr&);
struct FunctionRow {
  const char* name;
  Function apply;
  bool folds;  // takes more than two operands
};
constexpr FunctionRow kFunctions[] = {
    {"floordiv", floordiv, false},
    {"ceildiv", ceildiv, false},
    {"mod", mod, false},
    {"min", min, true},
    {"max", max, true},
    {"broadcast", broadcast, true},
};

const FunctionRow* find_function(std::string_view name) {
  for (const FunctionRow& f : kFunctions)
    if (name == f.name) return &f;
  return nullptr;
}

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool in_name(char c) { return starts_name(c) || is_digit(c) || c == '.'; }

bool is_plain(const std::string& name) {
  return starts_name(name[0]) && std::all_of(name.begin(), name.end(), in_name) &&
         !find_function(name);
}

std::string quoted(const std::string& name) {
  if (is_plain(name)) return name;
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string print(const DimExpr& e);

// A product without its number, which the caller prints.
std::string print_factors(const DimExpr& e, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; i++) {
    const DimExpr& f = e.operands()[i];
    const bool sum = f.kind() == DimKind::add;
    text += (i ? "*" : "") + (sum ? "(" + print(f) + ")" : print(f));
  }
  return text;
}

// One term of a sum; `first` has no leading blank and plus sign.
std::string print_term(const DimExpr& e, bool first) {
  bool negative = false;
  std::string body;
  if (e.is_const()) {
    negative = e.value() < 0;
    body = std::to_string(e.value()).substr(negative ? 1 : 0);
  } else if (e.kind() == DimKind::mul && e.operands().back().is_const()) {
    const int64_t number = e.operands().back().value();
    negative = number < 0;
    body = print_factors(e, e.operands().size() - 1);
    if (number != -1) body += "*" + std::to_string(number).substr(negative ? 1 : 0);
  } else if (e.kind() == DimKind::mul) {
    body = print_factors(e, e.operands().size());
  } else {
    body = print(e);
  }
  return (first ? (negative ? "-" : "") : (negative ? " - " : " + ")) + body;
}

std::string print(const DimExpr& e) {
  switch (e.kind()) {
    case DimKind::constant: return std::to_string(e.value());
    case DimKind::symbol: return quoted(e.name());
    case DimKind::mul: return print_term(e, true);
    case DimKind::add: {
      std::string text;
      for (const DimExpr& term : e.operands()) text += print_term(term, text.empty());
      return text;
    }
    case DimKind::floordiv:
    case DimKind::mod:
    case DimKind::min:
    case DimKind::max:
    case DimKind::broadcast: break;
  }
  std::string text = concat(dim_kind_name(e.kind()), "(");
  for (size_t i = 0; i < e.operands().size(); i++) text += (i ? ", " : "") + print(e.operands()[i]);
  return text + ")";
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > kMostText)
      fail("it is longer than " + std::to_string(kMostText) + " characters");
  }

  DimExpr whole() {
    const DimExpr e = sum(0);
    skip_blanks();
    if (at_ != text_.size()) fail("an operator was expected");
    return e;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    std::string shown(text_.substr(0, 80));
    if (shown.size() < text_.size()) shown += "...";
    throw Error(ErrorCode::usage,
                concat("'", shown, "' is no size: ", why, " at character ", at_ + 1));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) at_++;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail(concat("'", c, "' was expected"));
  }

  // Terms are collected first: a long sum takes linear time.
  DimExpr sum(int depth) {
    if (depth > kMostDepth) fail("it is nested too deep");
    Polynomial terms;
    bool negative = false;
    do {
      const DimExpr term = product(depth, negative);
      for (const auto& [factors, coefficient] : Polynomial::of(term).terms)
        terms.add(factors, coefficient);
    } while (take('+') || (negative = take('-')));
    return terms.expr();
  }

  // Sums go first, as operator* leaves some unexpanded and the order decides which.
  DimExpr product(int depth, bool& negative) {
    std::vector<DimExpr> factors{factor(depth, negative)};
    negative = false;
    while (take('*')) {
      if (factors.size() >= kMostOperands) fail("it has too many factors");
      factors.push_back(factor(depth, false));
    }
    std::stable_partition(factors.begin(), factors.end(),
                          [](const DimExpr& f) { return f.kind() == DimKind::add; });
    DimExpr e = factors[0];
    for (size_t i = 1; i < factors.size(); i++) e = e * factors[i];
    return e;
  }

  DimExpr factor(int depth, bool negative) {
    if (depth > kMostDepth) fail("it is nested too deep");
    while (take('-')) negative = !negative;
    skip_blanks();
    if (at_ >= text_.size()) fail("a number or a name was expected");
    if (is_digit(text_[at_])) return number(negative);  // with its sign: -2^63 has no positive
    DimExpr e;
    if (take('(')) {
      e = sum(depth + 1);
      need(')');
    } else if (text_[at_] == '"') {
      e = quoted_name();
    } else if (starts_name(text_[at_])) {
      e = name_or_call(depth);
    } else {
      fail("a number or a name was expected");
    }
    return negative ? -e : e;
  }

  DimExpr number(bool negative) {
    size_t end = at_;
    while (end < text_.size() && is_digit(text_[end])) end++;
    const std::string digits = (negative ? "-" : "") + std::string(text_.substr(at_, end - at_));
    int64_t value = 0;
    const auto [stop, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc()) fail("the number does not fit in 64 bits");
    at_ = end;
    return value;
  }

  DimExpr quoted_name() {
    std::string name;
    for (at_++; at_ < text_.size() && text_[at_] != '"'; at_++) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) at_++;
      name += text_[at_];
    }
    if (at_ >= text_.size()) fail("the closing quote is missing");
    if (name.empty()) fail("the name is empty");
    at_++;
    return DimExpr(name);
  }

  DimExpr name_or_call(int depth) {
    const size_t begin = at_;
    while (at_ < text_.size() && in_name(text_[at_])) at_++;
    const std::string_view name = text_.substr(begin, at_ - begin);
    const FunctionRow* function = find_function(name);
    if (!take('(')) {
      if (function) fail(concat("'(' was expected after ", name));
      return DimExpr(std::string(name));
    }
    if (!function) {
      at_ = begin;
      fail(concat("there is no function '", name, "'"));
    }
    DimExpr e = sum(depth + 1);
    size_t count = 1;
    for (; take(','); count++) {
      if (count >= (function->folds ? kMostOperands : size_t{2}))
        fail(concat(name, " has too many operands"));
      e = function->apply(e, sum(depth + 1));
    }
    if (count < 2) fail(concat(name, " needs two operands"));
    need(')');
    return e;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string DimExpr::text() const { return print(*this); }

DimExpr DimExpr::parse(std::string_view text) { return Parser(text).whole(); }

}  // namespace hidet
