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

/// How often the text of `e` reads `tensor`.
int count_reads(const Expr& e, const VarRef& tensor) {
  const Element* read = as<Element>(e);
  if (read && same(read->tensor, tensor)) return 1;
  int count = 0;
  for_each_child(
      *e, [&](const Expr& child) { count += count_reads(child, tensor); }, [](const Stmt&) {});
  return count;
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

int64_t FusedTask::chosen(const std::string& name, int64_t by_rule) const {
  for (const auto& [parameter, value] : choices)
    if (parameter == name) return value;
  return by_rule;
}

Value FusedTask::load(int k, const std::vector<Value>& indices) const {
  const auto& prologue = prologues.at(static_cast<size_t>(k));
  if (prologue) return value_at(*prologue, indices);
  return element(anchor.inputs.at(static_cast<size_t>(k)), indices);
}

FusedTask::Stored FusedTask::finish(std::vector<Value> indices, Value value,
                                    std::vector<Stmt>* lets) const {
  if (!anchor.outputs.empty())
    value = Value(make_cast(value.expr(), Type(dtype_of(anchor.outputs[0]))));
  for (const EpilogueStep& step : epilogue) {
    const VarRef& from = step.task.inputs.at(static_cast<size_t>(step.from));
    const InverseMap& map = *step.task.inverse_maps.at(static_cast<size_t>(step.from));
    const Substitution at = bind_axes(map.axes, indices);
    std::vector<Value> next;
    for (const Expr& e : map.indices) next.emplace_back(substitute(e, at));
    const Compute& c = step.task.computes.at(0);
    if (lets && count_reads(c.value, from) > 1 && value.expr()->kind != Kind::Var) {
      const VarRef v = make_var("v", value.type());
      lets->push_back(make_stmt<DeclVar>({}, v, value.expr()));
      value = Value(Expr(v));
    }
    value = Value(replace_reads(value_at(c, next).expr(), from,
                                [&](const std::vector<Expr>&) { return value.expr(); }));
    indices = std::move(next);
  }
  return {std::move(indices), std::move(value)};
}

Stmt FusedTask::store(const std::vector<Value>& indices, const Value& value) const {
  std::vector<Stmt> body;
  const Stored s = finish(indices, value, &body);
  std::vector<Expr> at;
  for (const Value& i : s.indices) at.push_back(i.expr());
  body.push_back(make_stmt<ElementStore>({}, output, at,
                                         make_cast(s.value.expr(), Type(dtype_of(output))), false));
  return make_seq(std::move(body));
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

Function FusedTask::launch(Stmt body) const {
  Function f;
  f.name = "launch";
  f.kind = FuncKind::public_;
  f.params = parameters();
  f.no_alias = anchor.share_map.empty();
  f.body = std::move(body);
  return f;
}

std::vector<VarRef> FusedTask::parameters() const {
  std::vector<VarRef> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  all.insert(all.end(), temporaries.begin(), temporaries.end());
  return all;
}

}  // namespace hidet::graph
