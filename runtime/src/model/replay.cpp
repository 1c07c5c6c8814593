// replay.cpp - a run of a GPU program as a CUDA graph: inputs are copied to the graph's own, the graph is launched,
// results are copied to tensors of the caller's. All in the default stream, so that it is ordered as a plain run.
// Needs: a GPU. Leaves: at most kMostReplays graphs with their memory in each model.
// Threading: thread-safe; one call at a time queues its work.
#include "src/model/replay.h"

#include <iterator>

#include "hidet/runtime/error.h"
#include "src/cuda/cuda_module.h"
#include "src/model/state.h"

namespace hidet::runtime {
namespace {

using From = OutputPlan::From;
constexpr size_t kMostReplays = 8;

void require_cuda(const ModelState& state, const std::vector<Tensor>& inputs) {
  require_code(state);
  for (size_t i = 0; i < inputs.size() && i < state.inputs.size(); ++i)
    HIDET_REQUIRE(!inputs[i].defined() || inputs[i].device().is_cuda(), ErrorCode::usage, "",
                  "input '", state.inputs[i].signature.name, "' is on the ",
                  inputs[i].device().name(), "; cuda_graph takes tensors of a GPU");
  HIDET_REQUIRE(state.device.is_cuda(), ErrorCode::usage, "", "model '", state.data.name,
                "' runs on the ", state.device.name(), "; cuda_graph needs a program for a GPU");
}

/// Queues copies of `from` to the graph's inputs.
void give_inputs(const Replay& replay, const std::vector<Tensor>& from) {
  for (size_t i = 0; i < from.size(); ++i) copy_into(replay.inputs[i], from[i]);
}

Replay record(ModelState& state, const std::vector<Tensor>& inputs, std::vector<int64_t> symbols,
              std::shared_ptr<const Weights> weights) {
  Replay replay{std::move(symbols), std::move(weights), {}, {}, {}, {}};
  const int64_t* sizes = replay.symbols.data();
  std::vector<void*> pointers;
  for (const Tensor& t : inputs) {
    replay.inputs.push_back(empty(t.shape(), t.dtype(), t.device()));
    pointers.push_back(replay.inputs.back().data());
  }
  for (const OutputPlan& plan : state.outputs) {
    const bool made = plan.from == From::code || plan.from == From::shared;
    replay.outputs.push_back(made ? make_output(plan, replay.inputs, sizes) : Tensor());
    pointers.push_back(made ? replay.outputs.back().data() : nullptr);
  }
  // A plain run loads code that waits for its first use, and tells what is wrong better than a recording could.
  give_inputs(replay, inputs);
  (void)run_code(state, replay.inputs, nullptr);
  replay.workspace = empty({state.workspace_bytes(sizes, 0)}, u8, state.device);
  replay.graph = CudaGraph(state.device.index(), [&](CUstream_st* stream) {
    const ContextPool::Use context(state.code->pool);
    context->stream = stream;
    const ScratchScope scope;
    const int32_t status = launch_program(state, context.get(), sizes, pointers.data(),
                                          pointers.data() + inputs.size(),
                                          replay.weights->pointers.data(), replay.workspace.data());
    context->check(status, state.data.name.c_str());
  });
  return replay;
}

/// Removes replays from the `first` on; waits, since a graph must not go while it runs.
void drop_from(ModelState& state, std::list<Replay>::iterator first) {
  cuda_stream_synchronize(state.device.index(), nullptr, state.data.name);
  state.replays.list.erase(first, state.replays.list.end());
}

/// The replay at these sizes and weights, first in the list, recorded where there is none.
const Replay& find_replay(ModelState& state, const std::vector<Tensor>& inputs,
                          std::vector<int64_t> symbols) {
  std::list<Replay>& list = state.replays.list;
  const std::shared_ptr<const Weights> weights = ready_weights(state);
  if (!list.empty() && list.front().weights != weights) drop_from(state, list.begin());
  for (auto at = list.begin(); at != list.end(); ++at) {
    if (at->symbols != symbols) continue;
    list.splice(list.begin(), list, at);
    return list.front();
  }
  if (list.size() == kMostReplays) drop_from(state, std::prev(list.end()));
  list.push_front(record(state, inputs, std::move(symbols), weights));
  return list.front();
}

}  // namespace

std::vector<Tensor> run_replay(ModelState& state, const std::vector<Tensor>& inputs) {
  require_cuda(state, inputs);
  std::vector<int64_t> symbols(state.symbol_names.size());
  solve_inputs(state, inputs, symbols.data());
  check_limits(state, symbols.data());
  check_earlier_kernels(state);
  const std::lock_guard lock(state.replays.mutex);
  const Replay& replay = find_replay(state, inputs, symbols);
  std::vector<Tensor> outputs;
  for (const OutputPlan& plan : state.outputs)
    outputs.push_back(make_output(plan, inputs, symbols.data()));
  give_inputs(replay, inputs);
  // As in a plain run, copies of inputs come before the code, which may change them through a shared output.
  for (size_t i = 0; i < outputs.size(); ++i)
    if (state.outputs[i].from == From::input)
      copy_into(outputs[i], replay.inputs[state.outputs[i].index]);
  replay.graph.launch(nullptr);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputPlan& plan = state.outputs[i];
    if (replay.outputs[i].defined()) copy_into(outputs[i], replay.outputs[i]);
    if (plan.from == From::weight) copy_into(outputs[i], replay.weights->placed[plan.index]);
    if (plan.from == From::output) copy_into(outputs[i], outputs[plan.index]);
  }
  return outputs;
}

}  // namespace hidet::runtime
