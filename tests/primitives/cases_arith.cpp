// cases_arith.cpp - bits of integers, packed halves, fast approximations.
#include "primitives/cases.h"

#include <algorithm>
#include <limits>

namespace hidet::primitives {
using namespace lang;

namespace {

const std::vector<double> kWords{
    0,          1,           2,        3,     0x80000000u, 0xffffffffu, 0x12345678u, 0x00ff00ffu,
    0x7fffffff, 0xdeadbeefu, 1u << 16, 65535, 42,          7,           0xf0f0f0f0u, 100};
uint32_t word(double v) { return static_cast<uint32_t>(v); }
uint64_t joined(double low, double high) { return uint64_t{word(high)} << 32 | word(low); }
/// kWords from another place on.
std::vector<double> rotated(size_t by) {
  std::vector<double> out;
  for (size_t i = 0; i < kWords.size(); i++) out.push_back(kWords[(i + by) % kWords.size()]);
  return out;
}

// Bit by bit, as the manual says it.
int ones(uint64_t v) {
  int n = 0;
  for (; v; v >>= 1) n += static_cast<int>(v & 1);
  return n;
}
int zeros_above(uint64_t v, int bits) {
  int n = 0;
  for (int i = bits - 1; i >= 0 && !(v >> i & 1); i--) n++;
  return n;
}
int lowest(uint64_t v) {
  for (int i = 0; i < 64; i++)
    if (v >> i & 1) return i + 1;
  return 0;
}
uint64_t backwards(uint64_t v, int bits) {
  uint64_t r = 0;
  for (int i = 0; i < bits; i++)
    if (v >> i & 1) r |= uint64_t{1} << (bits - 1 - i);
  return r;
}
template <class Byte>
int64_t dot(double a, double b, double c) {
  int64_t sum = static_cast<int64_t>(c);
  for (int i = 0; i < 4; i++)
    sum += static_cast<int64_t>(static_cast<Byte>(word(a) >> 8 * i)) *
           static_cast<Byte>(word(b) >> 8 * i);
  return sum;
}

void add_bits(Cases& cases) {
  struct Row {
    const char* name;
    Value (*record)(const Located&);
    int64_t (*f)(uint64_t, int bits);
    bool same;
  };
  const Row rows[] = {
      {"popc", popc, [](uint64_t v, int) -> int64_t { return ones(v); }, false},
      {"clz", clz, [](uint64_t v, int bits) -> int64_t { return zeros_above(v, bits); }, false},
      {"ffs", ffs, [](uint64_t v, int) -> int64_t { return lowest(v); }, false},
      {"brev", brev, [](uint64_t v, int bits) { return static_cast<int64_t>(backwards(v, bits)); },
       true},
  };
  for (const Row& row : rows)
    for (const DType t : {u32, u64, i32, i64}) {
      const int bits = t.bits();
      std::vector<double> in;
      for (const double w : kWords) {
        const double wide = bits == 64 ? w * 1048576.0 : w;
        in.push_back(t == i32 ? static_cast<double>(static_cast<int32_t>(word(w))) : wide);
      }
      cases.push_back(elementwise(
          {.row = std::string(row.name) + (bits == 64 ? "_u64" : "_u32"),
           .name = t.name(),
           .out = !row.same    ? i32
                  : bits == 64 ? u64
                               : u32,
           .inputs = {numbers(t, in)},
           .record = [&](const auto& v) { return row.record(v[0]); },
           .expect =
               [&](const auto& v) {
                 const auto x = static_cast<uint64_t>(static_cast<int64_t>(v[0]));
                 const int64_t y = row.f(bits == 64 ? x : static_cast<uint32_t>(x), bits);
                 return row.same ? static_cast<double>(static_cast<uint64_t>(y))
                                 : static_cast<double>(y);
               }}));
    }
  const Tensor a = numbers(u32, kWords), b = numbers(u32, rotated(5)),
               c = numbers(u32, rotated(11));
  std::vector<double> signed_words;
  for (const double w : rotated(3))
    signed_words.push_back(static_cast<double>(static_cast<int32_t>(word(w))));
  const Tensor s = numbers(i32, signed_words);
  const auto three = [&](const char* row,
                         Value (*record)(const Located&, const Located&, const Located&),
                         double (*f)(double, double, double)) {
    cases.push_back(elementwise({.row = row,
                                 .out = u32,
                                 .inputs = {a, b, c},
                                 .record = [&](const auto& v) { return record(v[0], v[1], v[2]); },
                                 .expect = [&](const auto& v) { return f(v[0], v[1], v[2]); }}));
  };
  three("byte_perm", byte_perm, [](double x, double y, double selector) {
    uint32_t r = 0;
    for (int i = 0; i < 4; i++)
      r |= static_cast<uint32_t>(joined(x, y) >> 8 * (word(selector) >> 4 * i & 7) & 255) << 8 * i;
    return static_cast<double>(r);
  });
  three("funnel_shift_left", funnel_shift_left, [](double x, double y, double n) {
    return static_cast<double>(static_cast<uint32_t>(joined(x, y) << (word(n) % 32) >> 32));
  });
  three("funnel_shift_right", funnel_shift_right, [](double x, double y, double n) {
    return static_cast<double>(static_cast<uint32_t>(joined(x, y) >> (word(n) % 32)));
  });
  three("dp4a_u32", dp4a, [](double x, double y, double z) {
    return static_cast<double>(static_cast<uint32_t>(dot<uint8_t>(x, y, z)));
  });
  cases.push_back(elementwise({.row = "dp4a_i32",
                               .out = i32,
                               .inputs = {a, b, s},
                               .record = [](const auto& v) { return dp4a(v[0], v[1], v[2]); },
                               .expect =
                                   [](const auto& v) {
                                     return static_cast<double>(
                                         static_cast<int32_t>(dot<int8_t>(v[0], v[1], v[2])));
                                   }}));
  cases.push_back(elementwise({.row = "mulhi_u32",
                               .out = u32,
                               .inputs = {a, b},
                               .record = [](const auto& v) { return mulhi(v[0], v[1]); },
                               .expect =
                                   [](const auto& v) {
                                     return static_cast<double>(uint64_t{word(v[0])} * word(v[1]) >>
                                                                32);
                                   }}));
  // Numbers that doubles hold exactly, and whose upper half doubles do, too.
  const std::vector<double> wide =
      sequence(24, [](int i) { return std::ldexp(i * 37 % 101 + 1, 40 + i % 14); });
  const Tensor u = numbers(u64, wide), l = numbers(i64, sequence(24, [&](int i) {
                                                     return i % 2 ? -wide[static_cast<size_t>(i)]
                                                                  : wide[static_cast<size_t>(i)];
                                                   }));
  cases.push_back(elementwise(
      {.row = "mulhi_u64",
       .out = u64,
       .inputs = {u, u},
       .record = [](const auto& v) { return mulhi(v[0], v[1]); },
       .expect = [](const auto& v) { return std::floor(std::ldexp(v[0] * v[1], -64)); }}));
  cases.push_back(elementwise(
      {.row = "mulhi_i64",
       .out = i64,
       .inputs = {l, numbers(i64, wide)},
       .record = [](const auto& v) { return mulhi(v[0], v[1]); },
       .expect = [](const auto& v) { return std::floor(std::ldexp(v[0] * v[1], -64)); }}));
  cases.push_back(elementwise(
      {.row = "mulhi_i32",
       .out = i32,
       .inputs = {s, numbers(i32, std::vector<double>(signed_words.rbegin(), signed_words.rend()))},
       .record = [](const auto& v) { return mulhi(v[0], v[1]); },
       .expect =
           [](const auto& v) {
             return static_cast<double>(static_cast<int64_t>(v[0]) * static_cast<int64_t>(v[1]) >>
                                        32);
           }}));
}

void add_packed(Cases& cases) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> x = sequence(32, [](int i) { return i * 0.375 - 5; }),
                      y = sequence(32, [](int i) { return 3 - i * 0.15625; }),
                      z = sequence(32, [](int i) { return i * i * 0.0625; });
  x[3] = nan, y[4] = nan, x[6] = HUGE_VAL;
  x[7] = 0.0, y[7] = -0.0, x[8] = -0.0, y[8] = 0.0, x[9] = y[9] = -0.0, x[10] = y[10] = 0.0;
  struct Row {
    const char* row;
    Value (*two)(const Located&, const Located&);
    double (*f)(double, double, double);
  };
  const Row rows[] = {
      {"packed_add", packed_add, [](double a, double b, double) { return a + b; }},
      {"packed_sub", packed_sub, [](double a, double b, double) { return a - b; }},
      {"packed_mul", packed_mul, [](double a, double b, double) { return a * b; }},
      {"packed_min", packed_min,
       [](double a, double b, double) {
         return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
       }},
      {"packed_max", packed_max,
       [](double a, double b, double) {
         return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
       }},
      {"packed_fma", nullptr, [](double a, double b, double c) { return std::fma(a, b, c); }},
      {"packed_fma_relu", nullptr,
       [](double a, double b, double c) {
         const double v = std::fma(a, b, c);
         return v < 0 ? 0 : v;
       }},
  };
  for (const DType t : {f16, bf16})
    for (const Row& row : rows)
      cases.push_back(elementwise(
          {.row = row.row,
           .name = t.name(),
           .out = t,
           .inputs = {numbers(t, x), numbers(t, y), numbers(t, z)},
           .record =
               [&](const auto& v) {
                 if (row.two) return row.two(v[0], v[1]);
                 return std::string(row.row) == "packed_fma" ? packed_fma(v[0], v[1], v[2])
                                                             : packed_fma_relu(v[0], v[1], v[2]);
               },
           .expect =
               [&](const auto& v) { return numbers(t, {row.f(v[0], v[1], v[2])}).to_doubles()[0]; },
           .lanes = 2}));
}

/// The sign of the lesser and of the larger of two zeros, which numbers do not show.
void add_zeros(Cases& cases) {
  for (const DType t : {f16, bf16})
    for (const bool least : {true, false})
      cases.push_back(kernel(
          {.row = least ? "packed_min" : "packed_max",
           .name = std::string("zeros ") + t.name(),
           .threads = 2,
           .inputs = {numbers(t, {0.0, -0.0, 0.0, -0.0}), numbers(t, {0.0, 0.0, -0.0, -0.0})},
           .output = zeros({4}, u16),
           .body =
               [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                 const auto pair = [&](size_t k) { return load(in[k] + threadIdx.x * 2, 2); };
                 const Value r =
                     least ? packed_min(pair(0), pair(1)) : packed_max(pair(0), pair(1));
                 store(reinterpret(out, ptr(u32)) + threadIdx.x, reinterpret(r, Type(u32)));
               },
           .expected = least ? std::vector<double>{0, 32768, 32768, 32768}
                             : std::vector<double>{0, 0, 0, 32768}}));
}

void add_packed_of_one(Cases& cases) {
  struct Row {
    const char* row;
    Value (*record)(const Located&);
    double (*f)(double);
    bool exact;
  };
  const Row rows[] = {
      {"packed_neg", packed_neg, [](double x) { return -x; }, true},
      {"packed_abs", packed_abs, [](double x) { return std::fabs(x); }, true},
      {"packed_fast_exp2", packed_fast_exp2, [](double x) { return std::exp2(x); }, false},
      {"packed_fast_tanh", packed_fast_tanh, [](double x) { return std::tanh(x); }, false},
  };
  for (const DType t : {f16, bf16})
    for (const Row& row : rows) {
      // Two units in the last place.
      const double near = row.exact ? 0 : t == f16 ? 2e-3 : 1.6e-2;
      cases.push_back(elementwise(
          {.row = row.row,
           .name = t.name(),
           .out = t,
           .inputs = {numbers(t, sequence(40, [](int i) { return i * 0.21875 - 4; }))},
           .record = [&](const auto& v) { return row.record(v[0]); },
           .expect = [&](const auto& v) { return numbers(t, {row.f(v[0])}).to_doubles()[0]; },
           .lanes = 2,
           .gpu = {near, near / 16}}));
    }
}

void add_fast(Cases& cases) {
  struct Row {
    const char* row;
    Value (*record)(const Located&);
    double (*f)(double);
    double error;  ///< of the approximation
  };
  const Row rows[] = {
      {"fast_exp", fast_exp, [](double x) { return std::exp(x); }, 1e-6},
      {"fast_exp2", fast_exp2, [](double x) { return std::exp2(x); }, 1e-6},
      {"fast_exp10", fast_exp10, [](double x) { return std::pow(10, x); }, 2e-6},
      {"fast_log", fast_log, [](double x) { return std::log(x); }, 1e-6},
      {"fast_log2", fast_log2, [](double x) { return std::log2(x); }, 1e-6},
      {"fast_log10", fast_log10, [](double x) { return std::log10(x); }, 1e-6},
      {"fast_sin", fast_sin, [](double x) { return std::sin(x); }, 1e-6},
      {"fast_cos", fast_cos, [](double x) { return std::cos(x); }, 1e-6},
      {"saturate", saturate, [](double x) { return std::fmin(std::fmax(x, 0), 1); }, 0},
      {"fast_rsqrt", fast_rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1e-6},
      {"fast_sqrt", fast_sqrt, [](double x) { return std::sqrt(x); }, 1e-6},
      {"fast_rcp", fast_rcp, [](double x) { return 1 / x; }, 1e-6},
      {"fast_tanh", fast_tanh, [](double x) { return std::tanh(x); }, 1e-3},
  };
  const Tensor x = numbers(f32, sequence(40, [](int i) { return 0.07 + i * 0.075; })),
               y = numbers(f32, sequence(40, [](int i) { return 4.5 - i * 0.21; }));
  for (const Row& row : rows)
    cases.push_back(elementwise({.row = row.row,
                                 .out = f32,
                                 .inputs = {x},
                                 .record = [&](const auto& v) { return row.record(v[0]); },
                                 .expect = [&](const auto& v) { return row.f(v[0]); },
                                 .value = {1e-6, 1e-7},
                                 .gpu = {row.error, row.error}}));
  cases.push_back(
      elementwise({.row = "fast_tan",
                   .out = f32,
                   .inputs = {numbers(f32, sequence(40, [](int i) { return i * 0.07 - 1.4; }))},
                   .record = [](const auto& v) { return fast_tan(v[0]); },
                   .expect = [](const auto& v) { return std::tan(v[0]); },
                   .value = {1e-6, 1e-7},
                   .gpu = {1e-5, 1e-6}}));
  cases.push_back(elementwise(
      {.row = "saturate",
       .name = "limits",
       .out = f32,
       .inputs = {numbers(f32, {-HUGE_VAL, -1, -0.0, 0.25, 1, 1.5, HUGE_VAL,
                                std::numeric_limits<double>::quiet_NaN()})},
       .record = [](const auto& v) { return saturate(v[0]); },
       .expect =
           [](const auto& v) { return std::isnan(v[0]) ? 0 : std::fmin(std::fmax(v[0], 0), 1); }}));
  cases.push_back(elementwise({.row = "fast_div",
                               .out = f32,
                               .inputs = {y, x},
                               .record = [](const auto& v) { return fast_div(v[0], v[1]); },
                               .expect = [](const auto& v) { return v[0] / v[1]; },
                               .value = {1e-6},
                               .gpu = {1e-6}}));
  cases.push_back(elementwise({.row = "fast_pow",
                               .out = f32,
                               .inputs = {x, y},
                               .record = [](const auto& v) { return fast_pow(v[0], v[1]); },
                               .expect = [](const auto& v) { return std::pow(v[0], v[1]); },
                               .value = {1e-6},
                               .gpu = {1e-5}}));
}

}  // namespace

