// amx_test.cpp - x86's tile registers: what products of bf16 give, to the bit, in the simulator and, where the CPU has them, compiled; what is
// refused.
#include <hidet/runtime/cpu_level.h>

#include <cmath>
#include <cstring>
#include <random>

#include "lang/both.h"
#include "lang/refusal.h"

namespace hidet::lang {
namespace {

using testing::HasSubstr;
constexpr const char* kTarget = "x86-64-v4+amx";
bool has_tiles() { return CpuTarget::parse(kTarget).runs_on(host_cpu_target()); }

float from_bits(uint32_t bits) {
  float v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
uint32_t to_bits(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}
float flushed(float v) { return std::fabs(v) < 0x1p-126f ? std::copysign(0.f, v) : v; }

using Words = std::vector<int32_t>;
Tensor tensor_of(const Words& words) {
  return from_vector(words, {static_cast<int64_t>(words.size())});
}

/// Registers of words whose halves are bf16 of every kind.
Words random_words(std::mt19937& random, bool finite) {
  Words out(256);
  for (int32_t& w : out) {
    uint32_t word = random();
    for (int half = 0; half < 2; half++) {
      const uint32_t exponent = word >> (16 * half) >> 7 & 255;
      // Mostly near one; some subnormal, some as they came.
      const uint32_t wanted = random() % 8 == 0   ? 0
                              : random() % 8 == 0 ? exponent
                                                  : 118 + exponent % 16;
      word ^= (exponent ^ (finite && wanted == 255 ? 127 : wanted)) << 7 << (16 * half);
    }
    std::memcpy(&w, &word, sizeof w);
  }
  return out;
}

Words expected_sums(const Words& start, const Words& a, const Words& b) {
  Words out(256);
  const auto half = [](int32_t word, int h) {
    const auto bits = static_cast<uint32_t>(word);
    return flushed(from_bits(h ? bits & 0xffff0000u : bits << 16));
  };
  for (size_t i = 0; i < 16; i++)
    for (size_t j = 0; j < 16; j++) {
      float even = 0, odd = 0;
      for (size_t k = 0; k < 16; k++) {
        even = flushed(std::fma(half(a[i * 16 + k], 0), half(b[k * 16 + j], 0), even));
        odd = flushed(std::fma(half(a[i * 16 + k], 1), half(b[k * 16 + j], 1), odd));
      }
      const float sum = flushed(flushed(from_bits(static_cast<uint32_t>(start[i * 16 + j]))) +
                                flushed(even + odd));
      out[i * 16 + j] = static_cast<int32_t>(to_bits(sum));
    }
  return out;
}

/// out = start + a * b, then 0 + b * a beside it.
ScriptModule two_products() {
  ScriptModule m("tiles");
  m.public_func("launch", [](Function& f) {
    auto start = f.arg("start", ptr(i32)), a = f.arg("a", ptr(i32)), b = f.arg("b", ptr(i32)),
         out = f.arg("out", ptr(i32));
    amx_config();
    amx_load(0, start, 64);
    amx_load(3, a, 64);
    amx_load(7, b, 64);
    amx_dot_bf16(0, 3, 7);
    amx_zero(1);
    amx_dot_bf16(1, 7, 3);
    amx_store(0, out, 128);
    amx_store(1, out + 16, 128);
    amx_release();
  });
  return m;
}

void expect_words(const Tensor& got, const Words& left, const Words& right, const char* where) {
  const std::vector<double> words = got.to_doubles();
  int shown = 0;
  for (size_t i = 0; i < 512 && shown < 5; i++) {
    const int32_t wanted = i % 32 < 16 ? left[i / 32 * 16 + i % 16] : right[i / 32 * 16 + i % 16];
    const float x = from_bits(static_cast<uint32_t>(wanted)),
                y = from_bits(static_cast<uint32_t>(static_cast<int32_t>(words[i])));
    if (std::isnan(x) ? std::isnan(y) : to_bits(x) == to_bits(y)) continue;
    ADD_FAILURE() << where << ", word " << i << ": " << y << ", expected " << x;
    shown++;
  }
}

TEST(TileRegisters, ProductsToTheBit) {
  std::mt19937 random(7);
  const ScriptModule m = two_products();
  std::optional<CompiledModule> built;
  if (has_tiles()) built = m.build({.cpu_target = kTarget});
  for (int round = 0; round < 40; round++) {
    const Words a = random_words(random, round % 2), b = random_words(random, round % 2);
    Words start = random_words(random, true);
    const Words left = expected_sums(start, a, b), right = expected_sums(Words(256, 0), b, a);
    const Tensor out = zeros({512}, i32), sums = tensor_of(start), x = tensor_of(a),
                 y = tensor_of(b);
    m.simulate("launch", sums, x, y, out);
    expect_words(out, left, right, "in the simulator");
    if (!built) continue;
    const Tensor compiled = zeros({512}, i32);
    const std::vector<CallArg> args{sums, x, y, compiled};
    built->call(args);
    expect_words(compiled, left, right, "on the CPU");
  }
}

TEST(TileRegisters, CompiledForAMachineThatHasThem) {
  const ModuleData data = compile_module(two_products().module(), {.cpu_target = kTarget});
  EXPECT_EQ(data.target, kTarget);
  EXPECT_GT(data.code.size(), 0u);
}

TEST(TileRegisters, Refused) {
  EXPECT_THAT(body_refusal([](Function&, const Handle& x, const Value&) { amx_load(8, x, 64); }),
              HasSubstr("amx_load: tile register 8; from 0 to 7"));
  EXPECT_THAT(body_refusal([](Function&, const Handle&, const Value&) { amx_zero(-1); }),
              HasSubstr("amx_zero: tile register -1; from 0 to 7"));
  EXPECT_THAT(body_refusal([](Function&, const Handle& x, const Value&) { amx_store(9, x, 64); }),
              HasSubstr("amx_store: tile register 9; from 0 to 7"));
  EXPECT_THAT(body_refusal([](Function&, const Handle&, const Value&) { amx_dot_bf16(0, 1, 8); }),
              HasSubstr("amx_dot_bf16: tile register 8; from 0 to 7"));
  try {
    (void)two_products().build({.cpu_target = "x86-64-v4"});
    ADD_FAILURE() << "built for a CPU without tile registers";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the primitive 'amx_config' is not available on x86-64-v4; it "
                                    "needs a target with +amx"));
    EXPECT_THAT(e.what(), HasSubstr("amx_test.cpp:"));
  }
}

/// The message of a run in the simulator.
std::string simulated(const std::function<void(const Handle&)>& body, const Tensor& x) {
  ScriptModule m("tiles");
  m.public_func("launch", [&](Function& f) { body(f.arg("x", ptr(f32))); });
  try {
    m.simulate("launch", x);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(TileRegisters, FaultsThatTheSimulatorFinds) {
  EXPECT_THAT(simulated([](const Handle&) { amx_zero(0); }, zeros({256})),
              HasSubstr("tile registers are used before amx_config"));
  EXPECT_THAT(simulated(
                  [](const Handle& x) {
                    amx_config();
                    amx_load(0, x, 64);
                    amx_release();
                  },
                  zeros({255})),
              HasSubstr("amx_load's read outside 'x'"));
  EXPECT_THAT(simulated(
                  [](const Handle& x) {
                    amx_config();
                    amx_zero(0);
                    amx_store(0, x, 68);
                    amx_release();
                  },
                  zeros({256})),
              HasSubstr("amx_store's write outside 'x'"));
  EXPECT_THAT(simulated(
                  [](const Handle& x) {
                    amx_config();
                    amx_release();
                    amx_store(0, x, 64);
                  },
                  zeros({256})),
              HasSubstr("tile registers are used before amx_config"));
}

}  // namespace
}  // namespace hidet::lang
