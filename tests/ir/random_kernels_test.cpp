// 300 random kernels a run: public functions with loops of every kind, branches, lets, variables, arrays in many layouts,
// guarded accesses, calls and early ends, compiled for the CPU against interpreted (machine.h), all memory to the bit.
#include <cstring>

#include "codegen/harness.h"
#include "ir/generator.h"
#include "ir/machine.h"

namespace hidet::testing {
namespace {

constexpr int kModules = 6, kKernels = 50, kRounds = 3;
constexpr int64_t kCells = 12;  ///< of each array behind a pointer
constexpr DType kArrays[] = {i32, i64, u8, f32, f64};

Expr imm(int64_t v, DType t) { return make_int(v, Type(t)); }

/// Makes one function. What a kernel may do: see statement().
class KernelMaker {
 public:
  KernelMaker(unsigned seed, const Module& module) : module_(module), generator_(seed, {}) {
    generator_.other_leaf = [this](DType t) { return leaf(t); };
  }

  /// A pure helper of two numbers.
  Function helper(const std::string& name) {
    Function f = begin(name, FuncKind::cpu_internal);
    const DType of[] = {kTypes[generator_.pick(std::size(kTypes))],
                        kTypes[generator_.pick(std::size(kTypes))]};
    for (int i = 0; i < 2; i++) param(f, "ab"[i] + std::string(), Type(of[i]));
    f.returns = Type(kTypes[generator_.pick(std::size(kTypes))]);
    returns_ = f.returns;
    std::vector<Stmt> body = statements(3, 1);
    body.push_back(make_stmt<Return>({}, generator_.expr(returns_.dtype(), 2)));
    return end(std::move(f), std::move(body));
  }
  /// A helper that stores where a pointer shows.
  Function storing_helper(const std::string& name) {
    Function f = begin(name, FuncKind::cpu_internal);
    arrays_ = {param(f, "p", Type::pointer(Type(i32)))};
    room_ = kCells - 4;
    param(f, "v", Type(i64));
    std::vector<Stmt> body = statements(3, 1);
    body.push_back(store(arrays_[0]));
    return end(std::move(f), std::move(body));
  }
  Function kernel(const std::string& name) {
    Function f = begin(name, FuncKind::public_);
    for (const DType t : kArrays)
      arrays_.push_back(param(f, std::string("m_") + t.name(), Type::pointer(Type(t))));
    param(f, "n", Type(i32));
    param(f, "x", Type(f32));
    param(f, "w", Type(u64));
    memory_ = true;
    return end(std::move(f), statements(4 + generator_.pick(8), 3));
  }

 private:
  Function begin(const std::string& name, FuncKind kind) {
    arrays_.clear();
    tensors_.clear();
    generator_.variables.clear();
    returns_ = Type();
    memory_ = parallel_ = false;
    loops_ = 0;
    room_ = kCells;
    Function f;
    f.name = name;
    f.kind = kind;
    return f;
  }
  VarRef param(Function& f, const std::string& name, const Type& type) {
    f.params.push_back(make_var(name, type));
    if (type.is_scalar()) generator_.variables.push_back(f.params.back());
    return f.params.back();
  }
  static Function end(Function f, std::vector<Stmt> body) {
    f.body = make_seq(std::move(body));
    return f;
  }
  size_t pick(size_t n) { return generator_.pick(n); }
  DType any_type() { return kTypes[pick(std::size(kTypes))]; }

