// factories.cpp - tensors from values, constants and random numbers.
// Random numbers come from a hash of seed and place, so that neither the number of threads nor the
// order of work matters. Tensors for a GPU are made here and copied.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numbers>

#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"
#include "src/tensor_data.h"

namespace hidet {
namespace {

// 64 bits that look random for any two numbers.
uint64_t scramble(uint64_t seed, uint64_t place) {
  uint64_t x = seed * 0x9E3779B97F4A7C15ull + place;
  for (const uint64_t factor :
       {0xBF58476D1CE4E5B9ull, 0x94D049BB133111EBull, 0xD6E8FEB86659FD93ull}) {
    x = (x ^ (x >> 31) ^ (seed >> 7)) * factor;
  }
  return x ^ (x >> 32);
}

double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }  // [0, 1)

uint64_t seed_of(Seed seed) {
  static std::atomic<uint64_t> next{0x5EED};
  return scramble(seed ? *seed : next.fetch_add(1, std::memory_order_relaxed), seed ? 1 : 2);
}

// A tensor of f(begin, end, values), which sets `values` for the elements [begin, end); begin is even.
template <class F>
Tensor generate(const Shape& shape, DType dtype, Device device, const F& f) {
  const Tensor t = empty(shape, dtype);
  auto* to = static_cast<uint8_t*>(t.data());
  detail::over_elements(t.num_elements(), [&](int64_t begin, int64_t end) {
    std::vector<double> values(static_cast<size_t>(end - begin));
    f(begin, end, values.data());
    detail::from_doubles(dtype, values.data(), end - begin, to + begin * dtype.bits() / 8);
  });
  return t.to(device);
}

void need_float(const char* what, DType dtype) {
  HIDET_REQUIRE(dtype.is_float(), ErrorCode::usage, "", what, " makes floating point numbers, not ",
                dtype);
}

}  // namespace

Tensor zeros(const Shape& shape, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  if (t.bytes()) runtime::device_api(device).fill_zero(t.data(), static_cast<size_t>(t.bytes()));
  return t;
}

Tensor ones(const Shape& shape, DType dtype, Device device) {
  return full(shape, 1, dtype, device);
}

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  return generate(shape, dtype, device, [&](int64_t begin, int64_t end, double* to) {
    std::fill_n(to, end - begin, value);
  });
}

Tensor randn(const Shape& shape, DType dtype, Device device, Seed seed) {
  need_float("randn", dtype);
  const uint64_t key = seed_of(seed);
  return generate(shape, dtype, device, [&](int64_t begin, int64_t end, double* to) {
    // Box and Muller: two uniform numbers give two normal ones.
    for (int64_t i = begin; i < end; i += 2) {
      const double radius =
          std::sqrt(-2 * std::log(1 - unit(scramble(key, static_cast<uint64_t>(i)))));
      const double angle = 2 * std::numbers::pi * unit(scramble(key, static_cast<uint64_t>(i) + 1));
      to[i - begin] = radius * std::cos(angle);
      if (i + 1 < end) to[i + 1 - begin] = radius * std::sin(angle);
    }
  });
}

Tensor uniform(const Shape& shape, double low, double high, DType dtype, Device device, Seed seed) {
  need_float("uniform", dtype);
  HIDET_REQUIRE(low <= high && std::isfinite(high - low), ErrorCode::usage, "",
                "uniform needs low <= high, not ", low, " and ", high);
  const uint64_t key = seed_of(seed);
  return generate(shape, dtype, device, [&](int64_t begin, int64_t end, double* to) {
    for (int64_t i = begin; i < end; i++)
      to[i - begin] = low + (high - low) * unit(scramble(key, static_cast<uint64_t>(i)));
  });
}

Tensor randint(const Shape& shape, int64_t low, int64_t high, DType dtype, Device device,
               Seed seed) {
  constexpr int64_t kExact = int64_t{1} << 53;
  HIDET_REQUIRE(low < high && low >= -kExact && high <= kExact, ErrorCode::usage, "",
                "randint needs low < high, both within 2^53, not ", low, " and ", high);
  const uint64_t key = seed_of(seed), count = static_cast<uint64_t>(high - low);
  return generate(shape, dtype, device, [&](int64_t begin, int64_t end, double* to) {
    for (int64_t i = begin; i < end; i++)
      to[i - begin] = static_cast<double>(
          low + static_cast<int64_t>(scramble(key, static_cast<uint64_t>(i)) % count));
  });
}

Tensor arange(int64_t count, DType dtype, Device device) {
  HIDET_REQUIRE(dtype.bits() >= 8, ErrorCode::usage, "", "arange makes no packed values: ", dtype);
  return generate({count}, dtype, device, [&](int64_t begin, int64_t end, double* to) {
    for (int64_t i = begin; i < end; i++) to[i - begin] = static_cast<double>(i);
  });
}

Tensor from_doubles(const std::vector<double>& values, const Shape& shape, DType dtype,
                    Device device) {
  HIDET_REQUIRE(product(shape) == static_cast<int64_t>(values.size()), ErrorCode::usage, "",
                values.size(), " values do not make the shape ", shape_text(shape));
  return generate(shape, dtype, device, [&](int64_t begin, int64_t end, double* to) {
    std::copy(values.begin() + begin, values.begin() + end, to);
  });
}

Tensor detail::copy_values(const void* values, size_t count, const Shape& shape, DType dtype,
                           Device device) {
  HIDET_REQUIRE(product(shape) == static_cast<int64_t>(count), ErrorCode::usage, "", count,
                " values do not make the shape ", shape_text(shape));
  Tensor t = empty(shape, dtype, device);
  runtime::copy_bytes(t.data(), device, values, Device(), static_cast<size_t>(t.bytes()));
  return t;
}

}  // namespace hidet
