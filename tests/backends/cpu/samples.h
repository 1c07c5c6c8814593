// samples.h - C texts that tests compile, and what they should compute.
#pragma once
#include <string>

#include "hidet/backends/cpu.h"

namespace samples {

/// y[i] = a * x[i] + y[i] without an include.
inline const char* const kAxpy = R"(
void hidet_axpy(float a, const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
)";

/// Two units that call each other's functions; `helper` is not exported.
inline std::vector<hidet::backends::Unit> two_units() {
  return {{"first",
           "double sqrt(double); double helper(double);\n"
           "double hidet_first(double x) { return helper(x) + sqrt(x); }\n"},
          {"second",
           "double hidet_first(double);\n"
           "double helper(double x) { return x * 2; }\n"
           "double hidet_second(double x) { return hidet_first(x) + 1; }\n"}};
}

/// Unit number i of a program: one function that no other unit has.
inline hidet::backends::Unit numbered(int i) {
  const std::string n = std::to_string(i);
  return {"unit " + n, "int hidet_f" + n + "(const int* x, int n) { int s = " + n +
                           "; for (int i = 0; i < n; ++i) s += x[i] * " + n + "; return s; }\n"};
}

}  // namespace samples
