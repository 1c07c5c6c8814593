// launch_times.h - events around each kernel launch of one call.
// Needs: a GPU. Threading: one call at a time.
#pragma once
#include <cstdint>
#include <deque>
#include <string>

#include "hidet/runtime/abi.h"
#include "hidet/runtime/cuda.h"
#include "hidet/runtime/profile.h"

namespace hidet::runtime {

class LaunchTimes {
 public:
  explicit LaunchTimes(int device) : device_(device), start_(device) { start_.record(nullptr); }
  template <class Launch>
  void launch(CUstream_st* stream, const hidet_cuda_launch& l, const Launch& queue) {
    Row& row = rows_.emplace_back(Row{l.kernel, shape(l), CudaEvent(device_), CudaEvent(device_)});
    row.begin.record(stream);
    queue();
    row.end.record(stream);
  }
  /// Waits for the last one.
  void add_to(Profile& profile, const std::string& candidate) const {
    for (const Row& r : rows_) {
      OperatorTime t;
      t.name = t.kernel = r.kernel;
      t.candidate = candidate;
      t.shapes = r.shape;
      t.milliseconds = static_cast<double>(r.end.since(r.begin));
      t.start_ms = static_cast<double>(r.begin.since(start_));
      profile.operators.push_back(std::move(t));
    }
  }

 private:
  struct Row {
    std::string kernel, shape;
    CudaEvent begin, end;
  };
  static std::string shape(const hidet_cuda_launch& l) {
    const auto triple = [](const int64_t v[3]) {
      return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " +
             std::to_string(v[2]) + ")";
    };
    return "grid " + triple(l.grid) + " block " + triple(l.block);
  }
  int device_;
  CudaEvent start_;
  std::deque<Row> rows_;
};

}  // namespace hidet::runtime
