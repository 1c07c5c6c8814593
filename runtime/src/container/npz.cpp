// npz.cpp - npy headers, version 1.0 of the format (2.0 where the header is longer than 65535 bytes cannot happen here).
// Threading: thread-safe.
#include "src/container/npz.h"

namespace hidet::runtime {

std::string npy_header(DType dtype, const Shape& shape) {
  std::string descr = dtype.numpy_name(), dims;
  if (descr.size() > 1 && descr[1] == 'V') {
    descr = "|u1";
    dims = std::to_string(dtype.bytes_of(product(shape))) + ",";
  } else {
    for (const int64_t d : shape) dims += (dims.empty() ? "" : " ") + std::to_string(d) + ",";
    if (shape.size() > 1) dims.pop_back();
  }
  std::string dict =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  const size_t length = (10 + dict.size() + 1 + 63) / 64 * 64 - 10;
  dict.resize(length - 1, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(length & 255);
  header += static_cast<char>(length >> 8);
  return header + dict;
}

}  // namespace hidet::runtime
