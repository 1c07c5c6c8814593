// cuda_rows.cpp - chains of reductions over the last axes and what is made of them (softmax, layer norm) as one kernel:
// short rows are a warp's, several at once; others a block's. Values that two steps read stay in registers where the
// row fits, so that memory is read once. Longer rows, and rows of unknown length, are read again by each step.
#include "schedules/threads.h"

#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

/// Values of a row that a thread keeps, at most.
constexpr int64_t kKept = 32;
/// Rows up to this length are a warp's.
constexpr int64_t kWarpRow = 1024;
constexpr int64_t kWarpsOfBlock = 8;
constexpr int64_t kMostThreads = 1024;
/// Threads for a row of unknown length that is a block's.
constexpr int64_t kLoopThreads = 256;

const Reduce* reduction_of(const Compute& c) {
  const Cast* rounded = as<Cast>(c.value);
  return as<Reduce>(rounded ? rounded->a : c.value);
}

bool same_list(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return equal(x, y); });
}

/// All reads of the task's own intermediates are at the first axes of the compute.
bool reads_own_row(const Task& t, const Compute& c, size_t rows) {
  bool own = true;
  visit_all(c.value, [&](const Node& n) {
    const Element* e = as<Element>(&n);
    const Var* v = e ? as<Var>(e->tensor) : nullptr;
    if (!v || !t.compute_of(ref(*v))) return;
    own = own && e->indices.size() == rows;
    for (size_t d = 0; own && d < rows; d++) own = same(e->indices[d], c.axes[d]);
  });
  return own;
}

bool accepts(const Task& t) {
  if (t.opaque || t.computes.size() < 2 || t.outputs.size() != 1) return false;
  const Compute& last = t.computes.back();
  if (!same(last.tensor, t.outputs[0]) || !dtype_of(last.tensor).is_float()) return false;
  const std::vector<Expr>& rows = shape_of(t.computes[0].tensor);
  const Reduce* first = reduction_of(t.computes[0]);
  if (!first || first->extents.empty()) return false;
  for (size_t i = 0; i + 1 < t.computes.size(); i++) {
    const Reduce* r = reduction_of(t.computes[i]);
    if (!r || r->op == ReduceOp::prod || !r->type.dtype().is_float()) return false;
    if (!same_list(shape_of(t.computes[i].tensor), rows) ||
        !same_list(r->extents, first->extents) || !reads_own_row(t, t.computes[i], rows.size()))
      return false;
  }
  std::vector<Expr> whole = rows;
  for (const Expr& e : first->extents) whole.push_back(make_cast(e, Type(i64)));
  bool reduces = false;
  visit_all(last.value, [&](const Node& n) {
    reduces = reduces || n.kind == Kind::Reduce || n.kind == Kind::ArgReduce;
  });
  return !reduces && same_list(shape_of(last.tensor), whole) && reads_own_row(t, last, rows.size());
}

/// One step of the chain, its value at (row axes, column axes).
struct Phase {
  Expr value;
  const Compute* compute = nullptr;
  ReduceOp op = ReduceOp::sum;
  DType accumulator;
  VarRef total;  ///< of a reduction: the row's result
};

bool uses(const Expr& e, const std::vector<VarRef>& vars) {
  bool found = false;
  visit_all(e, [&](const Node& n) {
    for (const VarRef& v : vars) found = found || &n == v.get();
  });
  return found;
}

class Rows {
 public:
  explicit Rows(const FusedTask& fused) : fused_(fused) {
    const Task& t = fused.anchor;
    rows_ = shape_of(t.computes[0].tensor);
    const Reduce& first = *reduction_of(t.computes[0]);
    for (const Expr& e : first.extents) columns_.push_back(make_cast(e, Type(i64)));
    for (size_t d = 0; d < rows_.size(); d++) row_axes_.push_back(make_var("row", Type(i64)));
    for (size_t d = 0; d < columns_.size(); d++) column_axes_.push_back(make_var("j", Type(i64)));
    for (const Compute& c : t.computes) phases_.push_back(phase_of(fused.with_prologues(c), c));
    length_ = -1;
    is_const_int(size_of(columns_), &length_);
    int64_t last = 0;
    const auto bytes = static_cast<int64_t>(dtype_of(t.outputs[0]).bytes());
    if (is_const_int(columns_.back(), &last) && last > 0 && last % (kVectorBytes / bytes) == 0)
      lanes_ = static_cast<int>(kVectorBytes / bytes);
  }

