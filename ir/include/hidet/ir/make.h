// make.h - makers of expressions; expr.h includes it.
// Threading: pure functions; thread-safe.
#pragma once
#include <hidet/ir/expr.h>

namespace hidet::ir {

// --- Makers. They check and unify types (Error(usage) at `loc` on a mistake) and fold constants where
// --- that is exact and free; everything else makes nodes through them.
Expr make_int(int64_t value, Type type, SourceLoc loc = {});
Expr make_float(double value, Type type, SourceLoc loc = {});
/// A constant of any scalar dtype, from a double (0, 1, -inf ...).
Expr make_const(double value, DType dtype, SourceLoc loc = {});
Expr make_bool(bool value, SourceLoc loc = {});
VarRef make_var(std::string name, Type type, bool is_mutable = false, SourceLoc loc = {});
Expr make_symbol(std::string name);
Expr make_unary(UnaryOp op, Expr a, SourceLoc loc = {});
/// Unifies dtypes: an immediate takes the other side's dtype; integers of unlike width widen to the wider;
/// integer with float is an error unless the integer is an immediate; a scalar broadcasts to a vector.
Expr make_binary(BinaryOp op, Expr a, Expr b, SourceLoc loc = {});
Expr make_select(Expr cond, Expr a, Expr b, SourceLoc loc = {});
Expr make_cast(Expr a, Type to, SourceLoc loc = {});
Expr make_bitcast(Expr a, Type to, SourceLoc loc = {});
Expr make_pointer_cast(Expr a, Type pointer, SourceLoc loc = {});
Expr make_call(std::string callee, std::vector<Expr> args, Type returns, SourceLoc loc = {});
Expr make_prim(std::string name, std::vector<Expr> args, Type returns,
               std::vector<int64_t> attrs = {}, SourceLoc loc = {});
Expr make_load(Expr base, Expr index, int lanes = 1, SourceLoc loc = {});
Expr make_element(Expr tensor, std::vector<Expr> indices, bool guarded = false, int lanes = 1,
                  SourceLoc loc = {});
Expr make_address(Expr tensor, std::vector<Expr> indices, SourceLoc loc = {});
Expr make_vector(std::vector<Expr> lanes, SourceLoc loc = {});
Expr make_broadcast(Expr a, int lanes, SourceLoc loc = {});
Expr make_lane(Expr vector, Expr index, SourceLoc loc = {});
Expr make_reduce(ReduceOp op, std::vector<VarRef> axes, std::vector<Expr> extents, Expr value,
                 SourceLoc loc = {});
Expr make_arg_reduce(bool is_max, bool last, VarRef axis, Expr extent, Expr value,
                     SourceLoc loc = {});

/// The identity value of a reduction in `dtype`.
Expr reduce_identity(ReduceOp op, DType dtype);
/// One step: combine(a, b).
Expr reduce_combine(ReduceOp op, Expr a, Expr b);

/// The value of an integer constant, if it is one.
bool is_const_int(const Expr& e, int64_t* value = nullptr);

}  // namespace hidet::ir
