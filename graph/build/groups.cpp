// groups.cpp - greedy post-scheduling fusion. In topological order, an injective operator joins the group that
// made its input (as an epilogue) where it is the only reader and has an inverse map, as do several that are the
// only readers together; a group of injective operators is folded into the one group that reads it (as a prologue) where recomputing it is cheap.
#include "build/groups.h"

#include <hidet/ir/dim.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "build/index_checks.h"

namespace hidet::graph {
using namespace ir;

namespace {

constexpr size_t kMostParameters = 48;
/// Most nodes of a value that is folded, and of one that an unrolled tile repeats.
constexpr int64_t kMostNodes = 300, kMostUnrolled = 60;

bool has_reduction(const Task& t) {
  bool found = false;
  for (const Compute& c : t.computes)
    visit_all(c.value, [&](const Node& n) {
      found = found || n.kind == Kind::Reduce || n.kind == Kind::ArgReduce;
    });
  return found;
}
bool is_injective(const Task& t) {
  return !t.opaque && t.computes.size() == 1 && t.outputs.size() == 1 && !has_reduction(t) &&
         t.share_map.empty();
}

/// Nodes of the expression as text writes it: shared parts count each time. Capped.
int64_t tree_size(const Expr& e) {
  constexpr int64_t kCap = 1 << 20;
  std::unordered_map<const Node*, int64_t> sizes;
  const std::function<int64_t(const Expr&)> size = [&](const Expr& at) -> int64_t {
    if (auto it = sizes.find(at.get()); it != sizes.end()) return it->second;
    int64_t total = 1;
    for_each_child(
        *at, [&](const Expr& child) { total = std::min(kCap, total + size(child)); },
        [](const Stmt&) {});
    return sizes[at.get()] = total;
  };
  return size(e);
}

/// Moves and simple arithmetic: recomputing costs no more than reading.
bool is_cheap(const Expr& e) {
  bool math = false;
  visit_all(e, [&](const Node& n) {
    const Prim* p = as<Prim>(&n);
    math = math || (p && p->name != "abs" && p->name != "isnan");
  });
  return !math && tree_size(e) < 60;
}

bool is_view_op(const std::string& name) {
  return name == "reshape" || name == "squeeze" || name == "unsqueeze" || name == "flatten";
}

/// A group while it grows.
struct Draft {
  std::vector<const FlowGraph::Node*> members;
  Task anchor;  ///< inputs renamed to the values' variables
  const FlowGraph::Node* anchor_node = nullptr;
  std::vector<std::optional<Compute>> prologues;
  std::vector<EpilogueStep> epilogue;
  std::vector<Tensor> anchor_inputs;
  std::vector<Tensor> outputs;
  std::shared_ptr<const Draft> before;  ///< computes anchor input 0
  bool injective = false, is_view = false, dead = false;
  const ScheduleRules* schedule = nullptr;
};

class Fuser {
 public:
  Fuser(const std::vector<const FlowGraph::Node*>& nodes, const std::vector<Tensor>& outputs,
        bool cuda)
      : nodes_(nodes), cuda_(cuda) {
    for (const Tensor& t : outputs) uses_[t.id()] += 2;  // an output is kept
    for (const FlowGraph::Node* n : nodes)
      for (const Tensor& t : n->op->inputs) uses_[t.id()]++;
  }

  std::vector<Group> run() {
    for (const FlowGraph::Node* n : nodes_) add(*n);
    return finish();
  }

 private:
  /// The variable that stands for a value in every task.
  VarRef variable(const Tensor& t) {
    auto [it, fresh] = variables_.emplace(t.id(), nullptr);
    if (fresh) {
      it->second = tensor_var("x", t.dtype(), to_exprs(t.shape_expr()));
      keep_.push_back(t);
    }
    return it->second;
  }

  Draft draft(const FlowGraph::Node& n) {
    Draft d;
    d.members = {&n};
    d.anchor_node = &n;
    d.anchor = n.op->def->compute(n.op->call());
    d.anchor_inputs = n.op->inputs;
    d.outputs = n.outputs;
    d.injective = is_injective(d.anchor);
    d.is_view = is_view_op(n.op->def->name);
    d.prologues.resize(d.anchor.inputs.size());
    Substitution map;
    for (size_t k = 0; k < d.anchor.inputs.size(); k++) {
      const VarRef v = variable(n.op->inputs[k]);
      map.emplace(d.anchor.inputs[k].get(), v);
      d.anchor.inputs[k] = v;
    }
    for (Compute& c : d.anchor.computes) c.value = substitute(c.value, map);
    if (cuda_) d.schedule = find_cuda_schedule(d.anchor);
    else d.schedule = find_cpu_schedule(d.anchor);
    return d;
  }

