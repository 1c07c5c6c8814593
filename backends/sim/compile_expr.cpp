// compile_expr.cpp - expressions of the IR to register instructions.
#include <hidet/ir/mma.h>
#include <hidet/ir/primitives.h>

#include <cstring>
#include <map>

#include "sim/compiler.h"
#include "sim/values.h"

namespace hidet::backends::sim {
namespace {

/// A primitive that is one instruction. sub: what `op` needs to know.
struct PrimRow {
  const char* name;
  Op op;
  uint8_t sub;
};
constexpr PrimRow kPrims[] = {
    {"thread_idx_x", Op::builtin, 0},
    {"thread_idx_y", Op::builtin, 1},
    {"thread_idx_z", Op::builtin, 2},
    {"block_idx_x", Op::builtin, 3},
    {"block_idx_y", Op::builtin, 4},
    {"block_idx_z", Op::builtin, 5},
    {"block_dim_x", Op::builtin, 6},
    {"block_dim_y", Op::builtin, 7},
    {"block_dim_z", Op::builtin, 8},
    {"grid_dim_x", Op::builtin, 9},
    {"grid_dim_y", Op::builtin, 10},
    {"grid_dim_z", Op::builtin, 11},
    {"clock", Op::builtin, 12},
    {"parallel_threads", Op::builtin, 13},
    {"syncthreads", Op::barrier, 0},
    {"syncwarp", Op::sync_warp, 0},
    {"threadfence", Op::fence, kDevice},
    {"threadfence_block", Op::fence, kBlock},
    {"shfl_sync", Op::exchange, 0},
    {"shfl_up_sync", Op::exchange, 1},
    {"shfl_down_sync", Op::exchange, 2},
    {"shfl_xor_sync", Op::exchange, 3},
    {"ballot_sync", Op::vote, 0},
    {"elect_one", Op::vote, 4},
    {"any_sync", Op::vote, 1},
    {"all_sync", Op::vote, 2},
    {"match_any_sync", Op::vote, 3},
    {"match_all_sync", Op::vote, 5},
    {"redux_add", Op::reduce_warp, uint8_t(Combine::add)},
    {"redux_min", Op::reduce_warp, uint8_t(Combine::min)},
    {"redux_max", Op::reduce_warp, uint8_t(Combine::max)},
    {"redux_and", Op::reduce_warp, uint8_t(Combine::bit_and)},
    {"redux_or", Op::reduce_warp, uint8_t(Combine::bit_or)},
    {"redux_xor", Op::reduce_warp, uint8_t(Combine::bit_xor)},
    {"movmatrix", Op::move_matrix, 0},
    {"syncthreads_and", Op::barrier, 1},
    {"syncthreads_or", Op::barrier, 2},
    {"syncthreads_count", Op::barrier, 3},
    {"barrier_sync", Op::named_barrier, 0},
    {"barrier_arrive", Op::named_barrier, 1},
    {"threadfence_system", Op::fence, kDevice},
    {"threadfence_cluster", Op::fence, kCluster},
    {"atomic_add", Op::atomic, uint8_t(Combine::add)},
    {"atomic_and", Op::atomic, uint8_t(Combine::bit_and)},
    {"atomic_or", Op::atomic, uint8_t(Combine::bit_or)},
    {"atomic_xor", Op::atomic, uint8_t(Combine::bit_xor)},
    {"atomic_max", Op::atomic, uint8_t(Combine::max)},
    {"atomic_min", Op::atomic, uint8_t(Combine::min)},
    {"atomic_exch", Op::atomic, kExchange},
    {"atomic_cas", Op::atomic, kCompare},
    {"atomic_exch_128", Op::atomic, kExchange},
    {"atomic_cas_128", Op::atomic, kCompare},
    {"atomic_inc", Op::atomic, uint8_t(Combine::inc)},
    {"atomic_dec", Op::atomic, uint8_t(Combine::dec)},
    {"cp_async", Op::copy, 0},
    {"cp_async_commit", Op::commit, 0},
    {"cp_async_part", Op::copy, 1},
    {"cp_async_wait", Op::wait, 0},
};

/// Types of operands without one (pointers, tensors) count as 64-bit integers.
DTypeCode code_of(const Type& t) { return t.is_arithmetic() ? t.dtype().code() : DTypeCode::i64; }
/// True for addresses in shared memory.
bool is_shared(const Expr& pointer) {
  if (const Binary* b = as<Binary>(pointer)) return is_shared(b->a);
  const AddressOf* a = as<AddressOf>(pointer);
  const Expr& at = a ? a->tensor : pointer;
  if (!at->type.is_tensor()) return false;
  const Scope scope = at->type.tensor_info().scope;
  return scope == Scope::shared || scope == Scope::dynamic_shared;
}
uint16_t lanes_of(const Type& t) { return static_cast<uint16_t>(t.is_vector() ? t.lanes() : 1); }

}  // namespace

int32_t Compiler::cell(const Expr& e) {
  if (e->kind == Kind::Var) {
    auto it = slot_.find(e.get());
    if (const auto given = given_.find(e.get()); given != given_.end()) {
      out_.texts.push_back("the variable '" + as<Var>(e)->name + "' is read before it has a value");
      emit({Op::check,
            0,
            {},
            {},
            1,
            0,
            given->second,
            0,
            static_cast<int32_t>(out_.texts.size() - 1)});
    }
    if (it != slot_.end()) return it->second;
    auto global = env_.globals.find(e.get());
    HIDET_REQUIRE(global != env_.globals.end(), ErrorCode::usage, loc_.text(), "the variable '",
                  as<Var>(e)->name, "' of '", function_, "' is used outside its scope");
    if (e->type.is_tensor()) return integer(global->second);
    const int32_t dst = alloc();
    emit({Op::load,
          0,
          code_of(e->type),
          {},
          1,
          dst,
          integer(global->second),
          integer(0),
          pointer_access(e)});
    return dst;
  }
  if (const IntImm* i = as<IntImm>(e)) return integer(i->value);
  if (const FloatImm* f = as<FloatImm>(e)) return floating(f->value, f->type.dtype());
  if (const DimSymbol* d = as<DimSymbol>(e)) {
    auto it = env_.symbols.find(d->name);
    HIDET_REQUIRE(it != env_.symbols.end(), ErrorCode::usage, loc_.text(), "the symbol '", d->name,
                  "' has no value in this simulation");
    return integer(it->second);
  }
  const int32_t dst = alloc(lanes_of(e->type));
  into(e, dst);
  return dst;
}

void Compiler::binary(const Binary& b, int32_t dst) {
  if (info(b.op).logical && b.type.is_scalar()) {
    into(b.a, dst);
    const size_t skip =
        emit({b.op == BinaryOp::logical_and ? Op::jump_unless : Op::jump_if, 0, {}, {}, 1, 0, dst});
    into(b.b, dst);
    return land(skip);
  }
  const int32_t x = cell(b.a);
  if (b.a->type.is_pointer() && b.type.is_pointer()) {
    const Type& to = b.a->type.pointee();
    const int64_t bytes = to.is_arithmetic() ? to.dtype().bytes_of(to.lanes()) : 1;
    const int32_t y = widened(b.b);
    emit({Op::pointer_add,
          b.op == BinaryOp::sub,
          {},
          {},
          1,
          dst,
          x,
          y,
          static_cast<int32_t>(bytes)});
    return;
  }
  const int32_t y = cell(b.b);
  const uint16_t lanes = lanes_of(b.a->type);
  if (b.a->type.is_arithmetic()) require(b.a->type.dtype());
  const bool shift = b.op == BinaryOp::shl || b.op == BinaryOp::shr,
             division = b.op == BinaryOp::div || b.op == BinaryOp::mod ||
                        b.op == BinaryOp::floordiv || b.op == BinaryOp::floormod;
  if (env_.arithmetic && out_.on_gpu && (shift || division) && b.a->type.dtype().is_integer())
    emit({Op::sane, shift, code_of(b.a->type), {}, lanes, 0, 0, y});
  emit({Op::binary, static_cast<uint8_t>(b.op), code_of(b.a->type), {}, lanes, dst, x, y});
}

void Compiler::call(const Call& c, int32_t dst) {
  const ir::Function* f = env_.module.find(c.callee);
  if (!f) return call_extern(c, dst);
  const Compiled& callee = done_.at(f);
  HIDET_REQUIRE(c.args.size() == callee.params.size(), ErrorCode::usage, loc_.text(), "'", c.callee,
                "' takes ", callee.params.size(), " arguments, not ", c.args.size());
  std::vector<int32_t> args;  // all of them first: an argument may call the same function
  for (const Expr& e : c.args) {
    const int32_t t = alloc(lanes_of(e->type));
    into(e, t);
    args.push_back(t);
  }
  for (size_t i = 0; i < args.size(); i++)
    emit({Op::move, 0, {}, {}, lanes_of(c.args[i]->type), callee.params[i], args[i]});
  emit({Op::call, 0, {}, {}, 1, callee.entry, 0, 0, callee.back});
  if (!f->returns.is_void()) emit({Op::move, 0, {}, {}, lanes_of(f->returns), dst, callee.result});
}

int32_t Compiler::pointer_access(const Expr& base) {
  Access x;
  x.tensor = as<Var>(base);
  out_.accesses.push_back(std::move(x));
  return static_cast<int32_t>(out_.accesses.size() - 1);
}

int32_t Compiler::index_behind(const Expr& pointer, const Expr& index) {
  const Type& to = pointer->type.is_pointer() ? pointer->type.pointee() : pointer->type;
  if (!to.is_vector()) return widened(index);
  const Expr lanes = make_int(to.lanes(), Type(i64));
  return widened(make_binary(BinaryOp::mul, make_cast(index, Type(i64)), lanes));
}

int32_t Compiler::access(const Expr& tensor, const std::vector<Expr>& indices) {
  Access x;
  x.tensor = as<Var>(tensor);
  for (const Expr& i : indices) x.index.push_back(widened(i));
  for (const Expr& n : tensor->type.tensor_info().shape) x.extent.push_back(widened(n));
  out_.accesses.push_back(std::move(x));
  return static_cast<int32_t>(out_.accesses.size() - 1);
}

/// Cell of the element's offset; `outside`: the instruction whose c says where to go on if it is outside.
int32_t Compiler::offset(const Expr& tensor, const std::vector<Expr>& indices, bool guarded,
                         int lanes, int32_t x, size_t* outside) {
  const TensorInfo& info = tensor->type.tensor_info();
  const int32_t dst = alloc();
  const bool rows = info.layout.tag == Layout::Tag::row_major;
  const size_t check = emit(
      {rows ? Op::offset : Op::check_index, guarded, {}, {}, static_cast<uint16_t>(lanes), dst, x});
  if (outside) *outside = check;
  if (rows) return dst;
  std::vector<Expr> vars;
  for (size_t d = 0; d < indices.size(); d++) {
    const VarRef v = make_var("index", Type(i64));
    slot_[v.get()] = out_.accesses[x].index[d];
    keep_.push_back(v);
    vars.push_back(v);
  }
  std::vector<Expr> shape;
  for (const Expr& n : info.shape) shape.push_back(make_cast(n, Type(i64)));
  into(make_cast(info.layout.offset(shape, vars), Type(i64)), dst);
  return dst;
}

void Compiler::load(const Element& e, int32_t dst) {
  size_t outside = 0;
  const uint16_t lanes = lanes_of(e.type);
  require(e.type.dtype());
  const int32_t x = access(e.tensor, e.indices),
                at = offset(e.tensor, e.indices, e.guarded, lanes, x, &outside);
  emit({Op::load, 0, e.type.dtype().code(), {}, lanes, dst, cell(e.tensor), at, x});
  if (!e.guarded) return;
  const size_t over = emit({Op::jump});
  out_.code[outside].c = here();
  for (int i = 0; i < lanes; i++) emit({Op::move, 0, {}, {}, 1, dst + i, integer(0)});
  land(over);
}

/// A load or store with a cache hint: whole, so that its address is a multiple of its bytes.
void Compiler::hinted(const Prim& p, int32_t dst) {
  const bool write = p.args.size() > 1;
  const Type& t = write ? p.args[1]->type : p.type;
  require(t.dtype());
  const int32_t base = cell(p.args[0]), value = write ? cell(p.args[1]) : dst;
  emit({write ? Op::store : Op::load,
        out_.on_gpu,  // a CPU takes any address
        code_of(t),
        {},
        lanes_of(t),
        value,
        base,
        integer(0),
        pointer_access(p.args[0])});
}

/// Lane by lane: memory of the other lanes is not touched.
void Compiler::amx(const Prim& p) {
  static const std::map<std::string_view, Amx> ops = {
      {"amx_config", Amx::config}, {"amx_release", Amx::release}, {"amx_zero", Amx::zero},
      {"amx_load", Amx::load},     {"amx_store", Amx::store},     {"amx_dot_bf16", Amx::dot_bf16}};
  const auto sub = static_cast<uint8_t>(ops.at(p.name));
  const auto number = [&](size_t i) {
    return i < p.attrs.size() ? static_cast<int32_t>(p.attrs[i]) : 0;
  };
  // Registers by their numbers, memory by cells.
  const int32_t a = p.args.empty() ? number(1) : cell(p.args[0]),
                b = p.args.empty() ? number(2) : widened(p.args[1]);
  emit({Op::amx, sub, {}, {}, 1, number(0), a, b});
}

void Compiler::masked(const Prim& p, int32_t dst) {
  const bool write = p.args.size() > 2;
  const Type& t = write ? p.args[1]->type : p.type;
  require(t.dtype());
  const int32_t base = cell(p.args[0]), value = write ? cell(p.args[1]) : dst,
                mask = cell(p.args[write ? 2 : 1]), x = pointer_access(p.args[0]);
  for (int i = 0; i < t.lanes(); i++) {
    if (!write) emit({Op::move, 0, {}, {}, 1, dst + i, integer(0)});
    const size_t skip = emit({Op::jump_unless, 0, {}, {}, 1, 0, mask + i});
    emit({write ? Op::store : Op::load, 0, code_of(t), {}, 1, value + i, base, integer(i), x});
    land(skip);
  }
}

/// Several atomics, one behind the other.
void Compiler::atomic_vector(const Prim& p, int32_t dst) {
  const Type& t = p.args[1]->type;
  if (!is_shared(p.args[0])) out_.in_order = true;
  const int32_t base = cell(p.args[0]), value = cell(p.args[1]), next = alloc();
  const auto bytes = static_cast<int32_t>(t.dtype().bytes());
  emit({Op::aligned, 1, {}, {}, 1, 0, base, 0, bytes * t.lanes()});
  for (int i = 0; i < t.lanes(); i++) {
    emit({Op::pointer_add, 0, {}, {}, 1, next, base, integer(i), bytes});
    emit({Op::atomic, 0, code_of(t), {}, 1, dst + i, next, value + i});
  }
}

void Compiler::prim(const Prim& p, int32_t dst) {
  const auto args = [&](size_t i) { return i < p.args.size() ? cell(p.args[i]) : 0; };
  if (p.name == "printf") {
    out_.texts.push_back(as<StringImm>(p.args.at(0))->value);
    std::vector<std::pair<int32_t, Type>> list;
    for (size_t i = 1; i < p.args.size(); i++) list.emplace_back(cell(p.args[i]), p.args[i]->type);
    out_.prints.push_back(std::move(list));
    out_.in_order = true;
    emit({Op::print,
          0,
          {},
          {},
          1,
          0,
          static_cast<int32_t>(out_.texts.size() - 1),
          0,
          static_cast<int32_t>(out_.prints.size() - 1)});
    return;
  }
  if (p.name == "ldmatrix" || p.name == "stmatrix") {
    const bool store = p.name == "stmatrix";
    const int32_t a = args(0), b = args(1);
    emit({store ? Op::store_matrix : Op::load_matrix,
          static_cast<uint8_t>(p.attrs.at(1)),
          DTypeCode::u32,
          {},
          static_cast<uint16_t>(p.attrs.at(0)),
          dst,
          a,
          b});
    return;
  }
  const std::vector<ir::MmaShape>& shapes = ir::mma_shapes();
  for (size_t i = 0; i < shapes.size(); i++)
    if (p.name == shapes[i].name) {
      const int32_t a = args(0), b = args(1), c = args(2);
      emit({Op::mma, static_cast<uint8_t>(i), {}, {}, lanes_of(p.type), dst, a, b, c});
      return;
    }
  if (hopper(p, dst)) return;
  if (p.name.starts_with("amx_")) return amx(p);
  if (p.name.starts_with("prefetch")) return;
  if (p.name == "assume_aligned") {
    const int32_t a = args(0);
    emit({Op::aligned, 0, {}, {}, 1, 0, a, 0, static_cast<int32_t>(p.attrs.at(0))});
    return;
  }
  if (p.name == "nanosleep") return (void)cell(p.args.at(0));
  if (p.name.starts_with("load_") || p.name.starts_with("store_")) return hinted(p, dst);
  if (p.name.starts_with("masked_")) return masked(p, dst);
  if (p.name == "atomic_add_pair" || p.name == "atomic_add_vector") return atomic_vector(p, dst);
  if (p.name == "scratch") {
    const int32_t slot = widened(p.args.at(0)), bytes = widened(p.args.at(1));
    emit({Op::scratch, 0, {}, {}, 1, dst, slot, bytes});
    return;
  }
  const auto typed = [&](Op op, uint8_t sub) {
    const Type& t = p.args.empty()                                      ? p.type
                    : p.args.size() > 1 && p.args[0]->type.is_pointer() ? p.args[1]->type
                                                                        : p.args[0]->type;
    if (t.is_arithmetic()) require(t.dtype());
    const int32_t a = args(0), b = args(1), c = args(2);
    const bool in_block = op == Op::atomic && is_shared(p.args[0]);
    if (op == Op::fence) out_.fences = true;
    if (op == Op::fence || op == Op::named_barrier) out_.partial = true;
    if ((op == Op::fence && sub == kDevice) || (op == Op::atomic && !in_block))
      out_.in_order = true;
    // A copy keeps its bytes in `lanes`, what of them it copies in the cell c.
    const int32_t extra = op == Op::wait ? static_cast<int32_t>(p.attrs.at(0)) : c;
    const uint16_t lanes = op == Op::copy ? static_cast<uint16_t>(p.attrs.at(0)) : lanes_of(t);
    emit({op, sub, code_of(t), {}, lanes, dst, a, b, extra});
  };
  for (const PrimRow& row : kPrims)
    if (p.name == row.name) return typed(row.op, row.sub);
  if (p.name == "abs") return typed(Op::abs, 0);
  if (p.name == "fma" || p.name == "isnan" || p.name == "isinf" || p.name == "isfinite")
    return typed(Op::math, static_cast<uint8_t>(p.name == "fma"     ? 255
                                                : p.name == "isnan" ? 254
                                                : p.name == "isinf" ? 253
                                                                    : 252));
  if (const int row = arith_row(p.name); row >= 0)
    return typed(Op::math, static_cast<uint8_t>(row));
  for (int i = 0; i < kMathRows; i++)
    if (p.name == kMath[i].name) return typed(Op::math, static_cast<uint8_t>(i));
  refuse("the primitive '" + p.name + "'");
}

void Compiler::into(const Expr& e, int32_t dst) {
  const SourceLoc outer = loc_;
  if (e->loc.line) loc_ = e->loc;
  expression(e, dst);
  loc_ = outer;
}

void Compiler::expression(const Expr& e, int32_t dst) {
  const uint16_t lanes = lanes_of(e->type);
  switch (e->kind) {
    case Kind::IntImm:
    case Kind::FloatImm:
    case Kind::DimSymbol:
    case Kind::Var: emit({Op::move, 0, {}, {}, lanes, dst, cell(e)}); return;
    case Kind::Binary: return binary(*as<Binary>(e), dst);
    case Kind::Unary: {
      const Unary& u = *as<Unary>(e);
      require(u.type.dtype());
      const int32_t a = cell(u.a);
      emit({Op::unary, static_cast<uint8_t>(u.op), code_of(u.type), {}, lanes, dst, a});
      return;
    }
    case Kind::Select: {
      const Select& s = *as<Select>(e);
      const int32_t c = cell(s.cond);
      if (s.cond->type.is_vector()) {
        const int32_t a = cell(s.a), b = cell(s.b);
        emit({Op::select, 0, {}, {}, lanes, dst, a, b, c});
        return;
      }
      const size_t no = emit({Op::jump_unless, 0, {}, {}, 1, 0, c});
      into(s.a, dst);
      const size_t over = emit({Op::jump});
      land(no);
      into(s.b, dst);
      return land(over);
    }
    case Kind::Cast: {
      const Cast& c = *as<Cast>(e);
      const int32_t a = cell(c.a);
      if (c.how == CastKind::pointer) {
        emit({Op::move, 0, {}, {}, 1, dst, a});
        return;
      }
      require(c.type.dtype()), require(c.a->type.dtype());
      emit({c.how == CastKind::bits ? Op::bits : Op::cast,
            static_cast<uint8_t>(lanes_of(c.a->type)), code_of(c.type), code_of(c.a->type), lanes,
            dst, a});
      return;
    }
    case Kind::Call: return call(*as<Call>(e), dst);
    case Kind::Prim: return prim(*as<Prim>(e), dst);
    case Kind::Load: {
      const Load& l = *as<Load>(e);
      if (l.type.is_pointer()) refuse("pointers in memory");
      require(l.type.dtype());
      const int32_t base = cell(l.base), index = index_behind(l.base, l.index);
      emit({Op::load, 0, code_of(l.type), {}, lanes, dst, base, index, pointer_access(l.base)});
      return;
    }
    case Kind::Element: return load(*as<Element>(e), dst);
    case Kind::AddressOf: {
      // One past the end is an address, too: only accesses are checked.
      const AddressOf& a = *as<AddressOf>(e);
      std::vector<Expr> wide, shape;
      for (const Expr& i : a.indices) wide.push_back(make_cast(i, Type(i64)));
      for (const Expr& n : a.tensor->type.tensor_info().shape)
        shape.push_back(make_cast(n, Type(i64)));
      const int32_t at = widened(a.tensor->type.tensor_info().layout.offset(shape, wide));
      emit({Op::pointer_add,
            0,
            {},
            {},
            1,
            dst,
            cell(a.tensor),
            at,
            static_cast<int32_t>(a.tensor->type.dtype().bytes())});
      return;
    }
    case Kind::MakeVector: {
      const MakeVector& m = *as<MakeVector>(e);
      for (size_t i = 0; i < m.lanes.size(); i++) into(m.lanes[i], dst + static_cast<int32_t>(i));
      return;
    }
    case Kind::Broadcast: {
      const int32_t a = cell(as<Broadcast>(e)->a);
      for (int i = 0; i < lanes; i++) emit({Op::move, 0, {}, {}, 1, dst + i, a});
      return;
    }
    case Kind::Lane: {
      const Lane& l = *as<Lane>(e);
      const int32_t v = cell(l.vector), i = widened(l.index);
      emit({Op::lane, 0, {}, {}, lanes_of(l.vector->type), dst, v, i});
      return;
    }
    default: refuse(std::string("a '") + kind_name(e->kind) + "' expression");
  }
}

}  // namespace hidet::backends::sim
