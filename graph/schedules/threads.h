// threads.h - small pieces of CUDA kernels: thread indices, kernels behind a launch function, vectors of 16 bytes.
// Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

/// Threads of a warp.
constexpr int kWarp = 32;
/// What a thread reads or writes at once, in bytes.
constexpr int64_t kVectorBytes = 16;

/// An i32 constant.
ir::Value small(int64_t v);
ir::Value thread_index();  ///< i32
ir::Value block_index();   ///< i64
ir::Stmt barrier();
ir::Value ceil_div(const ir::Value& a, int64_t b);
/// body where `cond` holds.
ir::Stmt only_if(const ir::Value& cond, std::vector<ir::Stmt> body);
/// A constant extent of a tensor; 0 where it is a symbol or 0.
int64_t known_extent(const ir::VarRef& tensor, size_t d);

/// A kernel of `fused`: its parameters, which do not overlap and begin at multiples of 16 bytes. `grid` blocks.
ir::Function cuda_kernel(const FusedTask& fused, const std::string& name, const ir::Value& grid,
                         int64_t threads, std::vector<ir::Stmt> body);
/// A call of a kernel of `fused` as a statement of its launch function.
ir::Stmt call_kernel(const FusedTask& fused, const std::string& name);
/// The module: kernels with parameters of their own, and "launch" with `body`.
ir::Module cuda_module(const FusedTask& fused, std::vector<ir::Function> kernels, ir::Stmt body);

/// `e` at axis = base, base + 1, ... `lanes` times; base is a multiple of `lanes`. Reads of `e` that run along the axis in memory order become one
/// vector read each, in `body`; not those that a condition guards.
std::vector<ir::Expr> lane_values(const ir::Expr& e, const ir::VarRef& axis, const ir::Expr& base,
                                  int lanes, std::vector<ir::Stmt>& body);
/// Stores compute `c` (of the anchor's output: through the epilogue) at `indices`, which use `axis`, at axis = base +
/// lane; values[lane] is its value there. One vector where the stores run along the axis.
void store_lanes(const FusedTask& fused, const ir::Compute& c,
                 const std::vector<ir::Value>& indices, const ir::VarRef& axis,
                 const ir::Expr& base, const std::vector<ir::Expr>& values,
                 std::vector<ir::Stmt>& body);

}  // namespace hidet::graph
