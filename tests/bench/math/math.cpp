// math.cpp - the worst error of each emitted f32 function over all 2^32 inputs, in units of the last place, and whether vectors
// and single lanes agree to the bit. Bound: 2 ULP. Exit status 1 when one is passed.
// usage: math_bench [function ...]
// Threading: one thread; several minutes a function.
#include "codegen/math_check.h"

#include <cstring>

int main(int argc, char** argv) {
  using namespace hidet::testing;
  bool good = true;
  for (const MathRow& row : kMathRows) {
    bool asked = argc < 2;
    for (int i = 1; i < argc; i++) asked = asked || std::strcmp(argv[i], row.name) == 0;
    if (!asked) continue;
    MathChecker checker(row);
    bool equal = true;
    constexpr uint32_t kChunk = 1u << 20;
    for (uint64_t first = 0; first < (uint64_t{1} << 32); first += kChunk)
      equal = checker.run(static_cast<uint32_t>(first), 1, kChunk) && equal;
    std::printf("%s%s\n", checker.text().c_str(), equal ? "" : "  vectors and scalars differ");
    std::fflush(stdout);
    good = good && equal && checker.worst.error <= 2;
  }
  return good ? 0 : 1;
}
