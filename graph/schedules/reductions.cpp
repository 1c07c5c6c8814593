// reductions.cpp - nests of the CPU's auto-scheduler for computes that reduce.
#include "schedules/reductions.h"

#include "schedules/streams.h"

#include <hidet/ir/rewriter.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Most vectors that are accumulated at once along an axis: their latency is hidden.
constexpr int64_t kChains = 4;
/// Values of a row block of columns at most, which stay in the L1 cache, and at least.
constexpr int64_t kMostColumns = 1024, kLeastColumns = 64;
/// Rows that columns are summed up over at once: a sum is loaded and stored once for all of them.
constexpr int64_t kRowsAtOnce = 4;
/// Column blocks that there should be at least, for the threads.
constexpr int64_t kTasks = 4;

/// How many reads of `e` run along `axis` in memory order.
int unit_strides(const Expr& e, const Var& axis) {
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

Expr term(const Compute& c, const Reduce& r, const std::vector<Value>& out,
          const std::vector<Value>& reduced) {
  Substitution map;
  for (size_t d = 0; d < out.size(); d++) map.emplace(c.axes[d].get(), out[d].expr());
  for (size_t d = 0; d < reduced.size(); d++)
    map.emplace(r.axes[d].get(), make_cast(reduced[d].expr(), r.axes[d]->type));
  const Expr e = substitute(r.value, map);
  return make_cast(e, Type(Reductions::accumulator(e->type.dtype())));
}

/// The accumulated value as the compute's.
Value total(const Compute& c, const Reduce& r, const Expr& acc) {
  return Value(make_cast(make_cast(acc, Type(r.type.dtype())), Type(dtype_of(c.tensor))));
}

/// extent / step * step
Expr whole_of(const Expr& extent, int64_t step) {
  return make_binary(BinaryOp::mul, make_binary(BinaryOp::div, extent, index(step)), index(step));
}

/// Values that sums are kept in.
struct Accumulators {
  VarRef v;
  Expr at(const Value& i) const { return make_element(v, {i.expr()}); }
  Stmt set(const Value& i, const Expr& value) const {
    return make_stmt<ElementStore>({}, v, std::vector<Expr>{i.expr()}, value, false);
  }
};
Accumulators accumulators(std::vector<Stmt>& body, DType t, int64_t count) {
  Accumulators a{make_var("acc", Type::tensor({t, {index(count)}, {}, Scope::registers}))};
  body.push_back(make_stmt<DeclTensor>({}, a.v, Expr()));
  return a;
}

}  // namespace

const Reduce* Reductions::of(const Compute& c) {
  const Cast* rounded = as<Cast>(c.value);
  return as<Reduce>(rounded ? rounded->a : c.value);
}

bool Reductions::runs_along(const Compute& c, const Reduce& r) {
  const int along = r.axes.empty() ? 0 : unit_strides(r.value, *r.axes.back());
  const int across = c.axes.empty() ? 0 : unit_strides(r.value, *c.axes.back());
  return along > 0 && along >= across;
}

Stmt Reductions::nest(const Compute& c, const Reduce& r) const {
  const std::vector<Expr>& shape = shape_of(c.tensor);
  const bool runs = runs_along(c, r);
  if (!runs && !c.axes.empty() && !r.axes.empty() && unit_strides(r.value, *c.axes.back()) > 0)
    return across(c, r);
  return loop("out", size_of(shape), LoopKind::parallel, [&](const Value& flat) {
    Unflattened at = unflatten(flat.expr(), shape);
    std::vector<Stmt> body = at.declarations;
    const Value value = runs ? along(body, c, r, at.indices) : one_by_one(body, c, r, at.indices);
    body.push_back(fused_.store_of(c, at.indices, value));
    return make_seq(std::move(body));
  });
}