  Module run() {
    const Value rows(size_of(rows_)), columns(size_of(columns_));
    const Value warps = ceil_div(rows, kWarpsOfBlock);
    if (length_ >= 0 && length_ <= kWarpRow) {
      const int64_t each = fused_.chosen(
          "each", std::clamp<int64_t>(kWarpRow / 2 / std::max<int64_t>(length_, 1), 1, 4));
      const int64_t block = kWarpsOfBlock * each;
      return one(cuda_kernel(fused_, "rows", ceil_div(rows, block), kWarpsOfBlock * kWarp,
                             kept_rows(kWarp, static_cast<int>(each))));
    }
    if (length_ >= 0 && length_ <= kKept * kMostThreads) {
      int64_t threads = 2 * kWarp;
      while (threads < kMostThreads && threads * kKept / 2 < length_) threads *= 2;
      const int64_t other = fused_.chosen("threads", threads);
      if (other * kKept >= length_) threads = other;
      return one(cuda_kernel(fused_, "rows", rows, threads, kept_rows(threads, 1)));
    }
    const int64_t loop_threads = fused_.chosen("threads", kLoopThreads);
    const Function by_warp =
        cuda_kernel(fused_, "warp_rows", warps, kWarpsOfBlock * kWarp, looped_rows(kWarp));
    const Function by_block =
        cuda_kernel(fused_, "block_rows", rows, loop_threads, looped_rows(loop_threads));
    if (length_ >= 0) return one(by_block);
    return cuda_module(
        fused_, {by_warp, by_block},
        make_stmt<If>({}, (columns <= number(kWarpRow)).expr(), call_kernel(fused_, "warp_rows"),
                      call_kernel(fused_, "block_rows")));
  }

 private:
  Module one(const Function& kernel) const {
    return cuda_module(fused_, {kernel}, call_kernel(fused_, kernel.name));
  }

  /// The compute with the chain's own axes; reads of earlier results become their variables.
  Phase phase_of(const Compute& c, const Compute& original) {
    Phase p;
    p.compute = &original;
    Substitution map;
    for (size_t d = 0; d < c.axes.size(); d++)
      map.emplace(c.axes[d].get(),
                  d < rows_.size() ? row_axes_[d] : column_axes_[d - rows_.size()]);
    if (const Reduce* r = reduction_of(c)) {
      for (size_t d = 0; d < r->axes.size(); d++)
        map.emplace(r->axes[d].get(), make_cast(column_axes_[d], r->axes[d]->type));
      const DType t = r->type.dtype();
      p.op = r->op;
      p.accumulator = t == f16 || t == bf16 ? f32 : t;
      p.total = make_var("total", Type(dtype_of(c.tensor)));
      p.value = make_cast(substitute(r->value, map), Type(p.accumulator));
    } else {
      p.value = substitute(c.value, map);
    }
    for (const Phase& earlier : phases_)
      p.value = replace_reads(p.value, earlier.compute->tensor,
                              [&](const std::vector<Expr>&) { return Expr(earlier.total); });
    return p;
  }

  // --- rows in registers

  /// The largest parts of `e` that depend on the column and that `later` has, too.
  std::vector<Expr> shared_parts(const Expr& e, const std::vector<Expr>& later) const {
    std::vector<Expr> found;
    const std::function<void(const Expr&)> walk = [&](const Expr& at) {
      if (!uses(at, column_axes_)) return;
      const bool number = at->type.is_scalar() && at->type.dtype().is_float();
      if (number && at->kind != Kind::Var)
        for (const Expr& l : later) {
          bool there = false;
          visit_all(l, [&](const Node& n) {
            there =
                there || (n.kind == at->kind && equal(Expr(static_cast<const ExprNode*>(&n)), at));
          });
          if (there) return found.push_back(at);
        }
      if (at->kind == Kind::Element) return;
      for_each_child(*at, walk, [](const Stmt&) {});
    };
    walk(e);
    return found;
  }
  static Expr replaced(const Expr& e, const std::vector<std::pair<Expr, Expr>>& parts) {
    if (parts.empty()) return e;
    // Each kind that a kept part can have.
    const std::function<Expr(const Expr&)> go = [&](const Expr& at) -> Expr {
      for (const auto& [part, by] : parts)
        if (part->type == at->type && equal(part, at)) return by;
      return Expr();
    };
    Rewriter r;
    const auto visit = [&](Rewriter& self, const auto& n) -> Expr {
      if (Expr by = go(Expr(&n))) return by;
      return self.children(n);
    };
    r.on([&](Rewriter& self, const Unary& n) -> Expr { return visit(self, n); });
    r.on([&](Rewriter& self, const Binary& n) -> Expr { return visit(self, n); });
    r.on([&](Rewriter& self, const Select& n) -> Expr { return visit(self, n); });
    r.on([&](Rewriter& self, const Cast& n) -> Expr { return visit(self, n); });
    r.on([&](Rewriter& self, const Prim& n) -> Expr { return visit(self, n); });
    r.on([&](Rewriter& self, const Element& n) -> Expr { return visit(self, n); });
    return r(e);
  }

