// primitive_tables.h - the parts of the table of primitives.
// Threading: constant tables; thread-safe.
#pragma once
#include <hidet/ir/primitives.h>

namespace hidet::ir {

/// Rows of every CUDA architecture.
const std::vector<Primitive>& cuda_primitives();
/// Rows that sm_80 brought, and sm_90's stmatrix.
const std::vector<Primitive>& sm80_primitives();
/// Matrix products of a warp.
const std::vector<Primitive>& mma_primitives();
/// Rows of sm_90 and sm_90a, and the device functions that they share with bulk copies.
const std::vector<Primitive>& sm90_primitives();
extern const char kHopperHelper[];
/// Bulk copies and reductions of sm_90.
const std::vector<Primitive>& bulk_primitives();
/// Bits of integers, packed halves, fast approximations.
const std::vector<Primitive>& arith_primitives();
/// Tile registers of x86 CPUs.
const std::vector<Primitive>& amx_primitives();
/// Loads and stores with a cache hint, clocks.
const std::vector<Primitive>& access_primitives();

/// The name of a type in PTX: "s8", "e4m3".
std::string ptx_type(DType t);

}  // namespace hidet::ir
