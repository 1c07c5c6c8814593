// handles.cpp - variables, tensors in hand, results of calls.
#include <hidet/ir/fold.h>
#include <hidet/lang/global.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
using namespace detail;

namespace {
const ir::TensorInfo& tensor_of(const Value& v, const char* what, SourceLoc at) {
  HIDET_REQUIRE(v.expr() && v.type().is_tensor(), ErrorCode::usage, at.text(), what,
                " takes a tensor, not ", v.expr() ? v.type().text() : "nothing");
  return v.type().tensor_info();
}

std::vector<Expr> exprs(const std::vector<Located>& list) {
  std::vector<Expr> out;
  for (const Located& l : list) out.push_back(l.value.expr());
  return out;
}

SourceLoc place(const Indices& indices) {
  return indices.list.empty() ? SourceLoc() : indices.list[0].loc;
}

/// A vector goes along the last index.
void check_last_index(const Indices& indices, int lanes) {
  HIDET_REQUIRE(lanes == 1 || !indices.list.empty(), ErrorCode::usage, "",
                "a vector of a tensor of rank 0");
}

/// tensor[indices] with everything that the parts read, and the tensor itself.
Value element(const Value& tensor, const Indices& indices, bool guarded, int lanes) {
  check_last_index(indices, lanes);
  std::vector<ir::Read> reads = tensor.reads();
  auto add = [&](const Value& v) {
    const Value sum(tensor.expr(), std::move(reads));
    reads = ir::join_reads({&sum, &v});
  };
  for (const Located& i : indices.list) add(i.value);
  const SourceLoc at = place(indices);
  if (auto* recorder = ir::current_recorder())
    add(Value(tensor.expr(), {{ir::place_of(tensor.expr()), recorder->clock(), at}}));
  return Value(ir::make_element(tensor.expr(), exprs(indices.list), guarded, lanes, at),
               std::move(reads));
}

void store_element(const Value& tensor, const Indices& indices, const Value& v, bool guarded,
                   const Type& type, SourceLoc at) {
  FunctionRecorder& r = recording(at, "a store");
  check_last_index(indices, type.lanes());
  ir::make_element(tensor.expr(), exprs(indices.list), guarded, type.lanes(),
                   at);  // checks the indices
  const Expr value = ir::coerce(v, type, "an element", at);
  std::vector<const Value*> uses{&tensor, &v};
  for (const Located& i : indices.list) uses.push_back(&i.value);
  r.emit(ir::make_stmt<ir::ElementStore>(at, tensor.expr(), exprs(indices.list), value, guarded),
         uses, ir::place_of(tensor.expr()));
}

/// Refuses a part of dimension `d` that is known to reach outside.
void check_part(const Located& begin, const Expr& size, const ir::TensorInfo& info, size_t d,
                SourceLoc at) {
  int64_t first = 0, count = 0, extent = 0;
  if (!ir::is_const_int(info.shape[d], &extent)) return;
  (void)ir::is_const_int(begin.value.expr(), &first);
  (void)ir::is_const_int(size, &count);
  HIDET_REQUIRE(first >= 0 && first <= extent && count <= extent - first, ErrorCode::usage,
                at.text(), "slice() of ", ir::int_text(count, size->type.dtype()), " from ",
                ir::int_text(first, begin.value.dtype()), " in dimension ", d,
                " reaches outside; the extent is ", extent);
}

/// The strides of a tensor in elements, for layouts that have them.
std::vector<Expr> strides_of(const ir::TensorInfo& info, SourceLoc at) {
  using Tag = Layout::Tag;
  HIDET_REQUIRE(info.layout.tag == Tag::row_major || info.layout.tag == Tag::col_major ||
                    info.layout.tag == Tag::strided,
                ErrorCode::usage, at.text(),
                "slice() takes a row major, column major or strided tensor, not ",
                info.layout.text());
  if (info.layout.tag == Tag::strided) return info.layout.strides;
  const size_t rank = info.shape.size();
  std::vector<Expr> strides(rank);
  // Products of extents may pass 32 bits where each extent fits.
  Expr stride = ir::make_int(1, Type(i64));
  for (size_t n = 0; n < rank; n++) {
    const size_t i = info.layout.tag == Tag::row_major ? rank - 1 - n : n;
    int64_t known = 0;
    const bool small = ir::is_const_int(stride, &known) && known == static_cast<int32_t>(known);
    strides[i] = small ? ir::make_int(known, Type(i32)) : stride;
    stride = ir::make_binary(ir::BinaryOp::mul, stride, ir::make_cast(info.shape[i], Type(i64)));
  }
  return strides;
}
}  // namespace

