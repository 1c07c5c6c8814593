// profile.h - times of the operators of a run, or of the kernels of a call.
// Threading: plain values.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace hidet {

/// Times of one operator of a profiled run of a model, or of one kernel of a profiled call of a module.
struct OperatorTime {
  std::string name, kernel, candidate, shapes;
  double start_ms = 0, milliseconds = 0;
  double flops = 0;  ///< floating-point operations that it is defined as
  double bytes = 0;  ///< of its inputs and outputs
  double gflops() const { return milliseconds > 0 ? flops / milliseconds / 1e6 : 0; }  ///< a second
  double gbps() const { return milliseconds > 0 ? bytes / milliseconds / 1e6 : 0; }
};
/// What a machine can do at most.
struct MachineLimits {
  double gflops = 0, gbps = 0;
};
struct Profile {
  std::vector<OperatorTime> operators;
  double total_ms = 0;
  /// A table. With limits also the share that each operator reached of the one that binds it; more than 100 % where
  /// its data lay in caches.
  std::string text(const std::optional<MachineLimits>& limits = {}) const;
  /// The time that the operators would take at the limits, in ms.
  double least_ms(const MachineLimits& limits) const;
  void save_trace(const std::string& path) const;  ///< Chrome trace JSON
};

}  // namespace hidet
