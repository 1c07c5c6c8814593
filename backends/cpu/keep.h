// keep.h - HIDET_KEEP: what was given to the compiler and what came out, for people to read.
// Threading: thread-safe.
#pragma once
#include <span>

#include "cpu/compiler.h"

namespace hidet::backends::cpu {

/// Where HIDET_KEEP names a folder: writes the units' text there, before it is compiled. A folder that
/// cannot be written is told once.
void keep_texts(std::span<const Unit> units);
/// Likewise the library made from them.
void keep_library(std::span<const Unit> units, const Bytes& library);

}  // namespace hidet::backends::cpu
