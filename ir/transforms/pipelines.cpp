// pipelines.cpp - the pass manager, and the order of passes for each target.
#include "transforms/util.h"

#include <hidet/runtime/error.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hidet::ir {
namespace {

bool env_on(const char* name) {
  const char* v = std::getenv(name);
  return v && *v && std::strcmp(v, "0") != 0;
}

Module run_one(const Module& module, const Pass& pass) {
  try {
    return pass.run(module);
  } catch (const Error& e) {
    throw Error(e.code(),
                std::string(e.what()) + ", while running " + pass.name + " on @" + module.name);
  }
}

/// What a pass has lowered must not come back.
void check_gone(const Module& module, const Pass& pass) {
  if (!pass.gone) return;
  for (const Function& f : module.functions)
    if (f.body)
      visit_all(f.body, [&](const Node& n) {
        if (pass.gone(n))
          throw Error(ErrorCode::internal,
                      std::string("a ") + kind_name(n.kind) + " in '" + f.name +
                          "', which is gone after " + pass.name,
                      n.loc.line ? n.loc.text() : f.loc.text());
      });
}

/// What HIDET_VERIFY asks for: "1" the verifier, "text" also that the module's text reads back as the module.
void check(const Module& module, const std::vector<const Pass*>& done, const char* level) {
  if (!level || !*level || std::strcmp(level, "0") == 0) return;
  const std::string after = done.empty() ? "recording" : done.back()->name;
  try {
    verify(module, true);
    for (const Pass* pass : done) check_gone(module, *pass);
    if (std::strcmp(level, "text") != 0) return;
    const std::string text = print(module);
    HIDET_CHECK(equal(parse(text, "printed"), module), "the text reads back as another module:\n",
                text);
  } catch (const Error& e) {
    throw Error(e.code(),
                std::string(e.what()) + ", while verifying @" + module.name + " after " + after);
  }
}

/// The pass that HIDET_DUMP=after:<pass> names, or "".
std::string dumped_pass() {
  const char* dump = std::getenv("HIDET_DUMP");
  if (!dump || !*dump) return "";
  const std::string text = dump, prefix = "after:";
  std::string names;
  for (const Pass& p : all_passes()) {
    if (text == prefix + p.name) return p.name;
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  throw Error(ErrorCode::usage,
              "HIDET_DUMP is '" + text + "'; it is after: and the name of a pass: " + names);
}

}  // namespace

Pass stmt_pass(const char* name, std::function<Stmt(const Stmt&)> body) {
  return {name, [body](const Module& module) {
            Module out = module;
            for (Function& f : out.functions)
              if (f.body) f.body = body(f.body);
            return out;
          }};
}

Pass function_pass(const char* name, std::function<Function(const Function&, const Module&)> run) {
  return {name, [run](const Module& module) {
            Module out = module;
            for (Function& f : out.functions) f = run(f, module);
            return out;
          }};
}

Module run_passes(Module module, const std::vector<Pass>& passes) {
  const bool timed = env_on("HIDET_TIME");
  const char* verified = std::getenv("HIDET_VERIFY");
  const std::string dumped = dumped_pass();
  with_large_stack([&] {
    std::vector<const Pass*> done;
    check(module, done, verified);
    for (const Pass& pass : passes) {
      const auto start = std::chrono::steady_clock::now();
      module = run_one(module, pass);
      const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
      if (timed)
        std::fprintf(stderr, "%8.3f ms  %s @%s\n", ms.count(), pass.name, module.name.c_str());
      done.push_back(&pass);
      check(module, done, verified);
      if (pass.name == dumped) std::fprintf(stderr, "%s", print(module).c_str());
    }
  });
  return module;
}

std::vector<Pass> lowering(Target target) {
  // Guards before tensors because a condition needs the shape; launches before symbols because a
  // launch's extents may name symbols of the caller.
  const std::vector<Pass> front{lower_launches(), lower_mappings(), split_vectors(),
                                lower_guards()};
  if (target == Target::sim)
    return {lower_launches(), lower_mappings(), split_vectors(),
            simplify(),       widen_loops(),    fold_branches()};
  std::vector<Pass> out = front;
  // Unrolling before tensors folds register indices; vectorizing after it sees plain addresses. Halves
  // are widened last, when vectors exist.
  for (Pass& p : std::vector<Pass>{unroll_loops(), lower_tensors(), symbols_to_params(), simplify(),
                                   vectorize_loops(), simplify(), widen_loops()})
    out.push_back(std::move(p));
  // 64-bit index arithmetic costs a GPU two instructions or more; a CPU nothing.
  out.push_back(target == Target::cuda ? narrow_indices() : carry_quotients());
  for (Pass& p : std::vector<Pass>{widen_halves(), fold_branches()}) out.push_back(std::move(p));
  if (target == Target::cuda) out.push_back(wrap_integers());
  return out;
}

std::vector<Pass> all_passes() {
  return {lower_launches(), lower_mappings(),    split_vectors(), lower_guards(),
          lower_tensors(),  symbols_to_params(), unroll_loops(),  vectorize_loops(),
          widen_halves(),   narrow_indices(),    widen_loops(),   carry_quotients(),
          wrap_integers(),  simplify(),          fold_branches()};
}

}  // namespace hidet::ir
