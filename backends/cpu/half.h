// half.h - conversions of 16-bit floats for CPUs without the instructions.
// Threading: pure functions.
#pragma once
#include <span>

#include "cpu/compiler.h"

namespace hidet::backends::cpu {

/// True when an object calls a conversion that compilers leave to their run-time library: double to
/// half on most levels, all of them below x86-64-v3.
bool needs_half_support(std::span<const Bytes> objects);

/// The unit that defines them; its functions are not exported.
const Unit& half_support();

}  // namespace hidet::backends::cpu
