// tensor.h - Tensor: a typed, shaped, contiguous piece of memory on a device, or a symbolic value of a
// graph; factories; TensorSignature, which describes an input or output.
// Threading: Tensor is a handle to something immutable but for the elements: copying and reading are
// thread-safe; who writes elements must keep others away.
#pragma once
#include <hidet/runtime/device.h>
#include <hidet/runtime/dim_expr.h>
#include <hidet/runtime/dtype.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hidet {

namespace detail {
struct TensorData;
}

/// A tensor. Row-major and contiguous; copies share the elements. A default-constructed one is empty:
/// everything but defined() throws Error(usage) for it.
class Tensor {
 public:
  Tensor() = default;
  bool defined() const { return data_ != nullptr; }
  explicit operator bool() const { return defined(); }

  DType dtype() const;
  Device device() const;
  int rank() const;
  /// Sizes as numbers; throws Error(usage) that shows the formulas where a symbolic tensor has some.
  const Shape& shape() const;
  /// Size of one axis, as a number; a negative axis counts from the end.
  int64_t shape(int axis) const;
  /// Sizes as formulas; of any tensor.
  std::vector<DimExpr> shape_expr() const;
  int64_t num_elements() const;  ///< as shape(): numbers only
  int64_t bytes() const;         ///< of the elements
  bool is_symbolic() const;
  /// "f32[2, 3] cpu", "f32[batch, 64] cuda:0".
  std::string describe() const;

  // Elements. A symbolic tensor has none: these throw Error(usage).
  void* data() const;  ///< address in the device's memory; null where there are 0 bytes
  /// As data(), with T checked against the dtype (uint16_t also for f16 and bf16; bytes for any).
  template <class T>
  T* data() const {
    check_pointer_type(dtype_of<std::remove_const_t<T>>());
    return static_cast<T*>(data());
  }
  Tensor cpu() const { return to(Device()); }
  Tensor cuda(int index = 0) const { return to(Device(DeviceKind::cuda, index)); }
  Tensor to(Device device) const;  ///< itself where it is there already, else a copy
  Tensor clone() const;            ///< a copy in memory of its own, on the same device
  /// The same elements under another shape; one size may be -1: what is left.
  Tensor reshape(const Shape& shape) const;
  Tensor view(const Shape& shape) const { return reshape(shape); }
  /// Part of the same memory, from `byte_offset` on, as another tensor.
  Tensor view_at(int64_t byte_offset, const Shape& shape, DType dtype) const;
  /// Overwrites the elements with those of `from` (same dtype and shape, any device).
  void copy_from(const Tensor& from) const;

  /// All elements, fetched from the device. T must be the dtype's own type; float also for f16, bf16, tf32, f8.
  template <class T>
  std::vector<T> to_vector() const {
    if constexpr (std::is_same_v<T, bool>) {
      std::vector<uint8_t> bytes(checked_count(boolean));
      read_elements(boolean, bytes.data());
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      std::vector<T> values(checked_count(dtype_of<T>()));
      read_elements(dtype_of<T>(), values.data());
      return values;
    }
  }
  /// The only element; throws Error(usage) where there are none or several.
  template <class T>
  T item() const {
    check_one_element();
    return to_vector<T>()[0];
  }
  /// All elements as doubles, whatever the dtype.
  std::vector<double> to_doubles() const;

  /// Memory of the caller's, without a copy. `deleter(ptr)` is called when the last tensor on it is
  /// gone; without one the caller keeps the memory alive. Any alignment that fits the dtype works.
  static Tensor from_blob(void* ptr, const Shape& shape, DType dtype, Device device = {},
                          std::function<void(void*)> deleter = {});

  // Symbolic tensors: the producer is opaque here; only the graph knows what it is.
  static Tensor make_symbolic(DType dtype, std::vector<DimExpr> shape, Device device,
                              std::shared_ptr<void> producer, int output_index,
                              std::string name = "");
  const std::shared_ptr<void>& producer() const;  ///< null for a concrete tensor
  int output_index() const;
  const std::string& name() const;  ///< empty for a concrete tensor
  /// True for handles of one tensor object (not: equal elements). Ordered by identity as a map key.
  bool same_as(const Tensor& other) const { return data_ == other.data_; }
  const void* id() const { return data_.get(); }

 private:
  explicit Tensor(std::shared_ptr<const detail::TensorData> data) : data_(std::move(data)) {}
  friend Tensor empty(const Shape& shape, DType dtype, Device device);
  const detail::TensorData& get() const;
  const detail::TensorData& concrete(const char* what) const;
  void check_pointer_type(DType type) const;
  void check_one_element() const;
  size_t checked_count(DType type) const;
  void read_elements(DType type, void* out) const;
  std::shared_ptr<const detail::TensorData> data_;
};

// Factories. Elements of `empty` are not set. Sizes must not be negative, and all bytes fit in 63 bits.
Tensor empty(const Shape& shape, DType dtype = f32, Device device = {});
Tensor zeros(const Shape& shape, DType dtype = f32, Device device = {});
Tensor ones(const Shape& shape, DType dtype = f32, Device device = {});
/// Every element `value`, converted as C does after a check that an integer dtype can hold it.
Tensor full(const Shape& shape, double value, DType dtype = f32, Device device = {});
/// Random values depend on seed and place alone. Without a seed each call takes the next of the process.
using Seed = std::optional<uint64_t>;
/// Normal distribution, mean 0, variance 1; floating point dtypes.
Tensor randn(const Shape& shape, DType dtype = f32, Device device = {}, Seed seed = {});
/// Uniform in [low, high); floating point dtypes.
Tensor uniform(const Shape& shape, double low = 0, double high = 1, DType dtype = f32,
               Device device = {}, Seed seed = {});
/// Integers of [low, high); any dtype.
Tensor randint(const Shape& shape, int64_t low, int64_t high, DType dtype = i64, Device device = {},
               Seed seed = {});
/// 0, 1, 2 ... as a vector; any dtype but packed ones.
Tensor arange(int64_t count, DType dtype = i64, Device device = {});
/// Elements converted from doubles (rounded to nearest even; integers must be exact), in row-major order.
Tensor from_doubles(const std::vector<double>& values, const Shape& shape, DType dtype,
                    Device device = {});

namespace detail {
/// A copy of `count` values at `values`, which must be those of `shape`.
Tensor copy_values(const void* values, size_t count, const Shape& shape, DType dtype,
                   Device device);
}  // namespace detail

/// A tensor with these values in row-major order; the dtype is T's.
template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, Device device = {}) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return detail::copy_values(bytes.data(), bytes.size(), shape, boolean, device);
  } else {
    return detail::copy_values(values.data(), values.size(), shape, dtype_of<T>(), device);
  }
}

/// How TensorSignature::concrete_shape chooses.
struct ConcreteShapeOptions {
  int64_t unknown = 1;  ///< the value of every symbol
};

/// What an input or output looks like. A plain value.
struct TensorSignature {
  std::string name;
  DType dtype;
  std::vector<DimExpr> shape;
  Device device;

  /// The sizes, with one number for every symbol.
  Shape concrete_shape(const ConcreteShapeOptions& options = {}) const;
  /// "x: f32[n, 64] cpu".
  std::string text() const;
};

}  // namespace hidet
