// compile_hopper.cpp - primitives of sm_90 and sm_90a to instructions: each is one, its operands in a table.
#include "sim/compiler.h"
#include "sim/hopper.h"

namespace hidet::backends::sim {
namespace {

struct HopperRow {
  const char* name;
  Hopper op;
};
constexpr HopperRow kRows[] = {
    {"tensor_map", Hopper::tensor_map},
    {"mbarrier_init", Hopper::init},
    {"mbarrier_invalidate", Hopper::invalidate},
    {"mbarrier_arrive", Hopper::arrive},
    {"mbarrier_arrive_remote", Hopper::arrive_remote},
    {"mbarrier_arrive_expect_tx", Hopper::arrive_expect},
    {"mbarrier_expect_tx", Hopper::expect},
    {"mbarrier_wait", Hopper::wait},
    {"fence_mbarrier_init", Hopper::fence_init},
    {"fence_proxy_async", Hopper::fence_proxy},
    {"tma_load", Hopper::tma_load},
    {"tma_store", Hopper::tma_store},
    {"bulk_load", Hopper::bulk_load},
    {"bulk_load_multicast", Hopper::bulk_load_multicast},
    {"bulk_store", Hopper::bulk_store},
    {"bulk_commit", Hopper::bulk_commit},
    {"bulk_wait", Hopper::bulk_wait},
    {"bulk_wait_read", Hopper::bulk_wait_read},
    {"cluster_rank", Hopper::cluster_rank},
    {"cluster_size", Hopper::cluster_size},
    {"cluster_arrive", Hopper::cluster_arrive},
    {"cluster_wait", Hopper::cluster_wait},
    {"map_shared_rank", Hopper::map_rank},
    {"wgmma_descriptor", Hopper::descriptor},
    {"wgmma_fence", Hopper::product_fence},
    {"wgmma_commit", Hopper::product_commit},
    {"wgmma_wait", Hopper::product_wait},
    {"wgmma", Hopper::product},
    {"wgmma_pin", Hopper::nothing},
    {"tma_prefetch", Hopper::nothing},
    {"griddep_wait", Hopper::nothing},
    {"griddep_launch", Hopper::nothing},
    {"setmaxnreg_inc", Hopper::nothing},
    {"setmaxnreg_dec", Hopper::nothing},
};

}  // namespace

/// True where the primitive is one of these.
bool Compiler::hopper(const Prim& p, int32_t dst) {
  for (const HopperRow& row : kRows) {
    if (p.name != row.name) continue;
    if (row.op == Hopper::nothing) return true;
    HopperCall call{row.name, {}, p.attrs};
    for (const Expr& a : p.args) call.args.push_back(cell(a));
    out_.hopper = out_.partial = true;
    out_.hopper_calls.push_back(std::move(call));
    emit({Op::hopper,
          static_cast<uint8_t>(row.op),
          {},
          {},
          1,
          dst,
          0,
          0,
          static_cast<int32_t>(out_.hopper_calls.size() - 1)});
    return true;
  }
  return false;
}

}  // namespace hidet::backends::sim