Indices::Indices(const std::vector<Handle>& indices, Here at) {
  for (const Handle& i : indices) list.emplace_back(Value(i), SourceLoc(at));
}
Indices::Indices(const std::vector<Value>& indices, Here at) {
  for (const Value& i : indices) list.emplace_back(i, SourceLoc(at));
}

ElementProxy Handle::operator()(const Indices& indices) const {
  std::vector<Value> values;
  for (const Located& i : indices.list) values.push_back(i.value);
  return ElementProxy(*this, std::move(values), place(indices));
}
Value Handle::ptr(const std::vector<Handle>& indices, Here at) const {
  return pointer(Indices(indices, at).list, at);
}
Value Handle::read(const Indices& indices) const {
  tensor_of(*this, "read()", place(indices));
  return element(*this, indices, true, 1);
}
Value Handle::load(const Indices& indices, int width) const {
  tensor_of(*this, "load()", place(indices));
  return element(*this, indices, false, width);
}
void Handle::write(const Indices& indices, const Located& v) const {
  const ir::TensorInfo& info = tensor_of(*this, "write()", v.loc);
  store_element(*this, indices, v.value, true, Type(info.dtype), v.loc);
}
void Handle::store(const Indices& indices, const Located& v) const {
  const ir::TensorInfo& info = tensor_of(*this, "store()", v.loc);
  HIDET_REQUIRE(v.value.type().is_arithmetic(), ErrorCode::usage, v.loc.text(),
                "store() takes a number or a vector, not ",
                v.value.expr() ? v.value.type().text() : "nothing");
  store_element(*this, indices, v.value, false, Type::vector(info.dtype, v.value.type().lanes()),
                v.loc);
}

std::vector<Value> Handle::shape() const {
  std::vector<Value> out;
  for (const Expr& e : tensor_of(*this, "shape()", {}).shape) out.emplace_back(e);
  return out;
}
int Handle::rank() const { return static_cast<int>(tensor_of(*this, "rank()", {}).shape.size()); }

Value Handle::pointer(std::vector<Located> indices, SourceLoc at) const {
  const ir::TensorInfo& info = tensor_of(*this, "ptr()", at);
  HIDET_REQUIRE(info.scope != ir::Scope::registers, ErrorCode::usage, at.text(),
                "a tensor in registers has no address");
  if (indices.empty()) indices.assign(info.shape.size(), Located(Value(0), at));
  std::vector<ir::Read> reads = reads_of(indices);
  return Value(ir::make_address(expr(), exprs(indices), at), std::move(reads));
}

Handle Handle::slice(const Indices& begin, const Indices& shape) const {
  const SourceLoc at = place(begin);
  const ir::TensorInfo& info = tensor_of(*this, "slice()", at);
  HIDET_REQUIRE(begin.list.size() == info.shape.size() && shape.list.size() == info.shape.size(),
                ErrorCode::usage, at.text(), "slice() of a tensor of rank ", info.shape.size(),
                " takes ", info.shape.size(), " offsets and as many extents");
  FunctionRecorder& r = recording(at, "slice()");
  std::vector<Value> values;
  for (const Located& l : shape.list) values.push_back(l.value);
  const std::vector<Expr> sizes = extents(values, at);
  for (size_t d = 0; d < sizes.size(); d++) check_part(begin.list[d], sizes[d], info, d, at);
  ir::TensorInfo part{info.dtype, sizes, Layout::strided(strides_of(info, at)), ir::Scope::global};
  const Value data = pointer(begin.list, at);
  const VarRef var = ir::make_var("slice", Type::tensor(std::move(part)), false, at);
  r.emit(ir::make_stmt<ir::DeclTensor>(at, var, data.expr()), {&data}, nullptr);
  return Handle(Value(Expr(var)));
}

