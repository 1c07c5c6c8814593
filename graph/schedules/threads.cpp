// threads.cpp - small pieces of CUDA kernels.
#include "schedules/threads.h"

#include <hidet/ir/rewriter.h>

namespace hidet::graph {
using namespace ir;

Value small(int64_t v) { return Value(make_int(v, Type(i32))); }
Value thread_index() { return Value(make_prim("thread_idx_x", {}, Type(i32))); }
Value block_index() { return Value(make_cast(make_prim("block_idx_x", {}, Type(i32)), Type(i64))); }
Stmt barrier() { return make_stmt<Evaluate>({}, make_prim("syncthreads", {}, Type())); }
Value ceil_div(const Value& a, int64_t b) { return (a + number(b - 1)) / number(b); }

Stmt only_if(const Value& cond, std::vector<Stmt> body) {
  return make_stmt<If>({}, cond.expr(), make_seq(std::move(body)), Stmt());
}

int64_t known_extent(const VarRef& tensor, size_t d) {
  int64_t n = 0;
  return is_const_int(shape_of(tensor).at(d), &n) ? n : 0;
}

namespace {

/// The function with variables of its own for its parameters.
Function with_own_parameters(Function f) {
  Substitution map;
  for (VarRef& p : f.params) {
    const VarRef own = make_var(p->name, p->type);
    map.emplace(p.get(), own);
    p = own;
  }
  f.body = substitute(f.body, map);
  return f;
}

/// How far `e` moves from one lane to the next, where the axis begins at a multiple of `lanes`.
std::optional<int64_t> lane_stride(const Expr& e, const Var& axis, int lanes) {
  if (const auto known = stride_in(e, axis)) return known;
  const Binary* b = as<Binary>(e);
  if (!b || (b->op != BinaryOp::div && b->op != BinaryOp::mod)) return std::nullopt;
  int64_t by = 0;
  if (!is_const_int(b->b, &by) || by <= 0) return std::nullopt;
  if (lane_stride(b->a, axis, lanes) == 0) return 0;
  if (b->a.get() != &axis || by % lanes != 0) return std::nullopt;
  return b->op == BinaryOp::mod;  // a vector lies within one period
}

bool runs_along(const std::vector<Expr>& indices, const Var& axis, int lanes) {
  if (lanes == 1 || indices.empty()) return false;
  for (size_t d = 0; d + 1 < indices.size(); d++)
    if (lane_stride(indices[d], axis, lanes) != 0) return false;
  return lane_stride(indices.back(), axis, lanes) == 1;
}

/// Reads of `e` along `axis` in memory order that are evaluated whatever the axis is.
std::vector<Expr> vector_reads(const Expr& e, const Var& axis, int lanes) {
  std::vector<Expr> reads;
  rewrite(
      e,
      [&](Rewriter& self, const Select& s) -> Expr {
        self(s.cond);
        return Expr(&s);
      },
      [&](Rewriter& self, const Binary& b) -> Expr {
        const bool lazy = b.op == BinaryOp::logical_and || b.op == BinaryOp::logical_or;
        if (!lazy) return self.children(b);
        self(b.a);
        return Expr(&b);
      },
      [&](Rewriter& self, const Element& el) -> Expr {
        if (!el.type.is_scalar() || !runs_along(el.indices, axis, lanes)) return self.children(el);
        reads.emplace_back(&el);
        return Expr(&el);
      });
  return reads;
}

Expr lane_of(const Expr& vector, int lane) { return make_lane(vector, make_int(lane, Type(i32))); }

/// axis -> base + lane
Substitution at_lane(const VarRef& axis, const Expr& base, int lane) {
  return {{axis.get(), make_binary(BinaryOp::add, base, make_int(lane, base->type))}};
}

}  // namespace

Function cuda_kernel(const FusedTask& fused, const std::string& name, const Value& grid,
                     int64_t threads, std::vector<Stmt> body) {
  Function f;
  f.name = name;
  f.kind = FuncKind::cuda_kernel;
  f.params = fused.parameters();
  f.no_alias = fused.anchor.share_map.empty();
  f.launch.grid = {grid.expr()};
  f.launch.block = {index(threads)};
  std::vector<Stmt> all;
  for (const VarRef& p : f.params)
    all.push_back(
        make_stmt<Evaluate>({}, make_prim("assume_aligned", {p}, Type(), {kVectorBytes})));
  all.insert(all.end(), body.begin(), body.end());
  f.body = make_seq(std::move(all));
  return f;
}

Stmt call_kernel(const FusedTask& fused, const std::string& name) {
  std::vector<Expr> args;
  for (const VarRef& p : fused.parameters()) args.emplace_back(p);
  return make_stmt<Evaluate>({}, make_call(name, args, Type()));
}

Module cuda_module(const FusedTask& fused, std::vector<Function> kernels, Stmt body) {
  Module m;
  m.name = fused.name;
  for (Function& k : kernels) m.functions.push_back(with_own_parameters(std::move(k)));
  Function f;
  f.name = "launch";
  f.kind = FuncKind::public_;
  f.params = fused.parameters();
  f.body = std::move(body);
  m.functions.push_back(std::move(f));
  return m;
}

std::vector<Expr> lane_values(const Expr& e, const VarRef& axis, const Expr& base, int lanes,
                              std::vector<Stmt>& body) {
  std::vector<Expr> out;
  if (lanes == 1) return {substitute(e, {{axis.get(), base}})};
  Substitution vectors;
  for (const Expr& read : vector_reads(e, *axis, lanes)) {
    const Element& el = *as<Element>(read);
    std::vector<Expr> at;
    for (const Expr& i : el.indices) at.push_back(substitute(i, {{axis.get(), base}}));
    const VarRef v = make_var("v", el.type.with_lanes(lanes));
    body.push_back(make_stmt<DeclVar>({}, v, make_element(el.tensor, at, false, lanes)));
    vectors.emplace(read.get(), v);
  }
  for (int l = 0; l < lanes; l++) {
    const Expr with_vectors = rewrite(e, [&](Rewriter& self, const Element& el) -> Expr {
      auto it = vectors.find(&el);
      return it == vectors.end() ? self.children(el) : lane_of(it->second, l);
    });
    out.push_back(substitute(with_vectors, at_lane(axis, base, l)));
  }
  return out;
}

void store_lanes(const FusedTask& fused, const Compute& c, const std::vector<Value>& indices,
                 const VarRef& axis, const Expr& base, const std::vector<Expr>& values,
                 std::vector<Stmt>& body) {
  const int lanes = static_cast<int>(values.size());
  const VarRef value = make_var("value", values.at(0)->type);
  const bool output = fused.is_output(c.tensor);
  const VarRef& to = output ? fused.output : c.tensor;
  FusedTask::Stored s{indices, Value(Expr(value))};
  if (output) s = fused.finish(indices, s.value);
  const DType t = dtype_of(to);
  std::vector<Expr> results = lane_values(s.value.expr(), axis, base, lanes, body);
  for (int l = 0; l < lanes; l++)
    results[l] = make_cast(substitute(results[l], {{value.get(), values[l]}}), Type(t));
  std::vector<Expr> to_indices;
  for (const Value& i : s.indices) to_indices.push_back(i.expr());
  const auto place = [&](int lane) {
    std::vector<Expr> at;
    for (const Expr& i : to_indices) at.push_back(substitute(i, at_lane(axis, base, lane)));
    return at;
  };
  if (runs_along(to_indices, *axis, lanes)) {
    body.push_back(make_stmt<ElementStore>({}, to, place(0), make_vector(results), false));
    return;
  }
  for (int l = 0; l < lanes; l++)
    body.push_back(make_stmt<ElementStore>({}, to, place(l), results[l], false));
}

}  // namespace hidet::graph
