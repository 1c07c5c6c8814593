// reductions.h - nests of the CPU's auto-scheduler for computes that reduce. Vectors run along the reduced axis or along the last output
// axis, whichever is read in memory order; several accumulators are combined at the end in an order that depends on the extents alone.
// Private to graph/schedules.
#pragma once
#include "schedules/nest.h"

namespace hidet::graph {

class Reductions {
 public:
  /// `fused` and `target` outlive this.
  Reductions(const FusedTask& fused, const CpuTargetInfo& target)
      : fused_(fused), target_(target) {}

  /// The reduction that `c` is, maybe rounded; else null. (f16 and bf16 sum up in f32 and are rounded once.)
  static const ir::Reduce* of(const ir::Compute& c);
  /// What sums of `t` are kept in.
  static DType accumulator(DType t) { return t == f16 || t == bf16 ? f32 : t; }
  /// True where the reads run along the last reduced axis rather than along the last output axis.
  static bool runs_along(const ir::Compute& c, const ir::Reduce& r);

  /// A parallel nest that stores all outputs.
  ir::Stmt nest(const ir::Compute& c, const ir::Reduce& r) const;
  /// The output at `out`, computed in `body` in vectors along the last reduced axis.
  ir::Value along(std::vector<ir::Stmt>& body, const ir::Compute& c, const ir::Reduce& r,
                  const std::vector<ir::Value>& out) const;
  /// Loops over all reduced axes from number at.size() to `count`; body gets their indices.
  static ir::Stmt loops(const ir::Reduce& r, size_t count, std::vector<ir::Value> at,
                        const std::function<ir::Stmt(const std::vector<ir::Value>&)>& body);

 private:
  ir::Value one_by_one(std::vector<ir::Stmt>& body, const ir::Compute& c, const ir::Reduce& r,
                       const std::vector<ir::Value>& out) const;
  ir::Stmt across(const ir::Compute& c, const ir::Reduce& r) const;
  ir::Stmt columns(const ir::Compute& c, const ir::Reduce& r, const std::vector<ir::Value>& rows,
                   const ir::Value& first, int64_t block) const;

  const FusedTask& fused_;
  const CpuTargetInfo& target_;
};

/// One nest for computes that share their first dims: each reduces the rest of its reads to a value a row, and the last ones are
/// elementwise and read those values of their row, as in a layer norm. So a row is read from memory once. Nullopt where they are not so.
std::optional<ir::Stmt> shared_rows(const FusedTask& fused,
                                    const std::vector<ir::Compute>& computes,
                                    const CpuTargetInfo& target);

}  // namespace hidet::graph