  /// 0 <= value < n.
  Expr bounded(int64_t n, DType t = i64) {
    return make_cast(make_binary(BinaryOp::floormod, generator_.expr(i64, 1), imm(n, i64)),
                     Type(t));
  }
  Expr leaf(DType t) {
    switch (memory_ ? pick(4) : 4) {
      case 0:
        for (const VarRef& a : arrays_)
          if (a->type.dtype() == t) return make_load(a, bounded(room_));
        break;
      case 1:
        for (const VarRef& v : tensors_)
          if (v->type.dtype() == t) return element(v);
        break;
      case 2:
        for (const Function& f : module_.functions)
          if (f.returns == Type(t) && pick(2)) {
            std::vector<Expr> args;
            for (const VarRef& p : f.params) args.push_back(generator_.expr(p->type.dtype(), 1));
            return make_call(f.name, args, f.returns);
          }
        break;
      default: break;
    }
    return nullptr;
  }
  std::vector<Expr> indices(const VarRef& tensor, bool guarded) {
    std::vector<Expr> out;
    for (const Expr& e : tensor->type.tensor_info().shape) {
      const int64_t n = as<IntImm>(e)->value;
      Expr i = bounded(guarded ? n + 2 : n, i32);
      out.push_back(guarded ? make_binary(BinaryOp::sub, i, imm(1, i32)) : i);
    }
    return out;
  }
  Expr element(const VarRef& tensor) {
    const bool guarded = pick(3) == 0;
    return make_element(tensor, indices(tensor, guarded), guarded);
  }

  Stmt store(const VarRef& array) {
    Expr base = array, value = generator_.expr(array->type.dtype(), 2);
    int64_t room = room_;
    if (pick(3) == 0) {
      base = make_binary(BinaryOp::add, base, imm(3, i32));
      room -= 3;
    }
    return make_stmt<Store>({}, base, bounded(room), value);
  }