  /// One row of a warp or block while its kernel is written.
  struct Row {
    std::vector<Value> at;  ///< row indices
    Substitution known;     ///< row axes and totals so far
    Value inside;           ///< the row exists; empty where it always does
    /// Kept values: part -> [column of the thread]
    std::vector<std::pair<Expr, std::vector<VarRef>>> kept;
  };

  std::vector<Stmt> kept_rows(int64_t threads, int each) const {
    std::vector<Stmt> body;
    const bool warp = threads == kWarp;
    const Value tid = declare(body, "tid", thread_index());
    const Value lane = warp ? declare(body, "lane", tid % small(kWarp)) : tid;
    std::vector<Row> rows;
    for (int k = 0; k < each; k++) rows.push_back(row_of(body, warp, tid, each, k));
    for (size_t p = 0; p < phases_.size(); p++) {
      if (p + 1 == phases_.size()) {
        for (Row& r : rows) finish_kept(body, r, threads, lane);
        break;
      }
      std::vector<VarRef> sums;
      for (Row& r : rows) sums.push_back(reduce_kept(body, r, p, threads, lane));
      for (size_t k = 0; k < rows.size(); k++) combine(body, rows[k], p, sums[k], threads, tid);
    }
    return body;
  }

  Row row_of(std::vector<Stmt>& body, bool warp, const Value& tid, int each, int k) const {
    const Value count(size_of(rows_));
    Row r;
    Value flat = block_index();
    if (warp) {
      const Value at =
          declare(body, "at",
                  (block_index() * number(kWarpsOfBlock) + cast(tid / small(kWarp), Type(i64))) *
                          number(each) +
                      number(k));
      r.inside = at < count;
      // A warp without a row works on the last one, and stores nothing.
      flat = declare(body, "flat", ir::min(at, count - number(1)));
    } else {
      flat = declare(body, "flat", flat);
    }
    Unflattened u = unflatten(flat.expr(), rows_);
    body.insert(body.end(), u.declarations.begin(), u.declarations.end());
    r.at = u.indices;
    for (size_t d = 0; d < rows_.size(); d++)
      r.known.emplace(row_axes_[d].get(), u.indices[d].expr());
    return r;
  }

  int64_t pieces(int64_t threads) const {
    return (length_ + threads * lanes_ - 1) / (threads * lanes_);
  }
  /// body(first column, its number of the thread) for each vector of the row that is this thread's.
  void each_piece(
      std::vector<Stmt>& body, int64_t threads, const Value& lane,
      const std::function<void(std::vector<Stmt>&, const Value&, int64_t)>& work) const {
    for (int64_t v = 0; v < pieces(threads); v++) {
      const Value first = (cast(lane, Type(i64)) + number(v * threads)) * number(lanes_);
      std::vector<Stmt> in;
      const Value at = declare(in, "column", first);
      work(in, at, v);
      if ((v + 1) * threads * lanes_ <= length_) {
        body.insert(body.end(), in.begin(), in.end());
      } else {
        body.push_back(only_if(first < number(length_), std::move(in)));
      }
    }
  }