Stmt Reductions::loops(const Reduce& r, size_t count, std::vector<Value> at,
                       const std::function<Stmt(const std::vector<Value>&)>& body) {
  if (at.size() == count) return body(at);
  return loop("r", make_cast(r.extents[at.size()], Type(i64)), LoopKind::serial,
              [&](const Value& v) {
                std::vector<Value> next = at;
                next.push_back(v);
                return loops(r, count, next, body);
              });
}

Value Reductions::one_by_one(std::vector<Stmt>& body, const Compute& c, const Reduce& r,
                             const std::vector<Value>& out) const {
  const DType t = accumulator(r.type.dtype());
  const VarRef acc = make_var("acc", Type(t), true);
  body.push_back(make_stmt<DeclVar>({}, acc, reduce_identity(r.op, t)));
  body.push_back(loops(r, r.axes.size(), {}, [&](const std::vector<Value>& at) {
    return make_stmt<Assign>({}, acc, reduce_combine(r.op, acc, term(c, r, out, at)));
  }));
  return total(c, r, acc);
}

Value Reductions::along(std::vector<Stmt>& body, const Compute& c, const Reduce& r,
                        const std::vector<Value>& out) const {
  const DType t = accumulator(r.type.dtype());
  const Expr extent = make_cast(r.extents.back(), Type(i64));
  const int64_t vector = std::min<int64_t>(target_.lanes(t), 32);
  int64_t lanes = std::min<int64_t>(vector * kChains, 64), n = 0;
  if (is_const_int(extent, &n))
    while (lanes > vector && lanes > n) lanes /= 2;
  const Accumulators acc = accumulators(body, t, lanes);
  const auto vectors = [&](int64_t width, const std::function<Stmt(const Value&)>& one) {
    return loop("lane", index(width), LoopKind::vectorize, one);
  };
  body.push_back(
      vectors(lanes, [&](const Value& v) { return acc.set(v, reduce_identity(r.op, t)); }));
  body.push_back(loops(r, r.axes.size() - 1, {}, [&](const std::vector<Value>& outer) {
    const auto step = [&](const Value& lane, const Value& k) {
      std::vector<Value> at = outer;
      at.push_back(k);
      return acc.set(lane, reduce_combine(r.op, acc.at(lane), term(c, r, out, at)));
    };
    std::vector<Stmt> parts;
    Expr done = index(0);
    for (int64_t width = lanes;; width = vector) {  // all chains, one vector, single values
      const Expr whole = whole_of(extent, width);
      parts.push_back(loop_from("k", done, whole, width, [&](const Value& k) {
        return vectors(width, [&](const Value& v) { return step(v, k + v); });
      }));
      done = whole;
      if (width == vector) break;
    }
    parts.push_back(
        loop_from("k", done, extent, 1, [&](const Value& k) { return step(number(0), k); }));
    return make_seq(std::move(parts));
  }));
  for (int64_t half = lanes / 2; half >= 1; half /= 2)
    body.push_back(loop("lane", index(half), half > 1 ? LoopKind::vectorize : LoopKind::unroll,
                        [&](const Value& v) {
                          return acc.set(v,
                                         reduce_combine(r.op, acc.at(v), acc.at(v + number(half))));
                        }));
  return total(c, r, acc.at(number(0)));
}

/// Vectors along the last output axis, in blocks of columns.
Stmt Reductions::across(const Compute& c, const Reduce& r) const {
  const std::vector<Expr>& shape = shape_of(c.tensor);
  const std::vector<Expr> outer(shape.begin(), shape.end() - 1);
  const Expr extent = shape.back();
  int64_t block = kMostColumns / kTasks, n = 0;
  if (is_const_int(extent, &n))
    while (block > kLeastColumns && block * kTasks > n) block /= 2;
  std::vector<Expr> space = outer;
  space.push_back(make_binary(BinaryOp::div, make_binary(BinaryOp::add, extent, index(block - 1)),
                              index(block)));
  return loop("out", size_of(space), LoopKind::parallel, [&](const Value& flat) {
    Unflattened at = unflatten(flat.expr(), space);
    std::vector<Stmt> body = at.declarations;
    const std::vector<Value> rows(at.indices.begin(), at.indices.end() - 1);
    const Value first = declare(body, "first", at.indices.back() * number(block));
    body.push_back(columns(c, r, rows, first, block));
    return make_seq(std::move(body));
  });
}

