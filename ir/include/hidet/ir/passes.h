// passes.h - every pass over IR modules, one line each: the compiler's table of contents.
// A pass is a pure function of a module. Orders are in pipelines.cpp, one list per target.
#pragma once
#include <hidet/ir/stmt.h>

#include <functional>
#include <string_view>

namespace hidet::ir {

struct Pass {
  const char* name;
  std::function<Module(const Module&)> run;
  /// Nodes that no module has after this pass and those behind it; null: none. HIDET_VERIFY checks it.
  bool (*gone)(const Node&) = nullptr;
};

/// A pass over each function's body.
Pass stmt_pass(const char* name, std::function<Stmt(const Stmt&)> body);
/// A pass over each function.
Pass function_pass(const char* name, std::function<Function(const Function&, const Module&)> f);

Pass symbols_to_params();  ///< each DimSymbol becomes an i64 parameter, threaded through calls (sorted by name, last)
Pass lower_launches();  ///< calls of cuda_kernels become Launch, launch bounds in terms of the arguments
Pass lower_mappings();  ///< MappingFor becomes loops and index arithmetic
Pass split_vectors();  ///< vectors of tensor elements that may not lie one behind the other become single elements
Pass lower_guards();   ///< guarded reads and writes become conditions on the indices
Pass lower_tensors();  ///< Element, ElementStore, AddressOf become Load, Store, pointer arithmetic by layout; registers become arrays
Pass unroll_loops();   ///< loops marked unroll become copies of their body
Pass vectorize_loops();  ///< loops marked vectorize become vector code, or copies where that is not possible
Pass widen_halves();  ///< f16 and bf16 arithmetic through f32, rounded at each operator
Pass narrow_indices();  ///< 64-bit integer arithmetic whose values provably fit 32 bits is done in 32 bits
Pass widen_loops();  ///< loops whose last step may pass their type count wider; a step that may be 0 is asserted
Pass carry_quotients();  ///< quotients and remainders of a loop variable by an invariant divisor are counted along
Pass wrap_integers();  ///< signed sums, differences, products and negations that may pass their type are done unsigned, where C++ defines it
Pass simplify();       ///< constant folding and the integer rules, proved by bounds
Pass fold_branches();  ///< ifs and selects with constant conditions, empty loops, dead declarations

/// Runs passes in order: times (HIDET_TIME), dumps (HIDET_DUMP=after:<pass>), verifies (HIDET_VERIFY=1; =text
/// also reads the module's text back), and names the pass and function in an error.
/// Note: a debug build verifies through HIDET_VERIFY=1, which the test presets set.
Module run_passes(Module module, const std::vector<Pass>& passes);

enum class Target : uint8_t { cpu, cuda, sim };
/// The passes for a target, in order. cpu and cuda end in what codegen prints; sim keeps tensors and
/// mappings' meaning (with source locations) for the simulator.
std::vector<Pass> lowering(Target target);
/// Every pass by name (for `hidet opt --list`).
std::vector<Pass> all_passes();

/// Checks types, scopes, call rules between function kinds, launch bounds, barriers under divergent
/// conditions; `lowered`: what codegen takes. Throws Error(usage) at the script line.
void verify(const Module& module, bool lowered = false);

/// Text form, canonical: names made unique in order of appearance. parse(print(m)) equals m, but for the
/// places in the user's program and the addresses of extern functions.
std::string print(const Module& module);
std::string print(const Function& function);
std::string print(const Stmt& stmt);
std::string print(const Expr& expr);
std::string print(const Type& type);
/// Reads a module's text. Throws Error(bad_file) at name:line:column with what was expected; nodes carry
/// name:line as their place. Does not verify.
Module parse(std::string_view text, const std::string& name = "text");

/// Integer simplification of one expression (constant folding, rules proved on random values).
Expr simplify(const Expr& e);

}  // namespace hidet::ir
