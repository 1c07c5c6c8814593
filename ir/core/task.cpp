// task.cpp - look-ups in tasks and modules, tensor variables, dims to expressions and back.
#include <hidet/ir/dim.h>
#include <hidet/ir/task.h>
#include <hidet/runtime/error.h>

namespace hidet::ir {

const Compute* Task::compute_of(const VarRef& tensor) const {
  for (const Compute& c : computes)
    if (same(c.tensor, tensor)) return &c;
  return nullptr;
}

const std::vector<Expr>& shape_of(const VarRef& tensor) { return tensor->type.tensor_info().shape; }
DType dtype_of(const VarRef& tensor) { return tensor->type.dtype(); }
VarRef tensor_var(std::string name, DType dtype, std::vector<Expr> shape) {
  return make_var(std::move(name), Type::tensor({dtype, std::move(shape), {}, Scope::global}));
}

const Function* Module::find(const std::string& function) const {
  for (const Function& f : functions)
    if (f.name == function) return &f;
  return nullptr;
}

}  // namespace hidet::ir
