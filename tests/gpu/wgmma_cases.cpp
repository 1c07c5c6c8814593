// wgmma_cases.cpp - layouts of matrices, fragments and sums by PTX's manual; the kernels that use them.
#include "wgmma_cases.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace hidet::lang;
using hidet::DType;
using hidet::Tensor;

namespace {

constexpr int kRows = 64;

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

Tensor bytes_of(const WgmmaCase& c, const std::vector<double>& m, int rows, bool mn_major) {
  const int bytes = (layout_of(c, rows, mn_major).bytes + 1023) / 1024 * 1024;
  std::vector<uint8_t> out(static_cast<size_t>(bytes));
  for (int r = 0; r < rows; r++)
    for (int k = 0; k < c.depth(); k++) {
      const uint32_t v = encode(m[static_cast<size_t>(r * c.depth() + k)], c.shape.in);
      std::memcpy(&out[static_cast<size_t>(place(c, rows, mn_major, r, k))], &v,
                  c.shape.in.bytes());
    }
  return hidet::from_vector<uint8_t>(out, {bytes});
}

int registers_of_sums(const WgmmaCase& c) {
  return c.shape.n / (c.shape.sum == hidet::f16 ? 4 : 2);
}

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

}  // namespace

uint32_t encode(double v, DType t) {
  const auto f = static_cast<float>(v);
  uint32_t word;
  std::memcpy(&word, &f, 4);
  if (t == hidet::f16) return hidet::f32_to_f16(f);
  if (t == hidet::bf16) return word >> 16;
  if (t == hidet::tf32) return word | 0xfff;  // bits that the hardware ignores
  if (t == hidet::f8e5m2) return hidet::f32_to_f16(f) >> 8;
  if (t == hidet::f8e4m3) {
    if (v == 0) return 0;
    int exponent;
    const double m = std::frexp(std::fabs(v), &exponent);  // 0.5 <= m < 1
    return (v < 0 ? 128u : 0u) | static_cast<uint32_t>(exponent + 6) << 3 |
           (static_cast<uint32_t>(m * 16) & 7);
  }
  return static_cast<uint32_t>(static_cast<int32_t>(v)) & 0xff;
}

std::string WgmmaCase::name() const {
  std::string out = "wgmma n=" + std::to_string(shape.n) + " " + shape.in.name() + " " +
                    shape.sum.name() + " swizzle " + std::to_string(swizzle);
  if (registers_a) out += ", a in registers";
  if (shape.a_mn_major) out += ", a along m";
  if (shape.b_mn_major) out += ", b along n";
  if (!accumulate) out += ", fresh sums";
  if (step) out += ", step " + std::to_string(step);
  return out;
}

ScriptModule wgmma_module(const WgmmaCase& c) {
  const DType held = c.shape.sum == hidet::f16 ? hidet::u32 : c.shape.sum;
  const int count = registers_of_sums(c);
  const Layout32 la = layout_of(c, kRows, c.shape.a_mn_major),
                 lb = layout_of(c, c.shape.n, c.shape.b_mn_major);
  const int bytes_a = c.registers_a ? 2048 : (la.bytes + 1023) / 1024 * 1024,
            bytes_b = (lb.bytes + 1023) / 1024 * 1024;
  ScriptModule m("wgmma");
  m.cuda_kernel("k", [&](Function& f) {
    auto a = f.arg("a", ptr(hidet::u8));
    auto b = f.arg("b", ptr(hidet::u8));
    auto sums = f.arg("sums", ptr(held));
    f.grid_dim(1);
    f.block_dim(128);
    auto tid = let("tid", threadIdx.x);
    auto tile_a = shared("tile_a", hidet::u8, {bytes_a});
    auto tile_b = shared("tile_b", hidet::u8, {bytes_b});
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
      auto words = let("words", reinterpret(a, ptr(hidet::u32)));
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
  const bool wide = c.shape.sum == hidet::i32;
  const auto fill = [&](size_t count, int least, int most) {
    std::vector<double> out(count);
    for (double& v : out)
      v = least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    return out;
  };
  const auto depth = static_cast<size_t>(c.depth()), n = static_cast<size_t>(c.shape.n);
  const int least = c.shape.in == hidet::u8 ? 0
                    : wide                  ? -128
                                            : -3,
            most = c.shape.in == hidet::u8 ? 255
                   : wide                  ? 127
                                           : 3;
  a = fill(kRows * depth, least, most);
  b = fill(n * depth, least, most);
  sums = fill(kRows * n, -100, 100);
}

Tensor WgmmaData::bytes_a(const WgmmaCase& c) const {
  if (!c.registers_a) return bytes_of(c, a, kRows, c.shape.a_mn_major);
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
  return hidet::from_vector<uint8_t>(out, {2048});
}
Tensor WgmmaData::bytes_b(const WgmmaCase& c) const {
  return bytes_of(c, b, c.shape.n, c.shape.b_mn_major);
}

Tensor WgmmaData::registers(const WgmmaCase& c) const {
  const DType held = c.shape.sum == hidet::f16 ? hidet::u32 : c.shape.sum;
  const int count = registers_of_sums(c);
  Tensor out = hidet::zeros({128 * count}, held);
  each_sum(c, [&](int row, int col, int thread, int i) {
    const double v = sums[static_cast<size_t>(row * c.shape.n + col)];
    uint8_t* to = data_of(out);
    if (c.shape.sum == hidet::f16) {
      const auto bits = hidet::f32_to_f16(static_cast<float>(v));
      std::memcpy(to + thread * count * 4 + i * 2, &bits, 2);
    } else if (c.shape.sum == hidet::f32) {
      const auto f = static_cast<float>(v);
      std::memcpy(to + (thread * count + i) * 4, &f, 4);
    } else {
      const auto w = static_cast<int32_t>(v);
      std::memcpy(to + (thread * count + i) * 4, &w, 4);
    }
  });
  return out;
}

std::vector<double> WgmmaData::sums_of(const WgmmaCase& c, const Tensor& registers) {
  const int count = registers_of_sums(c);
  const uint8_t* from = data_of(registers);
  std::vector<double> out(static_cast<size_t>(kRows * c.shape.n));
  each_sum(c, [&](int row, int col, int thread, int i) {
    double& v = out[static_cast<size_t>(row * c.shape.n + col)];
    if (c.shape.sum == hidet::f16) {
      uint16_t bits;
      std::memcpy(&bits, from + thread * count * 4 + i * 2, 2);
      v = hidet::f16_to_f32(bits);
    } else if (c.shape.sum == hidet::f32) {
      float f;
      std::memcpy(&f, from + (thread * count + i) * 4, 4);
      v = f;
    } else {
      int32_t w;
      std::memcpy(&w, from + (thread * count + i) * 4, 4);
      v = w;
    }
  });
  return out;
}

std::vector<double> WgmmaData::product(const WgmmaCase& c) const {
  const int n = c.shape.n, depth = c.depth();
  std::vector<double> out = c.accumulate ? sums : std::vector<double>(sums.size());
  for (int i = 0; i < kRows; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < depth; k++)
        out[static_cast<size_t>(i * n + j)] +=
            a[static_cast<size_t>(i * depth + k)] * b[static_cast<size_t>(j * depth + k)];
  return out;
}

std::vector<WgmmaCase> wgmma_cases() {
  using hidet::bf16, hidet::f16, hidet::f32, hidet::f8e4m3, hidet::f8e5m2, hidet::i32, hidet::i8,
      hidet::tf32, hidet::u8;
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
  return out;
}
