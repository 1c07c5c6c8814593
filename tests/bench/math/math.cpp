// math.cpp - the worst error of each emitted f32 function over all 2^32 inputs, in units of the last place, and whether
// vectors and single lanes at the levels x86-64-v3 and v4 agree to the bit. Bound: 2 ULP; infinite where NaN, an
// infinity or the sign of a zero is wrong. Exit status 1 when it is passed.
// usage: math_bench [function ...]
// Threading: one thread; 1.5 to 3 minutes a function. Progress goes to stderr.
#include <dlfcn.h>
#include <hidet/runtime/cpu_level.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>

#include "codegen/math_check.h"

namespace hidet::testing {
namespace {

constexpr size_t kChunk = 1u << 14;
constexpr uint64_t kInputs = uint64_t{1} << 32;

// The reference is libmvec's double where the machine has it (a few double ULP), else the C library's.
typedef double Doubles __attribute__((vector_size(32)));  // NOLINT(modernize-use-using)
using VectorFunction = Doubles (*)(Doubles);

VectorFunction vector_function(const char* name) {
  static void* const library =
      __builtin_cpu_supports("avx2") ? dlopen("libmvec.so.1", RTLD_NOW) : nullptr;
  return library ? reinterpret_cast<VectorFunction>(
                       dlsym(library, (std::string("_ZGVdN4v_") + name).c_str()))
                 : nullptr;
}

class Reference {
 public:
  explicit Reference(const MathRow& row)
      : row_(row),
        sigmoid_(!std::strcmp(row.name, "sigmoid")),
        root_(!std::strcmp(row.name, "sqrt")),
        inverse_root_(!std::strcmp(row.name, "rsqrt")),
        function_(vector_function(sigmoid_ ? "exp" : row.name)) {}

  /// out[i] = the function of x[i], kChunk of them.
  void run(const float* x, double* out) const {
    if (root_ || inverse_root_) {
      for (size_t i = 0; i < kChunk; i++) out[i] = std::sqrt(static_cast<double>(x[i]));
      for (size_t i = 0; inverse_root_ && i < kChunk; i++) out[i] = 1 / out[i];
    } else if (function_) {
      vectors(x, out);
    } else {
      for (size_t i = 0; i < kChunk; i++) out[i] = row_.exact(x[i]);
    }
  }

 private:
  __attribute__((target("avx2"))) void vectors(const float* x, double* out) const {
    for (size_t i = 0; i < kChunk; i += 4) {
      Doubles v = {x[i], x[i + 1], x[i + 2], x[i + 3]};
      v = sigmoid_ ? 1 / (1 + function_(-v)) : function_(v);
      std::memcpy(out + i, &v, sizeof v);
    }
  }
  const MathRow& row_;
  const bool sigmoid_, root_, inverse_root_;
  const VectorFunction function_;
};

/// The error of each result, near enough to choose those that ulps() looks at: 0 where the bits are the right ones.
__attribute__((target("avx2"))) void estimate(const float* y, const double* exact, double* error) {
  for (size_t i = 0; i < kChunk; i++) {
    const auto bits = std::bit_cast<uint32_t>(y[i]);
    const auto wanted = std::bit_cast<uint32_t>(static_cast<float>(exact[i]));
    const int64_t exponent = (std::bit_cast<int64_t>(exact[i]) >> 52) & 0x7ff;
    const int64_t held = std::min<int64_t>(std::max<int64_t>(exponent, 1023 - 126), 1023 + 127);
    const double places = std::bit_cast<double>((2 * 1023 + 23 - held) << 52);
    const double off = std::fabs(static_cast<double>(y[i]) - exact[i]) * places;
    const bool fine = bits == wanted || ((y[i] != y[i]) & (exact[i] != exact[i]));
    const double other = ((bits ^ wanted) >> 31) ? 0x1p200 : off;
    error[i] = fine ? 0 : other;
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (!std::memcmp(a.data(), b.data(), kChunk * sizeof(float))) return true;
  for (size_t i = 0; i < kChunk; i++)
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]) &&
        !(std::isnan(a[i]) && std::isnan(b[i])))
      return false;
  return true;
}

/// Progress of all functions, a line every ten seconds.
struct Progress {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now(), last = start;
  double total, done = 0;
  void step(const char* name, double worst) {
    done += kChunk;
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::seconds(10)) return;
    last = now;
    const double spent = std::chrono::duration<double>(now - start).count();
    std::fprintf(stderr, "%-8s %5.1f %% of all, %.3f ULP so far, ETA %.0f s\n", name,
                 100 * done / total, worst, spent / done * (total - done));
  }
};

/// All inputs of one function; false where a bound is passed.
bool sweep(const MathRow& row, Progress& progress) {
  std::vector<std::unique_ptr<Loaded>> codes;
  for (const char* level : {"x86-64-v3", "x86-64-v4"}) {
    if (!CpuTarget::parse(level).runs_on(host_cpu_target())) continue;
    for (const bool vectors : {true, false})
      codes.push_back(std::make_unique<Loaded>(math_module(row.name, vectors), level));
  }
  const Reference reference(row);
  std::vector<float> x(kChunk), y(kChunk), other(kChunk);
  std::vector<double> exact(kChunk), error(kChunk);
  Worst worst;
  uint64_t different = 0;
  for (uint64_t first = 0; first < kInputs; first += kChunk) {
    for (size_t i = 0; i < kChunk; i++)
      x[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i));
    for (const auto& code : codes) {
      std::vector<float>& to = code == codes.front() ? y : other;
      HIDET_CHECK(code->call("launch", {value(x.data()), value(to.data()),
                                        value(static_cast<int64_t>(kChunk))}) == 0);
      if (&to == &other && !same_bits(y, other)) different++;
    }
    reference.run(x.data(), exact.data());
    estimate(y.data(), exact.data(), error.data());
    for (size_t i = 0; i < kChunk; i++) {
      if (error[i] <= worst.error) continue;
      const double sure = ulps(y[i], row.exact(x[i]));
      if (sure > worst.error) worst = {sure, x[i], y[i]};
    }
    progress.step(row.name, worst.error);
  }
  std::printf("%s", text(row, worst).c_str());
  if (different)
    std::printf("; levels or lanes differ in %llu blocks", (unsigned long long)different);
  std::printf("\n");
  std::fflush(stdout);
  return !different && worst.error <= 2;
}

}  // namespace
}  // namespace hidet::testing

int main(int argc, char** argv) {
  using namespace hidet::testing;
  std::vector<const MathRow*> rows;
  for (const MathRow& row : kMathRows) {
    bool asked = argc < 2;
    for (int i = 1; i < argc; i++) asked = asked || std::strcmp(argv[i], row.name) == 0;
    if (asked) rows.push_back(&row);
  }
  Progress progress{.total = static_cast<double>(kInputs) * static_cast<double>(rows.size())};
  bool good = !rows.empty();
  for (const MathRow* row : rows) good = sweep(*row, progress) && good;
  return good ? 0 : 1;
}
