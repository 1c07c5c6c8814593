// launches.cpp - calls of kernels become launches; dim symbols become explicit parameters.
// lower-launches needs: recorded modules.  Leaves: no Call of a cuda_kernel.
// symbols-to-params needs: lower-tensors and lower-launches (shapes are expressions).  Leaves: no DimSymbol.
#include "transforms/util.h"

#include <hidet/runtime/error.h>

#include <set>

namespace hidet::ir {
namespace {

std::vector<Expr> convert_args(const Function& callee, const std::vector<Expr>& args) {
  std::vector<Expr> out = args;
  for (size_t i = 0; i < callee.params.size() && i < out.size(); i++)
    if (out[i]->type.is_arithmetic() && callee.params[i]->type.is_arithmetic())
      out[i] = make_cast(out[i], callee.params[i]->type, out[i]->loc);
  return out;
}

Stmt launch_of(const Function& kernel, const Call& call) {
  HIDET_REQUIRE(call.args.size() == kernel.params.size(), ErrorCode::usage, call.loc.text(),
                "kernel '", kernel.name, "' takes ", kernel.params.size(), " arguments, not ",
                call.args.size());
  const std::vector<Expr> args = convert_args(kernel, call.args);
  Substitution map;
  for (size_t i = 0; i < args.size(); i++) map.emplace(kernel.params[i].get(), args[i]);
  const auto of_call = [&](const std::vector<Expr>& list) {
    std::vector<Expr> out;
    for (const Expr& e : list) out.push_back(substitute(e, map));
    return out;
  };
  const LaunchInfo& l = kernel.launch;
  return make_stmt<Launch>(call.loc, kernel.name, of_call(l.grid), of_call(l.block),
                           of_call(l.cluster),
                           l.shared_bytes ? substitute(l.shared_bytes, map) : Expr(), args);
}

using Symbols = std::set<std::string>;

/// Of a function's body, and of the sizes that a kernel is launched with.
void add_symbols(const Function& f, Symbols& out, std::set<std::string>& callees) {
  const auto visit = [&](const Node& n) {
    if (const DimSymbol* d = as<DimSymbol>(&n)) out.insert(d->name);
    if (const Call* c = as<Call>(&n)) callees.insert(c->callee);
    if (const Launch* l = as<Launch>(&n)) callees.insert(l->callee);
  };
  visit_all(f.body, visit);
  for (const auto* list : {&f.launch.grid, &f.launch.block, &f.launch.cluster})
    for (const Expr& e : *list) visit_all(e, visit);
  if (f.launch.shared_bytes) visit_all(f.launch.shared_bytes, visit);
}

/// The symbols of every function, with those of the functions that it calls.
std::map<std::string, Symbols> symbols_of(const Module& module) {
  std::map<std::string, Symbols> symbols;
  std::map<std::string, std::set<std::string>> callees;
  for (const Function& f : module.functions) add_symbols(f, symbols[f.name], callees[f.name]);
  for (bool grew = true; grew;) {
    grew = false;
    for (auto& [name, list] : callees)
      for (const std::string& callee : list)
        if (auto it = symbols.find(callee); it != symbols.end())
          for (const std::string& s : it->second) grew |= symbols[name].insert(s).second;
  }
  return symbols;
}

Function with_symbol_params(Function f, const std::map<std::string, Symbols>& symbols) {
  std::map<std::string, Expr> params;
  for (const std::string& s : symbols.at(f.name)) {
    f.params.push_back(make_var(s, Type(i64)));
    params[s] = f.params.back();
  }
  Rewriter r;
  r.on([&](Rewriter&, const DimSymbol& d) -> Expr { return params.at(d.name); });
  const auto append = [&](std::vector<Expr> args, const std::string& callee) {
    if (auto it = symbols.find(callee); it != symbols.end())
      for (const std::string& s : it->second) args.push_back(params.at(s));
    return args;
  };
  r.on([&](Rewriter& self, const Call& c) -> Expr {
    const Expr changed = self.children(c);
    const Call& n = *as<Call>(changed);
    return make_call(n.callee, append(n.args, n.callee), n.type, n.loc);
  });
  r.on([&](Rewriter& self, const Launch& l) -> Stmt {
    const Stmt changed = self.children(l);
    const Launch& n = *as<Launch>(changed);
    return make_stmt<Launch>(n.loc, n.callee, n.grid, n.block, n.cluster, n.shared_bytes,
                             append(n.args, n.callee));
  });
  f.body = r(f.body);
  const auto map_list = [&](std::vector<Expr>& list) { list = r(list); };
  map_list(f.launch.grid);
  map_list(f.launch.block);
  map_list(f.launch.cluster);
  f.launch.shared_bytes = r(f.launch.shared_bytes);
  return f;
}

}  // namespace

Pass lower_launches() {
  return function_pass("lower-launches", [](const Function& f, const Module& module) {
    Function out = f;
    out.body = rewrite(
        f.body,
        [&](Rewriter& self, const Evaluate& e) -> Stmt {
          const Call* call = as<Call>(e.value);
          const Function* callee = call ? module.find(call->callee) : nullptr;
          return callee && callee->kind == FuncKind::cuda_kernel ? launch_of(*callee, *call)
                                                                 : self.children(e);
        },
        [&](Rewriter& self, const Call& c) -> Expr {
          const Expr changed = self.children(c);
          const Call& n = *as<Call>(changed);
          const Function* callee = module.find(n.callee);
          return callee ? make_call(n.callee, convert_args(*callee, n.args), n.type, n.loc)
                        : changed;
        });
    return out;
  });
}

Pass symbols_to_params() {
  return {"symbols-to-params",
          [](const Module& module) {
            const std::map<std::string, Symbols> symbols = symbols_of(module);
            Module out = module;
            for (Function& f : out.functions)
              if (!symbols.at(f.name).empty()) f = with_symbol_params(std::move(f), symbols);
            return out;
          },
          [](const Node& n) { return n.kind == Kind::DimSymbol; }};
}

}  // namespace hidet::ir
