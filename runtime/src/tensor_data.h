// tensor_data.h - what a Tensor handle points to, and conversions between elements and doubles.
// Threading: immutable after construction but for the elements; thread-safe.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hidet/runtime/tensor.h"

namespace hidet::detail {

/// Memory that tensors share: allocated, or the user's.
struct Storage {
  Storage(void* p, int64_t n, Device d, std::function<void(void*)> del)
      : ptr(p), bytes(n), device(d), deleter(std::move(del)) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* ptr;
  int64_t bytes;
  Device device;
  std::function<void(void*)> deleter;
  bool owned = false;  // from runtime::allocate
};

struct TensorData {
  TensorData() = default;
  ~TensorData();
  TensorData(const TensorData&) = delete;
  TensorData& operator=(const TensorData&) = delete;

  DType dtype;
  Device device;
  bool symbolic = false;
  bool numbers = true;  // every size is a number: `shape` holds them
  Shape shape;
  // Concrete:
  std::shared_ptr<Storage> storage;
  int64_t offset = 0;  // bytes
  // Symbolic:
  std::vector<DimExpr> sizes;
  std::shared_ptr<void> producer;
  int output_index = 0;
  std::string name;
};

/// Elements to doubles and back; the second rounds to nearest even, and throws Error(usage) for an integer
/// dtype that does not hold a value. `to` and `from` need no alignment.
void to_doubles(DType dtype, const void* from, int64_t count, double* to);
void from_doubles(DType dtype, const double* from, int64_t count, void* to);
/// Calls body(begin, end) over [0, count), on several threads where count is large; begin is even.
void over_elements(int64_t count, const std::function<void(int64_t, int64_t)>& body);

}  // namespace hidet::detail
