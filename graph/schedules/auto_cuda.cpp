// auto_cuda.cpp - a correct CUDA kernel for any compute definition: one kernel a compute, launched in order.
// Without a reduction: a thread an element. With one: a block a result where the reduced axis is read in memory order and
// is long or unknown, with partial results in shared memory combined as a tree; else a thread a result.
#include "schedules/nest.h"

#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

namespace hidet::graph {
using namespace ir;

namespace {

constexpr int64_t kThreads = 256;
/// Shorter reductions are one thread's work.
constexpr int64_t kShortReduction = 64;

Expr thread_index() { return make_prim("thread_idx_x", {}, Type(i32)); }
Expr block_index() { return make_cast(make_prim("block_idx_x", {}, Type(i32)), Type(i64)); }
Expr blocks_for(const Expr& count) {
  return make_binary(BinaryOp::div, make_binary(BinaryOp::add, count, index(kThreads - 1)),
                     index(kThreads));
}

class AutoCuda {
 public:
  explicit AutoCuda(const FusedTask& fused) : fused_(fused) {}

  Module run() {
    Module m;
    m.name = fused_.name;
    std::vector<Stmt> calls;
    for (const Compute& c : fused_.anchor.computes) {
      // Parameters of its own for each function: the tensors' variables are renamed.
      Function k = kernel(fused_.with_prologues(c), "step" + std::to_string(m.functions.size()));
      std::vector<Expr> args;
      for (const VarRef& p : fused_.parameters()) args.emplace_back(p);
      calls.push_back(make_stmt<Evaluate>({}, make_call(k.name, args, Type())));
      m.functions.push_back(with_own_parameters(std::move(k)));
    }
    Function f;
    f.name = "launch";
    f.kind = FuncKind::public_;
    f.params = fused_.parameters();
    f.body = make_seq(std::move(calls));
    m.functions.push_back(std::move(f));
    return m;
  }

 private:
  static Function with_own_parameters(Function f) {
    Substitution map;
    for (VarRef& p : f.params) {
      const VarRef own = make_var(p->name, p->type);
      map.emplace(p.get(), own);
      p = own;
    }
    f.body = substitute(f.body, map);
    return f;
  }

  Function kernel(const Compute& c, const std::string& name) const {
    Function f;
    f.name = name;
    f.kind = FuncKind::cuda_kernel;
    f.params = fused_.parameters();
    const Expr count = size_of(shape_of(c.tensor));
    const Reduce* r = as<Reduce>(c.value);
    const bool by_block = r && wide(*r);
    f.launch.grid = {by_block ? count : blocks_for(count)};
    f.launch.block = {index(kThreads)};
    f.body = by_block ? block_reduction(c, *r) : by_thread(c, count);
    return f;
  }

  /// Worth a block: reads along the last reduced axis are in memory order, and it is not known to be short.
  static bool wide(const Reduce& r) {
    if (r.axes.empty() || r.op == ReduceOp::prod) return false;
    int64_t n = 0, total = 1;
    bool known = true;
    for (const Expr& e : r.extents) known = known && is_const_int(e, &n) && ((total *= n), true);
    if (known && total <= kShortReduction) return false;
    bool along = false;
    visit_all(r.value, [&](const Node& node) {
      const Element* e = as<Element>(&node);
      if (e && !e->indices.empty() && stride_in(e->indices.back(), *r.axes.back()) == 1)
        along = true;
    });
    return along;
  }

  Stmt by_thread(const Compute& c, const Expr& count) const {
    const VarRef i = make_var("i", Type(i64));
    const Expr at =
        make_binary(BinaryOp::add, make_binary(BinaryOp::mul, block_index(), index(kThreads)),
                    make_cast(thread_index(), Type(i64)));
    Unflattened out = unflatten(i, shape_of(c.tensor));
    std::vector<Stmt> body = out.declarations;
    const Expr value = rewrite(
        value_at(c, out.indices).expr(),
        [&](Rewriter&, const Reduce& r) -> Expr { return serial_reduce(r, body); },
        [&](Rewriter&, const ArgReduce& r) -> Expr { return arg_search(r, body); });
    body.push_back(fused_.store_of(c, out.indices, Value(value)));
    return make_seq(
        {make_stmt<DeclVar>({}, i, at), make_stmt<If>({}, make_binary(BinaryOp::lt, i, count),
                                                      make_seq(std::move(body)), Stmt())});
  }

  static DType accumulator(DType t) { return t == f16 || t == bf16 ? f32 : t; }