  int producer(const Tensor& t) const {
    auto it = made_by_.find(t.id());
    return it == made_by_.end() ? -1 : it->second;
  }

  void add(const FlowGraph::Node& n) {
    Draft d = draft(n);
    if (d.injective && !waits(d) && (join_as_epilogue(n, d) || join_behind_view(n, d))) return;
    pull_prologues(d);
    pull_before(d);
    if (d.injective && join_whole(d)) return;
    const int self = static_cast<int>(drafts_.size());
    for (const Tensor& t : d.outputs) made_by_[t.id()] = self;
    drafts_.push_back(std::move(d));
  }

  // --- epilogues

  bool accepts_epilogue(const Draft& g) const {
    if (g.dead || g.injective || g.anchor.opaque || g.outputs.size() != 1 ||
        g.anchor.outputs.size() != 1)
      return false;
    return !g.schedule || g.schedule->epilogue;
  }

  bool join_as_epilogue(const FlowGraph::Node& n, const Draft& d) {
    for (size_t k = 0; k < n.op->inputs.size(); k++) {
      const Tensor& t = n.op->inputs[k];
      const int at = producer(t);
      if (at < 0 || !accepts_epilogue(drafts_[at]) || uses_.at(t.id()) != 1) continue;
      Draft& g = drafts_[at];
      if (k >= d.anchor.inverse_maps.size() || !d.anchor.inverse_maps[k]) continue;
      if (!(product(t.shape_expr()) == product(n.outputs[0].shape_expr()))) continue;
      if (external_inputs(g).size() + n.op->inputs.size() > kMostParameters) continue;
      // Index arithmetic of several moves in a row would be written out again and again.
      const bool moved = std::any_of(
          g.epilogue.begin(), g.epilogue.end(),
          [&](const EpilogueStep& s) { return moves(s.task, static_cast<size_t>(s.from)); });
      // In tiles that a template unrolls even one is too much.
      if ((moved || (g.schedule && !g.schedule->moves)) && moves(d.anchor, k)) continue;
      EpilogueStep step{d.anchor, static_cast<int>(k)};
      // Small values that only this operator reads are computed in place.
      for (size_t j = 0; j < n.op->inputs.size(); j++)
        if (j != k)
          step.task.computes[0].value =
              fold_input(step.task.computes[0].value, n.op->inputs[j], n.outputs[0], g);
      append(at, std::move(step), {&n}, n.outputs);
      return true;
    }
    return false;
  }
  /// The inverse map computes with its axes.
  static bool moves(const Task& t, size_t from) {
    const auto& indices = t.inverse_maps[from]->indices;
    return std::any_of(indices.begin(), indices.end(),
                       [](const Expr& e) { return tree_size(e) > 1; });
  }
  /// One more step of group `at`, which now runs after everything that the step reads: it moves to the end.
  void append(int at, EpilogueStep step, const std::vector<const FlowGraph::Node*>& members,
              const std::vector<Tensor>& outputs) {
    Draft& g = drafts_[static_cast<size_t>(at)];
    g.epilogue.push_back(std::move(step));
    g.members.insert(g.members.end(), members.begin(), members.end());
    made_by_.erase(g.outputs[0].id());
    g.outputs = outputs;
    made_by_[outputs[0].id()] = at;
    move_to_end(at);
  }

  /// A view of a template's result costs nothing by itself: it joins when a reader can, too.
  bool waits(const Draft& d) const {
    const int at = d.is_view ? producer(d.anchor_inputs[0]) : -1;
    return at >= 0 && drafts_[static_cast<size_t>(at)].schedule;
  }
  bool join_behind_view(const FlowGraph::Node& n, const Draft& d) {
    for (size_t k = 0; k < d.anchor_inputs.size(); k++) {
      const Tensor& t = d.anchor_inputs[k];
      const int at = producer(t);
      if (at < 0 || !drafts_[at].is_view || drafts_[at].members.size() != 1 ||
          uses_.at(t.id()) != 1)
        continue;
      if (k >= d.anchor.inverse_maps.size() || !d.anchor.inverse_maps[k] || moves(d.anchor, k))
        continue;
      const Draft view = drafts_[at];
      if (!join_as_epilogue(*view.members[0], view)) continue;
      drafts_[at].dead = true;
      return join_as_epilogue(n, d);
    }
    return false;
  }