Stmt Reductions::columns(const Compute& c, const Reduce& r, const std::vector<Value>& rows,
                         const Value& first, int64_t block) const {
  const DType t = accumulator(r.type.dtype());
  std::vector<Stmt> body;
  const Value count = declare(
      body, "count",
      Value(make_binary(BinaryOp::min, index(block),
                        make_binary(BinaryOp::sub, shape_of(c.tensor).back(), first.expr()))));
  const Accumulators acc = accumulators(body, t, block);
  const auto place = [&](const Value& j) {
    std::vector<Value> out = rows;
    out.push_back(first + j);
    return out;
  };
  const auto each = [&](const std::function<Stmt(const Value&, const std::vector<Value>&)>& one) {
    return vector_row(count.expr(), target_.lanes(t),
                      [&](const Value& j) { return one(j, place(j)); });
  };
  body.push_back(each([&](const Value& j, const std::vector<Value>&) {
    return acc.set(j, reduce_identity(r.op, t));
  }));
  body.push_back(loops(r, r.axes.size() - 1, {}, [&](const std::vector<Value>& outer) {
    const auto add_rows = [&](const Value& k, int64_t rows_at_once) {
      return each([&](const Value& j, const std::vector<Value>& out) {
        Expr sum = acc.at(j);
        for (int64_t i = 0; i < rows_at_once; i++) {
          std::vector<Value> at = outer;
          at.push_back(i ? k + number(i) : k);
          sum = reduce_combine(r.op, sum, term(c, r, out, at));
        }
        return acc.set(j, sum);
      });
    };
    const Expr extent = make_cast(r.extents.back(), Type(i64)),
               whole = whole_of(extent, kRowsAtOnce);
    return make_seq(
        {loop_from("k", index(0), whole, kRowsAtOnce,
                   [&](const Value& k) { return add_rows(k, kRowsAtOnce); }),
         loop_from("k", whole, extent, 1, [&](const Value& k) { return add_rows(k, 1); })});
  }));
  body.push_back(each([&](const Value& j, const std::vector<Value>& out) {
    return fused_.store_of(c, out, total(c, r, acc.at(j)));
  }));
  return make_seq(std::move(body));
}

// --- rows that several computes share

