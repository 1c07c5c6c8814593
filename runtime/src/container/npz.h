// npz.h - weights.npz: a stored zip of npy arrays that numpy.load reads and that is used in place.
// Threading: pure functions; thread-safe.
#pragma once
#include <string>

#include "hidet/runtime/tensor.h"

namespace hidet::runtime {

/// The header of an npy file of this type and shape: a multiple of 64 bytes. Types that numpy lacks are bytes.
std::string npy_header(DType dtype, const Shape& shape);

}  // namespace hidet::runtime
