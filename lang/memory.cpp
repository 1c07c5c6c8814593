// memory.cpp - tensors, views, pointers and vectors.
#include <hidet/ir/fold.h>
#include <hidet/lang/memory.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
using namespace detail;

std::vector<Expr> detail::extents(const std::vector<Value>& shape, SourceLoc at) {
  std::vector<Expr> out;
  for (const Value& v : shape) {
    HIDET_REQUIRE(v.expr() && v.type().is_scalar() && v.dtype().is_integer(), ErrorCode::usage,
                  at.text(), "an extent of a tensor is an integer, not ",
                  v.expr() ? v.type().text() : "nothing");
    HIDET_REQUIRE(v.reads().empty(), ErrorCode::usage, at.text(),
                  "an extent of a tensor reads a variable or memory; bind it with let");
    int64_t n = 0;
    HIDET_REQUIRE(!ir::is_const_int(v.expr(), &n) || n >= 0, ErrorCode::usage, at.text(),
                  "an extent of a tensor is ", ir::int_text(n, v.dtype()));
    out.push_back(v.expr());
  }
  return out;
}

namespace {
Handle declare(const std::string& name, DType dtype, const std::vector<Value>& shape,
               const Layout& layout, ir::Scope scope, SourceLoc at) {
  FunctionRecorder& r = recording(at, ir::scope_name(scope));
  check_name(name, "a tensor", at);
  ir::TensorInfo info{dtype, extents(shape, at), layout, scope};
  for (const Expr& e : info.shape)
    HIDET_REQUIRE(ir::is_const_int(e), ErrorCode::usage, at.text(), "the ", ir::scope_name(scope),
                  " tensor '", name, "' needs constant extents");
  constexpr int64_t kMost = int64_t{1} << 20;
  int64_t count = 1;
  for (const Expr& e : info.shape) {
    int64_t n = 0;
    (void)ir::is_const_int(e, &n);
    HIDET_REQUIRE(n <= kMost && (count *= std::max<int64_t>(n, 1)) <= kMost, ErrorCode::usage,
                  at.text(), "the ", ir::scope_name(scope), " tensor '", name, "' has more than ",
                  kMost, " elements");
  }
  const VarRef var = ir::make_var(name, Type::tensor(std::move(info)), false, at);
  r.add_shared(var, at);
  r.emit(ir::make_stmt<ir::DeclTensor>(at, var, Expr()), {}, nullptr);
  return Handle(Value(Expr(var)));
}

Handle declare_view(const std::string& name, const Located& pointer, ir::TensorInfo info) {
  FunctionRecorder& r = recording(pointer.loc, "view");
  check_name(name, "a tensor", pointer.loc);
  const Value& p = pointer.value;
  HIDET_REQUIRE(p.expr() && p.type().is_pointer() && p.type().pointee() == Type(info.dtype),
                ErrorCode::usage, pointer.loc.text(), "a view of ", info.dtype.name(),
                " elements needs a ptr(", info.dtype.name(), "), not ",
                p.expr() ? p.type().text() : "nothing", "; use reinterpret");
  const VarRef var = ir::make_var(name, Type::tensor(std::move(info)), false, pointer.loc);
  r.emit(ir::make_stmt<ir::DeclTensor>(pointer.loc, var, p.expr()), {&p}, nullptr);
  return Handle(Value(Expr(var)));
}
}  // namespace

Type tensor(DType dtype, const std::vector<Value>& shape, const Layout& layout) {
  return Type::tensor({dtype, extents(shape, {}), layout, ir::Scope::global});
}
Layout strided(const std::vector<Value>& strides) { return Layout::strided(extents(strides, {})); }

Handle shared(const std::string& name, DType dtype, const std::vector<Value>& shape,
              const Layout& layout, Here at) {
  return declare(name, dtype, shape, layout, ir::Scope::shared, at);
}
Handle registers(const std::string& name, DType dtype, const std::vector<Value>& shape,
                 const Layout& layout, Here at) {
  return declare(name, dtype, shape, layout, ir::Scope::registers, at);
}
Handle dynamic_shared(const std::string& name, DType dtype, const std::vector<Value>& shape,
                      const Layout& layout, Here at) {
  return declare(name, dtype, shape, layout, ir::Scope::dynamic_shared, at);
}
Handle global(const std::string& name, const Located& pointer, const std::vector<Value>& shape,
              const Layout& layout) {
  require_values("global", {pointer});
  HIDET_REQUIRE(pointer.value.type().is_pointer(), ErrorCode::usage, pointer.loc.text(),
                "global() takes a pointer, not ", pointer.value.type().text());
  return declare_view(
      name, pointer,
      {pointer.value.dtype(), extents(shape, pointer.loc), layout, ir::Scope::global});
}
Handle view(const std::string& name, const Located& pointer, const Type& type) {
  HIDET_REQUIRE(type.is_tensor(), ErrorCode::usage, pointer.loc.text(),
                "view() makes a tensor, not ", type.text());
  return declare_view(name, pointer, type.tensor_info());
}

Value reinterpret(const Located& v, const Type& to) {
  HIDET_REQUIRE(v.value.expr(), ErrorCode::usage, v.loc.text(), "reinterpret() without a value");
  return Value(to.is_pointer() ? ir::make_pointer_cast(v.value.expr(), to, v.loc)
                               : ir::make_bitcast(v.value.expr(), to, v.loc),
               v.value.reads());
}

Value load(const Located& pointer, int width) {
  HIDET_REQUIRE(width >= 1 && width <= 64, ErrorCode::usage, pointer.loc.text(), "load() of ",
                width, " elements; from 1 to 64");
  require_values("load", {pointer});
  std::vector<ir::Read> reads = pointer.value.reads();
  if (auto* r = ir::current_recorder())
    reads.push_back({ir::place_of(pointer.value.expr()), r->clock(), pointer.loc});
  return Value(ir::make_load(pointer.value.expr(), ir::make_int(0, Type(i32)), width, pointer.loc),
               std::move(reads));
}

void store(const Located& pointer, const Located& value) {
  FunctionRecorder& r = recording(pointer.loc, "store()");
  const Value& p = pointer.value;
  require_values("store", {pointer, value});
  HIDET_REQUIRE(p.type().is_pointer() && !p.type().pointee().is_void(), ErrorCode::usage,
                pointer.loc.text(), "store() takes a pointer, not ", p.type().text());
  const Type& pointee = p.type().pointee();
  const Type type = pointee.is_scalar() ? pointee.with_lanes(value.value.type().lanes()) : pointee;
  const Expr e = ir::coerce(value.value, type, "an element", value.loc);
  r.emit(ir::make_stmt<ir::Store>(pointer.loc, p.expr(), ir::make_int(0, Type(i32)), e),
         {&p, &value.value}, ir::place_of(p.expr()));
}

Value lane(const Located& vector, const Located& index) {
  return Value(ir::make_lane(vector.value.expr(), index.value.expr(), vector.loc),
               ir::join_reads({&vector.value, &index.value}));
}
Value broadcast(const Located& scalar, int lanes) {
  return Value(ir::make_broadcast(scalar.value.expr(), lanes, scalar.loc), scalar.value.reads());
}
Value make_vec(const std::vector<Located>& lanes) {
  std::vector<Expr> exprs;
  for (const Located& l : lanes) exprs.push_back(l.value.expr());
  return Value(ir::make_vector(std::move(exprs), lanes.empty() ? SourceLoc() : lanes[0].loc),
               reads_of(lanes));
}

}  // namespace hidet::lang
