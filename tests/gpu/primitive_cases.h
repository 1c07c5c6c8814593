// primitive_cases.h - one small kernel for each CUDA primitive, with the values that it must give. The simulator runs them in
// hopper_test and wgmma_test, a GPU in primitives_gpu, which compares both.
// Threading: one thread at a time.
#pragma once
#include <hidet/hidet.h>

#include <string>
#include <vector>

struct PrimitiveCase {
  std::string name;
  hidet::lang::ScriptModule module;  ///< with `launch`, which takes the tensors
  std::vector<hidet::Tensor> args;   ///< the last is the result
  std::vector<double> expected;      ///< its values; {}: other tests know them
};

/// sm_90: mbarriers, bulk copies, clusters, the rest; all but wgmma.
std::vector<PrimitiveCase> primitive_cases();
/// Every architecture and sm_80: exchange in a warp, barriers, atomics, asynchronous copies, matrices of a warp.
std::vector<PrimitiveCase> older_primitive_cases();
