// cuda_bundle.h - several pieces of GPU code (cubins, or PTX texts) of one target as one code object.
// The compiler makes one piece per kernel, in parallel and cached one by one; a file keeps the bundle as
// kernels.cubin or kernels.ptx. Code that is no bundle reads as one piece that holds every kernel.
// Layout, little endian: "HIDETCUB", u32 1, u32 parts; per part u64 offset, u64 size, u64 names offset,
// u64 names size (names end in NUL); then the names, then the code, each piece at a multiple of 64.
// Threading: pure functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hidet::runtime {

struct CudaBundlePart {
  std::vector<std::string> kernels;  ///< which kernels are inside; empty: not known
  std::span<const std::byte> code;
};

std::vector<uint8_t> write_cuda_bundle(std::span<const CudaBundlePart> parts);
/// Views into `bytes`. Throws Error(bad_file) for a bundle whose numbers leave it.
std::vector<CudaBundlePart> read_cuda_bundle(std::span<const std::byte> bytes);

}  // namespace hidet::runtime
