// auto_cpu.cpp - a correct, vectorised, parallel CPU kernel for any compute definition.
// Each compute becomes one parallel nest. Without a reduction: rows of the last axis in vectors, all axes
// merged into one where every tensor is read in place. With a reduction: vectors run along the reduced axis
// or along the last output axis, whichever is read in memory order; several accumulators are combined at the end
// in an order that depends on the extents alone.
#include "schedules/flat_reads.h"
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
  AutoCpu(const FusedTask& fused, const CpuTargetInfo& target) : fused_(fused), target_(target) {}

  Module run() {
    std::vector<Stmt> body;
    for (const Compute& c : fused_.anchor.computes) body.push_back(nest(fused_.with_prologues(c)));
    Module m;
    m.name = fused_.name;
    m.functions.push_back(fused_.launch(make_seq(std::move(body))));
    return m;
  }

 private:
  Stmt nest(const Compute& c) const {
    // f16 and bf16 products sum up in f32 and are rounded once: the reduction is below a cast.
    const Cast* rounded = as<Cast>(c.value);
    if (const Reduce* r = as<Reduce>(rounded ? rounded->a : c.value)) return reduction(c, *r);
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
          body.push_back(vector_row(shape.back(), [&](const Value& j) {
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
          inner.push_back(vector_row(count, [&](const Value& j) { return at(begin + j); }));
          return make_seq(std::move(inner));
        },
        kGrainElements / block);
    views.push_back(body);
    return make_seq(std::move(views));
  }

  /// body(j) for j in [0, extent): whole vectors, then the rest one by one.
  Stmt vector_row(const Expr& extent, const std::function<Stmt(const Value&)>& body) const {
    const int64_t lanes = target_.lanes(f32);
    int64_t n = -1;
    is_const_int(extent, &n);
    std::vector<Stmt> out;
    Expr whole =
        make_binary(BinaryOp::mul, make_binary(BinaryOp::div, extent, index(lanes)), index(lanes));
    if (n < 0 || n >= lanes)
      out.push_back(loop_from("j", index(0), whole, lanes, [&](const Value& j) {
        return loop("lane", index(lanes), LoopKind::vectorize,
                    [&](const Value& v) { return body(j + v); });
      }));
    if (n < 0 || n % lanes != 0) out.push_back(loop_from("tail", whole, extent, 1, body));
    return make_seq(std::move(out));
  }

  // --- with a reduction

  static DType accumulator(DType t) { return t == f16 || t == bf16 ? f32 : t; }

  /// How many reads of `e` run along `axis` in memory order.
  static int unit_strides(const Expr& e, const Var& axis) {
    int count = 0;
    visit_all(e, [&](const Node& n) {
      const Element* el = as<Element>(&n);
      if (!el || el->indices.empty()) return;
      for (size_t d = 0; d + 1 < el->indices.size(); d++)
        if (stride_in(el->indices[d], axis) != 0) return;
      count += stride_in(el->indices.back(), axis) == 1;
    });
    return count;
  }

  Stmt reduction(const Compute& c, const Reduce& r) const {
    const std::vector<Expr>& shape = shape_of(c.tensor);
    const int along = r.axes.empty() ? 0 : unit_strides(r.value, *r.axes.back());
    const int across = c.axes.empty() ? 0 : unit_strides(r.value, *c.axes.back());
    if (across > along) return across_outputs(c, r);
    return loop("out", size_of(shape), LoopKind::parallel, [&](const Value& flat) {
      Unflattened at = unflatten(flat.expr(), shape);
      std::vector<Stmt> body = at.declarations;
      body.push_back(along > 0 ? reduce_along(c, r, at.indices) : reduce_scalar(c, r, at.indices));
      return make_seq(std::move(body));
    });
  }

  Expr term(const Compute& c, const Reduce& r, const std::vector<Value>& out,
            const std::vector<Value>& reduced) const {
    Substitution map;
    for (size_t d = 0; d < out.size(); d++) map.emplace(c.axes[d].get(), out[d].expr());
    for (size_t d = 0; d < reduced.size(); d++)
      map.emplace(r.axes[d].get(), make_cast(reduced[d].expr(), r.axes[d]->type));
    const Expr e = substitute(r.value, map);
    return make_cast(e, Type(accumulator(e->type.dtype())));
  }

  /// The accumulated value as the compute's.
  static Value total(const Compute& c, const Reduce& r, const Expr& acc) {
    return Value(make_cast(make_cast(acc, Type(r.type.dtype())), Type(dtype_of(c.tensor))));
  }

  /// Loops over all reduced axes but the last `skip`; body gets their indices.
  static Stmt reduce_loops(const Reduce& r, size_t count, std::vector<Value> at,
                           const std::function<Stmt(const std::vector<Value>&)>& body) {
    if (at.size() == count) return body(at);
    return loop("r", make_cast(r.extents[at.size()], Type(i64)), LoopKind::serial,
                [&](const Value& v) {
                  std::vector<Value> next = at;
                  next.push_back(v);
                  return reduce_loops(r, count, next, body);
                });
  }

  Stmt reduce_scalar(const Compute& c, const Reduce& r, const std::vector<Value>& out) const {
    const DType t = accumulator(r.type.dtype());
    const VarRef acc = make_var("acc", Type(t), true);
    std::vector<Stmt> body{make_stmt<DeclVar>({}, acc, reduce_identity(r.op, t))};
    body.push_back(reduce_loops(r, r.axes.size(), {}, [&](const std::vector<Value>& at) {
      return make_stmt<Assign>({}, acc, reduce_combine(r.op, acc, term(c, r, out, at)));
    }));
    body.push_back(fused_.store_of(c, out, total(c, r, acc)));
    return make_seq(std::move(body));
  }

  /// Vectors along the last reduced axis; lanes are combined pairwise at the end.
  Stmt reduce_along(const Compute& c, const Reduce& r, const std::vector<Value>& out) const {
    const DType t = accumulator(r.type.dtype());
    const int64_t lanes = std::min<int64_t>(target_.lanes(t) * 2, 32);
    const VarRef acc = make_var("acc", Type::tensor({t, {index(lanes)}, {}, Scope::registers}));
    const auto element_of = [&](const Value& i) { return make_element(acc, {i.expr()}); };
    const auto set = [&](const Value& i, const Expr& v) {
      return make_stmt<ElementStore>({}, acc, std::vector<Expr>{i.expr()}, v, false);
    };
    std::vector<Stmt> body{make_stmt<DeclTensor>({}, acc, Expr())};
    body.push_back(loop("lane", index(lanes), LoopKind::vectorize,
                        [&](const Value& v) { return set(v, reduce_identity(r.op, t)); }));
    const Expr extent = make_cast(r.extents.back(), Type(i64));
    const Expr whole =
        make_binary(BinaryOp::mul, make_binary(BinaryOp::div, extent, index(lanes)), index(lanes));
    body.push_back(reduce_loops(r, r.axes.size() - 1, {}, [&](const std::vector<Value>& outer) {
      const auto step = [&](const Value& lane, const Value& k) {
        std::vector<Value> at = outer;
        at.push_back(k);
        return set(lane, reduce_combine(r.op, element_of(lane), term(c, r, out, at)));
      };
      return make_seq({loop_from("k", index(0), whole, lanes,
                                 [&](const Value& k) {
                                   return loop("lane", index(lanes), LoopKind::vectorize,
                                               [&](const Value& v) { return step(v, k + v); });
                                 }),
                       loop_from("k", whole, extent, 1,
                                 [&](const Value& k) { return step(Value(index(0)), k); })});
    }));
    for (int64_t half = lanes / 2; half >= 1; half /= 2)
      body.push_back(loop("lane", index(half), half > 1 ? LoopKind::vectorize : LoopKind::unroll,
                          [&](const Value& v) {
                            return set(v, reduce_combine(r.op, element_of(v),
                                                         element_of(v + Value(index(half)))));
                          }));
    body.push_back(fused_.store_of(c, out, total(c, r, element_of(Value(index(0))))));
    return make_seq(std::move(body));
  }

  /// Vectors along the last output axis.
  Stmt across_outputs(const Compute& c, const Reduce& r) const {
    const std::vector<Expr>& shape = shape_of(c.tensor);
    const std::vector<Expr> outer(shape.begin(), shape.end() - 1);
    const DType t = accumulator(r.type.dtype());
    const int64_t lanes = std::min<int64_t>(target_.lanes(t) * 2, 32);
    const Expr extent = shape.back();
    const Expr blocks = make_binary(
        BinaryOp::div, make_binary(BinaryOp::add, extent, index(lanes - 1)), index(lanes));
    std::vector<Expr> space = outer;
    space.push_back(blocks);
    return loop("out", size_of(space), LoopKind::parallel, [&](const Value& flat) {
      Unflattened at = unflatten(flat.expr(), space);
      std::vector<Stmt> body = at.declarations;
      const std::vector<Value> rows(at.indices.begin(), at.indices.end() - 1);
      const Value first = at.indices.back() * Value(index(lanes));
      const Expr full = make_binary(BinaryOp::le, (first + Value(index(lanes))).expr(), extent);
      const Stmt tail = loop_from("j", first.expr(), extent, 1, [&](const Value& j) {
        std::vector<Value> out = rows;
        out.push_back(j);
        return reduce_scalar(c, r, out);
      });
      body.push_back(make_stmt<If>({}, full, block_of_outputs(c, r, rows, first, lanes, t), tail));
      return make_seq(std::move(body));
    });
  }
  Stmt block_of_outputs(const Compute& c, const Reduce& r, const std::vector<Value>& rows,
                        const Value& first, int64_t lanes, DType t) const {
    const VarRef acc = make_var("acc", Type::tensor({t, {index(lanes)}, {}, Scope::registers}));
    const auto set = [&](const Value& i, const Expr& v) {
      return make_stmt<ElementStore>({}, acc, std::vector<Expr>{i.expr()}, v, false);
    };
    const auto vectors =
        [&](const std::function<Stmt(const Value&, const std::vector<Value>&)>& body) {
          return loop("lane", index(lanes), LoopKind::vectorize, [&](const Value& v) {
            std::vector<Value> out = rows;
            out.push_back(first + v);
            return body(v, out);
          });
        };
    return make_seq(
        {make_stmt<DeclTensor>({}, acc, Expr()),
         vectors([&](const Value& v, const std::vector<Value>&) {
           return set(v, reduce_identity(r.op, t));
         }),
         reduce_loops(r, r.axes.size(), {},
                      [&](const std::vector<Value>& at) {
                        return vectors([&](const Value& v, const std::vector<Value>& out) {
                          return set(v, reduce_combine(r.op, make_element(acc, {v.expr()}),
                                                       term(c, r, out, at)));
                        });
                      }),
         vectors([&](const Value& v, const std::vector<Value>& out) {
           return fused_.store_of(c, out, total(c, r, make_element(acc, {v.expr()})));
         })});
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
    const DType t = accumulator(r.type.dtype());
    const VarRef acc = make_var("acc", Type(t), true);
    body.push_back(make_stmt<DeclVar>({}, acc, reduce_identity(r.op, t)));
    body.push_back(reduce_loops(r, r.axes.size(), {}, [&](const std::vector<Value>& at) {
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
};

}  // namespace

Module auto_schedule_cpu(const FusedTask& fused, const CpuTargetInfo& target) {
  return AutoCpu(fused, target).run();
}

}  // namespace hidet::graph
