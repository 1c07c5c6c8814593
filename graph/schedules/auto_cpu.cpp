// auto_cpu.cpp - a correct, vectorised, parallel CPU kernel for any compute definition.
// Each compute becomes one parallel nest, or all are one nest over the rows that they share. Without a reduction: rows of the last axis
// in vectors, all axes merged into one where every tensor is read in place. Reductions: reductions.h.
#include "schedules/flat_reads.h"
#include "schedules/reductions.h"
#include "schedules/streams.h"
#include "schedules/transposed.h"

#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

namespace hidet::graph {
using namespace ir;

namespace {

/// Elements that one chunk of a parallel loop should at least do.
constexpr int64_t kGrainElements = 8192;

class AutoCpu {
 public:
  AutoCpu(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), target_(target), reductions_(fused, target) {}

  Module run() {
    std::vector<Compute> computes;
    for (const Compute& c : fused_.anchor.computes) computes.push_back(fused_.with_prologues(c));
    std::vector<Stmt> body;
    if (auto rows = shared_rows(fused_, computes, target_)) body.push_back(*rows);
    else
      for (const Compute& c : computes) body.push_back(past_caches(nest(c), target_.lanes(f32)));
    Module m;
    m.name = fused_.name;
    m.functions.push_back(fused_.launch(make_seq(std::move(body))));
    return m;
  }

 private:
  Stmt nest(const Compute& c) const {
    if (const Reduce* r = Reductions::of(c)) return reductions_.nest(c, *r);
    bool inner_reduce = false;
    visit_all(c.value, [&](const Node& n) {
      inner_reduce = inner_reduce || n.kind == Kind::Reduce || n.kind == Kind::ArgReduce;
    });
    return inner_reduce ? scalar_nest(c) : elementwise(c);
  }

  // --- without a reduction

  /// True where all reads of the value are in place (indices are the axes, shapes the output's) or of one element.
  bool in_place(const Compute& c) const {
    std::vector<Value> axes;
    for (const VarRef& v : c.axes) axes.emplace_back(Expr(v));
    FusedTask::Stored s{axes, Value(c.value)};
    const std::vector<Expr>* shape = &shape_of(c.tensor);
    if (fused_.is_output(c.tensor)) {
      s = fused_.finish(axes, Value(c.value));
      shape = &shape_of(fused_.output);
    }
    const auto identity = [&](const std::vector<Expr>& indices, const std::vector<Expr>& extents) {
      if (indices.size() != c.axes.size()) return false;
      for (size_t d = 0; d < indices.size(); d++)
        if (!same(indices[d], c.axes[d]) || !equal(extents[d], shape_of(c.tensor)[d])) return false;
      return true;
    };
    std::vector<Expr> stored;
    for (const Value& i : s.indices) stored.push_back(i.expr());
    if (!identity(stored, *shape)) return false;
    bool fine = true;
    visit_all(s.value.expr(), [&](const Node& n) {
      const Element* e = as<Element>(&n);
      if (!e) return;
      bool constant = true;
      for (const Expr& i : e->indices) constant = constant && i->kind == Kind::IntImm;
      fine = fine && (constant || identity(e->indices, e->tensor->type.tensor_info().shape));
    });
    // The axes may appear nowhere else (a range, a mask of positions).
    std::unordered_map<const Node*, int> inside;
    const Expr rest = rewrite(s.value.expr(), [](Rewriter&, const Element& e) -> Expr {
      return make_cast(make_const(0, e.type.dtype()), e.type);
    });
    visit_all(rest, [&](const Node& n) {
      for (const VarRef& v : c.axes) fine = fine && &n != v.get();
    });
    return fine;
  }

  Stmt elementwise(const Compute& c) const {
    const std::vector<Expr>& shape = shape_of(c.tensor);
    if (shape.empty()) return fused_.store_of(c, {}, Value(c.value));
    if (shape.size() == 1 || in_place(c)) return flat(c);
    if (auto squares = transposed_nest(fused_, c, target_.lanes(f32))) return *squares;
    std::vector<Stmt> out;
    const Compute flat_reads = with_flat_reads(c, out);
    out.push_back(rows(flat_reads));
    return make_seq(std::move(out));
  }

  /// Rows of the last axis; the other axes are one parallel loop.
  Stmt rows(const Compute& c) const {
    const std::vector<Expr>& shape = shape_of(c.tensor);
    const std::vector<Expr> outer(shape.begin(), shape.end() - 1);
    int64_t n = 0;
    const int64_t grain = is_const_int(shape.back(), &n)
                              ? std::max<int64_t>(1, kGrainElements / std::max<int64_t>(n, 1))
                              : 8;
    return loop(
        "row", size_of(outer), LoopKind::parallel,
        [&](const Value& row) {
          Unflattened at = unflatten(row.expr(), outer);
          std::vector<Stmt> body = at.declarations;
          body.push_back(vector_row(shape.back(), target_.lanes(f32), [&](const Value& j) {
            std::vector<Value> indices = at.indices;
            indices.push_back(j);
            return fused_.store_of(c, indices, value_at(c, indices));
          }));
          return make_seq(std::move(body));
        },
        grain);
  }

