// compile_hopper.cpp - primitives of sm_90 and sm_90a to instructions: each is one, its operands in a table.
#include <algorithm>

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
    {"mbarrier_arrive_expect_tx_remote", Hopper::arrive_expect_remote},
    {"mbarrier_arrive_state", Hopper::arrive_state},
    {"mbarrier_arrive_no_complete", Hopper::arrive_no_complete},
    {"mbarrier_arrive_drop", Hopper::arrive_drop},
    {"mbarrier_arrive_copies", Hopper::arrive_copies},
    {"mbarrier_expect_tx", Hopper::expect},
    {"mbarrier_complete_tx", Hopper::complete},
    {"mbarrier_pending", Hopper::pending},
    {"mbarrier_test_wait", Hopper::test_parity},
    {"mbarrier_test_state", Hopper::test_state},
    {"mbarrier_try_wait", Hopper::test_parity},
    {"mbarrier_try_state", Hopper::test_state},
    {"mbarrier_wait", Hopper::wait},
    {"fence_mbarrier_init", Hopper::fence_init},
    {"fence_proxy_async", Hopper::fence_proxy},
    {"fence_proxy_async_shared", Hopper::fence_proxy_shared},
    {"fence_proxy_async_global", Hopper::fence_proxy_global},
    {"fence_proxy_alias", Hopper::nothing},  // each memory has one address here
    {"tma_load", Hopper::tma_load},
    {"tma_store", Hopper::tma_store},
    {"tma_reduce", Hopper::tma_reduce},
    {"tma_prefetch_box", Hopper::tma_prefetch},
    {"bulk_load", Hopper::bulk_load},
    {"bulk_store", Hopper::bulk_store},
    {"bulk_reduce", Hopper::bulk_reduce},
    {"bulk_prefetch", Hopper::bulk_prefetch},
    {"bulk_send", Hopper::bulk_send},
    {"bulk_send_reduce", Hopper::bulk_send_reduce},
    {"async_store", Hopper::async_store},
    {"async_reduce", Hopper::async_reduce},
    {"cache_policy", Hopper::policy},
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
    {"griddep_wait", Hopper::nothing},  // launches do not overlap
    {"griddep_launch", Hopper::nothing},
    {"setmaxnreg_inc", Hopper::more_registers},
    {"setmaxnreg_dec", Hopper::fewer_registers},
};

}  // namespace

/// Registers of a thread when a kernel begins: what the launch bounds leave, in whole warp groups, and as ptxas counts no more
/// than the largest setmaxnreg_inc asks for; 0 where there are no bounds, and ptxas ignores setmaxnreg.
int64_t Compiler::entry_registers(const ir::LaunchInfo& launch) const {
  constexpr int64_t kFile = 65536, kMost = 256, kGroup = 128;
  int64_t threads = 1, asked = 0;
  for (const Expr& e : launch.block) {
    int64_t n;
    if (!is_const_int(e, &n)) return 0;
    threads *= n;
  }
  if (!launch.min_blocks || launch.block.empty()) return 0;
  for (const HopperCall& call : out_.hopper_calls)
    if (std::string_view(call.name) == "setmaxnreg_inc") asked = std::max(asked, call.attrs.at(0));
  const int64_t groups = (threads + kGroup - 1) / kGroup * launch.min_blocks;
  return std::min({kMost, kFile / (groups * kGroup) / 8 * 8, asked ? asked : kMost});
}

/// True where the primitive is one of these.
bool Compiler::hopper(const Prim& p, int32_t dst) {
  for (const HopperRow& row : kRows) {
    if (p.name != row.name) continue;
    if (row.op == Hopper::nothing) return true;
    HopperCall call{row.name, {}, p.attrs};
    for (const Expr& a : p.args) call.args.push_back(cell(a));
    out_.hopper = out_.partial = true;
    // Other blocks may combine numbers at the same place.
    if (row.op == Hopper::tma_reduce || row.op == Hopper::bulk_reduce) out_.in_order = true;
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
