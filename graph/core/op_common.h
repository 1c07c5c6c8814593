// op_common.h - what the files of graph/ops share: broadcasting, axes, errors, small compute helpers.
// Threading: pure functions; thread-safe.
#pragma once
#include <hidet/graph/op.h>
#include <hidet/runtime/error.h>

#include <string>
#include <vector>

namespace hidet::graph {

using Dims = std::vector<DimExpr>;
using Values = std::vector<ir::Value>;

/// Throws Error(usage) "<op>: <message>" unless `cond`.
#define HIDET_OP_REQUIRE(cond, op, ...) \
  HIDET_REQUIRE(cond, ::hidet::ErrorCode::usage, "", op, ": ", __VA_ARGS__)

/// `axis` in [0, rank); negative ones count from the end. Throws an error that names the operator.
int64_t op_axis(const std::string& op, int64_t axis, int64_t rank);
/// Each axis once, sorted; empty means all where `empty_is_all`.
std::vector<int64_t> op_axes(const std::string& op, const std::vector<int64_t>& axes, int64_t rank,
                             bool empty_is_all);
/// The shape that shapes broadcast to, as numpy.
Dims op_broadcast(const std::string& op, const std::vector<Dims>& shapes);
/// Throws unless the call has `count` inputs.
void op_inputs(const std::string& op, const OpCall& call, size_t count);
/// All inputs from `first` on have the dtype of input `first`.
void op_same_dtype(const std::string& op, const OpCall& call, size_t first = 0);

/// Indices into a tensor of shape `from` for output indices `at` of shape `to` (broadcast, aligned at the right).
Values broadcast_indices(const Dims& from, const Dims& to, const Values& at);
/// Task of an operator with its inputs x0, x1 ... declared.
ir::Task new_task(const std::string& name, const OpCall& call);
/// A constant of `dtype`.
ir::Value constant(double value, DType dtype);
ir::Value index_value(int64_t value);
ir::Value index_value(const DimExpr& value);
/// f32 for f16 and bf16, else the dtype itself: what an operator of several steps computes in.
DType working_dtype(DType dtype);
inline bool is_half(DType t) { return t == f16 || t == bf16; }
/// exp, sqrt ...
ir::Value math(const std::string& name, const ir::Value& x);
/// Inverse maps: none for every input, to be filled in.
void no_inverse_maps(ir::Task& task);
/// Input `k` is read at just the output's indices where its shape is the output's.
void set_identity_inverse(ir::Task& task, int k);
/// Input `k` at indices `axes` is read by the output at map(axes) alone.
void set_inverse(ir::Task& task, int k, const std::function<Values(const Values&)>& map);
/// The flat (row-major) index of `at` in `shape`, and back.
ir::Value flatten_index(const Values& at, const Dims& shape);
Values unflatten_index(const ir::Value& flat, const Dims& shape);

}  // namespace hidet::graph
