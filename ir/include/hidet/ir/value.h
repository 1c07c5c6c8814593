// value.h - Value: a handle to an expression whose operators record new expressions. Scripts, compute
// definitions and rewrite rules are written with it. What a Value reads from mutable places is
// stamped, so that the recorder can refuse a stale use.
// Threading: one thread at a time.
#pragma once
#include <hidet/ir/expr.h>
#include <hidet/runtime/dim_expr.h>

#include <concepts>
#include <memory>

namespace hidet::ir {

class ElementProxy;
struct Located;

/// Base of everything that records: makes the operators below visible to argument-dependent lookup.
struct Recordable {};

/// A mutable place that a Value read, and when.
struct Read {
  const Node* place;  ///< the Var of a mutable variable, pointer parameter or tensor
  uint64_t stamp;     ///< the recorder's clock at the read
  SourceLoc loc;
  bool writes = false;  ///< evaluating the value also stores there (a call, an atomic)
  bool clash = false;   ///< two parts of the value touch the place and one of them stores
};

/// A recorded expression. Converts from C++ numbers (which take the other operand's dtype), DimExpr,
/// and element proxies (a load). Never converts to bool: a recorded condition cannot steer C++.
class Value : public Recordable {
 public:
  Value() = default;
  explicit Value(Expr e) : expr_(std::move(e)) {}
  Value(Expr e, std::vector<Read> reads) : expr_(std::move(e)), reads_(std::move(reads)) {}
  Value(const DimExpr& dim);
  /// i32 where it fits, else i64, else u64.
  template <std::integral T>
    requires(sizeof(T) <= sizeof(int64_t))
  Value(T v)
      : expr_(immediate(static_cast<int64_t>(v), std::is_same_v<T, bool>, std::is_unsigned_v<T>)) {}
  template <std::floating_point T>
  Value(T v) : expr_(float_immediate(static_cast<double>(v), std::is_same_v<T, float>)) {}

  /// Null of a Value() that was never given a value; its type is void.
  const Expr& expr() const { return expr_; }
  const Type& type() const { return expr_ ? expr_->type : no_type(); }
  DType dtype() const { return type().dtype(); }
  const std::vector<Read>& reads() const { return reads_; }

  /// p[i]: the element behind a pointer, or of a rank-1 tensor. Assignable while a temporary.
  ElementProxy operator[](const Located& index) const;
  /// t(i, j): an element of a tensor. Assignable while a temporary.
  template <class... Rest>
  ElementProxy operator()(const Located& first, const Rest&... rest) const;

 private:
  static const Type& no_type();
  static Expr immediate(int64_t v, bool is_bool, bool is_unsigned);
  static Expr float_immediate(double v, bool single);
  Expr expr_;
  std::vector<Read> reads_;
};

/// A Value with the place where it was written; function arguments and right-hand sides take this.
struct Located {
  Value value;
  SourceLoc loc;
  template <class T>
    requires std::convertible_to<const T&, Value>
  Located(const T& v, std::source_location at = std::source_location::current())
      : value(v), loc(at) {}
  Located(Value v, SourceLoc at) : value(std::move(v)), loc(at) {}
};

/// What statements are recorded into; lang implements it. One current recorder a thread.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void emit(Stmt stmt, const std::vector<const Value*>& uses, const Node* stored_place) = 0;
  virtual uint64_t clock() const = 0;
};
Recorder* current_recorder();
/// Makes `recorder` current; returns the former one.
Recorder* set_current_recorder(Recorder* recorder);

