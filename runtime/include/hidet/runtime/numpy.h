// numpy.h - tensors as numpy's .npy files (format 1 and 2, little endian, C order), in files and in memory.
// What numpy has no type for (bf16, f8) is stored as raw bytes, "|V2" and "|V1": the reader must say what it
// is. tf32 is stored as float32. Packed 4-bit types are not stored.
// Anything malformed throws Error(bad_file) that names the file; what cannot be opened, Error(io).
// Threading: thread-safe.
#pragma once
#include <hidet/runtime/tensor.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hidet {

/// Reads a file. `as` is the dtype where the file has raw bytes; where the file says its dtype, `as` must agree.
Tensor read_npy(const std::string& path, std::optional<DType> as = {});
/// Writes the elements, fetched from the device. A file that is there is replaced, by a failed
/// write not: see runtime::write_file.
void write_npy(const std::string& path, const Tensor& tensor);

/// What the header of an npy says.
struct NpyInfo {
  DType dtype;
  Shape shape;
  size_t data_offset = 0;  ///< from here on the elements, to the end
  size_t data_bytes = 0;
};
/// Reads the header of a whole npy in memory and checks that the elements are all there, and nothing else.
NpyInfo parse_npy(std::span<const std::byte> bytes, const std::string& name,
                  std::optional<DType> as = {});
/// A copy of the elements of an npy in memory, on the CPU.
Tensor npy_to_tensor(std::span<const std::byte> bytes, const std::string& name,
                     std::optional<DType> as = {});
/// The header alone, padded so that the elements begin at a multiple of 64 bytes; the same bytes as numpy's.
std::string npy_header(DType dtype, const Shape& shape);
/// A whole npy in memory.
std::vector<std::byte> tensor_to_npy(const Tensor& tensor);

}  // namespace hidet
