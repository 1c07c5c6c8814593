// keep.h - HIDET_KEEP: what was given to the compiler and what came out, for people to read.
// Threading: thread-safe.
#pragma once
#include <span>

#include "cpu/compiler.h"

namespace hidet::backends::cpu {

/// Where HIDET_KEEP names a folder: writes the units' text and the library there. A folder that cannot be
/// written is told once.
void keep_for_people(std::span<const Unit> units, const Bytes& library);

}  // namespace hidet::backends::cpu
