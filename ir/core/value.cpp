// value.cpp - recording operators of Value and the element proxy.
#include <hidet/ir/dim.h>
#include <hidet/ir/stmt.h>
#include <hidet/ir/value.h>
#include <hidet/runtime/error.h>

#include <limits>

namespace hidet::ir {
namespace {
thread_local Recorder* recorder = nullptr;

/// The variable that memory behind `base` belongs to.
const Node* place_of(const Expr& base) {
  const Node* node = base.get();
  while (node && node->kind != Kind::Var) {
    if (const Binary* b = as<Binary>(node)) node = b->a.get();
    else if (const Cast* c = as<Cast>(node)) node = c->a.get();
    else if (const AddressOf* a = as<AddressOf>(node)) node = a->tensor.get();
    else if (const Load* l = as<Load>(node)) node = l->base.get();
    else break;
  }
  return node;
}

std::vector<Expr> exprs_of(const std::vector<Value>& values) {
  std::vector<Expr> out;
  for (const Value& v : values) out.push_back(v.expr());
  return out;
}
}  // namespace

Recorder* current_recorder() { return recorder; }
Recorder* set_current_recorder(Recorder* r) { return std::exchange(recorder, r); }

Value::Value(const DimExpr& dim) : expr_(to_expr(dim)) {}
Expr Value::immediate(int64_t v, bool is_bool) {
  if (is_bool) return make_bool(v != 0);
  const bool small = v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max();
  return make_int(v, Type(small ? i32 : i64));
}
Expr Value::float_immediate(double v) { return make_float(v, Type(f64)); }

ElementProxy Value::operator[](const Value& index) const { return ElementProxy(*this, {index}, SourceLoc()); }

std::vector<Read> join_reads(std::initializer_list<const Value*> values) {
  std::vector<Read> out;
  for (const Value* v : values)
    for (const Read& r : v->reads()) {
      auto it = out.begin();
      while (it != out.end() && it->place != r.place) ++it;
      if (it == out.end()) out.push_back(r);
      else if (r.stamp < it->stamp) *it = r;
    }
  return out;
}

Value binary(BinaryOp op, const Value& a, const Value& b) {
  return Value(make_binary(op, a.expr(), b.expr()), join_reads({&a, &b}));
}
Value unary(UnaryOp op, const Value& a) { return Value(make_unary(op, a.expr()), a.reads()); }
Value select(const Value& cond, const Value& a, const Value& b) {
  return Value(make_select(cond.expr(), a.expr(), b.expr()), join_reads({&cond, &a, &b}));
}
Value cast(const Value& a, const Type& to) { return Value(make_cast(a.expr(), to), a.reads()); }
Value min(const Value& a, const Value& b) { return binary(BinaryOp::min, a, b); }
Value max(const Value& a, const Value& b) { return binary(BinaryOp::max, a, b); }
Value floordiv(const Value& a, const Value& b) { return binary(BinaryOp::floordiv, a, b); }
Value floormod(const Value& a, const Value& b) { return binary(BinaryOp::floormod, a, b); }

ElementProxy::ElementProxy(Value base, std::vector<Value> indices, SourceLoc loc)
    : base_(std::move(base)), indices_(std::move(indices)), loc_(loc) {
  HIDET_REQUIRE(base_.expr() && (base_.type().is_tensor() || (base_.type().is_pointer() && indices_.size() == 1)),
                ErrorCode::usage, loc.text(), "an index needs a pointer or a tensor, not ",
                base_.expr() ? base_.type().text() : "nothing");
}

ElementProxy::operator Value() const {
  std::vector<Read> reads = base_.reads();
  for (const Value& i : indices_) {
    Value joined(base_.expr(), std::move(reads));
    reads = join_reads({&joined, &i});
  }
  if (recorder) reads.push_back({place_of(base_.expr()), recorder->clock(), loc_});
  Expr e = base_.type().is_tensor() ? make_element(base_.expr(), exprs_of(indices_), false, 1, loc_)
                                    : make_load(base_.expr(), indices_[0].expr(), 1, loc_);
  return Value(std::move(e), std::move(reads));
}

void ElementProxy::store(const Value& v, SourceLoc loc) const {
  HIDET_REQUIRE(recorder, ErrorCode::usage, loc.text(), "a store outside a script function");
  const Type element = base_.type().is_tensor() ? Type(base_.dtype()) : base_.type().pointee();
  const bool imm = v.expr()->kind == Kind::IntImm || v.expr()->kind == Kind::FloatImm;
  const bool widening = imm || (v.type().is_scalar() && element.is_scalar() &&
                                v.dtype().is_integer() && element.dtype().is_integer());
  HIDET_REQUIRE(v.type() == element || widening || (v.type().is_vector() && v.dtype() == element.dtype()),
                ErrorCode::usage, loc.text(), "a value of type ", v.type().text(), " is stored to an element of type ",
                element.text(), "; cast it");
  HIDET_REQUIRE(!(imm && v.dtype().is_float() && !element.dtype().is_float()), ErrorCode::usage, loc.text(),
                "a floating-point constant is stored to an element of type ", element.text(), "; cast it");
  const Expr value = v.type().is_vector() ? v.expr() : make_cast(v.expr(), element, loc);
  Stmt s = base_.type().is_tensor()
               ? Stmt(make_stmt<ElementStore>(loc, base_.expr(), exprs_of(indices_), value, false))
               : Stmt(make_stmt<Store>(loc, base_.expr(), indices_[0].expr(), value));
  std::vector<const Value*> uses{&base_, &v};
  for (const Value& i : indices_) uses.push_back(&i);
  recorder->emit(std::move(s), uses, place_of(base_.expr()));
}

void ElementProxy::operator=(const Located& v) && { store(v.value, v.loc); }
void ElementProxy::operator=(const ElementProxy& v) && { store(Value(v), v.loc_); }
void ElementProxy::operator+=(const Located& v) && { store(Value(*this) + v.value, v.loc); }
void ElementProxy::operator-=(const Located& v) && { store(Value(*this) - v.value, v.loc); }
void ElementProxy::operator*=(const Located& v) && { store(Value(*this) * v.value, v.loc); }
void ElementProxy::operator/=(const Located& v) && { store(Value(*this) / v.value, v.loc); }

}  // namespace hidet::ir