  /// All axes as one: for tensors that are read and written in place.
  Stmt flat(const Compute& c) const {
    const std::vector<Expr>& shape = shape_of(c.tensor);
    const Expr total = size_of(shape);
    const int64_t block = 1024;
    const Expr blocks = make_binary(
        BinaryOp::div, make_binary(BinaryOp::add, total, index(block - 1)), index(block));
    // Tensors seen as vectors of `total` elements.
    const auto as_vector = [&](const Expr& tensor) {
      return Expr(
          make_var("flat", Type::tensor({tensor->type.dtype(), {total}, {}, Scope::global})));
    };
    std::vector<Stmt> views;
    std::unordered_map<const Node*, Expr> flat_of;
    const auto view = [&](const Expr& tensor) {
      auto [it, fresh] = flat_of.emplace(tensor.get(), Expr());
      if (!fresh) return it->second;
      it->second = as_vector(tensor);
      std::vector<Expr> zero(tensor->type.tensor_info().shape.size(), index(0));
      views.push_back(
          make_stmt<DeclTensor>({}, ref(*as<Var>(it->second)), make_address(tensor, zero)));
      return it->second;
    };
    const bool vector = shape.size() == 1;
    std::vector<Value> axes;
    for (const VarRef& v : c.axes) axes.emplace_back(Expr(v));
    FusedTask::Stored s{axes, Value(c.value)};
    if (fused_.is_output(c.tensor)) s = fused_.finish(axes, s.value);
    const VarRef out = fused_.is_output(c.tensor) ? fused_.output : c.tensor;
    const auto at = [&](const Value& i) -> Stmt {
      if (vector) return fused_.store_of(c, {i}, value_at(c, {i}));
      const Expr value = rewrite(s.value.expr(), [&](Rewriter& self, const Element& e) -> Expr {
        bool constant = true;
        for (const Expr& x : e.indices) constant = constant && x->kind == Kind::IntImm;
        return constant ? self.children(e) : make_element(view(e.tensor), {i.expr()});
      });
      return make_stmt<ElementStore>({}, view(out), std::vector<Expr>{i.expr()}, value, false);
    };
    const Stmt body = loop(
        "block", blocks, LoopKind::parallel,
        [&](const Value& b) {
          const Value begin = b * Value(index(block));
          const VarRef count = make_var("count", Type(i64));
          std::vector<Stmt> inner{
              make_stmt<DeclVar>({}, count,
                                 make_binary(BinaryOp::min, index(block),
                                             make_binary(BinaryOp::sub, total, begin.expr())))};
          inner.push_back(
              vector_row(count, target_.lanes(f32), [&](const Value& j) { return at(begin + j); }));
          return make_seq(std::move(inner));
        },
        kGrainElements / block);
    views.push_back(body);
    return make_seq(std::move(views));
  }

  // --- reductions inside a larger value, and arg reductions: one output at a time

  Stmt scalar_nest(const Compute& c) const {
    const std::vector<Expr>& shape = shape_of(c.tensor);
    return loop("out", size_of(shape), LoopKind::parallel, [&](const Value& flat) {
      Unflattened at = unflatten(flat.expr(), shape);
      std::vector<Stmt> body = at.declarations;
      const Expr value = rewrite(
          value_at(c, at.indices).expr(),
          [&](Rewriter& self, const Reduce& r) -> Expr { return inner_reduce(self, r, body); },
          [&](Rewriter&, const ArgReduce& r) -> Expr { return arg_search(r, body); });
      body.push_back(fused_.store_of(c, at.indices, Value(value)));
      return make_seq(std::move(body));
    });
  }
  static Expr inner_reduce(Rewriter&, const Reduce& r, std::vector<Stmt>& body) {
    const DType t = Reductions::accumulator(r.type.dtype());
    const VarRef acc = make_var("acc", Type(t), true);
    body.push_back(make_stmt<DeclVar>({}, acc, reduce_identity(r.op, t)));
    body.push_back(Reductions::loops(r, r.axes.size(), {}, [&](const std::vector<Value>& at) {
      Substitution map;
      for (size_t d = 0; d < at.size(); d++)
        map.emplace(r.axes[d].get(), make_cast(at[d].expr(), r.axes[d]->type));
      return make_stmt<Assign>(
          {}, acc, reduce_combine(r.op, acc, make_cast(substitute(r.value, map), Type(t))));
    }));
    return make_cast(acc, Type(r.type.dtype()));
  }
  const FusedTask& fused_;
  const CpuTargetInfo& target_;
  Reductions reductions_;
};

}  // namespace

Module auto_schedule_cpu(const FusedTask& fused, const CpuTargetInfo& target) {
  return AutoCpu(fused, target).run();
}

}  // namespace hidet::graph