namespace {

/// Quotients, remainders, floored ones and what overflows, of numbers near the ends of t, against 128-bit arithmetic.
void add_quotients(Cases& cases) {
  for (const DType t : {i32, i64, u32, u64}) {
    const auto fit = [t](double v) {
      return std::clamp(v, static_cast<double>(t.min_int()),
                        t.bits() == 64 ? std::ldexp(1, 62) : static_cast<double>(t.max_int()));
    };
    std::vector<double> a, b, expected;
    for (const double x : {0.0, 1.0, 7.0, 0x1p31, 0x1p31 - 1, 0x1p32 + 12345, 0x1p62 + 0x1p30, 1e9})
      for (const double y : {0.0, 1.0, 2.0, 3.0, 48271.0, 0x1p31 - 1, 0x1p40 + 1})
        for (const double sign : {1.0, -1.0}) {
          a.push_back(fit(sign * x)), b.push_back(fit(y));
          a.push_back(fit(x)), b.push_back(fit(sign * y));
          a.push_back(t.is_signed() ? static_cast<double>(t.min_int()) : fit(x)),
              b.push_back(fit(-y));
        }
    const auto n = static_cast<int>(a.size());
    const auto results = [&](size_t i) {
      const auto x = static_cast<__int128>(a[i]), y = static_cast<__int128>(b[i]);
      const __int128 q = y == 0 ? 0 : x / y, r = y == 0 ? 0 : x % y;
      const bool down = r != 0 && (r < 0) != (y < 0);
      std::vector<double> out;
      for (const __int128 v : {q, r, q - down, down ? r + y : r, x + y, x - y, x * 3}) {
        const auto low = static_cast<uint64_t>(v);
        out.push_back(t == i32   ? static_cast<int32_t>(low)
                      : t == u32 ? static_cast<double>(static_cast<uint32_t>(low))
                      : t == i64 ? static_cast<double>(static_cast<int64_t>(low))
                                 : static_cast<double>(low));
      }
      return out;
    };
    const size_t kinds = results(0).size();
    for (size_t k = 0; k < kinds; k++)
      for (size_t i = 0; i < a.size(); i++) expected.push_back(results(i)[k]);
    ScriptModule m("quotients");
    m.cuda_kernel("quotients", [&](Function& f) {
      auto x = f.arg("x", ptr(t)), y = f.arg("y", ptr(t)), out = f.arg("out", ptr(t));
      f.grid_dim((n + 63) / 64);
      f.block_dim(64);
      auto i = let("i", blockIdx.x * 64 + threadIdx.x);
      if (auto _ = when(i < n)) {
        auto p = let("p", x[i]), q = let("q", y[i]);
        const Value all[] = {p / q, p % q, floordiv(p, q), floormod(p, q), p + q, p - q, p * 3};
        for (size_t k = 0; k < kinds; k++) out[i + static_cast<int>(k) * n] = all[k];
      }
    });
    cases.push_back(whole("thread_idx_x", std::string("quotients of ") + t.name(), m,
                          {numbers(t, a), numbers(t, b)},
                          zeros({static_cast<int64_t>(expected.size())}, t), expected));
  }
}
}  // namespace

void add_arith(Cases& cases) {
  add_quotients(cases);
  add_bits(cases);
  add_packed(cases);
  add_packed_of_one(cases);
  add_zeros(cases);
  add_fast(cases);
}

}  // namespace hidet::primitives
