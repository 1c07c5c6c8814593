// both.h - a script's body as a public function on the CPU and as a kernel of one thread in the simulator, each against the
// same values.
// Threading: one thread at a time.
#pragma once
#include <gtest/gtest.h>
#include <hidet/lang.h>
#include <hidet/runtime/tensor.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace hidet::lang {

using Body = std::function<void(Function&, const std::vector<Handle>&, const Handle&)>;

inline std::vector<Handle> declare_pointers(Function& f, const std::vector<Tensor>& in) {
  std::vector<Handle> out;
  for (size_t i = 0; i < in.size(); i++)
    out.push_back(f.arg("in" + std::to_string(i), ptr(in[i].dtype())));
  return out;
}

inline void expect_values(const Tensor& got, const std::vector<double>& expected,
                          const std::string& where, double tolerance) {
  const std::vector<double> values = got.to_doubles();
  ASSERT_EQ(values.size(), expected.size()) << where;
  for (size_t i = 0; i < values.size(); i++) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << where << ", element " << i << ": " << values[i];
    } else if (tolerance == 0) {
      EXPECT_EQ(values[i], expected[i]) << where << ", element " << i;
    } else {
      EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::fabs(expected[i])))
          << where << ", element " << i;
    }
  }
}

/// `out` after the body on the CPU.
inline void expect_cpu(const std::vector<Tensor>& in, const Tensor& out,
                       const std::vector<double>& expected, const Body& body,
                       double tolerance = 0) {
  ScriptModule m("on_the_cpu");
  m.public_func("launch", [&](Function& f) {
    const std::vector<Handle> pointers = declare_pointers(f, in);
    body(f, pointers, f.arg("out", ptr(out.dtype())));
  });
  const Tensor result = out.clone();
  std::vector<CallArg> args(in.begin(), in.end());
  args.emplace_back(result);
  m.build().call(args);
  expect_values(result, expected, "on the CPU", tolerance);
}

/// `out` after the body in a kernel of `threads` threads in the simulator.
inline void expect_simulated(const std::vector<Tensor>& in, const Tensor& out,
                             const std::vector<double>& expected, const Body& body,
                             double tolerance = 0, int threads = 1) {
  ScriptModule m("simulated");
  m.cuda_kernel("k", [&](Function& f) {
    const std::vector<Handle> pointers = declare_pointers(f, in);
    const Handle result = f.arg("out", ptr(out.dtype()));
    f.grid_dim(1);
    f.block_dim(threads);
    body(f, pointers, result);
  });
  const Tensor result = out.clone();
  std::vector<SimArg> args(in.begin(), in.end());
  args.emplace_back(result);
  simulate_module(m.module(), "launch", args);
  expect_values(result, expected, "in the simulator", tolerance);
}

inline void expect_both(const std::vector<Tensor>& in, const Tensor& out,
                        const std::vector<double>& expected, const Body& body,
                        double tolerance = 0) {
  expect_cpu(in, out, expected, body, tolerance);
  expect_simulated(in, out, expected, body, tolerance);
}

}  // namespace hidet::lang
