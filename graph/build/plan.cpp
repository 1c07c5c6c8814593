// plan.cpp - kernels of groups, steps, aliases and workspace slots.
#include "build/plan.h"

#include <hidet/codegen/codegen.h>
#include <hidet/ir/dim.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/thread_pool.h>

#include "build/flops.h"
#include "build/form.h"

#include <algorithm>
#include <set>

#include "build/index_checks.h"
#include "build/planted_fault.h"

namespace hidet::graph {
using namespace ir;

namespace {

DimExpr aligned(const DimExpr& bytes) { return ceildiv(bytes, 64) * 64; }
DimExpr bytes_of(const Tensor& t) {
  return product(t.shape_expr()) * static_cast<int64_t>(t.dtype().bytes());
}
DimExpr bytes_of(const VarRef& v) {
  return product(to_dims(shape_of(v))) * static_cast<int64_t>(dtype_of(v).bytes());
}

/// The group's temporaries become views of one workspace parameter.
Module with_workspace(Module m, const FusedTask& f, DimExpr* bytes) {
  if (f.temporaries.empty()) return m;
  Function& launch = m.functions.back();
  const VarRef workspace = make_var("workspace", Type::pointer(Type(u8)));
  std::vector<Stmt> body;
  for (const VarRef& t : f.temporaries) {
    const Expr at = make_binary(BinaryOp::add, workspace, to_expr(*bytes));
    body.push_back(
        make_stmt<DeclTensor>({}, t, make_pointer_cast(at, Type::pointer(Type(dtype_of(t))))));
    *bytes = *bytes + aligned(bytes_of(t));
  }
  body.push_back(launch.body);
  launch.body = make_seq(std::move(body));
  launch.params.resize(launch.params.size() - f.temporaries.size());
  launch.params.push_back(workspace);
  return m;
}

/// A module, which schedule made it, and the parameters of that.
struct Scheduled {
  Module module;
  std::string by;
  const std::vector<ScheduleParameter>* parameters = nullptr;
};

Scheduled schedule(const Group& g, const CpuTargetInfo& target, bool cuda) {
  if (const auto& script = g.fused.anchor.opaque) {
    const auto on_device = [](const Function& f) { return is_cuda(f.kind); };
    HIDET_REQUIRE(
        !cuda || std::any_of(script->functions.begin(), script->functions.end(), on_device),
        ErrorCode::unsupported, "", "the operator '", g.fused.name,
        "' has a script for the CPU only");
    return {*script, "script of the operator"};
  }
  if (cuda) {
    const CudaSchedule* s = find_cuda_schedule(g.fused.anchor);
    if (s) return {s->make(g.fused), "template " + s->name, &s->space};
    return {auto_schedule_cuda(g.fused), "auto-scheduler"};
  }
  const CpuSchedule* s = find_cpu_schedule(g.fused.anchor);
  if (s) return {s->make(g.fused, target), "template " + s->name, &s->space};
  return {auto_schedule_cpu(g.fused, target), "auto-scheduler"};
}

std::vector<TensorSignature> signatures(const std::vector<Tensor>& tensors, const char* prefix) {
  std::vector<TensorSignature> out;
  for (size_t i = 0; i < tensors.size(); i++)
    out.push_back({prefix + std::to_string(i), tensors[i].dtype(), tensors[i].shape_expr(),
                   tensors[i].device()});
  return out;
}

/// Every function gets the kernel's name in front, so that units can be linked together.
void rename(Module& m, const std::string& launch, const std::string& name) {
  std::map<std::string, std::string> names;
  for (Function& f : m.functions) names[f.name] = f.name == launch ? name : name + "_" + f.name;
  for (Function& f : m.functions) {
    f.name = names.at(f.name);
    f.body = rewrite(
        f.body,
        [&](Rewriter& self, const Call& c) -> Expr {
          const Expr e = self.children(c);
          const Call& n = *as<Call>(e);
          auto it = names.find(n.callee);
          return it == names.end() ? e : make_call(it->second, n.args, n.type, n.loc);
        },
        [&](Rewriter& self, const Launch& l) -> Stmt {
          const Stmt s = self.children(l);
          const Launch& n = *as<Launch>(s);
          return make_stmt<Launch>(n.loc, names.at(n.callee), n.grid, n.block, n.cluster,
                                   n.shared_bytes, n.args);
        });
  }
}

}  // namespace

int KernelStore::add(const Group& g) {
  const Stmt form = make_seq({form_of(g.fused), index_checks(g)});
  const std::string hash = hash_text(print(form)) + (has_planted_fault(g) ? "_broken" : "");
  std::vector<int>& alike = by_form_[hash];
  for (int k : alike)
    if (equal(forms_[static_cast<size_t>(k)], form)) return k;
  const std::string name =
      "k_" + g.fused.name + "_" + hash + (alike.empty() ? "" : "_" + std::to_string(alike.size()));
  alike.push_back(static_cast<int>(kernels_.size()));
  forms_.push_back(form);
  kernels_.emplace_back();
  pending_.push_back({g, name, alike.back(), space_});
  return alike.back();
}

void KernelStore::finish() {
  const std::vector<Pending> pending = std::exchange(pending_, {});
  runtime::parallel_for(static_cast<int64_t>(pending.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const Pending& p = pending[static_cast<size_t>(i)];
      kernels_[static_cast<size_t>(p.index)] = make(p);
    }
  });
}

