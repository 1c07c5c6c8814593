// value.cpp - recording operators of Value and the element proxy.
#include <hidet/ir/dim.h>
#include <hidet/ir/stmt.h>
#include <hidet/ir/value.h>
#include <hidet/runtime/error.h>

#include <limits>

#include <hidet/ir/fold.h>

namespace hidet::ir {
namespace {
thread_local Recorder* recorder = nullptr;

std::vector<Expr> exprs_of(const std::vector<Value>& values) {
  std::vector<Expr> out;
  for (const Value& v : values) out.push_back(v.expr());
  return out;
}
}  // namespace

Recorder* current_recorder() { return recorder; }
Recorder* set_current_recorder(Recorder* r) { return std::exchange(recorder, r); }

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

Value::Value(const DimExpr& dim) : expr_(to_expr(dim)) {}
const Type& Value::no_type() {
  static const Type none;
  return none;
}
Expr Value::immediate(int64_t v, bool is_bool, bool is_unsigned) {
  if (is_bool) return make_bool(v != 0);
  if (is_unsigned && v < 0) return make_int(v, Type(u64));
  const bool small =
      v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max();
  return make_int(v, Type(small ? i32 : i64));
}
Expr Value::float_immediate(double v, bool single) {
  return make_float(v, Type(single ? f32 : f64));
}

ElementProxy Value::operator[](const Located& index) const {
  return ElementProxy(*this, {index.value}, index.loc);
}

std::vector<Read> join_reads(std::initializer_list<const Value*> values) {
  std::vector<Read> out;
  for (const Value* v : values)
    for (const Read& r : v->reads()) {
      auto it = out.begin();
      while (it != out.end() && it->place != r.place) ++it;
      if (it == out.end()) {
        out.push_back(r);
        continue;
      }
      const bool clash = it->clash || r.clash || it->writes || r.writes;
      const bool writes = it->writes || r.writes;
      if (r.stamp < it->stamp) *it = r;
      it->clash = clash;
      it->writes = writes;
    }
  return out;
}

Value binary(BinaryOp op, const Value& a, const Value& b, SourceLoc loc) {
  return Value(make_binary(op, a.expr(), b.expr(), loc), join_reads({&a, &b}));
}
Value unary(UnaryOp op, const Value& a, SourceLoc loc) {
  return Value(make_unary(op, a.expr(), loc), a.reads());
}
Value select(const Located& cond, const Located& a, const Located& b) {
  return Value(make_select(cond.value.expr(), a.value.expr(), b.value.expr(), b.loc),
               join_reads({&cond.value, &a.value, &b.value}));
}
Value cast(const Located& a, const Type& to) {
  return Value(make_cast(a.value.expr(), to, a.loc), a.value.reads());
}
Value min(const Located& a, const Located& b) {
  return binary(BinaryOp::min, a.value, b.value, b.loc);
}
Value max(const Located& a, const Located& b) {
  return binary(BinaryOp::max, a.value, b.value, b.loc);
}
Value floordiv(const Located& a, const Located& b) {
  return binary(BinaryOp::floordiv, a.value, b.value, b.loc);
}
Value floormod(const Located& a, const Located& b) {
  return binary(BinaryOp::floormod, a.value, b.value, b.loc);
}

Expr coerce(const Value& v, const Type& to, const std::string& what, SourceLoc loc) {
  HIDET_REQUIRE(v.expr() && !v.type().is_void(), ErrorCode::usage, loc.text(), what,
                " without a value");
  const Type& from = v.type();
  if (from == to) return v.expr();
  const bool numbers = from.is_arithmetic() && to.is_arithmetic();
  const bool lanes = numbers && (from.lanes() == to.lanes() || from.lanes() == 1);
  const IntImm* i = as<IntImm>(v.expr());
  const bool is_float_imm = as<FloatImm>(v.expr()) != nullptr;
  const bool imm = (i && to.dtype().is_boolean() == from.dtype().is_boolean()) ||
                   (is_float_imm && to.dtype().is_float());
  const bool ints = numbers && from.dtype().is_integer() && to.dtype().is_integer();
  HIDET_REQUIRE(lanes && (imm || ints || from.dtype() == to.dtype()), ErrorCode::usage, loc.text(),
                what, " of type ", to.text(), " is given ",
                is_float_imm ? "a floating-point constant" : from.text(), "; cast it");
  HIDET_REQUIRE(!i || !ints || fits(i->value, from.dtype(), to.dtype()), ErrorCode::usage,
                loc.text(), what, " of type ", to.text(), " is given the constant ",
                i ? int_text(i->value, from.dtype()) : "", ", which does not fit");
  return make_cast(v.expr(), to, loc);
}

ElementProxy::ElementProxy(Value base, std::vector<Value> indices, SourceLoc loc)
    : base_(std::move(base)),
      indices_(std::move(indices)),
      loc_(loc),
      stamp_(recorder ? recorder->clock() : 0) {
  HIDET_REQUIRE(base_.expr() && (base_.type().is_tensor() ||
                                 (base_.type().is_pointer() && indices_.size() == 1)),
                ErrorCode::usage, loc.text(), "an index needs a pointer or a tensor, not ",
                base_.expr() ? base_.type().text() : "nothing");
}

ElementProxy::operator Value() const {
  std::vector<Read> reads = base_.reads();
  for (const Value& i : indices_) {
    Value joined(base_.expr(), std::move(reads));
    reads = join_reads({&joined, &i});
  }
  if (recorder) {
    const Value self(base_.expr(), {{place_of(base_.expr()), stamp_, loc_}});
    const Value joined(base_.expr(), std::move(reads));
    reads = join_reads({&joined, &self});
  }
  Expr e = base_.type().is_tensor() ? make_element(base_.expr(), exprs_of(indices_), false, 1, loc_)
                                    : make_load(base_.expr(), indices_[0].expr(), 1, loc_);
  return Value(std::move(e), std::move(reads));
}

Value ElementProxy::address() const {
  std::vector<Read> reads = base_.reads();
  for (const Value& i : indices_) {
    const Value joined(base_.expr(), std::move(reads));
    reads = join_reads({&joined, &i});
  }
  Expr e = base_.type().is_tensor()
               ? make_address(base_.expr(), exprs_of(indices_), loc_)
               : make_binary(BinaryOp::add, base_.expr(), indices_[0].expr(), loc_);
  return Value(std::move(e), std::move(reads));
}

ElementProxy ElementProxy::operator[](const Located& index) const { return Value(*this)[index]; }

void ElementProxy::store(const Value& v, SourceLoc loc) const {
  HIDET_REQUIRE(recorder, ErrorCode::usage, loc.text(), "a store outside a script function");
  const Type element = base_.type().is_tensor() ? Type(base_.dtype()) : base_.type().pointee();
  const Type to = v.expr() && v.type().is_vector() && element.is_scalar()
                      ? element.with_lanes(v.type().lanes())
                      : element;
  const Expr value = coerce(v, to, "an element", loc);
  Stmt s;
  if (base_.type().is_tensor()) {
    make_element(base_.expr(), exprs_of(indices_), false, 1, loc);  // checks the indices
    s = make_stmt<ElementStore>(loc, base_.expr(), exprs_of(indices_), value, false);
  } else {
    make_load(base_.expr(), indices_[0].expr(), 1, loc);
    s = make_stmt<Store>(loc, base_.expr(), indices_[0].expr(), value);
  }
  std::vector<const Value*> uses{&base_, &v};
  for (const Value& i : indices_) uses.push_back(&i);
  recorder->emit(std::move(s), uses, place_of(base_.expr()));
}

void ElementProxy::operator=(const Located& v) && { store(v.value, v.loc); }
void ElementProxy::operator=(const ElementProxy& v) && { store(Value(v), v.loc_); }
#define HIDET_COMPOUND(symbol, code)                                    \
  void ElementProxy::operator symbol(const Located & v)&& {             \
    store(binary(BinaryOp::code, Value(*this), v.value, v.loc), v.loc); \
  }
HIDET_COMPOUND(+=, add)
HIDET_COMPOUND(-=, sub)
HIDET_COMPOUND(*=, mul)
HIDET_COMPOUND(/=, div)
HIDET_COMPOUND(%=, mod)
HIDET_COMPOUND(&=, bit_and)
HIDET_COMPOUND(|=, bit_or)
HIDET_COMPOUND(^=, bit_xor)
HIDET_COMPOUND(<<=, shl)
HIDET_COMPOUND(>>=, shr)
#undef HIDET_COMPOUND

}  // namespace hidet::ir