  /// Operators that read a value several times and together are its only readers (a gelu): one step for all.
  bool join_whole(const Draft& d) {
    const Compute whole = whole_value(d);
    for (const Tensor& t : external_inputs(d)) {
      const int at = producer(t);
      if (at < 0 || !accepts_epilogue(drafts_[at])) continue;
      const Draft& g = drafts_[at];
      if (reads_of(d, t) != uses_.at(t.id()) || !reads_in_place(whole, variable(t))) continue;
      if (external_inputs(g).size() + external_inputs(d).size() > kMostParameters) continue;
      // Tiles that a template unrolls hold the step many times.
      const bool unrolled = g.schedule && !g.schedule->moves;
      if (tree_size(whole.value) > (unrolled ? kMostUnrolled : kMostNodes)) continue;
      EpilogueStep step;
      step.task.name = d.anchor.name;
      step.task.inputs = {variable(t)};
      step.task.computes = {whole};
      step.task.outputs = d.anchor.outputs;
      InverseMap same_place{whole.axes, {}};
      for (const VarRef& v : whole.axes) same_place.indices.emplace_back(v);
      step.task.inverse_maps = {same_place};
      append(at, std::move(step), d.members, d.outputs);
      return true;
    }
    return false;
  }
  static int reads_of(const Draft& d, const Tensor& t) {
    int count = 0;
    for (const FlowGraph::Node* n : d.members)
      for (const Tensor& x : n->op->inputs) count += x.same_as(t);
    return count;
  }
  /// Every read of `tensor` is at the compute's own indices, and the shapes are equal.
  static bool reads_in_place(const Compute& c, const VarRef& tensor) {
    const std::vector<Expr>&to = shape_of(c.tensor), &from = shape_of(tensor);
    bool fine = to.size() == from.size();
    for (size_t d = 0; fine && d < to.size(); d++) fine = equal(to[d], from[d]);
    visit_all(c.value, [&](const Node& n) {
      const Element* e = as<Element>(&n);
      if (!fine || !e || !same(e->tensor, tensor)) return;
      for (size_t d = 0; d < c.axes.size(); d++) fine = fine && same(e->indices[d], c.axes[d]);
    });
    return fine;
  }
  void move_to_end(int at) {
    if (at + 1 == static_cast<int>(drafts_.size())) return;
    drafts_.push_back(std::move(drafts_[at]));
    drafts_[at] = Draft();
    drafts_[at].dead = true;
    const int now = static_cast<int>(drafts_.size()) - 1;
    for (const Tensor& t : drafts_[now].outputs) made_by_[t.id()] = now;
  }

  // --- prologues

  /// `value` with reads of `t` replaced by what makes it, where its group may be folded there.
  Expr fold_input(const Expr& value, const Tensor& t, const Tensor& into, Draft& g) {
    const int at = producer(t);
    if (at < 0) return value;
    Draft& p = drafts_[at];
    if (!foldable(p, t) || uses_.at(t.id()) != 1) return value;
    const Compute c = whole_value(p);
    if (!is_cheap(c.value) && !(product(t.shape_expr()) == product(into.shape_expr())))
      return value;
    if (tree_size(c.value) + tree_size(value) > kMostNodes) return value;
    absorb(g, p, at);
    return replace_reads(value, variable(t),
                         [&](const std::vector<Expr>& indices) { return at_indices(c, indices); });
  }
  static Expr at_indices(const Compute& c, const std::vector<Expr>& indices) {
    std::vector<Value> at;
    for (const Expr& e : indices) at.emplace_back(e);
    return value_at(c, at).expr();
  }
  static bool foldable(const Draft& p, const Tensor& t) {
    return !p.dead && p.injective && p.epilogue.empty() && p.outputs.size() == 1 &&
           p.outputs[0].same_as(t);
  }
  /// An injective group as one compute of external values.
  static Compute whole_value(const Draft& p) {
    Compute c = p.anchor.computes[0];
    for (size_t k = 0; k < p.prologues.size(); k++)
      if (p.prologues[k])
        c.value = replace_reads(c.value, p.anchor.inputs[k], [&](const std::vector<Expr>& i) {
          return at_indices(*p.prologues[k], i);
        });
    return c;
  }
  void absorb(Draft& g, Draft& p, int at) {
    g.members.insert(g.members.begin(), p.members.begin(), p.members.end());
    drafts_[at].dead = true;
    made_by_.erase(p.outputs[0].id());
  }

