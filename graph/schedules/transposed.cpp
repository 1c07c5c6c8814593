// transposed.cpp - elementwise kernels whose reads run along another axis than their stores. Squares of lanes x lanes values are read in
// vectors along the one axis, turned in registers and stored in vectors along the other. A task is 64 positions of the axis that is
// read along by all of the last axis, in strips of 256: a few pages at a time on either side. A last axis of few values behind the axis that
// is read along: vectors of these are interleaved. Where an extent is else shorter than a vector, squares go through the stack.
#include "schedules/transposed.h"

#include "schedules/square.h"

#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Elements that one chunk of the parallel loop should at least do.
constexpr int64_t kGrainElements = 8192;
/// A task's positions along the axis that is read along, and of the last axis before the next of those.
constexpr int64_t kAlong = 64, kStrip = 256;
/// Most vectors that are interleaved: n (n - 1) shuffles.
constexpr int64_t kInterleaved = 4;

/// What is stored, where it is stored in place.
struct Plain {
  Expr value;
  VarRef to;
};
std::optional<Plain> stored_in_place(const FusedTask& fused, const Compute& c) {
  if (!fused.is_output(c.tensor)) return Plain{c.value, c.tensor};
  const FusedTask::Stored s =
      fused.finish(std::vector<Value>(c.axes.begin(), c.axes.end()), Value(c.value));
  const std::vector<Expr>&from = shape_of(c.tensor), &to = shape_of(fused.output);
  if (s.indices.size() != c.axes.size() || from.size() != to.size()) return std::nullopt;
  for (size_t d = 0; d < to.size(); d++)
    if (!same(s.indices[d].expr(), c.axes[d]) || !equal(from[d], to[d])) return std::nullopt;
  return Plain{s.value.expr(), fused.output};
}

/// The axis that all large reads of `value` run along, if it is not the last.
std::optional<size_t> read_axis(const Expr& value, const std::vector<VarRef>& axes) {
  std::vector<int> along(axes.size());
  visit_all(value, [&](const Node& n) {
    const Element* e = as<Element>(&n);
    if (!e || e->indices.empty()) return;
    for (size_t a = 0; a < axes.size(); a++) {
      bool outside = true;
      for (size_t d = 0; d + 1 < e->indices.size(); d++)
        outside = outside && stride_in(e->indices[d], *axes[a]) == 0;
      along[a] += outside && stride_in(e->indices.back(), *axes[a]) == 1;
    }
  });
  const size_t best =
      static_cast<size_t>(std::max_element(along.begin(), along.end()) - along.begin());
  if (along.back() > 0 || along[best] == 0) return std::nullopt;
  return best;
}

bool shorter(const Expr& extent, int64_t n) {
  int64_t known = 0;
  return is_const_int(extent, &known) && known < n;
}

class Transposed {
 public:
  Transposed(const Compute& c, Plain plain, size_t axis, int64_t lanes)
      : c_(c), plain_(std::move(plain)), axis_(axis), lanes_(lanes) {}

  Stmt run() const {
    const std::vector<Expr>& shape = shape_of(c_.tensor);
    const Value extent(make_cast(shape[axis_], Type(i64))),
        last(make_cast(shape.back(), Type(i64)));
    if (shorter(extent.expr(), lanes_)) return small(extent, last);
    if (axis_ + 2 == shape.size() && shorter(last.expr(), kInterleaved + 1)) {
      if (is_const_int(extent.expr())) return rows_interleaved(extent);
      return make_stmt<If>({}, (extent >= number(lanes_)).expr(), rows_interleaved(extent),
                           small(extent, last));
    }
    if (shorter(last.expr(), lanes_)) return small(extent, last);
    const Stmt all = squares(extent, last);
    if (is_const_int(extent.expr()) && is_const_int(last.expr())) return all;
    return make_stmt<If>({},
                         make_binary(BinaryOp::logical_and, (extent >= number(lanes_)).expr(),
                                     (last >= number(lanes_)).expr()),
                         all, small(extent, last));
  }

 private:
  static Value least_of(const Value& a, const Value& b) {
    return Value(make_binary(BinaryOp::min, a.expr(), b.expr()));
  }
  std::vector<Value> place(std::vector<Value> at, const Value& along, const Value& last) const {
    at[axis_] = along;
    at.push_back(last);
    return at;
  }
  Expr value_at_place(const std::vector<Value>& here) const {
    Substitution map;
    for (size_t d = 0; d < here.size(); d++)
      map.emplace(c_.axes[d].get(), make_cast(here[d].expr(), c_.axes[d]->type));
    return make_cast(substitute(plain_.value, map), Type(dtype_of(plain_.to)));
  }
  Stmt store(const std::vector<Value>& here, const Value& value) const {
    std::vector<Expr> to;
    for (const Value& v : here) to.push_back(v.expr());
    return make_stmt<ElementStore>({}, plain_.to, to, value.expr(), false);
  }