  /// `e` at the columns from `first` on.
  std::vector<Expr> at_columns(std::vector<Stmt>& body, const Expr& e, const Value& first) const {
    if (columns_.size() == 1) return lane_values(e, column_axes_[0], first.expr(), lanes_, body);
    const Columns c = columns_from(body, first);
    return lane_values(substitute(e, c.outer), column_axes_.back(), c.first, lanes_, body);
  }
  struct Columns {
    Substitution outer;
    std::vector<Value> indices;
    Expr first;
  };
  Columns columns_from(std::vector<Stmt>& body, const Value& first) const {
    Columns c;
    if (columns_.size() == 1) {
      c.first = first.expr();
      return c;
    }
    Unflattened u = unflatten(first.expr(), columns_);
    body.insert(body.end(), u.declarations.begin(), u.declarations.end());
    for (size_t d = 0; d + 1 < columns_.size(); d++) {
      c.outer.emplace(column_axes_[d].get(), u.indices[d].expr());
      c.indices.push_back(u.indices[d]);
    }
    c.first = u.indices.back().expr();
    return c;
  }

  /// `e` at the columns of a piece from `first` on, kept parts from registers.
  std::vector<Expr> values_of(std::vector<Stmt>& in, const Row& r, const Expr& e,
                              const Value& first, int64_t piece) const {
    std::vector<std::pair<Expr, Expr>> marks;
    for (const auto& [part, registers] : r.kept)
      marks.emplace_back(part, make_var("kept", part->type));
    std::vector<Expr> out = at_columns(in, substitute(replaced(e, marks), r.known), first);
    for (int l = 0; l < lanes_; l++) {
      Substitution map;
      for (size_t k = 0; k < marks.size(); k++)
        map.emplace(marks[k].second.get(),
                    r.kept[k].second[static_cast<size_t>(piece * lanes_ + l)]);
      out[static_cast<size_t>(l)] = substitute(out[static_cast<size_t>(l)], map);
    }
    return out;
  }

  /// Parts of phase `p` that later phases want, into registers.
  void keep(std::vector<Stmt>& body, Row& r, size_t p, int64_t threads, const Value& lane) const {
    std::vector<Expr> later;
    for (size_t q = p + 1; q < phases_.size(); q++) later.push_back(phases_[q].value);
    for (const Expr& part : shared_parts(phases_[p].value, later)) {
      bool there = false;
      for (const auto& [old, registers] : r.kept) there = there || equal(old, part);
      if (there) continue;
      std::vector<VarRef> registers;
      for (int64_t i = 0; i < pieces(threads) * lanes_; i++) {
        registers.push_back(make_var("kept", part->type, true));
        body.push_back(make_stmt<DeclVar>({}, registers.back(), make_const(0, part->type.dtype())));
      }
      each_piece(body, threads, lane, [&](std::vector<Stmt>& in, const Value& first, int64_t v) {
        const std::vector<Expr> values = values_of(in, r, part, first, v);
        for (int l = 0; l < lanes_; l++)
          in.push_back(make_stmt<Assign>({}, registers[static_cast<size_t>(v * lanes_ + l)],
                                         values[static_cast<size_t>(l)]));
      });
      r.kept.emplace_back(part, registers);
    }
  }

  VarRef reduce_kept(std::vector<Stmt>& body, Row& r, size_t p, int64_t threads,
                     const Value& lane) const {
    keep(body, r, p, threads, lane);
    const Phase& phase = phases_[p];
    const VarRef acc = make_var("acc", Type(phase.accumulator), true);
    body.push_back(make_stmt<DeclVar>({}, acc, reduce_identity(phase.op, phase.accumulator)));
    each_piece(body, threads, lane, [&](std::vector<Stmt>& in, const Value& first, int64_t v) {
      for (const Expr& e : values_of(in, r, phase.value, first, v))
        in.push_back(make_stmt<Assign>({}, acc, reduce_combine(phase.op, acc, e)));
    });
    return acc;
  }

  void finish_kept(std::vector<Stmt>& body, Row& r, int64_t threads, const Value& lane) const {
    const size_t p = phases_.size() - 1;
    std::vector<Stmt> stores;
    each_piece(stores, threads, lane, [&](std::vector<Stmt>& in, const Value& first, int64_t v) {
      store_row(in, r, first, values_of(in, r, phases_[p].value, first, v));
    });
    if (r.inside.expr()) body.push_back(only_if(r.inside, std::move(stores)));
    else body.insert(body.end(), stores.begin(), stores.end());
  }
  void store_row(std::vector<Stmt>& in, const Row& r, const Value& first,
                 const std::vector<Expr>& values) const {
    const Columns c = columns_from(in, first);
    std::vector<Value> at = r.at;
    at.insert(at.end(), c.indices.begin(), c.indices.end());
    at.emplace_back(Expr(column_axes_.back()));
    store_lanes(fused_, *phases_.back().compute, at, column_axes_.back(), c.first, values, in);
  }