  /// Statements of a scope of their own.
  Stmt scope(size_t count, int depth) {
    const size_t variables = generator_.variables.size(), tensors = tensors_.size();
    Stmt out = make_seq(statements(count, depth));
    generator_.variables.resize(variables);
    tensors_.resize(tensors);
    return out;
  }
  std::vector<Stmt> statements(size_t count, int depth) {
    std::vector<Stmt> out;
    for (size_t i = 0; i < count; i++) statement(out, depth);
    return out;
  }
  void statement(std::vector<Stmt>& out, int depth) {
    switch (pick(depth > 0 ? 16 : 8)) {
      case 0:
      case 1: return out.push_back(declare(pick(2) == 0));
      case 2:
      case 3: return assign(out);
      case 4:
      case 5:
      case 6: return store_somewhere(out);
      case 7: return jump(out, depth);
      case 8:
      case 9:
        return out.push_back(make_stmt<If>({}, generator_.expr(boolean, 2), scope(2, depth - 1),
                                           pick(2) ? scope(2, depth - 1) : Stmt()));
      case 10:
      case 11: return counted(out, depth);
      case 12: return conditional(out, depth);
      case 13: return declare_tensor(out);
      case 14: return independent(out);
      default: return mapped(out, depth);
    }
  }
  Stmt declare(bool is_mutable) {
    const DType t = any_type();
    const Expr init = generator_.expr(t, 3);
    generator_.variables.push_back(make_var("v", Type(t), is_mutable));
    return make_stmt<DeclVar>({}, generator_.variables.back(), init);
  }
  void assign(std::vector<Stmt>& out) {
    std::vector<VarRef> fit;
    for (const VarRef& v : generator_.variables)
      if (v->is_mutable) fit.push_back(v);
    if (fit.empty()) return out.push_back(declare(true));
    const VarRef v = fit[pick(fit.size())];
    out.push_back(make_stmt<Assign>({}, v, generator_.expr(v->type.dtype(), 3)));
  }
  void store_somewhere(std::vector<Stmt>& out) {
    const size_t n = arrays_.size() + tensors_.size() + (memory_ ? 1 : 0);
    if (n == 0) return assign(out);
    const size_t which = pick(n);
    if (which < arrays_.size()) return out.push_back(store(arrays_[which]));
    if (which < arrays_.size() + tensors_.size()) {
      const VarRef t = tensors_[which - arrays_.size()];
      const bool guarded = pick(2) == 0;
      return out.push_back(make_stmt<ElementStore>({}, t, indices(t, guarded),
                                                   generator_.expr(t->type.dtype(), 2), guarded));
    }
    const Expr p = make_binary(BinaryOp::add, arrays_[0], imm(static_cast<int64_t>(pick(5)), i64));
    out.push_back(
        make_stmt<Evaluate>({}, make_call("store", {p, generator_.expr(i64, 2)}, Type())));
  }
  /// A way out of a loop or of the function, or an assert that mostly holds.
  void jump(std::vector<Stmt>& out, int depth) {
    const Expr seldom = make_binary(BinaryOp::eq, bounded(7), imm(3, i64));
    const size_t which = pick(4);
    Stmt then;
    if (which == 0 && loops_ > 0) then = make_stmt<Break>({});
    else if (which == 1 && loops_ > 0) then = make_stmt<Continue>({});
    else if (which == 2 && depth < 2 && mapped_ == 0)
      then =
          make_stmt<Return>({}, returns_.is_void() ? Expr() : generator_.expr(returns_.dtype(), 1));
    else if (which == 3 && memory_)
      return out.push_back(
          make_stmt<Assert>({}, make_unary(UnaryOp::logical_not, seldom), "seldom"));
    if (then) out.push_back(make_stmt<If>({}, seldom, then, Stmt()));
    else out.push_back(make_stmt<Comment>({}, "no way out here"));
  }
  Stmt let(VarRef& var, const Expr& e) {
    var = make_var("b", e->type);
    return make_stmt<DeclVar>({}, var, e);
  }
  void counted(std::vector<Stmt>& out, int depth) {
    static constexpr DType types[] = {i32, i64, u32, u8};
    const DType t = types[pick(std::size(types))];
    const bool unrolled = pick(3) == 0;
    VarRef end;
    // At times at the end of the type, which the last step may pass.
    const int64_t base = pick(3) == 0 ? static_cast<int64_t>(t.max_int()) - 5 : 0;
    if (!unrolled) out.push_back(let(end, make_binary(BinaryOp::add, bounded(6, t), imm(base, t))));
    const VarRef var = make_var("i", Type(t));
    const int outer = std::exchange(loops_, unrolled ? 0 : loops_ + 1);
    generator_.variables.push_back(var);
    const Stmt body = scope(1 + pick(3), depth - 1);
    generator_.variables.pop_back();
    loops_ = outer;
    out.push_back(
        make_stmt<For>({}, var, imm(base + static_cast<int64_t>(pick(3)), t),
                       unrolled ? imm(base + static_cast<int64_t>(pick(5)), t) : Expr(end),
                       imm(1 + static_cast<int64_t>(pick(base ? 7 : 3)), t),
                       unrolled ? LoopKind::unroll : LoopKind::serial, int64_t{1}, body));
  }
  void conditional(std::vector<Stmt>& out, int depth) {
    const VarRef count = make_var("count", Type(i32), true);
    out.push_back(make_stmt<DeclVar>({}, count, imm(0, i32)));
    const Expr few = make_binary(BinaryOp::lt, count, imm(1 + static_cast<int64_t>(pick(6)), i32));
    const Expr cond = make_binary(BinaryOp::logical_and, few, generator_.expr(boolean, 2));
    loops_++;
    const Stmt body = scope(2, depth - 1);
    loops_--;
    const Stmt step = make_stmt<Assign>({}, count, make_binary(BinaryOp::add, count, imm(1, i32)));
    out.push_back(make_stmt<While>({}, cond, make_seq({step, body})));
  }
  void declare_tensor(std::vector<Stmt>& out) {
    const int64_t rows = 1 + static_cast<int64_t>(pick(4)),
                  columns = 1 + static_cast<int64_t>(pick(5));
    const Expr r = imm(rows, i32), c = imm(columns, i32);
    const Layout layouts[] = {
        Layout::row_major(), Layout::col_major(),
        Layout::strided({imm(1, i32), imm(rows + 1, i32)}),
        Layout::swizzled(Layout::row_major(), 1, 0, 2),
        Layout::composed(Layout::col_major(), Layout::row_major(), {1, columns})};
    const DType t = any_type();
    const VarRef v = make_var("t", Type::tensor({t, {r, c}, layouts[pick(5)], Scope::registers}));
    out.push_back(make_stmt<DeclTensor>({}, v, Expr()));
    const VarRef i = make_var("i", Type(i32)), j = make_var("j", Type(i32));
    const Stmt first =
        make_stmt<ElementStore>({}, v, std::vector<Expr>{i, j}, generator_.expr(t, 1), false);
    const auto loop = [](const VarRef& var, const Expr& n, const Stmt& body) {
      return make_stmt<For>({}, var, imm(0, i32), n, imm(1, i32), LoopKind::serial, int64_t{1},
                            body);
    };
    out.push_back(loop(i, r, loop(j, c, first)));
    tensors_.push_back(v);
  }
  /// A parallel or vectorized loop: each turn writes its own element, of an array that it does not read.
  void independent(std::vector<Stmt>& out) {
    if (arrays_.size() < 2) return assign(out);
    const size_t which = pick(arrays_.size());
    const VarRef target = arrays_[which];
    const bool parallel = !parallel_ && memory_ && loops_ == 0 && pick(2) == 0;
    const DType t = pick(2) ? i32 : i64;
    const VarRef var = make_var("i", Type(t));
    const std::vector<VarRef> arrays = arrays_, variables = generator_.variables;
    arrays_.erase(arrays_.begin() + static_cast<std::ptrdiff_t>(which));
    generator_.variables.push_back(var);
    std::vector<Stmt> body;
    for (size_t i = pick(3); i-- > 0;) body.push_back(declare(false));
    const Expr at = make_cast(
        make_binary(BinaryOp::add, var, imm(static_cast<int64_t>(pick(4)), t)), Type(i64));
    body.push_back(make_stmt<Store>({}, target, at, generator_.expr(target->type.dtype(), 3)));
    arrays_ = arrays;
    generator_.variables = variables;
    static constexpr int64_t lanes[] = {2, 4, 8, 3};
    out.push_back(make_stmt<For>({}, var, imm(0, t), imm(lanes[pick(4)], t), imm(1, t),
                                 parallel ? LoopKind::parallel : LoopKind::vectorize, int64_t{1},
                                 make_seq(std::move(body))));
  }
  void mapped(std::vector<Stmt>& out, int depth) {
    const auto small = [&] { return 1 + static_cast<int64_t>(pick(3)); };
    TaskMapping mapping;
    for (size_t i = 1 + pick(3); i-- > 0;) {
      mapping.items.push_back({pick(2) == 0, {small(), small()}, {}});
      if (pick(3) == 0) mapping.items.back().order = {1, 0};
    }
    VarRef worker;
    out.push_back(let(worker, bounded(mapping.num_workers(), i32)));
    const std::vector<VarRef> vars = {make_var("p", Type(i32)), make_var("q", Type(i32))};
    generator_.variables.insert(generator_.variables.end(), vars.begin(), vars.end());
    const int outer = std::exchange(loops_, 0);
    mapped_++;
    const Stmt body = scope(2, std::min(depth - 1, 1));
    mapped_--;
    loops_ = outer;
    generator_.variables.resize(generator_.variables.size() - 2);
    out.push_back(make_stmt<MappingFor>({}, vars, mapping, Expr(worker), body));
  }

