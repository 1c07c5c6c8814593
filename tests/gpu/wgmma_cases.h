// wgmma_cases.h - products of a warp group whose operands lie in shared memory as the manual of PTX says: the layouts are written
// here once more, apart from the library, and so is the product.
// Threading: one thread at a time.
#pragma once
#include <hidet/hidet.h>

#include <string>
#include <vector>

/// A small integer as bits of f16, bf16, tf32, f8, i8 or u8.
uint32_t encode(double v, hidet::DType t);

/// One product: 64 x n x k.
struct WgmmaCase {
  hidet::lang::Wgmma shape = {};
  int swizzle = 128;  ///< of both matrices in shared memory
  bool registers_a = false;
  bool accumulate = true;
  int step =
      0;  ///< matrices that begin so many times 32 bytes behind (along k), k-major with a swizzle

  std::string name() const;
  int depth() const { return 256 / shape.in.bits(); }
};

/// `launch(a, b, sums)`: the bytes of a and b as they lie in shared memory (or the fragments of a), 128 times the registers of
/// sums, which hold the sums before and after.
hidet::lang::ScriptModule wgmma_module(const WgmmaCase& c);

/// Operands of small integers.
struct WgmmaData {
  std::vector<double> a, b, sums;  ///< 64 x k, n x k, 64 x n
  explicit WgmmaData(const WgmmaCase& c);
  hidet::Tensor bytes_a(const WgmmaCase& c) const;
  hidet::Tensor bytes_b(const WgmmaCase& c) const;
  hidet::Tensor registers(const WgmmaCase& c) const;  ///< of the sums before
  /// The sums that registers hold, 64 x n.
  static std::vector<double> sums_of(const WgmmaCase& c, const hidet::Tensor& registers);
  std::vector<double> product(const WgmmaCase& c) const;
};

/// Every n, every dtype, every layout.
std::vector<WgmmaCase> wgmma_cases();
