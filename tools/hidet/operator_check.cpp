// operator_check.cpp - compares kernel by kernel (see operator_check.h).
#include "operator_check.h"

#include <hidet/runtime/model_data.h>

#include <algorithm>
#include <sstream>

namespace hidet::tools {

std::string OperatorByOperator::first_wrong(const FlowGraph& graph,
                                            const std::vector<Tensor>& inputs) {
  (void)graph.run(inputs, [&](const FlowGraph::Node& n, const std::vector<Tensor>& out) {
    const std::string& name = n.op->name.empty() ? n.op->def->name : n.op->name;
    for (size_t i = 0; i < out.size(); i++)
      reference_[n.outputs[i].id()] = {name, n.op->def->name, out[i]};
  });
  (void)model_.run(inputs,
                   {.interpret = true, .hook = [&](const InstructionEvent& e) { check(e); }});
  return wrong_;
}

void OperatorByOperator::check(const InstructionEvent& e) {
  const Execution& program = model_.execution();
  const Instruction& i = program.instructions[static_cast<size_t>(e.index)];
  for (size_t k = 0; k < e.inputs.size(); k++)
    if (const auto& w = program.weights_index;
        std::find(w.begin(), w.end(), i.inputs[k]) != w.end())
      check(i.inputs[k], e.inputs[k], "", "of the init program");
  for (size_t k = 0; k < e.outputs.size(); k++)
    check(i.outputs[k], e.outputs[k], e.name, "kernel " + e.kernel + ", candidate " + e.candidate);
  compared_++;
}

void OperatorByOperator::check(int id, const Tensor& got, const std::string& step,
                               const std::string& kernel) {
  const auto it = reference_.find(values_.at(static_cast<size_t>(id)).id());
  // A weight or input as the user gave it.
  if (it == reference_.end() || !wrong_.empty()) return;
  const Expected& r = it->second;
  const Difference d = compare(got, r.value.reshape(got.shape()));
  if (tolerance_.accepts(d, got.dtype())) return;
  wrong_node_ = step.empty() ? r.name : step;
  std::ostringstream text;
  text << wrong_node_ << " (" << r.op << ", " << kernel << "): largest difference " << d.worst
       << " at scale " << d.scale;
  wrong_ = text.str();
}

}  // namespace hidet::tools