  const Module& module_;
  Generator generator_;
  std::vector<VarRef> arrays_, tensors_;
  Type returns_;
  int64_t room_ = kCells;
  bool memory_ = false, parallel_ = false;
  int loops_ = 0, mapped_ = 0;
};

/// One array of each type, as cells and as the bytes that compiled code sees.
struct Memory {
  std::vector<Array> arrays;
  std::vector<std::vector<uint8_t>> bytes;
};
template <class T>
void to_bytes(const std::vector<Cell>& cells, std::vector<uint8_t>& out) {
  out.resize(cells.size() * sizeof(T));
  for (size_t i = 0; i < cells.size(); i++) {
    const T v =
        std::is_floating_point_v<T> ? static_cast<T>(cells[i].f) : static_cast<T>(cells[i].i);
    std::memcpy(&out[i * sizeof(T)], &v, sizeof(T));
  }
}
std::vector<uint8_t> bytes_of(const Array& a) {
  std::vector<uint8_t> out;
  if (a.dtype == i32) to_bytes<int32_t>(a.cells, out);
  if (a.dtype == i64) to_bytes<int64_t>(a.cells, out);
  if (a.dtype == u8) to_bytes<uint8_t>(a.cells, out);
  if (a.dtype == f32) to_bytes<float>(a.cells, out);
  if (a.dtype == f64) to_bytes<double>(a.cells, out);
  return out;
}
/// As 64 bits, all NaN alike.
uint64_t bits_at(const std::vector<uint8_t>& bytes, DType t, size_t i) {
  const size_t size = static_cast<size_t>(t.bits()) / 8;
  uint64_t raw = 0;
  std::memcpy(&raw, &bytes[i * size], size);
  if (t == f32) return bits_of({0, std::bit_cast<float>(static_cast<uint32_t>(raw))}, t);
  return t == f64 ? bits_of({0, std::bit_cast<double>(raw)}, t) : raw;
}

/// Interprets and runs one kernel from the same memory; says what differs.
std::string difference(const Module& m, const Function& f, Loaded& code, Generator& values) {
  Memory memory;
  for (const DType t : kArrays) {
    memory.arrays.push_back({t, {}});
    for (int64_t i = 0; i < kCells; i++) memory.arrays.back().cells.push_back(values.cell(t));
    memory.bytes.push_back(bytes_of(memory.arrays.back()));
  }
  const Cell n = values.cell(i32), x = values.cell(f32), w = values.cell(u64);
  std::vector<Cell> args(std::size(kArrays));
  args.insert(args.end(), {n, x, w});
  std::vector<Place> places(args.size());
  std::vector<hidet_value> given;
  for (size_t i = 0; i < std::size(kArrays); i++) {
    places[i] = {&memory.arrays[i], 0};
    given.push_back(value(memory.bytes[i].data()));
  }
  given.push_back(value(static_cast<int64_t>(n.i)));
  given.push_back(value(static_cast<float>(x.f)));
  given.push_back(value(static_cast<int64_t>(w.i)));
  bool failed = false;
  try {
    Machine(m).call(f, args, places);
  } catch (const AssertFailed&) {
    failed = true;
  }
  const bool refused = code.call(f.name, given) != 0;
  if (failed != refused) return refused ? "an assert failed" : "no assert failed";
  for (size_t a = 0; a < std::size(kArrays); a++) {
    const DType t = kArrays[a];
    const std::vector<uint8_t> expected = bytes_of(memory.arrays[a]);
    for (size_t i = 0; i < static_cast<size_t>(kCells); i++)
      if (bits_at(expected, t, i) != bits_at(memory.bytes[a], t, i))
        return std::string("m_") + t.name() + "[" + std::to_string(i) + "] differs";
  }
  return "";
}

TEST(RandomKernels, InterpretedAndCompiled) {
  const unsigned seed = test_seed();
  for (int k = 0; k < kModules && !HasFailure(); k++) {
    Module m;
    m.name = "random";
    KernelMaker maker(seed + static_cast<unsigned>(k), m);
    m.functions.push_back(maker.storing_helper("store"));
    for (int i = 0; i < 4; i++) m.functions.push_back(maker.helper("h" + std::to_string(i)));
    for (int i = 0; i < kKernels; i++) m.functions.push_back(maker.kernel("k" + std::to_string(i)));
    verify(m);
    ASSERT_TRUE(equal(parse(print(m)), m));
    // The passes about indices are in no pipeline of the CPU together; here they are.
    Loaded code(run_passes(m, {lower_mappings(), narrow_indices(), carry_quotients()}),
                "x86-64-v3");
    Generator values(seed + static_cast<unsigned>(k), {});
    for (const Function& f : m.functions)
      for (int round = 0; f.kind == FuncKind::public_ && round < kRounds; round++) {
        const std::string what = difference(m, f, code, values);
        ASSERT_EQ(what, "") << "round " << round << " of\n" << print(f);
      }
  }
}

}  // namespace
}  // namespace hidet::testing
