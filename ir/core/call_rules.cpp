// call_rules.cpp - the table of call rules and the check of a whole module.
#include <hidet/ir/call_rules.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

namespace hidet::ir {
namespace {

struct Rule {
  FuncKind caller;
  FuncKind callee;
};
// Every pair that is legal; the rest is refused. An extern function counts as cpu_internal that public
// and cpu functions may call.
constexpr Rule kRules[] = {
    {FuncKind::public_, FuncKind::public_},
    {FuncKind::public_, FuncKind::cuda_kernel},
    {FuncKind::public_, FuncKind::cpu_kernel},
    {FuncKind::public_, FuncKind::cpu_internal},
    {FuncKind::cuda_kernel, FuncKind::cuda_internal},
    {FuncKind::cuda_internal, FuncKind::cuda_internal},
    {FuncKind::cpu_kernel, FuncKind::cpu_kernel},
    {FuncKind::cpu_kernel, FuncKind::cpu_internal},
    {FuncKind::cpu_internal, FuncKind::cpu_internal},
};

std::string place(SourceLoc at, const Function& f) { return at.line ? at.text() : f.loc.text(); }

void check_call(const Module& module, const Function& caller, const std::string& name,
                SourceLoc at) {
  if (const Function* callee = module.find(name)) {
    HIDET_REQUIRE(may_call(caller.kind, callee->kind), ErrorCode::usage, place(at, caller), "the ",
                  ir::name(caller.kind), " function '", caller.name, "' calls the ",
                  ir::name(callee->kind), " function '", name, "', which only ",
                  callers_of(callee->kind), " functions may call");
    return;
  }
  for (const ExternFunc& e : module.externs)
    if (e.name == name) {
      HIDET_REQUIRE(!is_cuda(caller.kind), ErrorCode::usage, place(at, caller), "the ",
                    ir::name(caller.kind), " function '", caller.name,
                    "' calls the extern function '", name,
                    "', which only public, cpu_kernel and cpu_internal functions may call");
      return;
    }
  throw Error(ErrorCode::usage,
              "the function '" + caller.name + "' calls '" + name + "', which the module '" +
                  module.name + "' does not have",
              place(at, caller));
}

void check_function(const Module& module, const Function& f) {
  visit_all(f.body, [&](const Node& node) {
    if (const Call* c = as<Call>(&node)) check_call(module, f, c->callee, c->loc);
    if (const Launch* l = as<Launch>(&node)) check_call(module, f, l->callee, l->loc);
    const For* loop = as<For>(&node);
    HIDET_REQUIRE(!loop || loop->how != LoopKind::parallel || may_be_parallel(f.kind),
                  ErrorCode::usage, place(node.loc, f), "a parallel loop in the ", ir::name(f.kind),
                  " function '", f.name, "'; only public and cpu_kernel functions may have one");
  });
}

}  // namespace

bool may_call(FuncKind caller, FuncKind callee) {
  for (const Rule& r : kRules)
    if (r.caller == caller && r.callee == callee) return true;
  return false;
}

std::string callers_of(FuncKind callee) {
  std::string out;
  for (const Rule& r : kRules)
    if (r.callee == callee) out += (out.empty() ? "" : ", ") + std::string(name(r.caller));
  return out;
}

bool may_be_parallel(FuncKind kind) {
  return kind == FuncKind::public_ || kind == FuncKind::cpu_kernel;
}

void check_calls(const Module& module) {
  for (const Function& f : module.functions)
    if (f.body) check_function(module, f);
}

}  // namespace hidet::ir
