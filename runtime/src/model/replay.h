// replay.h - runs of one model recorded as CUDA graphs, one for each set of sizes used lately.
// Threading: `list` is used under `mutex`.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "hidet/runtime/cuda.h"
#include "hidet/runtime/tensor.h"

namespace hidet::runtime {
struct Weights;

/// A recorded run and the memory at whose addresses it works.
struct Replay {
  std::vector<int64_t> symbols;
  std::shared_ptr<const Weights> weights;
  std::vector<Tensor> inputs, outputs;  // outputs: an empty tensor where the code makes none
  Tensor workspace;
  CudaGraph graph;
};

struct Replays {
  std::mutex mutex;
  std::list<Replay> list;  // the last used first; all of the same weights
};

}  // namespace hidet::runtime
