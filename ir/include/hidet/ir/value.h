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

/// A mutable place that a Value read, and when.
struct Read {
  const Node* place;  ///< the Var of a mutable variable, pointer parameter or tensor
  uint64_t stamp;     ///< the recorder's clock at the read
  SourceLoc loc;
};

/// A recorded expression. Converts from C++ numbers (which take the other operand's dtype), DimExpr,
/// and element proxies (a load). Never converts to bool: a recorded condition cannot steer C++.
class Value {
 public:
  Value() = default;
  explicit Value(Expr e) : expr_(std::move(e)) {}
  Value(Expr e, std::vector<Read> reads) : expr_(std::move(e)), reads_(std::move(reads)) {}
  Value(const DimExpr& dim);
  template <std::integral T>
  Value(T v) : expr_(immediate(static_cast<int64_t>(v), std::is_same_v<T, bool>)) {}
  template <std::floating_point T>
  Value(T v) : expr_(float_immediate(static_cast<double>(v))) {}

  const Expr& expr() const { return expr_; }
  const Type& type() const { return expr_->type; }
  DType dtype() const { return expr_->type.dtype(); }
  const std::vector<Read>& reads() const { return reads_; }
  explicit operator bool() const = delete;

  /// p[i]: the element behind a pointer, or of a rank-1 tensor. Assignable while a temporary.
  ElementProxy operator[](const Value& index) const;
  /// t(i, j): an element of a tensor. Assignable while a temporary.
  template <class... Index>
  ElementProxy operator()(const Index&... indices) const;

 private:
  static Expr immediate(int64_t v, bool is_bool);
  static Expr float_immediate(double v);
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
/// (so `auto x = a[i]` does not compile where it would be an alias: use let).
class ElementProxy {
 public:
  ElementProxy(Value base, std::vector<Value> indices, SourceLoc loc);
  ElementProxy(const ElementProxy&) = delete;
  operator Value() const;
  Value value() const { return *this; }
  void operator=(const Located& v) &&;
  void operator=(const ElementProxy& v) &&;
  void operator+=(const Located& v) &&;
  void operator-=(const Located& v) &&;
  void operator*=(const Located& v) &&;
  void operator/=(const Located& v) &&;
  /// Elements of elements (pointer to pointer, tensor rows are not proxies).
  ElementProxy operator[](const Value& index) const { return Value(*this)[index]; }

 private:
  void store(const Value& v, SourceLoc loc) const;
  Value base_;
  std::vector<Value> indices_;
  SourceLoc loc_;
};

template <class... Index>
ElementProxy Value::operator()(const Index&... indices) const {
  return ElementProxy(*this, std::vector<Value>{Value(indices)...}, SourceLoc());
}

/// Joins the reads of several values.
std::vector<Read> join_reads(std::initializer_list<const Value*> values);

/// What an operator takes: at least one side is a Value or converts to one as a class.
template <class T>
concept Recorded = std::is_class_v<std::remove_cvref_t<T>> && std::convertible_to<T, Value> &&
                   !std::same_as<std::remove_cvref_t<T>, DimExpr>;
template <class A, class B>
concept RecordedPair = (Recorded<A> || Recorded<B>)&&std::convertible_to<A, Value>&& std::convertible_to<B, Value>;

Value binary(BinaryOp op, const Value& a, const Value& b);
Value unary(UnaryOp op, const Value& a);

#define HIDET_VALUE_OP(symbol, code)                      \
  template <class A, class B>                             \
    requires RecordedPair<const A&, const B&>             \
  Value operator symbol(const A& a, const B& b) {         \
    return binary(BinaryOp::code, Value(a), Value(b));    \
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
HIDET_VALUE_OP(==, eq)
HIDET_VALUE_OP(!=, ne)
HIDET_VALUE_OP(&&, logical_and)
HIDET_VALUE_OP(||, logical_or)
HIDET_VALUE_OP(&, bit_and)
HIDET_VALUE_OP(|, bit_or)
HIDET_VALUE_OP(^, bit_xor)
HIDET_VALUE_OP(<<, shl)
HIDET_VALUE_OP(>>, shr)
#undef HIDET_VALUE_OP

template <Recorded A>
Value operator-(const A& a) { return unary(UnaryOp::neg, Value(a)); }
template <Recorded A>
Value operator!(const A& a) { return unary(UnaryOp::logical_not, Value(a)); }
template <Recorded A>
Value operator~(const A& a) { return unary(UnaryOp::bit_not, Value(a)); }

/// cond ? a : b, evaluating only the side taken.
Value select(const Value& cond, const Value& a, const Value& b);
/// Numeric conversion.
Value cast(const Value& a, const Type& to);
Value min(const Value& a, const Value& b);
Value max(const Value& a, const Value& b);
Value floordiv(const Value& a, const Value& b);
Value floormod(const Value& a, const Value& b);

}  // namespace hidet::ir