namespace {

/// Elements that one chunk of a parallel loop should at least do.
constexpr int64_t kGrainElements = 8192;
/// Fewer rows that are longer than this leave threads without work.
constexpr int64_t kFewRows = 4, kLongRow = 1 << 16;
/// Rows from this length on are stored past the caches, where all of them are large.
constexpr int64_t kStreamed = 512;

bool has_reduction(const Expr& e) {
  bool found = false;
  visit_all(e, [&](const Node& n) {
    found = found || n.kind == Kind::Reduce || n.kind == Kind::ArgReduce;
  });
  return found;
}

/// All reads of `tensor` are at the first axes of `c`.
bool reads_own_row(const Compute& c, const VarRef& tensor) {
  bool fine = true;
  visit_all(c.value, [&](const Node& n) {
    const Element* e = as<Element>(&n);
    if (!e || !same(e->tensor, tensor)) return;
    for (size_t d = 0; d < e->indices.size(); d++)
      fine = fine && d < c.axes.size() && same(e->indices[d], c.axes[d]);
  });
  return fine;
}

/// The rank of the values of rows, where the computes are of the form that `shared_rows` takes; else 0.
size_t rank_of_rows(const FusedTask& fused, const std::vector<Compute>& computes) {
  const size_t rank = computes[0].axes.size();
  size_t reduced = 0;
  for (; reduced < computes.size(); reduced++) {
    const Compute& c = computes[reduced];
    const Reduce* r = Reductions::of(c);
    if (!r) break;
    const bool kept = std::any_of(fused.outputs.begin(), fused.outputs.end(),
                                  [&](const VarRef& o) { return same(o, c.tensor); });
    if (kept || c.axes.size() != rank || !Reductions::runs_along(c, *r) || has_reduction(r->value))
      return 0;
  }
  if (reduced + 1 != computes.size() || has_reduction(computes.back().value) ||
      computes.back().axes.size() <= rank)
    return 0;
  for (size_t i = 0; i < computes.size(); i++) {
    const Compute& c = computes[i];
    for (size_t k = 0; k < rank; k++)
      if (!equal(shape_of(c.tensor)[k], shape_of(computes[0].tensor)[k])) return 0;
    for (size_t k = 0; k < i; k++)
      if (!reads_own_row(c, computes[k].tensor)) return 0;
  }
  return rank;
}

/// Stores compute `c` at `at` and all that follows: loops, and vectors along the last axis. The next row is fetched meanwhile.
Stmt rest_of_row(const FusedTask& fused, const Compute& c, const std::vector<Value>& at,
                 size_t rank, int64_t lanes) {
  const Expr extent = shape_of(c.tensor)[at.size()];
  const auto next = [&](const Value& i) {
    std::vector<Value> all = at;
    all.push_back(i);
    return all;
  };
  if (at.size() + 1 == c.axes.size())
    return vector_row(
        extent, lanes,
        [&](const Value& j) { return fused.store_of(c, next(j), value_at(c, next(j))); },
        [&](const Value& j) {
          std::vector<Value> after = next(j);
          after[rank - 1] = after[rank - 1] + number(1);
          return prefetch_reads(value_at(c, after).expr(), size_of(shape_of(c.tensor)));
        });
  return loop("i", extent, LoopKind::serial,
              [&](const Value& i) { return rest_of_row(fused, c, next(i), rank, lanes); });
}

}  // namespace

std::optional<Stmt> shared_rows(const FusedTask& fused, const std::vector<Compute>& computes,
                                const CpuTargetInfo& target) {
  const size_t rank = computes.size() < 2 ? 0 : rank_of_rows(fused, computes);
  if (rank == 0) return std::nullopt;
  const Reductions reductions(fused, target);
  const std::vector<Expr>& shape = shape_of(computes.back().tensor);
  const std::vector<Expr> rows(shape.begin(), shape.begin() + static_cast<int64_t>(rank)),
      rest(shape.begin() + static_cast<int64_t>(rank), shape.end());
  int64_t n = 0, count = kFewRows;
  const int64_t grain = is_const_int(size_of(rest), &n)
                            ? std::max<int64_t>(1, kGrainElements / std::max<int64_t>(n, 1))
                            : 8;
  is_const_int(size_of(rows), &count);
  if (count < kFewRows && n > kLongRow) return std::nullopt;
  const Stmt nest = loop(
      "row", size_of(rows), LoopKind::parallel,
      [&](const Value& row) {
        Unflattened at = unflatten(row.expr(), rows);
        std::vector<Stmt> body = at.declarations;
        std::vector<std::pair<VarRef, Value>> known;
        for (Compute c : computes) {
          for (const auto& [tensor, value] : known)
            c.value = replace_reads(c.value, tensor,
                                    [&](const std::vector<Expr>&) { return value.expr(); });
          if (const Reduce* r = Reductions::of(c))
            known.emplace_back(c.tensor,
                               declare(body, "of_row", reductions.along(body, c, *r, at.indices)));
          else body.push_back(rest_of_row(fused, c, at.indices, rank, target.lanes(f32)));
        }
        return make_seq(std::move(body));
      },
      grain);
  return n < kStreamed ? nest : past_caches(nest, target.lanes(f32));
}

}  // namespace hidet::graph