  bool accepts_prologue(const Draft& d, size_t k) const {
    if (d.anchor.opaque || holds_indices(d.anchor_node->op->def->name, k)) return false;
    return !d.schedule || (k == 0 && d.schedule->prologue_first_input);
  }
  /// How often an element of input k may be read: once for injective operators, a few times for rows.
  bool reread(const Draft& d) const { return !d.injective; }

  /// A view takes nothing in, unless it is itself taken into a kernel.
  void pull_prologues(Draft& d, bool taken = false) {
    if (d.is_view && !taken) return;
    for (size_t k = 0; k < d.anchor.inputs.size(); k++) {
      const Tensor t = d.anchor_inputs[k];
      const int at = producer(t);
      if (at < 0 || !accepts_prologue(d, k) || !foldable(drafts_[at], t)) continue;
      const int reads_here =
          static_cast<int>(std::count_if(d.anchor_inputs.begin(), d.anchor_inputs.end(),
                                         [&](const Tensor& x) { return x.same_as(t); }));
      if (uses_.at(t.id()) != reads_here) continue;
      if (drafts_[at].is_view && d.injective) pull_prologues(drafts_[at], true);
      const Compute c = whole_value(drafts_[at]);
      const bool same_size = product(t.shape_expr()) == product(d.outputs[0].shape_expr());
      if (!is_cheap(c.value) && (reread(d) || !same_size || reads_here > 1)) continue;
      if (drafts_[at].is_view && !d.injective) continue;  // a view costs nothing
      int64_t total = tree_size(c.value);
      for (const Compute& mine : d.anchor.computes) total += tree_size(mine.value);
      if (total > kMostNodes ||
          external_inputs(d).size() + external_inputs(drafts_[at]).size() > kMostParameters)
        continue;
      for (size_t j = k; j < d.anchor.inputs.size(); j++)
        if (d.anchor_inputs[j].same_as(t)) d.prologues[j] = c;
      absorb(d, drafts_[at], at);
    }
  }

  /// An anchor whose only reader can compute it piece by piece.
  void pull_before(Draft& d) {
    const CpuSchedule* schedule = cuda_ ? nullptr : find_cpu_schedule(d.anchor);
    if (!schedule || !schedule->takes_before || d.prologues[0]) return;
    const Tensor t = d.anchor_inputs[0];
    const int at = producer(t);
    if (at < 0 || uses_.at(t.id()) != 1) return;
    Draft& g = drafts_[at];
    if (g.dead || g.outputs.size() != 1 || g.anchor.opaque) return;
    for (const EpilogueStep& s : g.epilogue)
      if (moves(s.task, static_cast<size_t>(s.from))) return;
    if (external_inputs(g).size() + external_inputs(d).size() > kMostParameters) return;
    if (!schedule->takes_before(d.anchor, task_of(g))) return;
    d.before = std::make_shared<const Draft>(g);
    absorb(d, g, at);
  }

  // --- the result

  /// The anchor with what is folded into it, less the kernel's parameters.
  FusedTask task_of(const Draft& d) {
    FusedTask f;
    f.anchor = d.anchor;
    f.prologues = d.prologues;
    f.epilogue = d.epilogue;
    f.output = variable(d.outputs[0]);
    if (d.before) f.before = std::make_shared<const FusedTask>(task_of(*d.before));
    return f;
  }

