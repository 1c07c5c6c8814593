// fused.cpp - folding operators into an anchor's loads and stores, by substitution.
#include <hidet/graph/schedule.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

namespace hidet::graph {
using namespace ir;

namespace {
Substitution bind_axes(const std::vector<VarRef>& axes, const std::vector<Value>& indices) {
  HIDET_CHECK(axes.size() == indices.size(), axes.size(), " axes and ", indices.size(), " indices");
  Substitution map;
  for (size_t d = 0; d < axes.size(); d++)
    map.emplace(axes[d].get(), make_cast(indices[d].expr(), axes[d]->type));
  return map;
}
}  // namespace

Value value_at(const Compute& c, const std::vector<Value>& indices) {
  return Value(substitute(c.value, bind_axes(c.axes, indices)));
}

Expr replace_reads(const Expr& e, const VarRef& tensor,
                   const std::function<Expr(const std::vector<Expr>&)>& read) {
  return rewrite(e, [&](Rewriter& self, const Element& el) -> Expr {
    if (!same(el.tensor, tensor)) return self.children(el);
    return read(self(el.indices));
  });
}

Value FusedTask::load(int k, const std::vector<Value>& indices) const {
  const auto& prologue = prologues.at(static_cast<size_t>(k));
  if (prologue) return value_at(*prologue, indices);
  return element(anchor.inputs.at(static_cast<size_t>(k)), indices);
}

FusedTask::Stored FusedTask::finish(std::vector<Value> indices, Value value) const {
  for (const EpilogueStep& step : epilogue) {
    const InverseMap& map = *step.task.inverse_maps.at(static_cast<size_t>(step.from));
    const Substitution at = bind_axes(map.axes, indices);
    std::vector<Value> next;
    for (const Expr& e : map.indices) next.emplace_back(substitute(e, at));
    const Expr at_output = value_at(step.task.computes.at(0), next).expr();
    value = Value(replace_reads(at_output, step.task.inputs.at(static_cast<size_t>(step.from)),
                                [&](const std::vector<Expr>&) { return value.expr(); }));
    indices = std::move(next);
  }
  return {std::move(indices), std::move(value)};
}

Stmt FusedTask::store(const std::vector<Value>& indices, const Value& value) const {
  const Stored s = finish(indices, value);
  std::vector<Expr> at;
  for (const Value& i : s.indices) at.push_back(i.expr());
  return make_stmt<ElementStore>({}, output, at, make_cast(s.value.expr(), Type(dtype_of(output))),
                                 false);
}

bool FusedTask::is_output(const VarRef& tensor) const {
  return !anchor.outputs.empty() && same(tensor, anchor.outputs[0]);
}

Compute FusedTask::with_prologues(Compute c) const {
  for (size_t k = 0; k < prologues.size(); k++)
    if (prologues[k])
      c.value = replace_reads(c.value, anchor.inputs[k], [&](const std::vector<Expr>& at) {
        return value_at(*prologues[k], std::vector<Value>(at.begin(), at.end())).expr();
      });
  return c;
}

Stmt FusedTask::store_of(const Compute& c, const std::vector<Value>& indices,
                         const Value& value) const {
  if (is_output(c.tensor)) return store(indices, value);
  std::vector<Expr> at;
  for (const Value& i : indices) at.push_back(i.expr());
  return make_stmt<ElementStore>({}, c.tensor, at, value.expr(), false);
}

std::vector<VarRef> FusedTask::parameters() const {
  std::vector<VarRef> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  all.insert(all.end(), temporaries.begin(), temporaries.end());
  return all;
}

}  // namespace hidet::graph
