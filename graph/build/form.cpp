// form.cpp - the form of a fused task (see form.h). Computes become reductions over their axes, which is how a
// statement can hold an expression with variables of its own.
#include "build/form.h"

#include <hidet/ir/passes.h>

#include <unordered_set>

namespace hidet::graph {
using namespace ir;

namespace {

class FormWriter {
 public:
  explicit FormWriter(const FusedTask& fused) : fused_(fused) {}

  Stmt run() {
    for (const VarRef& v : fused_.parameters()) variable(v);
    anchor_of(fused_);
    return make_seq(std::move(out_));
  }

 private:
  void anchor_of(const FusedTask& fused) {
    if (fused.before) {
      note("before");
      anchor_of(*fused.before);
    }
    const Task& anchor = fused.anchor;
    note(anchor.name);
    for (const auto& [name, value] : anchor.attrs) note(name + " " + std::to_string(value));
    for (const auto& [output, input] : anchor.share_map)
      note("share " + std::to_string(output) + " " + std::to_string(input));
    if (anchor.opaque) note(print(*anchor.opaque));
    for (const VarRef& v : anchor.inputs) variable(v);
    for (size_t k = 0; k < fused.prologues.size(); k++)
      if (fused.prologues[k]) {
        note("prologue " + std::to_string(k));
        with_axes(fused.prologues[k]->axes, shape_of(anchor.inputs[k]), fused.prologues[k]->value);
      }
    for (const Compute& c : anchor.computes) compute(c);
    for (const VarRef& v : anchor.outputs) variable(v);
    for (const EpilogueStep& s : fused.epilogue) step(s);
  }
  void note(const std::string& text) { out_.push_back(make_stmt<Comment>({}, text)); }
  /// Declared at its first place, used at the others.
  void variable(const VarRef& v) {
    const bool fresh = seen_.insert(v.get()).second;
    out_.push_back(fresh ? Stmt(make_stmt<DeclTensor>({}, v, Expr()))
                         : Stmt(make_stmt<Evaluate>({}, v)));
  }
  void with_axes(const std::vector<VarRef>& axes, const std::vector<Expr>& extents,
                 const Expr& value) {
    out_.push_back(make_stmt<Evaluate>({}, make_reduce(ReduceOp::max, axes, extents, value)));
  }
  void compute(const Compute& c) {
    variable(c.tensor);
    with_axes(c.axes, shape_of(c.tensor), c.value);
  }
  void step(const EpilogueStep& s) {
    note("epilogue " + s.task.name + " " + std::to_string(s.from));
    const VarRef& from = s.task.inputs.at(static_cast<size_t>(s.from));
    const InverseMap& map = *s.task.inverse_maps.at(static_cast<size_t>(s.from));
    variable(from);
    for (const Expr& e : map.indices) with_axes(map.axes, shape_of(from), e);
    compute(s.task.computes.at(0));
  }

  const FusedTask& fused_;
  std::vector<Stmt> out_;
  std::unordered_set<const Node*> seen_;
};

}  // namespace

Stmt form_of(const FusedTask& fused) { return FormWriter(fused).run(); }

}  // namespace hidet::graph