PlanKernel KernelStore::make(const Pending& p) const {
  const Group& g = p.group;
  PlanKernel k = scheduled(g);
  lower(k, g, p.name);
  k.data.name = g.fused.name;
  k.data.symbols = k.symbols;
  k.data.inputs = signatures(g.inputs, "x");
  k.data.outputs = signatures(g.outputs, "y");
  k.data.workspace = k.workspace;
  k.data.share_map = g.fused.anchor.share_map;
  k.data.candidates = {{"default", k.made_by, k.function}};
  k.data.flops = flops_of(g.fused);
  if (p.space > 0) add_candidates(k, p);
  return k;
}

PlanKernel KernelStore::scheduled(const Group& g) const {
  PlanKernel k;
  Scheduled s = schedule(g, target_, cuda_);
  k.made_by = s.by;
  k.parameters = s.parameters;
  k.recorded = with_workspace(std::move(s.module), g.fused, &k.workspace);
  if (!cuda_) k.recorded = with_planted_fault(with_index_checks(std::move(k.recorded), g), g);
  return k;
}

void KernelStore::lower(PlanKernel& k, const Group& g, const std::string& name) const {
  verify(k.recorded);
  const size_t base = g.inputs.size() + g.outputs.size() + (g.fused.temporaries.empty() ? 0 : 1);
  k.module = run_passes(k.recorded, lowering(cuda_ ? Target::cuda : Target::cpu));
  const Function* launch = k.module.find("launch");
  HIDET_REQUIRE(launch && launch->kind == FuncKind::public_, ErrorCode::usage, "", "the operator '",
                g.fused.name, "' has no public function 'launch'");
  HIDET_REQUIRE(launch->params.size() >= base, ErrorCode::usage, launch->loc.text(),
                "the function 'launch' of the operator '", g.fused.name, "' takes ",
                launch->params.size(), " arguments; it needs one pointer for each of ",
                g.inputs.size(), " inputs and ", g.outputs.size(), " outputs");
  for (size_t i = base; i < launch->params.size(); i++)
    k.symbols.push_back(launch->params[i]->name);
  k.module.name = name;
  rename(k.module, "launch", name);
  k.function = codegen::emitted_name(k.module, name);
  k.text = codegen::emit_c(k.module, {.kernel_unit = true});
  if (!cuda_) return;
  k.cuda_text = codegen::emit_cuda(k.module);
  k.cuda_kernels = codegen::kernel_names(k.module);
}

DimExpr Plan::workspace() const {
  DimExpr total = 0;
  for (const DimExpr& s : slots) total = total + s;
  return total;
}
int Plan::root(int value) const {
  while (values[value].alias >= 0) value = values[value].alias;
  return value;
}

namespace {

class Planner {
 public:
  Planner(PlanRequest& request, KernelStore& kernels) : request_(request), kernels_(kernels) {}

