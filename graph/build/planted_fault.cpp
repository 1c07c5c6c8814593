// planted_fault.cpp - HIDET_TEST_BREAK_KERNEL (see planted_fault.h).
#include "build/planted_fault.h"

#include <hidet/ir/dim.h>
#include <hidet/ir/make.h>
#include <hidet/ir/stmt.h>
#include <hidet/runtime/log.h>

#include <algorithm>
#include <cstdlib>

namespace hidet::graph {
using namespace ir;

namespace {

bool is_named(const Group& group, const std::string& name) {
  return std::any_of(group.members.begin(), group.members.end(), [&](const FlowGraph::Node* n) {
    return n->op->def->name == name || n->op->name == name;
  });
}

/// The first element gets 1000 more; a boolean turns round.
Stmt wrong_element(const VarRef& y) {
  const DType dtype = dtype_of(y);
  const std::vector<Expr> first(shape_of(y).size(), make_int(0, Type(i64)));
  const Expr was = make_element(y, first);
  const Expr now = dtype.is_boolean() ? make_unary(UnaryOp::logical_not, was)
                                      : make_binary(BinaryOp::add, was,
                                                    make_const(dtype.bits() > 8 ? 1000 : 1, dtype));
  const Expr some =
      make_binary(BinaryOp::gt, to_expr(product(to_dims(shape_of(y)))), make_int(0, Type(i64)));
  return make_stmt<If>({}, some, make_stmt<ElementStore>({}, y, first, now, false), nullptr);
}

const char* switch_value() {
  const char* name = std::getenv("HIDET_TEST_BREAK_KERNEL");
  return name && *name ? name : nullptr;
}

}  // namespace

bool has_planted_fault(const Group& group) {
  const char* name = switch_value();
  return name && is_named(group, name);
}

Module with_planted_fault(Module m, const Group& group) {
  if (!has_planted_fault(group)) return m;
  const char* name = switch_value();
  for (Function& f : m.functions) {
    if (f.name != "launch" || f.params.size() <= group.inputs.size()) continue;
    const VarRef& y = f.params[group.inputs.size()];
    if (!y->type.is_tensor()) continue;
    log_once(std::string("break ") + name, std::string("HIDET_TEST_BREAK_KERNEL: kernels of '") +
                                               name + "' are made wrong on purpose");
    f.body = make_seq({f.body, wrong_element(y)});
  }
  return m;
}

}  // namespace hidet::graph
