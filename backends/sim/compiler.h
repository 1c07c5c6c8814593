// compiler.h - the compiler from IR functions to register instructions. Private to the simulator.
// Threading: one object a compilation.
#pragma once
#include <hidet/ir/module.h>
#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

#include "sim/program.h"

namespace hidet::backends::sim {
using namespace ir;

/// Compiles one function with its callees into a Program.
class Compiler {
 public:
  Compiler(const Environment& env, Program& out)
      : env_(env), out_(out), swizzled_tiles_(uses_swizzled_tiles(env.module)) {}

  void run(const ir::Function& f);

 private:
  int64_t entry_registers(const ir::LaunchInfo& launch) const;
  struct Compiled {
    int32_t entry = 0, back = 0, result = 0;
    std::vector<int32_t> params;
  };
  struct LoopLabels {
    std::vector<size_t> breaks, continues;
  };

  // --- cells
  int32_t alloc(int lanes = 1) {
    const int32_t at = top_;
    top_ += lanes;
    most_ = std::max(most_, top_);
    return at;
  }
  int32_t constant(Cell value) {
    auto [it, fresh] = constant_index_.emplace(value.i, static_cast<int32_t>(constants_.size()));
    if (fresh) constants_.push_back(value);
    return -it->second - 1;
  }
  int32_t integer(int64_t v) { return constant(Cell{.i = v}); }
  int32_t floating(double v, DType t) {
    Cell c{.i = 0};
    if (t == f64) c.d = v;
    else c.f = static_cast<float>(v);
    return constant(c);
  }

  // --- instructions
  size_t emit(Inst in) {
    out_.code.push_back(in);
    out_.locs.push_back(loc_);
    return out_.code.size() - 1;
  }
  int32_t here() const { return static_cast<int32_t>(out_.code.size()); }
  void land(size_t jump) { out_.code[jump].dst = here(); }
  void land(const std::vector<size_t>& jumps) {
    for (size_t j : jumps) land(j);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::unsupported,
                "the simulator does not run " + what + ", which '" + function_ + "' has",
                loc_.text());
  }
  /// What the simulator computes with: no packed or 8-bit floating-point types.
  void require(DType t) const {
    if (t.code() > DTypeCode::tf32) refuse(std::string("values of type ") + t.name());
  }

  // --- functions
  void function(const ir::Function& f);
  std::vector<const ir::Function*> callees_of(const ir::Function& f) const;

  // --- statements
  void stmt(const Stmt& s);
  void seq(const Stmt& s) {
    const int32_t mark = top_;
    stmt(s);
    top_ = mark;
  }
  void loop_for(const For& f);
  void loop_while(const While& w);
  void declare(const DeclTensor& d);
  void launch(const Launch& l);

  // --- expressions
  void into(const Expr& e, int32_t dst);
  void expression(const Expr& e, int32_t dst);
  int32_t cell(const Expr& e);
  void binary(const Binary& b, int32_t dst);
  void call(const Call& c, int32_t dst);
  void call_extern(const Call& c, int32_t dst);
  void prim(const Prim& p, int32_t dst);
  bool hopper(const Prim& p, int32_t dst);
  void hinted(const Prim& p, int32_t dst);
  void masked(const Prim& p, int32_t dst);
  void amx(const Prim& p);
  void atomic_vector(const Prim& p, int32_t dst);
  void load(const Element& e, int32_t dst);
  int32_t pointer_access(const Expr& base);
  int32_t access(const Expr& tensor, const std::vector<Expr>& indices);
  int32_t offset(const Expr& tensor, const std::vector<Expr>& indices, bool guarded, int lanes,
                 int32_t access, size_t* outside);
  /// The number of the element behind a pointer: vectors count as their lanes.
  int32_t index_behind(const Expr& pointer, const Expr& index);
  int32_t widened(const Expr& e) { return cell(make_cast(e, Type(i64))); }

  const Environment& env_;
  Program& out_;
  bool swizzled_tiles_;
  std::unordered_map<const Node*, int32_t> slot_;
  /// Variables declared without a value: the cell that says whether they have one.
  std::unordered_map<const Node*, int32_t> given_;
  std::unordered_map<int64_t, int32_t> constant_index_;
  std::vector<Cell> constants_;
  std::unordered_map<const ir::Function*, Compiled> done_;
  std::unordered_map<const ir::Function*, bool> open_;
  std::vector<VarRef> keep_;  ///< variables made here: their addresses are keys
  std::vector<LoopLabels> loops_;
  Compiled* current_ = nullptr;
  Type returns_;
  std::string function_;
  bool top_level_ = false;
  SourceLoc loc_;
  int32_t top_ = 1, most_ = 1;
};

}  // namespace hidet::backends::sim
