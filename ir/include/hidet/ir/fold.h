// fold.h - exact evaluation of operators on constants, with the meaning that design says: integers
// wrap, division truncates, x/0 and x%0 are 0, float -> int saturates, NaN gives 0. The folder,
// the reference interpreter and the simulator share it. Threading: pure functions; thread-safe.
#pragma once
#include <hidet/ir/expr.h>

#include <string>

namespace hidet::ir {

/// `v` wrapped to the width and sign of an integer (or boolean: v != 0) dtype.
int64_t wrap_int(int64_t v, DType dtype);
/// True where `v` is a value of the integer dtype (u64: any non-negative v).
bool fits(int64_t v, DType dtype);
/// The same for an integer of `from` (u64 patterns are unsigned).
bool fits(int64_t v, DType from, DType to);
/// An integer of `dtype` in decimal digits (u64 patterns are unsigned).
std::string int_text(int64_t v, DType dtype);
/// `v` rounded to a float dtype (f16, bf16, f32, f64).
double round_to(double v, DType dtype);
/// float -> int conversion: saturates, NaN gives 0; the u64 result as a bit pattern.
int64_t saturate(double v, DType dtype);
/// An integer of `from` as a double (u64 patterns are unsigned).
double int_to_double(int64_t v, DType from);

/// a op b for integers (or booleans) of one dtype; comparisons and logical operators give 0 or 1.
int64_t eval_int(BinaryOp op, int64_t a, int64_t b, DType dtype);
/// a op b for floats of one dtype, rounded to it; comparisons are eval_float_compare.
double eval_float(BinaryOp op, double a, double b, DType dtype);
bool eval_float_compare(BinaryOp op, double a, double b);

/// Folded where both are constants, else null.
Expr fold_binary(BinaryOp op, const Expr& a, const Expr& b, SourceLoc loc);
/// The constant `imm` in another dtype.
Expr fold_cast(const Expr& imm, DType to, SourceLoc loc);

}  // namespace hidet::ir