  Plan run() {
    for (const auto& [t, place] : request_.given) value(t, place);
    std::vector<Tensor> outputs;
    for (const auto& [t, place] : request_.results) outputs.push_back(t);
    std::vector<Group> groups = fuse(request_.nodes, outputs, kernels_.cuda());
    for (const Tensor& t : outputs) kept_.insert(t.id());
    for (Group& g : groups)
      for (const Tensor& t : g.inputs) uses_[t.id()]++;
    for (Group& g : groups) step(g);
    kernels_.finish();
    place_results();
    assign_slots();
    return std::move(plan_);
  }

 private:
  int value(const Tensor& t, Place place = {}) {
    auto [it, fresh] = plan_.ids.emplace(t.id(), static_cast<int>(plan_.values.size()));
    if (fresh) plan_.values.push_back({t, place, -1});
    return it->second;
  }

  void step(Group& g) {
    // A shape change is no work, unless its result must be a tensor of its own.
    if (g.is_view && !kept_.count(g.outputs[0].id())) {
      const int in = value(g.inputs[0]);
      const int out = value(g.outputs[0]);
      plan_.values[out].alias = in;
      return;
    }
    const int kernel = kernels_.add(g);
    PlanStep s;
    s.kernel = kernel;
    s.name = g.anchor->op->name.empty() ? g.fused.name : g.anchor->op->name;
    for (const Tensor& t : g.inputs) s.inputs.push_back(value(t));
    for (const Tensor& t : g.outputs) s.outputs.push_back(value(t));
    for (const auto& [out, in] : g.fused.anchor.share_map) share(g, s, out, in);
    plan_.steps.push_back(std::move(s));
  }

  /// Output `out` of the step lives in the memory of its input `in`, or of a copy where that must be kept.
  void share(const Group& g, PlanStep& s, int out, int in) {
    const Tensor& source = g.inputs.at(static_cast<size_t>(in));
    const int id = s.inputs[static_cast<size_t>(in)];
    const Place::Kind kind = plan_.values[plan_.root(id)].place.kind;
    const bool user_input = kind == Place::Kind::input &&
                            kept_.count(g.outputs[static_cast<size_t>(out)].id()) &&
                            uses_[source.id()] == 1;
    const bool dies =
        kind == Place::Kind::none && uses_[source.id()] == 1 && !kept_.count(source.id());
    if (user_input || dies) {
      plan_.values[s.outputs[static_cast<size_t>(out)]].alias = id;
      return;
    }
    const int copy = copied(source);
    s.inputs[static_cast<size_t>(in)] = copy;
    plan_.values[s.outputs[static_cast<size_t>(out)]].alias = copy;
  }

  /// A step that copies `t`; the copy's value.
  int copied(const Tensor& t) {
    Group g;
    const VarRef x = tensor_var("x", t.dtype(), to_exprs(t.shape_expr()));
    g.fused.name = "copy";
    g.fused.anchor.name = "copy";
    g.fused.anchor.inputs = {x};
    const VarRef y = add_compute(g.fused.anchor, "y", {t.dtype(), t.shape_expr()},
                                 [&](const std::vector<Value>& at) { return element(x, at); });
    g.fused.anchor.outputs = {y};
    g.fused.inputs = {x};
    g.fused.outputs = {y};
    g.fused.output = y;
    g.fused.prologues.resize(1);
    const Tensor result =
        Tensor::make_symbolic(t.dtype(), t.shape_expr(), t.device(), nullptr, 0, "copy");
    g.inputs = {t};
    g.outputs = {result};
    PlanStep s;
    s.kernel = kernels_.add(g);
    s.name = "copy";
    s.inputs = {value(t)};
    s.outputs = {value(result)};
    plan_.values[s.outputs[0]].tensor = t;  // it holds the same value
    plan_.steps.push_back(s);
    return s.outputs[0];
  }

  void place_results() {
    std::set<ValueId> seen;
    for (size_t i = 0; i < request_.results.size(); i++) {
      const auto& [t, place] = request_.results[i];
      if (!seen.insert(t.id()).second) continue;
      const int id = value(t);
      PlanValue& root = plan_.values[plan_.root(id)];
      if (root.place.kind == Place::Kind::none) root.place = place;
      else if (root.place.kind == Place::Kind::input && plan_.root(id) != id)
        request_.share[static_cast<int>(i)] = root.place.index;
    }
  }

