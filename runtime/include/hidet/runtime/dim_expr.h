// dim_expr.h - sizes that may be formulas of named symbols: "n*64 + 1", "floordiv(n + 7, 8)".
// A formula is simplified when it is made: constants are folded and sums are kept in one canonical
// order, so that n*64/64 is n, and a + b and b + a are equal. A symbol is a size: it is taken as never
// negative, and as not 0 where it divides. Arithmetic beyond 64 bits throws Error(usage).
// Threading: values with shared immutable nodes; thread-safe.
#pragma once
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hidet {

using Shape = std::vector<int64_t>;
/// Values of symbols by name.
using SymbolMap = std::map<std::string, int64_t, std::less<>>;

/// What a formula is at its top. Sums, products, min, max and broadcast have two operands or more and
/// mean the fold from the left; floordiv and mod have two. There is no other kind: a - b is a + b*-1,
/// and ceildiv(a, b) is floordiv(a + b - 1, b).
enum class DimKind : uint8_t { constant, symbol, add, mul, floordiv, mod, min, max, broadcast };
const char* dim_kind_name(DimKind kind);

class DimExpr;
class DimProgram;

namespace detail {
struct DimNode;
/// `value` as int64_t; throws Error(usage) where it does not fit.
int64_t checked_dim(uint64_t value);
}  // namespace detail

/// An integer, a symbol, or a formula of them.
class DimExpr {
 public:
  DimExpr() = default;  ///< 0
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  DimExpr(T value) {
    if constexpr (std::is_unsigned_v<T>) value_ = detail::checked_dim(value);
    else value_ = value;
  }
  /// A symbol; the name may hold any characters but must not be empty.
  DimExpr(const char* symbol);
  DimExpr(const std::string& symbol);

  bool is_const() const { return !node_; }
  /// True for exactly this number.
  bool is_const(int64_t value) const { return !node_ && value_ == value; }
  /// The number; throws Error(usage) that shows the formula where it is none.
  int64_t value() const;
  bool is_symbol() const { return kind() == DimKind::symbol; }
  /// The symbol's name; throws Error(usage) where it is none.
  const std::string& name() const;

  DimKind kind() const;
  /// Of a constant or a symbol: none. In a product a constant factor comes last, and so it does in a sum.
  const std::vector<DimExpr>& operands() const;
  /// Names of all symbols, sorted, each once.
  std::vector<std::string> symbol_names() const;
  /// True where the formula is proved never negative; false says nothing.
  bool never_negative() const;

  /// The text form, which parse reads back to an equal formula. Odd names are in double quotes.
  std::string text() const;
  /// Reads `+ - * ( )`, numbers, symbols and floordiv, ceildiv, mod, min, max, broadcast. Throws Error(usage).
  static DimExpr parse(std::string_view text);

  /// The value; throws Error(usage) that names a symbol without a value. x/0 and mod(x, 0) are 0.
  int64_t eval(const SymbolMap& symbols) const;
  /// Some symbols replaced.
  DimExpr substitute(const std::map<std::string, DimExpr, std::less<>>& symbols) const;
  /// A program that evaluates with the symbols' values in this order; throws Error(usage) where one is missing.
  DimProgram compile(const std::vector<std::string>& symbol_order) const;

  size_t hash() const;
  friend bool operator==(const DimExpr& a, const DimExpr& b);
  friend bool equal(const DimExpr& a, const DimExpr& b) { return a == b; }

 private:
  friend struct detail::DimNode;
  explicit DimExpr(std::shared_ptr<const detail::DimNode> node) : node_(std::move(node)) {}
  int64_t value_ = 0;                            // of a constant
  std::shared_ptr<const detail::DimNode> node_;  // null: a constant
};

using SymbolicShape = std::vector<DimExpr>;

DimExpr operator+(const DimExpr& a, const DimExpr& b);
DimExpr operator-(const DimExpr& a, const DimExpr& b);
DimExpr operator*(const DimExpr& a, const DimExpr& b);
DimExpr operator-(const DimExpr& a);
/// floordiv and mod: the quotient rounded down, and the remainder with the divisor's sign.
DimExpr operator/(const DimExpr& a, const DimExpr& b);
DimExpr operator%(const DimExpr& a, const DimExpr& b);
DimExpr floordiv(const DimExpr& a, const DimExpr& b);
DimExpr ceildiv(const DimExpr& a, const DimExpr& b);
DimExpr mod(const DimExpr& a, const DimExpr& b);
DimExpr min(const DimExpr& a, const DimExpr& b);
DimExpr max(const DimExpr& a, const DimExpr& b);
/// The size of two dimensions that broadcast: equal, or one of them 1. Throws Error(usage) where that
/// is known to fail, and when evaluated where it fails.
DimExpr broadcast(const DimExpr& a, const DimExpr& b);
inline DimExpr& operator+=(DimExpr& a, const DimExpr& b) { return a = a + b; }
inline DimExpr& operator-=(DimExpr& a, const DimExpr& b) { return a = a - b; }
inline DimExpr& operator*=(DimExpr& a, const DimExpr& b) { return a = a * b; }
std::ostream& operator<<(std::ostream& out, const DimExpr& dim);

/// The formula as a short list of stack instructions. Thread-safe.
class DimProgram {
 public:
  /// `symbols` in the order given to compile. Throws as eval does.
  int64_t run(const int64_t* symbols) const;

 private:
  friend class DimExpr;
  struct Step {
    DimKind kind;   // constant and symbol push a value; the others take two and push one
    int64_t value;  // the constant, or the symbol's place
  };
  void emit(const DimExpr& dim, const std::vector<std::string>& order, int depth);
  int64_t run_on(const int64_t* symbols, int64_t* stack) const;
  std::vector<Step> steps_;
  int depth_ = 0;   // most values on the stack at once
  DimExpr source_;  // for messages
};

/// The same sizes as formulas, and back; the second throws Error(usage) that shows the shape where one is none.
SymbolicShape to_symbolic(const Shape& shape);
Shape to_concrete(const SymbolicShape& shape);
bool is_concrete(const SymbolicShape& shape);
/// The number of elements; 1 for rank 0.
DimExpr product(const SymbolicShape& shape);
/// Throws Error(usage) for a negative size or where the number does not fit in 63 bits.
int64_t product(const Shape& shape);
/// "[2, 3]", "[n, n*64 + 1]".
std::string shape_text(const Shape& shape);
std::string shape_text(const SymbolicShape& shape);

}  // namespace hidet

template <>
struct std::hash<hidet::DimExpr> {
  size_t operator()(const hidet::DimExpr& dim) const { return dim.hash(); }
};