  // --- partial results of threads to the row's

  void combine(std::vector<Stmt>& body, Row& r, size_t p, const VarRef& acc, int64_t threads,
               const Value& tid) const {
    const Phase& phase = phases_[p];
    butterfly(body, phase.op, acc, kWarp);
    const int64_t warps = threads / kWarp;
    if (warps > 1) {
      const VarRef partial = make_var(
          "partial",
          Type::tensor({phase.accumulator, {make_int(warps, Type(i32))}, {}, Scope::shared}));
      body.push_back(make_stmt<DeclTensor>({}, partial, Expr()));
      body.push_back(
          only_if(tid % small(kWarp) == small(0),
                  {make_stmt<ElementStore>(
                      {}, partial, std::vector<Expr>{(tid / small(kWarp)).expr()}, acc, false)}));
      body.push_back(barrier());
      body.push_back(
          make_stmt<Assign>({}, acc, make_element(partial, {(tid % small(warps)).expr()})));
      butterfly(body, phase.op, acc, warps);
    }
    const VarRef total = make_var("total", phase.total->type);
    body.push_back(make_stmt<DeclVar>(
        {}, total, make_cast(make_cast(acc, Type(phase.accumulator)), phase.total->type)));
    r.known.emplace(phase.total.get(), total);
  }
  /// All of `width` neighbouring lanes get the same result.
  static void butterfly(std::vector<Stmt>& body, ReduceOp op, const VarRef& acc, int64_t width) {
    for (int64_t d = width / 2; d >= 1; d /= 2) {
      const VarRef other = make_var("other", acc->type);
      body.push_back(make_stmt<DeclVar>(
          {}, other, make_prim("shfl_xor_sync", {acc, make_int(d, Type(i32))}, acc->type)));
      body.push_back(make_stmt<Assign>({}, acc, reduce_combine(op, acc, other)));
    }
  }

  // --- rows read again by each step

  std::vector<Stmt> looped_rows(int64_t threads) const {
    std::vector<Stmt> body;
    const bool warp = threads == kWarp;
    const Value tid = declare(body, "tid", thread_index());
    const Value lane = warp ? declare(body, "lane", tid % small(kWarp)) : tid;
    Row r = row_of(body, warp, tid, 1, 0);
    const Value columns(size_of(columns_));
    const auto each = [&](const std::function<void(std::vector<Stmt>&, const Value&)>& work) {
      return loop_from("column", (cast(lane, Type(i64)) * number(lanes_)).expr(), columns.expr(),
                       threads * lanes_, [&](const Value& first) {
                         std::vector<Stmt> in;
                         work(in, first);
                         return make_seq(std::move(in));
                       });
    };
    for (size_t p = 0; p + 1 < phases_.size(); p++) {
      const Phase& phase = phases_[p];
      const VarRef acc = make_var("acc", Type(phase.accumulator), true);
      body.push_back(make_stmt<DeclVar>({}, acc, reduce_identity(phase.op, phase.accumulator)));
      body.push_back(each([&](std::vector<Stmt>& in, const Value& first) {
        for (const Expr& e : at_columns(in, substitute(phase.value, r.known), first))
          in.push_back(make_stmt<Assign>({}, acc, reduce_combine(phase.op, acc, e)));
      }));
      combine(body, r, p, acc, threads, tid);
    }
    const Stmt stores = each([&](std::vector<Stmt>& in, const Value& first) {
      store_row(in, r, first, at_columns(in, substitute(phases_.back().value, r.known), first));
    });
    body.push_back(r.inside.expr() ? only_if(r.inside, {stores}) : stores);
    return body;
  }

  const FusedTask& fused_;
  std::vector<Expr> rows_, columns_;
  std::vector<VarRef> row_axes_, column_axes_;
  std::vector<Phase> phases_;
  int64_t length_ = 0;  ///< of a row; -1: known at run time
  int lanes_ = 1;
};

}  // namespace

CudaSchedule cuda_rows_schedule() {
  return {"rows",
          accepts,
          true,
          true,
          false,
          [](const FusedTask& f) { return Rows(f).run(); },
          {{"each", {1, 2, 4}}, {"threads", {128, 256, 512, 1024}}}};
}

}  // namespace hidet::graph