  static Stmt reduce_loops(const Reduce& r, std::vector<Value> at,
                           const std::function<Stmt(const std::vector<Value>&)>& body) {
    if (at.size() == r.axes.size()) return body(at);
    return loop("r", make_cast(r.extents[at.size()], Type(i64)), LoopKind::serial,
                [&](const Value& v) {
                  std::vector<Value> next = at;
                  next.push_back(v);
                  return reduce_loops(r, next, body);
                });
  }
  static Expr term(const Reduce& r, const std::vector<Value>& at) {
    Substitution map;
    for (size_t d = 0; d < at.size(); d++)
      map.emplace(r.axes[d].get(), make_cast(at[d].expr(), r.axes[d]->type));
    return make_cast(substitute(r.value, map), Type(accumulator(r.value->type.dtype())));
  }
  static Expr serial_reduce(const Reduce& r, std::vector<Stmt>& body) {
    const DType t = accumulator(r.type.dtype());
    const VarRef acc = make_var("acc", Type(t), true);
    body.push_back(make_stmt<DeclVar>({}, acc, reduce_identity(r.op, t)));
    body.push_back(reduce_loops(r, {}, [&](const std::vector<Value>& at) {
      return make_stmt<Assign>({}, acc, reduce_combine(r.op, acc, term(r, at)));
    }));
    return make_cast(acc, Type(r.type.dtype()));
  }

  /// One block: each thread a strided part, then a tree in shared memory.
  Stmt block_reduction(const Compute& c, const Reduce& r) const {
    const DType t = accumulator(r.type.dtype());
    const VarRef tid = make_var("tid", Type(i32)), out = make_var("out", Type(i64));
    const VarRef acc = make_var("acc", Type(t), true);
    const VarRef partial =
        make_var("partial", Type::tensor({t, {make_int(kThreads, Type(i32))}, {}, Scope::shared}));
    Unflattened at = unflatten(out, shape_of(c.tensor));
    std::vector<Stmt> body{make_stmt<DeclTensor>({}, partial, Expr()),
                           make_stmt<DeclVar>({}, tid, thread_index()),
                           make_stmt<DeclVar>({}, out, block_index())};
    body.insert(body.end(), at.declarations.begin(), at.declarations.end());
    const Compute here{c.tensor, c.axes, c.value};
    const Expr value = value_at(here, at.indices).expr();
    const Reduce& bound = *as<Reduce>(value);
    const VarRef flat = make_var("k", Type(i64));
    Unflattened k = unflatten(flat, bound.extents);
    std::vector<Stmt> step = k.declarations;
    step.push_back(make_stmt<Assign>({}, acc, reduce_combine(r.op, acc, term(bound, k.indices))));
    body.push_back(make_stmt<DeclVar>({}, acc, reduce_identity(r.op, t)));
    body.push_back(make_stmt<For>({}, flat, make_cast(tid, Type(i64)), size_of(bound.extents),
                                  index(kThreads), LoopKind::serial, int64_t{1},
                                  make_seq(std::move(step))));
    const auto slot = [&](const Expr& i) { return make_element(partial, {i}); };
    const auto set = [&](const Expr& i, const Expr& v) {
      return make_stmt<ElementStore>({}, partial, std::vector<Expr>{i}, v, false);
    };
    const Stmt barrier = make_stmt<Evaluate>({}, make_prim("syncthreads", {}, Type()));
    body.push_back(set(tid, acc));
    body.push_back(barrier);
    for (int64_t half = kThreads / 2; half >= 1; half /= 2) {
      const Expr low = make_binary(BinaryOp::lt, tid, make_int(half, Type(i32)));
      body.push_back(make_stmt<If>(
          {}, low,
          set(tid,
              reduce_combine(r.op, slot(tid),
                             slot(make_binary(BinaryOp::add, tid, make_int(half, Type(i32)))))),
          Stmt()));
      body.push_back(barrier);
    }
    const Expr result = make_cast(slot(make_int(0, Type(i32))), Type(r.type.dtype()));
    body.push_back(make_stmt<If>({}, make_binary(BinaryOp::eq, tid, make_int(0, Type(i32))),
                                 fused_.store_of(c, at.indices, Value(result)), Stmt()));
    return make_seq(std::move(body));
  }

  const FusedTask& fused_;
};

}  // namespace

Module auto_schedule_cuda(const FusedTask& fused) { return AutoCuda(fused).run(); }

}  // namespace hidet::graph
