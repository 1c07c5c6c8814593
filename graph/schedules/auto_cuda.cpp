// auto_cuda.cpp - a correct CUDA kernel for any compute definition: one kernel a compute, launched in order.
// Without a reduction: a thread some vectors of 16 bytes where the last axis has whole ones, else an element. With one:
// a block a result where the reduced axis is read in memory order and is long or unknown, with partial results in
// shared memory combined as a tree; else a thread a result.
#include "schedules/threads.h"

#include <hidet/ir/passes.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

constexpr int64_t kThreads = 256;
/// Shorter reductions are one thread's work.
constexpr int64_t kShortReduction = 64;

/// Vectors of a thread in flight, where there are enough of them to fill the GPU all the same.
constexpr int kInFlight = 4;
constexpr int64_t kManyVectors = 1 << 20;

bool reduces(const Expr& e) {
  bool found = false;
  visit_all(e, [&](const Node& n) {
    found = found || n.kind == Kind::Reduce || n.kind == Kind::ArgReduce;
  });
  return found;
}

class AutoCuda {
 public:
  explicit AutoCuda(const FusedTask& fused) : fused_(fused) {}

  Module run() {
    std::vector<Function> kernels;
    std::vector<Stmt> calls;
    for (const Compute& c : fused_.anchor.computes) {
      const std::string name = "step" + std::to_string(kernels.size());
      kernels.push_back(kernel(fused_.with_prologues(c), name));
      calls.push_back(call_kernel(fused_, name));
    }
    return cuda_module(fused_, std::move(kernels), make_seq(std::move(calls)));
  }

 private:
  Function kernel(const Compute& c, const std::string& name) const {
    const Value count(size_of(shape_of(c.tensor)));
    const Reduce* r = as<Reduce>(c.value);
    if (r && wide(*r)) return cuda_kernel(fused_, name, count, kThreads, {block_reduction(c, *r)});
    if (!reduces(c.value) && !shape_of(c.tensor).empty()) return elementwise(c, name);
    return cuda_kernel(fused_, name, ceil_div(count, kThreads), kThreads, by_thread(c, count));
  }

  // --- without a reduction

  /// Elements of the last axis that one access moves.
  static int lanes_of(const Compute& c) {
    size_t bytes = dtype_of(c.tensor).bytes();
    visit_all(c.value, [&](const Node& n) {
      if (const Element* e = as<Element>(&n)) bytes = std::max(bytes, e->type.dtype().bytes());
    });
    const int64_t lanes = kVectorBytes / static_cast<int64_t>(std::max<size_t>(bytes, 1));
    const int64_t last = known_extent(c.tensor, shape_of(c.tensor).size() - 1);
    return last > 0 && last % lanes == 0 ? static_cast<int>(lanes) : 1;
  }

  Function elementwise(const Compute& c, const std::string& name) const {
    const int lanes = lanes_of(c);
    std::vector<Expr> space = shape_of(c.tensor);
    if (lanes > 1) space.back() = index(known_extent(c.tensor, space.size() - 1) / lanes);
    const Value count(size_of(space));
    int64_t n = -1;
    is_const_int(simplify(count.expr()), &n);
    const int each = n >= kManyVectors ? kInFlight : 1;
    const DType t = n >= 0 && n * lanes < INT32_MAX - kThreads * kInFlight ? i32 : i64;
    std::vector<Stmt> body;
    const Value first = declare(
        body, "first",
        cast(block_index() * number(kThreads * each), Type(t)) + cast(thread_index(), Type(t)));
    const auto at = [&](int u) { return first + cast(number(u * kThreads), Type(t)); };
    const Value end = cast(count, Type(t));
    std::vector<Value> all, one;
    for (int u = 0; u < each; u++) all.push_back(at(u));
    const Stmt whole = make_seq(vectors(c, space, lanes, all));
    if (each == 1) {
      body.push_back(only_if(first < end, {whole}));
    } else {
      std::vector<Stmt> rest;
      for (const Value& i : all) rest.push_back(only_if(i < end, vectors(c, space, lanes, {i})));
      // The same for all threads of a block.
      const Value full = block_index() * number(kThreads * each) + number(kThreads * each) <= count;
      body.push_back(make_stmt<If>({}, full.expr(), whole, make_seq(std::move(rest))));
    }
    return cuda_kernel(fused_, name, ceil_div(count, kThreads * each), kThreads, std::move(body));
  }

  /// The vectors number flat[..] of the space: all reads, then all stores.
  std::vector<Stmt> vectors(const Compute& c, const std::vector<Expr>& space, int lanes,
                            const std::vector<Value>& flat) const {
    std::vector<Stmt> body, stores;
    for (const Value& f : flat) {
      Unflattened at = unflatten(f.expr(), space);
      body.insert(body.end(), at.declarations.begin(), at.declarations.end());
      const VarRef axis = make_var("j", Type(i64));
      const Value base = declare(body, "base", cast(at.indices.back(), Type(i64)) * number(lanes));
      at.indices.back() = Value(Expr(axis));
      const std::vector<Expr> values =
          lane_values(value_at(c, at.indices).expr(), axis, base.expr(), lanes, body);
      std::vector<Expr> kept;
      for (const Expr& v : values) kept.push_back(declare(body, "value", Value(v)).expr());
      store_lanes(fused_, c, at.indices, axis, base.expr(), kept, stores);
    }
    body.insert(body.end(), stores.begin(), stores.end());
    return body;
  }

  // --- with a reduction

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

  std::vector<Stmt> by_thread(const Compute& c, const Value& count) const {
    std::vector<Stmt> body, in;
    const Value i =
        declare(body, "i", block_index() * number(kThreads) + cast(thread_index(), Type(i64)));
    Unflattened out = unflatten(i.expr(), shape_of(c.tensor));
    in = out.declarations;
    const Expr value = rewrite(
        value_at(c, out.indices).expr(),
        [&](Rewriter&, const Reduce& r) -> Expr { return serial_reduce(r, in); },
        [&](Rewriter&, const ArgReduce& r) -> Expr { return arg_search(r, in); });
    in.push_back(fused_.store_of(c, out.indices, Value(value)));
    body.push_back(only_if(i < count, std::move(in)));
    return body;
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
                           make_stmt<DeclVar>({}, tid, thread_index().expr()),
                           make_stmt<DeclVar>({}, out, block_index().expr())};
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
    body.push_back(set(tid, acc));
    body.push_back(barrier());
    for (int64_t half = kThreads / 2; half >= 1; half /= 2) {
      const Expr low = make_binary(BinaryOp::lt, tid, make_int(half, Type(i32)));
      body.push_back(make_stmt<If>(
          {}, low,
          set(tid,
              reduce_combine(r.op, slot(tid),
                             slot(make_binary(BinaryOp::add, tid, make_int(half, Type(i32)))))),
          Stmt()));
      body.push_back(barrier());
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
