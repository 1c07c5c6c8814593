// cases_wgmma.cpp - products of a warp group: every n, every dtype, every layout. Where operands lie in shared memory and in
// registers is written here once more, apart from the library, as the manual of PTX says, and so is the product.
#include "primitives/cases.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

namespace hidet::primitives {
using namespace lang;

namespace {

constexpr int kRows = 64;

/// One product: 64 x n x k.
struct WgmmaCase {
  Wgmma shape = {};
  int swizzle = 128;  ///< of both matrices in shared memory
  bool registers_a = false;
  bool accumulate = true;
  /// Matrices that begin so many times 32 bytes behind (along k), k-major with a swizzle.
  int step = 0;

  std::string name() const;
  int depth() const { return 256 / shape.in.bits(); }
  DType in_b() const { return shape.in_b.value_or(shape.in); }
};

/// Operands of small integers; of bytes, of all.
struct WgmmaData {
  std::vector<double> a, b, sums;  ///< 64 x k, n x k, 64 x n
  explicit WgmmaData(const WgmmaCase& c);
  Tensor bytes_a(const WgmmaCase& c) const;
  Tensor bytes_b(const WgmmaCase& c) const;
  std::vector<double> product(const WgmmaCase& c) const;
};

int element_bytes(DType t) { return static_cast<int>(t.bytes()); }

struct Layout32 {
  int leading = 0, stride = 0, bytes = 0;  ///< bytes: of the whole matrix
};

/// How this file lays a matrix out.
Layout32 layout_of(const WgmmaCase& c, int rows, bool mn_major) {
  const int w = c.swizzle;
  if (!mn_major) return w ? Layout32{0, 8 * w, rows * w} : Layout32{128, 256, rows * 32};
  if (w) return {16 * w, 8 * w, std::max(rows / (w / 2), 1) * 16 * w};
  return {128, 256, rows / 8 * 256};
}

/// The byte at which element (row, k) begins.
int place(const WgmmaCase& c, int rows, bool mn_major, int row, int k) {
  const Layout32 l = layout_of(c, rows, mn_major);
  const int w = c.swizzle, size = element_bytes(c.shape.in);
  int at;
  if (!mn_major) {
    const int byte = k * size + c.step * 32;
    at = w ? row * w + byte : row / 8 * l.stride + row % 8 * 16 + byte / 16 * l.leading + byte % 16;
  } else if (w) {
    const int wide = w / 2;
    at = row / wide * l.leading + row % wide * 2 + k / 8 * l.stride + k % 8 * w;
  } else {
    at = row / 8 * l.stride + row % 8 * 2 + k / 8 * l.leading + k % 8 * 16;
  }
  const int mask = w == 128 ? 7 : w == 64 ? 3 : w == 32 ? 1 : 0;
  return at ^ (at >> 7 & mask) << 4;
}

/// A number as bits of f16, bf16, tf32, f8, i8 or u8, which hold it.
uint32_t encode(double v, DType t) {
  const auto f = static_cast<float>(v);
  uint32_t word;
  std::memcpy(&word, &f, 4);
  if (t == f16) return f32_to_f16(f);
  if (t == bf16) return word >> 16;
  if (t == tf32) return word | 0xfff;  // bits that the hardware ignores
  if (t == f8e5m2) return f32_to_f16(f) >> 8;
  if (t == f8e4m3) {
    if (v == 0) return 0;
    int exponent;
    const double m = std::frexp(std::fabs(v), &exponent);  // 0.5 <= m < 1
    return (v < 0 ? 128u : 0u) | static_cast<uint32_t>(exponent + 6) << 3 |
           (static_cast<uint32_t>(m * 16) & 7);
  }
  return static_cast<uint32_t>(static_cast<int32_t>(v)) & 0xff;
}

Tensor bytes_of(const WgmmaCase& c, const std::vector<double>& m, DType t, int rows,
                bool mn_major) {
  const int bytes = (layout_of(c, rows, mn_major).bytes + 1023) / 1024 * 1024;
  std::vector<uint8_t> out(static_cast<size_t>(bytes));
  for (int r = 0; r < rows; r++)
    for (int k = 0; k < c.depth(); k++) {
      const uint32_t v = encode(m[static_cast<size_t>(r * c.depth() + k)], t);
      std::memcpy(&out[static_cast<size_t>(place(c, rows, mn_major, r, k))], &v, t.bytes());
    }
  return from_vector<uint8_t>(out, {bytes});
}

int registers_of_sums(const WgmmaCase& c) { return c.shape.n / (c.shape.sum == f16 ? 4 : 2); }

/// The bytes of a tensor, whatever it holds.
uint8_t* data_of(const Tensor& t) {
  return static_cast<uint8_t*>(const_cast<void*>(static_cast<const void*>(t.data())));
}

/// f(row, column, thread, number among the thread's sums).
template <class F>
void each_sum(const WgmmaCase& c, F&& f) {
  for (int row = 0; row < kRows; row++)
    for (int col = 0; col < c.shape.n; col++)
      f(row, col, row / 16 * 32 + row % 8 * 4 + col % 8 / 2,
        col / 8 * 4 + row % 16 / 8 * 2 + col % 2);
}

std::string WgmmaCase::name() const {
  std::string out = "n=" + std::to_string(shape.n) + " " + shape.in.name();
  if (shape.in_b) out += std::string(" ") + shape.in_b->name();
  out += std::string(" ") + shape.sum.name() + " swizzle " + std::to_string(swizzle);
  if (registers_a) out += ", a in registers";
  if (shape.a_mn_major) out += ", a along m";
  if (shape.b_mn_major) out += ", b along n";
  if (shape.negate_a) out += ", -a";
  if (shape.negate_b) out += ", -b";
  if (shape.saturate) out += ", saturating";
  if (!accumulate) out += ", fresh sums";
  if (step) out += ", step " + std::to_string(step);
  return out;
}

ScriptModule wgmma_module(const WgmmaCase& c) {
  const DType held = c.shape.sum == f16 ? u32 : c.shape.sum;
  const int count = registers_of_sums(c);
  const Layout32 la = layout_of(c, kRows, c.shape.a_mn_major),
                 lb = layout_of(c, c.shape.n, c.shape.b_mn_major);
  const int bytes_a = c.registers_a ? 2048 : (la.bytes + 1023) / 1024 * 1024,
            bytes_b = (lb.bytes + 1023) / 1024 * 1024;
  ScriptModule m("wgmma");
  m.cuda_kernel("k", [&](Function& f) {
    auto a = f.arg("a", ptr(u8));
    auto b = f.arg("b", ptr(u8));
    auto sums = f.arg("sums", ptr(held));
    f.grid_dim(1);
    f.block_dim(128);
    auto tid = let("tid", threadIdx.x);
    auto tile_a = shared("tile_a", u8, {bytes_a});
    auto tile_b = shared("tile_b", u8, {bytes_b});
    for (auto i : range(bytes_a / 128)) tile_a(i * 128 + tid) = a[i * 128 + tid];
    for (auto i : range(bytes_b / 128)) tile_b(i * 128 + tid) = b[i * 128 + tid];
    fence_proxy_async();
    syncthreads();
    auto acc = registers("acc", held, {count});
    for (int i = 0; i < count; i++) acc(i) = sums[tid * count + i];
    auto desc_b =
        let("desc_b", wgmma_matrix(tile_b.ptr(c.step * 32), {.swizzle = c.swizzle,
                                                             .mn_major = c.shape.b_mn_major,
                                                             .leading = lb.leading,
                                                             .stride = lb.stride}));
    if (c.registers_a) {
      auto words = let("words", reinterpret(a, ptr(u32)));
      auto fragment = let("fragment", load(words + tid * 4, 4));
      wgmma_fence({acc});
      wgmma(acc, fragment, desc_b, c.shape, c.accumulate);
    } else {
      auto desc_a =
          let("desc_a", wgmma_matrix(tile_a.ptr(c.step * 32), {.swizzle = c.swizzle,
                                                               .mn_major = c.shape.a_mn_major,
                                                               .leading = la.leading,
                                                               .stride = la.stride}));
      wgmma_fence({acc});
      wgmma(acc, desc_a, desc_b, c.shape, c.accumulate);
    }
    wgmma_commit();
    wgmma_wait(0, {acc});
    for (int i = 0; i < count; i++) sums[tid * count + i] = acc(i);
  });
  return m;
}

WgmmaData::WgmmaData(const WgmmaCase& c) {
  std::mt19937 random(static_cast<unsigned>(c.shape.n));
  const auto fill = [&](size_t count, int least, int most) {
    std::vector<double> out(count);
    for (double& v : out)
      v = least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    return out;
  };
  const auto numbers_of = [&](size_t count, DType t) {
    if (t == u8) return fill(count, 0, 255);
    return t == i8 ? fill(count, -128, 127) : fill(count, -3, 3);
  };
  const auto depth = static_cast<size_t>(c.depth()), n = static_cast<size_t>(c.shape.n);
  a = numbers_of(kRows * depth, c.shape.in);
  b = numbers_of(n * depth, c.in_b());
  sums = fill(kRows * n, -100, 100);
  if (c.shape.saturate)  // half of them leave the range
    for (size_t i = 0; i < sums.size(); i++)
      sums[i] += i % 2 ? INT32_MAX - 100.0 : INT32_MIN + 100.0;
}

Tensor WgmmaData::bytes_a(const WgmmaCase& c) const {
  if (!c.registers_a) return bytes_of(c, a, c.shape.in, kRows, c.shape.a_mn_major);
  const int size = element_bytes(c.shape.in), each = 4 / size, depth = c.depth();
  std::vector<uint8_t> out(2048);
  for (int row = 0; row < kRows; row++)
    for (int k = 0; k < depth; k++) {
      const int thread = row / 16 * 32 + row % 8 * 4 + k % (depth / 2) / each;
      const int reg = row % 16 / 8 + 2 * (k / (depth / 2));
      const uint32_t v = encode(a[static_cast<size_t>(row * depth + k)], c.shape.in);
      std::memcpy(&out[static_cast<size_t>((thread * 4 + reg) * 4 + k % each * size)], &v,
                  static_cast<size_t>(size));
    }
  return from_vector<uint8_t>(out, {2048});
}
Tensor WgmmaData::bytes_b(const WgmmaCase& c) const {
  return bytes_of(c, b, c.in_b(), c.shape.n, c.shape.b_mn_major);
}

/// Sums, 64 x n, as the 128 threads hold them.
Tensor registers_with(const WgmmaCase& c, const std::vector<double>& sums) {
  const DType held = c.shape.sum == f16 ? u32 : c.shape.sum;
  const int count = registers_of_sums(c);
  Tensor out = zeros({128 * count}, held);
  each_sum(c, [&](int row, int col, int thread, int i) {
    const double v = sums[static_cast<size_t>(row * c.shape.n + col)];
    uint8_t* to = data_of(out);
    if (c.shape.sum == f16) {
      const auto bits = f32_to_f16(static_cast<float>(v));
      std::memcpy(to + thread * count * 4 + i * 2, &bits, 2);
    } else if (c.shape.sum == f32) {
      const auto f = static_cast<float>(v);
      std::memcpy(to + (thread * count + i) * 4, &f, 4);
    } else {
      const auto w = static_cast<int32_t>(v);
      std::memcpy(to + (thread * count + i) * 4, &w, 4);
    }
  });
  return out;
}

std::vector<double> WgmmaData::product(const WgmmaCase& c) const {
  const int n = c.shape.n, depth = c.depth();
  std::vector<double> out = c.accumulate ? sums : std::vector<double>(sums.size());
  const double sign = c.shape.negate_a == c.shape.negate_b ? 1 : -1;
  for (int i = 0; i < kRows; i++)
    for (int j = 0; j < n; j++) {
      double& sum = out[static_cast<size_t>(i * n + j)];
      for (int k = 0; k < depth; k++)
        sum += sign * a[static_cast<size_t>(i * depth + k)] * b[static_cast<size_t>(j * depth + k)];
      if (c.shape.saturate) sum = std::clamp<double>(sum, INT32_MIN, INT32_MAX);
    }
  return out;
}

std::vector<WgmmaCase> wgmma_cases() {
  std::vector<WgmmaCase> out;
  for (int n = 8; n <= 256; n += 8) out.push_back({{.n = n}});
  struct Types {
    DType in, sum;
  };
  for (const Types& t : {Types{bf16, f32},
                         {f16, f16},
                         {tf32, f32},
                         {f8e4m3, f32},
                         {f8e5m2, f32},
                         {f8e4m3, f16},
                         {f8e5m2, f16},
                         {i8, i32},
                         {u8, i32}})
    for (int n : {8, 96, 256})
      for (bool registers : {false, true})
        out.push_back({.shape = {.n = n, .in = t.in, .sum = t.sum}, .registers_a = registers});
  for (int swizzle : {0, 32, 64, 128})
    for (int major = 0; major < 4; major++) {
      const bool along_m = major & 1, along_n = major & 2;
      out.push_back(
          {.shape = {.n = 64, .a_mn_major = along_m, .b_mn_major = along_n}, .swizzle = swizzle});
    }
  out.push_back({.shape = {.n = 256, .b_mn_major = true}});
  out.push_back({.shape = {.n = 64, .in = bf16, .b_mn_major = true}, .registers_a = true});
  for (int step : {1, 2, 3}) out.push_back({.shape = {.n = 40}, .step = step});
  out.push_back({.shape = {.n = 40}, .swizzle = 64, .step = 1});
  out.push_back({.shape = {.n = 72}, .accumulate = false});
  out.push_back({.shape = {.n = 72}, .registers_a = true, .accumulate = false});
  // Two types of operands: every n.
  for (int n = 8; n <= 256; n += 8)
    for (bool first : {true, false}) {
      const DType e4 = f8e4m3, e5 = f8e5m2;
      for (DType sum : {f32, f16})
        if (sum == f32 || n % 64 == 8)
          out.push_back(
              {.shape = {.n = n, .in = first ? e4 : e5, .in_b = first ? e5 : e4, .sum = sum},
               .registers_a = n % 32 == 0});
      if (n <= 24 || n % 16 == 0)
        out.push_back(
            {.shape = {.n = n, .in = first ? i8 : u8, .in_b = first ? u8 : i8, .sum = i32},
             .registers_a = n % 32 == 0});
    }
  for (int signs = 1; signs < 4; signs++)
    for (DType t : {f16, tf32, f8e4m3})
      out.push_back(
          {.shape = {.n = 16, .in = t, .negate_a = signs % 2 != 0, .negate_b = signs / 2 != 0}});
  for (DType t : {i8, u8})
    out.push_back({.shape = {.n = 32, .in = t, .sum = i32, .saturate = true}});
  return out;
}

}  // namespace

void add_wgmma(Cases& cases) {
  for (const WgmmaCase& c : wgmma_cases()) {
    const WgmmaData data(c);
    cases.push_back(whole("wgmma", c.name(), wgmma_module(c), {data.bytes_a(c), data.bytes_b(c)},
                          registers_with(c, data.sums),
                          registers_with(c, data.product(c)).to_doubles()));
    cases.back().compiled = c.shape.n == 8;
  }
}

}  // namespace hidet::primitives