  /// Values read by the group, in the order of their first use.
  std::vector<Tensor> external_inputs(const Draft& d) const {
    std::vector<Tensor> out;
    std::unordered_set<const Node*> seen;
    if (d.before) {
      out = external_inputs(*d.before);
      for (const Tensor& t : out) seen.insert(variables_.at(t.id()).get());
    }
    const auto add = [&](const Expr& e) {
      visit_all(e, [&](const Node& n) {
        const Var* v = as<Var>(&n);
        if (!v || !v->type.is_tensor() || !seen.insert(v).second) return;
        for (const Tensor& t : keep_)
          if (variables_.at(t.id()).get() == v) out.push_back(t);
      });
    };
    for (size_t k = 0; k < d.anchor.inputs.size(); k++) {
      if (k == 0 && d.before) seen.insert(d.anchor.inputs[0].get());
      else if (d.prologues[k]) add(d.prologues[k]->value);
      else add(d.anchor.inputs[k]);
    }
    for (const EpilogueStep& s : d.epilogue) {
      const Var* folded = s.task.inputs[static_cast<size_t>(s.from)].get();
      seen.insert(folded);
      add(s.task.computes[0].value);
    }
    return out;
  }

  std::vector<Group> finish() {
    std::vector<Group> groups;
    for (Draft& d : drafts_) {
      if (d.dead) continue;
      Group g;
      g.members = d.members;
      g.anchor = d.anchor_node;
      g.is_view = d.is_view && d.members.size() == 1;
      g.inputs = external_inputs(d);
      g.outputs = d.outputs;
      FusedTask& f = g.fused;
      f = task_of(d);
      for (const Tensor& t : g.inputs) f.inputs.push_back(variable(t));
      if (f.epilogue.empty()) {
        f.outputs = f.anchor.outputs;
      } else {
        f.outputs = {tensor_var("y", g.outputs[0].dtype(), to_exprs(g.outputs[0].shape_expr()))};
      }
      f.output = f.outputs[0];
      const CpuSchedule* schedule = cuda_ ? nullptr : find_cpu_schedule(f.anchor);
      for (const Compute& c : f.anchor.computes) {
        bool elsewhere = schedule && !schedule->intermediates;
        for (const VarRef& o : f.anchor.outputs) elsewhere = elsewhere || same(o, c.tensor);
        if (!elsewhere) f.temporaries.push_back(c.tensor);
      }
      f.name = name_of(g);
      groups.push_back(std::move(g));
    }
    return sorted(std::move(groups));
  }
  static std::string name_of(const Group& g) {
    std::string name;
    for (size_t i = 0; i < g.members.size() && name.size() < 60; i++)
      name += (i ? "_" : "") + g.members[i]->op->def->name;
    return name;
  }
  /// Topological order, stable.
  static std::vector<Group> sorted(std::vector<Group> groups) {
    std::unordered_map<ValueId, size_t> maker;
    for (size_t i = 0; i < groups.size(); i++)
      for (const Tensor& t : groups[i].outputs) maker[t.id()] = i;
    std::vector<int> state(groups.size(), 0);
    std::vector<size_t> order;
    // Depth first with an explicit stack.
    for (size_t root = 0; root < groups.size(); root++) {
      std::vector<size_t> stack{root};
      while (!stack.empty()) {
        const size_t at = stack.back();
        if (state[at] == 2) {
          stack.pop_back();
          continue;
        }
        const bool expanded = state[at] == 1;
        state[at] = 1;
        bool ready = true;
        for (const Tensor& t : groups[at].inputs)
          if (auto it = maker.find(t.id()); it != maker.end() && state[it->second] != 2) {
            HIDET_CHECK(!expanded || state[it->second] != 1, "a cycle between fused groups at ",
                        groups[at].fused.name);
            stack.push_back(it->second);
            ready = false;
          }
        if (!ready) continue;
        state[at] = 2;
        order.push_back(at);
        stack.pop_back();
      }
    }
    std::vector<Group> out;
    for (size_t i : order) out.push_back(std::move(groups[i]));
    return out;
  }

  const std::vector<const FlowGraph::Node*>& nodes_;
  bool cuda_;
  std::unordered_map<ValueId, int> uses_, made_by_;
  std::unordered_map<ValueId, VarRef> variables_;
  std::vector<Tensor> keep_;
  std::vector<Draft> drafts_;
};

}  // namespace

std::vector<Group> fuse(const std::vector<const FlowGraph::Node*>& nodes,
                        const std::vector<Tensor>& outputs, bool cuda) {
  return Fuser(nodes, outputs, cuda).run();
}

}  // namespace hidet::graph