  /// The dims before the last as a parallel loop, the axis in `parts`: body(indices, declarations).
  Stmt tasks(const Value& parts, int64_t elements,
             const std::function<void(const std::vector<Value>&, std::vector<Stmt>&)>& body) const {
    const std::vector<Expr>& shape = shape_of(c_.tensor);
    std::vector<Expr> outer(shape.begin(), shape.end() - 1);
    outer[axis_] = parts.expr();
    int64_t n = 1;
    is_const_int(shape.back(), &n);
    const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, n * elements));
    return loop(
        "part", size_of(outer), LoopKind::parallel,
        [&](const Value& part) {
          Unflattened at = unflatten(part.expr(), outer);
          std::vector<Stmt> in = at.declarations;
          body(at.indices, in);
          return make_seq(std::move(in));
        },
        grain);
  }

  /// Both extents hold a vector: whole squares alone, the last of a row or a part moved back so that it ends there.
  Stmt squares(const Value& extent, const Value& last) const {
    const Value parts = (extent + number(kAlong - 1)) / number(kAlong);
    return tasks(parts, kAlong, [&](const std::vector<Value>& at, std::vector<Stmt>& in) {
      // Even parts: none is shorter than a vector.
      const Value part = at[axis_], begin = declare(in, "begin", part * extent / parts),
                  end = declare(in, "end", (part + number(1)) * extent / parts);
      in.push_back(loop_from("strip", index(0), last.expr(), kStrip, [&](const Value& strip) {
        return loop_from("a", begin.expr(), end.expr(), lanes_, [&](const Value& a) {
          std::vector<Stmt> row;
          const Value first = declare(row, "first", least_of(a, end - number(lanes_))),
                      stop = declare(row, "stop", least_of(strip + number(kStrip), last));
          row.push_back(loop_from("b", strip.expr(), stop.expr(), lanes_, [&](const Value& b) {
            std::vector<Stmt> one;
            const Value j = declare(one, "j", least_of(b, last - number(lanes_)));
            square(one, at, first, j);
            return make_seq(std::move(one));
          }));
          return make_seq(std::move(row));
        });
      }));
    });
  }

  void square(std::vector<Stmt>& body, const std::vector<Value>& at, const Value& first,
              const Value& j) const {
    const VarRef square = declare_square(body);
    const LoopKind how = plain_.value->kind == Kind::Element ? LoopKind::unroll : LoopKind::serial;
    body.push_back(loop("l", index(lanes_), how, [&](const Value& l) {
      return loop("lane", index(lanes_), LoopKind::vectorize, [&](const Value& i) -> Stmt {
        return make_stmt<ElementStore>({}, square, std::vector<Expr>{l.expr(), i.expr()},
                                       value_at_place(place(at, first + i, j + l)), false);
      });
    }));
    const auto lanes = static_cast<int>(lanes_);
    std::vector<Expr> rows;
    for (int l = 0; l < lanes; l++)
      rows.push_back(
          declare(body, "r",
                  Value(make_load(make_address(square, {index(l), index(0)}), index(0), lanes)))
              .expr());
    rows = turned_square(std::move(rows), body);
    for (int i = 0; i < lanes; i++)
      body.push_back(loop("lane", index(lanes_), LoopKind::vectorize, [&](const Value& l) {
        return store(place(at, first + number(i), j + l),
                     Value(make_lane(rows[static_cast<size_t>(i)], l.expr())));
      }));
  }

  /// All of the last axis for vectors of positions that are read along, the last of which ends with the row.
  Stmt rows_interleaved(const Value& extent) const {
    int64_t along = kStrip, n = 0;
    is_const_int(extent.expr(), &along);
    HIDET_CHECK(is_const_int(shape_of(c_.tensor).back(), &n), "the last axis is not constant");
    return tasks(number(1), along, [&](const std::vector<Value>& at, std::vector<Stmt>& in) {
      in.push_back(loop_from("a", index(0), extent.expr(), lanes_, [&](const Value& a) {
        std::vector<Stmt> body;
        const Value first = declare(body, "first", least_of(a, extent - number(lanes_)));
        const VarRef square = declare_square(body);
        const auto lanes = static_cast<int>(lanes_);
        std::vector<Expr> rows;
        for (int64_t l = 0; l < n; l++) {
          body.push_back(loop("lane", index(lanes_), LoopKind::vectorize, [&](const Value& i) {
            return Stmt(make_stmt<ElementStore>({}, square, std::vector<Expr>{index(l), i.expr()},
                                                value_at_place(place(at, first + i, number(l))),
                                                false));
          }));
          rows.push_back(
              declare(body, "r",
                      Value(make_load(make_address(square, {index(l), index(0)}), index(0), lanes)))
                  .expr());
        }
        std::vector<Expr> to;
        for (const Value& v : place(at, first, number(0))) to.push_back(v.expr());
        const Value begin = declare(body, "to", Value(make_address(plain_.to, to)));
        for (int k = 0; k < static_cast<int>(n); k++) {
          const Expr v = interleaved(rows, k, body);
          body.push_back(make_stmt<Store>({}, begin.expr(), index(k * lanes_), v));
        }
        return make_seq(std::move(body));
      }));
    });
  }

  VarRef declare_square(std::vector<Stmt>& body) const {
    const VarRef square = make_var(
        "square",
        Type::tensor({dtype_of(plain_.to), {index(lanes_), index(lanes_)}, {}, Scope::registers}));
    body.push_back(make_stmt<DeclTensor>({}, square, Expr()));
    return square;
  }

  /// An extent is shorter than a vector: squares whose sides are not whole.
  Stmt small(const Value& extent, const Value& last) const {
    const Value parts = (extent + number(lanes_ - 1)) / number(lanes_);
    return tasks(parts, lanes_, [&](const std::vector<Value>& at, std::vector<Stmt>& in) {
      const Value first = declare(in, "first", at[axis_] * number(lanes_)),
                  count = declare(in, "count", least_of(number(lanes_), extent - first));
      const VarRef square = declare_square(in);
      in.push_back(loop_from("j", index(0), last.expr(), lanes_, [&](const Value& j) {
        std::vector<Stmt> one;
        const Value width = declare(one, "width", least_of(number(lanes_), last - j));
        one.push_back(fill(square, at, first, count, j, width));
        one.push_back(empty(square, at, first, count, j, width));
        return make_seq(std::move(one));
      }));
    });
  }

  /// body(i) for i < count, as a vector where count is `lanes_`.
  Stmt across(const Value& count, const std::function<Stmt(const Value&)>& body) const {
    return make_stmt<If>({}, (count == number(lanes_)).expr(),
                         loop("lane", index(lanes_), LoopKind::vectorize, body),
                         loop("i", count.expr(), LoopKind::serial, body));
  }
  /// square[l][i] = value at (first + i, j + l)
  Stmt fill(const VarRef& square, const std::vector<Value>& at, const Value& first,
            const Value& count, const Value& j, const Value& width) const {
    return loop("l", width.expr(), LoopKind::serial, [&](const Value& l) {
      return across(count, [&](const Value& i) -> Stmt {
        return make_stmt<ElementStore>({}, square, std::vector<Expr>{l.expr(), i.expr()},
                                       value_at_place(place(at, first + i, j + l)), false);
      });
    });
  }
  /// output at (first + i, j + l) = square[l][i]
  Stmt empty(const VarRef& square, const std::vector<Value>& at, const Value& first,
             const Value& count, const Value& j, const Value& width) const {
    return loop("i", count.expr(), LoopKind::serial, [&](const Value& i) {
      return across(width, [&](const Value& l) {
        return store(place(at, first + i, j + l),
                     Value(make_element(square, {l.expr(), i.expr()})));
      });
    });
  }

  const Compute& c_;
  Plain plain_;
  size_t axis_;
  int64_t lanes_;
};

}  // namespace

std::optional<Stmt> transposed_nest(const FusedTask& fused, const Compute& c, int lanes) {
  if (c.axes.size() < 2) return std::nullopt;
  std::optional<Plain> plain = stored_in_place(fused, c);
  if (!plain || dtype_of(plain->to) != f32) return std::nullopt;
  const std::optional<size_t> axis = read_axis(plain->value, c.axes);
  const std::vector<Expr>& shape = shape_of(c.tensor);
  if (!axis || shorter(shape[*axis], 4) || shorter(shape.back(), 2)) return std::nullopt;
  return Transposed(c, std::move(*plain), *axis, lanes).run();
}

}  // namespace hidet::graph