/// a[i] or t(i, j): reads as a Value, writes by assignment while a temporary; neither copyable nor movable
/// (so `auto x = a[i]; x = e;` does not compile: use let). Stamped where it is written: a later use
/// after a store is refused.
class ElementProxy : public Recordable {
 public:
  ElementProxy(Value base, std::vector<Value> indices, SourceLoc loc);
  ElementProxy(const ElementProxy&) = delete;
  operator Value() const;
  Value value() const { return *this; }
  /// Pointer to the element.
  Value address() const;
  void operator=(const Located& v) &&;
  void operator=(const ElementProxy& v) &&;
  void operator+=(const Located& v) &&;
  void operator-=(const Located& v) &&;
  void operator*=(const Located& v) &&;
  void operator/=(const Located& v) &&;
  void operator%=(const Located& v) &&;
  void operator&=(const Located& v) &&;
  void operator|=(const Located& v) &&;
  void operator^=(const Located& v) &&;
  void operator<<=(const Located& v) &&;
  void operator>>=(const Located& v) &&;
  /// Elements of elements (pointer to pointer, tensor rows are not proxies).
  ElementProxy operator[](const Located& index) const;

 private:
  void store(const Value& v, SourceLoc loc) const;
  Value base_;
  std::vector<Value> indices_;
  SourceLoc loc_;
  uint64_t stamp_ = 0;
};

template <class... Rest>
ElementProxy Value::operator()(const Located& first, const Rest&... rest) const {
  return ElementProxy(*this, std::vector<Value>{first.value, Value(rest)...}, first.loc);
}

/// The variable that the memory behind a pointer or tensor expression belongs to.
const Node* place_of(const Expr& base);
/// `v` where a value of type `to` is stored, assigned or passed: constants take the type when they fit,
/// integers convert, one value fills a vector. Else Error(usage) that says `what`.
Expr coerce(const Value& v, const Type& to, const std::string& what, SourceLoc loc);

/// Joins the reads of several values.
std::vector<Read> join_reads(std::initializer_list<const Value*> values);

/// What records: a class that converts to Value.
template <class T>
concept Recorded =
    std::is_base_of_v<Recordable, std::remove_cvref_t<T>> && std::convertible_to<T, Value>;

Value binary(BinaryOp op, const Value& a, const Value& b, SourceLoc loc = {});
Value unary(UnaryOp op, const Value& a, SourceLoc loc = {});

// The right side is converted at the place of the expression, and so carries its line. `==` and `!=` take
// two of them, because C++20 also tries them with the sides exchanged.
#define HIDET_VALUE_OP(symbol, code)                               \
  inline Value operator symbol(const Value& a, const Located& b) { \
    return binary(BinaryOp::code, a, b.value, b.loc);              \
  }
HIDET_VALUE_OP(+, add)
HIDET_VALUE_OP(-, sub)
HIDET_VALUE_OP(*, mul)
HIDET_VALUE_OP(/, div)
HIDET_VALUE_OP(%, mod)
HIDET_VALUE_OP(<, lt)
HIDET_VALUE_OP(<=, le)
HIDET_VALUE_OP(>, gt)
HIDET_VALUE_OP(>=, ge)
HIDET_VALUE_OP(&&, logical_and)
HIDET_VALUE_OP(||, logical_or)
HIDET_VALUE_OP(&, bit_and)
HIDET_VALUE_OP(|, bit_or)
HIDET_VALUE_OP(^, bit_xor)
HIDET_VALUE_OP(<<, shl)
HIDET_VALUE_OP(>>, shr)
#undef HIDET_VALUE_OP
inline Value operator==(const Located& a, const Located& b) {
  return binary(BinaryOp::eq, a.value, b.value, b.loc);
}
inline Value operator!=(const Located& a, const Located& b) {
  return binary(BinaryOp::ne, a.value, b.value, b.loc);
}

inline Value operator-(const Located& a) { return unary(UnaryOp::neg, a.value, a.loc); }
inline Value operator!(const Located& a) { return unary(UnaryOp::logical_not, a.value, a.loc); }
inline Value operator~(const Located& a) { return unary(UnaryOp::bit_not, a.value, a.loc); }

/// cond ? a : b, evaluating only the side taken.
Value select(const Located& cond, const Located& a, const Located& b);
/// Numeric conversion.
Value cast(const Located& a, const Type& to);
Value min(const Located& a, const Located& b);
Value max(const Located& a, const Located& b);
Value floordiv(const Located& a, const Located& b);
Value floormod(const Located& a, const Located& b);

}  // namespace hidet::ir