  // --- workspace: each slot holds values whose lives do not overlap
  void assign_slots() {
    std::vector<int> last(plan_.values.size(), -1);
    for (size_t s = 0; s < plan_.steps.size(); s++) {
      for (int v : plan_.steps[s].inputs) last[plan_.root(v)] = static_cast<int>(s);
      for (int v : plan_.steps[s].outputs) last[plan_.root(v)] = static_cast<int>(s);
    }
    std::vector<int> free_at;  // per slot: the last step that uses it
    for (size_t s = 0; s < plan_.steps.size(); s++) {
      PlanStep& step = plan_.steps[s];
      for (int v : step.outputs) {
        const int r = plan_.root(v);
        PlanValue& p = plan_.values[r];
        if (p.place.kind != Place::Kind::none) continue;
        p.place = {Place::Kind::workspace,
                   take(free_at, aligned(bytes_of(p.tensor)), static_cast<int>(s), last[r])};
      }
      const DimExpr& temporary = kernels_.kernels()[step.kernel].workspace;
      if (!temporary.is_const(0))
        step.workspace_slot = take(free_at, temporary, static_cast<int>(s), static_cast<int>(s));
    }
  }
  /// A slot that is free from step `now` on: the one whose size fits best, else a new one.
  int take(std::vector<int>& free_at, const DimExpr& bytes, int now, int until) {
    int best = -1;
    int64_t best_cost = INT64_MAX;
    for (size_t k = 0; k < free_at.size(); k++) {
      if (free_at[k] >= now) continue;
      const int64_t cost = growth(plan_.slots[k], bytes);
      if (cost < best_cost) best = static_cast<int>(k), best_cost = cost;
    }
    if (best < 0) {
      plan_.slots.push_back(bytes);
      free_at.push_back(until);
      return static_cast<int>(plan_.slots.size()) - 1;
    }
    plan_.slots[best] = max(plan_.slots[best], bytes);
    free_at[best] = until;
    return best;
  }
  /// How badly `bytes` fit a slot of `size`, with every symbol at 64.
  static int64_t growth(const DimExpr& size, const DimExpr& bytes) {
    if (size == bytes) return 0;
    const auto at = [](const DimExpr& d) {
      SymbolMap map;
      for (const std::string& s : d.symbol_names()) map[s] = 64;
      return d.eval(map);
    };
    const int64_t a = at(size), b = at(bytes);
    return a >= b ? 1 + (a - b) : 1 + 2 * (b - a);
  }

  PlanRequest& request_;
  KernelStore& kernels_;
  Plan plan_;
  std::set<ValueId> kept_;
  std::unordered_map<ValueId, int> uses_;
};

}  // namespace

Plan make_plan(PlanRequest& request, KernelStore& kernels) {
  return Planner(request, kernels).run();
}

std::string c_formula(const DimExpr& dim, const std::map<std::string, std::string>& names) {
  if (dim.is_const()) return std::to_string(dim.value()) + "ll";
  if (dim.is_symbol()) return names.at(dim.name());
  static const std::map<DimKind, std::pair<const char*, bool>> table = {
      {DimKind::add, {" + ", true}},
      {DimKind::mul, {" * ", true}},
      {DimKind::floordiv, {"hidet_floordiv", false}},
      {DimKind::mod, {"hidet_floormod", false}},
      {DimKind::min, {"hidet_least", false}},
      {DimKind::max, {"hidet_most", false}},
      {DimKind::broadcast, {"hidet_broadcast", false}}};
  const auto& [text, infix] = table.at(dim.kind());
  std::string out;
  for (const DimExpr& part : dim.operands()) {
    const std::string p = c_formula(part, names);
    if (out.empty()) out = p;
    else out = infix ? "(" + out + text + p + ")" : std::string(text) + "(" + out + ", " + p + ")";
  }
  return out;
}

}  // namespace hidet::graph
