// bulk.h - what bulk copies and wgmma of sm_90 can be told: how memory is combined with what arrives, how L2 keeps it, signs.
// Threading: constant tables; thread-safe.
#pragma once
#include <hidet/runtime/dtype.h>

#include <cstdint>
#include <string>

namespace hidet::ir {

/// What a bulk reduction leaves of an element and of what arrives there. inc: old >= v ? 0 : old + 1;
/// dec: old == 0 || old > v ? v : old - 1.
enum class Combine : uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };
/// As PTX calls it: "add", "and".
const char* name_of(Combine op);
/// Whether the hardware has it: on global memory, or on shared memory of the cluster.
bool can_reduce(Combine op, DType t, bool shared);
/// "add.noftz.f16", "and.b32": operation and type as PTX writes them.
std::string ptx_of(Combine op, DType t);

/// In which order L2 gives lines away.
enum class Evict : uint8_t { last, normal, first, unchanged };

/// The last attribute of wgmma, a mask: products of -a, of -b; sums of integers that stay at the limits.
inline constexpr int64_t kNegateA = 1, kNegateB = 2, kSaturate = 4;

}  // namespace hidet::ir