// --- mutable variables

Var::operator Value() const {
  auto* recorder = ir::current_recorder();
  HIDET_REQUIRE(recorder, ErrorCode::usage, node_->loc.text(), "the variable '", node_->name,
                "' is read outside a script function");
  return Value(Expr(node_), {{node_.get(), recorder->clock(), node_->loc}});
}
void Var::operator=(const Located& v) const {
  FunctionRecorder& r = recording(v.loc, "an assignment");
  const Expr value = ir::coerce(v.value, node_->type, "the variable '" + node_->name + "'", v.loc);
  r.emit(ir::make_stmt<ir::Assign>(v.loc, Expr(node_), value), {&v.value}, node_.get());
}
void Var::operator=(const Var& v) const { *this = Located(Value(v), node_->loc); }
void Var::update(ir::BinaryOp op, const Located& v) const {
  *this = Located(ir::binary(op, Value(*this), v.value, v.loc), v.loc);
}

// --- variables of a module

Global::operator Value() const {
  return type_.is_tensor() ? Value(tensor_) : Value(tensor_[Located(Value(0), SourceLoc())]);
}
const Handle& Global::tensor() const {
  const ir::Var& var = *ir::as<ir::Var>(tensor_.expr());
  HIDET_REQUIRE(type_.is_tensor(), ErrorCode::usage, var.loc.text(), "the global variable '",
                var.name, "' is no tensor, but of type ", type_.text());
  return tensor_;
}
void Global::assign(const Value& v, SourceLoc at) const {
  const ir::Var& var = *ir::as<ir::Var>(tensor_.expr());
  HIDET_REQUIRE(!type_.is_tensor(), ErrorCode::usage, at.text(), "the global variable '", var.name,
                "' is a tensor; assign its elements");
  const Value typed(ir::coerce(v, type_, "the global variable '" + var.name + "'", at), v.reads());
  tensor_[Located(Value(0), at)] = Located(typed, at);
}
void Global::operator=(const Located& v) const { assign(v.value, v.loc); }
void Global::operator=(const Global& v) const { assign(v, ir::as<ir::Var>(tensor_.expr())->loc); }
void Global::update(ir::BinaryOp op, const Located& v) const {
  assign(ir::binary(op, Value(*this), v.value, v.loc), v.loc);
}

// --- results of calls

CallResult::CallResult(Value call, bool effects, SourceLoc at)
    : call_(std::move(call)),
      effects_(effects),
      exceptions_(std::uncaught_exceptions()),
      recorder_(ir::current_recorder()),
      at_(at) {}

CallResult::operator Value() const {
  HIDET_REQUIRE(call_.expr(), ErrorCode::usage, at_.text(),
                "the value of a call that returns nothing is used");
  if (!used_ && effects_)
    static_cast<FunctionRecorder*>(recorder_)->must_be_used(call_.expr(), at_);
  used_ = true;
  return call_;
}

CallResult::~CallResult() {
  if (used_ || !call_.expr() || !recorder_ || std::uncaught_exceptions() > exceptions_) return;
  auto* recorder = static_cast<FunctionRecorder*>(recorder_);
  try {
    recorder->emit(ir::make_stmt<ir::Evaluate>(at_, call_.expr()), {&call_}, nullptr);
  } catch (...) {
    recorder->keep(std::current_exception());
  }
}

}  // namespace hidet::lang
